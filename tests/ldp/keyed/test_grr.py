"""Generalised randomised response: the kernel on chosen bits, the answers on keyed ones."""

from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp import NO_ANSWER, KeyedPrf, grr_channel
from ldp.kernels import codes as kernels
from ldp.kernels.entropy import ANSWER
from ldp.kernels.streams import last_accepted
from ldp.keyed.grr import answers, limits_of
from ldp.protocols.channels import MAX_DOMAIN_SIZE, WORD
from tests.ldp.exact import FixedPrf, reference_grr

KEY = bytes(range(100, 116))
CHANNEL = grr_channel(epsilon=Fraction(1), domain_size=8)
TOP = WORD - 1


def run_kernel(values, words, *, threshold, k, last) -> tuple[list[int], int]:
    """Answers, and how many second words are biased; the same for values of both kinds, asked both ways."""
    sealed = np.array(words, np.uint64).reshape(-1).byteswap()
    unused = [0, 1, TOP, 0]
    limits = np.array([unused, [threshold, k - 1, int(kernels.reciprocal(k - 1)), last]], np.uint64)
    found = []
    for as_stored in (np.array(values, np.int32), np.array(values, np.int32).astype(np.uint16)):
        for asked in (np.ones(1, np.uint8), np.ones(len(values), np.uint8)):
            out = np.empty(len(values), np.uint16)
            biased = kernels.grr_answers(as_stored, asked, sealed, limits, out)
            found.append((out.tolist(), biased))
    assert all(other == found[0] for other in found)
    return found[0]


def test_code_of_no_answer_lies_above_every_domain() -> None:
    assert NO_ANSWER == 65535 > MAX_DOMAIN_SIZE
    assert np.int32(-1).astype(np.uint16) == NO_ANSWER


def test_each_row_has_the_limits_of_its_indicator() -> None:
    rng = np.random.default_rng(3)
    sizes = [2, 3, 8, MAX_DOMAIN_SIZE]
    limits = limits_of([grr_channel(epsilon=Fraction(1), domain_size=k) for k in sizes])
    asked = rng.integers(0, 4, 4000).astype(np.uint8)
    values = (rng.integers(0, 2**31, 4000) % np.take(sizes, asked)).astype(np.uint16)
    sealed = rng.integers(0, 2**64, 8000, dtype=np.uint64)
    together, alone = np.empty((2, 4000), np.uint16)
    assert kernels.grr_answers(values, asked, sealed, limits, together) == 0
    for i in range(4000):
        one, words = slice(i, i + 1), slice(2 * i, 2 * i + 2)
        kernels.grr_answers(values[one], asked[one], sealed[words], limits, alone[one])
    assert np.array_equal(together, alone)


@pytest.mark.parametrize(("k", "threshold"), [(2, 150), (5, 99)])
def test_kernel_realises_its_channel_exactly(k: int, threshold: int) -> None:
    """All pairs of 8-bit words through the kernel, its parameters scaled down to 8 bits."""
    words = list(product(range(256), repeat=2))
    last = 256 // (k - 1) * (k - 1) - 1
    p, q = Fraction(threshold, 256), Fraction(256 - threshold, 256 * (k - 1))
    table = []
    for value in range(k):
        out, biased = run_kernel([value] * len(words), words, threshold=threshold, k=k, last=last)
        assert biased == 256 * (255 - last)
        # A biased word starts over with the replacement alone.
        pairs = zip(words, out, strict=True)
        moved = Counter(code for (u, second), code in pairs if u >= threshold and second <= last)
        replaced = [moved[other] for other in range(k)]
        assert sum(replaced) == (256 - threshold) * (last + 1)
        scale = (1 - p) / sum(replaced)
        table.append([p if other == value else replaced[other] * scale for other in range(k)])
        assert replaced[value] == 0
    assert table == [[p if x == v else q for x in range(k)] for v in range(k)]


def test_biased_replacements_are_drawn_again_from_the_next_counter() -> None:
    t, last = CHANNEL.threshold, int(last_accepted(7))
    bits = {
        0: [(t, last + 1), (t, 2), (0, TOP), (t, TOP)],
        1: [(0, 3), None, None, (0, last + 1)],  # the first word of a redraw must not matter
        2: [None, None, None, (0, 5)],
    }
    prf = FixedPrf(lambda pseudonym, *, value, counter: bits[counter][pseudonym])  # noqa: ARG005
    fields = {"pseudonyms": np.arange(4, dtype=np.uint64), "indicator": 0, "plan_version": 1}
    codes = answers(np.array([3, 1, 6, 0], np.int32), prf=prf, channel=CHANNEL, **fields)
    assert codes.tolist() == [4, 3, 6, 6]


@given(data=st.data(), k=st.sampled_from([2, 3, 8, 37, 1000, MAX_DOMAIN_SIZE]), indicator=st.integers(0, 254))
def test_answers_are_those_of_the_reference(data: st.DataObject, k: int, indicator: int) -> None:
    people = data.draw(st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(-1, k - 1)), max_size=20))
    channel = grr_channel(epsilon=Fraction(2), domain_size=k)
    fields = {"indicator": indicator, "plan_version": 255 - indicator}
    values = np.array([value for _, value in people], np.int32)
    pseudonyms = np.array([pseudonym for pseudonym, _ in people], np.uint64)
    codes = answers(values, pseudonyms=pseudonyms, prf=KeyedPrf(KEY), channel=channel, **fields)
    assert codes.dtype == np.uint16
    fields |= {"channel": channel, "purpose": ANSWER}
    assert codes.tolist() == [
        NO_ANSWER if value < 0 else reference_grr(KEY, value, value=value, pseudonym=who, **fields)
        for who, value in people
    ]
