"""Filters for numbers, days, epsilons and estimates; the words themselves are in `reports.base.formats`."""

from collections.abc import Sequence
from html import escape

from django import template
from django.conf import settings
from django.utils.safestring import SafeString
from django.utils.translation import gettext, pgettext

from ldp.estimation.noisy_estimators import NoisyTotal
from reports.base import formats
from reports.base.status import Status
from reports.estimates import texts as estimates_texts
from reports.estimates.options import shown_visitors
from reports.estimates.queries import Estimate, WindowReport
from reports.studies import texts as studies_texts
from reports.studies.labels import label_of

register = template.Library()
register.filter("label_for", label_of)
for function in (
    formats.compact,
    formats.counted,
    formats.day_title,
    formats.long_day,
    formats.epsilon,
    formats.noisy_number,
    formats.noisy_range,
    formats.number,
    formats.odds,
    formats.percent,
    formats.plus_minus,
    studies_texts.plan_points,
    studies_texts.invented_words,
    formats.points,
    estimates_texts.below_zero_words,
    estimates_texts.category_notes,
    estimates_texts.present_words,
    estimates_texts.share_range,
    formats.short_day,
    formats.short_month,
    formats.status_sign,
    formats.status_word,
    studies_texts.tallies_words,
    formats.time_title,
    estimates_texts.visitors_range,
    studies_texts.visitors_title,
):
    register.filter(function)


register.simple_tag(formats.colon)


@register.simple_tag
def second_person_days() -> int:
    """Days for which an account counts as belonging to anyone who created or changed it."""
    return settings.MOBILITY_SECOND_PERSON_DAYS


@register.filter
def share_cell(estimate: Estimate) -> SafeString:
    """Share and interval for a cell of a table; a blank has its sign and its word."""
    return _cells([estimate], "frequency")[0]


@register.filter
def visitors_cell(estimate: Estimate) -> SafeString:
    """Visitors and interval, as `share_cell`."""
    return _cells([estimate], "visitors")[0]


@register.filter
def estimate_cells(row: Sequence[tuple[str, Estimate, float | None]], measure: str) -> SafeString:
    """Cells of a category over many days, each with the head of its column; a page has 1,200 of them."""
    cells = _cells([estimate for _, estimate, _ in row], measure, values=[value for *_, value in row])
    return SafeString(
        "".join(
            f'<td class="number" data-head="{escape(head)}">{cell}</td>'
            for (head, *_), cell in zip(row, cells, strict=True)
        )
    )


@register.simple_tag
def report_heads(report: WindowReport, measure: str) -> list[str]:
    """Heads of the columns of a report's table, but the first."""
    if report.cuts:
        answers = gettext("Answers at or above the threshold")
    elif report.is_unary:
        answers = gettext("Answers that mark the category")
    else:
        answers = pgettext("answers", "Answers received")
    consistent = gettext("Consistent visitors") if measure == "visitors" else gettext("Consistent share")
    return [consistent, gettext("Unbiased share"), gettext("Visitors (unbiased)"), answers]


@register.simple_tag
def report_rows(
    report: WindowReport, estimates: Sequence[Estimate], heads: Sequence[str], measure: str
) -> SafeString:
    """Rows of a report's table, in Python and not in a template: a page may have thousands of them."""
    # Presence noise alone can make a count negative.
    answers = formats.numbers(None if each.reports is None else max(each.reports, 0) for each in estimates)
    starts = [f'<td class="number" data-head="{escape(head)}">' for head in heads]
    columns = (
        consistent_cells(report, estimates, measure),
        _cells(estimates, "frequency"),
        _cells(estimates, "visitors"),
        map(escape, answers),
    )
    return SafeString(
        "".join(
            f'<tr><th scope="row">{escape(estimate.shown_category)}</th>'
            f"{''.join(f'{start}{cell}</td>' for start, cell in zip(starts, cells, strict=True))}</tr>"
            for estimate, *cells in zip(estimates, *columns, strict=True)
        )
    )


def consistent_cells(report: WindowReport, estimates: Sequence[Estimate], measure: str) -> list[SafeString]:
    """Consistent values, which have no interval; a blank has its sign alone: its row has the word."""
    if measure == "visitors":
        shown = [shown_visitors(report, each, values="consistent").value for each in estimates]
        figures = formats.numbers(shown)
    else:
        figures = formats.percents([each.consistent for each in estimates])
    return [
        SafeString(escape(figure)) if each.status == Status.OK else blank(each.status, is_quiet=True)
        for each, figure in zip(estimates, figures, strict=True)
    ]


@register.filter
def noisy_cell(total: NoisyTotal) -> SafeString:
    """A noisy number of visitors, not below none, and its interval."""
    return with_interval(escape(formats.noisy_number(total)), formats.noisy_range(total))


@register.filter
def visitors_of(report: WindowReport) -> SafeString:
    """Visitors of a window: exact, or noisy with an interval; else sign and word of the blank."""
    if report.noisy_visitors is not None:
        return noisy_cell(report.noisy_visitors)
    return blank(report.status) if report.n_visitors == 0 else total_cell(report.n_visitors, report.status)


@register.filter
def reports_of(report: WindowReport) -> SafeString:
    """Answers of a window, as `visitors_of`; noise alone can make them negative."""
    if report.noisy_visitors is not None and report.n_reports is not None:
        return total_cell(max(report.n_reports, 0), report.status)
    return blank(report.status) if report.n_visitors == 0 else total_cell(report.n_reports, report.status)


@register.filter
def total_cell(total: int | None, status: str) -> SafeString:
    """An exact number; where there is none, sign and word of the blank."""
    return blank(status) if total is None else SafeString(escape(formats.number(total)))


def _cells(
    estimates: Sequence[Estimate], measure: str, *, values: Sequence[float | None] | None = None
) -> list[SafeString]:
    """Cells in Python and not in a template, all at once: a page may have thousands of these.

    values : shown instead of the unbiased ones, above the intervals of these
    """
    if measure == "visitors":
        figures = formats.numbers(values or [each.visitors for each in estimates])
        intervals = formats.number_ranges((each.visitors_ci_low, each.visitors_ci_high) for each in estimates)
    else:
        figures = formats.percents(values or [each.frequency for each in estimates])
        intervals = formats.percent_ranges((each.ci_low, each.ci_high) for each in estimates)
    return [_cell(*each, measure) for each in zip(estimates, figures, intervals, strict=True)]


def _cell(estimate: Estimate, figure: str, interval: str, measure: str) -> SafeString:
    if estimate.below is not None:
        words = formats.reason_words(estimate)
        return _small(f"<{formats.number(estimate.below)}" if measure == "visitors" else words)
    shown = escape(figure) if estimate.status == Status.OK else blank(estimate.status)
    return SafeString(shown) if estimate.frequency is None else with_interval(shown, interval)


def with_interval(shown: str, interval: str) -> SafeString:
    """A number, as HTML, with its interval below."""
    return SafeString(f'{shown}<br><span class="muted small">{escape(interval)}</span>')


def _small(words: str) -> SafeString:
    return SafeString(f'<span class="blank">{escape(words)}</span>')


def blank(status: str, *, is_quiet: bool = False) -> SafeString:
    """Say why there is no number by a sign and a word; only screen readers get the word where it is quiet."""
    sign, word = escape(formats.status_sign(status)), escape(formats.status_word(status))
    if is_quiet:
        word = SafeString(f'<span class="visually-hidden">{word}</span>')
    return SafeString(
        f'<span class="blank"><span class="blank__sign" aria-hidden="true">{sign}</span>{word}</span>'
    )
