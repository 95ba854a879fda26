"""Timestamps against datetime and zoneinfo: around every kind of change of the clocks, and on any text."""

import re
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mobility.extracts.rows.timestamps import (
    BAD,
    NONEXISTENT,
    OUTSIDE_PERIOD,
    VALID,
    StudyClock,
    event_times,
    event_times_of,
    study_clock,
)
from tests.mobility.extracts.rows.small_extract import texts_of

HOUR_S, DAY_S = 3600, 86_400


class Period(NamedTuple):
    """A study, and the local time around which its clocks change."""

    zone: str
    first_day: date
    days: int
    change: datetime


PERIODS = [
    Period("Europe/Paris", date(2017, 3, 25), 3, datetime(2017, 3, 26, 2)),
    Period("Europe/Paris", date(2017, 10, 28), 3, datetime(2017, 10, 29, 3)),
    Period("Europe/Paris", date(2017, 3, 26), 1, datetime(2017, 3, 26, 2)),  # a day of 23 hours
    Period("Europe/Paris", date(2017, 10, 29), 1, datetime(2017, 10, 29, 3)),  # of 25 hours
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
PARIS = Period("Europe/Paris", date(2017, 5, 31), 7, datetime(2017, 6, 3))
CLOCKS = {
    period: study_clock(period.zone, first_day=period.first_day, days=period.days)
    for period in [*PERIODS, PARIS]
}
every_period = pytest.mark.parametrize("period", PERIODS, ids=lambda each: f"{each.zone}-{each.first_day}")
ISO, DAY_FIRST, MONTH_FIRST, COMPACT = "iso", "%d/%m/%Y %H:%M:%S", "%m/%d/%Y %H:%M:%S", "%Y%m%d%H%M%S"
DOTTED, FRACTION = "%d.%m.%Y %H:%M", "%d-%m-%Y_%H.%M.%S.%f"
PATTERNS = (DAY_FIRST, COMPACT, DOTTED, FRACTION, MONTH_FIRST, "%d/%m/%Y %H:%M%z")


def found(times) -> list[tuple[int, ...]]:
    columns = (times.outcome, times.utc, times.day, times.minute)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [row if row[0] == VALID else row[:1] for row in rows]


def read(texts: list[bytes], form: str = ISO, period: Period = PARIS) -> list[tuple[int, ...]]:
    return found(event_times(texts_of(texts), clock=CLOCKS[period], form=form))


def one(text: str, period: Period = PARIS, form: str = ISO) -> tuple[int, ...]:
    return read([text.encode()], form, period)[0]


def expected(stated: datetime, period: Period) -> tuple[int, ...]:
    """Return the meaning of a time, by datetime and zoneinfo: (outcome,), or (VALID, UTC s, day, minute)."""
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


def local_times(period: Period) -> list[datetime]:
    minutes = [period.change + timedelta(minutes=m) for m in range(-26 * 60, 26 * 60)]
    hours = (-24, -1, -0.5, -0.25, 0, 0.25, 0.5, 1, 24)
    seconds = [period.change + timedelta(hours=h, seconds=s) for h in hours for s in range(-2, 3)]
    first = datetime.combine(period.first_day, datetime.min.time())
    days = [first + timedelta(days=day, seconds=s) for day in range(-1, period.days + 2) for s in (-1, 0, 1)]
    return minutes + seconds + days


def instants(period: Period) -> list[int]:
    middle = int(period.change.replace(tzinfo=ZoneInfo(period.zone)).timestamp())
    return [middle + s for s in range(-26 * HOUR_S, 26 * HOUR_S, 7 * 60 - 1)]


@every_period
def test_local_times_in_every_format(period: Period) -> None:
    stated = local_times(period)
    wanted = [expected(when, period) for when in stated]
    assert read([when.isoformat().encode() for when in stated], ISO, period) == wanted
    for form in (DAY_FIRST, COMPACT, MONTH_FIRST):
        assert read([when.strftime(form).encode() for when in stated], form, period) == wanted
    for unit, ticks in (("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)):
        written = [int(when.replace(tzinfo=UTC).timestamp()) * ticks + ticks - 1 for when in stated]
        assert found(event_times_of(pa.array(written, pa.timestamp(unit)), clock=CLOCKS[period])) == wanted


@every_period
def test_instants_in_every_format(period: Period) -> None:
    seconds = instants(period)
    wanted = [expected(datetime.fromtimestamp(second, UTC), period) for second in seconds]
    assert read([b"%d" % second for second in seconds], "epoch_s", period) == wanted
    assert read([b"%d999" % second for second in seconds], "epoch_ms", period) == wanted
    for unit, ticks in (("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)):
        for zone in ("UTC", "Asia/Tokyo"):  # the zone of a column only says how it is shown
            column = pa.array([second * ticks for second in seconds], pa.timestamp(unit, tz=zone))
            assert found(event_times_of(column, clock=CLOCKS[period])) == wanted


@every_period
def test_a_local_time_and_the_same_numbers_with_an_offset_are_told_apart(period: Period) -> None:
    """Neighbours share day and offset only if both are local times, or neither is."""
    both = [each for time in local_times(period)[::7] for each in (time, time.replace(tzinfo=UTC))]
    assert read([each.isoformat().encode() for each in both], ISO, period) == [
        expected(each, period) for each in both
    ]


def test_a_clock_knows_changes_of_the_studys_own_days() -> None:
    assert one("2017-03-26T02:30:00") == (OUTSIDE_PERIOD,)


OFFSET = rb"(?:Z|[+-](?:0\d|1[0-8])(?::?[0-5]\d)?)?"
STRICT = re.compile(
    rb"[ \t\n\r\v\f]*(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?" + OFFSET + rb")[ \t\n\r\v\f]*"
)


ONE_MINUTE = (b":00", b":59", b":60", b":0a", b":6 ", b"; 7", b":/0", b":0/", b";07", b":07", b":07Z")


def strict(text: bytes) -> datetime | None:
    try:
        match = STRICT.fullmatch(text)
        return match and datetime.fromisoformat(match[1].decode()).replace(microsecond=0)
    except ValueError:
        return None


def mangled(draw: st.DrawFn, text: str) -> bytes:
    data = bytearray(text.encode())
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(data)))
        put = draw(st.sampled_from([b"", *(bytes([byte]) for byte in b"0123456789-+:.,TtZz /\t\x00\xe9")]))
        data[place : place + draw(st.integers(0, 1))] = put
    return bytes(data)


@st.composite
def some_times(draw: st.DrawFn) -> tuple[Period, list[bytes]]:
    period, texts = draw(st.sampled_from([PARIS, *PERIODS])), []
    for _ in range(draw(st.integers(1, 20))):
        reach = draw(st.sampled_from([5, HOUR_S, 3 * HOUR_S, 30 * HOUR_S, 9 * DAY_S]))
        stated = period.change + timedelta(seconds=draw(st.integers(-reach, reach)))
        form = draw(st.sampled_from(["%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S"]))
        text = stated.strftime(form)
        if text.count(":") == 2:
            text += draw(st.sampled_from(["", ".0", ".9", ",5", ".999999", ".000000001999"]))
        shift = draw(st.sampled_from([0, 60, 120, -180, 345, 570, 630, -720, 840, 1080, -1139]))
        offset = f"{'-' if shift < 0 else '+'}{abs(shift) // 60:02d}:{abs(shift) % 60:02d}"
        text += draw(st.sampled_from(["", "", "Z", "-00:00", offset, offset.replace(":", ""), offset[:3]]))
        texts.append(mangled(draw, text))
    return period, texts


@settings(max_examples=250)
@given(written=some_times() | st.tuples(st.just(PARIS), st.lists(st.binary(max_size=40))))
@example((PARIS, [b"2017-05-31T10:00:00+02:0", b"2017-05-31T10:00:00.", b"2017-05-31T10:00:"]))
@example((PARIS, [b"2017-05-31T10:0", b"0:00", b"2017-05-31T10:00:0", b"0", b"2017-05-31T10:00:00+0", b"2"]))
@example((PARIS, [b"2017-05-31t10:00:00", b"2017-05-31T10:00:00z", b"2017-05-31_10:00:00"]))
@example((PARIS, [b"0001-01-01T00:00:00", b"1970-01-01T00:00Z", b"9999-12-31T23:59:59-18:59"]))
@example((PARIS, [b"0000-05-31T10:00:00", b"2017-02-29T10:00", b"2016-02-29T10:00", b"2017-05-31T24:00"]))
@example((PARIS, [b"1900-02-29T10:00", b"2000-02-29T10:00", b"2017-05-31T10:60", b"2017-05-31T10:00:60"]))
@example((PARIS, [b"2017-05-31T10:00:00Z+02:00", b"2017-05-31T10:00:00+0200:", b"2017-05-31T10:00:00+020"]))
@example((PARIS, [b"2017-05-31T10:00:00 ", b"2017-05-31T10:00:00 Z", b"2017-05-31T10:00:00\t"]))
@example((PARIS, [b"\v\f2017-05-31T10:00:00+02:00 \r", b"\t 2017-05-31T10:00:00Z", b" " * 40]))
@example((PARIS, [b"\0" * 16 + b":07", *(b"2017-05-31T10:00%b" % end for end in ONE_MINUTE)]))
@example((PARIS, [b"2017-05-31", b"20170531T100000", b"2017-W22-3T10:00", b"1496224800", b"", b" "]))
def test_every_text_is_read_exactly_or_bad(written) -> None:
    period, texts = written
    for text, times in zip(texts, read(texts, ISO, period), strict=True):
        stated = strict(text)
        if stated is None:
            assert times == (BAD,), text
        elif abs(stated.date() - period.first_day) > timedelta(days=100):  # the calendar of datetime ends
            assert times == (OUTSIDE_PERIOD,), text
        elif expected(stated, period) != (NONEXISTENT,) or times != (OUTSIDE_PERIOD,):
            assert times == expected(stated, period), text  # a clock knows changes of the study's own days


def test_days_that_no_month_has() -> None:
    texts = [
        f"{year}-{month:02d}-{day:02d}T12:00".encode()
        for year in (1900, 2000, 2016, 2017, 2100) for month in range(14) for day in range(33)
    ]  # fmt: skip
    for text, times in zip(texts, read(texts), strict=True):
        assert (times == (BAD,)) == (strict(text) is None), text


@given(day=st.dates(date(1, 1, 1), date(9999, 12, 31)))
@example(day=date(1600, 2, 29))
@example(day=date(1900, 3, 1))
@example(day=date(2000, 2, 29))
@example(day=date(2199, 12, 31))
def test_calendar(day: date) -> None:
    start = int(datetime.combine(day, datetime.min.time(), UTC).timestamp())
    edges = {"utc_from": np.array([start]), "utc_end": start + DAY_S, "local_start": start}
    clock = StudyClock(**edges, offset_s=np.array([0]), days=1)
    times = event_times(texts_of([f"{day.isoformat()}T12:00".encode()]), clock=clock, form=ISO)
    assert times.utc[0] - clock.origin == 12 * HOUR_S


EPOCH = re.compile(rb"[ \t\n\r\v\f]*(-?[0-9]{1,18})(?:[.,][0-9]+)?[ \t\n\r\v\f]*")
LAST = int(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp())
FIRST = int(datetime(1, 1, 1, tzinfo=UTC).timestamp())


@settings(max_examples=150)
@given(
    texts=st.lists(
        st.binary(max_size=24)
        | st.integers(-(10**20), 10**20).map(lambda n: b"%d" % n)
        | st.from_regex(rb"\A[ ]?-?[0-9]{0,20}[.,e]?[0-9]{0,4}[ ]?\Z"),
        min_size=1,
    )
)
@example(texts=[b"1496304000", b"1496304000.", b"1496304000.0", b".5", b"-", b"--1", b"+1496304000", b""])
@example(texts=[b"1496304000123"])  # the other unit: in seconds the year 49,000, bad, not only outside
@example(texts=[b"253402300799", b"253402300800", b"-62135596800", b"-62135596801", b"999999999999999999"])
@example(texts=[b"%d" % (2**64 + 1_496_304_000), b"%d" % (2**64 + 1_496_304_000_000), b"0" * 19 + b"1"])
@example(texts=[b"1.4963e9", b"0x59300000", b"nan", b"inf", b"1,496,304,000", b"14963 04000", b"9" * 400])
@pytest.mark.parametrize(("form", "per_second"), [("epoch_s", 1), ("epoch_ms", 1000)])
def test_numbers_are_read_exactly_or_bad(form: str, per_second: int, texts: list[bytes]) -> None:
    for (outcome, *rest), text in zip(read(texts, form), texts, strict=True):
        match = EPOCH.fullmatch(text)
        second = int(match[1]) // per_second if match else LAST + 1
        if not FIRST <= second <= LAST:
            assert outcome == BAD, text
            continue
        try:
            wanted = expected(datetime.fromtimestamp(second, UTC), PARIS)
        except OverflowError:  # the calendar of datetime ends
            wanted = (OUTSIDE_PERIOD,)
        assert (outcome, *rest) == wanted, text


@st.composite
def some_patterns(draw: st.DrawFn) -> tuple[str, list[bytes]]:
    form = draw(st.sampled_from(PATTERNS))
    stated = datetime(2017, 5, 30, tzinfo=UTC) + timedelta(seconds=draw(st.integers(0, 9 * DAY_S)))
    return form, [mangled(draw, stated.strftime(form))]


@settings(max_examples=250)
@given(written=some_patterns())
@example(written=(DAY_FIRST, [b"1/6/2017 9:5:7", b"1/6/17 09:05:07", b"31/06/2017 09:05:07"]))
@example(written=(DAY_FIRST, [b"01/06/2017 24:00:00", b"01/06/2017 23:59:60", b"01/06/2017 23:59"]))
@example(written=(DAY_FIRST, [b"01/06/2017 23:59:00 ", b"01/06/2017 23:59:00x"]))
@example(written=(COMPACT, [b"201761101112"]))
@example(written=("%d/%m/%Y %H:%M%z", [b"30/05/2017 00:00+00"]))
@example(written=(FRACTION, [b"3-5-2017_00.00.00.0000000"]))
def test_patterns_accept_nothing_that_strptime_reads_otherwise(written: tuple[str, list[bytes]]) -> None:
    form, texts = written
    for text, times in zip(texts, read(texts, form), strict=True):
        if times == (BAD,):
            continue
        # Of two things strptime knows less: digits beyond microseconds, and offsets of hours alone.
        written_out = re.sub(r"(\.\d{6})\d+$", r"\1", text.decode().strip(" \t"))
        if form.endswith("%z"):
            written_out = re.sub(r"([+-]\d\d)$", r"\1:00", written_out)
        assert times == expected(datetime.strptime(written_out, form), PARIS)


@pytest.mark.parametrize("form", PATTERNS)
@given(second=st.integers(0, 7 * 86_400 - 1))
def test_patterns_accept_what_strftime_writes(form: str, second: int) -> None:
    stated = datetime(2017, 5, 31, tzinfo=UTC) + timedelta(seconds=second)
    assert one(stated.strftime(form), form=form) != (BAD,)


def test_a_number_may_have_one_digit_only_where_it_ends() -> None:
    june = one("01/06/2017 09:05:07", form=DAY_FIRST)
    assert june == one("1/6/2017 9:05:07", form=DAY_FIRST) == (VALID, 1_496_300_707, 2, 545)
    assert one("2017060190507", form=COMPACT) == one("01/06/02017 1:00:00", form=DAY_FIRST) == (BAD,)


def test_missing_and_far_arrow_timestamps_are_bad() -> None:
    column = pa.array([None, LAST, LAST + 1, FIRST, FIRST - 1, 2**62], pa.timestamp("s", tz="UTC"))
    wanted = [BAD, OUTSIDE_PERIOD, BAD, OUTSIDE_PERIOD, BAD, BAD]
    assert event_times_of(column, clock=CLOCKS[PARIS]).outcome.tolist() == wanted
    assert event_times_of(column[1:3], clock=CLOCKS[PARIS]).outcome.tolist() == wanted[1:3]
