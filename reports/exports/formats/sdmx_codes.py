"""Codes of zones and categories in SDMX files: every row uses them, and the codelists name them.

Names of a study file may hold any letters, but codes of SDMX may not: a code is its name in letters, digits,
"-" and "_". Two names with the same code get numbers, in the order of the study file.
"""

import re
import unicodedata
from collections.abc import Iterable
from functools import cached_property
from itertools import product
from typing import Final, NamedTuple

from django.utils.translation import override

from reports.crosstab.joints import Joint, joint_indicators
from reports.maps.zones import shared_zones
from reports.studies.models import Area, Indicator, Study
from reports.studies.slot_models import StudySlots

AGENCY: Final = "MOBILITY_REPORTS"
VERSION: Final = "1.0.0"
TOTAL: Final = "_T"
PRESENCE: Final = "presence"  # no indicator has this name
_OTHER_SIGNS: Final = re.compile(r"[^A-Za-z0-9_-]+")


class Code(NamedTuple):
    """A code with its names in English and in French."""

    id: str
    name: str
    name_fr: str


class Label(NamedTuple):
    """Content of a category: its zone, None if it has none, and the rest in English and in French.

    `name` is None where the zone is all there is.
    """

    zone: str | None
    name: str | None
    name_fr: str = ""


class StudyCodes:
    """Codes of the zones of a study and of the categories of its indicators."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self._labels: dict[str, list[Label]] = {}

    @cached_property
    def areas(self) -> list[Code]:
        """The study, its zones, and its larger zones that presence by time has."""
        names = self._zone_names
        codes = code_ids(names, taken=[self.study.slug])
        study = Code(self.study.slug, self.study.name, self.study.name_fr or self.study.name)
        return [study, *(Code(code, *both) for code, both in zip(codes, names.items(), strict=True))]

    @cached_property
    def area_ids(self) -> dict[str, str]:
        """Code of each zone by its name; that of a larger zone by `level/name`."""
        return {name: code.id for name, code in zip(self._zone_names, self.areas[1:], strict=True)}

    def categories(self, indicator: Indicator) -> list[Code]:
        """Codes of an indicator's categories; the total, if it has zones, is not among them."""
        names = {label.name: label.name_fr for label in self._labels_of(indicator) if label.name is not None}
        codes = code_ids(names, taken=[TOTAL])
        return [Code(code, *both) for code, both in zip(codes, names.items(), strict=True)]

    def has_total(self, indicator: Indicator) -> bool:
        """Return whether a row of the indicator is a zone and nothing else."""
        return any(label.name is None for label in self._labels_of(indicator))

    def keys(self, indicator: Indicator) -> list[tuple[str, str]]:
        """REF_AREA and CATEGORY of each category, in their order."""
        of_name = {code.name: code.id for code in self.categories(indicator)}
        return [
            (
                self.study.slug if label.zone is None else self.area_ids[label.zone],
                TOTAL if label.name is None else of_name[label.name],
            )
            for label in self._labels_of(indicator)
        ]

    def structure_id(self, slug: str) -> str:
        """Name of the data structure definition of an indicator, or of PRESENCE."""
        return f"DS_{self.study.slug}_{slug}"

    @cached_property
    def slots(self) -> StudySlots | None:
        """Slots of a study that has presence by time."""
        return StudySlots.objects.filter(study=self.study).first()

    @cached_property
    def _area(self) -> Area | None:
        return Area.objects.filter(study=self.study).first()

    @cached_property
    def _zone_names(self) -> dict[str, str]:
        """French names of all zones by their names."""
        area, slots = self._area, self.slots
        names = dict(zip(area.zones, area.zones_fr or area.zones, strict=True)) if area is not None else {}
        if slots is None:
            return names
        larger = [f"{level['name']}/{zone}" for level in slots.levels for zone in level["zones"]]
        smaller = slots.zones[: len(slots.zones) - len(larger)]
        return {name: name for name in (*smaller, *larger)} | names

    @cached_property
    def _joints(self) -> dict[str, Joint]:
        return {joint.indicator.slug: joint for joint in joint_indicators(self.study)}

    def _labels_of(self, indicator: Indicator) -> list[Label]:
        if indicator.slug not in self._labels:
            self._labels[indicator.slug] = self._find_labels(indicator)
        return self._labels[indicator.slug]

    def _find_labels(self, indicator: Indicator) -> list[Label]:
        names = indicator.categories
        whole = [Label(None, *both) for both in zip(names, indicator.categories_fr or names, strict=True)]
        if zones := set(self._zones_of(indicator)):
            return [Label(each.name, None) if each.name in zones else each for each in whole]
        joint = self._joints.get(indicator.slug)
        zones_of_parts = [self._zones_of(part.indicator) for part in joint.parts] if joint else []
        places = [place for place, zones_of_part in enumerate(zones_of_parts) if zones_of_part]
        if joint is None or len(places) != 1:
            return whole
        return _split(whole, joint, place=places[0], zones=set(zones_of_parts[places[0]]))

    def _zones_of(self, indicator: Indicator) -> list[str]:
        return [] if self._area is None else shared_zones(self._area.zones, indicator)


def code_ids(names: Iterable[str], *, taken: Iterable[str]) -> list[str]:
    """Code of each name, none of them twice and none of those that are taken."""
    used, codes = set(taken), []
    for name in names:
        plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
        base = _OTHER_SIGNS.sub("_", plain)
        base = f"_{base}" if base.startswith("-") else base or "_"  # no formula to a spreadsheet
        code, n = base, 1
        while code in used:
            n += 1
            code = f"{base}_{n}"
        used.add(code)
        codes.append(code)
    return codes


def _split(whole: list[Label], joint: Joint, *, place: int, zones: set[str]) -> list[Label]:
    """Combinations of a zone with the other parts; those without a zone stay as they are."""
    combined = product(*(part.file_names for part in joint.parts))
    with override("fr"):
        in_french = product(*(part.names for part in joint.parts))
    return [
        Label(names[place], _others(names, place), _others(french, place)) if names[place] in zones else label
        for label, names, french in zip(whole, combined, in_french, strict=True)
    ]


def _others(names: tuple[str, ...], place: int) -> str:
    """Names of all parts but one."""
    return " / ".join((*names[:place], *names[place + 1 :]))
