"""The days of a study as checks need them: dates, and the hours of each in which rows are expected."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from mobility.batches.quality.facts import HOURS_A_DAY


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyCalendar:
    """Days of a study and its visitor hours, `to_minute` included (minutes of the local day).

    of_events : its units are events
    """

    first_day: date
    days: int
    timezone: str
    from_minute: int
    to_minute: int
    of_events: bool = False

    @property
    def all_days(self) -> range:
        return range(1, self.days + 1)

    def date_of(self, day: int) -> date:
        return self.first_day + timedelta(days=day - 1)

    def visitor_hours(self, day: int) -> tuple[int, ...]:
        """Local hours with visitor minutes; without those that the clock skips on that day."""
        hours = range(self.from_minute // 60, self.to_minute // 60 + 1)
        return tuple(hour for hour in hours if self._exists(day, hour))

    def _exists(self, day: int, hour: int) -> bool:
        zone = ZoneInfo(self.timezone)
        midnight = datetime.combine(self.date_of(day), datetime.min.time(), zone)
        # A skipped local time comes back as another one.
        return any(
            local.astimezone(UTC).astimezone(zone).replace(tzinfo=None) == local.replace(tzinfo=None)
            for local in (midnight.replace(hour=hour % HOURS_A_DAY, minute=minute) for minute in (0, 59))
        )

    def same_weekday(self, one: int, other: int) -> bool:
        return (one - other) % 7 == 0
