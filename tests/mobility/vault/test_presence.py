"""Presence of a shard: what is published always sums up to the tallies of the state, counted by hand.

Values may come inline or in their own files, before or after: the first answer of a subscriber is final.
"""

from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldp import Delta, KeyedPrf, PlanSpec, UnaryChannel
from ldp.geo.grid import Grid
from ldp.geo.location import LocationSpec
from ldp.privacy.plans import PRESENCE_TALLIES, Mechanism
from mobility.batches.publication.min_publication import fewest_subscribers
from mobility.extracts.rows.events import NO_VALUE
from mobility.vault.sanitise import StudySanitiser
from mobility.vault.state import changes as rules
from mobility.vault.state.answers import KnownAnswers
from mobility.vault.state.changes import DayArrivals
from mobility.vault.state.columns import pack_columns
from mobility.vault.state.columns import steps as steps_of
from mobility.vault.state.presence import Presence, final_answers
from tests.mobility.vault import keyed

NONE = int(NO_VALUE)
KEY = bytes(range(16))
# Two daily indicators, one of which is answered on some days only, between static ones of different sizes.
INDICATORS = (("static", 3, None), ("daily", 4, 2), ("static", 2, None), ("daily", 5, None))
# The same for bits: two of them need two words. ADP takes GRR for 2, 4 and 10 values.
WIDE = (("static", 17, None), ("daily", 4, 2), ("static", 2, None), ("daily", 16, None))
PLACE = 4  # where they were, which everyone reports
STATIC, DAILY = (0, 2), (1, 3, PLACE)
GRID = Grid(x0_m=0, y0_m=0, step_m=100, n_x=3, n_y=2)
LOCATION = LocationSpec(level=Fraction(14, 10), radius_m=Fraction(200), grid=GRID)
FEW = (0, 1, 2, 3, 7, 2**63, 2**64 - 1)  # ask every indicator
Step = tuple[str, object]


def sanitiser_of(mechanism: str, *, days: int = 4, location=None, tallies=()) -> StudySanitiser:
    indicators = INDICATORS if mechanism.endswith("grr") else WIDE
    plan = keyed.plan_of(mechanism, indicators, days=days, location=location, tallies=tallies)
    return StudySanitiser(plan, prf=KeyedPrf(KEY))


SAMPLED, SPLIT = sanitiser_of("smp-grr"), sanitiser_of("spl-grr")
# The state sees of a plan whether a person answers one question, and which reports have bits: one of each.
SANITISERS: dict[object, StudySanitiser] = {}
for _mechanism in get_args(Mechanism):
    if _mechanism not in ("smp-stream", "smp-allomfree"):  # which take no places
        _made = sanitiser_of(_mechanism, location=LOCATION, tallies=PRESENCE_TALLIES)
        SANITISERS.setdefault((_made.plan.is_sampled, *map(_made.plan.is_unary, range(PLACE))), _made)
ASKED = {pseudonym: keyed.asked(KEY, pseudonym, SAMPLED.plan) for pseudonym in FEW}


def is_unary(plan: PlanSpec, index: int) -> bool:
    return index != PLACE and isinstance(plan.answer_channel(index), UnaryChannel)


def size_of(plan: PlanSpec, index: int) -> int:
    return GRID.n_cells if index == PLACE else plan.indicators[index].domain_size


@cache
def words_of(plan: PlanSpec, pseudonym: int, indexes: tuple[int, ...]) -> dict[int, slice]:
    """Words of the indicators of one kind that a subscriber reports on: indicator -> its words."""
    asked = {keyed.asked(KEY, pseudonym, plan)} if plan.is_sampled else set(indexes)
    found, start = {}, 0
    for index in indexes:
        if index != PLACE and index in asked:
            n_words = -(-size_of(plan, index) // 15) if is_unary(plan, index) else 1
            found[index] = slice(start, start + n_words)
            start += n_words
    if PLACE in indexes and plan.location is not None:
        n_words = StudySanitiser(plan, prf=KeyedPrf(KEY)).words("daily")
        found[PLACE] = slice(n_words - 1, n_words)
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
    return [value for value in range(size_of(plan, index)) if report >> value & 1]


# --- the state by hand -------------------------------------------------------------------------------------
@dataclass
class Person:
    days: set[int] = field(default_factory=set)
    static: dict[int, int] = field(default_factory=dict)
    daily: dict[tuple[int, int], int] = field(default_factory=dict)

    def facts(self) -> tuple[object, ...]:
        return frozenset(self.days), tuple(sorted(self.static.items())), tuple(sorted(self.daily.items()))


@dataclass
class ByHand:
    """The rules with plain dictionaries; nothing is computed as a difference."""

    plan: PlanSpec
    people: dict[int, Person] = field(default_factory=dict)
    known: dict[tuple[int, int], int] = field(default_factory=dict)  # from subscriber extracts
    published: dict[int, tuple[object, ...]] = field(default_factory=dict)
    opted_out: set[int] = field(default_factory=set)

    def add(self, arrivals: list[DayArrivals]) -> int:
        late = 0
        for arrival in arrivals:
            for row, pseudonym in enumerate(arrival.pseudonym.tolist()):
                person = self.people.setdefault(pseudonym, Person())
                person.days.add(arrival.day)
                for index, words in words_of(self.plan, pseudonym, STATIC).items():
                    answer = read(arrival.static[row, words], self.plan, index)
                    answer = self.known.get((pseudonym, index), answer)
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
        for row, pseudonym in enumerate(known.pseudonym.tolist()):
            person = self.people.get(pseudonym, Person())
            for index, words in words_of(self.plan, pseudonym, STATIC).items():
                answer = read(known.static[row, words], self.plan, index)
                if answer != NONE:
                    first = self.known.setdefault((pseudonym, index), answer)
                    if person.days:
                        person.static.setdefault(index, first)

    def forget(self, pseudonyms: list[int]) -> None:
        self.known = {key: answer for key, answer in self.known.items() if key[0] not in pseudonyms}
        self.opted_out |= set(pseudonyms)
        self.people = {name: person for name, person in self.people.items() if name not in pseudonyms}

    def counted(self) -> dict[int, tuple[object, ...]]:
        """Return the contribution of each subscriber to the totals; those never present do not count."""
        return {pseudonym: person.facts() for pseudonym, person in self.people.items() if person.days}

    def publish(self) -> None:
        self.published = self.counted()

    def waiting(self) -> tuple[int, int]:
        """Subscribers who count otherwise than what is published, and those of them who have opted out."""
        now, before = self.counted(), self.published
        differing = {pseudonym for pseudonym in now | before if now.get(pseudonym) != before.get(pseudonym)}
        return len(differing), len(self.opted_out & before.keys())

    def tallies(self) -> Delta:
        total = Delta.zero(self.plan)
        for person in self.people.values():
            previous = run = 0
            for k, day in enumerate(sorted(person.days), start=1):
                run = run + 1 if day - 1 in person.days else 1
                total.visitors[previous, day] += 1
                for counts, row in zip(total.stays, (k, run), strict=bool(self.plan.tallies)):
                    counts[row, day] += 1
                today = {index: answer for (index, when), answer in person.daily.items() if when == day}
                for index, answer in (*person.static.items(), *today.items()):
                    for value in supported(self.plan, index, answer):
                        total.counts[index][value, previous, day] += 1
                    total.n_reports[index][previous, day] += 1
                previous = day
        return total

    def totals(self) -> tuple[int, int, int]:
        people = self.people.values()
        return (
            sum(len(person.days) for person in people),
            sum(bool(person.days) for person in people),
            sum(len(person.static) + len(person.daily) for person in people),
        )


def assert_equal(found: Delta, expected: Delta) -> None:
    arrays = [(each.visitors, *each.stays, *each.counts, *each.n_reports) for each in (found, expected)]
    for one, other in zip(*arrays, strict=True):
        assert np.array_equal(one, other)


def assert_same_state(one: Presence, other: Presence) -> None:
    for name in Presence.__slots__:
        mine, theirs = getattr(one, name), getattr(other, name)
        assert mine.dtype == theirs.dtype
        assert np.array_equal(mine, theirs)


def assert_is(presence: Presence, by_hand: ByHand) -> None:
    assert presence.pseudonym.tolist() == sorted(by_hand.people)
    for row, (pseudonym, person) in enumerate(sorted(by_hand.people.items())):
        assert int(presence.days[row]) == sum(1 << day - 1 for day in person.days)
        words = {kind: words_of(by_hand.plan, pseudonym, kind).items() for kind in (STATIC, DAILY)}
        static = {
            index: read(presence.static[row, each], by_hand.plan, index) for index, each in words[STATIC]
        }
        daily = {
            (index, day): read(presence.daily[row, each, day - 1], by_hand.plan, index)
            for index, each in words[DAILY]
            for day in range(1, by_hand.plan.days + 1)
        }
        for found, told in ((static, person.static), (daily, person.daily)):
            assert {key: answer for key, answer in found.items() if answer != NONE} == told


def arrivals_of(sanitiser: StudySanitiser, day: int, people) -> DayArrivals:
    names = sorted(people)
    static = np.full((len(names), sanitiser.words("static")), NONE, np.uint16)
    daily = np.full((len(names), sanitiser.words("daily")), NONE, np.uint16)
    for row, pseudonym in enumerate(names):
        kinds = zip((static, daily), (STATIC, DAILY), people[pseudonym], strict=True)
        for answers, indexes, given_answers in kinds:
            for index, words in words_of(sanitiser.plan, pseudonym, indexes).items():
                write(answers[row, words], given_answers.get(index, NONE))
    return DayArrivals(day=day, pseudonym=np.array(names, np.uint64), static=static, daily=daily)


def answers_to(plan: PlanSpec, indexes: tuple[int, ...]) -> st.SearchStrategy[dict[int, int]]:
    def reports(index: int) -> st.SearchStrategy[int]:
        size = size_of(plan, index)
        # All 16 bits together are the number by which these tests mean no report.
        some = st.integers(0, (2**size if is_unary(plan, index) else size) - 1).filter(lambda r: r != NONE)
        return some | st.just(NONE)

    return st.fixed_dictionaries({index: reports(index) for index in indexes})


def known_of(sanitiser: StudySanitiser, people) -> KnownAnswers:
    rows = arrivals_of(sanitiser, 1, {name: (static, {}) for name, (static, _) in people.items()})
    return KnownAnswers(pseudonym=rows.pseudonym, static=rows.static)


@st.composite
def steps(draw: st.DrawFn, sanitiser: StudySanitiser, pseudonyms, days: list[int]) -> list[Step]:
    both = st.tuples(answers_to(sanitiser.plan, STATIC), answers_to(sanitiser.plan, DAILY))
    people = st.dictionaries(st.sampled_from(pseudonyms), both, max_size=5)
    files = st.dictionaries(st.sampled_from(days), people, max_size=3).map(
        lambda by_day: [arrivals_of(sanitiser, day, by_day[day]) for day in sorted(by_day)]
    )
    answers = people.map(lambda drawn: known_of(sanitiser, drawn))
    some = st.sets(st.sampled_from(pseudonyms), max_size=3).map(sorted)
    kinds = [("add", files), ("add", files), ("learn", answers), ("forget", some)]
    kinds += [("remove", st.sampled_from(days)), ("publish", st.none()), ("store", st.none())]
    step = st.one_of(*(st.tuples(st.just(what), detail) for what, detail in kinds))
    return draw(st.lists(step, max_size=12))


def run(sanitiser: StudySanitiser, history: list[Step]) -> None:
    presence, by_hand = Presence.empty(sanitiser), ByHand(sanitiser.plan)
    known = KnownAnswers.empty(words=sanitiser.words("static"))
    published, number, waiting = Delta.zero(sanitiser.plan), 1, (0, 0)
    reports = [(by_hand.published, published)]
    for what, detail in history:
        totals, before, late = by_hand.totals(), presence.pack(), 0
        options = {"number": number, "sanitiser": sanitiser}
        match what:
            case "publish":
                number, waiting = number + 1, (0, 0)
                by_hand.publish()
                reports.append((by_hand.published, published))
                continue
            case "store":
                stored = Presence.unpack(before, sanitiser)
                assert_same_state(stored, presence)
                presence = stored
                continue
            case "forget":
                gone = np.array(detail, np.uint64)
                change, known = rules.forget_subscribers(presence, gone, **options), known.without(gone)
                by_hand.forget(detail)
            case "add":
                arrivals = [final(each, presence, known, left=by_hand.opted_out) for each in detail]
                change, late = rules.add_days(presence, arrivals, **options), by_hand.add(arrivals)
            case "learn":
                told = detail.without(np.array(sorted(by_hand.opted_out), np.uint64))
                known = known.merge(told)
                change = rules.add_answers(presence, known, **options)
                by_hand.learn(told)
            case "remove":
                change = rules.remove_day(presence, day=detail, **options)
                by_hand.remove(detail)
        assert presence.pack() == before  # the state before is left as it was
        waiting = (waiting[0] + change.subscribers, waiting[1] + change.opted_out)
        assert (waiting, change.late_changes) == (by_hand.waiting(), late)
        growth = tuple(after - was for after, was in zip(by_hand.totals(), totals, strict=True))
        assert (change.subscriber_days, change.subscribers_new, change.reports) == growth
        for name in ("subscribers", "opted_out", "subscriber_days", "subscribers_new", "reports"):
            assert type(getattr(change, name)) is int  # they are stored as JSON
        presence, published = change.presence, published + change.delta
        assert_is(presence, by_hand)
        assert_equal(published, by_hand.tallies())
        for people, totals in reports:
            now, difference = by_hand.counted(), published + negative(totals)
            differing = sum(now.get(name) != people.get(name) for name in now | people)
            fewest = fewest_subscribers(difference, plan=sanitiser.plan)
            assert (fewest <= differing, fewest == 0) == (True, difference.is_zero)


def negative(delta: Delta) -> Delta:
    counts, n_reports = (tuple(-array for array in arrays) for arrays in (delta.counts, delta.n_reports))
    return Delta(visitors=-delta.visitors, stays=-delta.stays, counts=counts, n_reports=n_reports)


def final(arrival: DayArrivals, presence: Presence, known: KnownAnswers, *, left: set[int]) -> DayArrivals:
    """Return the state with its people's earlier answers, and without those who have opted out."""
    rows = [row for row, name in enumerate(arrival.pseudonym.tolist()) if name not in left]
    names, static = arrival.pseudonym[rows], arrival.static[rows]
    given = final_answers(presence, known, names)
    static = np.where(given == NO_VALUE, static, given)
    return replace(arrival, pseudonym=names, static=static, daily=arrival.daily[rows])


# --- rules by name -----------------------------------------------------------------------------------------
def subscriber(index: int) -> int:
    return next(pseudonym for pseudonym, asked in ASKED.items() if asked == index)


def visit(day: int, *, static: int = NONE, daily: int = NONE, index: int = 0) -> DayArrivals:
    return arrivals_of(SAMPLED, day, {subscriber(index): ({index: static}, {index: daily})})


@pytest.mark.parametrize("kind", ["static", "daily"])
def test_plan_without_daily_or_static_indicators_packs(kind: str) -> None:
    sanitiser = StudySanitiser(keyed.plan_of("spl-grr", [(kind, 2)], days=3), prf=KeyedPrf(KEY))
    static, daily = (np.ones((1, sanitiser.slots(each)), np.uint16) for each in ("static", "daily"))
    arrival = DayArrivals(day=3, pseudonym=np.array([9], np.uint64), static=static, daily=daily)
    change = rules.add_days(Presence.empty(sanitiser), [arrival], number=1, sanitiser=sanitiser)
    assert change.delta.counts[0][:, 0, 3].tolist() == [0, 1]
    assert_same_state(Presence.unpack(change.presence.pack(), sanitiser), change.presence)


def test_whom_an_earlier_release_counted_counts_no_more_once_it_may_be_as_published() -> None:
    """It stored in which publication each changed last, and not what was published before."""
    both = [visit(1), visit(2)]
    first = rules.add_days(Presence.empty(SAMPLED), both, number=1, sanitiser=SAMPLED).presence
    columns = [steps_of(first.pseudonym), first.days, np.array([7], np.uint32), *first.static.T]
    stored = Presence.unpack(pack_columns([*columns, first.daily[:, :, :2].ravel()]), SAMPLED)
    more = []
    for change in (
        lambda state, **of: rules.add_days(state, [visit(3)], **of),
        lambda state, **of: rules.remove_day(state, day=1, **of),
        lambda state, **of: rules.add_days(state, [visit(1)], **of),
        lambda state, **of: rules.remove_day(state, day=2, **of),
    ):
        found = change(stored, number=7, sanitiser=SAMPLED)
        stored = found.presence
        more.append(found.subscribers)
    assert more == [0, -1, 0, 0]
    left = rules.forget_subscribers(stored, stored.pseudonym, number=7, sanitiser=SAMPLED)
    assert (left.subscribers, left.opted_out) == (0, 1)
    assert rules.remove_day(stored, day=1, number=8, sanitiser=SAMPLED).subscribers == 1


def test_a_history_of_every_step() -> None:
    """Says at once what those that are drawn would say after minutes."""
    assert set(ASKED.values()) == {0, 1, 2, 3}
    known = known_of(SAMPLED, {subscriber(0): ({0: 2}, {}), subscriber(2): ({2: 0}, {})})
    both = [visit(1, daily=1, index=3), visit(2, static=1)]
    first = [("add", [visit(1)]), ("remove", 1), ("learn", known), ("store", None), ("publish", None)]
    then = [("add", both), ("add", [visit(1, index=2)]), ("store", None), ("add", both), ("remove", 1)]
    again = [("publish", None), ("remove", 2), ("add", [visit(2, static=1)]), ("store", None), ("remove", 2)]
    run(SAMPLED, [*first, *then, *again, ("forget", [subscriber(0)]), ("learn", known)])


LONGEST = {
    mechanism: sanitiser_of(mechanism, days=62, tallies=PRESENCE_TALLIES)
    for mechanism in ("smp-grr", "rsfd-adp")
}


@settings(max_examples=25)
@given(history=st.data())
@pytest.mark.parametrize(
    ("sanitiser", "days"),
    [*((each, [1, 2, 3, 4]) for each in SANITISERS.values()),
     *((each, [1, 2, 31, 32, 33, 61, 62]) for each in LONGEST.values())],
    ids=[*(each.plan.mechanism for each in SANITISERS.values()), *(f"longest, {each}" for each in LONGEST)],
)  # fmt: skip
def test_any_history_is_published_as_the_tallies_of_its_state(history, sanitiser, days) -> None:
    run(sanitiser, history.draw(steps(sanitiser, FEW, days)))
