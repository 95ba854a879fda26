"""Coming, leaving, coming back: true numbers through a channel that never lies, bounds that hold, runs."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldp import (
    NO_ANSWER,
    IndicatorTallies,
    NoReportsError,
    Window,
    all_unions,
    grr_channel,
    tally_visitors,
)
from ldp.errors import FewVisitorsError
from ldp.estimation import movement
from ldp.estimation.overlaps import several_days_bounds
from ldp.estimation.ratios import Limits, difference_low, quadratic_range, ratio_of, share_of
from tests.ldp.estimation.test_windows import SURE, inside, tallies_of
from tests.ldp.exact import refuses

DAYS = 6
populations = st.lists(st.tuples(st.integers(1, 63), st.integers(0, 2)), min_size=1, max_size=60)
windows = st.tuples(st.integers(1, DAYS), st.integers(1, DAYS)).map(lambda pair: Window(*sorted(pair)))
day_pairs = st.sampled_from([(a, b) for a in range(1, DAYS) for b in range(a + 1, DAYS + 1)])


def everyone(people: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray, IndicatorTallies]:
    presence = np.array([bits for bits, _ in people])
    values = np.array([value for _, value in people])
    return presence, values, tallies_of(presence, values, days=DAYS, channel=SURE)


def by_value(values: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    return np.bincount(values[chosen], minlength=3)


def on(presence: np.ndarray, first: int, last: int) -> np.ndarray:
    return inside(presence, Window(first, last))


@given(people=populations, window=windows, until=st.integers(1, DAYS))
@settings(max_examples=40)
def test_visitors_who_leave_are_counted_without_error(people, window, until) -> None:
    presence, values, tallies = everyone(people)
    expected = by_value(values, inside(presence, window))
    assert movement.window_visitors(tallies, window=window).value == pytest.approx(expected, abs=1e-6)
    if until > window.last_day:
        left = inside(presence, window) & ~on(presence, window.last_day + 1, until)
        found = movement.leaving_visitors(tallies, window=window, until=until)
        assert found.is_exact
        assert found.value == pytest.approx(by_value(values, left), abs=1e-6)


@given(people=populations, window=windows)
@settings(max_examples=60)
def test_visitors_of_several_days_of_a_window_lie_between_their_bounds(people, window) -> None:
    presence, _, tallies = everyone(people)
    unions = all_unions(tallies.visitors)
    days = [on(presence, day, day) for day in range(window.first_day, window.last_day + 1)]
    expected = int((np.sum(days, axis=0) > 1).sum())
    least, most = several_days_bounds(unions, window)
    assert least <= expected <= most
    if sum(bool(day.any()) for day in days) <= 2:
        assert least == most
    assert most <= sum(day.sum() for day in days) - inside(presence, window).sum()  # all repeat visits


def test_bounds_of_visitors_of_several_days_are_as_near_as_neighbouring_days_tell() -> None:
    # Of three days: 4 people on all, 3 on the first two, 2 on the last two, 5 on the first and the last.
    bitmaps = [0b111] * 4 + [0b011] * 3 + [0b110] * 2 + [0b101] * 5 + [0b010] * 6
    _, _, tallies = everyone([(bits, 0) for bits in bitmaps])
    unions = all_unions(tallies.visitors)
    assert several_days_bounds(unions, (1, 2)) == (7, 7)
    assert several_days_bounds(unions, (1, 3)) == (12, 18)
    assert several_days_bounds(unions, (3, 3)) == (0, 0)


def test_bounds_of_visitors_of_several_days_are_those_of_all_studies_with_the_same_tallies() -> None:
    """Compare with all studies of four people and four days that have the same tally."""
    days, ranges = 4, [(a, b) for a in range(1, 5) for b in range(a, 5)]
    alike: dict[bytes, tuple[np.ndarray, list[list[int]]]] = {}
    for bitmaps in combinations_with_replacement(range(1, 1 << days), 4):
        presence = np.array(bitmaps)
        tally = np.zeros((days + 1, days + 1), np.int64)
        tally_visitors(presence.astype(np.uint64), tally, sign=1)
        present = presence[:, np.newaxis] >> np.arange(days) & 1
        several = [int((present[:, a - 1 : b].sum(axis=1) > 1).sum()) for a, b in ranges]
        alike.setdefault(tally.tobytes(), (tally, []))[1].append(several)
    assert max(len(studies) for _, studies in alike.values()) > 3
    for tally, studies in alike.values():
        true = list(zip(np.min(studies, axis=0).tolist(), np.max(studies, axis=0).tolist(), strict=True))
        assert [several_days_bounds(all_unions(tally), each) for each in ranges] == true


@given(people=populations, first=windows, second=windows)
@settings(max_examples=40)
def test_visitors_of_both_windows_and_their_share_are_the_true_ones(people, first, second) -> None:
    early, late = sorted((first, second))
    if late.first_day > early.last_day + 1:
        return
    presence, values, tallies = everyone(people)
    both = by_value(values, inside(presence, first) & inside(presence, second))
    all_of_first = by_value(values, inside(presence, first))
    found = movement.shared_visitors(tallies, first=first, second=second)
    assert found.value == pytest.approx(both, abs=1e-6)
    found = movement.shared_share(tallies, first=first, second=second)
    assert found.is_exact
    there = all_of_first > 0
    expected = both[there] / all_of_first[there]
    assert np.all(found.ci_low[there] <= expected + 1e-3)
    assert np.all(found.ci_high[there] >= expected - 1e-3)
    assert found.value[there] == pytest.approx(expected, abs=1e-3)
    assert found.ci_high[there] - found.ci_low[there] == pytest.approx(0, abs=2e-3)


@given(people=populations)
@settings(max_examples=40)
def test_bounds_hold_for_every_pair_of_days_and_meet_for_adjacent_ones(people: list[tuple[int, int]]) -> None:
    presence = np.array([bits for bits, _ in people])
    tally = np.zeros((DAYS + 1, DAYS + 1), np.int64)
    tally_visitors(presence.astype(np.uint64), tally, sign=1)
    least, most = movement.day_pair_bounds(tally)
    for a in range(DAYS + 1):
        for b in range(DAYS + 1):
            if not 1 <= a < b:
                assert least[a, b] == most[a, b] == 0
                continue
            truth = np.count_nonzero(on(presence, a, a) & on(presence, b, b))
            assert 0 <= least[a, b] <= truth <= most[a, b]
            told = [bound[a, b] for bound in movement.day_pair_bounds(tally, small_cell=5)]
            assert 0 <= told[0] <= least[a, b] and most[a, b] <= told[1]
            if b == a + 1:
                assert least[a, b] == most[a, b]
            elif b > a + 1:  # possible differences were seen between
                assert most[a, b] - least[a, b] <= np.count_nonzero(on(presence, a + 1, b - 1))


@given(people=populations, days=day_pairs, small_cell=st.sampled_from([0, 0, 3, 8]))
@settings(max_examples=60)
def test_each_category_lies_within_the_bounds_of_its_pair_of_days(people, days, small_cell) -> None:
    """Also where sharper bounds would reveal few visitors, and are left out."""
    presence, values, tallies = everyone(people)
    a, b = days
    tallies = replace(tallies, small_cell=small_cell)
    try:
        movement.day_pair_share(tallies, days=days)
    except FewVisitorsError:
        assert small_cell
        return
    both = by_value(values, on(presence, a, a) & on(presence, b, b))
    of_early = by_value(values, on(presence, a, a))
    found = movement.day_pair_visitors(tallies, days=days)
    assert found.is_exact == (b == a + 1)
    assert np.all((found.ci_low <= both + 1e-3) & (both - 1e-3 <= found.ci_high))
    share = movement.day_pair_share(tallies, days=days)
    there = of_early > 0
    truth = both[there] / of_early[there]
    assert np.all((share.ci_low[there] <= truth + 1e-3) & (truth - 1e-3 <= share.ci_high[there])), share
    if found.is_exact:
        assert found.value == pytest.approx(both, abs=1e-6)


def test_sharper_side_of_the_bounds_is_taken() -> None:
    """Ten go straight from day 1 to 3, and no one else of either was seen between: it is those ten."""
    presence = np.array([0b101] * 10 + [0b001] * 5 + [0b100] * 7 + [0b010] * 30)
    tallies = tallies_of(presence, np.zeros(52), days=3, channel=SURE)
    least, most = movement.day_pair_bounds(tallies.visitors)
    assert least[1, 3] == most[1, 3] == 10
    found = movement.day_pair_visitors(tallies, days=(1, 3))
    assert (found.ci_low[0], found.ci_high[0]) == pytest.approx((10, 10), abs=1e-3)
    assert np.isnan(found.value).all()
    # All on all days: no one goes straight, and still all are known to be there.
    tallies = tallies_of(np.full(30, 0b111), np.zeros(30), days=3, channel=SURE)
    found = movement.day_pair_visitors(tallies, days=(1, 3))
    assert (found.ci_low[0], found.ci_high[0]) == pytest.approx((30, 30), abs=1e-3)


@given(people=populations)
@settings(max_examples=40)
def test_mean_days_of_a_category_lie_within_their_interval(people: list[tuple[int, int]]) -> None:
    presence, values, tallies = everyone(people)
    days = np.array([int(bits).bit_count() for bits in presence])
    found = movement.mean_days_present(tallies)
    assert not found.is_exact
    for value in set(values.tolist()):
        truth = days[values == value].mean()
        assert found.value[value] == pytest.approx(truth, abs=1e-3)
        assert found.ci_low[value] <= truth + 1e-3
        assert found.ci_high[value] >= truth - 1e-3


def test_variance_of_mean_days_is_not_below_that_of_the_reports() -> None:
    """Half come on one day, half on both: the spread of days is known, so is what the bound must reach."""
    presence = np.array([0b01, 0b11] * 500)
    codes = np.array([0, 0, 1, 1] * 250)
    channel = grr_channel(epsilon=Fraction(2), domain_size=3)
    found = movement.mean_days_present(tallies_of(presence, codes, days=2, channel=channel))
    # two adjacent days: who is on both is known, and (d - 1.5)^2 = 1/4 for all
    p, q = float(channel.p), float(channel.q)
    n_zero = (500 - 1000 * q) / (p - q)
    others, own = q * (1 - q) / (p - q) ** 2, p * (1 - p) / (p - q) ** 2
    half = 1.959964 * np.sqrt(((1000 - n_zero) * others + n_zero * own) / 4) / n_zero
    assert found.value[0] == pytest.approx(1.5)
    assert found.ci_high[0] - 1.5 == pytest.approx(half, rel=0.02)


def test_category_without_visitors_has_no_mean_and_no_limits() -> None:
    presence = np.array([0b01, 0b11] * 50)
    channel = grr_channel(epsilon=Fraction(1), domain_size=3)
    found = movement.mean_days_present(tallies_of(presence, np.zeros(100), days=2, channel=channel))
    assert np.isnan(found.value[2])
    assert (found.ci_low[2], found.ci_high[2]) == (1, 2)


def limits(value: float, low: float, high: float) -> Limits:
    return Limits(np.array([value]), np.array([low]), np.array([high]))


def test_interval_of_a_share_is_where_its_parts_may_balance() -> None:
    found = share_of(limits(30, 24, 40), limits(70, 60, 76))
    assert found.value[0] == pytest.approx(0.3)
    for r, down, up in ((found.ci_low[0], 30 - 24, 76 - 70), (found.ci_high[0], 40 - 30, 70 - 60)):
        assert abs((1 - r) * 30 - r * 70) == pytest.approx(np.hypot((1 - r) * down, r * up))
    assert found.ci_low[0] < 0.3 < found.ci_high[0]
    whole = ratio_of(limits(30, 24, 40), limits(100, 92, 110))
    for r, down, up in ((whole.ci_low[0], 30 - 24, 110 - 100), (whole.ci_high[0], 40 - 30, 100 - 92)):
        assert abs(30 - r * 100) == pytest.approx(np.hypot(down, r * up))
    # The lower limit of a difference adds the squares of what can go wrong.
    assert difference_low(limits(30, 24, 40), limits(10, 5, 18))[0] == pytest.approx(20 - 10)


@pytest.mark.parametrize(
    ("part", "rest", "expected"),
    [
        ((-5, -8, -2), (70, 60, 76), (0, 0)),  # fewer than none, for sure: none
        ((5, -1, 9), (3, -4, 7), (0, 1)),  # both may be none: nothing is known
        ((50, 40, 60), (-9, -12, -3), (1, 1)),
        ((-2, -9, 5), (60, 50, 70), (0, None)),
        ((60, 50, 70), (-2, -9, 5), (None, 1)),
        ((0, 0, 0), (0, 0, 0), (0, 1)),
    ],
)
def test_share_keeps_to_what_is_possible(part, rest, expected) -> None:
    found = share_of(limits(*part), limits(*rest))
    for limit, bound in zip((found.ci_low[0], found.ci_high[0]), expected, strict=True):
        assert 0 < limit < 1 if bound is None else limit == pytest.approx(bound, abs=1e-9)


def test_range_of_a_quadratic_is_clipped_and_whole_where_nothing_is_known() -> None:
    a, b, c = np.array([1.0, 1, 1, -1, 1]), np.array([-5.0, -5, -20, 0, 0]), np.array([6.0, 4, 99, 1, 1])
    low, high = quadratic_range(a, b, c, low=1.5, high=7)
    assert low == pytest.approx([2, 1.5, 1.5, 1.5, 1.5])
    assert high == pytest.approx([3, 4, 7, 7, 7])


def test_what_cannot_be_is_refused() -> None:
    presence, begin, end = np.array([0b001] * 5 + [0b110] * 5), Window(1, 1), Window(3, 3)
    tallies = tallies_of(presence, np.zeros(10), days=3, channel=SURE)
    for until in (2, 4):
        message = rf"until must be in \(2, 3\], got {until}"
        refuses(message, movement.leaving_visitors, tallies, window=Window(1, 2), until=until)
    message = r"windows must overlap or touch, got 1\.\.1 and 3\.\.3"
    refuses(message, movement.shared_visitors, tallies, first=begin, second=end)
    message = "days must be the earlier and the later one, got 2 and 2"
    refuses(message, movement.day_pair_visitors, tallies, days=(2, 2))
    message = r"window must lie within days 1\.\.3, got 4\.\.4"
    refuses(message, movement.day_pair_share, tallies, days=(1, 4))
    refuses(r"level must be in \(0, 1\), got 1.0", movement.mean_days_present, tallies, level=1.0)


CALLS = [
    (movement.leaving_visitors, {"window": Window(1, 1), "until": 3}),
    (movement.shared_visitors, {"first": Window(1, 2), "second": Window(2, 3)}),
    (movement.shared_share, {"first": Window(1, 1), "second": Window(2, 3)}),
    (movement.day_pair_visitors, {"days": (1, 3)}),
    (movement.day_pair_share, {"days": (1, 3)}),
    (movement.mean_days_present, {}),
]


def test_daily_indicators_and_visitors_without_reports_are_told_from_mistakes() -> None:
    daily = tallies_of(np.full(10, 0b111), np.zeros((10, 3)), days=3, channel=SURE)
    presence = np.array([0b001, 0b111, 0b011, 0b101] * 3)
    nobody = tallies_of(np.zeros(0), np.zeros(0), days=3, channel=SURE, population=presence)
    none = "must have reports, got 0 of"
    for function, arguments in CALLS:
        refuses("indicator must be static", function, daily, **arguments)
        refuses(none, function, nobody, error=NoReportsError, **arguments)
    refuses(none, movement.window_visitors, nobody, error=NoReportsError, window=Window(1, 3))


def test_part_without_reports_may_be_anything() -> None:
    """Among 40 visitors of day 1, four are on day 3 too, and no one asked them: from none to all of those."""
    presence = np.array([0b001] * 36 + [0b101] * 4)
    asked = np.where(presence == 0b101, NO_ANSWER, 0)
    tallies = tallies_of(presence, asked, days=3, channel=SURE)
    both = movement.day_pair_visitors(tallies, days=(1, 3))
    assert (both.ci_low[0], both.ci_high[0], both.ci_high[1]) == pytest.approx((0, 4, 4), abs=1e-3)
    share = movement.day_pair_share(tallies, days=(1, 3))
    assert share.ci_low[0] == 0
    assert 0.09 < share.ci_high[0] < 0.12
    back = movement.shared_share(tallies, first=Window(1, 1), second=Window(2, 3))
    assert not back.is_exact
    assert np.isnan(back.value).all()
    assert (back.ci_low[0], back.ci_high[0]) == pytest.approx((share.ci_low[0], share.ci_high[0]))
    # Adjacent days are known to have them in common, and still not their categories.
    tallies = tallies_of(np.where(presence == 0b101, 0b011, 0b001), asked, days=3, channel=SURE)
    assert not movement.day_pair_visitors(tallies, days=(1, 2)).is_exact
    assert not movement.day_pair_share(tallies, days=(1, 2)).is_exact
