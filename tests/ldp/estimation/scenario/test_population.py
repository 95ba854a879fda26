"""Synthetic people: every union exactly, attributes as near as whole people can be, nothing else."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings

from ldp import (
    KeyedStream,
    all_unions,
    error_rate,
    flows_of,
    people_tally,
    projected_flows,
    shown_flows,
    synthetic_daily,
    synthetic_presence,
    synthetic_static,
    whole_flows,
)
from ldp.errors import FewVisitorsError
from ldp.estimation.scenario.flows import Flows, with_departures
from tests.ldp.estimation.scenario.people import crowds, fimu, tally_of
from tests.ldp.exact import refuses


def stream(name: bytes = b"population tests") -> KeyedStream:
    return KeyedStream(name)


def tally_of_bits(presence: np.ndarray, *, days: int, codes: np.ndarray | None = None) -> np.ndarray:
    """Gap tally of bitmaps, by code if there are any: of a person, or of a person and day."""
    n = 1 if codes is None else int(codes.max()) + 1
    tally, previous = np.zeros((n, days + 1, days + 1), np.int64), np.zeros(presence.size, int)
    for day in range(1, days + 1):
        rows = np.flatnonzero(presence >> np.uint64(day - 1) & np.uint64(1))
        of_rows = np.zeros(rows.size, int) if codes is None else codes[rows]
        np.add.at(tally, (of_rows if of_rows.ndim == 1 else of_rows[:, day - 1], previous[rows], day), 1)
        previous[rows] = day
    return tally[0] if codes is None else tally


def crowd_of_62_days() -> np.ndarray:
    """38,000 people, about 344,000 person-days."""
    draws = stream(b"sixty-two days..").words(38_000 * 62).reshape(62, -1) / 2.0**64
    keen = 0.02 + 0.25 * draws[0] ** 1.05
    bits = sum((draws[day] < keen).astype(np.uint64) << np.uint64(day) for day in range(62))
    return np.asarray(bits[bits > 0], np.uint64)


@given(people=crowds(6))
@settings(max_examples=20, deadline=None)
def test_every_union_of_the_synthetic_people_is_that_of_the_true_ones(people):
    tally = tally_of(people, days=6)
    presence = synthetic_presence(flows_of(tally), stream=stream())
    assert (tally_of_bits(presence, days=6) == tally).all()
    assert presence.all()


def test_88_935_people_of_fimu_and_62_days_agree_exactly():
    presence = synthetic_presence(flows_of(tally_of(fimu(), days=7)), stream=stream())
    assert presence.size == 88_935
    assert (tally_of_bits(presence, days=7) == tally_of(fimu(), days=7)).all()
    true = tally_of_bits(crowd_of_62_days(), days=62)
    assert 300_000 < true.sum() < 400_000
    presence = synthetic_presence(flows_of(true), stream=stream())
    assert (tally_of_bits(presence, days=62) == true).all()


def test_people_are_the_same_for_a_key_and_the_patterns_others_than_the_true_ones():
    flows = flows_of(tally_of(fimu(), days=7))
    first, again, other = (
        synthetic_presence(flows, stream=stream(key)) for key in (b"a" * 16, b"a" * 16, b"b" * 16)
    )
    assert (first == again).all()
    assert (first != other).any()
    all_week = Counter(first.tolist())[0b1111111]
    assert abs(all_week - 280) < 6 * 280**0.5  # as the Markov chain expects; the truth is 176


def test_attributes_that_stay_agree_with_exact_targets_within_a_few_persons_of_a_thousand():
    presence = synthetic_presence(flows_of(tally_of(fimu(), days=7)), stream=stream())
    uniform = stream(b"attributes......").words(presence.size) / 2.0**64
    days = np.bitwise_count(presence)
    first = np.log2((presence & (~presence + np.uint64(1))).astype(float))
    codes = np.select([uniform < 0.003, uniform < 0.1 + 0.1 * first, uniform < 0.2 + 0.12 * days], [3, 1, 2])
    true = tally_of_bits(presence, days=7, codes=codes)
    other = synthetic_presence(flows_of(tally_of(fimu(), days=7)), stream=stream(b"other people...."))
    made = synthetic_static(other, with_departures(true).astype(float), stream=stream())
    tallied = all_unions(tally_of_bits(other, days=7, codes=made))
    assert error_rate(tallied, all_unions(true)) < 2e-4
    assert np.abs(tallied - all_unions(true)).max() <= 25
    alike = synthetic_static(other, np.ones((4, 9, 9)), stream=stream())
    assert np.bincount(alike) == pytest.approx(np.full(4, 88_935 / 4), abs=2)


def test_daily_values_agree_on_each_day_by_day_before_and_are_absent_elsewhere():
    presence = synthetic_presence(flows_of(tally_of(fimu(), days=7)), stream=stream())
    draws = stream(b"daily values....").words(presence.size * 7).reshape(-1, 7) / 2.0**64
    codes = (draws < 0.1 * np.arange(1, 8)).astype(np.int32) + (draws < 0.05)
    true = tally_of_bits(presence, days=7, codes=codes)
    made = synthetic_daily(presence, with_departures(true).astype(float), stream=stream())
    is_there = presence[:, np.newaxis] >> np.arange(7, dtype=np.uint64) & np.uint64(1)
    assert ((made >= 0) == is_there).all()
    tallied = tally_of_bits(presence, days=7, codes=made)
    assert error_rate(all_unions(tallied), all_unions(true)) < 5e-4
    assert np.abs(tallied - true).max() <= 3


def test_noisy_flows_become_whole_people_who_are_near_them():
    tally = tally_of(fimu(), days=7)
    noise = np.triu(np.random.default_rng(5).integers(-60, 61, tally.shape), 1)
    flows = projected_flows(tally + noise)
    refuses("use whole_flows", synthetic_presence, flows, stream=stream())
    presence = synthetic_presence(whole_flows(flows), stream=stream())
    assert np.abs(tally_of_bits(presence, days=7) - flows.tally).max() <= 4
    assert whole_flows(Flows(np.zeros((4, 4)))).total == 0


def test_error_rate_is_the_sum_of_errors_over_the_sum_of_what_is_published():
    assert error_rate(np.array([[2_319, 10]]), np.array([[2_312, 13]])) == pytest.approx(10 / 2_325)
    refuses("published numbers must add up to more than 0, got 0", error_rate, np.ones(2), np.zeros(2))


def test_targets_of_another_shape_or_below_zero_are_refused():
    presence = np.array([0b101, 0b1], np.uint64)
    for make in (synthetic_static, synthetic_daily):
        for message, targets in (
            (r"shape \(categories, days \+ 2, days \+ 2\)", np.ones((3, 4))),
            ("at least 0; use edge_targets for estimates", -np.ones((3, 5, 5))),
            ("at least 0; use edge_targets for estimates", np.full((3, 5, 5), np.nan)),
            (r"presence must be on days 1\.\.2 of the targets", np.ones((3, 4, 4))),
        ):
            refuses(message, make, presence, targets, stream=stream())


@given(people=crowds(5))
@settings(max_examples=20, deadline=None)
def test_tally_of_people_is_that_of_one_after_the_other(people):
    presence = synthetic_presence(flows_of(tally_of(people, days=5)), stream=stream())
    assert (people_tally(presence, days=5)[0] == tally_of(people, days=5)).all()
    codes = stream(b"codes of people.").uniform_int(presence.size * 5, 0, 3).reshape(-1, 5).astype(np.int32)
    for of_people in (codes, codes[:, 0]):
        expected = tally_of_bits(presence, days=5, codes=of_people)
        tally = people_tally(presence, of_people, days=5, n_codes=4)
        assert (tally[: len(expected)] == expected).all()
        assert not tally[len(expected) :].any()


@given(people=crowds(6))
@settings(max_examples=30, deadline=None)
def test_shown_unions_agree_exactly_and_hidden_ones_stay_hidden(people):
    """The limit is half of the visitors, so that a few windows or nearly all are hidden."""
    tally = tally_of(people, days=6)
    small_cell = 1 + int(tally[0].sum()) // 2
    unions = all_unions(tally)
    is_hidden = (unions > 0) & (unions < small_cell)
    flows = shown_flows(tally, small_cell=small_cell)
    made = all_unions(flows.tally)
    assert (made[~is_hidden] == unions[~is_hidden]).all()
    assert ((made > 0) & (made < small_cell))[is_hidden].all()
    assert (people_tally(synthetic_presence(flows, stream=stream()), days=6)[0] == flows.tally).all()


def test_hidden_people_could_be_any_who_fit():
    """Days 2 and 3 are hidden. Whether people of days 1 and 4 were there, too, changes no shown union."""
    busy = {(1, 4): 60, (1,): 100, (4,): 80, (4, 5): 50, (1, 5): 50}
    busy |= {(1, 3): 2, (2, 4): 2, (2, 5): 1, (2, 3): 2}
    moved = [busy, busy | {(1, 4): 58, (1, 2, 4): 1, (1, 3, 4): 1}]
    tallies = [tally_of(people, days=5) for people in moved]
    assert (tallies[0] != tallies[1]).any()
    made = [shown_flows(tally, small_cell=10).edges for tally in tallies]
    assert (made[0] == made[1]).all()
    assert (shown_flows(tallies[0], small_cell=0).edges == flows_of(tallies[0]).edges).all()
    with pytest.raises(FewVisitorsError, match="at least 1000, got fewer"):
        shown_flows(tallies[0], small_cell=1000)
