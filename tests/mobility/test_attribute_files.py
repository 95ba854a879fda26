"""Attributes may come inline, in their own file, before or after: the same people give the same totals."""

from dataclasses import dataclass
from decimal import Decimal
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldp import IndicatorRequest, build_plan
from ldp.entropy import KeyedPrf
from ldp.tallies import Delta
from mobility.answers import KnownAnswers
from mobility.ingest.events import NO_VALUE
from mobility.presence import DayArrivals, Presence, add_answers, add_days, final_answers, forget_subscribers
from mobility.sanitise import StudySanitiser

NONE = int(NO_VALUE)
SIZES = (3, 2)  # of two static indicators
DAYS = 3
PEOPLE = tuple(range(8))


def sanitiser_of(mechanism: str) -> StudySanitiser:
    indicators = [
        IndicatorRequest(slug=f"i{size}", kind="static", domain_size=size)  # type: ignore[arg-type]
        for size in SIZES
    ]
    plan = build_plan(
        mechanism=mechanism,  # type: ignore[arg-type]
        unit="profile",
        version=1,
        days=DAYS,
        epsilon=Decimal(1),
        indicators=indicators,
    )
    return StudySanitiser(plan, prf=KeyedPrf(bytes(16)))


SANITISERS = {mechanism: sanitiser_of(mechanism) for mechanism in ("smp-grr", "spl-grr", "rsfd-grr")}


@dataclass(frozen=True)
class File:
    """Rows of a file: who, and the values that it gives of them; of a day, or of no day at all."""

    day: int | None
    values: dict[int, tuple[int, ...]]


def static_of(sanitiser: StudySanitiser, file: File) -> KnownAnswers:
    names = np.array(sorted(file.values), np.uint64)
    values = np.array([file.values[name] for name in sorted(file.values)], np.uint16)
    values = values.reshape(len(names), len(SIZES))
    codes = np.full((len(names), sanitiser.slots("static")), NONE, np.uint16)
    for place in sanitiser.places(names, kind="static"):
        codes[place.rows, place.slot] = values[place.rows, place.indicator]
    return KnownAnswers(pseudonym=names, static=sanitiser.static_answers(names, codes))


class Shard:
    """A shard that takes files as the services do."""

    def __init__(self, sanitiser: StudySanitiser) -> None:
        self.sanitiser = sanitiser
        self.presence = Presence.empty(sanitiser)
        self.known = KnownAnswers.empty(words=sanitiser.words("static"))
        self.total = Delta.zero(sanitiser.plan)

    def take(self, file: File) -> None:
        fresh = static_of(self.sanitiser, file)
        if file.day is None:
            self.known = self.known.merge(fresh)
            change = add_answers(self.presence, self.known, number=1, sanitiser=self.sanitiser)
        else:
            final = final_answers(self.presence, self.known, fresh.pseudonym)
            arrival = DayArrivals(
                day=file.day,
                pseudonym=fresh.pseudonym,
                static=np.where(final == NO_VALUE, fresh.static, final),
                daily=np.empty((len(fresh), 0), np.uint16),
            )
            change = add_days(self.presence, [arrival], number=1, sanitiser=self.sanitiser)
        self.presence, self.total = change.presence, self.total + change.delta

    def forget(self, people: list[int]) -> None:
        gone = np.array(sorted(people), np.uint64)
        change = forget_subscribers(self.presence, gone, number=1, sanitiser=self.sanitiser)
        self.presence, self.total = change.presence, self.total + change.delta
        self.known = self.known.without(gone)


def taken(sanitiser: StudySanitiser, files: list[File]) -> Shard:
    shard = Shard(sanitiser)
    for file in files:
        shard.take(file)
    return shard


def assert_same(one: Shard, other: Shard) -> None:
    for name in ("pseudonym", "days", "static"):
        assert np.array_equal(getattr(one.presence, name), getattr(other.presence, name))
    assert one.total.pack() == other.total.pack()


@st.composite
def some_files(draw: st.DrawFn) -> tuple[list[File], list[File]]:
    """Files that give parts of each person's values, and files of the same days that give all inline."""
    truth = {name: tuple(draw(st.integers(0, size - 1)) for size in SIZES) for name in PEOPLE}

    def part(names: set[int]) -> dict[int, tuple[int, ...]]:
        return {name: tuple(draw(st.sampled_from([value, NONE])) for value in truth[name]) for name in names}

    some = st.sets(st.sampled_from(PEOPLE))
    days = [File(day, part(draw(some))) for day in range(1, DAYS + 1)]
    extracts = [File(None, part(draw(some))), File(None, part(draw(some)))]
    given_of: dict[int, list[tuple[int, ...]]] = {}
    for file in (*days, *extracts):
        for name, values in file.values.items():
            given_of.setdefault(name, []).append(values)
    all_of = {
        name: tuple(min(column) for column in zip(*rows, strict=True)) for name, rows in given_of.items()
    }
    inline = [File(file.day, {name: all_of[name] for name in file.values}) for file in days]
    return [*days, *extracts], inline


@settings(max_examples=25)
@given(files=some_files(), data=st.data())
@pytest.mark.parametrize("mechanism", SANITISERS)
def test_totals_do_not_depend_on_where_and_when_values_come(
    files: tuple[list[File], list[File]], data: st.DataObject, mechanism: str
) -> None:
    parts, inline = files
    sanitiser = SANITISERS[mechanism]
    expected = taken(sanitiser, inline)
    assert_same(taken(sanitiser, data.draw(st.permutations(parts))), expected)
    assert_same(taken(sanitiser, [*parts, *data.draw(st.permutations(parts))]), expected)


@settings(max_examples=25)
@given(files=some_files(), gone=st.sets(st.sampled_from(PEOPLE)), at=st.integers(0, 5))
@pytest.mark.parametrize("mechanism", SANITISERS)
def test_totals_without_someone_are_those_of_files_without_them(
    files: tuple[list[File], list[File]], gone: set[int], at: int, mechanism: str
) -> None:
    def without(file: File) -> File:
        return File(file.day, {name: values for name, values in file.values.items() if name not in gone})

    parts, _ = files
    shard = taken(SANITISERS[mechanism], parts[:at])
    shard.forget(sorted(gone))
    for file in parts[at:]:
        shard.take(without(file))
    expected = taken(SANITISERS[mechanism], [without(file) for file in parts])
    assert_same(shard, expected)
    assert shard.known.pseudonym.tolist() == expected.known.pseudonym.tolist()


def test_answer_that_came_first_stays_whatever_comes_later() -> None:
    """Two values of one person: one of them is answered, once."""
    sanitiser = SANITISERS["spl-grr"]
    files = [File(1, {5: (0, 0)}), File(None, {5: (2, 1)}), File(2, {5: (1, 1)})]
    for order in permutations(files):
        shard = taken(sanitiser, list(order))
        assert shard.presence.static.tolist() == static_of(sanitiser, order[0]).static.tolist()
        assert [int(counts.sum()) for counts in shard.total.counts] == [2, 2]
