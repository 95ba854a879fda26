"""Reference of the visitor rule (design: from a row to a number): plain Python, slow and obvious.

It shares no code with the project, so that tests can compare the pipeline with it.
"""

import csv
import gzip
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import chain
from pathlib import Path
from typing import TypedDict
from zoneinfo import ZoneInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    timezone: ZoneInfo
    first_day: date
    days: int
    open_from: time
    open_to: time  # the whole minute counts
    min_minutes: int
    subscriber: str
    timestamp: str
    cell: str
    cells: frozenset[str]
    static: dict[str, tuple[str, list[str]]]  # slug -> column, categories


class Extract(TypedDict):
    rows_read: int
    accepted: int
    ignored: Counter[str]
    rejected: Counter[str]
    presence: dict[str, set[int]]  # subscriber -> study days, 1 = first
    duration: dict[tuple[str, int], str | None]  # (subscriber, day) -> band
    static: dict[str, dict[str, str]]  # subscriber -> slug -> category; visitors only


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    subscriber: str
    instant: datetime  # UTC, whole seconds
    local: datetime
    cell: str
    values: dict[str, str]  # slug -> category; an empty one is no answer


class Refused(Exception):
    """The row is rejected; the text is the reason."""


def read_study(path: Path) -> Study:
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    study, visitor, extract = data["study"], data["study"]["visitor"], data["extract"]
    with (path.parent / data["area"]["cells"]).open(encoding="utf-8", newline="") as file:
        cells = frozenset(row["cell_id"] for row in csv.DictReader(file))
    return Study(
        timezone=ZoneInfo(study["timezone"]),
        first_day=study["first_day"],
        days=study["days"],
        open_from=time.fromisoformat(visitor["from"]),
        open_to=time.fromisoformat(visitor["to"]),
        min_minutes=visitor["min_minutes"],
        subscriber=extract["subscriber"],
        timestamp=extract["timestamp"],
        cell=extract["cell"],
        cells=cells,
        static={
            indicator["slug"]: (indicator["column"], indicator["categories"])
            for indicator in data["indicator"]
            if indicator["kind"] == "static" and "column" in indicator
        },
    )


def read_extract(paths: Iterable[Path], study: Study) -> Extract:
    """Apply the rules to files; each file is a batch, which matters for duplicates only.

    Where the values of a visitor differ, the earliest accepted event of the days of presence counts,
    and of several at one second the smallest code.
    """
    counts: Counter[str] = Counter()
    ignored: Counter[str] = Counter()
    rejected: Counter[str] = Counter()
    accepted: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for path in paths:
        seen: set[tuple[str, datetime, str]] = set()
        for fields, header in _data_lines(path):
            counts["read"] += 1
            try:
                row = _parse(fields, header, study)
            except Refused as refusal:
                rejected[str(refusal)] += 1
                continue
            reason = _why_ignored(row, seen, study)
            if reason:
                ignored[reason] += 1
                continue
            counts["accepted"] += 1
            seen.add((row.subscriber, row.instant, row.cell))
            accepted[row.subscriber, _study_day(row, study)].append(row)
    numbers = {"rows_read": counts["read"], "accepted": counts["accepted"]}
    return {**numbers, "ignored": ignored, "rejected": rejected, **_visits(accepted, study)}


def _data_lines(path: Path) -> Iterator[tuple[list[str], list[str]]]:
    open_text = gzip.open if path.suffix == ".gz" else open
    with open_text(path, "rt", encoding="utf-8-sig", newline="") as file:
        lines = csv.reader(file)
        header = next(lines)
        for fields in lines:
            if fields:  # a blank line is no row
                yield fields, header


def _parse(fields: list[str], header: list[str], study: Study) -> Row:
    if len(fields) != len(header):
        raise Refused("wrong_columns")
    values = dict(zip(header, (field.strip() for field in fields), strict=True))
    if not values[study.subscriber]:
        raise Refused("empty_subscriber")
    instant = _instant(values[study.timestamp], study)
    if not values[study.cell]:
        raise Refused("empty_cell")
    static = {}
    for slug, (column, categories) in study.static.items():
        if values[column] and values[column] not in categories:
            raise Refused("unknown_value")
        static[slug] = values[column]
    local = instant.astimezone(study.timezone)
    subscriber, cell = values[study.subscriber], values[study.cell]
    return Row(subscriber=subscriber, instant=instant, local=local, cell=cell, values=static)


def _instant(text: str, study: Study) -> datetime:
    try:
        stated = datetime.fromisoformat(text).replace(microsecond=0)
    except ValueError:
        raise Refused("bad_timestamp") from None
    if stated.tzinfo is not None:
        return stated.astimezone(UTC)
    instant = stated.replace(tzinfo=study.timezone, fold=0).astimezone(UTC)
    if instant.astimezone(study.timezone).replace(tzinfo=None) != stated:
        raise Refused("nonexistent_time")
    return instant


def _why_ignored(row: Row, seen: set[tuple[str, datetime, str]], study: Study) -> str | None:
    if not 1 <= _study_day(row, study) <= study.days:
        return "outside_period"
    if row.cell not in study.cells:
        return "outside_area"
    if not study.open_from <= row.local.time().replace(second=0) <= study.open_to:
        return "outside_hours"
    if (row.subscriber, row.instant, row.cell) in seen:
        return "duplicate"
    return None


def _study_day(row: Row, study: Study) -> int:
    return (row.local.date() - study.first_day).days + 1


class Visits(TypedDict):
    presence: dict[str, set[int]]
    duration: dict[tuple[str, int], str | None]
    static: dict[str, dict[str, str]]


def _visits(accepted: dict[tuple[str, int], list[Row]], study: Study) -> Visits:
    presence: dict[str, set[int]] = defaultdict(set)
    duration: dict[tuple[str, int], str | None] = {}
    for (subscriber, day), rows in accepted.items():
        length = max(row.instant for row in rows) - min(row.instant for row in rows)
        if length >= timedelta(minutes=study.min_minutes):
            presence[subscriber].add(day)
            duration[subscriber, day] = _band(length)
    static = {
        subscriber: _static_values(chain(*(accepted[subscriber, day] for day in days)), study)
        for subscriber, days in presence.items()
    }
    return {"presence": dict(presence), "duration": duration, "static": static}


def _band(length: timedelta) -> str | None:
    hours = length // timedelta(hours=1)
    if not timedelta(hours=1) <= length <= timedelta(hours=18):
        return None
    return "Duration 10h-18h" if hours >= 10 else f"Duration {hours + 1}h"


def _static_values(rows: Iterable[Row], study: Study) -> dict[str, str]:
    rows = list(rows)
    answers = {}
    for slug, (_, categories) in study.static.items():
        given = [(row.instant, categories.index(row.values[slug])) for row in rows if row.values[slug]]
        if given:
            answers[slug] = categories[min(given)[1]]
    return answers
