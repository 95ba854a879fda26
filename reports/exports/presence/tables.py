"""Presence by slot as tables: a row for each slot and zone, and what all have in common.

Files keep what was published: counts below zero, and those of days without a file, whose status says so.
A slot that is not published yet has no numbers.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cached_property
from typing import Any, Final

from django.utils.translation import gettext

from reports.base.csv_texts import csv_text
from reports.base.version import software
from reports.estimates.queries import LEVEL
from reports.exports.errors import ExportError
from reports.exports.facts import Fact, software_words, status_words
from reports.exports.formats import spreadsheet
from reports.exports.formats.columns import Kind
from reports.exports.formats.sdmx import NAMES as SDMX_NAMES
from reports.exports.formats.sdmx import OBS_STATUS, begin_of_rows
from reports.exports.formats.sdmx_codes import PRESENCE, TOTAL, StudyCodes
from reports.exports.formats.spreadsheet import Sheet, workbook
from reports.exports.places.selection import not_below
from reports.slots import texts
from reports.slots.queries import Presence, SlotStatus, SlotZone
from reports.slots.query import View
from reports.studies.queries import current_plan

Record = dict[str, Any]
SLOT_NAMES: Final = ("day", "slot_start", "slot_end")
ZONE_NAMES: Final = ("level", "zone", "count", "people", "std_error", "ci_low", "ci_high")
NAMES: Final = ("study", *SLOT_NAMES, *ZONE_NAMES, "status")
MECHANISM: Final = "discrete-gaussian"
_DECIMALS: Final = 3  # of people: scaled, a count has no whole number
_NOT_YET: Final = "O"  # SDMX: missing value
_KINDS: Final = {
    "day": Kind.DAY,
    "count": Kind.COUNT,
    **dict.fromkeys(("people", "std_error", "ci_low", "ci_high"), Kind.NUMBER),
}


@dataclass(frozen=True, slots=False, kw_only=True, eq=False)
class SlotTable:
    """Some days and zones of presence by slot; `view` is what a drawing shows, None for data."""

    found: Presence
    zones: tuple[SlotZone, ...]
    view: View | None = None

    @property
    def first_date(self) -> date:
        return self.found.study.date_of(self.found.first_day)

    @property
    def last_date(self) -> date:
        return self.found.study.date_of(self.found.last_day)

    @property
    def name(self) -> str:
        """Name of a file without its ending."""
        days = f"{self.first_date}_{self.last_date}" if self.view is None else self.view.date
        return f"{self.found.study.slug}_presence_{days}"

    @property
    def slots(self) -> range:
        """Numbers in the study of the slots of the table."""
        return range(self.found.first_slot, self.found.last_slot + 1)

    @property
    def n_rows(self) -> int:
        return len(self.slots) * len(self.zones)

    @cached_property
    def about(self) -> Record:
        """Common values of all rows: slots, protection, scale."""
        found, noise = self.found, self.found.spec.noise
        epsilon = None if noise is None else noise.epsilon(days=1)
        return {
            "slot_minutes": found.spec.minutes,
            "hold_minutes": found.slots.hold_minutes,
            "slots_per_day": found.spec.slots_per_day,
            "mechanism": "none" if noise is None else MECHANISM,
            "epsilon_day": None if epsilon is None else not_below(float(epsilon), epsilon),
            "delta": None if noise is None else float(noise.delta),
            "plan_version": current_plan(found.study).version,
            "market_share": float(found.study.market_share),
            "ci_level": LEVEL,
            "timezone": found.study.timezone,
            "software_version": software()["version"],
        }

    def records(self, slots: range | None = None) -> Iterator[Record]:
        """A record for each slot, with a list of its zones."""
        for slot in self.slots if slots is None else slots:
            yield {
                **dict(zip(SLOT_NAMES, self._times(slot), strict=True)),
                "status": str(self.found.status(slot)),
                "zones": [dict(zip(ZONE_NAMES, row, strict=True)) for row in self._zone_rows(slot)],
            }

    def rows(self) -> Iterator[list[Any]]:
        """A row for each slot and zone, in the order of NAMES."""
        for slot in self.slots:
            yield from self.rows_of(slot)

    def rows_of(self, slot: int) -> Iterator[list[Any]]:
        """A row for each zone in a slot."""
        study, times = self.found.study.slug, self._times(slot)
        status = str(self.found.status(slot))
        for row in self._zone_rows(slot):
            yield [study, *times, *row, status]

    def _times(self, slot: int) -> tuple[str, str, str]:
        found = self.found
        day = found.study.date_of(int(found.clock.day[slot]))
        return day.isoformat(), found.starts_at(slot).isoformat(), found.ends_at(slot).isoformat()

    def _zone_rows(self, slot: int) -> Iterator[tuple[Any, ...]]:
        found = self.found
        place = slot - found.first_slot
        if place >= len(found.counts):
            for zone in self.zones:
                yield zone.level or None, zone.name, None, None, None, None, None
            return
        counts, scale = found.counts[place].tolist(), found.scale
        half, error = found.half_width, round(found.std_error, _DECIMALS)
        for zone in self.zones:
            count = counts[zone.place]
            people = count * scale
            ends = round(people - half, _DECIMALS), round(people + half, _DECIMALS)
            yield zone.level or None, zone.name, count, round(people, _DECIMALS), error, *ends

    def in_utc(self, slot: int) -> tuple[datetime, datetime]:
        """Begin and end of a slot."""
        clock = self.found.clock
        return tuple(datetime.fromtimestamp(int(each[slot]), UTC) for each in (clock.start, clock.end))  # type: ignore[return-value]


def to_csv(table: SlotTable) -> bytes:
    """One row per slot and zone; what is missing is empty, and the status says why."""
    after = list(table.about.values())
    return csv_text([*NAMES, *table.about], ([*row, *after] for row in table.rows())).encode()


def to_json(table: SlotTable) -> bytes:
    """An object: what all slots have in common, and a list `slots`."""
    head = json.dumps(head_of(table), ensure_ascii=False, allow_nan=False)
    rows = ",\n".join(json.dumps(each, ensure_ascii=False, allow_nan=False) for each in table.records())
    return f'{head[:-1]}, "slots": [\n{rows}\n]}}'.encode()


def head_of(table: SlotTable) -> Record:
    """Study, days, and what all slots have in common."""
    days = {"first_day": table.first_date.isoformat(), "last_day": table.last_date.isoformat()}
    return {"study": table.found.study.slug, **days, **table.about}


def to_sdmx_csv(table: SlotTable) -> bytes:
    """Names and codes of SDMX: frequency N (minutely), with the begin and the length of each slot."""
    return csv_text(SDMX_NAMES, _sdmx_rows(table)).encode()


def to_xlsx(table: SlotTable) -> bytes:
    """A sheet that explains the table, and the table; ExportError if that has more rows than a sheet."""
    if table.n_rows > spreadsheet.MAX_ROWS:
        text = gettext(
            "A spreadsheet can hold %(most)d rows, but this table has %(rows)d. Choose CSV or JSON."
        )
        raise ExportError(text % {"most": spreadsheet.MAX_ROWS, "rows": table.n_rows})
    columns = [(name, _KINDS.get(name, Kind.TEXT)) for name in NAMES]
    sheet = Sheet(name="presence", columns=columns, rows=table.rows())
    title = f"{gettext('Presence by time')} · {table.found.study.shown_name}"
    return workbook([sheet], title=title, last_date=table.last_date, about=_about(table, title=title))


def facts_of(table: SlotTable) -> list[Fact]:
    """Facts of a file about itself, in the order in which people ask for them."""
    study, about = table.found.study, table.about
    days = f"{table.first_date.isoformat()}/{table.last_date.isoformat()}"
    return [
        Fact("study", gettext("Study"), study.slug),
        Fact("study_name", gettext("Study name"), study.name),
        Fact("days", gettext("Days (inclusive)"), days),
        Fact("timezone", gettext("Time zone used for days"), study.timezone),
        Fact("market_share", gettext("Market share"), f"{study.market_share.normalize():f}"),
        Fact("plan_version", gettext("Plan version"), str(about["plan_version"])),
        Fact("mechanism", gettext("Mechanism"), about["mechanism"]),
        Fact("privacy", gettext("Privacy protection"), " ".join(texts.privacy_sentences(table.found))),
        Fact("counting", gettext("Method"), " ".join(texts.counting_sentences(table.found))),
        Fact("ci_level", gettext("Confidence level of the intervals"), str(LEVEL)),
        Fact(
            "statement",
            gettext("Privacy statement (address on this site)"),
            f"/studies/{study.slug}/statement.json",
        ),
        Fact("software", gettext("Software"), software_words()),
    ]


def provenance(table: SlotTable) -> Mapping[str, Any]:
    """Return the facts of a file about itself as plain values, for the metadata of files."""
    return {fact.name: fact.value for fact in facts_of(table)} | head_of(table)


def slot_status_words() -> dict[str, str]:
    """Describe each value of the column `status`."""
    words = status_words()
    return {
        str(SlotStatus.OK): words["ok"],
        str(SlotStatus.NOT_YET): gettext("the slot is not published yet"),
        str(SlotStatus.NOT_COLLECTED): gettext(
            "published, but no file was received for this day: the numbers are pure noise or 0 and do not "
            "represent people"
        ),
        str(SlotStatus.OUTAGE): words["outage"],
    }


def _sdmx_rows(table: SlotTable) -> Iterator[list[Any]]:
    found, about = table.found, table.about
    codes = StudyCodes(found.study)
    begin = begin_of_rows(codes, PRESENCE)
    end = (about["epsilon_day"], about["mechanism"], about["plan_version"])
    for slot in table.slots:
        minutes = int(found.clock.end[slot] - found.clock.start[slot]) // 60
        period = f"{found.starts_at(slot).isoformat()}/PT{minutes}M"
        status = found.status(slot)
        code = _NOT_YET if status == SlotStatus.NOT_YET else OBS_STATUS[str(status)]  # type: ignore[index]
        for level, zone, _, people, _, low, high in table._zone_rows(slot):
            area = codes.area_ids[zone if level is None else f"{level}/{zone}"]
            head = [*begin, "N", area, period, PRESENCE, TOTAL]
            yield [*head, people, low, high, LEVEL, None, *end, code, "F"]


def _about(table: SlotTable, *, title: str) -> dict[str, list[tuple[str, str]]]:
    columns = gettext("Values in the “%(name)s” column") % {"name": "status"}
    return {
        title: [(fact.label, fact.value) for fact in facts_of(table)],
        columns: list(slot_status_words().items()),
    }
