"""The calendar of days and sources."""

from datetime import date

from mobility.quality.coverage import Coverage, DayCoverage, DayStatus, cover
from mobility.quality.deliveries import History
from tests.mobility.quality.deliveries_by_hand import calendar, day_hours, delivery, history

AFTERWARDS = date(2024, 7, 1)
FULL = day_hours(100)


def covered(
    found: History, *, days: int = 3, closed: frozenset[int] = frozenset(), today: date = AFTERWARDS,
    sources: tuple[str, ...] = ("default",),
) -> Coverage:  # fmt: skip
    return cover(found, calendar=calendar(days), sources=sources, closed=closed, today=today)


def statuses(coverage: Coverage, source: int = 0) -> list[str]:
    return [day.status.value for day in coverage.sources[source].days]


def day_of(coverage: Coverage, day: int) -> DayCoverage:
    return coverage.sources[0].days[day - 1]


def test_a_day_with_rows_is_complete_and_one_without_is_missing() -> None:
    found = covered(history(delivery(1, {1: FULL}), delivery(2, {3: FULL})))
    assert statuses(found) == ["complete", "missing", "complete"]
    assert (day_of(found, 1).rows, day_of(found, 1).files) == (400, 1)
    assert found.sources[0].count(DayStatus.COMPLETE) == 2
    assert found.unattributed == ()


def test_a_day_is_missing_only_when_it_is_over() -> None:
    assert statuses(covered(history(), today=date(2024, 5, 2))) == ["missing", "not_due", "not_due"]


def test_each_source_has_days_of_its_own() -> None:
    found = covered(
        history(delivery(1, {1: FULL}), delivery(2, {2: FULL}, source="roaming")),
        sources=("default", "roaming"),
    )
    assert [source.source for source in found.sources] == ["default", "roaming"]
    assert statuses(found, 0) == ["complete", "missing", "missing"]
    assert statuses(found, 1) == ["missing", "complete", "missing"]


class TestPartial:
    def test_announced_files_make_a_day_partial_until_the_last_one(self) -> None:
        first = delivery(1, {1: FULL}, more_to_come=True)
        found = covered(history(first))
        assert statuses(found)[0] == "partial"
        assert day_of(found, 1).more_to_come
        complete = covered(history(first, delivery(2, {1: FULL})))
        assert statuses(complete)[0] == "complete"
        assert (day_of(complete, 1).rows, day_of(complete, 1).files) == (800, 2)

    def test_a_closed_day_waits_for_nothing(self) -> None:
        found = covered(history(delivery(1, {1: FULL}, more_to_come=True)), closed=frozenset([1]))
        assert statuses(found)[0] == "complete"

    def test_hours_without_rows_make_a_day_partial(self) -> None:
        found = covered(history(delivery(1, {1: day_hours(100, silent=(9,)), 2: FULL, 3: FULL})))
        assert statuses(found) == ["partial", "complete", "complete"]
        assert [(hours.begin, hours.end) for hours in day_of(found, 1).silent] == [(9, 10)]

    def test_a_day_that_waits_is_no_measure_of_others(self) -> None:
        waiting = delivery(1, {1: FULL}, more_to_come=True)
        found = covered(history(waiting, delivery(2, {2: day_hours(100, silent=(9,)), 3: FULL})))
        assert statuses(found) == ["partial", "complete", "complete"]


class TestFailed:
    def test_the_last_file_of_a_day_decides(self) -> None:
        good, bad = delivery(1, {1: FULL}), delivery(2, {1: FULL}, failure="refused: too many")
        failed = covered(history(good, bad))
        assert statuses(failed)[0] == "failed"
        assert day_of(failed, 1).failed == bad
        assert day_of(failed, 1).files == 1
        assert failed.unattributed == ()
        repaired = covered(history(bad, delivery(3, {1: FULL})))
        assert statuses(repaired)[0] == "complete"
        assert day_of(repaired, 1).failed is None

    def test_a_file_without_days_is_named_apart(self) -> None:
        broken = delivery(1, filename="may.csv", failure="truncated")
        found = covered(history(broken))
        assert statuses(found) == ["missing"] * 3
        assert found.unattributed == (broken,)

    def test_until_it_has_come_under_the_same_name(self) -> None:
        broken = delivery(1, filename="may.csv", failure="truncated")
        others = [delivery(2, {1: FULL}, filename="june.csv"),
                  delivery(3, {1: FULL}, filename="may.csv", source="roaming")]  # fmt: skip
        assert covered(history(broken, *others)).unattributed == (broken,)
        again = delivery(4, {1: FULL}, filename="may.csv")
        assert covered(history(broken, *others, again)).unattributed == ()

    def test_the_newest_stands_first_and_each_name_once(self) -> None:
        files = [delivery(at, filename=name, failure="no") for at, name in enumerate("aba", start=1)]
        assert covered(history(*files)).unattributed == (files[2], files[1])


class TestUndone:
    def test_a_day_that_was_taken_back_says_so(self) -> None:
        found = covered(history(delivery(1, {1: FULL, 2: FULL}), undone={1: [2], 3: [2]}))
        assert statuses(found) == ["undone", "complete", "missing"]
        assert day_of(found, 1).files == 0

    def test_until_rows_come_again(self) -> None:
        found = covered(history(delivery(1, {1: FULL}), delivery(3, {1: FULL}), undone={1: [2]}))
        assert statuses(found)[0] == "complete"
        assert (day_of(found, 1).rows, day_of(found, 1).files) == (400, 1)

    def test_a_failed_file_does_not_make_it_undone(self) -> None:
        found = covered(history(delivery(1, {1: FULL}, failure="refused"), undone={1: [2]}))
        assert statuses(found)[0] == "missing"
