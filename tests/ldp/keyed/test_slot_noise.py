"""Noise of a count by slot and zone: the exact law, one draw for a place, other draws for other places."""

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import count

import numpy as np
import pytest
from numpy.typing import NDArray

from ldp import KeyedPrf
from ldp.errors import LdpError
from ldp.kernels.entropy import PRESENCE_NOISE, SLOT_NOISE
from ldp.keyed.noise import slots as noise_of
from ldp.keyed.noise.slots import discrete_gaussian, slot_noise_counts
from ldp.privacy.slots import SlotNoise

KEY = KeyedPrf(bytes(range(16)))
GOLDEN = [-15, -12, -14, -7, -18, 21, -4, 9]


def drawn(variance: str, *, slots: int, zones: int, key=KEY, version: int = 1) -> NDArray[np.int64]:
    spec = SlotNoise(variance=Fraction(variance), slots_per_day=48, levels=1, delta=Fraction(1, 10**6))
    places = np.indices((slots, zones)).reshape(2, -1)
    return slot_noise_counts(spec, prf=key, slots=places[0], zones=places[1], plan_version=version)


@pytest.mark.parametrize("variance", ["1/4", "2", "10.5"])
def test_the_law_is_the_discrete_gaussian(variance: str) -> None:
    found = drawn(variance, slots=100, zones=100)
    sigma2 = float(Fraction(variance))
    weights = {z: math.exp(-(z**2) / (2 * sigma2)) for z in range(-60, 61)}
    total = sum(weights.values())
    counts, n = Counter(found.tolist()), found.size
    kept = [z for z, weight in weights.items() if n * weight / total >= 5]
    expected = np.array([n * weights[z] / total for z in kept])
    observed = np.array([counts[z] for z in kept])
    rest = (expected.sum() - observed.sum()) ** 2 / max(n - expected.sum(), 5)
    chi2 = ((observed - expected) ** 2 / expected).sum() + rest
    # Mean and deviation of chi-square with len(kept) degrees of freedom.
    assert chi2 < len(kept) + 4 * math.sqrt(2 * len(kept))


def test_a_place_has_one_draw_that_never_changes_and_others_have_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = drawn("400", slots=20, zones=5)
    assert (first == drawn("400", slots=20, zones=5)).all()
    for changed in ({"version": 2}, {"key": KeyedPrf(bytes(16))}):
        assert (first != drawn("400", slots=20, zones=5, **changed)).mean() > 0.9
    assert len(np.unique(first)) > 30
    assert SLOT_NOISE != PRESENCE_NOISE
    assert drawn("400", slots=2, zones=4).tolist() == GOLDEN
    monkeypatch.setattr(noise_of, "_COUNTS", 7)  # also where its words are made in other company
    assert (first == drawn("400", slots=20, zones=5)).all()


def test_bounded_draws_are_uniform_below_any_bound() -> None:
    # 3 does not divide 2**64: the largest word is drawn again.
    assert noise_of._below(3, iter_of(2**64 - 1, 4)) == 1
    assert noise_of._below(1, iter_of(7)) == 0
    # Above 64 bits a draw is two words.
    assert noise_of._below(2**64 + 1, iter_of(1, 0)) == 2**64 % (2**64 + 1)


def iter_of(*words: int) -> Callable[[], int]:
    given = iter(words)
    return lambda: next(given)


def test_noise_that_never_ends_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise_of, "_MAX_DRAWS", 64)
    source = noise_of._source(KEY, 1, 1, 1)
    with pytest.raises(LdpError, match="noise must end"):
        for _ in count():
            discrete_gaussian(Fraction(4), source)


@pytest.mark.parametrize(
    ("slots", "zones", "words"),
    [
        ([0, 1], [0], "one shape"),
        ([-1], [0], r"slots must be in \[0, 2\*\*32\), got -1 to -1"),
        ([2**32], [0], "got 4294967296"),
        ([0], [2**24], "16777216"),
    ],
)
def test_places_out_of_range_are_refused(slots: list[int], zones: list[int], words: str) -> None:
    spec = SlotNoise(variance=Fraction(4), slots_per_day=48, levels=1, delta=Fraction(1, 10**6))
    with pytest.raises(LdpError, match=words):
        slot_noise_counts(spec, prf=KEY, slots=np.array(slots), zones=np.array(zones), plan_version=1)
