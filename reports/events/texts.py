"""Words of pages about events."""

from django.utils.translation import gettext

from reports.estimates.options import Switch
from reports.events.periods import PERIODS, PeriodKind


def period_switches(kind: PeriodKind, *, kept: str = "") -> list[Switch]:
    """Return links to each kind of period; every address keeps `kept`."""
    links = tuple(
        (period_label(each), "&".join(filter(None, (f"period={each}", kept))), each == kind)
        for each in PERIODS
    )
    return [Switch(title=gettext("Period"), links=links)]


def period_label(kind: PeriodKind) -> str:
    """Name of a kind of period in a menu."""
    return {
        "day": gettext("Days"),
        "week": gettext("ISO weeks"),
        "month": gettext("Months"),
        "quarter": gettext("Quarters"),
        "year": gettext("Years"),
    }[kind]


def shares_words() -> str:
    """Explain points and bands of shares by period."""
    return gettext(
        "Points show estimates, and bands show their 95% intervals. Each period is the sum of its days, not "
        "a mean of daily shares."
    )
