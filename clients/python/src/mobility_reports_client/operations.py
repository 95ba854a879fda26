"""Operations of the reading API and the types of their answers.

Written by `make docs` from the OpenAPI document; changes here are lost.
"""

from abc import ABC, abstractmethod
from typing import Any, Literal, Required, TypedDict
from urllib.parse import quote


def segment(text: str) -> str:
    """Part of an address: a name never leads elsewhere."""
    return quote(text, safe="").replace(".", "%2E")


class Caller(ABC):
    """What the operations need of a client."""

    @abstractmethod
    def get(self, path: str, query: dict[str, Any]) -> Any:
        """Return the JSON at a path."""

    @abstractmethod
    def post(self, path: str, body: Any) -> Any:
        """Return the answer to a question in JSON."""


Area = TypedDict("Area", {  # noqa: UP013
    "n_cells": Required[int],
    "zones": Required[list[str]],
}, total=False)


Association = TypedDict("Association", {  # noqa: UP013
    "study": Required[str],
    "indicator": Required[str],
    "first_day": Required[str],
    "last_day": Required[str],
    "plan_version": Required[int],
    "mechanism": Required[str],
    "epsilon": Required[float],
    "unit": Required[Literal["attribute", "profile"]],
    "n_visitors": Required[int | None],
    "n_reports": Required[int | None],
    "ci_level": Required[float],
    "timezone": Required[str],
    "software_version": Required[str],
    "rows": Required[str],
    "columns": Required[str],
    "go_together": Required[bool | None],
    "sentence": Required[str],
    "limits": Required[str],
    "statistic": Required[float | None],
    "degrees": Required[int | None],
    "p_value": Required[float | None],
    "market_share": Required[float],
}, total=False)


Change = TypedDict("Change", {  # noqa: UP013
    "study": Required[str],
    "indicator": Required[str],
    "first_day": Required[str],
    "last_day": Required[str],
    "plan_version": Required[int],
    "mechanism": Required[str],
    "epsilon": Required[float],
    "unit": Required[Literal["attribute", "profile"]],
    "n_visitors": Required[int | None],
    "n_reports": Required[int | None],
    "ci_level": Required[float],
    "timezone": Required[str],
    "software_version": Required[str],
    "reference_first_day": Required[str],
    "reference_last_day": Required[str],
    "reference_n_visitors": Required[int | None],
    "reference_n_reports": Required[int | None],
    "differs": Required[bool | None],
    "sentence": Required[str],
    "statistic": Required[float | None],
    "degrees": Required[int | None],
    "p_value": Required[float | None],
    "market_share": Required[float],
}, total=False)


ClassRow = TypedDict("ClassRow", {  # noqa: UP013
    "study": Required[str],
    "indicator": Required[str],
    "first_day": Required[str],
    "last_day": Required[str],
    "plan_version": Required[int],
    "mechanism": Required[str],
    "epsilon": Required[float],
    "unit": Required[Literal["attribute", "profile"]],
    "n_visitors": Required[int | None],
    "n_reports": Required[int | None],
    "class_": Required[str | None],
    "class_epsilon": Required[float | None],
    "class_visitors": Required[int | None],
    "class_reports": Required[int | None],
    "category": Required[str],
    "frequency": Required[float | None],
    "std_error": Required[float | None],
    "ci_low": Required[float | None],
    "ci_high": Required[float | None],
    "status": Required[Literal["ok", "not_reliable", "not_collected", "suppressed", "small", "outage"]],
}, total=False)


ClassesAnswer = TypedDict("ClassesAnswer", {  # noqa: UP013
    "sentence": Required[str],
    "p_value": Required[float | None],
    "rows": Required[list["ClassRow"]],
}, total=False)


Day = TypedDict("Day", {  # noqa: UP013
    "day": Required[str],
    "n_visitors": Required[int | None],
    "first_time": Required[int | None],
    "status": Required[Literal["ok", "not_reliable", "not_collected", "suppressed", "small", "outage"]],
    "notes": Required[list["Note"]],
    "n_visitors_ci_low": int | None,
    "n_visitors_ci_high": int | None,
    "first_time_ci_low": int | None,
    "first_time_ci_high": int | None,
}, total=False)


Estimate = TypedDict("Estimate", {  # noqa: UP013
    "category": Required[str],
    "reports": Required[int | None],
    "frequency": Required[float | None],
    "std_error": Required[float | None],
    "ci_low": Required[float | None],
    "ci_high": Required[float | None],
    "consistent": Required[float | None],
    "visitors": Required[float | None],
    "visitors_ci_low": Required[float | None],
    "visitors_ci_high": Required[float | None],
    "status": Required[Literal["ok", "not_reliable", "not_collected", "suppressed", "small", "outage"]],
    "visitors_below": int | None,
}, total=False)


EventEstimate = TypedDict("EventEstimate", {  # noqa: UP013
    "category": Required[str],
    "reports": Required[int | None],
    "frequency": Required[float | None],
    "std_error": Required[float | None],
    "ci_low": Required[float | None],
    "ci_high": Required[float | None],
    "consistent": Required[float | None],
    "events": Required[float | None],
    "events_ci_low": Required[float | None],
    "events_ci_high": Required[float | None],
    "status": Required[Literal["ok", "not_reliable", "no_answers", "no_events"]],
}, total=False)


EventForecast = TypedDict("EventForecast", {  # noqa: UP013
    "study": Required[str],
    "kind": Required[Literal["events"]],
    "indicator": Required[str],
    "n_known": Required[int],
    "last": Required[str | None],
    "method": Required[str | None],
    "timezone": Required[str],
    "rows": Required[list["ExpectedEvents"]],
    "backtest": Required[list["PastErrors"]],
    "software_version": Required[str],
}, total=False)


EventStudyLine = TypedDict("EventStudyLine", {  # noqa: UP013
    "study": Required[str],
    "name": Required[str],
    "state": Required[Literal["open", "closed"]],
    "first_day": Required[str],
    "last_day": Required[str],
    "days": Required[int],
    "indicators": Required[list[str]],
    "n_events": Required[int],
}, total=False)


EventStudyPage = TypedDict("EventStudyPage", {  # noqa: UP013
    "count": Required[int],
    "next": Required[str | None],
    "items": Required[list["EventStudyLine"]],
}, total=False)


Expected = TypedDict("Expected", {  # noqa: UP013
    "name": Required[str | None],
    "level": Required[str | None],
    "ahead": Required[int],
    "at": Required[str],
    "value": Required[float],
    "low_80": Required[float | None],
    "high_80": Required[float | None],
    "low_95": Required[float | None],
    "high_95": Required[float | None],
}, total=False)


ExpectedEvents = TypedDict("ExpectedEvents", {  # noqa: UP013
    "name": Required[str | None],
    "level": Required[None],
    "ahead": Required[int],
    "period": Required[str],
    "at": Required[str],
    "last_day": Required[str],
    "value": Required[float],
    "low_80": Required[float | None],
    "high_80": Required[float | None],
    "low_95": Required[float | None],
    "high_95": Required[float | None],
    "weekday_mean": Required[float],
    "last_period": Required[str | None],
    "last_value": Required[float | None],
}, total=False)


ExtrapolationAnswer = TypedDict("ExtrapolationAnswer", {  # noqa: UP013
    "sentence": Required[str],
    "rows": Required[list["ExtrapolationRow"]],
}, total=False)


ExtrapolationRow = TypedDict("ExtrapolationRow", {  # noqa: UP013
    "study": Required[str],
    "indicator": Required[str],
    "first_day": Required[str],
    "last_day": Required[str],
    "plan_version": Required[int],
    "mechanism": Required[str],
    "epsilon": Required[float],
    "unit": Required[Literal["attribute", "profile"]],
    "n_visitors": Required[int | None],
    "n_reports": Required[int | None],
    "shares_name": Required[str],
    "shares_valid_from": Required[str],
    "shares_valid_to": Required[str | None],
    "category": Required[str | None],
    "category_share": Required[float | None],
    "category_share_low": Required[float | None],
    "category_share_high": Required[float | None],
    "not_scaled": Required[float | None],
    "not_scaled_std_error": Required[float | None],
    "not_scaled_ci_low": Required[float | None],
    "not_scaled_ci_high": Required[float | None],
    "scaled": Required[float | None],
    "scaled_std_error": Required[float | None],
    "scaled_ci_low": Required[float | None],
    "scaled_ci_high": Required[float | None],
    "status": Required[Literal["ok", "not_reliable", "not_collected", "suppressed", "small", "outage"]],
}, total=False)


FlowRow = TypedDict("FlowRow", {  # noqa: UP013
    "origin": Required[str | None],
    "destination": Required[str | None],
    "visitors": Required[float | None],
    "visitors_ci_low": Required[float | None],
    "visitors_ci_high": Required[float | None],
    "frequency": Required[float | None],
    "std_error": Required[float | None],
    "ci_low": Required[float | None],
    "ci_high": Required[float | None],
    "consistent": Required[float | None],
    "larger_than_noise": Required[Literal["yes", "no"] | None],
    "status": Required[Literal["ok", "not_reliable", "not_collected", "suppressed", "small", "outage"]],
}, total=False)


Flows = TypedDict("Flows", {  # noqa: UP013
    "study": Required[str],
    "indicator": Required[str],
    "first_day": Required[str],
    "last_day": Required[str],
    "plan_version": Required[int],
    "mechanism": Required[str],
    "epsilon": Required[float],
    "unit": Required[Literal["attribute", "profile"]],
    "n_visitors": Required[int],
    "n_reports": Required[int],
    "ci_level": Required[float],
    "timezone": Required[str],
    "software_version": Required[str],
    "n_days": Required[int | None],
    "origin_indicator": Required[str],
    "destination_indicator": Required[str],
    "rows": Required[list["FlowRow"]],
    "market_share": Required[float],
}, total=False)


Forecast = TypedDict("Forecast", {  # noqa: UP013
    "study": Required[str],
    "kind": Required[Literal["slots", "days"]],
    "indicator": Required[str | None],
    "n_known": Required[int],
    "last": Required[str | None],
    "method": Required[str | None],
    "timezone": Required[str],
    "rows": Required[list["Expected"]],
    "backtest": Required[list["PastErrors"]],
    "software_version": Required[str],
    "market_share": Required[float | None],
}, total=False)


Grid = TypedDict("Grid", {  # noqa: UP013
    "x0_m": Required[int],
    "y0_m": Required[int],
    "step_m": Required[int],
    "n_x": Required[int],
    "n_y": Required[int],
}, total=False)


IndicatorPage = TypedDict("IndicatorPage", {  # noqa: UP013
    "count": Required[int],
    "next": Required[str | None],
    "items": Required[list["IndicatorRecord"]],
}, total=False)


IndicatorRecord = TypedDict("IndicatorRecord", {  # noqa: UP013
    "study": Required[str],
    "indicator": Required[str],
    "name": Required[str],
    "kind": Required[Literal["static", "daily"]],
    "categories": Required[list[str]],
    "unions_of_days": Required[bool],
    "n_windows": Required[int],
    "plan_version": Required[int],
    "mechanism": Required[str],
    "epsilon": Required[float],
    "unit": Required[Literal["attribute", "profile"]],
}, total=False)


MeansAnswer = TypedDict("MeansAnswer", {  # noqa: UP013
    "study": Required[str],
    "indicator": Required[str],
    "first_day": Required[str],
    "last_day": Required[str],
    "plan_version": Required[int],
    "mechanism": Required[str],
    "epsilon": Required[float],
    "unit": Required[Literal["attribute", "profile"]],
    "n_visitors": Required[int | None],
    "n_reports": Required[int | None],
    "ci_level": Required[float],
    "timezone": Required[str],
    "software_version": Required[str],
    "cuts": Required[list[int]],
    "minimum": Required[int],
    "rows": Required[list["MeansRow"]],
    "market_share": Required[float],
}, total=False)


MeansRow = TypedDict("MeansRow", {  # noqa: UP013
    "number": Required[str],
    "by": Required[str],
    "by_category": Required[str],
    "mean": Required[float | None],
    "mean_std_error": Required[float | None],
    "mean_ci_low": Required[float | None],
    "mean_ci_high": Required[float | None],
    "unit_of_mean": Required[str],
    "mean_status": Required[Literal["ok", "not_reliable", "not_collected", "suppressed", "small", "outage"]],
    "share": Required[float | None],
    "share_std_error": Required[float | None],
    "share_ci_low": Required[float | None],
    "share_ci_high": Required[float | None],
    "share_status": Required[Literal["ok", "not_reliable", "not_collected", "suppressed", "small", "outage"]],
    "interval": Required[Literal["at_least"]],
}, total=False)


ModelAnswer = TypedDict("ModelAnswer", {  # noqa: UP013
    "study": Required[str],
    "indicator": Required[str],
    "first_day": Required[str],
    "last_day": Required[str],
    "plan_version": Required[int],
    "mechanism": Required[str],
    "epsilon": Required[float],
    "unit": Required[Literal["attribute", "profile"]],
    "n_visitors": Required[int | None],
    "n_reports": Required[int | None],
    "ci_level": Required[float],
    "timezone": Required[str],
    "software_version": Required[str],
    "pairs": Required[list[str]],
    "pairs_n_reports": Required[list[int | None]],
    "pairs_epsilon": Required[list[float]],
    "model": Required[Literal["maximum_entropy"]],
    "explanation": Required[str],
    "rows": Required[list["ModelRow"]],
    "market_share": Required[float],
}, total=False)


ModelRow = TypedDict("ModelRow", {  # noqa: UP013
    "model": Required[Literal["maximum_entropy"]],
    "row_indicator": Required[str],
    "row_category": Required[str],
    "column_indicator": Required[str],
    "column_category": Required[str],
    "third_indicator": Required[str],
    "third_category": Required[str],
    "frequency": Required[float | None],
    "std_error": Required[float | None],
    "ci_low": Required[float | None],
    "ci_high": Required[float | None],
    "visitors": Required[float | None],
    "visitors_ci_low": Required[float | None],
    "visitors_ci_high": Required[float | None],
    "status": Required[Literal["ok", "not_reliable", "not_collected", "suppressed", "small", "outage"]],
}, total=False)


MoveRow = TypedDict("MoveRow", {  # noqa: UP013
    "origin": Required[str | None],
    "destination": Required[str | None],
    "moves": Required[float | None],
    "moves_ci_low": Required[float | None],
    "moves_ci_high": Required[float | None],
    "moves_per_visitor_day": Required[float | None],
    "std_error": Required[float | None],
    "ci_low": Required[float | None],
    "ci_high": Required[float | None],
    "moves_balanced": Required[float | None],
    "larger_than_noise": Required[Literal["yes", "no"] | None],
    "status": Required[Literal["ok", "not_reliable", "not_collected", "suppressed", "small", "outage"]],
}, total=False)


Moves = TypedDict("Moves", {  # noqa: UP013
    "study": Required[str],
    "indicator": Required[str],
    "first_day": Required[str],
    "last_day": Required[str],
    "plan_version": Required[int],
    "mechanism": Required[str],
    "epsilon": Required[float],
    "unit": Required[Literal["attribute", "profile"]],
    "n_visitors": Required[int],
    "n_reports": Required[int],
    "ci_level": Required[float],
    "timezone": Required[str],
    "software_version": Required[str],
    "n_days": Required[int],
    "max_moves": Required[int],
    "rows": Required[list["MoveRow"]],
    "market_share": Required[float],
}, total=False)


Note = TypedDict("Note", {  # noqa: UP013
    "kind": Required[Literal["outage", "event"]],
    "text": Required[str],
}, total=False)


NumberAnswer = TypedDict("NumberAnswer", {  # noqa: UP013
    "study": Required[str],
    "indicator": Required[str],
    "first_day": Required[str],
    "last_day": Required[str],
    "plan_version": Required[int],
    "mechanism": Required[str],
    "epsilon": Required[float],
    "unit": Required[Literal["attribute", "profile"]],
    "n_visitors": Required[int | None],
    "n_reports": Required[int | None],
    "ci_level": Required[float],
    "timezone": Required[str],
    "software_version": Required[str],
    "sentence": Required[str],
    "cuts": Required[list[int]],
    "minimum": Required[int],
    "report": Required[Literal["threshold", "wave"]],
    "rows": Required[list["NumberRow"]],
    "market_share": Required[float],
}, total=False)


NumberRow = TypedDict("NumberRow", {  # noqa: UP013
    "statistic": Required[Literal["mean", "quantile", "reference_mean", "difference"]],
    "share_below": Required[float | None],
    "value": Required[float | None],
    "value_below": Required[float | None],
    "unit_of_value": Required[str],
    "std_error": Required[float | None],
    "ci_low": Required[float | None],
    "ci_high": Required[float | None],
    "interval": Required[Literal["exact", "at_least"]],
    "status": Required[Literal["ok", "not_reliable", "not_collected", "suppressed", "small", "outage"]],
}, total=False)


PastErrors = TypedDict("PastErrors", {  # noqa: UP013
    "name": Required[str | None],
    "level": Required[str | None],
    "ahead": Required[int],
    "days": Required[int],
    "rmse": Required[float | None],
    "rmse_last_value": Required[float | None],
    "rmse_week_before": Required[float | None],
    "mae": Required[float | None],
    "mae_last_value": Required[float | None],
    "mae_week_before": Required[float | None],
    "coverage_80": Required[float | None],
    "coverage_95": Required[float | None],
}, total=False)


PeriodEstimates = TypedDict("PeriodEstimates", {  # noqa: UP013
    "period": Required[str],
    "first_day": Required[str],
    "last_day": Required[str],
    "is_whole": Required[bool],
    "n_events": Required[int],
    "study": Required[str],
    "indicator": Required[str],
    "plan_version": Required[int],
    "mechanism": Required[str],
    "epsilon": Required[float],
    "unit": Required[Literal["attribute", "profile"]],
    "max_events": Required[int | None],
    "n_reports": Required[int | None],
    "estimates": Required[list["EventEstimate"]],
    "ci_level": Required[float],
    "timezone": Required[str],
    "software_version": Required[str],
}, total=False)


PeriodEstimatesPage = TypedDict("PeriodEstimatesPage", {  # noqa: UP013
    "count": Required[int],
    "next": Required[str | None],
    "items": Required[list["PeriodEstimates"]],
}, total=False)


PeriodOfDays = TypedDict("PeriodOfDays", {  # noqa: UP013
    "period": Required[str],
    "first_day": Required[str],
    "last_day": Required[str],
    "is_whole": Required[bool],
    "n_events": Required[int],
}, total=False)


PeriodPage = TypedDict("PeriodPage", {  # noqa: UP013
    "count": Required[int],
    "next": Required[str | None],
    "items": Required[list["PeriodOfDays"]],
}, total=False)


Places = TypedDict("Places", {  # noqa: UP013
    "study": Required[str],
    "first_day": Required[str],
    "last_day": Required[str],
    "plan_version": Required[int],
    "mechanism": Required[str],
    "level": Required[float],
    "radius_m": Required[float],
    "epsilon_per_m": Required[float],
    "unit": Required[Literal["place"]],
    "places_per_person": Required[int],
    "n_visitors": Required[int | None],
    "n_reports": Required[int | None],
    "status": Required[Literal["ok", "not_reliable", "not_collected", "suppressed", "small", "outage"]],
    "density_status": Required[Literal["done", "waiting", "running", "failed", "not_computed"]],
    "ci_level": Required[float],
    "timezone": Required[str],
    "software_version": Required[str],
    "zones": Required[list["Zone"]],
}, total=False)


PlacesOnGrid = TypedDict("PlacesOnGrid", {  # noqa: UP013
    "study": Required[str],
    "first_day": Required[str],
    "last_day": Required[str],
    "plan_version": Required[int],
    "mechanism": Required[str],
    "level": Required[float],
    "radius_m": Required[float],
    "epsilon_per_m": Required[float],
    "unit": Required[Literal["place"]],
    "places_per_person": Required[int],
    "n_visitors": Required[int | None],
    "n_reports": Required[int | None],
    "status": Required[Literal["ok", "not_reliable", "not_collected", "suppressed", "small", "outage"]],
    "density_status": Required[Literal["done", "waiting", "running", "failed", "not_computed"]],
    "ci_level": Required[float],
    "timezone": Required[str],
    "software_version": Required[str],
    "projection": Required[str],
    "grid": Required["Grid"],
}, total=False)


PlanFacts = TypedDict("PlanFacts", {  # noqa: UP013
    "version": Required[int],
    "mechanism": Required[str],
    "unit": Required[Literal["attribute", "profile"]],
    "epsilon": Required[str],
    "epsilon_profile_cap": Required[str | None],
    "indicators_per_person": Required[int],
    "has_fake_data": Required[bool],
    "spec_sha256": Required[str],
}, total=False)


PresencePage = TypedDict("PresencePage", {  # noqa: UP013
    "presence": Required["SlotHead"],
    "items": Required[list["Slot"]],
    "count": Required[int],
    "next": Required[str | None],
}, total=False)


Problem = TypedDict("Problem", {  # noqa: UP013
    "type": Required[str],
    "title": Required[str],
    "status": Required[int],
    "detail": Required[str],
    "errors": list[dict[str, str]],
}, total=False)


Query = TypedDict("Query", {  # noqa: UP013
    "indicator": Required[str],
    "from": str | None,
    "to": str | None,
    "where": dict[str, list[str | None]],
    "ranges": dict[str, "Range"],
    "groups": dict[str, list[str]],
}, total=False)


QueryAnswer = TypedDict("QueryAnswer", {  # noqa: UP013
    "study": Required[str],
    "indicator": Required[str],
    "first_day": Required[str],
    "last_day": Required[str],
    "plan_version": Required[int],
    "mechanism": Required[str],
    "epsilon": Required[float],
    "unit": Required[Literal["attribute", "profile"]],
    "n_visitors": Required[int | None],
    "n_reports": Required[int | None],
    "ci_level": Required[float],
    "timezone": Required[str],
    "software_version": Required[str],
    "where": Required[dict[str, list[str | None]]],
    "sentence": Required[str],
    "frequency": Required[float | None],
    "std_error": Required[float | None],
    "ci_low": Required[float | None],
    "ci_high": Required[float | None],
    "visitors": Required[float | None],
    "visitors_ci_low": Required[float | None],
    "visitors_ci_high": Required[float | None],
    "status": Required[Literal["ok", "not_reliable", "not_collected", "suppressed", "small", "outage"]],
    "visitors_below": int | None,
    "market_share": Required[float],
}, total=False)


Range = TypedDict("Range", {  # noqa: UP013
    "from": str | None,
    "to": str | None,
}, total=False)


Report = TypedDict("Report", {  # noqa: UP013
    "study": Required[str],
    "indicator": Required[str],
    "first_day": Required[str],
    "last_day": Required[str],
    "plan_version": Required[int],
    "mechanism": Required[str],
    "epsilon": Required[float],
    "unit": Required[Literal["attribute", "profile"]],
    "n_visitors": Required[int | None],
    "n_reports": Required[int | None],
    "ci_level": Required[float],
    "timezone": Required[str],
    "software_version": Required[str],
    "estimates": Required[list["Estimate"]],
    "status": Required[Literal["ok", "not_reliable", "not_collected", "suppressed", "small", "outage"]],
    "n_visitors_ci_low": int | None,
    "n_visitors_ci_high": int | None,
}, total=False)


ReportPage = TypedDict("ReportPage", {  # noqa: UP013
    "count": Required[int],
    "next": Required[str | None],
    "items": Required[list["Report"]],
}, total=False)


Scenario = TypedDict("Scenario", {  # noqa: UP013
    "study": Required[str],
    "indicator": Required[str | None],
    "first_day": Required[str],
    "last_day": Required[str],
    "n_visitors": Required[int | None],
    "question": Required[Literal["days", "exactly", "in_a_row", "nights"]],
    "present_days": Required[str | None],
    "absent_days": Required[str | None],
    "k": Required[int | None],
    "sentence": Required[str],
    "rows": Required[list["ScenarioRow"]],
    "market_share": Required[float],
    "ci_level": Required[float],
    "timezone": Required[str],
    "software_version": Required[str],
}, total=False)


ScenarioRow = TypedDict("ScenarioRow", {  # noqa: UP013
    "figure": Required[Literal["people", "stays", "category", "pattern"]],
    "category": Required[str | None],
    "pattern_days": Required[str | None],
    "n_days": Required[int | None],
    "least": Required[float | None],
    "most": Required[float | None],
    "estimate": Required[float | None],
    "interval": Required[Literal["count", "bounds", "at_least"] | None],
    "status": Required[Literal["ok", "not_reliable", "not_collected", "suppressed", "small", "outage"]],
}, total=False)


Slot = TypedDict("Slot", {  # noqa: UP013
    "day": Required[str],
    "slot_start": Required[str],
    "slot_end": Required[str],
    "status": Required[Literal["ok", "not_yet", "not_collected", "outage"]],
    "zones": Required[list["SlotZone"]],
}, total=False)


SlotHead = TypedDict("SlotHead", {  # noqa: UP013
    "study": Required[str],
    "first_day": Required[str],
    "last_day": Required[str],
    "slot_minutes": Required[int],
    "hold_minutes": Required[int],
    "slots_per_day": Required[int],
    "mechanism": Required[Literal["discrete-gaussian", "none"]],
    "epsilon_day": Required[float | None],
    "delta": Required[float | None],
    "plan_version": Required[int],
    "market_share": Required[float],
    "ci_level": Required[float],
    "timezone": Required[str],
    "software_version": Required[str],
}, total=False)


SlotZone = TypedDict("SlotZone", {  # noqa: UP013
    "level": Required[str | None],
    "zone": Required[str],
    "count": Required[int | None],
    "people": Required[float | None],
    "std_error": Required[float | None],
    "ci_low": Required[float | None],
    "ci_high": Required[float | None],
}, total=False)


Smoothed = TypedDict("Smoothed", {  # noqa: UP013
    "study": Required[str],
    "indicator": Required[str],
    "plan_version": Required[int],
    "window_days": Required[int | None],
    "false_alarms": Required[float],
    "rows": Required[list["SmoothedDay"]],
    "visitor_days": Required[list["VisitorDaysSum"]],
    "software_version": Required[str],
}, total=False)


SmoothedDay = TypedDict("SmoothedDay", {  # noqa: UP013
    "category": Required[str],
    "date": Required[str],
    "frequency": Required[float | None],
    "std_error": Required[float | None],
    "live": Required[float | None],
    "live_std_error": Required[float | None],
    "smoothed": Required[float | None],
    "smoothed_std_error": Required[float | None],
    "smoothed_ci_low": Required[float | None],
    "smoothed_ci_high": Required[float | None],
    "is_change": Required[bool],
}, total=False)


Square = TypedDict("Square", {  # noqa: UP013
    "square": Required[int],
    "x_m": Required[float],
    "y_m": Required[float],
    "reports": Required[int | None],
    "density": Required[float | None],
    "std_error": Required[float | None],
    "low": Required[float | None],
    "high": Required[float | None],
    "zone": Required[str | None],
    "land": Required[bool],
}, total=False)


SquarePage = TypedDict("SquarePage", {  # noqa: UP013
    "count": Required[int],
    "next": Required[str | None],
    "window": Required["PlacesOnGrid"],
    "items": Required[list["Square"]],
}, total=False)


Statement = TypedDict("Statement", {  # noqa: UP013
    "schema_version": Required[int],
    "software": Required[dict[str, str]],
    "study": Required[dict[str, Any]],
    "plan": Required[dict[str, Any]],
    "guarantee": Required[dict[str, Any]],
    "indicators": Required[list[dict[str, Any]]],
    "not_protected": Required[list[dict[str, str]]],
    "composition": Required[dict[str, Any]],
    "retention": Required[list[dict[str, str | None]]],
}, total=False)


StudyLine = TypedDict("StudyLine", {  # noqa: UP013
    "study": Required[str],
    "name": Required[str],
    "state": Required[Literal["open", "closed"]],
    "first_day": Required[str],
    "last_day": Required[str],
    "days": Required[int],
    "n_indicators": Required[int],
    "n_visitors": Required[int | None],
}, total=False)


StudyPage = TypedDict("StudyPage", {  # noqa: UP013
    "count": Required[int],
    "next": Required[str | None],
    "items": Required[list["StudyLine"]],
}, total=False)


StudyRecord = TypedDict("StudyRecord", {  # noqa: UP013
    "study": Required[str],
    "name": Required[str],
    "state": Required[Literal["open", "closed"]],
    "closed_at": Required[str | None],
    "timezone": Required[str],
    "first_day": Required[str],
    "last_day": Required[str],
    "days": Required[int],
    "market_share": Required[str],
    "min_publication": Required[int],
    "small_cell": Required[int],
    "small_category": int,
    "visitor": Required["VisitorRule"],
    "area": Required["Area | None"],
    "indicators": Required[list[str]],
    "n_windows": Required[int],
    "n_visitors": Required[int | None],
    "plan": Required["PlanFacts"],
    "coverage": Required[list["Day"]],
}, total=False)


Visited = TypedDict("Visited", {  # noqa: UP013
    "study": Required[str],
    "indicator": Required[str],
    "first_day": Required[str],
    "last_day": Required[str],
    "plan_version": Required[int],
    "mechanism": Required[str],
    "epsilon": Required[float],
    "unit": Required[Literal["attribute", "profile"]],
    "n_visitors": Required[int],
    "n_reports": Required[int],
    "ci_level": Required[float],
    "timezone": Required[str],
    "software_version": Required[str],
    "n_days": Required[int],
    "max_visits": Required[int],
    "rows": Required[list["VisitedRow"]],
    "market_share": Required[float],
}, total=False)


VisitedRow = TypedDict("VisitedRow", {  # noqa: UP013
    "zone": Required[str],
    "other_zone": Required[str | None],
    "visitors": Required[float | None],
    "visitors_ci_low": Required[float | None],
    "visitors_ci_high": Required[float | None],
    "frequency": Required[float | None],
    "std_error": Required[float | None],
    "ci_low": Required[float | None],
    "ci_high": Required[float | None],
    "larger_than_noise": Required[Literal["yes", "no"]],
    "status": Required[Literal["ok", "not_reliable", "not_collected", "suppressed", "small", "outage"]],
}, total=False)


VisitorDaysSum = TypedDict("VisitorDaysSum", {  # noqa: UP013
    "category": Required[str],
    "days": Required[int],
    "value": Required[float],
    "low": Required[float],
    "high": Required[float],
}, total=False)


VisitorPage = TypedDict("VisitorPage", {  # noqa: UP013
    "count": Required[int],
    "next": Required[str | None],
    "items": Required[list["VisitorsOfWindow"]],
}, total=False)


VisitorRule = TypedDict("VisitorRule", {  # noqa: UP013
    "min_minutes": Required[int],
    "from": Required[str],
    "to": Required[str],
}, total=False)


VisitorsOfWindow = TypedDict("VisitorsOfWindow", {  # noqa: UP013
    "first_day": Required[str],
    "last_day": Required[str],
    "n_visitors": Required[int | None],
    "status": Required[Literal["ok", "not_reliable", "not_collected", "suppressed", "small", "outage"]],
    "n_visitors_ci_low": int | None,
    "n_visitors_ci_high": int | None,
}, total=False)


Zone = TypedDict("Zone", {  # noqa: UP013
    "zone": Required[str | None],
    "n_squares": Required[int],
    "reports": Required[int | None],
    "subscribers": Required[float | None],
    "std_error": Required[float | None],
    "ci_low": Required[float | None],
    "ci_high": Required[float | None],
    "status": Required[Literal["ok", "not_reliable", "not_collected", "suppressed", "small", "outage"]],
    "density_status": Required[Literal["done", "waiting", "running", "failed", "not_computed"] | Literal["too_many_zones", "no_square"]],
}, total=False)


class Operations(Caller):
    """All operations; each answer is JSON, typed by its schema."""

    def studies(self, *, limit: int | None = None, offset: int | None = None) -> StudyPage:
        """Studies."""
        found: StudyPage = self.get("studies", {"limit": limit, "offset": offset})
        return found

    def study(self, study: str) -> StudyRecord:
        """Study details."""
        found: StudyRecord = self.get(f"studies/{segment(study)}", {})
        return found

    def visitors(self, study: str, *, from_: str | None = None, to: str | None = None, limit: int | None = None, offset: int | None = None) -> VisitorPage:
        """Visitors."""
        found: VisitorPage = self.get(f"studies/{segment(study)}/visitors", {"from": from_, "to": to, "limit": limit, "offset": offset})
        return found

    def statement(self, study: str) -> Statement:
        """Privacy statement."""
        found: Statement = self.get(f"studies/{segment(study)}/statement", {})
        return found

    def indicators(self, study: str, *, limit: int | None = None, offset: int | None = None) -> IndicatorPage:
        """Indicators."""
        found: IndicatorPage = self.get(f"studies/{segment(study)}/indicators", {"limit": limit, "offset": offset})
        return found

    def indicator(self, study: str, indicator: str) -> IndicatorRecord:
        """Indicator details."""
        found: IndicatorRecord = self.get(f"studies/{segment(study)}/indicators/{segment(indicator)}", {})
        return found

    def estimates(self, study: str, indicator: str, *, from_: str | None = None, to: str | None = None, group: Literal["all", "groups"] | None = None) -> Report:
        """Estimates for one window (date range)."""
        found: Report = self.get(f"studies/{segment(study)}/indicators/{segment(indicator)}/estimates", {"from": from_, "to": to, "group": group})
        return found

    def days(self, study: str, indicator: str, *, limit: int | None = None, offset: int | None = None, group: Literal["all", "groups"] | None = None) -> ReportPage:
        """Estimates for all days."""
        found: ReportPage = self.get(f"studies/{segment(study)}/indicators/{segment(indicator)}/days", {"limit": limit, "offset": offset, "group": group})
        return found

    def windows(self, study: str, indicator: str, *, limit: int | None = None, offset: int | None = None, group: Literal["all", "groups"] | None = None) -> ReportPage:
        """Estimates for all windows (date ranges)."""
        found: ReportPage = self.get(f"studies/{segment(study)}/indicators/{segment(indicator)}/windows", {"limit": limit, "offset": offset, "group": group})
        return found

    def number(self, study: str, indicator: str, *, from_: str | None = None, to: str | None = None, with_from: str | None = None, with_to: str | None = None) -> NumberAnswer:
        """Mean and quantiles of a numeric indicator."""
        found: NumberAnswer = self.get(f"studies/{segment(study)}/indicators/{segment(indicator)}/number", {"from": from_, "to": to, "with_from": with_from, "with_to": with_to})
        return found

    def means(self, study: str, indicator: str, *, from_: str | None = None, to: str | None = None) -> MeansAnswer:
        """Mean of a numeric indicator by category."""
        found: MeansAnswer = self.get(f"studies/{segment(study)}/indicators/{segment(indicator)}/means", {"from": from_, "to": to})
        return found

    def extrapolation(self, study: str, indicator: str, *, from_: str | None = None, to: str | None = None) -> ExtrapolationAnswer:
        """Total scaled to the population by category."""
        found: ExtrapolationAnswer = self.get(f"studies/{segment(study)}/indicators/{segment(indicator)}/extrapolation", {"from": from_, "to": to})
        return found

    def classes(self, study: str, indicator: str, *, from_: str | None = None, to: str | None = None) -> ClassesAnswer:
        """Shares by class of subscribers."""
        found: ClassesAnswer = self.get(f"studies/{segment(study)}/indicators/{segment(indicator)}/classes", {"from": from_, "to": to})
        return found

    def scenario(self, study: str, *, present: str | None = None, absent: str | None = None, exactly: str | None = None, in_a_row: str | None = None, nights: str | None = None) -> Scenario:
        """Visitors on a combination of days."""
        found: Scenario = self.get(f"studies/{segment(study)}/scenario", {"present": present, "absent": absent, "exactly": exactly, "in_a_row": in_a_row, "nights": nights})
        return found

    def categories(self, study: str, indicator: str, *, present: str | None = None, absent: str | None = None, exactly: str | None = None, in_a_row: str | None = None, nights: str | None = None) -> Scenario:
        """Visitors on a combination of days, by category."""
        found: Scenario = self.get(f"studies/{segment(study)}/indicators/{segment(indicator)}/scenario", {"present": present, "absent": absent, "exactly": exactly, "in_a_row": in_a_row, "nights": nights})
        return found

    def presence(self, study: str, *, from_: str | None = None, to: str | None = None, zone: list[str] | None = None, level: str | None = None, limit: int | None = None, offset: int | None = None) -> PresencePage:
        """Presence by time."""
        found: PresencePage = self.get(f"studies/{segment(study)}/presence", {"from": from_, "to": to, "zone": zone, "level": level, "limit": limit, "offset": offset})
        return found

    def forecast(self, study: str) -> Forecast:
        """Forecast by time slot."""
        found: Forecast = self.get(f"studies/{segment(study)}/presence/forecast", {})
        return found

    def forecast_of_indicator(self, study: str, *, indicator: str | None = None) -> Forecast:
        """Forecast by day."""
        found: Forecast = self.get(f"studies/{segment(study)}/forecast", {"indicator": indicator})
        return found

    def smoothed(self, study: str, indicator: str) -> Smoothed:
        """Smoothed shares by day."""
        found: Smoothed = self.get(f"studies/{segment(study)}/indicators/{segment(indicator)}/smoothed", {})
        return found

    def queries(self, study: str, question: Query) -> QueryAnswer:
        """Share of selected categories."""
        found: QueryAnswer = self.post(f"studies/{segment(study)}/queries", question)
        return found

    def change(self, study: str, indicator: str, *, from_: str | None = None, to: str | None = None, with_from: str | None = None, with_to: str | None = None) -> Change:
        """Test of two date ranges."""
        found: Change = self.get(f"studies/{segment(study)}/indicators/{segment(indicator)}/change", {"from": from_, "to": to, "with_from": with_from, "with_to": with_to})
        return found

    def association(self, study: str, indicator: str, *, rows: str | None = None, columns: str | None = None, from_: str | None = None, to: str | None = None) -> Association:
        """Association between two indicators."""
        found: Association = self.get(f"studies/{segment(study)}/indicators/{segment(indicator)}/association", {"rows": rows, "columns": columns, "from": from_, "to": to})
        return found

    def model(self, study: str, *, rows: str | None = None, columns: str | None = None, third: str | None = None, from_: str | None = None, to: str | None = None) -> ModelAnswer:
        """Three-way table (model)."""
        found: ModelAnswer = self.get(f"studies/{segment(study)}/model", {"rows": rows, "columns": columns, "third": third, "from": from_, "to": to})
        return found

    def flows(self, study: str, *, from_: str | None = None, to: str | None = None, indicator: str | None = None) -> Flows | Moves:
        """Flows between places."""
        found: Flows | Moves = self.get(f"studies/{segment(study)}/flows", {"from": from_, "to": to, "indicator": indicator})
        return found

    def visited(self, study: str, *, from_: str | None = None, to: str | None = None, indicator: str | None = None) -> Visited:
        """Visited zones."""
        found: Visited = self.get(f"studies/{segment(study)}/visited", {"from": from_, "to": to, "indicator": indicator})
        return found

    def places(self, study: str, *, from_: str | None = None, to: str | None = None) -> Places:
        """Reported places."""
        found: Places = self.get(f"studies/{segment(study)}/places", {"from": from_, "to": to})
        return found

    def grid(self, study: str, *, from_: str | None = None, to: str | None = None, all_: bool | None = None, limit: int | None = None, offset: int | None = None) -> SquarePage:
        """Grid squares."""
        found: SquarePage = self.get(f"studies/{segment(study)}/places/grid", {"from": from_, "to": to, "all": all_, "limit": limit, "offset": offset})
        return found

    def events(self, *, limit: int | None = None, offset: int | None = None) -> EventStudyPage:
        """Studies of events."""
        found: EventStudyPage = self.get("events", {"limit": limit, "offset": offset})
        return found

    def periods(self, study: str, *, period: Literal["day", "week", "month", "quarter", "year"] | None = None, limit: int | None = None, offset: int | None = None) -> PeriodPage:
        """Events by period."""
        found: PeriodPage = self.get(f"studies/{segment(study)}/periods", {"period": period, "limit": limit, "offset": offset})
        return found

    def series(self, study: str, indicator: str, *, period: Literal["day", "week", "month", "quarter", "year"] | None = None, limit: int | None = None, offset: int | None = None) -> PeriodEstimatesPage:
        """Events by period and category."""
        found: PeriodEstimatesPage = self.get(f"studies/{segment(study)}/indicators/{segment(indicator)}/periods", {"period": period, "limit": limit, "offset": offset})
        return found

    def period(self, study: str, indicator: str, *, period: Literal["day", "week", "month", "quarter", "year"] | None = None) -> EventForecast:
        """Forecast of events."""
        found: EventForecast = self.get(f"studies/{segment(study)}/indicators/{segment(indicator)}/next-period", {"period": period})
        return found
