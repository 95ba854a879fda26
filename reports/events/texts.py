"""Words of pages about events."""

from django.utils.translation import gettext

from reports.events.periods import PeriodKind


def period_label(kind: PeriodKind) -> str:
    """Name of a kind of period in a menu."""
    return {
        "day": gettext("Days"),
        "week": gettext("ISO weeks"),
        "month": gettext("Months"),
        "quarter": gettext("Quarters"),
        "year": gettext("Years"),
    }[kind]
