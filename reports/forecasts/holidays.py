"""Public holidays, which forecasts count as Sundays where MOBILITY_HOLIDAYS asks for it."""

from datetime import date, timedelta
from functools import cache
from importlib.resources import files
from typing import Final

from django.conf import settings

SUNDAY: Final = 6
OF_TIME_ZONE: Final = "timezone"


def country_of(timezone: str) -> str:
    """Country of a study: of the setting, or of its time zone; empty where there is none."""
    asked = str(settings.MOBILITY_HOLIDAYS)
    return _countries().get(timezone, "") if asked == OF_TIME_ZONE else asked


def holidays_between(first: date, days: int, *, timezone: str) -> frozenset[date]:
    """Public holidays of `days` days from `first`; none without a setting, or of unknown countries."""
    country = country_of(timezone)
    if not country:
        return frozenset()
    import holidays  # noqa: PLC0415 - takes time that only this setting is worth

    if country not in holidays.list_supported_countries():
        return frozenset()
    wanted = {first + timedelta(days=day) for day in range(days)}
    found = holidays.country_holidays(country, years={day.year for day in wanted})
    return frozenset(wanted & set(found))


@cache
def _countries() -> dict[str, str]:
    """Two letters of the country of each time zone that belongs to one."""
    table = files("tzdata").joinpath("zoneinfo", "zone.tab").read_text(encoding="utf-8")
    rows = [line.split("\t") for line in table.splitlines() if not line.startswith("#")]
    return {row[2]: row[0] for row in rows}
