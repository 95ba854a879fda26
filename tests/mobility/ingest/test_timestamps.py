"""Timestamps against datetime and zoneinfo: around every kind of change of the clocks, and on any text."""

import re
from datetime import UTC, date, datetime, timedelta, timezone
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mobility.ingest.timestamps import (
    BAD,
    NONEXISTENT,
    OUTSIDE_PERIOD,
    VALID,
    EventTimes,
    StudyClock,
    event_times,
    study_clock,
)
from tests.mobility.ingest.small_extract import texts_of

MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86_400


class Period(NamedTuple):
    """A study, and the local time around which its clocks change."""

    zone: str
    first_day: date
    days: int
    change: datetime


PERIODS = [
    Period("Europe/Paris", date(2017, 3, 25), 3, datetime(2017, 3, 26, 2)),
    Period("Europe/Paris", date(2017, 10, 28), 3, datetime(2017, 10, 29, 3)),
    Period("America/Sao_Paulo", date(2017, 10, 14), 3, datetime(2017, 10, 15)),  # midnight does not exist
    Period("America/Sao_Paulo", date(2018, 2, 16), 3, datetime(2018, 2, 18)),  # 23:00 to midnight twice
    Period("America/Sao_Paulo", date(2018, 2, 18), 1, datetime(2018, 2, 18)),  # on the edge of the study
    Period("America/St_Johns", date(2006, 4, 1), 2, datetime(2006, 4, 2, 0, 1)),  # not on the hour
    Period("Asia/Kathmandu", date(1985, 12, 31), 2, datetime(1986, 1, 1)),  # by a quarter of an hour
    Period("Asia/Kathmandu", date(2017, 5, 31), 7, datetime(2017, 6, 3)),
    Period("Australia/Lord_Howe", date(2017, 9, 30), 3, datetime(2017, 10, 1, 2)),  # by half an hour
    Period("Australia/Lord_Howe", date(2017, 4, 1), 3, datetime(2017, 4, 2, 2)),
    Period("Pacific/Apia", date(2011, 12, 29), 3, datetime(2011, 12, 30)),  # a whole day does not exist
    Period("Pacific/Kiritimati", date(2017, 5, 31), 2, datetime(2017, 6, 1)),  # UTC+14
    Period("Africa/Casablanca", date(2017, 5, 15), 62, datetime(2017, 7, 2, 2)),  # two changes
    Period("UTC", date(2017, 5, 31), 7, datetime(2017, 6, 3)),
]
CLOCKS = {
    period: study_clock(period.zone, first_day=period.first_day, days=period.days) for period in PERIODS
}
PARIS = Period("Europe/Paris", date(2017, 5, 31), 7, datetime(2017, 6, 3))
PARIS_CLOCK = study_clock(PARIS.zone, first_day=PARIS.first_day, days=PARIS.days)


def read(texts: list[bytes], clock: StudyClock) -> EventTimes:
    return event_times(texts_of(texts), clock=clock)


def one(text: str, clock: StudyClock = PARIS_CLOCK) -> tuple[int, int, int, int]:
    """Outcome, UTC second since 1970, day, minute."""
    times = read([text.encode()], clock)
    return (
        int(times.outcome[0]),
        int(times.utc[0]),
        int(times.day[0]),
        int(times.minute[0]),
    )


def expected(stated: datetime, period: Period) -> tuple[int, ...]:
    """What a stated time is, by datetime and zoneinfo: (outcome,), or (VALID, UTC second, day, minute)."""
    zone = ZoneInfo(period.zone)
    if stated.tzinfo is None:
        instant = stated.replace(tzinfo=zone, fold=0).astimezone(UTC)
        if instant.astimezone(zone).replace(tzinfo=None) != stated:
            return (NONEXISTENT,)
    else:
        instant = stated.astimezone(UTC)
    local = instant.astimezone(zone)
    day = (local.date() - period.first_day).days + 1
    if not 1 <= day <= period.days:
        return (OUTSIDE_PERIOD,)
    return VALID, int(instant.timestamp()), day, local.hour * 60 + local.minute


def check(stated: list[datetime], texts: list[bytes], period: Period) -> None:
    clock = CLOCKS[period]
    times = read(texts, clock)
    for i, (when, text) in enumerate(zip(stated, texts, strict=True)):
        wanted = expected(when, period)
        found = (
            int(times.outcome[i]),
            int(times.utc[i]),
            int(times.day[i]),
            int(times.minute[i]),
        )
        assert found[: len(wanted)] == wanted, text


@pytest.mark.parametrize("period", PERIODS, ids=lambda period: f"{period.zone}-{period.first_day}")
def test_local_times_around_a_change(period: Period) -> None:
    minutes = [period.change + timedelta(minutes=m) for m in range(-26 * 60, 26 * 60)]
    seconds = [
        period.change + timedelta(hours=h, seconds=s)
        for h in (-24, -1, -0.5, -0.25, 0, 0.25, 0.5, 1, 24)
        for s in range(-2, 3)
    ]
    stated = minutes + seconds
    check(stated, [when.isoformat().encode() for when in stated], period)


@pytest.mark.parametrize("period", PERIODS, ids=lambda period: f"{period.zone}-{period.first_day}")
def test_first_and_last_second_of_every_day(period: Period) -> None:
    stated = [
        datetime.combine(period.first_day, datetime.min.time()) + timedelta(days=day, seconds=s)
        for day in range(-1, period.days + 2)
        for s in (-1, 0, 1)
    ]
    check(stated, [when.isoformat().encode() for when in stated], period)


@st.composite
def written_times(draw: st.DrawFn) -> tuple[Period, datetime, bytes]:
    """A time near a change, and one of the ways to write it."""
    period = draw(st.sampled_from(PERIODS))
    reach = st.sampled_from([5, HOUR_S, 3 * HOUR_S, 30 * HOUR_S])
    seconds = draw(reach.flatmap(lambda s: st.integers(-s, s)))
    stated = period.change + timedelta(seconds=seconds)
    form = "%Y-%m-%dT%H:%M"
    if draw(st.booleans()):
        stated = stated.replace(second=0)
    else:
        form += ":%S"
    text = stated.strftime(form).replace("T", draw(st.sampled_from("T ")))
    if form.endswith("S"):
        text += draw(st.sampled_from(["", ".0", ".9", ",5", ".999999", ".000000001999"]))
    shift = draw(st.none() | st.sampled_from([0, 60, 120, -180, 345, 570, 630, -720, 840, 1139, -1139]))
    if shift is None:
        return period, stated, text.encode()
    sign, (hours, minutes) = "-" if shift < 0 else "+", divmod(abs(shift), 60)
    ways = [f"{sign}{hours:02d}:{minutes:02d}", f"{sign}{hours:02d}{minutes:02d}"]
    ways += [f"{sign}{hours:02d}"] if minutes == 0 else []
    ways += ["Z", "-00:00"] if shift == 0 else []
    stated = stated.replace(tzinfo=timezone(timedelta(minutes=shift)))
    return period, stated, (text + draw(st.sampled_from(ways))).encode()


@settings(max_examples=300)
@given(
    written=written_times(), before=st.binary(max_size=3), after=st.sampled_from([b"", b"Z", b"5", b"+02"])
)
def test_any_way_to_write_a_time(
    written: tuple[Period, datetime, bytes], before: bytes, after: bytes
) -> None:
    """The texts before and after lie right beside it in the buffer."""
    period, stated, text = written
    clock = CLOCKS[period]
    times = read([before, text, after], clock)
    wanted = expected(stated, period)
    found = (
        int(times.outcome[1]),
        int(times.utc[1]),
        int(times.day[1]),
        int(times.minute[1]),
    )
    assert found[: len(wanted)] == wanted
    assert (times.outcome[0], times.outcome[2]) == (BAD, BAD)


def test_folded_time_is_the_first() -> None:
    period = Period("Europe/Paris", date(2017, 10, 29), 1, datetime(2017, 10, 29, 3))
    clock = study_clock(period.zone, first_day=period.first_day, days=1)
    assert one("2017-10-29T02:30:00", clock) == one("2017-10-29T02:30:00+02:00", clock)
    first, second = one("2017-10-29T02:30:00+02:00", clock), one("2017-10-29T02:30:00+01:00", clock)
    assert second[1] - first[1] == HOUR_S
    assert second[2:] == first[2:] == (1, 150)


@pytest.mark.parametrize("text", ["2017-03-26T02:00:00", "2017-03-26T02:59:59.999", "2017-03-26 02:30"])
def test_time_that_does_not_exist_is_rejected(text: str) -> None:
    clock = study_clock("Europe/Paris", first_day=date(2017, 3, 25), days=3)
    assert one(text, clock)[0] == NONEXISTENT
    assert one(text + "Z", clock)[0] == VALID


def test_duration_over_a_change_is_that_of_utc() -> None:
    clock = study_clock("Europe/Paris", first_day=date(2017, 3, 26), days=1)
    assert one("2017-03-26T03:00:00", clock)[1] - one("2017-03-26T01:59:59", clock)[1] == 1
    clock = study_clock("Europe/Paris", first_day=date(2017, 10, 29), days=1)
    assert one("2017-10-29T23:59:59", clock)[1] - one("2017-10-29T00:00:00", clock)[1] == 25 * HOUR_S - 1


@pytest.mark.parametrize(
    "text",
    [
        "0001-01-01T00:00:00",
        "1970-01-01T00:00Z",
        "2017-05-30T23:59:59",
        "2017-06-07T00:00",
        "9999-12-31T23:59:59-18:59",
    ],
)
def test_time_outside_the_study(text: str) -> None:
    assert one(text)[0] == OUTSIDE_PERIOD


def test_time_outside_the_study_that_does_not_exist_is_outside() -> None:
    """The clock knows the changes of the study's own days."""
    assert one("2017-03-26T02:30:00")[0] == OUTSIDE_PERIOD


def test_blanks_around_are_taken_away_as_from_other_columns() -> None:
    text = "2017-05-31T10:00:00+02:00"
    for blank in (" ", "\t", "\r", "\v\f", "  "):
        assert one(blank + text + blank) == one(text)
    assert one(" " * 40)[0] == BAD


STRICT = re.compile(
    rb"[ \t\n\r\v\f]*(?P<stamp>\d{4}-\d\d-\d\d)[T ](?P<clock>\d\d:\d\d)"
    rb"(?::(?P<second>\d\d)(?:[.,]\d+)?)?"
    rb"(?P<offset>Z|(?P<sign>[+-])(?P<hours>\d\d)(?::?(?P<minutes>\d\d))?)?[ \t\n\r\v\f]*"
)


def strict(text: bytes) -> datetime | None:
    """The grammar of the docstring, by a regular expression; datetime knows the calendar."""
    match = STRICT.fullmatch(text)
    if match is None:
        return None
    second = (match["second"] or b"00").decode()
    try:
        stated = datetime.fromisoformat(f"{match['stamp'].decode()}T{match['clock'].decode()}:{second}")
    except ValueError:
        return None
    if match["offset"] is None:
        return stated
    if match["offset"] == b"Z":
        return stated.replace(tzinfo=UTC)
    hours, minutes = int(match["hours"]), int(match["minutes"] or 0)
    if hours > 18 or minutes > 59:
        return None
    shift = timedelta(hours=hours, minutes=minutes) * (-1 if match["sign"] == b"-" else 1)
    return stated.replace(tzinfo=timezone(shift))


@st.composite
def mangled_times(draw: st.DrawFn) -> bytes:
    """A time in the study with a few characters changed, put in, or left out."""
    seconds = draw(st.integers(-DAY_S, 8 * DAY_S))
    text = (datetime(2017, 5, 31) + timedelta(seconds=seconds)).isoformat()
    text += draw(st.sampled_from(["", "Z", "+02:00", "-0330", "+05", ".123", ",1Z"]))
    data = bytearray(text.encode())
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, max(len(data) - 1, 0)))
        character = draw(st.sampled_from(b"0123456789-+:.,TtZz /\t\x00\xe9"))
        match draw(st.sampled_from(["change", "insert", "remove"])):
            case "change":
                data[place : place + 1] = bytes([character])
            case "insert":
                data.insert(place, character)
            case _:
                del data[place : place + 1]
    return bytes(data)


@settings(max_examples=500)
@given(texts=st.lists(mangled_times() | st.binary(max_size=40), min_size=1, max_size=20))
@example(texts=[b"2017-05-31T10:00:00+02:0", b"2017-05-31T10:00:00.", b"2017-05-31T10:00:"])
@example(texts=[b"2017-05-31T10:0", b"0:00", b"2017-05-31T10:00:0", b"0", b"2017-05-31T10:00:00+0", b"2"])
@example(texts=[b"2017-05-31t10:00:00", b"2017-05-31T10:00:00z", b"2017-05-31_10:00:00"])
@example(texts=[b"0000-05-31T10:00:00", b"2017-02-29T10:00", b"2016-02-29T10:00", b"2017-05-31T24:00"])
@example(texts=[b"1900-02-29T10:00", b"2000-02-29T10:00", b"2017-05-31T10:60", b"2017-05-31T10:00:60"])
@example(texts=[b"2017-05-31T10:00:00Z+02:00", b"2017-05-31T10:00:00+0200:", b"2017-05-31T10:00:00+020"])
@example(texts=[b"2017-05-31T10:00:00 ", b"2017-05-31T10:00:00 Z", b"2017-05-31T10:00:00\t"])
@example(texts=[b"2017-05-31", b"20170531T100000", b"2017-W22-3T10:00", b"1496224800", b"", b" "])
def test_every_text_is_read_exactly_or_bad(texts: list[bytes]) -> None:
    times = read(texts, PARIS_CLOCK)
    for i, text in enumerate(texts):
        stated = strict(text)
        if stated is None:
            assert times.outcome[i] == BAD, text
            continue
        if not date(2017, 5, 29) < stated.date() < date(2017, 6, 8):  # the calendar of datetime ends
            assert times.outcome[i] == OUTSIDE_PERIOD, text
            continue
        wanted = expected(stated, PARIS)
        found = (
            int(times.outcome[i]),
            int(times.utc[i]),
            int(times.day[i]),
            int(times.minute[i]),
        )
        assert found[: len(wanted)] == wanted, text


@pytest.mark.parametrize("year", [1900, 2000, 2016, 2017, 2100])
def test_days_that_no_month_has(year: int) -> None:
    texts = [f"{year}-{month:02d}-{day:02d}T12:00" for month in range(14) for day in range(33)]
    times = read([text.encode() for text in texts], PARIS_CLOCK)
    for text, outcome in zip(texts, times.outcome.tolist(), strict=True):
        assert (outcome == BAD) == (strict(text.encode()) is None), text


@given(day=st.dates(date(1, 1, 1), date(9999, 12, 31)))
@example(day=date(1600, 2, 29))
@example(day=date(1900, 3, 1))
@example(day=date(2000, 2, 29))
@example(day=date(2199, 12, 31))
def test_calendar(day: date) -> None:
    """Noon of any day, read in a study of that day."""
    clock = StudyClock(
        utc_from=np.array([int(datetime.combine(day, datetime.min.time(), UTC).timestamp())]),
        offset_s=np.array([0]),
        utc_end=int(datetime.combine(day, datetime.min.time(), UTC).timestamp()) + DAY_S,
        local_start=int(datetime.combine(day, datetime.min.time(), UTC).timestamp()),
        days=1,
    )
    assert read([f"{day.isoformat()}T12:00".encode()], clock).utc[0] - clock.origin == 12 * HOUR_S


def test_no_text_at_all() -> None:
    assert len(read([], PARIS_CLOCK).outcome) == 0
    assert read([b"", b""], PARIS_CLOCK).outcome.tolist() == [BAD, BAD]


@pytest.mark.parametrize("period", PERIODS, ids=lambda period: f"{period.zone}-{period.first_day}")
def test_clock_holds_every_change(period: Period) -> None:
    clock, zone = CLOCKS[period], ZoneInfo(period.zone)
    for second in range(clock.origin, clock.utc_end, 15 * MINUTE_S):
        segment = np.searchsorted(clock.utc_from, second, side="right") - 1
        offset = datetime.fromtimestamp(second, zone).utcoffset()
        assert offset == timedelta(seconds=int(clock.offset_s[segment]))
