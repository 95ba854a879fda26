"""Presence of a shard: what is published always sums up to the tallies of the state, counted by hand."""

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldp import IndicatorRequest, PlanSpec, UnaryChannel, build_plan
from ldp.entropy import KeyedPrf
from ldp.params import Mechanism
from ldp.tallies import Delta
from mobility.answers import KnownAnswers
from mobility.ingest.events import NO_VALUE
from mobility.presence import (
    Change,
    DayArrivals,
    Presence,
    add_answers,
    add_days,
    final_answers,
    forget_subscribers,
    remove_day,
)
from mobility.sanitise import StudySanitiser
from tests.mobility import keyed

NONE = int(NO_VALUE)
KEY = bytes(range(16))
# Two daily indicators, one of which is answered on some days only, between static ones of different sizes.
INDICATORS = (("static", 3, None), ("daily", 4, 2), ("static", 2, None), ("daily", 5, None))
# The same for bits: two of them need two words. ADP takes GRR for 2, 4 and 10 values.
WIDE = (("static", 17, None), ("daily", 4, 2), ("static", 2, None), ("daily", 16, None))
STATIC, DAILY = (0, 2), (1, 3)
FEW = (0, 1, 2, 3, 7, 2**63, 2**64 - 1)  # ask every indicator


def sanitiser_of(mechanism: str, *, days: int = 4) -> StudySanitiser:
    plan = build_plan(
        mechanism=mechanism,  # type: ignore[arg-type]
        unit="profile",
        version=1,
        days=days,
        epsilon=Decimal(1),
        indicators=[
            IndicatorRequest(slug=f"i{i}", kind=kind, domain_size=size, max_values=max_values)  # type: ignore[arg-type]
            for i, (kind, size, max_values) in enumerate(INDICATORS if mechanism.endswith("grr") else WIDE)
        ],
    )
    return StudySanitiser(plan, prf=KeyedPrf(KEY))


SAMPLED, SPLIT = sanitiser_of("smp-grr"), sanitiser_of("spl-grr")
SANITISERS = {mechanism: sanitiser_of(mechanism) for mechanism in get_args(Mechanism)}
ASKED = {pseudonym: keyed.asked(KEY, pseudonym, SAMPLED.plan) for pseudonym in FEW}


def is_unary(plan: PlanSpec, index: int) -> bool:
    return isinstance(plan.answer_channel(index), UnaryChannel)


@cache
def words_of(plan: PlanSpec, pseudonym: int, indexes: tuple[int, ...]) -> dict[int, slice]:
    """Of the indicators of one kind that a subscriber reports on: indicator -> its words."""
    if plan.is_sampled:
        indexes = tuple(index for index in indexes if index == keyed.asked(KEY, pseudonym, plan))
    found, start = {}, 0
    for index in indexes:
        n_words = -(-plan.indicators[index].domain_size // 15) if is_unary(plan, index) else 1
        found[index] = slice(start, start + n_words)
        start += n_words
    return found


def read(words: np.ndarray, plan: PlanSpec, index: int) -> int:
    """A report from its words: a code, or the bits of all values as one number."""
    if words[0] == NONE:
        assert set(words.tolist()) == {NONE}
        return NONE
    return sum(word << 15 * place for place, word in enumerate(words.tolist()))


def write(words: np.ndarray, report: int) -> None:
    for place in range(len(words)):
        words[place] = NONE if report == NONE else report >> 15 * place & (2**15 - 1)


def supported(plan: PlanSpec, index: int, report: int) -> list[int]:
    if not is_unary(plan, index):
        return [report]
    return [value for value in range(plan.indicators[index].domain_size) if report >> value & 1]


# --- the state by hand ----------------------------------------------------------------------------


@dataclass
class Person:
    """What is known of a subscriber; answers by indicator."""

    days: set[int] = field(default_factory=set)
    static: dict[int, int] = field(default_factory=dict)
    daily: dict[tuple[int, int], int] = field(default_factory=dict)
    covered_by: int = 0

    def facts(self) -> tuple[object, ...]:
        return frozenset(self.days), tuple(sorted(self.static.items())), tuple(sorted(self.daily.items()))


@dataclass
class ByHand:
    """The rules with plain dictionaries; nothing is computed as a difference."""

    plan: PlanSpec
    people: dict[int, Person] = field(default_factory=dict)

    def add(self, arrivals: list[DayArrivals]) -> int:
        """Returns how many late changes there were."""
        late = 0
        for arrival in arrivals:
            for row, pseudonym in enumerate(arrival.pseudonym.tolist()):
                person = self.people.setdefault(pseudonym, Person())
                person.days.add(arrival.day)
                for index, words in words_of(self.plan, pseudonym, STATIC).items():
                    answer = read(arrival.static[row, words], self.plan, index)
                    if answer != NONE:
                        person.static.setdefault(index, answer)
                for index, words in words_of(self.plan, pseudonym, DAILY).items():
                    answer = read(arrival.daily[row, words], self.plan, index)
                    if answer != NONE:
                        late += person.daily.setdefault((index, arrival.day), answer) != answer
        return late

    def remove(self, day: int) -> None:
        for person in self.people.values():
            person.days.discard(day)
            person.daily = {key: answer for key, answer in person.daily.items() if key[1] != day}

    def learn(self, known: KnownAnswers) -> None:
        """Answers from elsewhere; only of those who are present."""
        for row, pseudonym in enumerate(known.pseudonym.tolist()):
            person = self.people.get(pseudonym, Person())
            for index, words in words_of(self.plan, pseudonym, STATIC).items():
                answer = read(known.static[row, words], self.plan, index)
                if person.days and answer != NONE:
                    person.static.setdefault(index, answer)

    def forget(self, pseudonyms: list[int], *, number: int) -> int:
        """Returns by how many subscribers publication `number` covers more, or fewer."""
        gone = [self.people.pop(pseudonym) for pseudonym in pseudonyms if pseudonym in self.people]
        return sum(1 if person.covered_by != number else -1 for person in gone if person.days)

    def facts(self) -> dict[int, tuple[object, ...]]:
        return {pseudonym: person.facts() for pseudonym, person in self.people.items()}

    def cover(self, before: dict[int, tuple[object, ...]], *, number: int) -> int:
        """By how many subscribers publication `number` covers more, or fewer where some lose days of it."""
        more = 0
        for pseudonym, facts in self.facts().items():
            person, was = self.people[pseudonym], before.get(pseudonym, Person().facts())
            if facts != was and person.covered_by != number:
                more += 1
                person.covered_by = number
            elif facts != was and was[0] - person.days:
                more -= 1
                person.covered_by = 0
        return more

    def tallies(self) -> Delta:
        """Everything counted from the beginning."""
        total = Delta.zero(self.plan)
        for person in self.people.values():
            previous = 0
            for day in sorted(person.days):
                total.visitors[previous, day] += 1
                today = {index: answer for (index, when), answer in person.daily.items() if when == day}
                for index, answer in (*person.static.items(), *today.items()):
                    for value in supported(self.plan, index, answer):
                        total.counts[index][value, previous, day] += 1
                    total.n_reports[index][previous, day] += 1
                previous = day
        return total

    def totals(self) -> tuple[int, int, int]:
        """Subscriber-days, subscribers with one, answers."""
        people = self.people.values()
        return (
            sum(len(person.days) for person in people),
            sum(bool(person.days) for person in people),
            sum(len(person.static) + len(person.daily) for person in people),
        )


def assert_equal(found: Delta, expected: Delta) -> None:
    assert np.array_equal(found.visitors, expected.visitors)
    for one, other in zip(found.counts, expected.counts, strict=True):
        assert np.array_equal(one, other)
    for one, other in zip(found.n_reports, expected.n_reports, strict=True):
        assert np.array_equal(one, other)


def assert_same_state(one: Presence, other: Presence) -> None:
    for name in Presence.__slots__:
        mine, theirs = getattr(one, name), getattr(other, name)
        assert mine.dtype == theirs.dtype
        assert mine.shape == theirs.shape
        assert np.array_equal(mine, theirs)


def assert_is(presence: Presence, by_hand: ByHand) -> None:
    """The arrays hold what the dictionaries hold."""
    assert presence.pseudonym.tolist() == sorted(by_hand.people)
    for row, (pseudonym, person) in enumerate(sorted(by_hand.people.items())):
        assert int(presence.days[row]) == sum(1 << day - 1 for day in person.days)
        static = {
            index: read(presence.static[row, words], by_hand.plan, index)
            for index, words in words_of(by_hand.plan, pseudonym, STATIC).items()
        }
        assert {index: answer for index, answer in static.items() if answer != NONE} == person.static
        daily = {
            (index, day): read(presence.daily[row, words, day - 1], by_hand.plan, index)
            for index, words in words_of(by_hand.plan, pseudonym, DAILY).items()
            for day in range(1, by_hand.plan.days + 1)
        }
        assert {key: answer for key, answer in daily.items() if answer != NONE} == person.daily


# --- changes ----------------------------------------------------------------------------------------


def arrivals_of(
    sanitiser: StudySanitiser, day: int, people: dict[int, tuple[dict[int, int], dict[int, int]]]
) -> DayArrivals:
    """Visitors of a day: pseudonym -> answers to static and to daily indicators, if asked."""
    names = sorted(people)
    static = np.full((len(names), sanitiser.words("static")), NONE, np.uint16)
    daily = np.full((len(names), sanitiser.words("daily")), NONE, np.uint16)
    for row, pseudonym in enumerate(names):
        for answers, indexes, given_answers in zip(
            (static, daily), (STATIC, DAILY), people[pseudonym], strict=True
        ):
            for index, words in words_of(sanitiser.plan, pseudonym, indexes).items():
                write(answers[row, words], given_answers.get(index, NONE))
    return DayArrivals(day=day, pseudonym=np.array(names, np.uint64), static=static, daily=daily)


def answers_to(plan: PlanSpec, indexes: tuple[int, ...]) -> st.SearchStrategy[dict[int, int]]:
    def reports(index: int) -> st.SearchStrategy[int]:
        size = plan.indicators[index].domain_size
        # All 16 bits together are the number by which these tests mean no report.
        some = st.integers(0, (2**size if is_unary(plan, index) else size) - 1).filter(lambda r: r != NONE)
        return some | st.just(NONE)

    return st.fixed_dictionaries({index: reports(index) for index in indexes})


def known_of(sanitiser: StudySanitiser, people: dict[int, tuple[dict[int, int], object]]) -> KnownAnswers:
    """The static answers of these people, from a subscriber extract."""
    names = {pseudonym: (static, {}) for pseudonym, (static, _) in people.items()}
    rows = arrivals_of(sanitiser, 1, names)
    return KnownAnswers(pseudonym=rows.pseudonym, static=rows.static)


Step = tuple[str, object]


@st.composite
def steps(
    draw: st.DrawFn, sanitiser: StudySanitiser, pseudonyms: tuple[int, ...], days: list[int]
) -> list[Step]:
    people = st.dictionaries(
        st.sampled_from(pseudonyms),
        st.tuples(answers_to(sanitiser.plan, STATIC), answers_to(sanitiser.plan, DAILY)),
        max_size=5,
    )
    files = st.dictionaries(st.sampled_from(days), people, max_size=3).map(
        lambda by_day: [arrivals_of(sanitiser, day, by_day[day]) for day in sorted(by_day)]
    )
    answers = people.map(lambda drawn: known_of(sanitiser, drawn))
    some = st.sets(st.sampled_from(pseudonyms), max_size=3).map(sorted)
    step = st.one_of(
        st.tuples(st.just("add"), files),
        st.tuples(st.just("add"), files),
        st.tuples(st.just("learn"), answers),
        st.tuples(st.just("forget"), some),
        st.tuples(st.just("remove"), st.sampled_from(days)),
        st.tuples(st.just("publish"), st.none()),
        st.tuples(st.just("store"), st.none()),
    )
    return draw(st.lists(step, max_size=12))


def run(sanitiser: StudySanitiser, history: list[Step]) -> None:
    """Do every step both ways, and compare all that can be seen."""
    presence, by_hand = Presence.empty(sanitiser), ByHand(sanitiser.plan)
    published, number = Delta.zero(sanitiser.plan), 1
    for what, detail in history:
        if what == "publish":
            number += 1
            continue
        if what == "store":
            stored = Presence.unpack(presence.pack(), sanitiser)
            assert_same_state(stored, presence)
            presence = stored
            continue
        totals, before = by_hand.totals(), presence.pack()
        change, covered, late = do_both(presence, by_hand, what, detail, number=number, sanitiser=sanitiser)
        assert presence.pack() == before  # the state before is left as it was
        assert (change.subscribers, change.late_changes) == (covered, late)
        growth = tuple(after - was for after, was in zip(by_hand.totals(), totals, strict=True))
        assert (change.subscriber_days, change.subscribers_new, change.reports) == growth
        presence, published = change.presence, published + change.delta
        assert_is(presence, by_hand)
        assert_equal(published, by_hand.tallies())


def do_both(
    presence: Presence,
    by_hand: ByHand,
    what: str,
    detail: object,
    *,
    number: int,
    sanitiser: StudySanitiser,
) -> tuple[Change, int, int]:
    """The change, and by hand whom it newly covers and how many late changes there are."""
    facts, late = by_hand.facts(), 0
    if what == "add":
        assert isinstance(detail, list)
        late = by_hand.add(detail)
        change = add_days(presence, detail, number=number, sanitiser=sanitiser)
    elif what == "learn":
        assert isinstance(detail, KnownAnswers)
        by_hand.learn(detail)
        change = add_answers(presence, detail, number=number, sanitiser=sanitiser)
    elif what == "forget":
        assert isinstance(detail, list)
        gone = np.array(detail, np.uint64)
        change = forget_subscribers(presence, gone, number=number, sanitiser=sanitiser)
        return change, by_hand.forget(detail, number=number), 0
    else:
        assert isinstance(detail, int)
        by_hand.remove(detail)
        change = remove_day(presence, day=detail, number=number, sanitiser=sanitiser)
    return change, by_hand.cover(facts, number=number), late


@settings(max_examples=50)
@given(history=st.data())
@pytest.mark.parametrize("mechanism", SANITISERS)
def test_any_history_is_published_as_the_tallies_of_its_state(history: st.DataObject, mechanism: str) -> None:
    sanitiser = SANITISERS[mechanism]
    run(sanitiser, history.draw(steps(sanitiser, FEW, [1, 2, 3, 4])))


@settings(max_examples=20)
@given(history=st.data())
@pytest.mark.parametrize("mechanism", ["smp-grr", "spl-grr", "rsfd-adp"])
def test_any_history_of_the_longest_study(history: st.DataObject, mechanism: str) -> None:
    sanitiser = sanitiser_of(mechanism, days=62)
    run(sanitiser, history.draw(steps(sanitiser, FEW, [1, 2, 31, 32, 33, 61, 62])))


def test_pseudonyms_of_these_tests_ask_everything() -> None:
    assert set(ASKED.values()) == {0, 1, 2, 3}


# --- rules by name ------------------------------------------------------------------------------------


def subscriber(index: int) -> int:
    """One who is asked `index` under the sampled plan."""
    return next(pseudonym for pseudonym, asked in ASKED.items() if asked == index)


def visit(
    day: int, *, static: int = NONE, daily: int = NONE, index: int = 0, sanitiser: StudySanitiser = SAMPLED
) -> DayArrivals:
    """One visitor, who is asked `index`."""
    answers = ({index: static}, {index: daily})
    return arrivals_of(sanitiser, day, {subscriber(index): answers})


def after(*arrivals: DayArrivals, sanitiser: StudySanitiser = SAMPLED) -> Change:
    """The last of changes, each by a file of its own."""
    presence = Presence.empty(sanitiser)
    for arrival in arrivals:
        change = add_days(presence, [arrival], number=1, sanitiser=sanitiser)
        presence = change.presence
    return change


def test_static_answer_is_final() -> None:
    change = after(visit(1, static=2), visit(3, static=1))
    assert change.presence.static.tolist() == [[2]]
    assert change.delta.counts[0][:, 1, 3].tolist() == [0, 0, 1]
    assert (change.reports, change.late_changes) == (0, 0)


def test_static_answer_of_the_earlier_day_wins_inside_a_file() -> None:
    change = add_days(
        Presence.empty(SAMPLED), [visit(1, static=2), visit(2, static=1)], number=1, sanitiser=SAMPLED
    )
    assert change.presence.static.tolist() == [[2]]
    assert change.reports == 1


def test_answer_that_comes_later_counts_for_the_days_before() -> None:
    change = after(visit(1), visit(2), visit(4, static=1))
    assert change.delta.counts[0][1].tolist() == [
        [0, 1, 0, 0, 0],
        [0, 0, 1, 0, 0],
        [0, 0, 0, 0, 1],
        [0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0],
    ]
    assert change.delta.visitors.tolist() == [[0] * 5, [0] * 5, [0, 0, 0, 0, 1], [0] * 5, [0] * 5]
    assert (change.subscriber_days, change.subscribers_new, change.reports) == (1, 0, 1)


def test_answer_that_brings_no_new_day_is_published_too() -> None:
    change = after(visit(2), visit(2, static=1))
    assert change.delta.counts[0][1, 0, 2] == change.delta.n_reports[0][0, 2] == 1
    assert (change.subscriber_days, change.reports) == (0, 1)
    change = after(visit(2, index=3), visit(2, daily=4, index=3))
    assert change.delta.counts[3][4, 0, 2] == change.delta.n_reports[3][0, 2] == 1
    assert not change.delta.visitors.any()


def test_day_between_two_others_moves_the_later_one() -> None:
    """The rule of the design for a late day: [p][t] + 1, [p][s] - 1, [t][s] + 1."""
    change = after(visit(1, static=0), visit(4), visit(2))
    for counts in (change.delta.counts[0][0], change.delta.visitors):
        assert {(p, t): int(counts[p, t]) for p, t in zip(*np.nonzero(counts), strict=True)} == {
            (1, 2): 1,
            (1, 4): -1,
            (2, 4): 1,
        }


def test_daily_answer_is_final_and_a_late_change_is_counted() -> None:
    change = after(visit(2, daily=3, index=3), visit(2, daily=4, index=3))
    assert change.presence.daily[0, 0].tolist() == [NONE, 3, NONE, NONE]
    assert change.delta.is_zero
    assert (change.late_changes, change.subscribers, change.reports) == (1, 0, 0)


def test_daily_answer_that_is_lost_later_stays() -> None:
    change = after(visit(2, daily=3, index=3), visit(2, index=3))
    assert change.presence.daily[0, 0].tolist() == [NONE, 3, NONE, NONE]
    assert change.late_changes == 0


def test_daily_answer_counts_on_its_day_only() -> None:
    change = after(visit(1, daily=0, index=3), visit(2, index=3), visit(3, daily=4, index=3))
    assert {(c, p, t) for c, p, t in zip(*np.nonzero(change.delta.counts[3]), strict=True)} == {(4, 2, 3)}


def test_the_same_again_publishes_nothing() -> None:
    arrivals = [visit(1, static=1), visit(2, static=1)]
    first = add_days(Presence.empty(SAMPLED), arrivals, number=1, sanitiser=SAMPLED)
    again = add_days(first.presence, arrivals, number=2, sanitiser=SAMPLED)
    assert again.delta.is_zero
    assert (again.subscribers, again.subscriber_days, again.subscribers_new, again.reports) == (0, 0, 0, 0)
    assert_same_state(again.presence, first.presence)


def test_subscriber_is_covered_once_by_a_publication() -> None:
    change = after(visit(1, static=1), visit(2))
    assert change.subscribers == 0
    assert add_days(change.presence, [visit(3)], number=2, sanitiser=SAMPLED).subscribers == 1


def test_day_undone_takes_presence_and_daily_answers_back_and_keeps_the_static_answer() -> None:
    static_only = after(visit(2, static=1))
    undone = remove_day(static_only.presence, day=2, number=2, sanitiser=SAMPLED)
    assert_equal(static_only.delta + undone.delta, Delta.zero(SAMPLED.plan))
    assert (undone.subscriber_days, undone.subscribers_new, undone.reports) == (-1, -1, 0)
    back = add_days(undone.presence, [visit(2, static=2)], number=3, sanitiser=SAMPLED)
    assert back.presence.static.tolist() == [[1]]
    with_daily = after(visit(2, daily=1, index=3))
    undone = remove_day(with_daily.presence, day=2, number=2, sanitiser=SAMPLED)
    assert undone.reports == -1
    back = add_days(undone.presence, [visit(2, daily=4, index=3)], number=3, sanitiser=SAMPLED)
    assert back.presence.daily[0, 0].tolist() == [NONE, 4, NONE, NONE]
    assert back.late_changes == 0


def known_answer(answer: int) -> KnownAnswers:
    """Of the subscriber who is asked the first indicator."""
    return known_of(SAMPLED, {subscriber(0): ({0: answer}, {})})


def test_answer_that_is_learnt_counts_for_all_days() -> None:
    present = after(visit(1), visit(3)).presence
    change = add_answers(present, known_answer(2), number=2, sanitiser=SAMPLED)
    assert change.presence.static.tolist() == [[2]]
    assert {(c, p, t) for c, p, t in zip(*np.nonzero(change.delta.counts[0]), strict=True)} == {
        (2, 0, 1),
        (2, 1, 3),
    }
    assert not change.delta.visitors.any()
    assert (change.subscribers, change.subscriber_days, change.subscribers_new, change.reports) == (
        1,
        0,
        0,
        1,
    )


def test_answer_that_is_learnt_later_or_by_nobody_present_changes_nothing() -> None:
    gone = remove_day(after(visit(1)).presence, day=1, number=1, sanitiser=SAMPLED).presence
    for present in (after(visit(1, static=1)).presence, gone, after(visit(2, index=3)).presence):
        change = add_answers(present, known_answer(2), number=2, sanitiser=SAMPLED)
        assert change.delta.is_zero
        assert change.places == change.subscribers == 0
        assert_same_state(change.presence, present)


def test_whoever_is_forgotten_leaves_no_trace() -> None:
    """Neither in the state nor in what is published; those who stay keep everything."""
    both = [visit(1, static=2), visit(2, static=2), visit(2, daily=3, index=3)]
    full = after(*both)
    published = sum((after(*both[:i]).delta for i in (1, 2, 3)), Delta.zero(SAMPLED.plan))
    gone = np.array([subscriber(0)], np.uint64)
    change = forget_subscribers(full.presence, gone, number=2, sanitiser=SAMPLED)
    alone = after(both[2])
    assert_same_state(change.presence, alone.presence)
    assert_equal(published + change.delta, alone.delta)
    assert (change.places, change.subscribers) == (1, 1)
    assert (change.subscriber_days, change.subscribers_new, change.reports) == (-2, -1, -1)
    again = forget_subscribers(change.presence, gone, number=3, sanitiser=SAMPLED)
    assert again.delta.is_zero
    assert again.places == again.subscribers == 0


def test_final_answer_is_that_of_the_presence_before_that_of_an_extract() -> None:
    present = after(visit(1, static=1)).presence
    names = np.sort(np.array([subscriber(0), subscriber(2)], np.uint64))
    known = known_of(SAMPLED, {subscriber(0): ({0: 2}, {}), subscriber(2): ({2: 0}, {})})
    found = dict(zip(names.tolist(), final_answers(present, known, names).tolist(), strict=True))
    assert found == {subscriber(0): [1], subscriber(2): [0]}
    nobody = final_answers(Presence.empty(SAMPLED), KnownAnswers.empty(words=1), names)
    assert nobody.tolist() == [[NONE], [NONE]]


def test_state_before_a_change_is_left_as_it_was() -> None:
    before = after(visit(1), visit(2)).presence
    packed, gone = before.pack(), np.array([subscriber(0)], np.uint64)
    for change in (
        add_days(before, [visit(3)], number=2, sanitiser=SAMPLED),
        add_answers(before, known_answer(1), number=2, sanitiser=SAMPLED),
        remove_day(before, day=1, number=2, sanitiser=SAMPLED),
        forget_subscribers(before, gone, number=2, sanitiser=SAMPLED),
    ):
        assert change.places == 1
        assert before.pack() == packed


def test_day_undone_before_anybody_came() -> None:
    change = remove_day(Presence.empty(SPLIT), day=1, number=1, sanitiser=SPLIT)
    assert change.delta.is_zero
    assert change.subscribers == 0


def test_file_without_visitors() -> None:
    full = after(visit(1, static=1))
    for arrivals in ([], [arrivals_of(SAMPLED, 2, {})]):
        change = add_days(full.presence, arrivals, number=1, sanitiser=SAMPLED)
        assert change.delta.is_zero
        assert_same_state(change.presence, full.presence)


def test_counts_are_plain_numbers() -> None:
    """They are stored as JSON."""
    change = after(visit(1, static=1))
    for name in ("subscribers", "subscriber_days", "subscribers_new", "reports", "late_changes"):
        assert type(getattr(change, name)) is int


# --- places and packing ---------------------------------------------------------------------------------


@settings(max_examples=60)
@given(
    known=st.sets(st.sampled_from(FEW)),
    more=st.lists(st.sets(st.sampled_from(FEW)), max_size=3),
    sanitiser=st.sampled_from([SAMPLED, SPLIT]),
)
def test_new_places_are_blank_and_old_ones_unchanged(
    known: set[int], more: list[set[int]], sanitiser: StudySanitiser
) -> None:
    answers = ({0: 1, 2: 1}, {1: 2, 3: 4})
    arrival = arrivals_of(sanitiser, 2, dict.fromkeys(known, answers))
    before = add_days(Presence.empty(sanitiser), [arrival], number=7, sanitiser=sanitiser).presence
    wider, rows_of = before.with_places_for([np.array(sorted(names), np.uint64) for names in more])
    assert wider.pseudonym.tolist() == sorted(known.union(*more))
    for rows, names in zip(rows_of, more, strict=True):
        assert wider.pseudonym[rows].tolist() == sorted(names)
    old = np.isin(wider.pseudonym, before.pseudonym)
    assert_same_state(wider.take(np.flatnonzero(old)), before)
    blank = wider.take(np.flatnonzero(~old))
    assert not blank.days.any()
    assert not blank.changed_in.any()
    assert (blank.static == NONE).all()
    assert (blank.daily == NONE).all()


KINDS: dict[str, Callable[[], StudySanitiser]] = {
    "smp": lambda: SAMPLED,
    "spl": lambda: SPLIT,
    "long": lambda: sanitiser_of("spl-grr", days=62),
    "unary": lambda: sanitiser_of("rsfd-ouez", days=9),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [0, 1, 1000])
def test_packing_changes_nothing(kind: str, n: int) -> None:
    sanitiser = KINDS[kind]()
    rng = np.random.default_rng(n)
    days = sanitiser.plan.days
    bitmaps = rng.integers(0, 2**days, n, np.uint64)
    is_present = (bitmaps[:, None] >> np.arange(days, dtype=np.uint64)) & np.uint64(1) == 1
    daily = rng.integers(0, 2**16, (n, sanitiser.words("daily"), days)).astype(np.uint16)
    presence = Presence(
        pseudonym=np.sort(rng.integers(0, 2**64, n, np.uint64)),
        days=bitmaps,
        changed_in=rng.integers(0, 2**32, n, np.uint32),
        static=rng.integers(0, 2**16, (n, sanitiser.words("static"))).astype(np.uint16),
        daily=np.where(is_present[:, None], daily, NONE).astype(np.uint16),
    )
    stored = Presence.unpack(presence.pack(), sanitiser)
    assert_same_state(stored, presence)
    assert_same_state(Presence.unpack(stored.pack(), sanitiser), presence)


def test_plan_without_daily_or_static_indicators_packs() -> None:
    for kind in ("static", "daily"):
        plan = build_plan(
            mechanism="spl-grr",
            unit="profile",
            version=1,
            days=3,
            epsilon=Decimal(1),
            indicators=[IndicatorRequest(slug="only", kind=kind, domain_size=2)],  # type: ignore[arg-type]
        )
        sanitiser = StudySanitiser(plan, prf=KeyedPrf(KEY))
        arrival = DayArrivals(
            day=3,
            pseudonym=np.array([9], np.uint64),
            static=np.ones((1, sanitiser.slots("static")), np.uint16),
            daily=np.ones((1, sanitiser.slots("daily")), np.uint16),
        )
        change = add_days(Presence.empty(sanitiser), [arrival], number=1, sanitiser=sanitiser)
        assert change.delta.counts[0][:, 0, 3].tolist() == [0, 1]
        assert_same_state(Presence.unpack(change.presence.pack(), sanitiser), change.presence)


def test_undone_subscriber_keeps_its_place_when_packed() -> None:
    gone = remove_day(after(visit(1, static=2)).presence, day=1, number=1, sanitiser=SAMPLED).presence
    stored = Presence.unpack(gone.pack(), SAMPLED)
    assert stored.pseudonym.tolist() == [subscriber(0)]
    assert stored.static.tolist() == [[2]]


# --- with the real answers --------------------------------------------------------------------------------


@pytest.mark.parametrize("sanitiser", [SAMPLED, SPLIT], ids=["smp", "spl"])
def test_everyone_is_a_visitor_and_answers_what_the_plan_lets_them(sanitiser: StudySanitiser) -> None:
    n, plan = 400, sanitiser.plan
    pseudonyms = np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    pseudonyms.sort()
    static_codes = np.ones((n, sanitiser.slots("static")), np.uint16)
    daily_codes = np.ones((n, len(DAILY)), np.uint16)
    arrivals = [
        DayArrivals(
            day=day,
            pseudonym=pseudonyms,
            static=sanitiser.static_answers(pseudonyms, static_codes),
            daily=sanitiser.daily_answers(pseudonyms, daily_codes, day=day),
        )
        for day in range(1, plan.days + 1)
    ]
    change = add_days(Presence.empty(sanitiser), arrivals, number=1, sanitiser=sanitiser)
    asked = [keyed.asked(KEY, pseudonym, plan) for pseudonym in pseudonyms.tolist()]
    assert change.delta.visitors.sum() == n * plan.days
    for index in range(plan.d):
        who = [
            p
            for p, mine in zip(pseudonyms.tolist(), asked, strict=True)
            if mine == index or not plan.is_sampled
        ]
        for day in range(1, plan.days + 1):
            answering = len(who)
            if index in DAILY:
                answering = sum(day in keyed.answer_days(KEY, pseudonym, plan, index) for pseudonym in who)
            assert change.delta.n_reports[index][:, day].sum() == answering
            assert change.delta.counts[index][:, :, day].sum() == answering
