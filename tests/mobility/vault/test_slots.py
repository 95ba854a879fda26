"""Counts by slot and zone from the state of days: what a recount of all rows in plain Python gives."""

import random
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from ldp.kernels.entropy import KeyedPrf
from mobility.extracts.rows.timestamps import study_clock
from mobility.vault.sanitise import StudySanitiser
from mobility.vault.state.daily import DailyValues
from mobility.vault.state.days import DaySightings, day_states, merge_sightings
from mobility.vault.state.visits import group_events
from tests.mobility.extracts.rows.night_study import night_study
from tests.mobility.extracts.rows.small_extract import SANITISE_KEY, make_events
from tests.mobility.slot_study import ZONES_OF, with_slots

DAYS = 3
PARIS = ZoneInfo("Europe/Paris")
SPRING, AUTUMN, SUMMER = date(2017, 3, 25), date(2017, 10, 28), date(2017, 6, 1)


@cache
def study_of(first_day, *, minutes=30, hold=60, per_day=48):
    definition = night_study(first_day=first_day.isoformat(), days=DAYS)
    return with_slots(definition, minutes=minutes, hold_minutes=hold, slots_per_day=per_day)


@dataclass
class Recount:
    """Counts from rows, one person and slot after the other."""

    first_day: date
    minutes: int = 30
    hold: int = 60
    per_day: int = 48
    used: dict[tuple[int, int], set[int]] = field(default_factory=dict)

    def __post_init__(self):
        midnights = [self._second(day) for day in range(DAYS + 1)]
        self.slots = [
            (day + 1, start, min(start + self.minutes * 60, midnights[day + 1]))
            for day in range(DAYS)
            for start in range(midnights[day], midnights[day + 1], self.minutes * 60)
        ]

    def _second(self, day):
        date = self.first_day + timedelta(days=day)
        origin = study_clock("Europe/Paris", first_day=self.first_day, days=DAYS).origin
        return int(datetime(date.year, date.month, date.day, tzinfo=PARIS).timestamp()) - origin

    def counts(self, rows, first, through):
        found = np.zeros((through - first, 4), np.int64)
        for who in {row[0] for row in rows}:
            own = [(second, -cell) for person, second, cell in rows if person == who]
            for slot in range(first, through):
                day, start, end = self.slots[slot]
                before = [event for event in own if event[0] < end]
                if not before:
                    continue
                second, cell = max(before)
                used = self.used.setdefault((who, day), set())
                zones = ZONES_OF[-cell]
                is_there = start <= second or end - second <= self.hold * 60
                if not is_there or not zones or len(used - {slot}) >= self.per_day:
                    continue
                used.add(slot)
                found[slot - first, list(zones)] += 1
        return found


class State:
    def __init__(self, definition):
        sanitiser = StudySanitiser(definition.plan_spec(), prf=KeyedPrf(SANITISE_KEY))
        self.values = DailyValues(definition, sanitiser)
        self.words = sanitiser.words("static")
        self.counter = self.values.slots
        self.days: dict[int, DaySightings] = {}

    def add(self, rows):
        # Half of them are outside the visitor hours: of no day.
        midnights = self.counter.midnights
        days = [int(np.searchsorted(midnights, second, side="right")) for _, second, _ in rows]
        coded = [
            (who, second, cell, day * (second // 900 % 2), [])
            for (who, second, cell), day in zip(rows, days, strict=True)
        ]
        grouped = group_events(make_events(coded, slots=0), rules=self.values.rules)
        static = np.empty((len(grouped.values), self.words), np.uint16)
        nobody = DaySightings.empty(words=self.words)
        for day, seen in day_states(grouped, static).items():
            self.days[day] = self.kept(merge_sightings(self.days.get(day, nobody), seen))

    def kept(self, seen):
        return DaySightings.unpack(seen.pack(), words=self.words)

    def close(self, first, through):
        seen = {day: state.slots for day, state in self.days.items()}
        used = {day: state.slots_used for day, state in self.days.items()}
        counts, used_now = self.counter.counts(seen, used, first=first, through=through)
        for day, of_day in used_now.items():
            before = self.days.get(day, DaySightings.empty(words=self.words))
            self.days[day] = self.kept(replace(before, slots_used=of_day))
        assert counts.first_slot == first
        return counts.counts

    def forget_through(self, day):
        seen = {known: state.slots for known, state in self.days.items()}
        if day < DAYS:
            nobody = DaySightings.empty(words=self.words)
            carried = replace(nobody, slots=self.counter.carried(seen, to=day + 1))
            self.days[day + 1] = self.kept(merge_sightings(self.days.get(day + 1, nobody), carried))
        self.days = {known: state for known, state in self.days.items() if known > day}


def some_rows(recount, *, seed, people=25, n=500):
    rng = random.Random(seed)
    end = recount.slots[-1][2]
    start = recount.slots[0][1]
    # Few seconds, so that slots' ends, quarter-hours and whole seconds are shared.
    seconds = range(start, end, 300)
    return [
        (rng.randrange(people), min(rng.choice(seconds) + rng.choice([0, 0, 299]), end - 1), rng.randrange(4))
        for _ in range(n)
    ]


CASES = [
    (SUMMER, 30, 60, 48), (SPRING, 30, 60, 48), (AUTUMN, 30, 60, 48), (AUTUMN, 15, 0, 96),
    (SPRING, 120, 1440, 12), (SUMMER, 60, 45, 5), (AUTUMN, 30, 180, 7), (SPRING, 15, 1440, 96),
    (SPRING, 30, 90, 6), (AUTUMN, 30, 90, 6),
]  # fmt: skip


@pytest.mark.parametrize("by_steps", [False, True])
@pytest.mark.parametrize(("first_day", "minutes", "hold", "per_day"), CASES)
def test_counts_are_those_of_a_recount_also_when_closed_between_files_and_days(
    first_day, minutes, hold, per_day, by_steps
):
    state = State(study_of(first_day, minutes=minutes, hold=hold, per_day=per_day))
    recount, rng = Recount(first_day, minutes=minutes, hold=hold, per_day=per_day), random.Random(hold)
    rows, known, closed, forgotten, n = some_rows(recount, seed=minutes + hold), [], 0, 0, len(recount.slots)
    assert len(state.counter.clock) == n
    midnights = {day: start for day, start, _ in reversed(recount.slots)}
    for place in range(0, len(rows), 50):
        arriving = [row for row in rows[place : place + 50] if row[1] >= midnights[forgotten + 1]]
        for _ in range(2 if arriving else 0):  # files may come again
            state.add(arriving)
        known += arriving
        through = min(closed + rng.choice([0, 1, 5, 20]), n) if by_steps else 0
        if through > closed:
            if rng.random() < 0.3:  # a closing that failed after this shard counts for nothing
                state.close(closed, min(through + 7, n))
            assert np.array_equal(state.close(closed, through), recount.counts(known, closed, through))
            closed = through
        if closed and closed < n and recount.slots[closed][0] > forgotten + 1:
            forgotten = recount.slots[closed][0] - 1
            state.forget_through(forgotten)
    expected = recount.counts(known, closed, n)
    assert by_steps or expected[:, :2].sum() > 200
    assert np.array_equal(state.close(closed, n), expected)
