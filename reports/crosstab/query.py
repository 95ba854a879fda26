"""The view in an address: a joint indicator, days, rows and columns, and the categories of a question."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, get_args
from urllib.parse import urlencode

from django.http import QueryDict
from django.utils.translation import gettext

from ldp.estimation.joint.crosstab import Base
from reports.crosstab.joints import Joint, Part
from reports.estimates.options import VALUES, VALUES_CHOICES, asked_values
from reports.estimates.picker import requested_window, window_query
from reports.estimates.queries import Counts, Window, WindowError, check_union

INDICATOR: Final = "indicator"
ROWS, COLUMNS, WITHIN, SHARES, NO_VALUE = "rows", "columns", "within", "shares", "no_value"
COMBINED: Final = "combined"
ONLY: Final = "only-"  # chosen categories of a part: only-age=2,3
LEAST, MOST = "least-", "most-"  # a range of them, in addition; what is left out is the first, the last
GROUP: Final = "group-"  # groups of them, by their place, in addition
BASES: Final[tuple[Base, ...]] = get_args(Base)
_SHOWN: Final = 40  # characters of a parameter in a refusal
_MOST_DIGITS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Contents of the page.

    Parameters
    ----------
    rows, columns : places of two different parts; both 0 for a single indicator, which has no table
    within : code of the third part that all cells have; None: all codes are added up, or there is no third
    base : what a cell is a share of
    with_no_value : also rows and columns of people without a value whose interval includes 0
    combined : shares use all answers on the parts, not only those of the table
    values : "consistent" ones are never negative; "unbiased" ones may be
    choice : codes of the categories of the question, by part; without those of which all are meant
    """

    joint: Joint
    window: Window
    rows: int
    columns: int
    within: int | None = None
    base: Base = "all"
    with_no_value: bool = False
    combined: bool = False
    values: str = VALUES_CHOICES[0]
    choice: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    @property
    def third(self) -> int | None:
        """Place of the part that is neither in rows nor in columns."""
        others = [place for place in range(len(self.joint.parts)) if place not in (self.rows, self.columns)]
        return others[0] if others else None

    @property
    def row_part(self) -> Part:
        return self.joint.parts[self.rows]

    @property
    def column_part(self) -> Part:
        return self.joint.parts[self.columns]

    @property
    def third_part(self) -> Part | None:
        return None if self.third is None else self.joint.parts[self.third]

    @property
    def chosen(self) -> dict[str, str]:
        """Return all but the days as parameters of an address; the joint indicator comes first."""
        parts = self.joint.parts
        values = {INDICATOR: self.joint.indicator.slug}
        if not self.joint.is_single:
            values[ROWS] = self.row_part.slug
        if self.third is not None:
            values[COLUMNS] = self.column_part.slug
        if self.within is not None:
            values[WITHIN] = str(self.within)
        if self.base != BASES[0]:
            values[SHARES] = self.base
        if self.with_no_value:
            values[NO_VALUE] = "1"
        if self.combined:
            values[COMBINED] = "1"
        if self.values != VALUES_CHOICES[0]:
            values[VALUES] = self.values
        return values | {
            ONLY + parts[place].slug: ",".join(map(str, codes)) for place, codes in self.choice.items()
        }

    def query(self, kept: str = "", **changes: str) -> str:
        """The view as a part of an address: `kept`, by default its days, and parameters with changes.

        A change to "" leaves a parameter out.
        """
        days = kept or window_query(self.joint.indicator.study, self.window)
        values = {
            name: text
            for name, text in (self.chosen | changes).items()
            if text and (name, text) != (VALUES, VALUES_CHOICES[0])
        }
        return f"{days}&{urlencode(values, safe=',')}"


def view_of(query: QueryDict, joints: Sequence[Joint], *, visitors: Counts) -> View:
    """The view that an address asks for, by default of all days and the first joint indicator.

    Parameters
    ----------
    joints : at least one
    visitors : of every window of the study

    Raises
    ------
    WindowError : the address names something that there is not
    """
    joint = joint_of(query.get(INDICATOR, ""), joints)
    window = requested_window(query, indicator=joint.indicator, visitors=visitors)
    check_union(joint.indicator, window)
    view = part_view(joint, window, query)
    return replace(
        view,
        within=_within(query.get(WITHIN, ""), view.third_part),
        base=_base(query.get(SHARES, "")),
        with_no_value=bool(query.get(NO_VALUE)),
        combined=bool(query.get(COMBINED)),
        values=asked_values(query),
        choice=_choice(query, joint),
    )


def check_selected(view: View) -> None:
    """Raise WindowError if a view selects no categories."""
    if not view.choice:
        text = gettext(
            "Select only some of the categories of %(name)s. With all of them, the share is always 100%%."
        )
        raise WindowError(text % {"name": view.joint.indicator.shown_name})


def part_view(joint: Joint, window: Window, names: Mapping[str, str]) -> View:
    """The table of two parts, all else by default; WindowError if there are no such parts."""
    rows, columns = _axes(names, joint)
    return View(joint=joint, window=window, rows=rows, columns=columns)


def joint_of(slug: str, joints: Sequence[Joint]) -> Joint:
    """The joint indicator of this name; without a name the first."""
    for joint in joints:
        if slug in ("", joint.indicator.slug):
            return joint
    known = ", ".join(joint.indicator.slug for joint in joints)
    raise WindowError(
        gettext("“%(name)s” is not available here. Choose one of these indicators: %(known)s.")
        % {"name": slug[:_SHOWN], "known": known}
    )


def checked_choice(joint: Joint, choice: Mapping[int, Sequence[int]]) -> dict[int, tuple[int, ...]]:
    """A choice in the order of the parts and their codes, without parts of which all categories are meant."""
    ordered = {place: tuple(sorted(set(choice.get(place, ())))) for place in range(len(joint.parts))}
    return {place: codes for place, codes in ordered.items() if 0 < len(codes) < joint.parts[place].size}


def _axes(query: Mapping[str, str], joint: Joint) -> tuple[int, int]:
    """Places of the parts in rows and columns; the larger parts first, since long tables read well."""
    if joint.is_single:
        return 0, 0
    slugs = [part.slug for part in joint.parts]
    by_size = sorted(range(len(slugs)), key=lambda place: -joint.parts[place].size)
    asked = {name: query.get(name, "") for name in (ROWS, COLUMNS)}
    for name, text in asked.items():
        if text and text not in slugs:
            raise WindowError(
                gettext("“%(name)s” must be one of %(known)s, not “%(text)s”.")
                % {"name": name, "known": ", ".join(slugs), "text": text[:_SHOWN]}
            )
    columns = slugs.index(asked[COLUMNS]) if asked[COLUMNS] else None
    rows = slugs.index(asked[ROWS]) if asked[ROWS] else next(each for each in by_size if each != columns)
    if columns is None:
        columns = next(each for each in by_size if each != rows)
    if rows == columns:
        raise WindowError(gettext("Choose different indicators for rows and columns."))
    return rows, columns


def _within(text: str, part: Part | None) -> int | None:
    if not text or part is None:
        return None
    return _code(text, part, name=WITHIN)


def _base(text: str) -> Base:
    for base in BASES:
        if text == base:
            return base
    if not text:
        return BASES[0]
    raise WindowError(
        gettext("“%(name)s” must be one of %(known)s, not “%(text)s”.")
        % {"name": SHARES, "known": ", ".join(BASES), "text": text[:_SHOWN]}
    )


def _choice(query: QueryDict, joint: Joint) -> dict[int, tuple[int, ...]]:
    """Codes of an address; forms send each as a parameter, links all of a part in one."""
    found: dict[int, Any] = {}
    for place, part in enumerate(joint.parts):
        name = ONLY + part.slug
        texts = [text for value in query.getlist(name) for text in value.split(",") if text]
        codes = [_code(text, part, name=name) for text in texts]
        found[place] = codes + _range(query, part) + _grouped(query, part)
    return checked_choice(joint, found)


def _grouped(query: QueryDict, part: Part) -> list[int]:
    name, groups = GROUP + part.slug, part.groups
    texts = [text for text in query.getlist(name) if text]
    if texts and not groups:
        text = gettext(
            "“%(name)s” cannot be used, because %(part)s has no groups. Select categories instead."
        )
        raise WindowError(text % {"name": name, "part": part.name})
    places = [_below(len(groups), text, name=name) for text in texts]
    return [code for place in places for code in groups[place][1]]


def _range(query: QueryDict, part: Part) -> list[int]:
    least, most = (query.get(name + part.slug, "") for name in (LEAST, MOST))
    if not least and not most:
        return []
    first = _code(least or "0", part, name=LEAST + part.slug)
    last = _code(most or str((part.n_ordered or part.no_value) - 1), part, name=MOST + part.slug)
    return list(range(min(first, last), max(first, last) + 1))


def _code(text: str, part: Part, *, name: str) -> int:
    return _below(part.size, text, name=name)


def _below(end: int, text: str, *, name: str) -> int:
    if text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS and int(text) < end:
        return int(text)
    raise WindowError(
        gettext("“%(name)s” must be a number from 0 to %(most)d, not “%(text)s”.")
        % {"name": name, "most": end - 1, "text": text[:_SHOWN]}
    )
