"""Filters for losses."""

from decimal import Decimal

from django import template

from reports.privacy.budget.texts import slots_sum_words, spent_words

register = template.Library()
register.filter("spent", spent_words)
register.filter("slots_sum", slots_sum_words)


@register.filter
def loss(text: str | None) -> str:
    """A loss as a statement writes it, rounded up for people."""
    return spent_words(None if text is None else Decimal(text))
