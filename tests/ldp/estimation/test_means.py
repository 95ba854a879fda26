"""Means of a number by category: unbiased, covering, and with errors that are never too small."""

from fractions import Fraction
from math import inf

import numpy as np
import pytest

import ldp
from ldp.estimation.joint.crosstab import Reports
from ldp.estimation.joint.means import expected_widths, means_by
from ldp.estimation.simulation import Crowd, forecast
from ldp.privacy.joint import joint_codes
from ldp.protocols.numbers.threshold import Scale
from ldp.protocols.projective_space import value_counts
from tests.ldp.exact import refuses

SCALE = Scale(cuts=(60, 120, 180, 300, 600), unit="min")
N, ZONES = 6000, 4
PEOPLE = np.arange(N, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
ZONE = (np.arange(N) * 31 % 10 % 5).astype(np.int32)  # some are in no zone
STAYS = np.minimum(30 + (np.arange(N) * 7919) % 400 + 60 * ZONE, 650)
RUNS = 200
CODES = np.arange((ZONES + 1) * 3).reshape(ZONES + 1, 3)[:ZONES, :2]


def plan(**changes):
    ask = {"kind": "daily", "epsilon": Fraction(2)}
    asked = [
        {"slug": "zone", "domain_size": ZONES},
        {"slug": "stay", "domain_size": 5, "scale": SCALE},
        {"slug": "both", "domain_size": (ZONES + 1) * 3, "parts": ("zone", "stay")},
    ]
    indicators = tuple(ldp.IndicatorSpec(**(ask | each | changes.get(each["slug"], {}))) for each in asked)
    shares = (2**64 // 8, 2**64 // 8, 2**64 // 4 * 3)
    fields = {"mechanism": "smp-grr", "unit": "profile", "version": 1, "days": 1}
    return ldp.PlanSpec(indicators=indicators, shares=shares, **fields)


def reports_of(run, zone=ZONE, stays=STAYS):
    """Answers of those who are asked for both, with the key of this run."""
    spec = plan()
    sanitiser = ldp.Sanitiser(spec, ldp.KeyedPrf(run.to_bytes(16, "big")))
    asked = PEOPLE[sanitiser.asked(PEOPLE) == 2]
    rows = np.flatnonzero(sanitiser.asked(PEOPLE) == 2)
    sides = sanitiser.sides(1, asked, SCALE.levels(stays[rows]))
    codes = joint_codes([zone[rows], sides], sizes=(ZONES, 2))
    words = sanitiser.report(2, asked, codes)[:, 0]
    channel = spec.answer_channel(2)
    n_codes = getattr(channel, "n_codes", channel.domain_size)
    counts = value_counts(np.bincount(words, minlength=n_codes).astype(np.int64), channel=channel)
    return Reports.of_counts(counts, channel=channel, n_reports=rows.size, n_population=N)


def test_means_are_unbiased_and_covered() -> None:
    """Over noise, cuts and sample of 200 keys: a ratio is unbiased up to the square of its error."""
    ends = np.array([SCALE.minimum, *SCALE.cuts])[SCALE.levels(STAYS)]
    truth = np.array([ends[zone == ZONE].mean() for zone in range(ZONES)])
    found = [means_by(reports_of(run), codes=CODES, scale=SCALE) for run in range(RUNS)]
    errors = np.array([each.value - truth for each in found])
    said = np.array([each.std_error for each in found])
    assert (np.abs(errors.mean(axis=0)) < 5.5 * errors.std(axis=0) / RUNS**0.5).all()
    ratio = errors.var(axis=0) / (said**2).mean(axis=0)
    assert (np.abs(ratio - 1) < 5.5 * (2 / RUNS) ** 0.5).all()
    covered = np.mean([(each.ci_low <= truth) & (truth <= each.ci_high) for each in found])
    assert abs(covered - 0.95) < 3.5 * (0.95 * 0.05 / (RUNS * ZONES)) ** 0.5


def test_means_are_chosen_by_what_is_expected_and_not_by_their_noise() -> None:
    """Show no mean of a rare category, where its own width chooses estimates that are far too large.

    Show a frequent one with any noise, and so without bias.
    """
    zone, stays = np.full(N, 1, np.int32), np.full(N, 500)
    rare, often = slice(0, 480), slice(480, 1980)  # 8% and 25% of the people
    zone[rare], zone[often] = 0, 2
    stays[rare] = stays[often] = 70  # rounded down to 60
    found = [reports_of(run, zone, stays) for run in range(RUNS)]
    means = [means_by(each, codes=CODES, scale=SCALE) for each in found]
    by_own = np.array([(each.ci_high - each.ci_low) / 600 <= 0.5 for each in means])
    shares = np.bincount(zone, minlength=ZONES) / N
    expected = np.array([expected_widths(each, shares=shares) <= 0.5 for each in found])
    value = np.array([each.value for each in means])
    assert 0.02 < by_own[:, 0].mean() < 0.8
    assert value[by_own[:, 0], 0].mean() > 60 + 5 * value[by_own[:, 0], 0].std() / by_own[:, 0].sum() ** 0.5
    assert not expected[:, 0].any()
    assert expected[:, 2].all() and np.isfinite(value[:, 2]).all()
    assert abs(value[:, 2].mean() - 60) < 5.5 * value[:, 2].std() / RUNS**0.5
    assert expected_widths(found[0], shares=np.array([0.0, -0.1])).tolist() == [inf, inf]


def test_expected_widths_are_those_of_the_intervals_at_an_end_of_the_range() -> None:
    """Numbers at the end: the widths of single intervals are near what is expected, or below."""
    found = reports_of(0, stays=np.full(N, 700))
    means = means_by(found, codes=CODES, scale=SCALE)
    shares = np.bincount(ZONE, minlength=ZONES + 1)[:ZONES] / N
    widths = (means.ci_high - means.ci_low) / 600
    assert widths == pytest.approx(expected_widths(found, shares=shares), rel=0.35)


def test_the_forecast_of_a_mean_is_its_error_on_even_categories() -> None:
    """With people in equal zones and numbers at both ends of the scale, as it is forecast."""
    zone = (np.arange(N) % ZONES).astype(np.int32)
    stays = np.where(np.arange(N) // ZONES % 2, 700, 0)
    found = means_by(reports_of(0, zone, stays), codes=CODES, scale=SCALE)
    (*_, foreseen) = forecast(plan(), crowd=Crowd(visitors=N))
    assert foreseen.scale == SCALE
    assert foreseen.mean_error == pytest.approx((found.ci_high - found.ci_low).mean() / 2, rel=0.1)
    assert forecast(plan(), crowd=Crowd(visitors=N))[0].mean_error is None


def test_a_forecast_mean_has_no_end_where_noise_hides_the_people_of_a_category() -> None:
    """Fieller: error**2 is a / (n - c) for n people, without end from c down; its linear part is a / n."""
    errors = [forecast(plan(), crowd=Crowd(visitors=n))[-1].mean_error for n in (N, 2 * N, 3 * N, 40)]
    once, twice, thrice = (error**-2 for error in errors[:3])
    assert twice - once == pytest.approx(thrice - twice, rel=1e-3)
    assert once < 0.99 * (twice - once)
    assert errors[3] == inf


def test_a_person_has_one_cut_whatever_the_zone() -> None:
    sanitiser = ldp.Sanitiser(plan(), ldp.KeyedPrf(bytes(16)))
    sides = np.array([sanitiser.sides(1, PEOPLE, np.full(N, level, np.int32)) for level in range(-1, 6)])
    assert (sides[0] == -1).all()
    assert (np.diff(sides[1:], axis=0) >= 0).all()
    assert (sides[1].max(), sides[6].min()) == (0, 1)
    crossed = (sides[1:] == 0).sum(axis=0) - 1
    shares = np.bincount(crossed, minlength=5) / N
    assert np.allclose(shares, np.array(SCALE.spacings) / 600, atol=5.5 * 0.5 / N**0.5)


def test_a_number_joins_one_other_indicator_of_its_kind() -> None:
    assert [plan().number_part(index) for index in range(3)] == [None, None, 1]
    assert not plan().is_table(2)
    refuses("domain_size of both must be 15", plan, both={"domain_size": 30}, error=ldp.PlanError)
    static = {"kind": "static"}
    refuses("must not join a static number", plan, stay=static, error=ldp.PlanError)
    two = {"parts": ("zone", "stay"), "domain_size": 9}
    number = {"scale": SCALE, "domain_size": 5}
    refuses("must be two, one of them a number", plan, zone=number, both=two, error=ldp.PlanError)
    assert ldp.certify(plan()).indicators[2].n_values == 1
