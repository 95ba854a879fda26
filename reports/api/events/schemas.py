"""Schemas of events by period. Names are those of their files."""

from datetime import date
from typing import Annotated, Literal

from pydantic import Field

from reports.api.presence.schemas import PastErrors
from reports.api.schemas import PageOf, Slug, State, Strict

Share = Annotated[float | None, Field(description="share of the events; null if there is none to show")]
Events = Annotated[float | None, Field(description="estimated number of events of the category")]
Exact = Annotated[int, Field(description="number of events, exact")]


class EventStudyLine(Strict):
    """A study of events."""

    study: Slug
    name: str
    state: State
    first_day: date
    last_day: date
    days: int
    indicators: list[str]
    n_events: Exact


class PeriodOfDays(Strict):
    """A period, and the days of the study in it."""

    period: str = Field(description="2024-05-01, 2024-W18, 2024-05, 2024-Q2 or 2024")
    first_day: date
    last_day: date
    is_whole: bool = Field(description="false: the study covers only part of the period")
    n_events: Exact


class EventEstimate(Strict):
    """A category in one period, with its 95% intervals."""

    category: str
    reports: int | None = Field(description="randomised answers that support the category")
    frequency: Share = Field(description="unbiased estimate of the share of the events")
    std_error: Share
    ci_low: Share
    ci_high: Share
    consistent: Share = Field(description="nearest shares that are not negative and add up to 1")
    events: Events
    events_ci_low: Events
    events_ci_high: Events
    status: Literal["ok", "not_reliable", "no_answers", "no_events"]


class PeriodEstimates(PeriodOfDays):
    """All categories of an indicator in one period."""

    study: Slug
    indicator: Slug
    plan_version: int
    mechanism: str
    epsilon: float = Field(description="nominal epsilon of one answer")
    unit: Literal["attribute", "profile"] = Field(
        description="values that epsilon protects: one of an event's values, or all of them"
    )
    max_events: int | None = Field(description="most events of a person that are answered; null: all")
    n_reports: int | None = Field(description="answers that are used")
    estimates: list[EventEstimate]
    ci_level: float = Field(description="confidence level")
    timezone: str = Field(description="IANA time zone")
    software_version: str


class ExpectedEvents(Strict):
    """A model's expected number of events in the next period; it was not counted."""

    name: str | None = Field(description="category; null: all events")
    level: None
    ahead: int = Field(description="always 1: the next period")
    period: str
    at: date = Field(description="first day of the period")
    last_day: date
    value: float
    low_80: float | None
    high_80: float | None
    low_95: float | None
    high_95: float | None
    weekday_mean: float = Field(description="mean of each weekday so far, added up over the period")
    last_period: str | None
    last_value: float | None = Field(description="events in the last whole period")


class EventForecast(Strict):
    """Forecast of the next period. The backtest is of all events of the next day."""

    study: Slug
    kind: Literal["events"]
    indicator: Slug
    n_known: int
    last: date | None = Field(description="last day with events")
    method: str | None = Field(description="null: no forecast")
    timezone: str
    rows: list[ExpectedEvents] = Field(description="empty with a short history, or until it is computed")
    backtest: list[PastErrors]
    software_version: str


class EventStudyPage(PageOf):
    items: list[EventStudyLine]


class PeriodPage(PageOf):
    items: list[PeriodOfDays]


class PeriodEstimatesPage(PageOf):
    items: list[PeriodEstimates]
