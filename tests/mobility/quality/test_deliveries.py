"""The history of files and undone days."""

from datetime import timedelta

from mobility.quality.deliveries import total_hours
from tests.mobility.quality.deliveries_by_hand import START, day_hours, delivery, history

FULL = day_hours(100)


def test_what_was_there_before_a_moment_is_strictly_earlier() -> None:
    files = [delivery(at, {1: FULL}) for at in (1, 2, 3)]
    found = history(*files, undone={1: [1, 2, 3]}).before(START + timedelta(hours=2))
    assert found.deliveries == (files[0],)
    assert dict(found.undone) == {1: (START + timedelta(hours=1),)}


def test_the_last_time_that_a_day_was_undone_counts() -> None:
    files = [delivery(at, {1: FULL, 2: FULL}) for at in (1, 3, 5)]
    found = history(*files, undone={1: [2, 4]})
    assert found.taken_in(1) == [files[2]]
    assert found.taken_in(2) == files


def test_failed_files_are_known_but_not_taken_in() -> None:
    good, bad = delivery(1, {1: FULL}), delivery(2, {1: FULL}, failure="refused")
    found = history(good, bad)
    assert found.since_undone(1) == [good, bad]
    assert found.latest(1) == bad
    assert found.taken_in(1) == [good]
    assert found.latest(2) is None


def test_hours_of_files_add_up() -> None:
    files = [delivery(1, {1: day_hours(100)}), delivery(2, {1: day_hours(20, silent=(9,)), 2: FULL})]
    assert total_hours(files, 1)[8:12] == (120, 100, 120, 120)
    assert total_hours([], 1) == (0,) * 24


def test_a_row_without_all_its_columns_has_no_empty_values() -> None:
    row = {
        "pk": START, "profile": "default", "filename": "a", "state": "done", "failure": "",
        "more_to_come": False, "finished_at": START, "days_touched": [], "rows_read": 100, "checks": {},
        "rows_rejected": {"wrong_columns": 1, "bad_text": 2, "bad_timestamp": 4},
        "rows_ignored": {"opted_out": 8, "outside_hours": 16},
    }  # fmt: skip
    found = type(delivery(1)).of(row)
    assert found.rows_formed == 100 - 1 - 2 - 8
    assert found.rows_rejected == 7
