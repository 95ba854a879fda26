"""Contents of a valid study file: plain values that both zones keep as JSON."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, Literal, Self, get_args

from ldp import IndicatorRequest, PlanSpec, build_plan
from ldp.errors import PlanError
from ldp.geo.grid import Grid
from ldp.geo.location import LocationSpec
from ldp.privacy.first_reports import HashCells
from ldp.privacy.moves import Items, MoveSpec
from ldp.privacy.plans import Kind, Mechanism, PresenceTally
from ldp.protocols.channels import Unit
from ldp.protocols.numbers.threshold import Scale
from reports.studies.names import HOURS_OF_BAND, category_names, in_language
from reports.studies.studyfile.category_shares import CategoryShares
from reports.studies.studyfile.class_definition import ClassDefinition
from reports.studies.studyfile.formats import ISO, Delimiter
from reports.studies.studyfile.hours import OF_HOURS
from reports.studies.studyfile.lookups import Lookup
from reports.studies.studyfile.origins import OriginRule
from reports.studies.studyfile.slots_definition import SlotsDefinition

# Where deconvolved maps may put people.
People = Literal["antennas", "land"]
# Where the columns of static indicators are: in the files of events, or in extracts of subscribers.
Attributes = Literal["inline", "subscribers"]
ATTRIBUTES: Final[tuple[Attributes, ...]] = get_args(Attributes)
# Names of groups, each with its categories.
Groups = tuple[tuple[str, tuple[str, ...]], ...]
# Of what answers hide: the category inside its group only, or sensitive categories only.
Protect = Literal["in_groups", "sensitive"]
IN_GROUPS: Final[Protect] = "in_groups"
SENSITIVE: Final[Protect] = "sensitive"

VISIT_DURATION = "visit_duration"
# Band h holds stays of [h-1, h) hours; the last one runs from 10 to 18 hours, both included.
VISIT_DURATION_BANDS: tuple[str, ...] = tuple(HOURS_OF_BAND)
MAIN_ZONE, NIGHT_ZONE = "main_zone", "night_zone"
MOVES = "moves"
VISITED_ZONES, VISITED_PAIRS = "visited_zones", "visited_pairs"
# Of whose items of a day a person reports one, by what the library calls these.
ONE_A_DAY: Final[dict[str, Items]] = {MOVES: "moves", VISITED_ZONES: "places", VISITED_PAIRS: "pairs"}
# Numbers of a day, in addition to the duration.
EVENTS, HOME_DISTANCE = "event_count", "distance_from_home"
OF_NIGHT: tuple[str, ...] = (NIGHT_ZONE, HOME_DISTANCE)
# Sources of a daily indicator; zones of the area are the categories of most, or pairs of zones.
OF_ZONES: tuple[str, ...] = (MAIN_ZONE, NIGHT_ZONE, *ONE_A_DAY)
# Of an event: the zone of the cell that its row names.
EVENT_ZONE: Final = "zone"
DERIVED: tuple[str, ...] = (VISIT_DURATION, *OF_ZONES, *OF_HOURS)
DEFAULT_POPULATION, EVENT_POPULATION = "subscribers", "events"
# Keys that JSON leaves out where a study file does: hashes of definitions without them stay what they were.
_LEFT_OUT: Final = frozenset(
    {"name_fr", "categories_fr", "zones_fr", "tallies", "slots", "parts", "scale", "groups", "max_moves"}
    | {"epsilon_first", "hash_cells", "window_days", "small_category", "report", "origin", "lookup"}
    | {"category_shares", "units", "person", "max_events", "classes", "class_column", "protect"}
    | {"sensitive", "discloses_values"}
)
# Counted units.
Units = Literal["events"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitorRule:
    """Rule for visitors of a day; minutes of the local day, `to_minute` included."""

    min_minutes: int
    from_minute: int
    to_minute: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractProfile:
    """Names of the columns of an extract, and the share of rejected rows above which it is refused.

    subscriber : in a study of events the column that names an event, or empty
    person : in a study of events the column that names the person of an event; None = no limit for a person
    delimiter : None = found from the header
    timestamp_format : of texts and whole numbers; a Parquet column of timestamps says itself what it is
    attributes : "inline" = these files have the columns of the static indicators too
    """

    subscriber: str
    timestamp: str
    cell: str | None
    max_bad_share: Decimal
    delimiter: Delimiter | None = None
    timestamp_format: str = ISO
    attributes: Attributes = "inline"
    person: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriberExtract:
    """Format of an extract of subscribers: a person a row, with the columns of the static indicators."""

    subscriber: str
    max_bad_share: Decimal
    delimiter: Delimiter | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndicatorDefinition:
    """One question; static ones read a column, daily ones are derived from the day's events.

    parts : of a joint indicator, which reads no column: slugs of those that it combines
    scale : of a number, whose categories are "this cut or more"
    max_moves : of moves and visits, of which a person reports one a day: those that keep their full weight
    categories_fr : in the order of `categories`; None = the same names in French
    night_from, night_to : of what is derived from the night: minutes of the local evening and of the morning
        after it, which is no longer part of the night
    groups : names of groups of categories, each with its categories; reports add them up
    protect : "in_groups" = answers tell the group of a category, and hide which of its categories it is;
        "sensitive" = they hide the categories of `sensitive`, and disclose all others; None = they hide the
        category among all
    lookup : of a column of codes whose categories are in a file
    origin : of a visitor category, which is static and derived from a home code and an operator's country
    """

    slug: str
    name: str
    kind: Kind
    column: str | None
    derive: str | None
    categories: tuple[str, ...]
    epsilon: Decimal | None
    max_values: int | None
    weight: Decimal | None = None
    night_from: int | None = None
    night_to: int | None = None
    name_fr: str | None = None
    categories_fr: tuple[str, ...] | None = None
    parts: tuple[str, ...] = ()
    scale: Scale | None = None
    groups: Groups = ()
    max_moves: int | None = None
    origin: OriginRule | None = None
    lookup: Lookup | None = None
    protect: Protect | None = None
    sensitive: tuple[str, ...] = ()

    @property
    def regions(self) -> tuple[int, ...]:
        """Return the group of each category, by number, where answers tell it; else nothing."""
        if self.protect != IN_GROUPS:
            return ()
        group_of = {member: name for name, members in self.groups for member in members}
        alone = [each for each in self.categories if each not in group_of]
        if alone:
            raise PlanError(f"groups of {self.slug} must have each category, {alone[0]!r} is in none")
        names = [group_of[each] for each in self.categories]
        numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
        return tuple(numbers[name] for name in names)

    @property
    def hidden(self) -> tuple[int, ...]:
        """Return the codes of the sensitive categories, where all others are disclosed; else nothing."""
        if self.protect != SENSITIVE:
            return ()
        unknown = [each for each in self.sensitive if each not in self.categories]
        if unknown:
            raise PlanError(f"sensitive of {self.slug} must be categories, got {unknown[0]!r}")
        return tuple(sorted(self.categories.index(each) for each in self.sensitive))

    @property
    def moves(self) -> MoveSpec | None:
        """Return moves or visits as the library takes them; None of what is not derived from them."""
        if self.max_moves is None:
            return None
        items = ONE_A_DAY[self.derive or ""]
        return MoveSpec.of_size(len(self.categories), per_day=self.max_moves, items=items)

    @property
    def shown_name(self) -> str:
        """Return the name in the active language."""
        return in_language(self.name, self.name_fr)

    @property
    def shown_categories(self) -> tuple[str, ...]:
        """Return the names of the categories in the active language."""
        return tuple(category_names(self.categories, self.categories_fr))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanDefinition:
    """Protection of answers, as typed.

    presence_epsilon, presence_days : of the noise that hides who was there, and first days of a subscriber
        that count; None = totals are exact
    tallies : further tallies of presence, in the order of the library
    epsilon_first, hash_cells : of smp-loloha and smp-allomfree; None = half of epsilon, and two
    window_days : of smp-stream; None = seven, or all days of a shorter study
    max_events : in a study of events most events of a person that are answered; None = all
    class_column : public column of the files with the class of each subscriber; None = there are no classes
    discloses_values : whether answers disclose what is not sensitive; None = they do not
    """

    mechanism: Mechanism
    unit: Unit
    epsilon: Decimal
    epsilon_profile: Decimal | None
    presence_epsilon: Decimal | None = None
    presence_days: int | None = None
    tallies: tuple[PresenceTally, ...] = ()
    epsilon_first: Decimal | None = None
    hash_cells: HashCells | None = None
    window_days: int | None = None
    max_events: int | None = None
    class_column: str | None = None
    discloses_values: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A cell of the area; degrees (WGS 84), dates included, None = without limit.

    A mast that moved has several of them, of one cell_id, with validities that do not overlap.
    azimuth : degrees clockwise from north, [0, 360]; None = all directions, or not known
    """

    cell_id: str
    lon: float
    lat: float
    zone: str | None
    valid_from: date | None
    valid_to: date | None
    azimuth: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MapLayer:
    """Layer for orientation on a map: rivers, roads, borders; clipped and simplified for display.

    kind : "polygons" = each path is a ring
    paths : positions [x, y] in metres of the area's projection
    """

    name: str
    kind: Literal["lines", "polygons"]
    paths: list[list[list[float]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class AreaDefinition:
    """Place of the study.

    geojson : the zones with their shapes, repaired, WGS 84, in the order of `zones`
    zones_fr : French names of the zones, in the order of `zones`; None = the same names
    projection : local projection in metres, as PROJ reads it; None = made before there was one
    water, land : GeoJSON geometries, WGS 84; no one is in water, and outside of land where that is given
    layers : for display only, so that two definitions which differ in nothing else are the same
    """

    cells: tuple[Cell, ...]
    zones: tuple[str, ...]
    geojson: dict[str, Any] | None
    projection: str | None = field(default=None, compare=False)  # follows from cells and zones
    water: dict[str, Any] | None = None
    land: dict[str, Any] | None = None
    layers: tuple[MapLayer, ...] = field(default=(), compare=False)
    zones_fr: tuple[str, ...] | None = None

    @property
    def n_cells(self) -> int:
        """Cells, each counted once, at any of its places."""
        return len({cell.cell_id for cell in self.cells})


@dataclass(frozen=True, slots=True, kw_only=True)
class LocationDefinition:
    """Reports of places: the noisy place of the day's main cell, on a grid.

    level : the odds of two places that lie radius_m apart differ at most by exp(level)
    max_values : days on which a subscriber reports, None = all
    places : code of the square of the grid in which each cell of the area lies, in the order of the cells
    h3_resolution : of the hexagons by which files sum the squares, 0 to 15; None = no such files
    people : where deconvolved maps may put people: in the squares of antennas, where all true places are, or
        anywhere on land
    """

    level: Decimal
    radius_m: int
    max_values: int | None
    grid: Grid
    places: tuple[int, ...]
    h3_resolution: int | None = None
    people: People = "land"  # as in definitions that were made before there was a choice

    @property
    def spec(self) -> LocationSpec:
        """Return the specification for the library."""
        return LocationSpec(
            level=Fraction(self.level),
            radius_m=Fraction(self.radius_m),
            grid=self.grid,
            max_values=self.max_values,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyDefinition:
    """A valid study file with the files that it names.

    population : name of the people; what studies of the same one reveal of a person adds up
    key_until : day by which the study must be closed and its key destroyed; None = no such day
    category_shares : market shares of the categories of static indicators, for totals of the population
    units : what is counted: "events", one in each row; None = visitors
    classes : of subscribers, each with its epsilon; none = all have that of the plan
    """

    slug: str
    name: str
    timezone: str
    first_day: date
    days: int
    expected_subscribers: int | None
    market_share: Decimal
    min_publication: int
    visitor: VisitorRule
    extract: ExtractProfile
    plan: PlanDefinition
    indicators: tuple[IndicatorDefinition, ...]
    area: AreaDefinition | None
    subscribers: SubscriberExtract | None = None
    small_cell: int = 0
    small_category: int | None = None
    location: LocationDefinition | None = None
    population: str = DEFAULT_POPULATION
    key_until: date | None = None
    name_fr: str | None = None
    slots: SlotsDefinition | None = None
    category_shares: tuple[CategoryShares, ...] = ()
    units: Units | None = None
    classes: tuple[ClassDefinition, ...] = ()

    @property
    def of_events(self) -> bool:
        """Return whether each row is a unit, instead of a person who may be in many rows."""
        return self.units is not None

    @property
    def shown_name(self) -> str:
        """Return the name in the active language."""
        return in_language(self.name, self.name_fr)

    @property
    def static_indicators(self) -> tuple[IndicatorDefinition, ...]:
        """Indicators that read a column."""
        return tuple(indicator for indicator in self.indicators if indicator.column is not None)

    @property
    def night(self) -> tuple[int, int] | None:
        """(night_from, night_to) in minutes, where an indicator is derived from the night; else None."""
        for indicator in self.indicators:
            if indicator.night_from is not None and indicator.night_to is not None:
                return indicator.night_from, indicator.night_to
        return None

    @property
    def last_day(self) -> date:
        return self.first_day + timedelta(days=self.days - 1)

    @property
    def n_windows(self) -> int:
        """Days and unions of consecutive days."""
        return self.days * (self.days + 1) // 2

    def day_of(self, when: date) -> int:
        """Number of the study day of `when`; outside 1..days when it is not in the study."""
        return (when - self.first_day).days + 1

    def reports_code(self, indicator: IndicatorDefinition) -> bool:
        """Return whether an indicator is of hours and is reported by the best code that names one."""
        is_possible = self.plan.mechanism.startswith("smp-") and self.plan.presence_epsilon is None
        return is_possible and not self.classes and indicator.derive in OF_HOURS

    def plan_spec(self, *, version: int = 1) -> PlanSpec:
        """Return the plan as the library takes it."""
        return build_plan(
            mechanism=self.plan.mechanism,
            unit=self.plan.unit,
            version=version,
            days=self.days,
            epsilon=self.plan.epsilon,
            indicators=[
                IndicatorRequest(
                    slug=indicator.slug,
                    kind=indicator.kind,
                    domain_size=len(indicator.categories),
                    epsilon=indicator.epsilon,
                    max_values=indicator.max_values,
                    weight=indicator.weight,
                    parts=indicator.parts,
                    scale=indicator.scale,
                    moves=indicator.moves,
                    by_code=self.reports_code(indicator),
                    lookup="" if indicator.lookup is None else indicator.lookup.sha256,
                    regions=indicator.regions,
                    sensitive=indicator.hidden,
                )
                for indicator in self.indicators
            ],
            location=None if self.location is None else self.location.spec,
            presence_epsilon=self.plan.presence_epsilon,
            presence_days=self.plan.presence_days,
            tallies=self.plan.tallies,
            epsilon_first=self.plan.epsilon_first,
            hash_cells=self.plan.hash_cells,
            window_days=self.plan.window_days,
            slots=None if self.slots is None else self.slots.spec,
            events=self.of_events,
            max_events=self.plan.max_events,
            classes={each.slug: each.epsilon for each in self.classes},
        )

    def answered_days(self) -> dict[str, int | None]:
        """Return the days on which a person reports on each indicator, by slug; None = all, or static.

        As typed, or as they follow from the window of a stream.
        """
        return {asked.slug: asked.max_values for asked in self.plan_spec().indicators}

    def to_json(self) -> dict[str, Any]:
        """Plain values; decimals and dates become text, so that nothing is rounded."""
        plain: dict[str, Any] = plain_value(self)
        return plain

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild what `to_json` wrote."""
        return cls(
            **{
                **data,
                "first_day": date.fromisoformat(data["first_day"]),
                "market_share": Decimal(data["market_share"]),
                "visitor": VisitorRule(**data["visitor"]),
                "extract": ExtractProfile(**_with_share(data["extract"])),
                "plan": _plan_from_json(data["plan"]),
                "indicators": tuple(_indicator_from_json(item) for item in data["indicators"]),
                "area": None if data["area"] is None else _area_from_json(data["area"]),
                "subscribers": _subscribers_from_json(data.get("subscribers")),
                "location": _location_from_json(data.get("location")),
                "key_until": _date(data.get("key_until")),
                "slots": None if data.get("slots") is None else SlotsDefinition.from_json(data["slots"]),
                "category_shares": tuple(map(CategoryShares.from_json, data.get("category_shares", ()))),
                "classes": tuple(map(ClassDefinition.from_json, data.get("classes", ()))),
            }
        )


def plain_value(value: Any) -> Any:
    """Return a value of a definition as JSON has it: decimals and dates as text."""
    if is_dataclass(value):
        found = ((each.name, getattr(value, each.name)) for each in fields(value))
        return {name: plain_value(of) for name, of in found if of not in (None, ()) or name not in _LEFT_OUT}
    if isinstance(value, tuple):
        return [plain_value(each) for each in value]
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, date):
        return value.isoformat()
    return value


def _decimal(text: str | None) -> Decimal | None:
    return None if text is None else Decimal(text)


def _date(text: str | None) -> date | None:
    return None if text is None else date.fromisoformat(text)


def _texts(data: list[str] | None) -> tuple[str, ...] | None:
    return None if data is None else tuple(data)


def _with_share(data: Mapping[str, Any]) -> dict[str, Any]:
    return {**data, "max_bad_share": Decimal(data["max_bad_share"])}


def _subscribers_from_json(data: Mapping[str, Any] | None) -> SubscriberExtract | None:
    return None if data is None else SubscriberExtract(**_with_share(data))


def _location_from_json(data: Mapping[str, Any] | None) -> LocationDefinition | None:
    if data is None:
        return None
    exact = {
        "level": Decimal(data["level"]),
        "grid": Grid.from_json(data["grid"]),
        "places": tuple(data["places"]),
    }
    return LocationDefinition(**{**data, **exact})


def _plan_from_json(data: Mapping[str, Any]) -> PlanDefinition:
    exact = {
        "epsilon": Decimal(data["epsilon"]),
        "epsilon_profile": _decimal(data["epsilon_profile"]),
        "presence_epsilon": _decimal(data.get("presence_epsilon")),
        "tallies": tuple(data.get("tallies", ())),
        "epsilon_first": _decimal(data.get("epsilon_first")),
    }
    return PlanDefinition(**{**data, **exact})


def _indicator_from_json(data: Mapping[str, Any]) -> IndicatorDefinition:
    exact = {
        "categories": tuple(data["categories"]),
        "categories_fr": _texts(data.get("categories_fr")),
        "epsilon": _decimal(data["epsilon"]),
        "weight": _decimal(data.get("weight")),
        "parts": tuple(data.get("parts", ())),
        "scale": Scale.from_json(data.get("scale")),
        "lookup": Lookup.from_json(data.get("lookup")),
        "origin": OriginRule.from_json(data.get("origin")),
        "groups": tuple((name, tuple(members)) for name, members in data.get("groups", ())),
        "sensitive": tuple(data.get("sensitive", ())),
    }
    return IndicatorDefinition(**{**data, **exact})


def _area_from_json(data: Mapping[str, Any]) -> AreaDefinition:
    cells = tuple(
        Cell(**{**cell, "valid_from": _date(cell["valid_from"]), "valid_to": _date(cell["valid_to"])})
        for cell in data["cells"]
    )
    exact = {
        "cells": cells,
        "zones": tuple(data["zones"]),
        "zones_fr": _texts(data.get("zones_fr")),
        "layers": tuple(MapLayer(**layer) for layer in data.get("layers", ())),
    }
    return AreaDefinition(**{**data, **exact})
