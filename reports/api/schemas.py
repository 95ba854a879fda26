"""Schemas of the API, as its OpenAPI document describes them. Names are those of the exports."""

from datetime import date, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from reports.api.parameters import Day as GivenDay

Share = Annotated[float | None, Field(description="share of the visitors; null if there is none to show")]
Moved = Annotated[float | None, Field(description="number of moves, scaled by the market share")]
Number = Annotated[float | None, Field(description="number of visitors, scaled by the market share")]
Visitors = Annotated[
    int | None,
    Field(
        description="distinct visitors as counted, not scaled, with any status; null if suppressed as a "
        "small cell; noisy, and possibly negative, with presence noise"
    ),
]
NoisyEnd = Annotated[
    int | None,
    Field(description="end of its 95% interval; only with presence noise"),
]
Slug = Annotated[str, Field(description="slug")]
State = Literal["open", "closed"]
Status = Annotated[
    Literal["ok", "not_reliable", "not_collected", "suppressed", "small", "outage"],
    Field(description="ok, or the reason why the numbers are not reliable"),
]


class Strict(BaseModel):
    """An object with these members and no others."""

    model_config = ConfigDict(extra="forbid")


class Estimate(Strict):
    """One category in one window, with its 95% intervals."""

    category: str
    reports: int | None = Field(description="randomised answers that support the category")
    frequency: Share = Field(description="unbiased estimate; noise can push it below 0 or above 1")
    std_error: Share
    ci_low: Share
    ci_high: Share
    consistent: Share = Field(description="nearest shares that are not negative and add up to 1")
    visitors: Number
    visitors_ci_low: Number
    visitors_ci_high: Number
    status: Status
    visitors_below: int | None = Field(
        default=None, description="limit that hides a small category; only in studies with `small_category`"
    )


class Window(Strict):
    """Figures of an indicator in one window, and their plan."""

    study: Slug
    indicator: Slug
    first_day: date
    last_day: date
    plan_version: int
    mechanism: str
    epsilon: float = Field(description="nominal epsilon of one answer")
    unit: Literal["attribute", "profile"] = Field(description="privacy unit")
    n_visitors: Visitors
    n_reports: int | None = Field(description="number of subscribers who answered")
    ci_level: float = Field(description="confidence level")
    timezone: str = Field(description="IANA time zone")
    software_version: str


class Report(Window):
    """All categories of an indicator in one window."""

    estimates: list[Estimate]
    status: Status
    n_visitors_ci_low: NoisyEnd = None
    n_visitors_ci_high: NoisyEnd = None


class ScenarioRow(Strict):
    """People, from the least to the most: of the question, a category, or a pattern of days; or stays."""

    figure: Literal["people", "stays", "category", "pattern"]
    category: str | None
    pattern_days: str | None = Field(description="exact days of presence, separated by spaces")
    n_days: int | None = Field(description="number of days in the pattern")
    least: float | None = Field(description="only categories are scaled by the market share")
    most: float | None
    estimate: float | None = Field(description="best estimate; null if it is hidden because it is small")
    interval: Literal["count", "bounds", "at_least"] | None = Field(
        description="count: exact; bounds: certain; at_least: contains the truth with at least `ci_level`"
    )
    status: Status


class Scenario(Strict):
    """Number of people who came on chosen days."""

    study: Slug
    indicator: str | None = Field(description="slug of the indicator; null: only all people combined")
    first_day: date
    last_day: date
    n_visitors: int | None = Field(description="null if hidden or noisy")
    question: Literal["days", "exactly", "in_a_row", "nights"]
    present_days: str | None = Field(description="dates, separated by spaces")
    absent_days: str | None = Field(description="dates, separated by spaces")
    k: int | None = Field(description="number of days or nights in the question")
    sentence: str = Field(description="the answer in words")
    rows: list[ScenarioRow]
    market_share: float
    ci_level: float = Field(description="confidence level")
    timezone: str = Field(description="IANA time zone")
    software_version: str


Filter = Annotated[
    dict[str, list[str | None]],
    Field(
        description="categories to include, by slug of a part; null: people without a value; default: all "
        "categories"
    ),
]


class Range(Strict):
    """Categories from one to another, in the order of the plan."""

    first: str | None = Field(None, alias="from", description="default: the first category")
    last: str | None = Field(None, alias="to", description="default: the last category")


class Query(Strict):
    """A question about the categories of an indicator, or about combinations of a joint one."""

    indicator: str = Field(description="slug of an indicator; a single one is its own only part")
    first_day: GivenDay | None = Field(None, alias="from", description="first day; default: of the study")
    last_day: GivenDay | None = Field(None, alias="to", description="last day; default: the same day")
    where: Filter = Field({}, validate_default=True)
    ranges: dict[str, Range] = Field({}, description="additional range of categories, by slug of a part")
    groups: dict[str, list[str]] = Field({}, description="groups of categories, by slug of a part")


class QueryAnswer(Window):
    """Share of the visitors who have the chosen categories."""

    where: Filter = Field(description="all categories asked for, by the slug of a part")
    sentence: str = Field(description="the answer in words")
    frequency: Share = Field(description="unbiased estimate; noise can push it below 0 or above 1")
    std_error: Share
    ci_low: Share
    ci_high: Share
    visitors: Number
    visitors_ci_low: Number
    visitors_ci_high: Number
    status: Status
    visitors_below: int | None = Field(
        default=None, description="limit that hides a small category; only in studies with `small_category`"
    )
    market_share: float


class Association(Window):
    """Result of a test of two parts of a joint indicator."""

    rows: Slug
    columns: Slug
    go_together: bool | None = Field(description="independence is rejected at 5%; null: no test")
    sentence: str = Field(description="the result, or why there is no test")
    limits: str
    statistic: float | None = Field(description="chi-square")
    degrees: int | None = Field(description="degrees of freedom")
    p_value: float | None
    market_share: float


class Change(Window):
    """Result of a test of all categories of an indicator in two windows."""

    reference_first_day: date
    reference_last_day: date
    reference_n_visitors: Visitors
    reference_n_reports: int | None
    differs: bool | None = Field(description="equal shares are rejected at 5%; null: no test")
    sentence: str = Field(description="the result, or why there is no test")
    statistic: float | None = Field(description="chi-square")
    degrees: int | None = Field(description="degrees of freedom")
    p_value: float | None
    market_share: float


class FlowRow(Strict):
    """One pair; null: all origins or destinations."""

    origin: str | None
    destination: str | None
    visitors: Number
    visitors_ci_low: Number
    visitors_ci_high: Number
    frequency: Share
    std_error: Share
    ci_low: Share
    ci_high: Share
    consistent: Share = Field(description="as on the page: never negative, and all pairs add up to 1")
    larger_than_noise: Literal["yes", "no"] | None = Field(description="null for totals")
    status: Status


class Flows(Window):
    """People by origin and destination."""

    n_visitors: int = Field(description="for a daily indicator: visitor-days")
    n_reports: int
    n_days: int | None = Field(description="number of days with figures; null for a static indicator")
    origin_indicator: Slug
    destination_indicator: Slug
    rows: list[FlowRow]
    market_share: float


class MoveRow(Strict):
    """Moves of one pair; null: all origins or destinations."""

    origin: str | None
    destination: str | None
    moves: Moved
    moves_ci_low: Moved
    moves_ci_high: Moved
    moves_per_visitor_day: float | None
    std_error: float | None = Field(description="of moves per visitor-day")
    ci_low: float | None
    ci_high: float | None
    moves_balanced: float | None = Field(description="as many to each zone as from it")
    larger_than_noise: Literal["yes", "no"] | None = Field(description="null for totals")
    status: Status


class Moves(Window):
    """Moves between zones."""

    n_visitors: int = Field(description="visitor-days")
    n_reports: int
    n_days: int = Field(description="number of days with figures")
    max_moves: int = Field(description="moves of a day that count in full")
    rows: list[MoveRow]
    market_share: float


class VisitedRow(Strict):
    """Visitors of one zone, or of both zones of a pair, on a day."""

    zone: str
    other_zone: str | None = Field(description="null: visitors of one zone")
    visitors: Number
    visitors_ci_low: Number
    visitors_ci_high: Number
    frequency: Share
    std_error: float | None
    ci_low: Share
    ci_high: Share
    larger_than_noise: Literal["yes", "no"]
    status: Status


class Visited(Window):
    """Visited zones, or pairs of zones that are visited on the same day."""

    n_visitors: int = Field(description="visitor-days")
    n_reports: int
    n_days: int = Field(description="number of days with figures")
    max_visits: int = Field(description="zones or pairs of a day that count in full")
    rows: list[VisitedRow]
    market_share: float


class NumberRow(Strict):
    """A figure of a number, in its unit."""

    statistic: Literal["mean", "quantile", "reference_mean", "difference"]
    share_below: float | None = Field(description="share of visitors with a lower value")
    value: float | None
    value_below: float | None = Field(description="upper limit of a quantile; null: no limit")
    unit_of_value: str
    std_error: float | None
    ci_low: float | None
    ci_high: float | None
    interval: Literal["exact", "at_least"] = Field(description="at_least: the error is an upper bound")
    status: Status


class NumberAnswer(Window):
    """Mean and quantiles of a number in one window."""

    sentence: str = Field(description="the answer in words")
    cuts: list[int] = Field(description="values are rounded down to these, or to the minimum")
    minimum: int
    report: Literal["threshold", "wave"] = Field(description="what a person reports: side of a cut, or level")
    rows: list[NumberRow]
    market_share: float


class MeansRow(Strict):
    """Mean of a number in one category, and the share of visitors who are in it and have a number."""

    number: Slug
    by: Slug
    by_category: str
    mean: float | None = Field(description="null: there may be no one in the category")
    mean_std_error: float | None
    mean_ci_low: float | None
    mean_ci_high: float | None
    unit_of_mean: str
    mean_status: Status
    share: float | None
    share_std_error: float | None
    share_ci_low: float | None
    share_ci_high: float | None
    share_status: Status
    interval: Literal["at_least"] = Field(description="the error is an upper bound")


class MeansAnswer(Window):
    """Mean of a number by category in one window."""

    cuts: list[int] = Field(description="values are rounded down to these, or to the minimum")
    minimum: int
    rows: list[MeansRow]
    market_share: float


People = Annotated[
    float | None, Field(description="people: visitors divided by the market share of their category")
]
NotScaled = Annotated[float | None, Field(description="visitors as the network sees them")]


class ExtrapolationRow(Strict):
    """Total of a window, or one of its categories, with the market shares by category that were used."""

    study: Slug
    indicator: Slug
    first_day: date
    last_day: date
    plan_version: int
    mechanism: str
    epsilon: float = Field(description="nominal epsilon of one answer")
    unit: Literal["attribute", "profile"] = Field(description="privacy unit")
    n_visitors: Visitors
    n_reports: int | None
    shares_name: str = Field(description="name of the market shares")
    shares_valid_from: date
    shares_valid_to: date | None = Field(description="last day; null: no end")
    category: str | None = Field(description="null: the total of all categories")
    category_share: float | None = Field(description="market share of the category; null for totals")
    category_share_low: float | None = Field(
        description="end of its 95% interval; null: a total, or a share taken as exact"
    )
    category_share_high: float | None
    not_scaled: NotScaled
    not_scaled_std_error: NotScaled
    not_scaled_ci_low: NotScaled = Field(description="null for totals, which are counted")
    not_scaled_ci_high: NotScaled
    scaled: People
    scaled_std_error: People
    scaled_ci_low: People
    scaled_ci_high: People
    status: Status


class ExtrapolationAnswer(Strict):
    """Totals of a window and of each of its days."""

    sentence: str = Field(description="the total of the window in words, or why there is none")
    rows: list[ExtrapolationRow] = Field(
        description="the window, then its days; without those for which no market shares are valid"
    )


class ClassRow(Strict):
    """Share of one category in one class of subscribers."""

    study: Slug
    indicator: Slug
    first_day: date
    last_day: date
    plan_version: int
    mechanism: str
    epsilon: float = Field(description="nominal epsilon of one answer, the largest of all classes")
    unit: Literal["attribute", "profile"] = Field(description="privacy unit")
    n_visitors: Visitors
    n_reports: int | None
    class_: str | None = Field(
        alias="class", description="slug; null: all classes, assuming that they have the same shares"
    )
    class_epsilon: float | None = Field(description="nominal epsilon of one answer in the class")
    class_visitors: int | None = Field(description="visitors of the class, as counted")
    class_reports: int | None = Field(description="answers of the class")
    category: str
    frequency: Share
    std_error: Share
    ci_low: Share
    ci_high: Share
    status: Status


class ClassesAnswer(Strict):
    """Shares by class in one window."""

    sentence: str = Field(description="what a test of equal shares found, or why nothing is shown")
    p_value: float | None = Field(description="of the test; null: there is none")
    rows: list[ClassRow] = Field(description="none where the small-cell rule hides a class")


class ModelRow(Strict):
    """Modelled share of all visitors with one combination."""

    model: Literal["maximum_entropy"]
    row_indicator: Slug
    row_category: str
    column_indicator: Slug
    column_category: str
    third_indicator: Slug
    third_category: str
    frequency: float | None
    std_error: float | None = Field(description="of noise and sampling, not of the model")
    ci_low: float | None = Field(description="lower end of the model interval, which is not a 95% interval")
    ci_high: float | None = Field(description="upper end of the model interval")
    visitors: Number
    visitors_ci_low: Number
    visitors_ci_high: Number
    status: Status


class ModelAnswer(Window):
    """Three-way table in one window: a model, no one reports on all three.

    n_reports are those of all pairs together, and epsilon is the largest of one answer.
    """

    pairs: list[Slug] = Field(description="joint indicators of two parts that the model is made of")
    pairs_n_reports: list[int | None]
    pairs_epsilon: list[float]
    model: Literal["maximum_entropy"]
    explanation: str
    rows: list[ModelRow]
    market_share: float


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
    """A note on a day."""

    kind: Literal["outage", "event"]
    text: str


class Day(Strict):
    """One day of a study."""

    day: date
    n_visitors: Visitors
    first_time: int | None = Field(
        description="visitors who were not present on an earlier day of the study; null if it would reveal a "
        "suppressed number; noisy, and possibly negative, with presence noise"
    )
    status: Status
    notes: list[Note]
    n_visitors_ci_low: NoisyEnd = None
    n_visitors_ci_high: NoisyEnd = None
    first_time_ci_low: NoisyEnd = None
    first_time_ci_high: NoisyEnd = None


class VisitorRule(Strict):
    """Definition of a visitor on a day."""

    min_minutes: int
    from_: str = Field(alias="from", description="local time, HH:MM")
    to: str = Field(description="local time; includes this minute")


class Area(Strict):
    """The area of a study."""

    n_cells: int
    zones: list[str]


class PlanFacts(Strict):
    """Privacy protection of answers; the statement has the exact numbers."""

    version: int
    mechanism: str
    unit: Literal["attribute", "profile"]
    epsilon: str = Field(description="exact decimal, as entered")
    epsilon_profile_cap: str | None
    indicators_per_person: int
    has_fake_data: bool
    spec_sha256: str


class StudyRecord(Strict):
    """A study with its days and its plan in force."""

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
    small_cell: int = Field(description="windows with fewer visitors are suppressed; 0: none")
    small_category: int = Field(
        default=0, description="categories with fewer visitors are hidden; absent: none"
    )
    visitor: VisitorRule
    area: Area | None
    indicators: list[Slug]
    n_windows: int
    n_visitors: Visitors
    plan: PlanFacts
    coverage: list[Day]


class IndicatorRecord(Strict):
    """One indicator with its categories."""

    study: Slug
    indicator: Slug
    name: str
    kind: Literal["static", "daily"]
    categories: list[str]
    unions_of_days: bool = Field(description="false: only single days, or periods of events, are available")
    n_windows: int = Field(description="0 in studies of events")
    plan_version: int
    mechanism: str
    epsilon: float = Field(description="nominal epsilon of one answer")
    unit: Literal["attribute", "profile"]


class VisitorsOfWindow(Strict):
    """Distinct visitors of a window: exact, or with presence noise and an interval."""

    first_day: date
    last_day: date
    n_visitors: Visitors
    status: Status
    n_visitors_ci_low: NoisyEnd = None
    n_visitors_ci_high: NoisyEnd = None


class Problem(BaseModel):
    """An error (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[dict[str, str]] = Field(default=[], description="the error for each parameter")


class PageOf(Strict):
    """A part of a list. The header Link has the addresses of the next and the previous part."""

    count: int = Field(description="entries in the whole list")
    next: str | None = Field(description="address of the next page; null on the last page")


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
    Field(description="subscribers, not scaled; if null, density_status or status says why"),
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
    unit: Literal["place"] = Field(description="privacy unit: the place of a person on one day")
    places_per_person: int = Field(description="the epsilons of different places add up")
    n_visitors: Visitors
    n_reports: int | None
    status: Status
    density_status: DensityStatus = Field(description="state of the density, which the maps page computes")
    ci_level: float = Field(description="confidence level")
    timezone: str = Field(description="IANA time zone")
    software_version: str


class Zone(Strict):
    """Reports within a zone, and the estimated number of subscribers there."""

    zone: str | None = Field(description="null: squares outside all zones")
    n_squares: int = Field(description="squares whose centre is in the zone")
    reports: int | None = Field(description="exact count of reports; the reported places are noisy")
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
    x_m: float = Field(description="centre, in metres of the projection")
    y_m: float
    reports: int | None = Field(description="exact count of reports; the reported places are noisy")
    density: Subscribers
    std_error: Subscribers
    low: Subscribers
    high: Subscribers
    zone: str | None = Field(description="zone of its centre")
    land: bool


class Grid(Strict):
    """Lower left corner, side and number of squares."""

    x0_m: int
    y0_m: int
    step_m: int
    n_x: int
    n_y: int


class PlacesOnGrid(PlacesHead):
    projection: str = Field(description="projection of coordinates in metres, for PROJ")
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
