"""Helpers of the library's tests: exact bounds, a keyed function with chosen bits, plans in one line."""

import json
import struct
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from ldp import GrrChannel, IndicatorRequest, KeyedPrf, LdpError, PlanSpec, UnaryChannel, build_plan
from ldp.kernels.entropy import BlockBuffer
from ldp.privacy.plans import Kind

DATA = Path(__file__).parents[1] / "data"
VECTORS = json.loads((DATA / "privacy_vectors.json").read_text(encoding="utf-8"))


def exp_bounds(x: Fraction) -> tuple[Fraction, Fraction]:
    """Rational bounds of exp(x), 0 <= x <= 16, from its Taylor series in 600 bits, rounded down and up."""
    one = 1 << 600
    x_low = x.numerator * one // x.denominator
    terms = [(one, one)]
    for i in range(1, 170):
        low, high = terms[-1]
        terms.append((low * x_low // (one * i), -(-high * (x_low + 1) // (one * i))))
    # Each term is less than a tenth of the one before it in the end: the rest is less than the last one.
    return Fraction(sum(t for t, _ in terms), one), Fraction(sum(t for _, t in terms) + terms[-1][1] + 1, one)


def largest_ratios(
    laws: Mapping[Any, Mapping[Any, Fraction]], *, alike: Callable[..., Any]
) -> dict[Any, Fraction]:
    """Largest exact ratio of two people's laws of one outcome, by what `alike` says of both (None: no pair).

    Floats choose the few outcomes that may have it: fractions of all of them take most of the time.
    """
    people, outcomes = list(laws), sorted(set().union(*laws.values()))
    exact = [[law.get(y, Fraction(0)) for y in outcomes] for law in laws.values()]
    nearly = np.array([[float(chance) for chance in chances] for chances in exact])
    found: dict[Any, Fraction] = {}
    for (i, one), (j, other) in permutations(enumerate(people), 2):
        pair = alike(one, other)
        if pair is None:
            continue
        with np.errstate(divide="ignore", invalid="ignore"):  # no one says some of them
            ratios = nearly[i] / nearly[j]
        known = found.get(pair, Fraction(0))
        near = np.flatnonzero(ratios >= max(np.nanmax(ratios), float(known)) * (1 - 1e-9))
        chances = {(exact[i][y], exact[j][y]) for y in near}
        found[pair] = max([known, *(chance / least for chance, least in chances)])
    return found


def keyed_block(*, pseudonym, purpose, indicator, plan_version, value, counter) -> bytes:
    head = struct.pack(">QBBB", pseudonym, purpose, indicator, plan_version)
    return head + value.to_bytes(3, "big") + counter.to_bytes(2, "big")


def reference_words(key: bytes, **fields: int) -> tuple[int, int]:
    sealed = Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(keyed_block(**fields))  # noqa: S305
    first, last = struct.unpack(">QQ", sealed)
    return first, last


def reference_numbers(key: bytes, n_lanes: int, *, counter: int, **fields: int) -> list[int]:
    numbers = [0] * n_lanes
    blocks = [reference_words(key, counter=counter + block, **fields) for block in range(32)]
    for digit in range(64):
        block, place = divmod(digit // 2, 64 // n_lanes)
        word = int.from_bytes(blocks[block][digit % 2].to_bytes(8, "big"), "little")
        for lane in range(n_lanes):
            numbers[lane] = numbers[lane] << 1 | word >> place * n_lanes + lane & 1
    return numbers


def reference_lanes(key: bytes, n_lanes: int, *, counter: int = 0, **fields: int) -> list[int]:
    """Random numbers of any number of lanes: 64 to a group, whose blocks follow each other."""
    return [
        number
        for start in range(0, n_lanes, 64)
        for number in reference_numbers(key, min(64, n_lanes - start), counter=counter + start // 2, **fields)
    ]


def reference_below(key: bytes, bound: int, *, word: int = 0, counter: int = 0, **fields: int) -> int:
    """Uniform integer from one word of a block, drawn again from the next counters while it is biased."""
    while (drawn := reference_words(key, counter=counter, **fields)[word]) >= 2**64 // bound * bound:
        counter += 1
    return drawn % bound


def reference_grr(key: bytes, truth: int, *, channel: GrrChannel, counter: int = 0, **fields: int) -> int:
    if reference_words(key, counter=counter, **fields)[0] < channel.threshold:
        return truth
    other = reference_below(key, channel.domain_size - 1, word=1, counter=counter, **fields)
    return other + (other >= truth)


def reference_bits(key: bytes, truth: int | list[int], *, channel: UnaryChannel, **fields: int) -> list[int]:
    bits = truth if isinstance(truth, list) else [int(x == truth) for x in range(channel.domain_size)]
    thresholds = [channel.threshold_p if bit else channel.threshold_q for bit in bits]
    numbers = reference_lanes(key, len(bits), **fields)
    return [int(number < threshold) for number, threshold in zip(numbers, thresholds, strict=True)]


def packed(bits: list[int]) -> list[int]:
    return [sum(bit << i for i, bit in enumerate(bits[at : at + 64])) for at in range(0, len(bits), 64)]


def has_bit(words: NDArray[np.uint64], value: int) -> NDArray[np.bool_]:
    return (words[:, value // 64] >> np.uint64(value % 64) & np.uint64(1)).astype(bool)


def digest(*arrays) -> str:
    """Digest of frozen reports: another layout of the bits would give everyone a second answer."""
    return sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()[:16]


def refuses(
    message: str, call: Callable[..., Any], *args: Any, error: type = LdpError, **arguments: Any
) -> None:
    with pytest.raises(error, match=message):
        call(*args, **arguments)


class FixedBuffer(BlockBuffer):
    def __init__(self, bits: Callable[..., tuple[int, int]], n_blocks: int) -> None:
        self._bits = bits
        self.blocks = np.empty(2 * n_blocks, np.uint64)

    def seal(self, n_blocks: int) -> NDArray[np.uint64]:
        plain = self.blocks[: 2 * n_blocks].byteswap().reshape(-1, 2).tolist()
        last = 2**16 - 1
        words = [self._bits(who, value=rest >> 16 & 2**24 - 1, counter=rest & last) for who, rest in plain]
        return np.array(words, np.uint64).reshape(-1).byteswap()


class FixedPrf(KeyedPrf):
    def __init__(self, bits: Callable[..., tuple[int, int]]) -> None:
        super().__init__(bytes(16))
        self._bits = bits

    def buffer(self, n_blocks: int) -> BlockBuffer:
        return FixedBuffer(self._bits, n_blocks)

    def runs(self, pseudonyms, **fields) -> Iterator[tuple[slice, NDArray[np.uint64]]]:
        """Fields that the bits do not depend on may be left out."""
        unused = {"purpose": 0, "indicator": 0, "plan_version": 0}
        return super().runs(pseudonyms, **unused | fields)


def requests_of(*indicators: tuple[Kind, int], max_values: int | None = None) -> tuple[IndicatorRequest, ...]:
    most = {"static": None, "daily": max_values}
    return tuple(
        IndicatorRequest(slug=f"i{i}", kind=kind, domain_size=size, max_values=most[kind])
        for i, (kind, size) in enumerate(indicators)
    )


def make_plan(*indicators: tuple[Kind, int], max_values: int | None = None, **changes) -> PlanSpec:
    """Plan of (kind, domain_size) indicators, "i0", "i1", ...; static keywords may be changed."""
    settings = {"mechanism": "smp-grr", "unit": "profile", "version": 1, "days": 7, "epsilon": Decimal(1)}
    if changes.get("mechanism") == "smp-stream":
        max_values = None  # it follows from the window
    return build_plan(**settings | changes, indicators=requests_of(*indicators, max_values=max_values))
