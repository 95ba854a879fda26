"""Meanings of the timestamps of a few rows, by the kernels that read whole files."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

import numpy as np

from mobility.extracts.readers import Texts
from mobility.extracts.rows.timestamps import (
    BAD,
    NONEXISTENT,
    OUTSIDE_PERIOD,
    VALID,
    event_times,
    study_clock,
)
from reports.studies.studyfile import StudyDefinition

__all__ = ["BAD", "NONEXISTENT", "OUTSIDE_PERIOD", "VALID", "Instant", "instants_of", "outcomes_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Instant:
    """One timestamp: its outcome, and its time in the study's time zone where it has one."""

    outcome: int
    local: datetime | None


def instants_of(values: Sequence[str], *, form: str, definition: StudyDefinition) -> list[Instant]:
    """Return the meaning of each text in a format, as ingest would read it."""
    clock = study_clock(definition.timezone, first_day=definition.first_day, days=definition.days)
    times = event_times(_texts(values), clock=clock, form=form)
    zone = ZoneInfo(definition.timezone)
    return [
        Instant(
            outcome=int(outcome),
            local=None if outcome in (BAD, NONEXISTENT) else _local(int(utc), zone),
        )
        for outcome, utc in zip(times.outcome, times.utc, strict=True)
    ]


def outcomes_of(values: Sequence[str], *, form: str, definition: StudyDefinition) -> Counter[int]:
    """Count the texts with each outcome in a format."""
    return Counter(instant.outcome for instant in instants_of(values, form=form, definition=definition))


def _local(utc: int, zone: ZoneInfo) -> datetime | None:
    try:
        return datetime.fromtimestamp(utc, zone)
    except (ValueError, OverflowError):  # the first and last day of the calendar, in another zone
        return None


def _texts(values: Sequence[str]) -> Texts:
    encoded = [value.encode() for value in values]
    ends = np.cumsum([len(text) for text in encoded], dtype=np.int32)
    begins = np.concatenate([np.zeros(1, np.int32), ends[:-1]])[: len(encoded)]
    return Texts(data=np.frombuffer(b"".join(encoded), np.uint8), begins=begins, ends=ends)
