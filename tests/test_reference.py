"""The reference itself, on rows whose outcome is written down by hand."""

from datetime import date, time
from zoneinfo import ZoneInfo

import pytest

from tests.reference import Study, read_extract

STUDY = Study(
    timezone=ZoneInfo("Europe/Paris"), first_day=date(2017, 3, 25), days=2,  # clocks go forward on day 2
    open_from=time(6), open_to=time(23, 59), min_minutes=60, subscriber="who", timestamp="when",
    cell="where", cells=frozenset({"c1", "c2"}), static={"gender": ("gender", ["F", "M"])},
)  # fmt: skip


def read(tmp_path, *lines, study=STUDY):
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(["who,when,where,gender", *lines, ""]), encoding="utf-8")
    return read_extract([path], study)


@pytest.mark.parametrize(
    ("line", "what", "reason"),
    [
        (",2017-02-30T10:00:00,", "rejected", "wrong_columns"),
        (" ,2017-02-30T10:00:00,,X", "rejected", "empty_subscriber"),
        ("a,2017-02-30T10:00:00,,X", "rejected", "bad_timestamp"),
        ("a,2017-03-26T02:30:00,,X", "rejected", "nonexistent_time"),
        ("a,2017-03-25T10:00:00,,X", "rejected", "empty_cell"),
        ("a,2017-03-25T10:00:00,c9,X", "rejected", "unknown_value"),
        ("a,2017-03-27T01:00:00,c9,F", "ignored", "outside_period"),
        ("a,2017-03-24T22:59:59Z,c9,F", "ignored", "outside_period"),  # 23:59:59 of the day before
        ("a,2017-03-25T01:00:00,c9,F", "ignored", "outside_area"),
        ("a,2017-03-25T05:59:59,c1,F", "ignored", "outside_hours"),
    ],
)
def test_first_reason_to_reject_or_to_ignore_wins(tmp_path, line, what, reason):
    extract = read(tmp_path, line)
    assert dict(extract["rejected"] + extract["ignored"]) == dict(extract[what]) == {reason: 1}
    assert (extract["rows_read"], extract["accepted"]) == (1, 0)


def test_same_instant_and_cell_is_a_duplicate_however_it_is_written(tmp_path):
    extract = read(
        tmp_path,
        "a,2017-03-25T10:00:00,c1,F",
        "a,2017-03-25T10:00:00.7+01:00,c1,M",
        "",
        "a,2017-03-25T10:00:00,c2,F",
        "b,2017-03-25T10:00:00,c1,F",
    )
    assert (extract["rows_read"], extract["accepted"], dict(extract["ignored"])) == (4, 3, {"duplicate": 1})


def test_presence_begins_at_the_least_length_and_its_earliest_event_gives_the_value(tmp_path):
    extract = read(
        tmp_path,
        "short,2017-03-25T10:00:00,c1,F",
        "short,2017-03-25T10:59:59,c1,F",
        "visit,2017-03-25T10:00:00,c1,F",
        "visit,2017-03-25T11:00:00,c2,F",
        "whole,2017-03-26T06:00:00,c1,M",
        "whole,2017-03-26T23:59:59,c1,M",
        "ten,2017-03-26T06:00:00,c1,",
        "ten,2017-03-26T16:00:00,c1,",
    )
    assert extract["presence"] == {"visit": {1}, "whole": {2}, "ten": {2}}
    assert extract["duration"] == {
        ("visit", 1): "Duration 2h",
        ("whole", 2): "Duration 10h-18h",
        ("ten", 2): "Duration 10h-18h",
    }
    assert extract["static"] == {"visit": {"gender": "F"}, "whole": {"gender": "M"}, "ten": {}}
    extract = read(
        tmp_path,
        "a,2017-03-25T09:00:00,c1,M",  # day 1 is too short
        "a,2017-03-26T09:00:00,c1,",
        "a,2017-03-26T09:30:00,c2,M",
        "a,2017-03-26T09:30:00,c1,F",
        "a,2017-03-26T11:00:00,c1,M",
    )
    assert extract["static"] == {"a": {"gender": "F"}}


def test_a_length_is_counted_in_utc_and_a_repeated_hour_is_the_first(tmp_path):
    autumn = Study(
        **{name: getattr(STUDY, name) for name in STUDY.__slots__}
        | {"first_day": date(2017, 10, 29), "open_from": time(0)}
    )
    extract = read(
        tmp_path,
        "over,2017-10-29T01:30:00,c1,F",
        "over,2017-10-29T03:00:00,c1,F",
        "fold,2017-10-29T01:30:00,c1,F",
        "fold,2017-10-29T02:15:00,c1,F",  # 45 min: the first of the two
        study=autumn,
    )
    assert extract["duration"] == {("over", 1): "Duration 3h"}  # 2 h 30 min, not 1 h 30 min
