"""Days and windows to choose from: in Python and not in templates, since a page may have hundreds."""

from collections.abc import Iterable
from datetime import date
from html import escape

from django import template
from django.utils.safestring import SafeString

from reports.base import formats
from reports.estimates.picker import Choice

register = template.Library()


@register.simple_tag
def day_options(days: Iterable[date], selected: date | None) -> SafeString:
    """Options of a list of days; none is selected if there is no such day."""
    return SafeString(
        "".join(
            f'<option value="{day}"{" selected" if day == selected else ""}>'
            f"{escape(formats.day_title(day))}</option>"
            for day in days
        )
    )


@register.filter
def window_cell(choice: Choice | None) -> SafeString:
    """Cell of a window with its visitors, a link to its page; empty if the study has no such window."""
    return SafeString("<td></td>") if choice is None else _cell(choice)


@register.filter
def day_cell(choice: Choice | None) -> SafeString:
    """Cell of a calendar, as `window_cell`, with its day."""
    if choice is None:
        return SafeString("<td></td>")
    day = f'<span class="triangle__day">{escape(formats.short_day(choice.day))}</span>'
    return _cell(choice, kind=' class="is-inside"' if choice.is_inside else "", day=day)


def _cell(choice: Choice, *, kind: str = "", day: str = "") -> SafeString:
    title = escape(choice.title)
    selected, current = (' aria-selected="true"', ' aria-current="true"') if choice.is_current else ("", "")
    return SafeString(
        f'<td{kind}{selected}><a href="?{escape(choice.query)}" title="{title}"{current}>{day}'
        f'{escape(formats.compact(choice.visitors))}<span class="visually-hidden"> {title}</span></a></td>'
    )
