"""Rows of an extract to coded events: pseudonyms, days, cells and values; every other row is counted."""

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from ldp import PlanSpec, Sanitiser
from ldp.kernels.entropy import KeyedPrf
from ldp.keyed.choices import choose_indicator
from ldp.keyed.events import content_keys
from mobility.extracts.cells.cells import EMPTY, CellCodes, count_unmatched
from mobility.extracts.profiles.definition import Profile
from mobility.extracts.readers import Column, Layout, RowBlock, Texts
from mobility.extracts.rows import outcomes, timestamps
from mobility.extracts.rows.counts import HOURS, REJECTED, RowCounts
from mobility.extracts.rows.event_zones import EventZones
from mobility.extracts.rows.events import NO_VALUE, Events, with_people
from mobility.extracts.rows.joints import joints_of
from mobility.extracts.rows.lookups import (
    UNKNOWN,
    CodeTable,
    Pseudonyms,
    PseudonymSet,
    pseudonyms_of,
    trimmed,
)
from mobility.extracts.rows.nights import nights_of
from mobility.extracts.rows.outcomes import Coded, Judged
from mobility.extracts.rows.value_columns import ValueColumn, ValueColumns
from mobility.extracts.rows.widths import code_slots
from reports.studies.studyfile import StudyDefinition, VisitorRule

NOBODY = np.empty(0, np.uint64)
_ANY_HOUR = VisitorRule(min_minutes=0, from_minute=0, to_minute=24 * 60 - 1)
_ACCEPTED, _OUTSIDE_PERIOD, _OUTSIDE_AREA, _OUTSIDE_HOURS, _DAY_CLOSED = map(
    outcomes.OUTCOMES.index, ("accepted", "outside_period", "outside_area", "outside_hours", "day_closed")
)


class RowCoder:
    """Turns blocks of rows of one batch into events; may be used by several threads at once.

    Parameters
    ----------
    definition, plan : of the study, as the vault approved them
    profile : how the rows are written; an indicator that it has no column for has no value in any row
    pseudonym_key : 16 bytes; the identifier leaves through it and is gone
    prf : of the sanitising key; only the value of the indicator that a subscriber answers is kept
    event_prf : of the keys of events; what an event answers depends on which of equal rows it is, so that all
        its values are kept until that is known
    closed_days : days whose rows are ignored
    opted_out : uint64, rising; pseudonyms whose rows are ignored
    """

    def __init__(
        self,
        definition: StudyDefinition,
        plan: PlanSpec,
        *,
        profile: Profile,
        pseudonym_key: bytes,
        prf: KeyedPrf,
        event_prf: KeyedPrf | None = None,
        closed_days: frozenset[int] = frozenset(),
        opted_out: NDArray[np.uint64] = NOBODY,
    ) -> None:
        self._profile = profile
        self._visitor = definition.visitor
        self._days = definition.days
        self._clock = timestamps.study_clock(
            definition.timezone, first_day=definition.first_day, days=definition.days
        )
        self._nights = nights_of(definition)
        # With slots, rows of any hour are kept: they make no one present, and say where people are.
        self._kept_hours = definition.visitor if definition.slots is None else _ANY_HOUR
        self._cells = CellCodes(definition.area, first_day=definition.first_day, days=definition.days)
        static = [
            (index, indicator.slug)
            for index, indicator in enumerate(definition.indicators)
            if indicator.kind == "static"
        ]
        self._columns = ValueColumns.of(profile, static, empty=EMPTY)
        self._values = self._columns.all
        if plan.classes:
            self._values = (*self._values, _class_column(profile, place=plan.d))
        self._joints = joints_of(plan, [value.place for value in self._columns.plain])
        self._sanitiser = Sanitiser(plan.of_classes[0], prf)
        self._slot_of = {index: slot for slot, (index, _) in enumerate(static)}
        self._plan = plan
        self._pseudonym_key = pseudonym_key
        self._prf = prf
        self._event_prf = event_prf if plan.events else None
        self._zones = EventZones.of(definition) if plan.events else None
        self._closed = np.zeros(max(256, self._days + 1), np.bool_)
        self._closed[sorted(closed_days)] = True
        self._opted_out = PseudonymSet(opted_out)
        self.slots = code_slots(
            len(static), is_sampled=plan.is_sampled and not plan.events, has_classes=bool(plan.classes)
        )

    @property
    def layout(self) -> Layout:
        """Interface of a reader."""
        profile = self._profile
        names = [profile.subscriber, profile.person, profile.timestamp, profile.cell]
        names += [value.column for value in self._values]
        return Layout(
            columns=tuple(dict.fromkeys(name for name in names if name)),
            timestamp=profile.timestamp,
            timestamp_format=profile.timestamp_format,
            delimiter=profile.delimiter,
        )

    def events_of(self, block: RowBlock, counts: RowCounts) -> Events:
        """Events of the accepted rows of a block; `counts` grows by all its rows."""
        events, counts_of_block = self.code(block)
        counts.join(counts_of_block)
        return events

    def code(self, block: RowBlock) -> tuple[Events, RowCounts]:
        """Events of the accepted rows of a block, and the counts of all; its lines are those of the block."""
        counts = RowCounts(n_lines=block.n_lines, hours=np.zeros((self._days, HOURS), np.int64))
        coded = self._coded(block)
        judged = outcomes.judged(
            coded, area=self._cells, visitor=self._kept_hours, closed=self._closed, hours=counts.hours
        )
        rows = self._counted(coded, judged, block, counts)
        n = len(rows)
        events = Events(
            pseudonym=np.empty(n, np.uint64),
            second=np.empty(n, np.uint32),
            cell=np.empty(n, np.uint32),
            day=np.empty(n, coded.times.day.dtype),
            codes=np.full((n, self.slots), NO_VALUE, np.uint16),
        )
        _collect(
            rows, coded.subscribers.values, coded.times.utc, self._clock.origin, coded.cells, coded.times.day,
            events.pseudonym, events.second, events.cell, events.day,
        )  # fmt: skip
        self._collect_codes(rows, coded.values, events)
        if self._event_prf is not None:
            self._name_events(events, self._event_prf, people=self._people(block, rows, counts))
        if self._nights is not None or self._kept_hours is _ANY_HOUR:
            # Rows that count for nights and slots only: they make no one present, and say nothing else.
            is_visit = self._is_in_hours(coded.times.minute[rows]) & (events.day != 0)
            events.day[~is_visit] = 0
            events.codes[~is_visit] = NO_VALUE
        return events, counts

    def _coded(self, block: RowBlock) -> Coded:
        profile, n = self._profile, len(block.lines)
        subscribers = self._named(block)
        has_opted_out = self._opted_out.holds(subscribers.values)
        values = np.empty((len(self._values), n), np.int32)
        for value, codes in zip(self._values, values, strict=True):
            value.table.codes(block.texts(value.column), codes)
        timestamp = block.columns[profile.timestamp or ""]
        times = timestamps.times_of(timestamp, clock=self._clock, form=profile.timestamp_format)
        return Coded(
            subscribers=subscribers,
            # An empty text has a pseudonym too, but belongs to no one.
            has_opted_out=has_opted_out & ~subscribers.is_empty if len(self._opted_out) else has_opted_out,
            times=times,
            cells=(
                np.zeros(n, np.int32)
                if profile.cell is None
                else self._cells.codes_of(block.texts(profile.cell), times.day)
            ),
            values=values,
        )

    def _named(self, block: RowBlock) -> Pseudonyms:
        """Pseudonyms of the rows' subscribers; events need no name."""
        if self._event_prf is None:
            return pseudonyms_of(block.texts(self._profile.subscriber), self._pseudonym_key)
        n = len(block.lines)
        if not self._profile.subscriber:
            return Pseudonyms(np.zeros(n, np.uint64), np.zeros(n, np.bool_))
        named = pseudonyms_of(block.texts(self._profile.subscriber), self._pseudonym_key)
        return named._replace(is_empty=np.zeros(n, np.bool_))

    def _people(self, block: RowBlock, rows: NDArray[np.int32], counts: RowCounts) -> Pseudonyms | None:
        """Pseudonyms of the people of some rows, where the study limits the events of each."""
        column = self._profile.person
        if self._plan.max_events is None or column is None:
            return None
        people = pseudonyms_of(block.texts(column).of_rows(rows), self._pseudonym_key)
        if n_empty := int(people.is_empty.sum()):
            counts.empty[column] += n_empty
        return people

    def _name_events(self, events: Events, prf: KeyedPrf, *, people: Pseudonyms | None) -> None:
        """Add the zones of rows, and replace their names by the keys of all that they say, in place."""
        if self._zones is not None:
            events.codes[:, self._zones.slot] = self._zones.code_of_cell[events.cell]
        parts = [events.second, events.cell, *events.codes.T]
        if people is not None:
            named = np.where(people.is_empty, np.uint64(0), people.values)
            parts += [named >> np.uint64(32), named & np.uint64(2**32 - 1)]
        events.pseudonym[:] = content_keys(events.pseudonym, parts, prf=prf)
        if people is not None:
            found = with_people(events.pseudonym, people.values, is_nobody=people.is_empty)
            events.pseudonym[:], events.cell[:] = found

    def _counted(self, coded: Coded, judged: Judged, block: RowBlock, counts: RowCounts) -> NDArray[np.int32]:
        """Count all rows by outcome; the places of the accepted ones."""
        rows, facts, counts.accepted = judged.rows, judged.facts, judged.n_accepted
        if self._nights is not None:
            self._keep_nights(coded, judged, counts)
            rows = np.flatnonzero(judged.outcome == _ACCEPTED).astype(np.int32)
        counts.reject("wrong_columns", block.misshapen)
        counts.reject("bad_text", block.bad_text)
        rejected = judged.rejected[: facts[outcomes.N_REJECTED]]
        reasons = judged.outcome[rejected]
        for outcome, reason in enumerate(outcomes.OUTCOMES[1:], start=1):
            if not judged.tallies[outcome]:
                continue
            if reason in REJECTED:
                of_reason = rejected[reasons == outcome]
                counts.reject(reason, block.lines[of_reason])
                if reason == "unknown_value":
                    for value, codes in zip(self._values, coded.values, strict=True):
                        counts.note_unknown(value.column, codes[of_reason] == UNKNOWN)
            else:
                counts.ignore(reason, int(judged.tallies[outcome]))
        counts.located = int(facts[outcomes.LOCATED])
        counts.locatable_of = int(facts[: outcomes.EMPTY_CELLS + 1].sum())
        if facts[outcomes.FIRST] != outcomes.NEVER:
            counts.note_events(int(facts[outcomes.FIRST]), int(facts[outcomes.LAST]))
        self._note_columns(coded, judged, rejected, block, counts)
        if n_unmatched := facts[outcomes.UNMATCHED]:
            texts = block.texts(self._profile.cell or "")
            count_unmatched(texts.of_rows(judged.unmatched[:n_unmatched]), counts, forms=self._cells.forms)
        counts.rows_read = block.n_rows
        return rows[: counts.accepted]

    def _keep_nights(self, coded: Coded, judged: Judged, counts: RowCounts) -> None:
        """Judge rows outside the visitor hours again, in place: some are of a night that is asked for."""
        assert self._nights is not None  # noqa: S101 - asked for by the caller
        times, cells, found, tallies = coded.times, self._cells, judged.outcome, judged.tallies
        rows = np.flatnonzero((found == _OUTSIDE_HOURS) | (found == _OUTSIDE_PERIOD))
        night = self._nights.day_of(times.utc[rows] - self._clock.origin)
        rows, night = rows[night > 0], night[night > 0]
        before = found[rows]
        # The last night ends on the date after the last day.
        day = np.where(before == _OUTSIDE_PERIOD, self._days + 1, times.day[rows])
        cell = np.maximum(coded.cells[rows], 0)
        is_in_area = (cells.first_valid[cell] <= day) & (day <= cells.last_valid[cell])
        is_in_area &= coded.cells[rows] >= 0
        after = np.where(self._closed[night], _DAY_CLOSED, _ACCEPTED)
        after = np.where(is_in_area, after, _OUTSIDE_AREA).astype(np.uint8)
        found[rows] = after
        n = len(tallies)
        tallies[:] += np.bincount(after, minlength=n) - np.bincount(before, minlength=n)
        is_kept = after == _ACCEPTED
        counts.accepted += int(is_kept.sum())
        # Dates after the study have no place in the hours of its days.
        is_kept &= day <= self._days
        hour = times.minute[rows[is_kept]] // 60
        np.add.at(counts.hours, (day[is_kept].astype(np.int64) - 1, hour), 1)

    def _is_in_hours(self, minute: NDArray[np.int16]) -> NDArray[np.bool_]:
        return (self._visitor.from_minute <= minute) & (minute <= self._visitor.to_minute)

    def _note_columns(
        self, coded: Coded, judged: Judged, rejected: NDArray[np.int32], block: RowBlock, counts: RowCounts
    ) -> None:
        """Note values that are missing."""
        profile = self._profile
        names = [profile.subscriber, profile.cell or "", *(value.column for value in self._values)]
        for name, n_empty in dict(zip(names, judged.empties.tolist(), strict=True)).items():
            if n_empty:
                counts.empty[name] += n_empty
        if judged.facts[outcomes.BAD_TIMES] and profile.timestamp:
            bad = rejected[coded.times.outcome[rejected] == timestamps.BAD]
            _note_empty(profile.timestamp, block.columns[profile.timestamp], bad, counts)
        if profile.cell is not None and not self._cells.is_listed:
            cells = block.texts(profile.cell)
            _note_empty(profile.cell, cells, np.flatnonzero(~coded.has_opted_out), counts)

    def _collect_codes(self, rows: NDArray[np.int32], values: NDArray[np.int32], events: Events) -> None:
        """Raw codes that may be answered: all of them, or the one of the indicator that was picked."""
        plan = self._plan
        if plan.classes:  # the last column, and the last slot
            _collect_codes(rows, values[-1:], np.array([self.slots - 1], np.int64), events.codes)
            values = values[:-1]
        if not self._columns.all:
            return
        if self._joints or self._columns.operators:
            rows, of_columns = np.arange(len(rows), dtype=np.int32), self._columns.values(values[:, rows])

            def sides(number: int, levels: NDArray[np.int32]) -> NDArray[np.int32]:
                return self._sanitiser.sides(number, events.pseudonym, levels)

            of_joints = (joint.codes(of_columns, sides=sides) for joint in self._joints)
            values = np.stack([*of_columns, *of_joints])
        places = [value.place for value in self._columns.plain] + [joint.place for joint in self._joints]
        if not plan.is_sampled or plan.events:
            slots = np.array([self._slot_of[place] for place in places], np.int64)
            _collect_codes(rows, values, slots, events.codes)
            return
        asked = choose_indicator(events.pseudonym, prf=self._prf, d=plan.d, shares=plan.shares)
        column_of = np.full(plan.d, -1, np.int64)
        column_of[places] = np.arange(len(places))
        _collect_asked(rows, values, asked, column_of, events.codes)


def _class_column(profile: Profile, *, place: int) -> ValueColumn:
    """Column of the class, which every row must have: an empty one is unknown, too."""
    if profile.class_column is None or profile.classes is None:
        raise ValueError(f"profile {profile.name} must have the column of the classes")
    return ValueColumn(profile.class_column, place, CodeTable.of(profile.classes, empty=UNKNOWN))


def _note_empty(name: str, column: Column, rows: NDArray[np.integer[Any]], counts: RowCounts) -> None:
    """Count those of some rows that have no value in a column."""
    if isinstance(column, Texts):
        texts = trimmed(column.of_rows(rows).one_each())
        n = int((texts.begins == texts.ends).sum())
    else:
        n = int(column.is_null().to_numpy(zero_copy_only=False)[rows].sum())
    if n:
        counts.empty[name] += n


@numba.njit(cache=True, nogil=True)
def _collect(  # type: ignore[no-untyped-def]
    rows, pseudonyms, utc, origin, cells, day, kept_pseudonyms, kept_seconds, kept_cells, kept_days
):
    """Copy what is kept of some rows."""
    for place in range(len(rows)):
        row = rows[place]
        kept_pseudonyms[place] = pseudonyms[row]
        kept_seconds[place] = utc[row] - origin
        kept_cells[place] = np.uint32(cells[row])
        kept_days[place] = day[row]


@numba.njit(cache=True, nogil=True)
def _collect_codes(rows, values, slots, codes):  # type: ignore[no-untyped-def]
    """Copy the codes of some rows; slots : int64, place in `codes` of each column of values."""
    for place in range(len(rows)):
        for column in range(len(values)):
            code = values[column, rows[place]]
            codes[place, slots[column]] = code if code >= 0 else NO_VALUE


@numba.njit(cache=True, nogil=True)
def _collect_asked(rows, values, asked, column_of, codes):  # type: ignore[no-untyped-def]
    """Copy the code of the indicator that each subscriber answers, if any; column_of : int64, -1 = none."""
    for place in range(len(rows)):
        column = column_of[asked[place]]
        code = values[column, rows[place]] if column >= 0 else -1
        codes[place, 0] = code if code >= 0 else NO_VALUE
