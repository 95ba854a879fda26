"""Texts of flows: what is counted, what the list says, and cells of the tables."""

from django.utils.html import escape
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext

from reports.base import formats
from reports.base.status import Status
from reports.crosstab.queries import Figure
from reports.flows.queries import LARGEST, Flow, Flows


def unit_words(flows: Flows) -> str:
    """Describe what the figures count."""
    if flows.of_days:
        return gettext(
            "Figures are visitor-days: a visitor who is present on several days counts on each of them, with "
            "the places of that day."
        )
    if flows.pair.is_daily:
        return gettext("Figures are numbers of visitors on this day.")
    return gettext("Figures are numbers of visitors. Each visitor counts once, with one place of each kind.")


def error_words(flows: Flows) -> str:
    """Describe how intervals are computed."""
    if not flows.of_days:
        return gettext(
            "The 95% interval is shown below each figure. It accounts for the random noise and for the "
            "fact that only some visitors were asked. For totals, the interval uses the exact variance "
            "of the sum."
        )
    return gettext(
        "The 95% interval is shown below each figure. It is the sum of the intervals for the individual "
        "days. A person who has the same places on several days repeats the same randomised answer, so "
        "the errors of the days can add up. The intervals are wide enough for any such repetition, and "
        "are usually wider than necessary."
    )


def missing_words(flows: Flows) -> str:
    """Say that days are missing from the sums; empty if none is."""
    n = flows.n_days_missing
    if not n:
        return ""
    return ngettext(
        "%(n)d day has no figures and is not part of the sums.",
        "%(n)d days have no figures and are not part of the sums.",
        n,
    ) % {"n": n}


def list_words(flows: Flows) -> str:
    """Summarise the list of pairs, and say what is unknown of all others."""
    n, rows, columns = len(flows.listed), len(flows.cells) - 1, len(flows.cells[0]) - 1
    if not n:
        return gettext(
            "None of the %(all)s pairs of places can be distinguished from zero, because the noise is "
            "too large."
        ) % {"all": formats.number(rows * columns)}
    shown = (
        ngettext(
            "%(n)s of %(all)s pairs of places can be distinguished from zero.",
            "%(n)s of %(all)s pairs of places can be distinguished from zero.",
            n,
        )
        if n <= LARGEST
        else gettext(
            "%(n)s of %(all)s pairs of places can be distinguished from zero. The table shows the "
            "%(most)d largest pairs."
        )
    ) % {"n": formats.number(n), "all": formats.number(rows * columns), "most": LARGEST}
    rest = gettext(
        "The other pairs cannot be distinguished from zero. The probability that any pair is listed by "
        "mistake is at most 5%."
    )
    return f"{shown} {rest}"


def moving_words(flows: Flows) -> list[str]:
    """Sentences on people whose two zones differ, and on those whose zones are the same."""
    pair = flows.pair
    values = {"origin": pair.origin.name, "destination": pair.destination.name}
    found = []
    if flows.moving is not None:
        text = gettext("%(origin)s and %(destination)s are different zones: %(figure)s.")
        found.append(text % {**values, "figure": amount(flows.moving)})
    if flows.staying is not None:
        text = gettext("%(origin)s and %(destination)s are the same zone: %(figure)s.")
        found.append(text % {**values, "figure": amount(flows.staying)})
    return found


def amount(figure: Figure) -> str:
    """A figure with its interval and its share in one line."""
    if figure.status != Status.OK:
        interval = formats.number_range(figure.visitors_ci_low, figure.visitors_ci_high)
        return f"{formats.blank_words(figure.status)} ({interval})"
    return gettext("%(people)s (%(range)s), %(share)s of the total") % {
        "people": formats.number(figure.visitors),
        "range": formats.number_range(figure.visitors_ci_low, figure.visitors_ci_high),
        "share": formats.percent(figure.share),
    }


def flow_names(flows: Flows, flow: Flow) -> tuple[str, str]:
    """Names of both places in the active language."""
    return flows.pair.origin.names[flow.origin], flows.pair.destination.names[flow.destination]


def people_cell(figure: Figure, *, is_listed: bool = True) -> SafeString:
    """Cell of people with their interval; in Python, since there are thousands. Faded unless listed."""
    interval = escape(formats.number_range(figure.visitors_ci_low, figure.visitors_ci_high))
    if figure.status != Status.OK or figure.visitors is None:
        sign, word = formats.status_sign(figure.status), formats.status_word(figure.status)
        return SafeString(
            f'<td class="number crosstab-0"><span aria-hidden="true">{escape(sign)}</span>'
            f'<span class="visually-hidden">{escape(word)}</span>'
            f'<br><span class="small">{interval}</span></td>'
        )
    faded = "" if is_listed else " crosstab-0"
    people = escape(formats.number(figure.visitors))
    return SafeString(f'<td class="number{faded}">{people}<br><span class="small">{interval}</span></td>')


def share_cell(figure: Figure | None) -> SafeString:
    """Cell of a share with its interval."""
    if figure is None or figure.share is None or figure.status != Status.OK:
        return SafeString(f'<td class="number">{formats.MISSING}</td>')
    interval = escape(formats.percent_range(figure.ci_low, figure.ci_high))
    share = escape(formats.percent(figure.share))
    return SafeString(f'<td class="number">{share}<br><span class="small">{interval}</span></td>')
