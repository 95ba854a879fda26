"""Timestamps that are no ISO 8601 text: numbers, patterns and Arrow's, around the same changes of clocks."""

import re
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pyarrow as pa
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
    event_times_of,
    study_clock,
)
from tests.mobility.ingest.small_extract import texts_of
from tests.mobility.ingest.test_timestamps import CLOCKS, HOUR_S, PARIS_CLOCK, PERIODS, Period, expected

DAY_FIRST = "%d/%m/%Y %H:%M:%S"
COMPACT = "%Y%m%d%H%M%S"
DOTTED, FRACTION = "%d.%m.%Y %H:%M", "%d-%m-%Y_%H.%M.%S.%f"
PATTERNS = (DAY_FIRST, COMPACT, DOTTED, FRACTION, "%m/%d/%Y %H:%M:%S", "%d/%m/%Y %H:%M%z")
SPRING = Period("Europe/Paris", date(2017, 3, 26), 1, datetime(2017, 3, 26, 2))
AUTUMN = Period("Europe/Paris", date(2017, 10, 29), 1, datetime(2017, 10, 29, 3))


def read(texts: list[bytes], form: str, clock: StudyClock = PARIS_CLOCK) -> EventTimes:
    return event_times(texts_of(texts), clock=clock, form=form)


def found(times: EventTimes, clock: StudyClock) -> list[tuple[int, ...]]:
    """Like `expected`: (outcome,), or (VALID, UTC second, day, minute)."""
    rows = zip(
        times.outcome.tolist(),
        times.utc.tolist(),
        times.day.tolist(),
        times.minute.tolist(),
        strict=True,
    )
    return [row if row[0] == VALID else row[:1] for row in ((o, s, d, m) for o, s, d, m in rows)]


def around(period: Period) -> list[datetime]:
    """Local times on both sides of a change, which may not exist."""
    minutes = range(-26 * 60, 26 * 60, 7)
    return [period.change + timedelta(minutes=m, seconds=s) for m in minutes for s in (-1, 0)]


def instants(period: Period) -> list[int]:
    """UTC seconds on both sides of a change."""
    middle = int(period.change.replace(tzinfo=ZoneInfo(period.zone)).timestamp())
    return [middle + s for s in range(-26 * HOUR_S, 26 * HOUR_S, 7 * 60 - 1)]


@pytest.mark.parametrize("period", PERIODS, ids=lambda period: f"{period.zone}-{period.first_day}")
def test_epochs_are_instants_on_every_side_of_a_change(period: Period) -> None:
    clock, seconds = CLOCKS[period], instants(period)
    wanted = [expected(datetime.fromtimestamp(second, UTC), period) for second in seconds]
    assert found(read([b"%d" % s for s in seconds], "epoch_s", clock), clock) == wanted
    assert found(read([b"%d999" % s for s in seconds], "epoch_ms", clock), clock) == wanted


@pytest.mark.parametrize("period", PERIODS, ids=lambda period: f"{period.zone}-{period.first_day}")
@pytest.mark.parametrize("form", [DAY_FIRST, COMPACT, "%m/%d/%Y %H:%M:%S"])
def test_patterns_without_offset_are_local_times(period: Period, form: str) -> None:
    clock, stated = CLOCKS[period], around(period)
    texts = [when.strftime(form).encode() for when in stated]
    assert found(read(texts, form, clock), clock) == [expected(when, period) for when in stated]


@pytest.mark.parametrize("period", PERIODS, ids=lambda period: f"{period.zone}-{period.first_day}")
@pytest.mark.parametrize(("unit", "ticks"), [("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)])
def test_arrow_timestamps_of_every_unit(period: Period, unit: str, ticks: int) -> None:
    clock, stated, seconds = CLOCKS[period], around(period), instants(period)
    written = [int(when.replace(tzinfo=UTC).timestamp()) * ticks + ticks - 1 for when in stated]
    local = pa.array(written, pa.timestamp(unit))
    assert found(event_times_of(local, clock=clock), clock) == [expected(when, period) for when in stated]
    wanted = [expected(datetime.fromtimestamp(second, UTC), period) for second in seconds]
    for zone in ("UTC", "Asia/Tokyo"):  # the zone of a column only says how it is shown
        column = pa.array([second * ticks for second in seconds], pa.timestamp(unit, tz=zone))
        assert found(event_times_of(column, clock=clock), clock) == wanted


def test_days_of_23_and_25_hours_count_right_in_every_format() -> None:
    """The whole local day is there, second by second at its ends, and nothing of its neighbours."""
    for period, hours in ((SPRING, 23), (AUTUMN, 25)):
        clock = study_clock(period.zone, first_day=period.first_day, days=1)
        start = int(datetime(*period.first_day.timetuple()[:3], tzinfo=ZoneInfo(period.zone)).timestamp())
        edges = [start - 1, start, start + hours * HOUR_S - 1, start + hours * HOUR_S]
        wanted = [OUTSIDE_PERIOD, VALID, VALID, OUTSIDE_PERIOD]
        column = pa.array(edges, pa.timestamp("s", tz="UTC"))
        for times in (
            read([b"%d" % second for second in edges], "epoch_s", clock),
            read([b"%d000" % second for second in edges], "epoch_ms", clock),
            event_times_of(column, clock=clock),
        ):
            assert times.outcome.tolist() == wanted
            assert int(times.utc[2]) - int(times.utc[1]) == hours * HOUR_S - 1


def test_what_the_clock_skips_and_repeats_in_patterns() -> None:
    spring = study_clock(SPRING.zone, first_day=SPRING.first_day, days=1)
    assert read([b"26/03/2017 02:30:00"], DAY_FIRST, spring).outcome.tolist() == [NONEXISTENT]
    skipped = pa.array([datetime(2017, 3, 26, 2, 30)], pa.timestamp("us"))
    assert event_times_of(skipped, clock=spring).outcome.tolist() == [NONEXISTENT]
    autumn = study_clock(AUTUMN.zone, first_day=AUTUMN.first_day, days=1)
    texts = [b"29/10/2017 02:30:00+0200", b"29/10/2017 02:30:00+01:00"]
    first, second = read(texts, DAY_FIRST + "%z", autumn).utc.tolist()
    assert second - first == HOUR_S
    assert read([b"29/10/2017 02:30:00"], DAY_FIRST, autumn).utc.tolist() == [first]


def test_day_first_and_month_first_differ() -> None:
    (day_first,) = found(read([b"01/06/2017 10:00:00"], DAY_FIRST), PARIS_CLOCK)
    (month_first,) = found(read([b"06/01/2017 10:00:00"], "%m/%d/%Y %H:%M:%S"), PARIS_CLOCK)
    assert day_first == month_first == (VALID, 1_496_304_000, 2, 600)


EPOCH = re.compile(rb"[ \t\n\r\v\f]*(-?[0-9]{1,18})(?:[.,][0-9]+)?[ \t\n\r\v\f]*")
LAST = int(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp())
FIRST = int(datetime(1, 1, 1, tzinfo=UTC).timestamp())


@settings(max_examples=300)
@given(
    texts=st.lists(
        st.binary(max_size=24)
        | st.integers(-(10**20), 10**20).map(lambda n: b"%d" % n)
        | st.from_regex(rb"\A[ ]?-?[0-9]{0,20}[.,e]?[0-9]{0,4}[ ]?\Z"),
        min_size=1,
    )
)
@example(texts=[b"1496304000", b"1496304000.", b"1496304000.0", b".5", b"-", b"--1", b"+1496304000", b""])
@example(texts=[b"253402300799", b"253402300800", b"-62135596800", b"-62135596801", b"999999999999999999"])
@example(texts=[b"%d" % (2**64 + 1_496_304_000), b"%d" % (2**64 + 1_496_304_000_000), b"0" * 19 + b"1"])
@example(texts=[b"1.4963e9", b"0x59300000", b"nan", b"inf", b"1,496,304,000", b"14963 04000", b"9" * 400])
@pytest.mark.parametrize(("form", "per_second"), [("epoch_s", 1), ("epoch_ms", 1000)])
def test_numbers_are_read_exactly_or_bad(form: str, per_second: int, texts: list[bytes]) -> None:
    for (outcome, *rest), text in zip(found(read(texts, form), PARIS_CLOCK), texts, strict=True):
        match = EPOCH.fullmatch(text)
        second = int(match[1]) // per_second if match else LAST + 1
        if not FIRST <= second <= LAST:
            assert outcome == BAD, text
            continue
        try:
            when = datetime.fromtimestamp(second, UTC)
            wanted = expected(when, Period("Europe/Paris", date(2017, 5, 31), 7, when))
        except OverflowError:  # the calendar of datetime ends
            wanted = (OUTSIDE_PERIOD,)
        assert (outcome, *rest) == wanted, text


def test_a_column_in_the_other_unit_is_noticed() -> None:
    """Milliseconds read as seconds are in the year 49,000: bad, and not just outside the study."""
    assert read([b"1496304000123"], "epoch_s").outcome.tolist() == [BAD]


@st.composite
def mangled(draw: st.DrawFn) -> tuple[str, bytes]:
    """A time in the study as a pattern writes it, with a few characters changed, put in, or left out."""
    form = draw(st.sampled_from(PATTERNS))
    stated = datetime(2017, 5, 30, tzinfo=UTC) + timedelta(seconds=draw(st.integers(0, 9 * 86_400)))
    data = bytearray(stated.strftime(form).encode())
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(data)))
        if draw(st.booleans()):
            data[place : place + 1] = bytes([draw(st.sampled_from(b"0123456789/.: +-\xe9"))])
        else:
            del data[place : place + 1]
    return form, bytes(data)


@settings(max_examples=500)
@given(written=mangled())
@example(written=(DAY_FIRST, b"1/6/2017 9:5:7"))
@example(written=(DAY_FIRST, b"1/6/17 09:05:07"))
@example(written=(DAY_FIRST, b"31/06/2017 09:05:07"))
@example(written=(DAY_FIRST, b"01/06/2017 24:00:00"))
@example(written=(DAY_FIRST, b"01/06/2017 23:59:60"))
@example(written=(DAY_FIRST, b"01/06/2017 23:59"))
@example(written=(DAY_FIRST, b"01/06/2017 23:59:00 "))
@example(written=(DAY_FIRST, b"01/06/2017 23:59:00x"))
@example(written=(COMPACT, b"201761101112"))
@example(written=("%d/%m/%Y %H:%M%z", b"30/05/2017 00:00+00"))
@example(written=(FRACTION, b"3-5-2017_00.00.00.0000000"))
def test_patterns_accept_nothing_that_strptime_reads_otherwise(written: tuple[str, bytes]) -> None:
    form, text = written
    ((outcome, *rest),) = found(read([text], form), PARIS_CLOCK)
    if outcome == BAD:
        return
    # Of two things strptime knows less: digits beyond microseconds, and offsets of hours alone.
    written_out = re.sub(r"(\.\d{6})\d+$", r"\1", text.decode().strip(" \t"))
    if form.endswith("%z"):
        written_out = re.sub(r"([+-]\d\d)$", r"\1:00", written_out)
    stated = datetime.strptime(written_out, form)
    assert (outcome, *rest) == expected(stated, Period("Europe/Paris", date(2017, 5, 31), 7, stated))


@pytest.mark.parametrize("form", PATTERNS)
@given(second=st.integers(0, 7 * 86_400 - 1))
def test_patterns_accept_what_strftime_writes(form: str, second: int) -> None:
    stated = datetime(2017, 5, 31, tzinfo=UTC) + timedelta(seconds=second)
    ((outcome, *_),) = found(read([stated.strftime(form).encode()], form), PARIS_CLOCK)
    assert outcome != BAD


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"1/6",
        b"01-06-2017 10:00:00",
        b"2017/06/01 10:00:00",
        b"001/6/2017 10:00:00",
        b"01/06/02017 1:00:00",
    ],
)
def test_patterns_refuse_what_is_written_otherwise(text: bytes) -> None:
    assert read([text], DAY_FIRST).outcome.tolist() == [BAD]


def test_numbers_of_one_digit_only_where_they_end() -> None:
    assert found(read([b"1/6/2017 9:05:07"], DAY_FIRST), PARIS_CLOCK) == found(
        read([b"01/06/2017 09:05:07"], DAY_FIRST), PARIS_CLOCK
    )
    assert read([b"2017060190507"], COMPACT).outcome.tolist() == [BAD]


def test_missing_and_far_arrow_timestamps_are_bad() -> None:
    column = pa.array([None, LAST, LAST + 1, FIRST, FIRST - 1, 2**62], pa.timestamp("s", tz="UTC"))
    wanted = [BAD, OUTSIDE_PERIOD, BAD, OUTSIDE_PERIOD, BAD, BAD]
    assert event_times_of(column, clock=PARIS_CLOCK).outcome.tolist() == wanted
    assert event_times_of(column[1:3], clock=PARIS_CLOCK).outcome.tolist() == wanted[1:3]
