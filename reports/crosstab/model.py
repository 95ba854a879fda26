"""Tables of three indicators of which only pairs are asked together: a model, not an estimate."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import combinations
from math import prod
from typing import Final

import numpy as np
from django.http import QueryDict
from django.utils.translation import gettext

from ldp import KeyedStream
from ldp.estimation.joint.crosstab import Shares
from ldp.estimation.joint.three_way import MAX_CELLS, Pair, three_way
from ldp.privacy.plans import MAX_PARTS
from reports.base.status import Status
from reports.crosstab.joints import Joint, Part, joint_indicators
from reports.crosstab.queries import Figure, NoCrosstabError, figures_of_whole
from reports.crosstab.queries import measure as measure_pair
from reports.crosstab.query import COLUMNS, ROWS, WITHIN
from reports.estimates.picker import requested_window, window_query
from reports.estimates.queries import Counts, Window, WindowError, WindowReport, check_union, has_small
from reports.studies.models import Indicator, Study
from reports.studies.queries import current_plan, has_unions

MODEL: Final = "maximum_entropy"
THIRD: Final = "third"


@dataclass(frozen=True, slots=True, kw_only=True)
class Triple:
    """Three indicators, and the joint indicators of two of them: two or three."""

    parts: tuple[Part, Part, Part]
    joints: tuple[Joint, ...]

    @property
    def windows_of(self) -> Indicator:
        """Joint indicator with the fewest windows: one that has no unions, if there is one."""
        asked = [joint.indicator for joint in self.joints]
        return next((each for each in asked if not has_unions(each)), asked[0])

    def in_order(self, slugs: Sequence[str]) -> "Triple":
        """Return the same with the parts in another order."""
        of_slug = {part.slug: part for part in self.parts}
        one, other, third = (of_slug[slug] for slug in slugs)
        return Triple(parts=(one, other, third), joints=self.joints)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelView:
    """The table of rows and columns of a triple, for the people of a category `within` of its third part."""

    triple: Triple
    window: Window
    within: int

    @property
    def study(self) -> Study:
        return self.triple.joints[0].indicator.study

    @property
    def third(self) -> Part:
        return self.triple.parts[2]

    def query(self, kept: str = "", **changes: str) -> str:
        """The view as a part of an address: `kept`, by default its days, and parameters with changes."""
        names = dict(zip((ROWS, COLUMNS, THIRD), (part.slug for part in self.triple.parts), strict=True))
        values = names | {WITHIN: str(self.within)} | changes
        text = "&".join(f"{name}={value}" for name, value in values.items())
        return f"{kept or window_query(self.study, self.window)}&{text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTable:
    """Figures of all combinations, shares of all visitors; None where a pair has none.

    report : of a pair without figures if there is one, else of the first
    pairs : reports of all pairs that the model is made of, in plan order
    cells : by row, column and category of the third part
    """

    view: ModelView
    report: WindowReport
    pairs: tuple[WindowReport, ...]
    cells: list[list[list[Figure]]] | None


def triples(study: Study) -> list[Triple]:
    """Return what is asked in pairs, but not together, in plan order."""
    joints = joint_indicators(study)
    asked = {frozenset(part.slug for part in joint.parts) for joint in joints}
    parts = {part.slug: part for joint in joints for part in joint.parts}
    found = []
    for slugs in combinations(parts, MAX_PARTS):
        pairs = tuple(joint for joint in joints if len(joint.parts) < MAX_PARTS and _slugs(joint) <= {*slugs})
        is_small = prod(parts[slug].size for slug in slugs) <= MAX_CELLS
        if len(pairs) >= 2 and is_small and frozenset(slugs) not in asked:
            one, other, third = (parts[slug] for slug in slugs)
            found.append(Triple(parts=(one, other, third), joints=pairs))
    return found


def _slugs(joint: Joint) -> set[str]:
    return {part.slug for part in joint.parts}


def model_view(
    query: Mapping[str, str] | QueryDict, found: Sequence[Triple], *, visitors: Counts
) -> ModelView:
    """The view that an address asks for, by default of all days and the first triple.

    Raises
    ------
    WindowError : the address names something that there is not
    """
    if not found:
        raise WindowError(gettext("This study has no model for three indicators."))
    names = [query.get(name, "") for name in (ROWS, COLUMNS, THIRD)]
    triple = _triple(names, found)
    given = query if isinstance(query, QueryDict) else QueryDict()
    window = requested_window(given, indicator=triple.windows_of, visitors=visitors)
    check_union(triple.windows_of, window)
    text, size = query.get(WITHIN, "0"), triple.parts[2].size
    if not (text.isascii() and text.isdecimal() and len(text) < 6 and int(text) < size):
        raise WindowError(
            gettext("“%(name)s” must be a number from 0 to %(most)d, not “%(text)s”.")
            % {"name": WITHIN, "most": size - 1, "text": text[:40]}
        )
    return ModelView(triple=triple, window=window, within=int(text))


def _triple(names: Sequence[str], found: Sequence[Triple]) -> Triple:
    if not any(names):
        return found[0]
    for each in found:
        if {part.slug for part in each.parts} == set(names):
            return each.in_order(names)
    raise WindowError(
        gettext("No model is available for these three indicators: %(names)s.")
        % {"names": ", ".join(names)[:120]}
    )


def model_table(view: ModelView) -> ModelTable:
    """Fit the table. NoCrosstabError if answers have presence noise."""
    measured = [measure_pair(joint, view.window) for joint in view.triple.joints]
    report = next((each.report for each in measured if each.reports is None), measured[0].report)
    if has_small(each.report for each in measured):
        raise NoCrosstabError(gettext("Models are not available because this study hides small categories."))
    slugs = [part.slug for part in view.triple.parts]
    pairs, reports = [], tuple(each.report for each in measured)
    for each in measured:
        if each.reports is None:
            return ModelTable(view=view, report=report, pairs=reports, cells=None)
        one, other = (slugs.index(part.slug) for part in each.joint.parts)
        pairs.append(Pair(axes=(one, other), reports=each.reports))
    sizes = [part.size for part in view.triple.parts]
    found = three_way(pairs, sizes=sizes, stream=KeyedStream(_seed(view)))
    return ModelTable(view=view, report=report, pairs=reports, cells=_figures(found, report))


def _seed(view: ModelView) -> bytes:
    """Key of the redraws: the same table has the same intervals; it protects nothing."""
    names = [view.study.slug, *sorted(part.slug for part in view.triple.parts), *map(str, view.window)]
    return blake2b("/".join(names).encode(), digest_size=16).digest()


def _figures(found: Shares, report: WindowReport) -> list[list[list[Figure]]]:
    window = Status.OK if report.status == Status.NOT_RELIABLE else report.status
    flat = Shares(**{name: getattr(found, name).ravel() for name in Shares.__slots__})
    figures = np.array(figures_of_whole(flat, window=window, scale=report.scale), object)
    shaped: list[list[list[Figure]]] = figures.reshape(found.value.shape).tolist()
    return shaped


def has_models(study: Study) -> bool:
    """Return whether a study has such tables."""
    spec = current_plan(study).parsed
    n_pairs = sum(spec.is_table(index) and len(each.parts) == 2 for index, each in enumerate(spec.indicators))
    return n_pairs >= 2 and bool(triples(study))


def indicators_of(view: ModelView) -> list[Indicator]:
    """Return the joint indicators behind a table."""
    return [joint.indicator for joint in view.triple.joints]
