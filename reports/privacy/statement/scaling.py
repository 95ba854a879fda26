"""Market shares by category in the statement: what totals of the population are scaled by."""

from typing import Any

from django.utils.translation import gettext

from reports.studies.models import Study


def scaling_words() -> str:
    """Explain why scaled totals do not change epsilon."""
    return gettext(
        "Totals of the population are computed from published estimates and the market shares below. This is "
        "post-processing: it does not use the data of individual people, and does not change epsilon."
    )


def scaling_facts(study: Study) -> dict[str, Any]:
    """Describe the market shares by category, with their names and days; nothing without any."""
    if not study.category_shares:
        return {}
    return {"extrapolation": {"effect": scaling_words(), "market_shares": study.category_shares}}
