"""Schemas of presence by slot, as the OpenAPI document describes them."""

from datetime import date, datetime
from typing import Literal

from pydantic import Field

from reports.api.schemas import Number, Slug, Strict


class SlotZone(Strict):
    """People of a zone in a slot."""

    level: str | None = Field(
        description="name of the zone level, for a larger zone; null: a zone of the area"
    )
    zone: str
    count: int | None = Field(description="as published, with its noise, not scaled; can be below 0")
    people: Number
    std_error: Number
    ci_low: Number
    ci_high: Number


class Slot(Strict):
    """A time slot with its zones."""

    day: date = Field(description="local day")
    slot_start: datetime = Field(description="local time with its offset from UTC")
    slot_end: datetime = Field(description="exclusive end of the slot")
    status: Literal["ok", "not_yet", "not_collected", "outage"] = Field(
        description="not_collected: no file arrived for the day, so the numbers do not represent people; "
        "outage: the source failed on the day"
    )
    zones: list[SlotZone]


class SlotHead(Strict):
    """Definition and protection of the slots."""

    study: Slug
    first_day: date
    last_day: date
    slot_minutes: int
    hold_minutes: int = Field(description="minutes for which a person counts where last seen")
    slots_per_day: int = Field(description="maximum slots counted per person and local day")
    mechanism: Literal["discrete-gaussian", "none"]
    epsilon_day: float | None = Field(description="certified for a person's local day; null: not protected")
    delta: float | None
    plan_version: int
    market_share: float
    ci_level: float = Field(description="confidence level")
    timezone: str = Field(description="IANA time zone")
    software_version: str


class PresencePage(Strict):
    """Slots of a study in their order."""

    presence: SlotHead
    items: list[Slot]
    count: int = Field(description="number of slots in all pages")
    next: str | None = Field(description="address of the next page")


class Expected(Strict):
    """A forecast: people of a zone (scaled), visitors of a day, or the share of a category."""

    name: str | None = Field(description="name of the zone or category; null: all visitors")
    level: str | None
    ahead: int = Field(description="number of slots or days ahead")
    at: str
    value: float
    low_80: float | None
    high_80: float | None
    low_95: float | None
    high_95: float | None


class PastErrors(Strict):
    """Errors on past days, with earlier figures only."""

    name: str | None
    level: str | None
    ahead: int
    days: int
    rmse: float | None
    rmse_last_value: float | None
    rmse_week_before: float | None
    mae: float | None
    mae_last_value: float | None
    mae_week_before: float | None
    coverage_80: float | None
    coverage_95: float | None


class Forecast(Strict):
    """Forecast of the next slots or days."""

    study: Slug
    kind: Literal["slots", "days"]
    indicator: str | None
    n_known: int
    last: str | None = Field(description="last published slot or day")
    method: str | None = Field(description="null: no forecast")
    timezone: str
    rows: list[Expected]
    backtest: list[PastErrors]
    software_version: str
    market_share: float | None


class SmoothedDay(Strict):
    """A category on one day: its estimate, and the share after smoothing."""

    category: str
    date: str
    frequency: float | None = Field(description="unbiased; null: no estimate on this day")
    std_error: float | None
    live: float | None = Field(description="by the days until this one")
    live_std_error: float | None
    smoothed: float | None = Field(description="by all days; biased where shares change suddenly")
    smoothed_std_error: float | None = Field(description="under the model of small changes")
    smoothed_ci_low: float | None
    smoothed_ci_high: float | None
    is_change: bool = Field(description="the estimate is unlike the days before")


class VisitorDaysSum(Strict):
    """Visitors of a category, added over days, scaled; a person of two days counts twice."""

    category: str
    days: int = Field(description="number of days with figures")
    value: float
    low: float
    high: float


class Smoothed(Strict):
    """Smoothed shares of a stream; no rows for another indicator."""

    study: Slug
    indicator: str
    plan_version: int
    window_days: int | None
    false_alarms: float = Field(description="probability that a day without a sudden change is marked")
    rows: list[SmoothedDay]
    visitor_days: list[VisitorDaysSum]
    software_version: str
