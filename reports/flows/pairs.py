"""Pairs of places: joint indicators of two places, and moves between zones."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from django.utils.translation import gettext, pgettext
from numpy.typing import NDArray

from ldp.privacy.moves import MoveSpec
from reports.crosstab.joints import Codes, Joint, joint_indicators
from reports.studies.models import Area, Indicator, Study
from reports.studies.queries import current_plan
from reports.studies.studyfile.indicators import OUTSIDE_NAME


class Places(Protocol):
    """Places at one end of a pair; the last one stands for people without one, or outside."""

    @property
    def name(self) -> str: ...
    @property
    def names(self) -> list[str]:
        """Names of all codes in the active language."""

    @property
    def file_names(self) -> list[str]:
        """Names of all codes in files, the same in each language."""


@dataclass(frozen=True, kw_only=True)
class MoveEnd:
    """Zones that moves start from, or lead to, and "outside" as the last."""

    is_start: bool
    area: Area

    @property
    def name(self) -> str:
        return pgettext("moves", "From") if self.is_start else pgettext("moves", "To")

    @property
    def names(self) -> list[str]:
        return [*self.area.shown_zones, gettext("outside all zones")]

    @property
    def file_names(self) -> list[str]:
        return [*self.area.zones, OUTSIDE_NAME]


@dataclass(frozen=True, kw_only=True)
class PlacePair:
    """Where people come from, and where they are or go to.

    zones : names of the study's zones, in their order
    joint : the joint indicator of two places; None of moves
    moves : those of a day; None of a joint indicator
    """

    indicator: Indicator
    origin: Places
    destination: Places
    zones: tuple[str, ...]
    joint: Joint | None = None
    moves: MoveSpec | None = None

    @property
    def is_daily(self) -> bool:
        return self.indicator.kind == Indicator.Kind.DAILY

    @property
    def codes(self) -> Codes:
        """Code of each pair, shape (origins, destinations)."""
        shape = len(self.origin.file_names), len(self.destination.file_names)
        return np.arange(shape[0] * shape[1]).reshape(shape)

    @property
    def parts(self) -> Sequence[Indicator]:
        """Single indicators that are combined; none of moves."""
        return () if self.joint is None else [part.indicator for part in self.joint.parts]

    @property
    def has_zones_at_both_ends(self) -> bool:
        """Return whether both ends are zones, so that pairs can be drawn, and compared with each other."""
        return all(_are_zones(each, self.zones) for each in (self.origin, self.destination))

    @cached_property
    def is_same_zone(self) -> NDArray[np.bool_]:
        """Pairs whose zones are the same, shape (origins, destinations)."""
        return np.array(
            [
                [name == other and name in self.zones for other in self.destination.file_names]
                for name in self.origin.file_names
            ],
            np.bool_,
        )

    @property
    def staying(self) -> Codes:
        """Codes of pairs of one and the same zone."""
        return self.codes[self.is_same_zone]

    @property
    def moving(self) -> Codes:
        """Codes of pairs of two zones that differ; other categories, such as "NR", are left out."""
        known = [
            np.array([name in self.zones for name in (*each.file_names[:-1], "")], np.bool_)
            for each in (self.origin, self.destination)
        ]
        return self.codes[np.outer(*known) & ~self.is_same_zone]


def place_pairs(study: Study) -> list[PlacePair]:
    """Joint indicators of two parts of which one or both are of zones, and moves, in plan order."""
    area = Area.objects.filter(study=study).first()
    zones = tuple(area.zones) if area else ()
    pairs = [
        PlacePair(
            indicator=joint.indicator,
            origin=joint.parts[0],
            destination=joint.parts[1],
            zones=zones,
            joint=joint,
        )
        for joint in joint_indicators(study)
        if len(joint.parts) == 2 and any(_are_zones(part, zones) for part in joint.parts)
    ]
    spec = current_plan(study).parsed
    ends = [] if area is None else [MoveEnd(is_start=is_start, area=area) for is_start in (True, False)]
    for asked in spec.indicators if ends else ():
        if asked.moves is not None and asked.moves.items == "moves":
            found = study.indicators.select_related("study").get(slug=asked.slug)
            pairs.append(
                PlacePair(
                    indicator=found, origin=ends[0], destination=ends[1], zones=zones, moves=asked.moves
                )
            )
    return sorted(pairs, key=lambda pair: pair.indicator.position)


def _are_zones(places: Places, zones: tuple[str, ...]) -> bool:
    """Return whether most categories are zones; a few may be none, such as "NR"."""
    categories = places.file_names[:-1]
    return 2 * len(set(zones).intersection(categories)) > len(categories)
