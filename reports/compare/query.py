"""Sides of a comparison, read from an address: a page and its files mean the same by the same words."""

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from django.http import QueryDict
from django.utils.translation import gettext

from ldp.estimation.windows import Quantity
from reports.base import formats
from reports.compare import queries
from reports.compare.queries import Comparison, Kind
from reports.estimates.picker import requested_window, window_in_address
from reports.estimates.queries import Counts, Window, WindowError, shown_visitors, visitor_unions
from reports.studies.models import Indicator, Study

Asked = dict[str, Any]
# Parameters required before there is something to compare.
_NEEDED: Final = {
    Kind.WINDOWS: ("from", "with_from"),
    Kind.CATEGORIES: ("from", "reference"),
    Kind.BASELINE: ("from",),
    Kind.STUDIES: ("from", "with"),
}


class AddressError(ValueError):
    """An address that names something there is not; the text is for people."""


def kind_of(query: QueryDict) -> Kind:
    """Return the compared kind; windows if the address names none, or something else."""
    text = query.get("kind", "")
    return Kind(text) if text in list(Kind) else Kind.WINDOWS


def measure_of(query: QueryDict) -> Quantity:
    """Shares, unless the address asks for visitors."""
    return "visitors" if query.get("measure") == "visitors" else "frequency"


def is_complete(query: QueryDict, kind: Kind) -> bool:
    """Return whether the address names both sides."""
    return all(query.get(name) for name in _NEEDED[kind])


def with_defaults(query: QueryDict, kind: Kind, indicator: Indicator) -> QueryDict:
    """Add two windows to an address that names none, and the other one to an address that names one.

    Of a whole study: its last day with visitors, compared with the first; of another day: with the first one,
    too; else the longer of the periods before and after the window.
    """
    study = indicator.study
    if kind != Kind.WINDOWS or query.get("with_from") or study.days == 1:
        return query
    visitors = visitor_unions(study)
    window = requested_window(query, indicator=indicator, visitors=visitors)
    early, late = _ends(study, visitors)
    if window_in_address(query, study) is None or window.days == study.days:
        window, other = late, early
    elif window.days == 1:
        other = late if window == early else early
    else:
        before, after = (1, window.first_day - 1), (window.last_day + 1, study.days)
        other = Window(*max(before, after, key=lambda days: days[1] - days[0]))
    sides = {"from": window.first_day, "to": window.last_day}
    sides |= {"with_from": other.first_day, "with_to": other.last_day}
    filled = query.copy()
    for name, day in sides.items():
        filled[name] = study.date_of(day).isoformat()
    return filled


def is_whole(query: QueryDict, study: Study) -> bool:
    """Return whether an address names all days of the study: there are none to compare them with."""
    asked = window_in_address(query, study)
    return asked is not None and asked.days == study.days


def _ends(study: Study, visitors: Counts) -> tuple[Window, Window]:
    """First and last day whose visitors are shown; of the study, where there are no two."""
    shown = [day for day in range(1, study.days + 1) if shown_visitors(study, int(visitors[day, day]))]
    first, last = (shown[0], shown[-1]) if len(shown) > 1 else (1, study.days)
    return Window(first, first), Window(last, last)


def asked_of(query: QueryDict, kind: Kind, *, indicator: Indicator, others: Sequence[Indicator]) -> Asked:
    """Comparison in an address, checked; only windows have a default.

    `others` are the comparable indicators, where studies are compared. AddressError or WindowError if the
    address names something that there is not.
    """
    visitors = visitor_unions(indicator.study)
    asked: dict[str, Any] = {"window": requested_window(query, indicator=indicator, visitors=visitors)}
    if kind == Kind.WINDOWS:
        asked["with_window"] = _with_window(query, indicator, visitors=visitors)
    elif kind == Kind.CATEGORIES:
        n = len(indicator.categories)
        asked["category"] = _number(query.get("category"), below=n) if query.get("category") else None
        asked["reference"] = _number(query.get("reference") or "0", below=n)
    elif kind == Kind.BASELINE:
        day = asked["window"].first_day
        if query.get("from") and asked["window"].days > 1:
            raise AddressError(gettext("Only a single day can be compared with a baseline."))
        days = [_number(text, below=indicator.study.days + 1) for text in query.getlist("day")]
        asked |= {"window": Window(day, day), "baseline": days or None}
    elif others or query.get("with"):
        asked["other"] = _other(query, others)
        unions = visitor_unions(asked["other"].study)
        asked["with_window"] = _with_window(query, asked["other"], visitors=unions)
    return asked


def compared(kind: Kind, indicator: Indicator, asked: Mapping[str, Any], *, of: Quantity) -> Comparison:
    """The comparison that was asked for; raises what the functions of `reports.compare.queries` do."""
    window: Window = asked["window"]
    if kind == Kind.WINDOWS:
        return queries.compare_windows(indicator, window, asked["with_window"], of=of)
    if kind == Kind.CATEGORIES:
        return queries.compare_categories(
            indicator, window, reference=asked["reference"], category=asked["category"], of=of
        )
    if kind == Kind.BASELINE:
        return queries.compare_baseline(indicator, window.first_day, baseline=asked["baseline"], of=of)
    return queries.compare_studies(
        indicator, window, other=asked["other"], other_window=asked["with_window"], of=of
    )


def name_of(indicator: Indicator) -> str:
    """An indicator of another study, in an address."""
    return f"{indicator.study.slug}/{indicator.slug}"


def address_error(error: AddressError | WindowError, indicator: Indicator) -> str:
    """Why an address cannot be read, for people."""
    if isinstance(error, AddressError):
        return str(error)
    return gettext("The study covers %(first)s to %(last)s, but the link asks for other dates.") % {
        "first": formats.day_title(indicator.study.first_day),
        "last": formats.day_title(indicator.study.last_day),
    }


def _with_window(query: QueryDict, indicator: Indicator, *, visitors: Counts) -> Window:
    words = {"from": query.get("with_from", ""), "to": query.get("with_to", "")}
    return requested_window(QueryDict(urlencode(words)), indicator=indicator, visitors=visitors)


def _other(query: QueryDict, others: Sequence[Indicator]) -> Indicator:
    text = query.get("with", "")
    for other in others:
        if not text or text == name_of(other):
            return other
    raise AddressError(
        gettext("There is no indicator named %(name)s with the same categories.") % {"name": text[:80]}
    )


def _number(text: str | None, *, below: int) -> int:
    if text is None or not (text.isascii() and text.isdecimal() and len(text) <= 5 and int(text) < below):
        raise AddressError(
            gettext(
                "Numbers in the page address must be from 0 to %(largest)d, but the address contains "
                "%(text)s."
            )
            % {"largest": below - 1, "text": (text or "")[:40]}
        )
    return int(text)
