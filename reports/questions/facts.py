"""Facts of a study that decide which questions it answers. They come from its plan, not from data."""

from dataclasses import dataclass
from functools import cached_property

from django.urls import reverse

from ldp import PlanSpec
from reports.crosstab.joints import Joint, joint_indicators
from reports.flows.pairs import PlacePair, place_pairs
from reports.flows.visited import VisitedItems, visited_items
from reports.maps.zones import zones_of
from reports.numbers.by_category import numbers_by
from reports.slots.queries import has_slots
from reports.studies.models import Area, Indicator, Study
from reports.studies.queries import current_plan, has_unions

Links = list[tuple[str, str]]  # words and address


@dataclass(frozen=True)
class Facts:
    """A study and its plan in force."""

    study: Study

    @cached_property
    def spec(self) -> PlanSpec:
        return current_plan(self.study).parsed

    @property
    def is_noisy(self) -> bool:
        return self.spec.presence is not None

    @property
    def counts_all_days(self) -> bool:
        """Return whether each person counts on all days present."""
        return self.spec.presence is None or self.spec.presence.max_days >= self.study.days

    @cached_property
    def indicators(self) -> list[Indicator]:
        return list(self.study.indicators.select_related("study"))

    @cached_property
    def single(self) -> list[Indicator]:
        """Indicators that answer for one attribute by category: no combinations, numbers or moves."""
        plain = {each.slug for each in self.spec.indicators if not (each.parts or each.scale or each.moves)}
        return [each for each in self.indicators if each.slug in plain]

    @cached_property
    def numbers(self) -> list[Indicator]:
        scaled = {each.slug for each in self.spec.indicators if each.scale is not None}
        return [each for each in self.indicators if each.slug in scaled]

    @cached_property
    def means(self) -> list[Indicator]:
        return [each.indicator for each in numbers_by(self.study)]

    @property
    def over_days(self) -> list[Indicator]:
        """Single indicators whose answers are complete on several days together."""
        return [each for each in self.single if has_unions(each)] if self.study.days > 1 else []

    @property
    def of_zones(self) -> list[Indicator]:
        """Indicators whose categories are zones of the area, with or without shapes."""
        area = Area.objects.filter(study=self.study).first()
        zones = set(area.zones if area else ())
        return [each for each in self.single if 2 * len(zones & set(each.categories)) > len(each.categories)]

    @property
    def mapped(self) -> list[Indicator]:
        return [each for each in self.single if zones_of(each)]

    @cached_property
    def joints(self) -> list[Joint]:
        return joint_indicators(self.study)

    @property
    def pairs(self) -> list[PlacePair]:
        return place_pairs(self.study)

    @cached_property
    def visited(self) -> list[VisitedItems]:
        return visited_items(self.study)

    @cached_property
    def has_slots(self) -> bool:
        return has_slots(self.study)

    def page(self, name: str, title: str) -> Links:
        """Link to a page of the study."""
        return [(title, reverse(f"reports:{name}", args=[self.study.slug]))]

    def pages(self, name: str, indicators: list[Indicator]) -> Links:
        """Links to a page of each of some indicators, by their names."""
        return [
            (each.shown_name, reverse(f"reports:{name}", args=[self.study.slug, each.slug]))
            for each in indicators
        ]
