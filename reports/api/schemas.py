"""What the API answers, as its OpenAPI document describes it. Names are those of the exports."""

from datetime import date, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Share = Annotated[float | None, Field(description="share of the visitors; null where there is none to show")]
Number = Annotated[float | None, Field(description="number of visitors, scaled by the market share")]
Visitors = Annotated[
    int | None,
    Field(
        description="exact number of different visitors as it was counted, unscaled, whatever the status; "
        "null where the study hides small ones; with presence noise it is noisy, and may be negative"
    ),
]
NoisyEnd = Annotated[
    int | None,
    Field(description="end of the interval of n_visitors; there in studies with presence noise only"),
]
Slug = Annotated[str, Field(description="name in addresses")]
State = Literal["open", "closed"]
Status = Annotated[
    Literal["ok", "not_reliable", "not_collected", "suppressed", "outage"],
    Field(description="whether the numbers are to be read, and if not, why"),
]


class Strict(BaseModel):
    """An object with these members and no others."""

    model_config = ConfigDict(extra="forbid")


class Estimate(Strict):
    """One category in one window, with its error: intervals are at 95 %."""

    category: str
    reports: int | None = Field(description="sanitised answers that support the category")
    frequency: Share = Field(description="unbiased estimate; the noise may push it below 0 or above 1")
    std_error: Share
    ci_low: Share
    ci_high: Share
    consistent: Share = Field(description="nearest share that is not negative and adds up to 1")
    visitors: Number
    visitors_ci_low: Number
    visitors_ci_high: Number
    status: Status


class Report(Strict):
    """All categories of an indicator in one window, and the plan that they were collected under."""

    study: Slug
    indicator: Slug
    first_day: date
    last_day: date
    plan_version: int
    mechanism: str
    epsilon: float = Field(description="nominal epsilon of one answer to this indicator")
    unit: Literal["attribute", "profile"] = Field(description="what epsilon is about")
    n_visitors: Visitors
    n_reports: int | None = Field(description="subscribers who answer this indicator in this window")
    estimates: list[Estimate]
    status: Status
    ci_level: float = Field(description="share of such intervals that contain the true value")
    timezone: str = Field(description="of the days")
    software_version: str
    n_visitors_ci_low: NoisyEnd = None
    n_visitors_ci_high: NoisyEnd = None


class StudyLine(Strict):
    """A study in the list of studies."""

    study: Slug
    name: str
    state: State
    first_day: date
    last_day: date
    days: int
    n_indicators: int
    n_visitors: Visitors


class Note(Strict):
    """What people wrote about a day."""

    kind: Literal["outage", "event"]
    text: str


class Day(Strict):
    """One day of a study."""

    day: date
    n_visitors: Visitors
    first_time: int | None = Field(
        description="of these, who was not there on an earlier day of the study; null where it would tell of "
        "a number that the study hides; with presence noise it is noisy, and may be negative"
    )
    status: Status
    notes: list[Note]
    n_visitors_ci_low: NoisyEnd = None
    n_visitors_ci_high: NoisyEnd = None
    first_time_ci_low: NoisyEnd = None
    first_time_ci_high: NoisyEnd = None


class VisitorRule(Strict):
    """Who counts as present on a day."""

    min_minutes: int
    from_: str = Field(alias="from", description="local time, HH:MM")
    to: str = Field(description="local time, the whole minute included")


class Area(Strict):
    """Where a study looks."""

    n_cells: int
    zones: list[str]


class PlanFacts(Strict):
    """How answers are protected; the statement has the exact numbers."""

    version: int
    mechanism: str
    unit: Literal["attribute", "profile"]
    epsilon: str = Field(description="as it was typed, an exact decimal")
    epsilon_profile_cap: str | None
    indicators_per_person: int
    has_fake_data: bool
    spec_sha256: str


class StudyRecord(Strict):
    """A study with its days, what was collected on each, and its plan in force."""

    study: Slug
    name: str
    state: State
    closed_at: datetime | None
    timezone: str
    first_day: date
    last_day: date
    days: int
    market_share: str = Field(description="exact decimal, above 0 and at most 1")
    min_publication: int
    small_cell: int = Field(description="windows with fewer visitors are not shown; 0 = no such rule")
    visitor: VisitorRule
    area: Area | None
    indicators: list[Slug]
    n_windows: int
    n_visitors: Visitors
    plan: PlanFacts
    coverage: list[Day]


class IndicatorRecord(Strict):
    """One question about a visitor, with its public list of answers."""

    study: Slug
    indicator: Slug
    name: str
    kind: Literal["static", "daily"]
    categories: list[str]
    unions_of_days: bool = Field(description="false: single days only")
    n_windows: int
    plan_version: int
    mechanism: str
    epsilon: float = Field(description="nominal epsilon of one answer to this indicator")
    unit: Literal["attribute", "profile"]


class VisitorsOfWindow(Strict):
    """Number of different visitors of a window: exact, or with presence noise and an interval."""

    first_day: date
    last_day: date
    n_visitors: Visitors
    status: Status
    n_visitors_ci_low: NoisyEnd = None
    n_visitors_ci_high: NoisyEnd = None


class Problem(BaseModel):
    """A refusal (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[dict[str, str]] = Field(default=[], description="which parameter, and what is wrong with it")


class PageOf(Strict):
    """A part of a list. The header Link has the addresses of the next and the previous part."""

    count: int = Field(description="entries of the whole list")
    next: str | None = Field(description="address of the next part; null: this is the last one")


class StudyPage(PageOf):
    items: list[StudyLine]


class IndicatorPage(PageOf):
    items: list[IndicatorRecord]


class ReportPage(PageOf):
    items: list[Report]


class VisitorPage(PageOf):
    items: list[VisitorsOfWindow]


Subscribers = Annotated[
    float | None,
    Field(description="subscribers seen by the network, not scaled; null: density_status or status says why"),
]
DensityStatus = Literal["done", "waiting", "running", "failed", "not_computed"]


class PlacesHead(Strict):
    """A window of reported places, and the noise that protects each of them."""

    study: Slug
    first_day: date
    last_day: date
    plan_version: int
    mechanism: str
    level: float = Field(description="epsilon within radius_m")
    radius_m: float
    epsilon_per_m: float = Field(description="certified for one report, rounded up")
    unit: Literal["place"] = Field(description="what epsilon is about: the place of a person on one day")
    places_per_person: int = Field(description="their epsilons add up where places differ")
    n_visitors: Visitors
    n_reports: int | None
    status: Status
    density_status: DensityStatus = Field(
        description="of the deconvolved map, which the page of maps asks for"
    )
    ci_level: float = Field(description="share of such intervals that contain the true value")
    timezone: str = Field(description="of the days")
    software_version: str


class Zone(Strict):
    """Reports that lie in a zone, and subscribers who truly were there."""

    zone: str | None = Field(description="null: squares in no zone")
    n_squares: int = Field(description="squares of the grid whose middle is in the zone")
    reports: int | None = Field(description="exact as a count; where a report lies is noisy")
    subscribers: Subscribers
    std_error: Subscribers
    ci_low: Subscribers
    ci_high: Subscribers
    status: Status
    density_status: DensityStatus | Literal["too_many_zones", "no_square"]


class Places(PlacesHead):
    zones: list[Zone]


class Square(Strict):
    """A square of the grid."""

    square: int = Field(description="row * n_x + column; rows go north, columns east")
    x_m: float = Field(description="middle, in metres of the projection")
    y_m: float
    reports: int | None = Field(description="exact as a count; where a report lies is noisy")
    density: Subscribers
    std_error: Subscribers
    low: Subscribers
    high: Subscribers
    zone: str | None = Field(description="that of the middle of the square")
    land: bool


class Grid(Strict):
    """Lower left corner, side and number of the squares."""

    x0_m: int
    y0_m: int
    step_m: int
    n_x: int
    n_y: int


class PlacesOnGrid(PlacesHead):
    projection: str = Field(description="of the metres, as PROJ reads it")
    grid: Grid


class SquarePage(PageOf):
    window: PlacesOnGrid
    items: list[Square]


class Statement(BaseModel):
    """The privacy statement; docs/statement.schema.json has its whole schema."""

    model_config = ConfigDict(extra="allow")
    schema_version: int
    software: dict[str, str]
    study: dict[str, Any]
    plan: dict[str, Any]
    guarantee: dict[str, Any]
    indicators: list[dict[str, Any]]
    not_protected: list[dict[str, str]]
    composition: dict[str, Any]
    retention: list[dict[str, str | None]]
