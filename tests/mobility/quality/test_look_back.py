"""Files and days beside those before them."""

import pytest

from mobility.quality.deliveries import Delivery
from mobility.quality.look_back import (
    HIGH_FACTOR,
    LEAST_HOUR_ROWS,
    LEAST_USUAL,
    LOW_FACTOR,
    SHARE_FACTOR,
    SHARE_POINTS,
    LookBack,
    SilentHours,
    like_days,
    look_back,
)
from tests.mobility.quality.deliveries_by_hand import calendar, day_hours, delivery, history

BEFORE = (delivery(1, {1: day_hours(100)}), delivery(2, {2: day_hours(100)}))


def compared(new: Delivery, *earlier: Delivery) -> LookBack:
    return look_back(new, history=history(*earlier), calendar=calendar())


def figures(found: LookBack, figure: str) -> list[tuple[int | None, float, float, str]]:
    """Day, value, median and verdict of every comparison of a figure."""
    return [(c.day, c.value, c.usual, c.verdict) for c in found.comparisons if c.figure == figure]


class TestLikeDays:
    @pytest.mark.parametrize(
        ("day", "others", "expected"),
        [
            (15, [1, 8, 9, 14], ([1, 8], "weekday")),
            (15, [8, 9, 14], ([8, 9, 14], "days")),  # one Wednesday alone is not enough
            (8, [15, 1, 2], ([15, 1], "weekday")),  # a later day of the study may have come earlier
            (1, [], ([], "days")),
            (1, [1], ([], "days")),
        ],
    )
    def test_two_of_the_same_weekday_are_enough(
        self, day: int, others: list[int], expected: tuple[list[int], str]
    ) -> None:
        assert like_days(day, others, calendar(days=15)) == expected


class TestRows:
    def test_a_day_is_compared_with_the_median_of_the_days_before(self) -> None:
        before = [delivery(day, {day: day_hours(rows)}) for day, rows in ((1, 100), (2, 120), (3, 900))]
        found = compared(delivery(4, {4: day_hours(110)}), *before)
        assert figures(found, "rows") == [(4, 440, 480, "usual")]
        assert [(c.n, c.basis) for c in found.comparisons if c.figure == "rows"] == [(3, "days")]

    def test_only_the_same_weekday_counts_where_there_are_two(self) -> None:
        weeks = [delivery(day, {day: day_hours(100 if day in (1, 8) else 10)}) for day in range(1, 15)]
        found = look_back(
            delivery(15, {15: day_hours(100)}), history=history(*weeks), calendar=calendar(days=15)
        )
        assert [(c.usual, c.n, c.basis) for c in found.comparisons if c.figure == "rows"] == [
            (400, 2, "weekday")
        ]

    @pytest.mark.parametrize(
        ("rows", "verdict"), [(49, "low"), (50, "usual"), (200, "usual"), (201, "high"), (0, "low")]
    )
    def test_bounds_belong_to_what_is_usual(self, rows: int, verdict: str) -> None:
        assert (LOW_FACTOR, HIGH_FACTOR) == (0.5, 2.0)
        one_hour = [rows if hour == 8 else 0 for hour in range(24)]
        usual = [100 if hour == 8 else 0 for hour in range(24)]
        found = compared(delivery(2, {2: one_hour}), delivery(1, {1: usual}))
        assert figures(found, "rows") == [(2, rows, 100, verdict)]

    def test_few_rows_are_not_judged(self) -> None:
        usual = [LEAST_USUAL - 1 if hour == 8 else 0 for hour in range(24)]
        found = compared(delivery(2, {2: day_hours(500)}), delivery(1, {1: usual}))
        assert figures(found, "rows") == [(2, 2000, LEAST_USUAL - 1, "few")]
        assert found.n_warnings == 0

    def test_earlier_days_of_the_same_file_count(self) -> None:
        found = compared(delivery(1, {1: day_hours(100), 2: day_hours(100), 3: day_hours(10)}))
        assert figures(found, "rows") == [(2, 400, 400, "usual"), (3, 40, 400, "low")]

    def test_files_of_one_day_add_up(self) -> None:
        halves = [delivery(1, {1: day_hours(100)}), delivery(2, {2: day_hours(50)}, more_to_come=True)]
        found = compared(delivery(3, {2: day_hours(50)}), *halves)
        assert figures(found, "rows") == [(2, 400, 400, "usual")]

    def test_days_wait_for_their_last_file(self) -> None:
        before = delivery(1, {1: day_hours(100)})
        found = compared(delivery(2, {2: day_hours(1, silent=(9,))}, more_to_come=True), before)
        assert found.days_wait
        assert figures(found, "rows") == []
        assert found.silent == ()

    def test_a_day_that_waits_for_files_is_no_measure(self) -> None:
        waiting = delivery(1, {1: day_hours(1000)}, more_to_come=True)
        assert figures(compared(delivery(2, {2: day_hours(100)}), waiting), "rows") == []

    def test_other_sources_failed_files_and_undone_days_are_no_measure(self) -> None:
        before = [
            delivery(1, {1: day_hours(900)}, source="roaming"),
            delivery(2, {2: day_hours(900)}, failure="refused"),
            delivery(3, {3: day_hours(900)}),
            delivery(4, {4: day_hours(100)}),
        ]
        found = look_back(
            delivery(9, {5: day_hours(100)}), history=history(*before, undone={3: [5]}), calendar=calendar()
        )
        assert figures(found, "rows") == [(5, 400, 400, "usual")]

    def test_a_day_that_came_again_after_it_was_undone_counts_once(self) -> None:
        before = [delivery(1, {1: day_hours(900)}), delivery(3, {1: day_hours(100)})]
        found = look_back(
            delivery(4, {2: day_hours(100)}), history=history(*before, undone={1: [2]}), calendar=calendar()
        )
        assert figures(found, "rows") == [(2, 400, 400, "usual")]


class TestSubscribers:
    def test_days_of_one_file_are_compared(self) -> None:
        before = delivery(1, {1: day_hours(100)}, day_subscribers={"1": 50})
        found = compared(delivery(2, {2: day_hours(100)}, day_subscribers={"2": 20}), before)
        assert figures(found, "subscribers") == [(2, 20, 50, "low")]

    def test_those_of_several_files_do_not_add_up(self) -> None:
        before = [
            delivery(1, {1: day_hours(100)}, day_subscribers={"1": 50}),
            delivery(2, {1: day_hours(100)}, day_subscribers={"1": 50}),
        ]
        found = compared(delivery(3, {2: day_hours(100)}, day_subscribers={"2": 20}), *before)
        assert figures(found, "subscribers") == []


class TestShares:
    def test_rejected_rows_are_compared_with_earlier_files(self) -> None:
        before = [delivery(at, {at: day_hours(100)}, rejected=4) for at in (1, 2)]
        found = compared(delivery(3, {3: day_hours(100)}, rejected=100), *before)
        assert figures(found, "rejected") == [(None, 0.2, 4 / 404, "high")]

    @pytest.mark.parametrize(
        ("usual", "now", "verdict"),
        [(100, 200, "usual"), (100, 201, "high"), (0, 10, "usual"), (0, 11, "high"), (5, 14, "usual"),
         (500, 0, "usual")],
    )  # fmt: skip
    def test_it_takes_both_a_factor_and_a_difference(self, usual: int, now: int, verdict: str) -> None:
        """Of 1,000 rows each."""
        assert (SHARE_FACTOR, SHARE_POINTS) == (2.0, 0.01)
        rows = [1000 if hour == 8 else 0 for hour in range(24)]
        found = compared(
            delivery(2, {2: rows}, empty={"age": now}), delivery(1, {1: rows}, empty={"age": usual})
        )
        assert figures(found, "empty") == [(None, now / 1000, usual / 1000, verdict)]

    def test_a_column_that_earlier_files_did_not_have_is_not_compared(self) -> None:
        before = delivery(1, {1: day_hours(100)}, empty={"age": 0})
        found = compared(delivery(2, {2: day_hours(100)}, empty={"age": 0, "gender": 400}), before)
        assert [c.column for c in found.comparisons if c.figure == "empty"] == ["age"]

    def test_they_are_compared_though_days_wait(self) -> None:
        before = delivery(1, {1: day_hours(100)})
        found = compared(delivery(2, {2: day_hours(100)}, rejected=100, more_to_come=True), before)
        assert figures(found, "rejected") == [(None, 0.2, 0, "high")]

    def test_failed_files_are_no_measure(self) -> None:
        refused = delivery(1, {1: day_hours(100)}, rejected=400, failure="refused")
        good = delivery(2, {1: day_hours(100)})
        found = compared(delivery(3, {3: day_hours(100)}, rejected=100), refused, good)
        assert figures(found, "rejected") == [(None, 0.2, 0, "high")]

    def test_the_first_file_has_nothing_beside_it(self) -> None:
        assert compared(delivery(1, {1: day_hours(100)}, empty={"age": 10})).comparisons == ()

    def test_a_file_without_rows_has_no_shares(self) -> None:
        assert compared(delivery(2), delivery(1, {1: day_hours(100)})).comparisons == ()


class TestSilence:
    def test_hours_in_a_row_are_one_silence(self) -> None:
        found = compared(delivery(3, {3: day_hours(100, silent=(9, 10))}), *BEFORE)
        assert found.silent == (SilentHours(day=3, begin=9, end=11, usual=200),)
        assert found.n_warnings == 1

    def test_hours_apart_are_two(self) -> None:
        found = compared(delivery(3, {3: day_hours(100, silent=(8, 10))}), *BEFORE)
        assert [(s.begin, s.end) for s in found.silent] == [(8, 9), (10, 11)]

    def test_one_row_breaks_a_silence(self) -> None:
        hours = day_hours(100, silent=(9,))
        hours[9] = 1
        assert compared(delivery(3, {3: hours}), *BEFORE).silent == ()

    @pytest.mark.parametrize(("rows", "n"), [(LEAST_HOUR_ROWS - 1, 0), (LEAST_HOUR_ROWS, 1)])
    def test_an_hour_with_few_rows_may_be_empty_by_chance(self, rows: int, n: int) -> None:
        usual = day_hours(100)
        usual[9] = rows
        found = compared(delivery(3, {3: day_hours(100, silent=(9,))}), delivery(1, {1: usual, 2: usual}))
        assert len(found.silent) == n

    def test_only_visitor_hours_count(self) -> None:
        usual = day_hours(100)
        usual[3] = 100
        assert compared(delivery(3, {3: day_hours(100)}), delivery(1, {1: usual, 2: usual})).silent == ()

    @pytest.mark.parametrize(
        ("silent_before", "n"),
        [((), 1), ((1,), 1), ((1, 2), 0)],
        ids=["none", "one of three", "two of three"],
    )
    def test_it_is_the_median_that_is_usual(self, silent_before: tuple[int, ...], n: int) -> None:
        before = [
            delivery(at, {at: day_hours(100, silent=(9,) if at in silent_before else ())}) for at in (1, 2, 3)
        ]
        assert len(compared(delivery(4, {4: day_hours(100, silent=(9,))}), *before).silent) == n

    def test_of_two_days_both_must_have_rows(self) -> None:
        before = [delivery(1, {1: day_hours(100)}), delivery(2, {2: day_hours(100, silent=(9,))})]
        assert compared(delivery(3, {3: day_hours(100, silent=(9,))}), *before).silent == ()

    def test_one_day_alone_says_nothing(self) -> None:
        assert compared(delivery(3, {3: day_hours(100, silent=(9,))}), BEFORE[0]).silent == ()
