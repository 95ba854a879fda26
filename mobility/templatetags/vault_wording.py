"""Filters for batches, days and rows; the words themselves are in `mobility.batches.texts`."""

from collections.abc import Mapping

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from mobility.batches import texts
from mobility.batches.quality import words
from mobility.batches.queries import StudyDay
from mobility.vault.models.batch import Batch

register = template.Library()
register.filter(texts.batch_days)
register.filter(texts.batch_title)
register.filter(texts.size_of)
register.filter(texts.source_words)
register.filter(words.moment)
register.filter(words.part_of_all)


@register.filter
def batch_badge(batch: Batch) -> SafeString:
    """State of a batch."""
    return _badge(*texts.state_of(batch))


@register.filter
def day_badge(day: StudyDay) -> SafeString:
    """State of a day."""
    if not day.state:
        return _badge(texts.NO_DATA, "badge--none")
    return _badge(texts.DAY_STATES[day.state], texts.DAY_BADGES[day.state])


@register.filter
def total_rows(outcomes: dict[str, int]) -> int:
    """Rows of all reasons together."""
    return sum(outcomes.values())


@register.filter
def reason_words(reason: str, of_events: object = None) -> str:
    """Reasons for unused rows."""
    return texts.row_reason(reason, of_events=bool(of_events))


@register.filter
def file_words(fact: str) -> str:
    """Delimiter, encoding or compression of a file."""
    return str(texts.SOURCES[fact])


@register.filter
def noted(notes: Mapping[str, int]) -> list[tuple[str, int]]:
    """Notes in words with their counts, without those that count nothing."""
    return [(str(texts.NOTES[name]), n) for name, n in notes.items() if n]


def _badge(text: object, css: object) -> SafeString:
    return format_html('<span class="badge {}">{}</span>', css, text)
