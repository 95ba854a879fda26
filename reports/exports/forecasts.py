"""Forecasts as files: plain values, counts scaled to the population."""

import io
import json
from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Any, Final

from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.utils.translation import gettext

from reports.accounts.access import any_study_or_404, indicator_or_404, study_or_404
from reports.base.attachments import attachment
from reports.base.csv_texts import csv_text
from reports.base.version import software
from reports.events.periods import PERIODS
from reports.events.queries import DEFAULT
from reports.exports.errors import ExportError
from reports.exports.file_views import file_of_study, refused
from reports.exports.formats.choosing import content_type
from reports.exports.formats.columns import Kind
from reports.exports.formats.spreadsheet import Sheet, workbook
from reports.forecasts.computing import SLOTS_AHEAD
from reports.forecasts.models import KeptForecast
from reports.forecasts.queries import (
    DayForecast,
    EventForecast,
    Expected,
    Judged,
    SlotForecast,
    day_forecast,
    event_forecast,
    slot_forecast,
)
from reports.forecasts.series import DAYS_AHEAD
from reports.forecasts.texts import method_words
from reports.slots.queries import NoSlotsError
from reports.studies.models import Indicator, Study

Record = dict[str, Any]
_ENDS: Final = ("low_80", "high_80", "low_95", "high_95")
_TEXTS: Final = ("study", "method", "name", "level", "at", "last_day", "period", "last_period")
_METADATA_KEY: Final = b"mobility_reports"


def slots_record(found: SlotForecast, *, horizons: int) -> Record:
    """Forecast of the next slots of each zone; without a method and rows while there is none."""
    study, zones = found.found.study, found.found.zones
    rows = [
        {
            **_named(zone.name, zone.level or None, ahead=place + 1),
            "at": found.starts_at(slot).isoformat(),
            **_figures(found.expected(place, zone)),
        }
        for zone in zones
        for place, slot in enumerate(found.targets[:horizons])
    ]
    backtest = [
        {**_named(zone.name, zone.level or None, ahead=each.ahead), **_errors(each)}
        for zone in zones
        for each in found.judged(zone)
    ]
    last = found.starts_at(found.last_slot).isoformat() if found.result else None
    return _record(found.row, kind="slots", last=last, rows=rows, backtest=backtest) | {
        "market_share": float(study.market_share)
    }


def days_record(found: DayForecast, *, horizons: int) -> Record:
    """Forecast of the next days, of categories as shares; no method and no rows while there is none."""
    rows = [
        {
            **_named(each.name or None, None, ahead=place + 1),
            "at": found.date(place).isoformat(),
            **_figures(expected),
        }
        for each in found.series
        for place, expected in enumerate(each.expected[:horizons])
    ]
    backtest = [
        {**_named(each.name or None, None, ahead=1), **_errors(each.judged)}
        for each in found.series
        if each.judged
    ]
    last = found.row.study.date_of(found.last_day).isoformat() if found.series else None
    return _record(found.row, kind="days", last=last, rows=rows, backtest=backtest) | {"market_share": None}


def events_record(found: EventForecast) -> Record:
    """Forecast of the events of one period, in all and by category; no rows while there is none."""
    rows = [
        {
            **_named(each.name or None, None, ahead=1),
            "period": found.name,
            "at": str(found.first_date),
            "last_day": str(found.last_date),
            **_figures(each.expected),
            "weekday_mean": each.weekday_mean,
            "last_period": found.before or None,
            "last_value": each.before,
        }
        for each in found.rows
    ]
    backtest = [{**_named(None, None, ahead=1), **_errors(found.judged)}] if rows and found.judged else []
    study, last_day = found.row.study, found.row.result.get("last_day")
    last = study.date_of(last_day).isoformat() if last_day else None
    return _record(found.row, kind="events", last=last, rows=rows, backtest=backtest)


def to_json(record: Mapping[str, Any]) -> bytes:
    """One object."""
    return json.dumps(record, ensure_ascii=False, allow_nan=False, indent=1).encode()


def check(record: Record) -> Record:
    """Return a record that has a forecast; ExportError if there is none."""
    if not record["rows"]:
        text = gettext(
            "There is no forecast yet. Either there are no figures to base it on, or a worker is still "
            "computing it."
        )
        raise ExportError(text)
    return record


def to_csv(record: Mapping[str, Any]) -> bytes:
    """A row for each zone or category and time, without the backtest."""
    rows = _flat(record)
    return csv_text(list(rows[0]), [list(row.values()) for row in rows]).encode()


def to_xlsx(record: Mapping[str, Any]) -> bytes:
    """A sheet that explains the forecast, one of it, and one of its backtest."""
    title = f"{gettext('Forecast')} · {record['study']}"
    days = [datetime.fromisoformat(record["rows"][place]["at"]).date().isoformat() for place in (0, -1)]
    about = [
        (gettext("Study"), record["study"]),
        (gettext("Figures"), gettext("Expected by a model. They were not counted.")),
        (gettext("Indicator"), record["indicator"] or gettext("All visitors")),
        (gettext("Days (inclusive)"), "/".join(days)),
        (gettext("Last day with published figures"), record["last"][:10]),
        (gettext("Time zone used for days"), record["timezone"]),
        (gettext("Method"), method_words(record["method"])),
        (
            gettext("Privacy protection"),
            gettext("Forecasts use only published figures, so they use no additional epsilon."),
        ),
    ]
    sheets = [_sheet("forecast", _flat(record)), _sheet("backtest", record["backtest"])]
    last = datetime.fromisoformat(record["last"]).date()
    used = [sheet for sheet in sheets if sheet.columns]
    return workbook(used, title=title, last_date=last, about={title: about})


def to_parquet(record: Mapping[str, Any]) -> bytes:
    """A typed row for each zone or category and time; what they have in common is metadata."""
    import pyarrow as pa  # noqa: PLC0415 - 0.1 s, in every web process
    import pyarrow.parquet as pq  # noqa: PLC0415

    is_of_slots = record["kind"] == "slots"
    moment = pa.timestamp("s", tz=record["timezone"]) if is_of_slots else pa.date32()
    types = {"n_known": pa.int64(), "ahead": pa.int64(), **dict.fromkeys(_TEXTS, pa.string()), "at": moment}
    rows = [row | {"at": _moment(row["at"], is_of_slots=is_of_slots)} for row in _flat(record)]
    about = {name: value for name, value in record.items() if name != "rows"}
    metadata = {_METADATA_KEY: json.dumps(about, ensure_ascii=False).encode()}
    schema = pa.schema([(name, types.get(name, pa.float64())) for name in rows[0]], metadata=metadata)
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), file, compression="zstd")
    return file.getvalue()


def _flat(record: Mapping[str, Any]) -> list[Record]:
    before = {name: record[name] for name in ("study", "method", "n_known")}
    return [{**before, **row} for row in record["rows"]]


def _sheet(name: str, rows: list[Record]) -> Sheet:
    names = list(rows[0]) if rows else []
    columns = [(each, Kind.TEXT if each in _TEXTS else Kind.NUMBER) for each in names]
    return Sheet(name=name, columns=columns, rows=(list(row.values()) for row in rows))


def _moment(text: str, *, is_of_slots: bool) -> date:
    return datetime.fromisoformat(text) if is_of_slots else date.fromisoformat(text)


WRITERS: Final[Mapping[str, Callable[[Mapping[str, Any]], bytes]]] = {
    "csv": to_csv,
    "xlsx": to_xlsx,
    "json": to_json,
    "parquet": to_parquet,
}


TEXT_FORMATS: Final = ("csv", "json")  # of those, what a terminal can show


@file_of_study
def download_slots(request: HttpRequest, slug: str, file_format: str) -> HttpResponseBase:
    """The next slots of all zones."""
    study = study_or_404(request, slug)
    try:
        found = slot_forecast(study, days=1)
    except NoSlotsError:
        raise Http404 from None
    return _file(
        lambda: slots_record(found, horizons=SLOTS_AHEAD), study, file_format, name="presence_forecast"
    )


@file_of_study
def download_days(
    request: HttpRequest, slug: str, file_format: str, indicator_slug: str = ""
) -> HttpResponseBase:
    """The next days of all visitors or of an indicator's categories."""
    study = study_or_404(request, slug)
    indicator: Indicator | None = None
    if indicator_slug:
        indicator = indicator_or_404(indicator_slug, among=list(study.indicators.all()))
    found = day_forecast(study, indicator)
    name = f"{indicator_slug}_forecast" if indicator_slug else "forecast"
    return _file(lambda: days_record(found, horizons=DAYS_AHEAD), study, file_format, name=name)


@file_of_study
def download_events(
    request: HttpRequest, slug: str, file_format: str, indicator_slug: str
) -> HttpResponseBase:
    """Forecast of the events of the next period of one kind."""
    study = any_study_or_404(request, slug)
    indicator = indicator_or_404(indicator_slug, among=list(study.indicators.all()))
    kind = next((each for each in PERIODS if each == request.GET.get("period", DEFAULT)), None)
    if kind is None:
        raise Http404
    if not study.of_events:
        return refused(ExportError(gettext("This study counts visitors, not events.")))
    found = event_forecast(indicator, kind)
    return _file(lambda: events_record(found), study, file_format, name=f"{indicator.slug}_next_{kind}")


def _file(made: Callable[[], Record], study: Study, file_format: str, *, name: str) -> HttpResponseBase:
    if file_format not in WRITERS:
        raise Http404
    try:
        content = WRITERS[file_format](check(made()))
    except ExportError as error:
        return refused(error)
    return attachment(
        content, content_type=content_type(file_format), name=f"{study.slug}_{name}.{file_format}"
    )


def _record(
    row: KeptForecast, *, kind: str, last: str | None, rows: list[Record], backtest: list[Record]
) -> Record:
    return {
        "study": row.study.slug,
        "kind": kind,
        "indicator": row.indicator.slug if row.indicator else None,
        "n_known": row.n_known,
        "last": last,
        "method": row.result.get("method"),
        "timezone": row.study.timezone,
        "rows": rows,
        "backtest": backtest,
        "software_version": software()["version"],
    }


def _named(name: str | None, level: str | None, *, ahead: int) -> Record:
    return {"name": name, "level": level, "ahead": ahead}


def _figures(found: Expected) -> Record:
    ends = [end for pair in found.ends for end in (pair or (None, None))]
    return {"value": found.value, **dict(zip(_ENDS, ends, strict=True))}


def _errors(found: Judged) -> Record:
    names = ("", "_last_value", "_week_before")
    return {
        "days": found.days,
        **{f"rmse{name}": value for name, value in zip(names, found.rmse, strict=True)},
        **{f"mae{name}": value for name, value in zip(names, found.mae, strict=True)},
        "coverage_80": found.coverage[0],
        "coverage_95": found.coverage[1],
    }
