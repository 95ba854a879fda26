"""Keyed discrete Gaussian noise of counts by slot and zone: drawn once for a count, the same on every retry.

The block of `ldp.kernels.entropy` has ``draw 32 | slot 32`` in place of the pseudonym, and the zone as value.
A draw is one word: the first 8 bytes of the cipher block. Everything is integers and fractions, so that the
law is exactly the discrete Gaussian, P(z) in proportion to exp(-z**2 / (2 variance)).

Source: Canonne, Kamath and Steinke, NeurIPS 2020, algorithms 1 to 3.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import count
from math import isqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.kernels.entropy import SLOT_NOISE, KeyedPrf
from ldp.privacy.slots import SlotNoise

_DRAWS: Final = 64  # words of a count that are made at once
_COUNTS: Final = 256  # that get their first words at once
_MAX_DRAWS: Final = 2**32
_WORD_BITS: Final = 64

Words = NDArray[np.uint64]
Source = Callable[[], int]


def slot_noise_counts(
    noise: SlotNoise, *, prf: KeyedPrf, slots: NDArray[np.int64], zones: NDArray[np.int64], plan_version: int
) -> NDArray[np.int64]:
    """Noise of the counts of some slots and zones, int64, shape (n,).

    Parameters
    ----------
    prf : of the study
    slots : shape (n,); number of each slot in UTC, in [0, 2**32)
    zones : shape (n,); code of the zone, of any level, in [0, 2**24)

    Raises
    ------
    LdpError : a slot or zone is out of range, or the shapes differ
    """
    if slots.shape != zones.shape or slots.ndim != 1:
        raise LdpError(f"slots and zones must have one shape (n,), got {slots.shape} and {zones.shape}")
    if slots.size and not (slots.min() >= 0 and slots.max() < 2**32):
        raise LdpError(f"slots must be in [0, 2**32), got {slots.min()} to {slots.max()}")
    drawn = np.empty(slots.size, np.int64)
    for start in range(0, slots.size, _COUNTS):
        places = slots[start : start + _COUNTS], zones[start : start + _COUNTS]
        words = _words(prf, *places, first=0, plan_version=plan_version).tolist()
        for place, (slot, zone, made) in enumerate(zip(*places, words, strict=True), start=start):
            drawn[place] = discrete_gaussian(noise.variance, _source(prf, slot, zone, plan_version, made))
    return drawn


def _words(
    prf: KeyedPrf, slots: NDArray[np.int64], zones: NDArray[np.int64], *, first: int, plan_version: int
) -> Words:
    """Words of some counts from the draw `first` on, shape (n, _DRAWS)."""
    draws = np.arange(first, first + _DRAWS, dtype=np.uint64) << np.uint64(32)
    words = prf.words(
        (slots.astype(np.uint64)[:, np.newaxis] | draws).ravel(),
        purpose=SLOT_NOISE,
        indicator=0,
        plan_version=plan_version,
        values=np.repeat(zones.astype(np.uint32), _DRAWS),
        counter=0,
    )
    return words[:, 0].reshape(-1, _DRAWS)


def _source(prf: KeyedPrf, slot: int, zone: int, plan_version: int, made: Sequence[int] = ()) -> Source:
    """Words of one count, as often as it is called: first those that are made."""
    held, first = list(made[::-1]), len(made)

    def word() -> int:
        nonlocal first
        if not held:
            if first >= _MAX_DRAWS:
                raise LdpError("noise must end: the key or the cipher is broken")
            place = np.array([slot]), np.array([zone])
            (more,) = _words(prf, *place, first=first, plan_version=plan_version).tolist()
            held.extend(more[::-1])
            first += _DRAWS
        return held.pop()

    return word


def discrete_gaussian(variance: Fraction, word: Source) -> int:
    """Draw from the discrete Gaussian with a parameter of at least 1/4.

    word : returns 64 new random bits at each call
    """
    scale = isqrt(int(variance)) + 1
    while True:
        drawn = _discrete_laplace(scale, word)
        if _is_with_exp((abs(drawn) - variance / scale) ** 2 / (2 * variance), word):
            return drawn


def _discrete_laplace(scale: int, word: Source) -> int:
    """P(z) in proportion to exp(-|z| / scale)."""
    while True:
        rest = _below(scale, word)
        if not _is_with_exp(Fraction(rest, scale), word):
            continue
        times = next(n for n in count() if not _is_with_exp(Fraction(1), word))
        magnitude, is_negative = rest + scale * times, _below(2, word) == 1
        if magnitude or not is_negative:  # zero has one sign
            return -magnitude if is_negative else magnitude


def _is_with_exp(x: Fraction, word: Source) -> bool:
    """Return true with probability exp(-x), x >= 0."""
    while x > 1:
        if not _is_with_exp(Fraction(1), word):
            return False
        x -= 1
    k = 1
    while _below(x.denominator * k, word) < x.numerator:  # with probability x / k
        k += 1
    return k % 2 == 1


def _below(bound: int, word: Source) -> int:
    """Draw an integer of [0, bound), each equally likely."""
    n_words = -(-bound.bit_length() // _WORD_BITS)
    size = 1 << (n_words * _WORD_BITS)
    while True:
        drawn = 0
        for _ in range(n_words):
            drawn = drawn << _WORD_BITS | word()
        if drawn < size // bound * bound:
            return drawn % bound
