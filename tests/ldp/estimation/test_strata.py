"""Comparisons among people of two classes: exact by enumeration of all their answers; coverage by runs."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import ldp
from ldp.errors import FewVisitorsError, NoReportsError
from ldp.estimation.contrasts import baseline_mean, classes_difference, day_difference, value_difference
from ldp.estimation.movement import new_part
from ldp.estimation.strata import (
    days_difference,
    has_shares,
    samples_of,
    sum_of,
    values_difference,
    window_shares,
    windows_change,
    windows_difference,
)
from ldp.estimation.windows import Window, window_difference
from ldp.protocols.channels import WORD
from tests.ldp.estimation.test_windows import inside, tallies_of

# Three people of each class; everyone answers. The second class comes on day 1 with one person only.
PRESENCE = (np.array([0b001, 0b011, 0b110]), np.array([0b010, 0b110, 0b001]))
VALUES = (np.array([0, 1, 1]), np.array([1, 0, 0]))
CHANNELS = tuple(ldp.GrrChannel(domain_size=2, threshold=part * WORD // 16) for part in (14, 11))
EARLY, LATE, WHOLE = Window(1, 1), Window(2, 3), Window(1, 3)
MEASURES = pytest.mark.parametrize("of", ["frequency", "visitors"])


def outcomes():
    for codes in product((0, 1), repeat=6):
        weight, strata = Fraction(1), []
        for place, channel in enumerate(CHANNELS):
            own = np.array(codes[3 * place : 3 * place + 3])
            for code, value in zip(own, VALUES[place], strict=True):
                weight *= channel.p if code == value else channel.q
            strata.append(tallies_of(PRESENCE[place], own, days=3, channel=channel))
        yield float(weight), tuple(strata)


def truth(window: Window, *, of: str) -> np.ndarray:
    """True shares or visitors of both values."""
    there = [values[inside(presence, window)] for presence, values in zip(PRESENCE, VALUES, strict=True)]
    counts = np.bincount(np.concatenate(there), minlength=2)
    return counts / counts.sum() if of == "frequency" else counts


def exact_variance(first: Window, second: Window, *, of: str) -> float:
    """Variance of the noise of each person's answer, by the weight of the person in the difference."""
    sizes = [truth(each, of="visitors").sum() if of == "frequency" else 1 for each in (first, second)]
    found = 0.0
    for presence, channel in zip(PRESENCE, CHANNELS, strict=True):
        weight = inside(presence, second) / sizes[1] - inside(presence, first) / sizes[0]
        noise = channel.p * (1 - channel.p) / (channel.p - channel.q) ** 2
        found += float(noise) * float(np.sum(weight**2))
    return found


@MEASURES
def test_a_difference_of_windows_is_unbiased_and_has_the_exact_variance(of) -> None:
    mean, square = np.zeros(2), np.zeros(2)
    for weight, strata in outcomes():
        found = windows_difference(strata, first=EARLY, second=LATE, of=of)
        assert found.is_exact
        mean += weight * found.value
        square += weight * found.value**2
    np.testing.assert_allclose(mean, truth(LATE, of=of) - truth(EARLY, of=of), atol=1e-12)
    np.testing.assert_allclose(square - mean**2, exact_variance(EARLY, LATE, of=of), atol=1e-9)


@MEASURES
def test_values_days_and_studies_are_unbiased(of) -> None:
    means = [np.zeros(2) for _ in range(4)]
    for weight, strata in outcomes():
        days = days_difference(strata, day=1, baseline=(2, 3), of=of)
        found = (
            sum_of(values_difference(strata, WHOLE, reference=1, of=of)),
            sum_of(days),
            sum_of([baseline_mean(each) for each in days]),
            classes_difference(samples_of(strata, EARLY), samples_of(strata, LATE), of=of).estimate(),
        )
        means = [mean + weight * each.value for mean, each in zip(means, found, strict=True)]
    one, two, three = (truth(Window(day, day), of=of) for day in (1, 2, 3))
    whole, baseline = truth(WHOLE, of=of), (two + three) / 2
    expected = whole - whole[1], one - baseline, baseline, truth(LATE, of=of) - truth(EARLY, of=of)
    for mean, right in zip(means, expected, strict=True):
        np.testing.assert_allclose(mean, right, atol=1e-12)


def people(rng: np.random.Generator, *, n: int = 900):
    """Presence and values of two classes that come on other days and have other shares."""
    for size, shares, often in ((n, (0.5, 0.3, 0.2), 0.6), (n // 3, (0.2, 0.2, 0.6), 0.4)):
        presence = (rng.random((size, 4)) < often) @ (1 << np.arange(4))
        presence = presence[presence > 0]
        yield presence, rng.choice(3, presence.size, p=shares)


def answers(rng: np.random.Generator, of_classes):
    strata = []
    for epsilon, (presence, values) in zip((1, 2), of_classes, strict=True):
        channel = ldp.grr_channel(epsilon=Fraction(epsilon), domain_size=3)
        other = (values + rng.integers(1, 3, values.size)) % 3
        codes = np.where(rng.random(values.size) < float(channel.p), values, other)
        strata.append(tallies_of(presence, codes, days=4, channel=channel))
    return tuple(strata)


@pytest.mark.parametrize(
    ("first", "second"),
    [(Window(1, 2), Window(3, 4)), (Window(1, 3), Window(2, 4)), (Window(1, 1), Window(3, 3))],
)
def test_intervals_of_differences_hold_the_truth_as_often_as_stated(first, second) -> None:
    """Exactly so often where it is known who is in both windows, else at least."""
    runs, rng = 300, np.random.default_rng(3)
    of_classes = list(people(rng))
    shares = [
        np.bincount(np.concatenate([v[inside(p, window)] for p, v in of_classes]), minlength=3)
        for window in (first, second)
    ]
    right = shares[1] / shares[1].sum() - shares[0] / shares[0].sum()
    held = np.zeros(3)
    for _ in range(runs):
        found = windows_difference(answers(rng, of_classes), first=first, second=second, of="frequency")
        held += (found.ci_low <= right) & (right <= found.ci_high)
    error = 3.5 * (0.05 * 0.95 / runs) ** 0.5
    assert found.is_exact == (second.first_day <= first.last_day + 1)
    assert np.all(held / runs > 0.95 - error)
    assert not found.is_exact or np.all(held / runs < 0.95 + error)


@pytest.mark.parametrize("moved", [None, 0, 1])
def test_the_test_of_all_values_errs_as_rarely_as_stated_and_finds_what_differs(moved) -> None:
    runs, rng = 200 if moved is None else 40, np.random.default_rng(4)
    refused = 0
    for _ in range(runs):
        of_classes = list(people(rng, n=2000 if moved is None else 6000))
        if moved is not None:  # visitors of day 4 of a class have the first value
            presence, values = of_classes[moved]
            of_classes[moved] = presence, np.where(inside(presence, Window(4, 4)), 0, values)
        found = windows_change(answers(rng, of_classes), (Window(1, 2), Window(3, 4)))
        refused += found is not None and found.p_value < 0.05
    if moved is None:
        assert abs(refused / runs - 0.05) < 3.5 * (0.05 * 0.95 / runs) ** 0.5
    else:
        assert refused > 0.9 * runs


def test_without_classes_every_figure_is_that_of_the_tallies() -> None:
    rng = np.random.default_rng(5)
    (one, _) = answers(rng, people(rng))
    alone, days, windows = (one,), {"day": 2, "baseline": (1, 4)}, {"first": EARLY, "second": LATE}
    (sample,) = samples_of(alone, LATE)
    for of in ("frequency", "visitors"):
        pairs = (
            (windows_difference(alone, of=of, **windows), window_difference(one, of=of, **windows)),
            (sum_of(days_difference(alone, of=of, **days)), day_difference(one, of=of, **days).estimate()),
            (
                sum_of(values_difference(alone, LATE, reference=0, of=of)),
                value_difference(sample, reference=0, of=of).estimate(),
            ),
        )
        for found, expected in pairs:
            for name in ("value", "std_error", "ci_low", "ci_high"):
                np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-12)
    np.testing.assert_array_equal(window_shares(alone, LATE).value, sample.estimates().frequency)


def test_a_class_that_is_absent_has_no_weight_and_one_that_is_silent_leaves_no_figure() -> None:
    first = tallies_of(PRESENCE[0], VALUES[0], days=3, channel=CHANNELS[0])
    late = tallies_of(np.array([0b010]), np.array([1]), days=3, channel=CHANNELS[1])
    found = windows_difference((first, late), first=EARLY, second=LATE, of="visitors")
    alone = windows_difference((first,), first=EARLY, second=LATE, of="visitors")
    own = window_shares((late,), LATE)
    np.testing.assert_allclose(found.value, alone.value + own.value)
    assert len(samples_of((first, late), EARLY)) == 1 and has_shares((first, late), EARLY)
    silent = tallies_of(
        np.array([], int), np.array([], int), days=3, channel=CHANNELS[1], population=np.array([0b010])
    )
    assert not has_shares((first, silent), LATE) and has_shares((first, silent), EARLY)
    assert not has_shares((silent,), EARLY)
    with pytest.raises(NoReportsError):
        windows_difference((first, silent), first=EARLY, second=LATE, of="visitors")


def test_a_class_with_few_people_in_a_part_makes_the_difference_a_bound() -> None:
    rng = np.random.default_rng(6)
    strata = answers(rng, people(rng, n=120))
    only_late = new_part(strata[1], Window(3, 4), since=1).n_visitors
    guarded = tuple(replace(each, small_cell=only_late + 1) for each in strata)
    windows = {"first": Window(1, 2), "second": Window(3, 4)}
    assert windows_difference(strata, of="frequency", **windows).is_exact
    assert not windows_difference(guarded, of="frequency", **windows).is_exact
    with pytest.raises(FewVisitorsError):
        samples_of(tuple(replace(each, small_cell=10**4) for each in strata), EARLY)
