"""Letters that the one font of charts and PDF reports lacks: replaced where they would be drawn, and said so.

The font knows Latin, Greek, Cyrillic, Arabic and more, but no Chinese, Japanese or Korean, and no dependency
brings one that does. Data files and the metadata of drawn files have all names as they are.
"""

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import cache
from unicodedata import bidirectional

from django.utils.translation import gettext
from fpdf.bidi import BidiParagraph, auto_detect_base_direction
from matplotlib.ft2font import FT2Font

from reports.estimates.models import DayNote
from reports.estimates.queries import WindowReport
from reports.exports.drawing.canvas import fonts
from reports.exports.selection import Selection
from reports.studies.models import Indicator, Study

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def legible(text: str) -> str:
    """Text in which each letter that the font lacks is REPLACEMENT."""
    known = _letters()
    return "".join(letter if letter in known or letter.isspace() else REPLACEMENT for letter in text)


def legible_visual(text: str) -> str:
    """Both `legible` and `visual`."""
    return visual(legible(text))


def visual(text: str) -> str:
    """Text in the order in which it is seen, for a library that draws everything from left to right."""
    if not any(bidirectional(letter) in ("R", "AL") for letter in text):
        return text
    return BidiParagraph(text=text, base_direction=auto_detect_base_direction(text)).get_reordered_string()


def legible_selection(selection: Selection, *, write: Callable[[str], str] = legible) -> Selection:
    """The selection with names that can be drawn; the same object where all can be.

    A category whose name loses letters gets its place in the plan behind it, so that two remain two.
    `write` makes a text one that can be drawn; `legible_visual` does so for PDF.
    """
    study = copy(selection.study)
    study.name, study.name_fr = write(study.shown_name), None
    indicators = {report.indicator.pk: report.indicator for report in selection.reports}
    drawn = {pk: _indicator(indicator, study, write=write) for pk, indicator in indicators.items()}
    reports = tuple(
        _report(report, drawn[report.indicator.pk], study, write=write) for report in selection.reports
    )
    found = replace(selection, study=study, reports=reports)
    return selection if _names(found) == _names(selection) else found


def letters_note(selection: Selection) -> str:
    """Explain REPLACEMENT in a line; empty where every name can be drawn."""
    if legible_selection(selection) is selection:
        return ""
    return gettext(
        "%(sign)s stands for a character that is missing from the font of this file. Data files (CSV, "
        "XLSX, JSON) contain the full names. A number in brackets after a name is the position of the "
        "category in those files."
    ) % {"sign": REPLACEMENT}


@cache
def _letters() -> frozenset[str]:
    """Letters of both styles that names are written in."""
    files = fonts()
    maps = [FT2Font(str(files[style])).get_charmap() for style in ("", "B")]
    return frozenset(chr(code) for code in set(maps[0]) & set(maps[1]))


def _indicator(indicator: Indicator, study: Study, *, write: Callable[[str], str]) -> Indicator:
    found = copy(indicator)
    found.study = study
    found.name, found.name_fr = write(indicator.shown_name), None
    found.categories_fr = None
    found.categories = [
        _category(name, place, write=write) for place, name in enumerate(indicator.shown_categories, start=1)
    ]
    return found


def _category(name: str, place: int, *, write: Callable[[str], str]) -> str:
    return write(name) if legible(name) == name else f"{write(name)} ({place})"


def _report(
    report: WindowReport, indicator: Indicator, study: Study, *, write: Callable[[str], str]
) -> WindowReport:
    estimates = zip(report.estimates, indicator.categories, strict=True)
    return replace(
        report,
        study=study,
        indicator=indicator,
        estimates=tuple(
            estimate._replace(category=category, category_fr=None) for estimate, category in estimates
        ),
        notes=tuple(_note(note, write=write) for note in report.notes),
    )


def _note(note: DayNote, *, write: Callable[[str], str]) -> DayNote:
    found = copy(note)
    found.text = write(note.text)
    return found


def _names(selection: Selection) -> list[str]:
    """All texts that people wrote."""
    texts = [selection.study.shown_name]
    for report in selection.reports:
        texts += [report.indicator.shown_name, *(estimate.shown_category for estimate in report.estimates)]
        texts += [note.text for note in report.notes]
    return texts
