"""Joint indicators and their parts: names of categories, and the codes that a choice of them stands for."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from django.utils.translation import gettext
from numpy.typing import NDArray

from ldp import PlanSpec
from reports.studies.models import Indicator, Study
from reports.studies.queries import current_plan
from reports.studies.studyfile.indicators import NO_VALUE_NAME

Codes = NDArray[np.int64]
_NUMBER: Final = re.compile(r"[0-9]{1,9}")
_INTERVAL: Final = re.compile(r"[0-9] ?(-|\u2013|to|à) ?[0-9]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of a joint indicator; the last code stands for people without a value.

    A single indicator has no such code (`has_no_value`): those people do not report.
    """

    indicator: Indicator
    has_no_value: bool = True

    @property
    def slug(self) -> str:
        return self.indicator.slug

    @property
    def name(self) -> str:
        return self.indicator.shown_name

    @property
    def size(self) -> int:
        """Number of codes."""
        return len(self.indicator.categories) + self.has_no_value

    @property
    def no_value(self) -> int:
        """Code of people without a value, after those of the categories."""
        return len(self.indicator.categories)

    @property
    def n_ordered(self) -> int:
        """Number of first categories that are intervals in rising order, such as ages; 0 if they are not.

        Those after them have no number, such as "not known".
        """
        names: list[str] = self.indicator.categories
        starts = [int(found[0]) for found in map(_NUMBER.search, names) if found]
        n = len(starts)
        is_first = all(_NUMBER.search(name) for name in names[:n])
        n_intervals = sum(bool(_INTERVAL.search(name)) for name in names)
        return n if is_first and starts == sorted(starts) and n_intervals >= max(n / 2, 1) else 0

    @property
    def groups(self) -> list[tuple[str, tuple[int, ...]]]:
        """Names of groups of categories, with the codes of each in rising order."""
        code_of = {name: code for code, name in enumerate(self.indicator.categories)}
        found = (self.indicator.groups or {}).items()
        return [(name, tuple(sorted(code_of[each] for each in members))) for name, members in found]

    @property
    def names(self) -> list[str]:
        """Names of all codes in the active language."""
        names: list[str] = self.indicator.shown_categories
        return [*names, gettext("no value")] if self.has_no_value else names

    @property
    def file_names(self) -> list[str]:
        """Names of all codes in files, the same in each language."""
        return [*self.indicator.categories, NO_VALUE_NAME]


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """A joint indicator; or a single one, which has itself as its only part."""

    indicator: Indicator
    parts: tuple[Part, ...]

    @property
    def is_single(self) -> bool:
        return len(self.parts) == 1

    @property
    def codes(self) -> Codes:
        """Code of each combination, with an axis for each part."""
        shape = [part.size for part in self.parts]
        return np.arange(np.prod(shape)).reshape(shape)

    def chosen(self, choice: Mapping[int, Sequence[int]]) -> Codes:
        """Codes of the combinations of some categories; a part without a choice has all."""
        axes = [
            np.array(choice.get(place) or range(part.size), np.int64) for place, part in enumerate(self.parts)
        ]
        return np.asarray(self.codes[np.ix_(*axes)].ravel(), np.int64)


def is_selectable(spec: PlanSpec, indicator: Indicator) -> bool:
    """Return whether shares of categories are added up: of no numbers, moves, events, classes and
    disclosing answers."""
    asked = spec.indicators[spec.index(indicator.slug)]
    has_shares = not (asked.parts or asked.discloses) and asked.scale is None and indicator.max_moves is None
    return has_shares and not indicator.study.of_events and not spec.classes


def selectable_indicators(study: Study) -> list[Joint]:
    """Return the joint indicators, and the single ones whose categories can be selected, in plan order."""
    spec = current_plan(study).parsed
    of_slug = {each.slug: each for each in study.indicators.select_related("study")}
    return joint_indicators(study) + [
        Joint(
            indicator=of_slug[each.slug],
            parts=(Part(indicator=of_slug[each.slug], has_no_value=False),),
        )
        for each in spec.indicators
        if is_selectable(spec, of_slug[each.slug])
    ]


def joint_indicators(study: Study) -> list[Joint]:
    """Return the joint indicators of categories of a study, in the order of its plan."""
    spec = current_plan(study).parsed
    of_slug = {each.slug: each for each in study.indicators.select_related("study")}
    return [
        Joint(
            indicator=of_slug[each.slug],
            parts=tuple(Part(indicator=of_slug[part]) for part in each.parts),
        )
        for index, each in enumerate(spec.indicators)
        if spec.is_table(index)
    ]
