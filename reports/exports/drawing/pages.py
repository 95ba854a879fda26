"""Charts drawn on the server, vectors or pixels: what the page shows, in its order, measure and colours."""

from dataclasses import replace
from typing import Final

from django.utils.translation import gettext
from matplotlib.figure import Figure

from reports.base import formats
from reports.estimates import texts as estimates_texts
from reports.estimates.options import ReportOptions, ordered
from reports.estimates.queries import WindowReport
from reports.exports.drawing.bars import bounds, window_chart
from reports.exports.drawing.canvas import (
    ONE_AT_A_TIME,
    filled,
    letters_stay,
    plain_svg,
    png_bytes,
    svg_bytes,
    write_around,
)
from reports.exports.drawing.letters import legible, legible_selection, letters_note
from reports.exports.drawing.lines import days_chart, multiples_chart
from reports.exports.drawing.maps import map_chart, map_words, shows_map
from reports.exports.facts import as_mapping, software_words
from reports.exports.selection import Scope, Selection

MAX_ROWS: Final = 28  # categories of a window in one chart of a page
MAX_CATEGORIES: Final = 140  # of a window in one file: more are no picture, and take seconds


def to_png(selection: Selection) -> bytes:
    """Chart of a window or of the days, 1520 pixels wide."""
    with ONE_AT_A_TIME:
        metadata = {"Title": selection.title, "Software": software_words(), **_described(selection)}
        return png_bytes(_with_frame(selection), metadata=metadata)


def to_svg(selection: Selection) -> bytes:
    """Return the chart as vectors; letters are outlines, so that it looks the same everywhere."""
    with ONE_AT_A_TIME:
        metadata = {"Title": selection.title, "Creator": software_words(), **_described(selection)}
        return svg_bytes(_with_frame(selection), metadata=metadata)


def bare_svgs(selection: Selection, *, at_most: int = MAX_CATEGORIES) -> list[bytes]:
    """Return the chart alone, for pages with separate titles; many categories of a window are several charts.

    At most the first `at_most` categories of a window are drawn. Letters stay letters, of the font of
    `canvas`, so that they can be searched and copied.
    """
    with ONE_AT_A_TIME, letters_stay():
        no_room = (0.0, 0.0)
        if selection.scope == Scope.DAYS:
            figures = [_chart(selection, extra_in=no_room)]
        else:
            report, options = in_order(selection, at_most=at_most), selection.options
            limits = bounds(report, options=options)
            starts = range(0, len(report.estimates), MAX_ROWS)
            parts = [replace(report, estimates=report.estimates[at : at + MAX_ROWS]) for at in starts]
            figures = [window_chart(part, options=options, extra_in=no_room, limits=limits) for part in parts]
        return [plain_svg(figure) for figure in figures]


def in_order(selection: Selection, *, at_most: int = MAX_CATEGORIES) -> WindowReport:
    """The report of a window with its first `at_most` estimates as they are shown."""
    report = selection.reports[0]
    return replace(report, estimates=tuple(ordered(report, options=selection.options))[:at_most])


def cut_words(selection: Selection, *, at_most: int = MAX_CATEGORIES) -> str:
    """Say that a window has more categories than are drawn, and where they are; empty where it has not."""
    n_categories = len(selection.reports[0].estimates)
    if selection.scope != Scope.WINDOW or n_categories <= at_most:
        return ""
    return gettext(
        "Only the first %(n)d of %(all)d categories are shown. The data files (CSV, XLSX, JSON) contain "
        "all of them."
    ) % {"n": at_most, "all": n_categories}


def text_alternative(selection: Selection) -> str:
    """Describe the chart in words."""
    if selection.scope == Scope.WINDOW:
        return estimates_texts.report_summary(selection.reports[0], options=selection.options)
    name = selection.reports[0].indicator.shown_name
    return f"{name}{formats.colon()} {_what_is_drawn(selection)}. {_how_days_are_drawn(selection.values)}"


def _described(selection: Selection) -> dict[str, str]:
    facts = "; ".join(f"{name}: {value}" for name, value in as_mapping(selection).items())
    return {"Description": f"{text_alternative(selection)} {facts}"}


# --- frame ------------------------------------------------------------------------------------


def _with_frame(selection: Selection) -> Figure:
    """Chart with title, days and the small print that a chart out of its page needs."""
    drawn = legible_selection(selection)
    is_map = shows_map(selection)
    how = legible(map_words(selection)) if is_map else how_to_read(drawn)
    reading = (how, "" if is_map else cut_words(drawn), letters_note(selection))
    words = "\n".join([*(filled(text) for text in reading if text), filled(_small_print(drawn))])
    top_in, bottom_in = 0.72, 0.42 + 0.15 * (words.count("\n") + 1)
    # Zones are found by their names, which must be complete.
    draw, of = (map_chart, selection) if is_map else (_chart, drawn)
    figure = draw(of, extra_in=(top_in, bottom_in))
    subtitle = f"{drawn.study.shown_name} · {drawn.days_title}"
    title = drawn.reports[0].indicator.shown_name
    write_around(figure, title=title, subtitle=subtitle, words=words, words_in=bottom_in - 0.12)
    return figure


def how_to_read(selection: Selection) -> str:
    """Describe the subject and form of the chart, in a line."""
    if selection.scope == Scope.DAYS:
        how = _how_days_are_drawn(selection.values)
    elif selection.options.values == "consistent":
        how = gettext(
            "Bars show consistent values (adjusted estimates), for which no separate error is given. "
            "Lines show 95% intervals for the unbiased estimates. A pale bar means that the interval "
            "includes zero."
        )
    else:
        how = gettext(
            "Bars show estimates, and lines show 95% intervals. A pale bar means that the interval "
            "includes zero."
        )
    return " ".join(text for text in (f"{_what_is_drawn(selection)}.", how, _scaling(selection)) if text)


def _scaling(selection: Selection) -> str:
    if selection.measure == "frequency" or selection.study.market_share == 1:
        return ""
    return gettext(
        "Visitor numbers are scaled to the population, using the operator's market share of %(share)s."
    ) % {"share": formats.percent(float(selection.study.market_share))}


def _how_days_are_drawn(values: str) -> str:
    if values == "consistent":
        return gettext(
            "Points show consistent values (adjusted estimates), for which no separate error is given. Bands "
            "show the 95% intervals for the unbiased estimates of each day."
        )
    return gettext("Points show estimates. Bands show the 95% interval for each day.")


def _what_is_drawn(selection: Selection) -> str:
    """Heading of the values, as on the pages."""
    is_share = selection.measure == "frequency"
    if selection.scope == Scope.WINDOW:
        return gettext("Share of visitors") if is_share else gettext("Visitors")
    if selection.is_cumulative:
        if is_share:
            return gettext("Cumulative share of visitors since the first day")
        return gettext("Cumulative visitors since the first day")
    return gettext("Share of each day's visitors") if is_share else gettext("Visitors on each day")


def _small_print(selection: Selection) -> str:
    report = selection.reports[0]
    words = gettext(
        "Plan version %(version)d: %(mechanism)s, epsilon %(epsilon)s per answer, privacy unit %(unit)s. "
        "%(software)s. Days are in the time zone %(timezone)s."
    ) % {
        "version": report.plan_version,
        "mechanism": report.mechanism,
        "epsilon": formats.epsilon(report.epsilon),
        "unit": report.unit,
        "software": software_words(),
        "timezone": report.study.timezone,
    }
    return f"{size_words(selection)} {words}"


def size_words(selection: Selection) -> str:
    """Describe the number of reports: of the window, or on the days with fewest and most."""
    is_noisy = selection.study.presence is not None
    if selection.scope == Scope.WINDOW:
        report = selection.reports[0]
        text = gettext("%(reports)s answers from %(visitors)s visitors (both numbers are exact).")
        if is_noisy:
            text = gettext(
                "About %(reports)s answers from %(visitors)s visitors (both numbers contain noise)."
            )
        return text % {
            "reports": formats.counted(report.n_reports),
            "visitors": formats.counted(report.n_visitors),
        }
    text = gettext("%(least)s to %(most)s answers a day (exact counts).")
    if selection.is_cumulative:
        text = gettext("%(least)s to %(most)s answers, depending on the day (exact counts).")
    if is_noisy:
        text = gettext("About %(least)s to %(most)s answers a day (noisy counts).")
    if is_noisy and selection.is_cumulative:
        text = gettext("About %(least)s to %(most)s answers, depending on the day (noisy counts).")
    sizes = [report.n_reports for report in selection.reports if report.n_reports is not None] or [0]
    return text % {"least": formats.counted(min(sizes)), "most": formats.counted(max(sizes))}


def _chart(selection: Selection, *, extra_in: tuple[float, float]) -> Figure:
    if selection.scope == Scope.WINDOW:
        return window_chart(in_order(selection), options=selection.options, extra_in=extra_in)
    draw = multiples_chart if selection.days_options.form == "multiples" else days_chart
    options = ReportOptions(measure=selection.measure, values=selection.values)
    return draw(selection.reports, shown=selection.shown, options=options, extra_in=extra_in)
