"""Kept forecasts as pages and files show them: with times, zones, and counts scaled to the population."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from reports.events.periods import PeriodKind
from reports.forecasts.actions import Kind, is_current, kept_forecast
from reports.forecasts.models import KeptForecast
from reports.forecasts.series import longer_clock
from reports.slots.queries import Presence, SlotZone, presence, slots_of
from reports.studies.models import Indicator, Study
from reports.studies.names import category_name
from reports.studies.slots import SlotClock


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """A figure that is expected; `ends` are the intervals of `LEVELS`, None without them."""

    value: float
    ends: tuple[tuple[float, float] | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Errors of a forecast in the backtest, those of the last value and of the week before; None = unknown.

    coverage : share of values in the intervals of `LEVELS`
    ahead : slots or days ahead
    """

    ahead: int
    days: int
    rmse: tuple[float | None, ...]
    mae: tuple[float | None, ...]
    coverage: tuple[float | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SlotForecast:
    """Forecast of all zones of a study; without a result where nothing is computed or published yet.

    clock : slots of the study and of some days after it
    """

    row: KeptForecast
    found: Presence
    clock: SlotClock
    is_current: bool

    @property
    def result(self) -> dict[str, Any]:
        return dict(self.row.result)

    @property
    def method(self) -> str:
        return str(self.result["method"])

    @property
    def targets(self) -> list[int]:
        """Numbers in the study of the slots that are forecast, those after its end included."""
        return list(self.result.get("targets", ()))

    @property
    def last_slot(self) -> int:
        """The last slot that was published when it was computed."""
        return int(self.result["closed"]) - 1

    def starts_at(self, slot: int) -> datetime:
        """Begin of a slot in local time, also after the study."""
        return datetime.fromtimestamp(int(self.clock.start[slot]), ZoneInfo(self.found.study.timezone))

    def expected(self, place: int, zone: SlotZone) -> Expected:
        """People of a zone in the slot at a place of `targets`."""
        value = self.result["values"][place][zone.place] * self.found.scale
        return _expected(value, [
            _scaled(level[place][zone.place], self.found.scale) for level in self.result["half_widths"]
        ])  # fmt: skip

    def judged(self, zone: SlotZone) -> list[Judged]:
        """Backtest of a zone, by the slots ahead."""
        scale = self.found.scale
        return [
            Judged(
                ahead=each["slots"],
                days=each["days"],
                rmse=tuple(_scaled(row[zone.place], scale) for row in each["rmse"]),
                mae=tuple(_scaled(row[zone.place], scale) for row in each["mae"]),
                coverage=tuple(row[zone.place] for row in each["coverage"]),
            )
            for each in self.result.get("backtest", ())
        ]


def slot_forecast(study: Study, *, days: int | None = None) -> SlotForecast:
    """The kept forecast of slots, with the last published `days` (default: all).

    Raises
    ------
    NoSlotsError : the study has no slots
    """
    slots, row = slots_of(study), kept_forecast(study, Kind.SLOTS)
    clock, first = longer_clock(study, minutes=slots.plan.minutes), 1
    if days is not None and row.result:
        first = max(int(clock.day[row.result["closed"] - 1]) - days + 1, 1)
    found = presence(study, first_day=first)
    return SlotForecast(row=row, found=found, clock=clock, is_current=is_current(row))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DaySeries:
    """Published figures of days, and the forecast of those after them.

    name : category as files name it; empty: all visitors
    known : by day of the study; None where there is none
    """

    name: str
    shown_name: str
    known: list[float | None]
    expected: list[Expected]
    judged: Judged | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DayForecast:
    """Forecast of all visitors of a study, or of the shares of an indicator's categories."""

    row: KeptForecast
    is_current: bool
    series: list[DaySeries]

    @property
    def method(self) -> str:
        return str(self.row.result["method"])

    @property
    def last_day(self) -> int:
        """The last study day with a figure."""
        return int(self.row.result["last_day"])

    def date(self, place: int) -> date:
        """Date of the forecast at a place, from 0."""
        return self.row.study.date_of(self.last_day) + timedelta(days=place + 1)


def day_forecast(study: Study, indicator: Indicator | None) -> DayForecast:
    """The kept forecast of days."""
    row = kept_forecast(study, Kind.DAYS, indicator)
    french = _french_names(indicator)
    found = [
        DaySeries(
            name=each["name"],
            shown_name=category_name(each["name"], french.get(each["name"])),
            known=each["known"],
            expected=[
                _expected(value, [level[place] for level in each["half_widths"]])
                for place, value in enumerate(each["values"])
            ],
            judged=_judged_days(each["backtest"]),
        )
        for each in row.result.get("series", ())
    ]
    return DayForecast(row=row, is_current=is_current(row), series=found)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedEvents:
    """Events of a category in the next period; without a name: all events.

    weekday_mean : of all earlier days of each weekday, added up
    before : in the last whole period; None if there is none
    """

    name: str
    shown_name: str
    expected: Expected
    weekday_mean: float
    before: float | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EventForecast:
    """Forecast of the next period of one kind; no rows with a short history, or before it is computed.

    name, first_date, last_date : of the period; empty and None without rows
    before : name of the last whole period; empty if there is none
    left_out : smaller categories that are not forecast
    judged : backtest of the next day, of all events
    longer : the same of periods of this kind; None where there is none
    """

    row: KeptForecast
    is_current: bool
    rows: list[ExpectedEvents]
    name: str
    first_date: date | None
    last_date: date | None
    before: str
    left_out: int
    judged: Judged | None
    longer: Judged | None

    @property
    def method(self) -> str:
        return str(self.row.result.get("method", ""))


def event_forecast(indicator: Indicator, kind: PeriodKind) -> EventForecast:
    """The kept forecast of the period that follows those with events."""
    row, french = kept_forecast(indicator.study, Kind.DAYS, indicator), _french_names(indicator)
    periods = row.result.get("periods", ())
    place = next((place for place, each in enumerate(periods) if each["kind"] == kind), None)
    rows = (
        []
        if place is None
        else [
            ExpectedEvents(
                name=each["name"],
                shown_name=category_name(each["name"], french.get(each["name"])),
                expected=_expected(each["values"][place], [level[place] for level in each["half_widths"]]),
                weekday_mean=each["weekday_means"][place],
                before=each["before"][place],
            )
            for each in row.result["series"]
        ]
    )
    period = {} if place is None else periods[place]
    return EventForecast(
        row=row,
        is_current=is_current(row),
        rows=rows,
        name=period.get("name", ""),
        first_date=date.fromisoformat(period["first_day"]) if period else None,
        last_date=date.fromisoformat(period["last_day"]) if period else None,
        before=period.get("before") or "",
        left_out=row.result.get("left_out", 0),
        judged=_judged_days(row.result.get("backtest")),
        longer=_judged_days(row.result.get("longer", {}).get(kind)),
    )


def _judged_days(kept: dict[str, Any] | None) -> Judged | None:
    if kept is None:
        return None
    return Judged(
        ahead=1,
        days=kept["days"],
        rmse=tuple(kept["rmse"]),
        mae=tuple(kept["mae"]),
        coverage=tuple(kept["coverage"]),
    )


def _french_names(indicator: Indicator | None) -> dict[str, str | None]:
    if indicator is None or not indicator.categories_fr:
        return {}
    return dict(zip(indicator.categories, indicator.categories_fr, strict=True))


def _expected(value: float, halves: Sequence[float | None]) -> Expected:
    ends = tuple(None if half is None else (value - half, value + half) for half in halves)
    return Expected(value=value, ends=ends)


def _scaled(value: float | None, scale: float) -> float | None:
    return None if value is None else value * scale
