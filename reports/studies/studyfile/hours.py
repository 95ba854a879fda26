"""Hours of the day as the categories of daily indicators."""

from collections.abc import Sequence
from typing import Final

FIRST_HOUR, LAST_HOUR, BUSIEST_HOUR = "first_hour", "last_hour", "busiest_hour"
OF_HOURS: Final = (FIRST_HOUR, LAST_HOUR, BUSIEST_HOUR)
HOURS_A_DAY: Final = 24
HOURS: Final = tuple(f"{hour:02d}:00 to {hour:02d}:59" for hour in range(HOURS_A_DAY))
HOURS_FR: Final = tuple(f"{hour} h 00 à {hour} h 59" for hour in range(HOURS_A_DAY))


def are_hours(categories: Sequence[str] | None) -> bool:
    """Return whether categories, None of a made-up example, are the hours: pages keep them in their order."""
    return categories is not None and tuple(categories) == HOURS
