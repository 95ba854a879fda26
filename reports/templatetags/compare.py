"""Cells of a table of comparison: in Python and not in templates, since there may be a hundred rows."""

from html import escape

from django import template
from django.utils.safestring import SafeString

from ldp.estimation.windows import Quantity
from reports.base import formats
from reports.base.status import Status
from reports.compare import texts
from reports.compare.queries import Row, Value, Verdict
from reports.templatetags.wording import blank, with_interval

register = template.Library()


@register.filter
def difference_cell(row: Row, of: Quantity) -> SafeString:
    """A difference with its interval; a sign and a word where it is not reliable."""
    shown = SafeString(f"<strong>{escape(texts.change(row, of))}</strong>")
    return with_interval(shown if row.status == Status.OK else blank(row.status), texts.change_range(row, of))


@register.filter
def value_cell(value: Value, of: Quantity) -> SafeString:
    """One of the two sides with its interval; a sign and a word where it is not reliable."""
    shown = escape(formats.amount(value.value, of))
    return with_interval(
        shown if value.status == Status.OK else blank(value.status), texts.value_range(value, of)
    )


@register.filter
def verdict_cell(verdict: Verdict) -> SafeString:
    """A sign and a word."""
    sign, word = texts.verdict_sign(verdict), escape(texts.verdict_word(verdict))
    kind = "muted small" if verdict == Verdict.NOT_SHOWN else "badge badge--accent"
    return SafeString(f'<span class="{kind}"><span aria-hidden="true">{sign}</span> {word}</span>')
