"""Raw values of a day, which are sanitised before they are kept: numbers, cells, zones, a move, a visit."""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ldp import IndicatorSpec, PlanSpec
from ldp.privacy.joint import joint_codes, joint_size, part_codes
from mobility.extracts.rows.events import NO_VALUE
from mobility.extracts.rows.joints import static_parts
from mobility.extracts.rows.nights import nights_of
from mobility.vault.sanitise import StudySanitiser
from mobility.vault.state import positions
from mobility.vault.state.days import DaySightings
from mobility.vault.state.distances import cell_positions, farthest_km
from mobility.vault.state.hours import HourClock
from mobility.vault.state.moves import items_of_day
from mobility.vault.state.slots import slot_counter
from mobility.vault.state.stays import NO_CELL, PlaceRules, Who, longest_stays
from mobility.vault.state.visits import StaticValues
from reports.studies.studyfile import (
    EVENTS,
    HOME_DISTANCE,
    MAIN_ZONE,
    OF_NIGHT,
    OF_ZONES,
    ONE_A_DAY,
    VISIT_DURATION,
    VISIT_DURATION_BANDS,
    StudyDefinition,
)
from reports.studies.studyfile.hours import BUSIEST_HOUR, FIRST_HOUR, LAST_HOUR

Pseudonyms = NDArray[np.uint64]
Cells = NDArray[np.uint32]
Codes = NDArray[np.uint16]
HOUR_S, MINUTE_S = 3600, 60
LONGEST_S = 18 * HOUR_S
# Derived from the quarter-hours of a day.
OF_PLACES = (MAIN_ZONE, *ONE_A_DAY, EVENTS, HOME_DISTANCE, BUSIEST_HOUR)
# A visit is over with the events of its date, a night only with those of the next one.
Part = Literal["visit", "night"]


class DailyValues:
    """Derived values of a day's events, for one study.

    Parameters
    ----------
    definition : as the vault approved it
    sanitiser : of the study; it knows who answers what
    """

    def __init__(self, definition: StudyDefinition, sanitiser: StudySanitiser) -> None:
        self._sanitiser = sanitiser
        # A static part may be derived, too, but not from a day.
        derive_of = {
            each.slug: each.derive if each.kind == "daily" else None for each in definition.indicators
        }
        self._derived = [
            tuple(derive_of[slug] or "" for slug in each.parts or (each.slug,))
            for each in definition.indicators
            if each.kind == "daily"
        ]
        plan = sanitiser.plan
        self._joints = [
            _DailyJoint.of(plan, spec) if spec.parts else None
            for spec in plan.indicators
            if spec.kind == "daily"
        ]
        # Whether days need the raw static parts of those who are asked for a daily combination.
        self.has_static_parts = any(each is not None and each.static_sizes for each in self._joints)
        self._daily = [(place, each) for place, each in enumerate(plan.indicators) if each.kind == "daily"]
        # Numbers by what they are derived from, with their place in the plan.
        self._numbers = {
            derive_of[each.slug]: (place, each.scale) for place, each in self._daily if each.scale is not None
        }
        self._zone_of_cell = _zone_codes(definition)
        self._positions = cell_positions(definition)
        self._nights, self._hours = nights_of(definition), HourClock(definition)
        self.slots = slot_counter(definition)
        location = definition.location
        self._grid_code_of_cell = None if location is None else np.array(location.places, np.uint16)
        # Everyone reports a place, and on its zone only who is asked.
        of_day = self._answers(*OF_PLACES) if location is None else _everyone
        self.rules: PlaceRules | None = None
        if of_day is not None or self._nights is not None or self.slots is not None:
            self.rules = PlaceRules(
                of_day=of_day,
                of_night=self._answers(*OF_NIGHT),
                nights=self._nights,
                midnights=None if self.slots is None else self.slots.midnights,
            )

    def main_cells(self, seen: DaySightings, pseudonyms: Pseudonyms) -> Cells:
        """Cell in which each of the sorted `pseudonyms` stayed longest on the day, uint32 (n,).

        It is the cell's place in the area's registry; NO_CELL of a person who is not asked.
        """
        return _cells_of(pseudonyms, *longest_stays(seen.stays))

    def night_cells(self, seen: DaySightings, pseudonyms: Pseudonyms, *, day: int) -> Cells:
        """Return `main_cells` of the night that begins on the day; the last stay continues until its end."""
        until = None if self._nights is None else int(self._nights.end[day - 1])
        return _cells_of(pseudonyms, *longest_stays(seen.nights, until=until))

    def static_parts(self, values: StaticValues) -> Codes | None:
        """Raw codes of the static parts, shape (n, 1), of those who answer a daily combination of them.

        NO_VALUE of all others, whose raw values must not be kept; None in a study without such a combination.
        """
        if not self.has_static_parts:
            return None
        kept = np.full((len(values), 1), NO_VALUE, np.uint16)
        places = self._sanitiser.places(values.pseudonym, kind="daily")
        for place, joint in zip(places, self._joints, strict=True):
            if joint is not None and joint.static_sizes:
                kept[place.rows] = values.codes[place.rows]
        return kept

    def codes(self, seen: DaySightings, rows: NDArray[np.int64], *, day: int, part: Part) -> Codes:
        """Raw codes of some of those who were seen, shape (n, daily indicators), in plan order.

        NO_VALUE where there is none, and for every indicator that is not of the `part`.
        """
        codes = np.full((len(rows), len(self._derived)), NO_VALUE, np.uint16)
        found: dict[str, Codes] = {}
        sources = zip(self._derived, self._joints, self._daily, strict=True)
        for column, (derived, joint, (place, asked)) in enumerate(sources):
            # A combination is known once all its parts are.
            if bool({*OF_NIGHT} & {*derived}) != (part == "night"):
                continue
            if asked.scale is not None:
                codes[:, column] = self._levels_of(derived[0], seen, rows, day=day)
                continue
            if asked.moves is not None:
                people = seen.pseudonym[rows]
                starts, moves = items_of_day(seen.stays, self._zone_of_cell, people, asked.moves)
                codes[:, column] = self._sanitiser.picked_moves(place, people, starts, moves, day=day)
                continue
            for derive in derived:
                if derive and derive not in found:
                    found[derive] = self._codes_of(derive, seen, rows, day=day)
            values = [found.get(derive) for derive in derived]
            own = values[0] if joint is None else joint.codes(values, seen.parts[rows])
            if own is not None:
                codes[:, column] = own
        return codes

    def grid_codes(self, seen: DaySightings, rows: NDArray[np.int64], *, part: Part) -> Codes | None:
        """Square of the grid in which the main cell of each lies, shape (n,); None without locations.

        NO_VALUE in the part of the night: a place is reported for the day.
        """
        if self._grid_code_of_cell is None:
            return None
        if part == "night":
            return np.full(len(rows), NO_VALUE, np.uint16)
        return _of_cells(self.main_cells(seen, seen.pseudonym[rows]), self._grid_code_of_cell)

    def _levels_of(self, derive: str, seen: DaySightings, rows: NDArray[np.int64], *, day: int) -> Codes:
        _, scale = self._numbers[derive]
        numbers = self._numbers_of(derive, seen, rows, day=day)
        return np.where(np.isnan(numbers), NO_VALUE, scale.levels(numbers)).astype(np.uint16)

    def _sides_of(self, derive: str, seen: DaySightings, rows: NDArray[np.int64], *, day: int) -> Codes:
        place, _ = self._numbers[derive]
        levels = self._levels_of(derive, seen, rows, day=day)
        known = np.where(levels == NO_VALUE, -1, levels.astype(np.int32)).astype(np.int32)
        sides = self._sanitiser.sides(place, seen.pseudonym[rows], known)
        return np.where(sides < 0, NO_VALUE, sides).astype(np.uint16)

    def _numbers_of(
        self, derive: str, seen: DaySightings, rows: NDArray[np.int64], *, day: int
    ) -> NDArray[np.float64]:
        """Return the number of each person, NaN where it is not known."""
        if derive == VISIT_DURATION:
            return ((seen.last[rows] - seen.first[rows]) // MINUTE_S).astype(np.float64)
        people = seen.pseudonym[rows]
        if derive == EVENTS:
            starts, ends = (np.searchsorted(seen.stays.pseudonym, people, side) for side in ("left", "right"))
            return (ends - starts).astype(np.float64)
        return farthest_km(seen.stays, self._positions, people, self.night_cells(seen, people, day=day))

    def _codes_of(self, derive: str, seen: DaySightings, rows: NDArray[np.int64], *, day: int) -> Codes:
        if derive in self._numbers:
            return self._sides_of(derive, seen, rows, day=day)
        if derive == VISIT_DURATION:
            return duration_codes(seen.last[rows] - seen.first[rows])
        if derive in (FIRST_HOUR, LAST_HOUR):
            return self._hours.hours((seen.first if derive == FIRST_HOUR else seen.last)[rows])
        pseudonyms = seen.pseudonym[rows]
        if derive == BUSIEST_HOUR:
            return self._hours.busiest(seen.stays, pseudonyms)
        if derive == MAIN_ZONE:
            cells = self.main_cells(seen, pseudonyms)
        else:
            cells = self.night_cells(seen, pseudonyms, day=day)
        return _of_cells(cells, self._zone_of_cell)

    def _answers(self, *derives: str) -> Who | None:
        """Return the rows that answer an indicator with one of these values; None if there is none."""
        columns = [column for column, derived in enumerate(self._derived) if {*derives} & {*derived}]
        if not columns:
            return None

        def answers(pseudonyms: Pseudonyms) -> NDArray[np.bool_]:
            is_asked = np.zeros(len(pseudonyms), np.bool_)
            places = list(self._sanitiser.places(pseudonyms, kind="daily"))
            for column in columns:
                is_asked[places[column].rows] = True
            return is_asked

        return answers


class _DailyJoint(NamedTuple):
    """Numbers of values of all parts of a daily joint indicator, and of its static parts."""

    sizes: tuple[int, ...]
    static_sizes: tuple[int, ...]

    @classmethod
    def of(cls, plan: PlanSpec, spec: IndicatorSpec) -> "_DailyJoint":
        return cls(
            sizes=tuple(plan.indicators[plan.index(part)].part_size for part in spec.parts),
            static_sizes=tuple(plan.indicators[place].part_size for place in static_parts(plan, spec)),
        )

    def codes(self, derived: Sequence[Codes | None], raw: Codes) -> Codes:
        """Code of each person, shape (n,).

        Parameters
        ----------
        derived : values of each part, None of a static one
        raw : shape (n, 0 or 1); code of the static parts, NO_VALUE where the files say nothing of them
        """
        static: Iterator[NDArray[np.int32]] = iter(())
        if self.static_sizes:
            nothing = joint_size(self.static_sizes) - 1
            known = np.where(raw[:, 0] <= nothing, raw[:, 0], nothing)
            static = iter(part_codes(known.astype(np.int32), sizes=self.static_sizes))
        values = [next(static) if each is None else each.astype(np.int32) for each in derived]
        return joint_codes(values, sizes=self.sizes).astype(np.uint16)


def duration_codes(stay_s: NDArray[np.uint32]) -> NDArray[np.uint16]:
    """Code of the band of each stay in seconds: [1, 2) h is 0 ... [9, 10) h is 8, [10, 18] h is the last.

    Stays under an hour or over 18 hours belong to no band: they are visitors without this answer.
    """
    last = len(VISIT_DURATION_BANDS) - 1
    codes = np.minimum(stay_s // HOUR_S - 1, last).astype(np.uint16)
    codes[(stay_s < HOUR_S) | (stay_s > LONGEST_S)] = NO_VALUE
    return codes


def _everyone(pseudonyms: Pseudonyms) -> NDArray[np.bool_]:
    return np.ones(len(pseudonyms), np.bool_)


def _zone_codes(definition: StudyDefinition) -> Codes:
    """Code of the zone of each cell of the registry; NO_VALUE outside all zones. Empty if not needed."""
    if definition.area is None or not any(each.derive in OF_ZONES for each in definition.indicators):
        return np.empty(0, np.uint16)
    code_of = {zone: code for code, zone in enumerate(definition.area.zones)}
    return np.array([code_of.get(cell.zone or "", NO_VALUE) for cell in definition.area.cells], np.uint16)


def _of_cells(cells: Cells, code_of_cell: Codes) -> Codes:
    """Code of each cell; NO_VALUE of NO_CELL."""
    is_known = cells != NO_CELL
    return np.where(is_known, code_of_cell[np.where(is_known, cells, 0)], NO_VALUE)


def _cells_of(pseudonyms: Pseudonyms, people: Pseudonyms, cells: Cells) -> Cells:
    found = np.full(len(pseudonyms), NO_CELL, np.uint32)
    theirs, mine = positions.shared_rows(people, pseudonyms)
    found[mine] = cells[theirs]
    return found
