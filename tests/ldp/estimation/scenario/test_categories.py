"""Bars of categories and of noisy tallies: they hold the truth as often as stated, and use nothing hidden."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldp import (
    CellNoise,
    NoReportsError,
    all_unions,
    category_people,
    days_in_a_row,
    edge_targets,
    exactly_days,
    grr_channel,
    noisy_people,
    on_days,
    scenario_people,
)
from ldp.errors import FewVisitorsError
from ldp.estimation.scenario.categories import edge_shares
from ldp.estimation.scenario.flows import places, with_departures
from ldp.estimation.scenario.intervals import category_limits, visitor_limits
from ldp.protocols.geometric import geometric_channel
from tests.ldp.estimation.scenario.people import fimu, longest_run, tally_of
from tests.ldp.estimation.test_windows import SURE, tallies_of
from tests.ldp.exact import refuses

DAYS = 5
CHANNEL = grr_channel(epsilon=Fraction(2), domain_size=3)
people = st.lists(st.tuples(st.integers(1, 2**DAYS - 1), st.integers(0, 2)), min_size=1, max_size=60)
QUESTIONS = (
    (on_days(days=DAYS, present=[1, 4], absent=[3]), lambda p: {1, 4} <= set(p) and 3 not in p),
    (exactly_days(2, days=DAYS), lambda p: len(p) == 2),
    (days_in_a_row(2, days=DAYS), lambda p: longest_run(p) >= 2),
)


def days_of(bits: int) -> tuple[int, ...]:
    return tuple(day + 1 for day in range(DAYS) if bits >> day & 1)


def crowd(n: int, *, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Presence and values: value 1 comes on more days, value 2 is rare."""
    rng = np.random.default_rng(seed)
    values = rng.choice(3, n, p=[0.6, 0.37, 0.03])
    bits = rng.random((n, DAYS)) < np.where(values == 1, 0.6, 0.3)[:, np.newaxis]
    presence = (bits << np.arange(DAYS)).sum(axis=1)
    return np.maximum(presence, 1 << rng.integers(0, DAYS, n) * (presence == 0)), values


def reported(presence: np.ndarray, values: np.ndarray, *, seed: int, channel=CHANNEL):
    rng, k = np.random.default_rng(seed), channel.domain_size
    others = (values + rng.integers(1, k, values.size)) % k
    answers = np.where(rng.random(values.size) < float(channel.p), values, others)
    asked = rng.random(values.size) < 1 / 3
    visitors = tallies_of(presence, values, days=DAYS, channel=channel).visitors
    return replace(tallies_of(presence[asked], answers[asked], days=DAYS, channel=channel), visitors=visitors)


def truth_of(presence: np.ndarray, values: np.ndarray, question) -> np.ndarray:
    chosen = np.array([question(days_of(int(bits))) for bits in presence])
    return np.bincount(values[chosen], minlength=3)


@given(people=people)
@settings(max_examples=4, deadline=None)
def test_bars_from_reports_that_never_lie_hold_the_truth_and_are_within_the_bounds_of_all(people):
    presence, values = (np.array(each) for each in zip(*people, strict=True))
    tallies = tallies_of(presence, values, days=DAYS, channel=SURE)
    for scenario, question in QUESTIONS:
        found, of_all = category_people(tallies, scenario), scenario_people(tallies.visitors, scenario)
        truth = truth_of(presence, values, question)
        assert (found.ci_low <= truth).all()
        assert (truth <= found.ci_high).all()
        assert (found.ci_low <= found.estimate).all()
        assert (found.estimate <= found.ci_high).all()
        assert found.ci_high.max() <= of_all.most


def test_limits_of_edges_and_windows_miss_at_most_as_often_as_stated_and_not_much_less():
    presence, values = crowd(6_000, seed=1)
    where = places(DAYS)
    truth = where.of_tally(tallies_of(presence, values, days=DAYS, channel=SURE).counts)
    used = where.is_taken & (truth.sum(axis=0) > 0)
    missed = []
    for seed in range(60):
        tallies = reported(presence, values, seed=seed)
        limits = category_limits(tallies, visitors=visitor_limits(tallies.visitors), noise=None, miss=0.1)
        sides = truth < limits.low - 1e-6, truth > limits.high + 1e-6
        missed.append([side[:, used].mean() for side in sides])
    doubt = np.std(missed, axis=0) / len(missed) ** 0.5
    assert (np.mean(missed, axis=0) < 0.05 + 3 * doubt).all()
    assert (np.mean(missed, axis=0) > 0.02).all()


def test_bars_of_many_reports_are_narrower_than_those_of_few_and_follow_the_values():
    presence, values = crowd(20_000, seed=2)
    scenario, question = QUESTIONS[2]
    truth = truth_of(presence, values, question)
    found = category_people(reported(presence, values, seed=3), scenario)
    assert ((found.ci_low <= truth) & (truth <= found.ci_high)).all()
    assert (np.abs(found.estimate - truth) < 0.15 * truth.sum()).all()
    assert found.ci_low[1] > found.ci_high[2]
    wider = category_people(reported(presence, values, seed=3), scenario, level=0.999)
    assert (wider.ci_high - wider.ci_low > found.ci_high - found.ci_low).all()


def test_reports_of_hidden_windows_change_nothing():
    presence, values = crowd(400, seed=4)
    on_first = presence & 1 == 1
    keep = ~on_first | (np.cumsum(on_first) <= 7)  # seven people on day 1
    tallies = replace(reported(presence[keep], values[keep], seed=5), small_cell=20)
    counts = tallies.counts.copy()
    # Those of day 2 were there on day 1, too.
    for previous, day, sign in ((0, 1, 1), (1, 2, 1), (0, 2, -1)):
        counts[:2, previous, day] += sign * np.array([1, -1])
    others = replace(tallies, counts=counts)
    changed = all_unions(counts) != all_unions(tallies.counts)
    assert np.argwhere(changed).tolist() == [[0, 1, 1], [1, 1, 1]]
    scenario = on_days(days=DAYS, present=[1])
    limits, expected = (
        category_limits(each, visitors=visitor_limits(each.visitors, small_cell=20), noise=None, miss=0.1)
        for each in (others, tallies)
    )
    assert (limits.low == expected.low).all()
    assert (limits.high == expected.high).all()
    for end in ("ci_low", "estimate", "ci_high"):
        expected = getattr(category_people(tallies, scenario), end)
        assert (getattr(category_people(others, scenario), end) == expected).all()
    assert (edge_targets(others)[:, 0, 1] == edge_targets(tallies)[:, 0, 1]).all()
    exact = replace(tallies, small_cell=0)
    assert category_people(exact, scenario).ci_high.max() < category_people(tallies, scenario).ci_high.max()


def two_sided_geometric(shape: tuple[int, ...], *, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    first, second = (rng.geometric(1 - np.exp(-epsilon), shape) for _ in range(2))
    return first - second


def test_bounds_of_noisy_tallies_hold_the_truth_and_narrow_with_less_noise():
    people = {pattern: number // 20 for pattern, number in fimu().items()}
    tally, rng = tally_of(people, days=7), np.random.default_rng(6)
    scenario, truth = exactly_days(2, days=7), sum(n for p, n in people.items() if len(p) == 2)
    widths = []
    for step in (0.05, 0.5):
        noise = geometric_channel(step=Fraction(step))
        for _ in range(5):
            noisy = tally + np.triu(two_sided_geometric(tally.shape, epsilon=step, rng=rng), 1)
            found = noisy_people(noisy, scenario, noise=noise)
            assert found.least <= truth <= found.most
            assert found.least <= found.estimate <= found.most
        widths.append(found.most - found.least)
    exact = scenario_people(tally, scenario)
    assert widths[0] > widths[1] > exact.most - exact.least


def test_bars_of_noisy_answers_hold_the_truth():
    presence, values = crowd(20_000, seed=7)
    rng, step = np.random.default_rng(8), 0.2
    noise = geometric_channel(step=Fraction(step))
    tallies = reported(presence, values, seed=9)
    counts, visitors = (
        each + np.triu(two_sided_geometric(each.shape, epsilon=step, rng=rng), 1)
        for each in (tallies.counts, tallies.visitors)
    )
    noisy = replace(tallies, counts=counts, n_reports=counts.sum(axis=0), visitors=visitors)
    for scenario, question in QUESTIONS:
        truth = truth_of(presence, values, question)
        found = category_people(noisy, scenario, noise=CellNoise(visitors=noise, answers=noise))
        assert ((found.ci_low <= truth) & (truth <= found.ci_high)).all()
        assert (found.ci_high - found.ci_low).min() < 20_000


def test_targets_pool_what_is_noise_and_add_up_to_the_visitors():
    """Few of 37 categories stand out from noise on an edge; others are in the proportions of the study."""
    presence, _ = crowd(12_000, seed=10)
    values = np.minimum(np.random.default_rng(11).geometric(0.5, presence.size) - 1, 36)
    channel = grr_channel(epsilon=Fraction(1), domain_size=37)
    tallies = reported(presence, values, seed=12, channel=channel)
    targets, plain = edge_targets(tallies), np.maximum(edge_shares(tallies)[1], 0)
    edges = with_departures(tallies.visitors)
    assert targets.min() >= 0
    assert targets.sum(axis=0) == pytest.approx(edges)
    true = with_departures(np.array([tallies_of(presence[values == x], values[values == x], days=DAYS,
                                                channel=channel).counts[x] for x in range(37)]))  # fmt: skip
    clipped = plain / plain.sum(axis=0) * edges
    assert np.abs(targets - true).sum() < 0.6 * np.abs(clipped - true).sum()
    daily = edge_targets(replace(tallies, kind="daily"))
    assert daily[..., :-1] == pytest.approx(targets[..., :-1])
    assert not daily[..., -1].any()


def test_a_study_without_visitors_has_nobody_in_any_category():
    nobody = np.zeros(0, np.int64)
    for scenario, _ in QUESTIONS:
        found = category_people(tallies_of(nobody, nobody, days=DAYS, channel=CHANNEL), scenario)
        assert not np.concatenate([found.ci_low, found.estimate, found.ci_high]).any()


def test_what_cannot_be_answered_is_refused_with_the_reason():
    tallies = reported(*crowd(400, seed=12), seed=13)
    scenario = exactly_days(1, days=DAYS)
    refuses("indicator must be static", category_people, replace(tallies, kind="daily"), scenario)
    refuses(r"level must be in \(0, 1\), got 1", category_people, tallies, scenario, level=1)
    refuses("must have the 5 days of the tally, got 4", category_people, tallies, exactly_days(1, days=4))
    nobody = replace(tallies, n_reports=0 * tallies.n_reports, counts=0 * tallies.counts)
    refuses("visitors must have reports, got 0 of 400 visitors", category_people, nobody, scenario,
            error=NoReportsError)  # fmt: skip
    refuses("visitors must be 0 or at least 500", category_people, replace(tallies, small_cell=500), scenario,
            error=FewVisitorsError)  # fmt: skip
    noise = geometric_channel(step=Fraction(1))
    refuses(
        r"level must be in \(0, 1\), got 0", noisy_people, tallies.visitors, scenario, noise=noise, level=0
    )
