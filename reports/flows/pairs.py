"""Joint indicators of two places: which there are, and which of their categories are zones on the map."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from reports.crosstab.joints import Codes, Joint, Part, joint_indicators
from reports.studies.models import Area, Indicator, Study


@dataclass(frozen=True)
class PlacePair:
    """A joint indicator of two parts: where people come from, and where they are.

    zones : names of the study's zones, in their order
    """

    joint: Joint
    zones: tuple[str, ...]

    @property
    def indicator(self) -> Indicator:
        return self.joint.indicator

    @property
    def origin(self) -> Part:
        return self.joint.parts[0]

    @property
    def destination(self) -> Part:
        return self.joint.parts[1]

    @property
    def is_daily(self) -> bool:
        return self.indicator.kind == Indicator.Kind.DAILY

    @property
    def has_zones_at_both_ends(self) -> bool:
        """Return whether both parts are zones, so that pairs can be drawn, and compared with each other."""
        return all(_is_of_zones(part, self.zones) for part in self.joint.parts)

    @cached_property
    def is_same_zone(self) -> NDArray[np.bool_]:
        """Combinations whose zones are the same, shape (origins, destinations)."""
        names = [part.indicator.categories for part in self.joint.parts]
        same = np.zeros(self.joint.codes.shape, np.bool_)
        for row, name in enumerate(names[0]):
            if name in names[1] and name in self.zones:
                same[row, names[1].index(name)] = True
        return same

    @property
    def staying(self) -> Codes:
        """Codes of combinations of one and the same zone."""
        return self.joint.codes[self.is_same_zone]

    @property
    def moving(self) -> Codes:
        """Codes of combinations of two zones that differ; other categories, such as "NR", are left out."""
        known = [
            np.array([name in self.zones for name in (*part.indicator.categories, "")], np.bool_)
            for part in self.joint.parts
        ]
        return self.joint.codes[np.outer(*known) & ~self.is_same_zone]


def place_pairs(study: Study) -> list[PlacePair]:
    """Joint indicators of two parts of which at least one is of zones, in the order of the plan."""
    area = Area.objects.filter(study=study).only("zones").first()
    zones = tuple(area.zones) if area else ()
    return [
        PlacePair(joint, zones)
        for joint in joint_indicators(study)
        if len(joint.parts) == 2 and any(_is_of_zones(part, zones) for part in joint.parts)
    ]


def _is_of_zones(part: Part, zones: tuple[str, ...]) -> bool:
    """Return whether most categories are zones; a few may be none, such as "NR"."""
    categories = part.indicator.categories
    return 2 * len(set(zones).intersection(categories)) > len(categories)
