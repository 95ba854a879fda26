"""Deliveries, calendars and histories as a test writes them down."""

from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

from mobility.batches.quality.calendar import StudyCalendar
from mobility.batches.quality.deliveries import Delivery, History

START = datetime(2024, 5, 1, tzinfo=UTC)
Hours = dict[int, list[int]]


def calendar(days: int = 14, *, start: date = date(2024, 5, 1), hours=(8, 11), timezone="Europe/Paris"):
    """A study from Wednesday 1 May 2024; `hours` are the first and the last visitor hour."""
    minutes = {"from_minute": hours[0] * 60, "to_minute": hours[1] * 60 + 59}
    return StudyCalendar(first_day=start, days=days, timezone=timezone, **minutes)


def day_hours(rows: int, *, silent: tuple[int, ...] = (), hours=(8, 11)) -> list[int]:
    """`rows` in each visitor hour, none in those that are silent."""
    first, last = hours
    return [rows if first <= hour <= last and hour not in silent else 0 for hour in range(24)]


def delivery(
    at: int, hours: Hours | None = None, *, source: str = "default", filename: str = "",
    more_to_come: bool = False, failure: str = "", rejected: int = 0, content: str = "", **checks: Any,
) -> Delivery:  # fmt: skip
    """File number `at`: accepted rows by day and hour; and rejected rows."""
    hours = hours or {}
    accepted = sum(map(sum, hours.values()))
    row = {
        "pk": UUID(int=at), "profile": source, "filename": filename or f"file-{at}.csv",
        "state": "failed" if failure else "done", "failure": failure, "more_to_come": more_to_come,
        "finished_at": START + timedelta(hours=at), "days_touched": sorted(hours),
        "content_hash": content, "rows_ignored": {},
        "rows_read": accepted + rejected, "rows_accepted": accepted,
        "rows_rejected": {"bad_timestamp": rejected} if rejected else {},
        "checks": {"hours": {str(day): of_day for day, of_day in hours.items()}, **checks},
    }  # fmt: skip
    return Delivery.of(row)


def history(*deliveries: Delivery, undone: dict[int, list[int]] | None = None) -> History:
    """These files one after the other, and when (as a file's number) days were undone."""
    moments = {day: [START + timedelta(hours=at) for at in times] for day, times in (undone or {}).items()}
    return History(deliveries=deliveries, undone={day: tuple(times) for day, times in moments.items()})
