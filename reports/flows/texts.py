"""Texts of flows: what is counted, what the list says, and cells of the tables."""

from collections.abc import Sequence

from django.utils.html import escape
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext

from reports.base import formats
from reports.base.status import Status
from reports.crosstab.queries import Figure
from reports.estimates.queries import mean_half_width
from reports.flows.queries import LARGEST, Flow, Flows
from reports.flows.visited import Visited


def people_title(flows: Flows) -> str:
    """Head of the column of figures."""
    if flows.pair.moves is not None:
        return gettext("Moves")
    return gettext("Visitor-days") if flows.of_days else gettext("Visitors")


def share_title(flows: Flows) -> str:
    """Head of the column of shares."""
    return gettext("Share of the total") if flows.pair.moves is None else gettext("Per 100 visitor-days")


def table_title(flows: Flows) -> str:
    """Title of the table of all pairs."""
    pair = flows.pair
    if pair.moves is not None:
        return gettext("Moves between zones")
    values = {"origin": pair.origin.name, "destination": pair.destination.name}
    return gettext("%(origin)s by %(destination)s") % values


def unit_words(flows: Flows) -> str:
    """Describe what the figures count."""
    if flows.pair.moves is not None:
        return gettext(
            "Each figure is a number of moves from one zone to another. Each visitor is treated as being "
            "outside all zones at the start and end of the day. If a person makes more than %(n)d moves in "
            "a day, these moves together count as only %(n)d. The figures therefore understate the moves "
            "of such people."
        ) % {"n": flows.pair.moves.per_day}
    if flows.of_days:
        return gettext(
            "Each figure is a number of visitor-days. A visitor is counted once for each day they are "
            "present, with the place that each of the two indicators gives for that day."
        )
    if flows.pair.is_daily:
        return gettext("Each figure is the number of visitors on this day.")
    return gettext(
        "Each figure is a number of visitors. Each visitor counts once, with one place for each of the two "
        "indicators."
    )


def error_words(flows: Flows) -> str:
    """Describe how intervals are computed."""
    if flows.pair.moves is not None:
        return gettext(
            "The 95% interval is shown below each figure. Only some visitors were asked, and each "
            "person reports only one randomly chosen move per day. The interval accounts for both "
            "facts and for the random noise. New noise is drawn every day, so the errors of several "
            "days partly cancel out."
        )
    if not flows.of_days:
        return gettext(
            "The 95% interval is shown below each figure. It accounts for the random noise and for the "
            "fact that only some visitors were asked. For totals, the interval uses the exact variance "
            "of the sum."
        )
    if flows.reports[0].is_stream:
        return gettext(
            "The 95% interval is shown below each figure. It is the sum of the intervals for the "
            "individual days. Each answer has new noise, but the same people may answer on several days, "
            "so the errors of these days can add up. The intervals are usually wider than necessary."
        )
    return gettext(
        "The 95% interval is shown below each figure. It is the sum of the intervals for the "
        "individual days. A person with the same places on several days repeats the same randomised "
        "answer, so the errors of these days can add up. The intervals are wide enough to allow for "
        "any such repetition, and are usually wider than necessary."
    )


def missing_words(flows: Flows | Visited) -> str:
    """Say that days are missing from the sums; empty if none is."""
    n = flows.n_days_missing
    if not n:
        return ""
    return ngettext(
        "%(n)d day has no figures and is not included in the sums.",
        "%(n)d days have no figures and are not included in the sums.",
        n,
    ) % {"n": n}


def list_words(flows: Flows) -> str:
    """Summarise the list of pairs, and say what is unknown of all others."""
    n, of_all = len(flows.listed), formats.number(flows.n_pairs)
    if not flows.is_reliable:
        text = gettext("The noise is too large to give reliable figures for the %(all)s pairs of places.")
        return f"{text % {'all': of_all}} {_few_answers(flows)}".strip()
    if not n:
        text = gettext(
            "The noise is too large to distinguish any of the figures for the %(all)s pairs of places from "
            "zero."
        )
        return f"{text % {'all': of_all}} {_few_answers(flows)}".strip()
    shown = (
        ngettext(
            "The figures for %(n)s of %(all)s pairs of places can be distinguished from zero.",
            "The figures for %(n)s of %(all)s pairs of places can be distinguished from zero.",
            n,
        )
        if n <= LARGEST
        else gettext(
            "The figures for %(n)s of %(all)s pairs of places can be distinguished from zero. The "
            "table shows the %(most)d largest figures."
        )
    ) % {"n": formats.number(n), "all": of_all, "most": LARGEST}
    rest = gettext("The probability that even one of these pairs is listed by mistake is at most 5%.")
    return f"{shown} {rest}"


def _few_answers(flows: Flows) -> str:
    """Say why no pair is listed: how many answers there are, and how accurate they are; empty for moves."""
    half_width = mean_half_width([each for row in flows.cells for each in row])
    if flows.pair.moves is not None or half_width is None:
        return ""
    return gettext(
        "There are %(n)s answers, so the share of each pair is only accurate to about ±%(width)s. More "
        "visitors, or fewer indicators that share them, would help."
    ) % {"n": formats.number(flows.n_reports), "width": formats.points(half_width)}


def moving_words(flows: Flows) -> list[str]:
    """Sentences on people whose two zones differ, and on those whose zones are the same, or on moves.

    None on figures that are not reliable.
    """
    pair = flows.pair
    if flows.moving is not None and flows.whole is not None:
        texts = (
            (gettext("All moves: %(figure)s."), flows.whole),
            (gettext("Moves between two zones: %(figure)s."), flows.moving),
        )
        return [text % {"figure": amount(each, of_moves=True)} for text, each in texts]
    values = {"origin": pair.origin.name, "destination": pair.destination.name}
    found = []
    if (moving := _reliable(flows.moving)) is not None:
        text = gettext("%(origin)s and %(destination)s in different zones: %(figure)s.")
        found.append(text % {**values, "figure": amount(moving, of_moves=False)})
    if (staying := _reliable(flows.staying)) is not None:
        text = gettext("Same zone for both %(origin)s and %(destination)s: %(figure)s.")
        found.append(text % {**values, "figure": amount(staying, of_moves=False)})
    if found:
        found.append(
            gettext(
                "Commuters who sleep in one zone and spend the day in another are among the people in "
                "different zones. Visitors on day trips are too: a night zone is not a home, and a day zone "
                "is not a workplace."
            )
        )
    return found


def _reliable(figure: Figure | None) -> Figure | None:
    return None if figure is None or figure.status == Status.NOT_RELIABLE else figure


def amount(figure: Figure, *, of_moves: bool) -> str:
    """A figure with its interval and its share in one line."""
    if figure.is_hidden:
        return formats.reason_words(figure)
    if figure.status != Status.OK:
        interval = formats.number_range(figure.visitors_ci_low, figure.visitors_ci_high)
        return f"{formats.blank_words(figure.status)} ({interval})"
    text = (
        gettext("%(people)s (%(range)s), %(share)s per 100 visitor-days")
        if of_moves
        else gettext("%(people)s (%(range)s), %(share)s of the total")
    )
    return text % {
        "people": formats.number(figure.visitors),
        "range": formats.number_range(figure.visitors_ci_low, figure.visitors_ci_high),
        "share": _per_100(figure.share) if of_moves else formats.percent(figure.share),
    }


def flow_names(flows: Flows, flow: Flow) -> tuple[str, str]:
    """Names of both places in the active language."""
    return flows.pair.origin.names[flow.origin], flows.pair.destination.names[flow.destination]


def people_cell(figure: Figure, *, is_listed: bool = True) -> SafeString:
    """Cell of people with their interval; faded unless listed."""
    return people_cells([figure], is_listed=[is_listed])[0]


def people_cells(figures: Sequence[Figure], *, is_listed: Sequence[bool]) -> list[SafeString]:
    """`people_cell` of each figure; in Python and together, since there are thousands."""
    filled = [each for each in figures if _is_filled(each)]
    people = formats.numbers(each.visitors or 0.0 for each in filled)
    ranges = formats.number_ranges((each.visitors_ci_low, each.visitors_ci_high) for each in filled)
    texts = zip(people, ranges, strict=True)
    return [
        _filled_cell(*next(texts), is_listed=listed) if _is_filled(each) else _blank_cell(each)
        for each, listed in zip(figures, is_listed, strict=True)
    ]


def _is_filled(figure: Figure) -> bool:
    return figure.status == Status.OK and figure.visitors is not None and figure.below is None


def _filled_cell(people: str, interval: str, *, is_listed: bool) -> SafeString:
    faded = "" if is_listed else " crosstab-0"
    # Numbers, and the words between two, have nothing to escape.
    return SafeString(f'<td class="number{faded}">{people}<br><span class="small">{interval}</span></td>')


def _blank_cell(figure: Figure) -> SafeString:
    """Cell without people: the reason, and the interval if it may be shown."""
    if figure.below is not None:
        return SafeString(f'<td class="number crosstab-0">&lt;{formats.number(figure.below)}</td>')
    interval = formats.number_range(figure.visitors_ci_low, figure.visitors_ci_high)
    sign, word = formats.status_sign(figure.status), formats.status_word(figure.status)
    return SafeString(
        f'<td class="number crosstab-0"><span aria-hidden="true">{escape(sign)}</span>'
        f'<span class="visually-hidden">{escape(word)}</span>'
        f'<br><span class="small">{escape("" if figure.is_hidden else interval)}</span></td>'
    )


def share_cell(figure: Figure | None, *, of_moves: bool = False) -> SafeString:
    """Cell of a share with its interval; of moves, of how many there are per 100 visitor-days."""
    if figure is None or figure.share is None or figure.status != Status.OK:
        return no_cell()
    interval, share = formats.percent_range(figure.ci_low, figure.ci_high), formats.percent(figure.share)
    if of_moves:
        ends = {"low": _per_100(figure.ci_low), "high": _per_100(figure.ci_high)}
        interval, share = gettext("%(low)s to %(high)s") % ends, _per_100(figure.share)
    interval, share = escape(interval), escape(share)
    return SafeString(f'<td class="number">{share}<br><span class="small">{interval}</span></td>')


def no_cell() -> SafeString:
    """Cell without a figure."""
    return SafeString(f'<td class="number">{formats.MISSING}</td>')


def _per_100(share: float | None) -> str:
    return formats.MISSING if share is None else formats.decimal(100 * share, decimals=1)
