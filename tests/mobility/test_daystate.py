"""Sightings of a day: merging files in any order, and packing."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mobility.columns import pack_columns, steps
from mobility.daystate import DaySightings, merge_sightings, sightings_by_day
from mobility.ingest.events import NO_VALUE
from mobility.ingest.stays import Whereabouts
from mobility.ingest.visits import Visits

NONE = int(NO_VALUE)
PSEUDONYMS = [0, 1, 2**63, 2**64 - 1]

Seen = dict[int, tuple[int, int, tuple[int, ...]]]  # pseudonym -> first, last, static answers


def sightings_of(seen: Seen, *, slots: int) -> DaySightings:
    rows = sorted(seen.items())
    return DaySightings(
        pseudonym=np.array([pseudonym for pseudonym, _ in rows], np.uint64),
        first=np.array([first for _, (first, _, _) in rows], np.uint32),
        last=np.array([last for _, (_, last, _) in rows], np.uint32),
        static=np.array([answers for _, (_, _, answers) in rows], np.uint16).reshape(len(rows), slots),
    )


def seen_in(sightings: DaySightings) -> Seen:
    pseudonyms = sightings.pseudonym.tolist()
    assert pseudonyms == sorted(set(pseudonyms))
    answers = map(tuple, sightings.static.tolist())
    spans = zip(sightings.first.tolist(), sightings.last.tolist(), answers, strict=True)
    return dict(zip(pseudonyms, spans, strict=True))


def merged_by_hand(parts: list[Seen]) -> Seen:
    merged: Seen = {}
    for part in parts:
        for pseudonym, (first, last, answers) in part.items():
            old_first, old_last, old_answers = merged.get(pseudonym, (first, last, answers))
            kept = tuple(new if old == NONE else old for old, new in zip(old_answers, answers, strict=True))
            merged[pseudonym] = min(first, old_first), max(last, old_last), kept
    return merged


@st.composite
def some_parts(draw: st.DrawFn) -> tuple[int, list[Seen]]:
    slots = draw(st.integers(0, 2))
    moments = st.sampled_from([0, 1, 7, 3600, 2**32 - 1])
    row = st.tuples(
        st.tuples(moments, moments).map(sorted).map(tuple),
        st.tuples(*[st.sampled_from([0, 1, 65_533, NONE])] * slots),
    ).map(lambda drawn: (*drawn[0], drawn[1]))
    part = st.dictionaries(st.sampled_from(PSEUDONYMS), row)
    return slots, draw(st.lists(part, max_size=4))


def merged(parts: list[Seen], *, slots: int) -> Seen:
    sightings = DaySightings.empty(words=slots)
    for part in parts:
        sightings = merge_sightings(sightings, sightings_of(part, slots=slots))
    return seen_in(sightings)


@given(drawn=some_parts())
def test_files_merge_to_the_whole_span_and_the_first_answer(drawn: tuple[int, list[Seen]]) -> None:
    slots, parts = drawn
    assert merged(parts, slots=slots) == merged_by_hand(parts)


@given(drawn=some_parts())
def test_span_does_not_depend_on_the_order_of_files(drawn: tuple[int, list[Seen]]) -> None:
    slots, parts = drawn
    spans = {
        tuple(sorted((p, first, last) for p, (first, last, _) in merged(list(order), slots=slots).items()))
        for order in permutations(parts)
    }
    assert len(spans) == 1


@given(drawn=some_parts())
def test_merging_the_same_file_again_changes_nothing(drawn: tuple[int, list[Seen]]) -> None:
    slots, parts = drawn
    assert merged(parts + parts, slots=slots) == merged(parts, slots=slots)


@given(drawn=some_parts())
def test_packing_changes_nothing(drawn: tuple[int, list[Seen]]) -> None:
    slots, parts = drawn
    sightings = sightings_of(merged_by_hand(parts), slots=slots)
    again = DaySightings.unpack(sightings.pack(), words=slots)
    assert not len(again.stays) and not len(again.nights)
    for name in ("pseudonym", "first", "last", "static"):
        one, other = getattr(again, name), getattr(sightings, name)
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)
    assert seen_in(merge_sightings(again, again)) == seen_in(sightings)


def test_merging_leaves_both_as_they_are() -> None:
    one, other = {1: (5, 9, (NONE,))}, {1: (2, 6, (4,)), 2: (0, 0, (1,))}
    earlier, later = sightings_of(one, slots=1), sightings_of(other, slots=1)
    assert seen_in(merge_sightings(earlier, later)) == {1: (2, 9, (4,)), 2: (0, 0, (1,))}
    assert (seen_in(earlier), seen_in(later)) == (one, other)


@pytest.mark.parametrize("slots", [0, 1, 3])
def test_nobody_seen(slots: int) -> None:
    nobody = DaySightings.empty(words=slots)
    assert merge_sightings(nobody, nobody).static.shape == (0, slots)
    assert DaySightings.unpack(nobody.pack(), words=slots).static.shape == (0, slots)


@given(drawn=some_parts(), gone=st.sets(st.sampled_from(PSEUDONYMS)))
def test_whoever_is_taken_out_is_not_there_and_nobody_else_is_missing(
    drawn: tuple[int, list[Seen]], gone: set[int]
) -> None:
    slots, parts = drawn
    seen = merged_by_hand(parts)
    left = sightings_of(seen, slots=slots).without(np.array(sorted(gone), np.uint64))
    assert seen_in(left) == {name: facts for name, facts in seen.items() if name not in gone}


@given(
    visits=st.dictionaries(
        st.tuples(st.sampled_from(PSEUDONYMS), st.sampled_from([1, 2, 61, 62])),
        st.sampled_from([(0, 0), (5, 9), (7, 2**32 - 1)]),
    ),
    words=st.integers(0, 2),
)
def test_visits_of_each_day_with_the_answers_of_their_subscribers(
    visits: dict[tuple[int, int], tuple[int, int]], words: int
) -> None:
    keys = sorted(visits)
    people = sorted({name for name, _ in keys})
    answers = {name: tuple(10 * row + word for word in range(words)) for row, name in enumerate(people)}
    found = sightings_by_day(
        Visits(
            pseudonym=np.array([name for name, _ in keys], np.uint64),
            day=np.array([day for _, day in keys], np.uint8),
            first=np.array([visits[key][0] for key in keys], np.uint32),
            last=np.array([visits[key][1] for key in keys], np.uint32),
        ),
        np.array(list(answers.values()), np.uint16).reshape(len(people), words),
    )
    assert {
        (name, day): facts for day, sightings in found.items() for name, facts in seen_in(sightings).items()
    } == {(name, day): (*span, answers[name]) for (name, day), span in visits.items()}
    assert all(map(len, found.values()))


def places_of(rows: list[tuple[int, int, int]]) -> Whereabouts:
    return Whereabouts(
        pseudonym=np.array([row[0] for row in rows], np.uint64),
        second=np.array([row[1] for row in rows], np.uint32),
        cell=np.array([row[2] for row in rows], np.uint32),
    )


def rows_of(seen: Whereabouts) -> list[tuple[int, int, int]]:
    return list(zip(seen.pseudonym.tolist(), seen.second.tolist(), seen.cell.tolist(), strict=True))


BY_DAY = [(1, 5, 7), (1, 2000, 2**32 - 2), (2**64 - 1, 9, 0)]
BY_NIGHT = [(3, 80_000, 4)]


@pytest.mark.parametrize("stays", [[], BY_DAY])
@pytest.mark.parametrize("nights", [[], BY_NIGHT])
@pytest.mark.parametrize("words", [0, 2])
def test_places_are_packed_with_the_day(
    stays: list[tuple[int, int, int]], nights: list[tuple[int, int, int]], words: int
) -> None:
    seen = sightings_of({1: (5, 2000, (7,) * words)}, slots=words)
    whole = replace(seen, stays=places_of(stays), nights=places_of(nights))
    again = DaySightings.unpack(whole.pack(), words=words)
    assert seen_in(again) == seen_in(seen)
    assert (rows_of(again.stays), rows_of(again.nights)) == (stays, nights)
    assert again.stays.pseudonym.dtype == np.uint64
    assert again.stays.cell.dtype == again.stays.second.dtype == np.uint32


def test_a_day_without_places_is_packed_as_before_there_were_any() -> None:
    """What was sealed before stays readable, and is not sealed in another way."""
    seen = sightings_of({1: (5, 9, (7,)), 4: (6, 6, (NONE,))}, slots=1)
    packed = pack_columns([steps(seen.pseudonym), seen.first, seen.last - seen.first, *seen.static.T])
    assert seen.pack() == packed
    assert seen_in(DaySightings.unpack(packed, words=1)) == seen_in(seen)


def test_whoever_is_taken_out_is_nowhere() -> None:
    seen = replace(
        sightings_of({1: (5, 9, ()), 3: (6, 6, ())}, slots=0),
        stays=places_of(BY_DAY),
        nights=places_of([(1, 80_000, 4), (3, 80_000, 4)]),
    )
    left = seen.without(np.array([1], np.uint64))
    assert seen_in(left) == {3: (6, 6, ())}
    assert rows_of(left.stays) == BY_DAY[2:]
    assert rows_of(left.nights) == [(3, 80_000, 4)]


def test_files_that_know_only_places_of_a_day_merge_with_others() -> None:
    """The early hours of the next date come in another file than the day, before or after it."""
    nobody = DaySightings.empty(words=1)
    by_day = replace(sightings_of({1: (5, 9, (7,))}, slots=1), stays=places_of([(1, 9, 2)]))
    by_night = replace(nobody, nights=places_of(BY_NIGHT))
    for one, other in ((by_day, by_night), (by_night, by_day)):
        both = merge_sightings(one, other)
        assert seen_in(both) == {1: (5, 9, (7,))}
        assert (rows_of(both.stays), rows_of(both.nights)) == ([(1, 9, 2)], BY_NIGHT)
    assert rows_of(merge_sightings(by_night, by_night).nights) == BY_NIGHT
