"""Change of the presence of one shard: computed from its state, and published as a difference.

A change is published as the difference of two states: the tallies of the subscribers it touches after it,
minus theirs before it. Late days, answers that arrive after the presence, and days that are undone need no
separate rule. The inner loops check no bound.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Literal, get_args

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ldp.codes import NO_ANSWER
from ldp.errors import PlanError
from ldp.estimation.tallies import Delta
from ldp.kernels.entropy import slices
from ldp.keyed.tallying import tally_class_reports, tally_reports, tally_stays, tally_visitors
from ldp.privacy.plans import Kind
from ldp.privacy.presence import first_days
from mobility.extracts.rows.events import NO_VALUE
from mobility.vault.sanitise import Place, StudySanitiser
from mobility.vault.state import positions as places
from mobility.vault.state.answers import KnownAnswers
from mobility.vault.state.presence import (
    IS_DIGEST,
    KEPT,
    NOTHING,
    SAME,
    UNCERTAIN,
    UNKNOWN,
    Presence,
    days_present,
)

Pseudonyms = NDArray[np.uint64]
Words = NDArray[np.uint16]
Rows = NDArray[np.int64]
_SEED, _FACTOR, _HALF = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93), np.uint64(32)
_WORDS_AT_ONCE: Final = 2**24  # of reports that are made again to be counted
_OF_EARLIER_RELEASE: Final = np.array([UNKNOWN, UNCERTAIN])


@dataclass(frozen=True, slots=True, kw_only=True)
class DayArrivals:
    """Visitors of one day, sorted: pseudonym (n,), sanitised static and daily reports, both (n, words)."""

    day: int
    pseudonym: Pseudonyms
    static: NDArray[np.uint16]
    daily: NDArray[np.uint16]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Presence after a change, what to publish, and what to count."""

    presence: Presence
    places: int  # that differ
    delta: Delta
    subscribers: int  # by how many more the state differs from what is published; negative for fewer
    opted_out: int  # of whom something is published, and who have left
    subscriber_days: int  # added; negative when a day was undone, like the next two
    subscribers_new: int
    reports: int
    late_changes: int


Signed = tuple[Presence, Literal[1, -1]]


def add_days(
    before: Presence,
    arrivals: list[DayArrivals],
    *,
    number: int,
    sanitiser: StudySanitiser,
    answers: Sequence[KnownAnswers] = (),
) -> Change:
    """Add visitors; what was answered before stays.

    Parameters
    ----------
    number : of the next publication
    answers : static reports of people who were seen, visitors or not: for those present who have none
    """
    after, rows_of = before.as_of(number).with_places_for([arrival.pseudonym for arrival in arrivals])
    shared = [places.shared_rows(after.pseudonym, known.pseudonym) for known in answers]
    touched = places.marked([*rows_of, *(rows for rows, _ in shared)], n=len(after))
    was = after.take(touched)
    static_starts, daily_starts = (np.array(sanitiser.starts(kind), np.int64) for kind in get_args(Kind))
    late = 0
    for arrival, rows in zip(arrivals, rows_of, strict=True):
        after.days[rows] |= np.uint64(1 << (arrival.day - 1))
        keep_first(after.static, rows, arrival.static, static_starts)
        today = after.daily[:, :, arrival.day - 1]
        late += int(keep_first(today, rows, arrival.daily, daily_starts))
    for known, (rows, theirs) in zip(answers, shared, strict=True):
        is_present = after.days[rows] != 0
        keep_first(after.static, rows[is_present], known.static[theirs[is_present]], static_starts)
    return _change(was, after, touched, sanitiser=sanitiser, late_changes=late)


def add_answers(before: Presence, known: KnownAnswers, *, number: int, sanitiser: StudySanitiser) -> Change:
    """Give those who are present without a static answer the one that is known; others keep theirs."""
    rows, theirs = places.shared_rows(before.pseudonym, known.pseudonym)
    is_present = before.days[rows] != 0
    rows, theirs = rows[is_present], theirs[is_present]
    after = replace(before.as_of(number), static=before.static.copy())
    was = after.take(rows)
    keep_first(after.static, rows, known.static[theirs], np.array(sanitiser.starts("static"), np.int64))
    return _change(was, after, rows, sanitiser=sanitiser)


def remove_day(before: Presence, *, day: int, number: int, sanitiser: StudySanitiser) -> Change:
    """Undo one day: no one was present, and its daily answers are withdrawn. Static answers stay final."""
    bit = np.uint64(1 << (day - 1))
    rows = np.flatnonzero(before.days & bit)
    after = replace(before.as_of(number), days=before.days & ~bit, daily=before.daily.copy())
    after.daily[rows, :, day - 1] = NO_VALUE
    return _change(before.take(rows), after, rows, sanitiser=sanitiser)


def forget_subscribers(
    before: Presence, pseudonyms: Pseudonyms, *, number: int, sanitiser: StudySanitiser
) -> Change:
    """Take subscribers out, with all their days and answers, as if they had never been there."""
    rows, _ = places.shared_rows(before.pseudonym, pseudonyms)
    before = before.as_of(number)
    gone = before.take(rows)
    nobody = Presence.blank(
        gone.pseudonym,
        static_words=gone.static.shape[1],
        daily_words=gone.daily.shape[1],
        days=gone.daily.shape[2],
    )
    kept = before.take(places.other_rows(before.pseudonym, pseudonyms))
    change = _compared(gone, nobody, kept, sanitiser=sanitiser)
    if sanitiser.plan.presence is not None:
        return change
    is_same, is_certain = gone.published == SAME, ~np.isin(gone.published, _OF_EARLIER_RELEASE)
    is_published = np.where(is_same, gone.days != 0, gone.published != NOTHING)
    did_differ = ~is_same & (gone.published != UNCERTAIN)
    more = np.count_nonzero(is_published & is_certain) - np.count_nonzero(did_differ)
    return replace(change, subscribers=int(more), opted_out=int(np.count_nonzero(is_published)))


def nothing(sanitiser: StudySanitiser) -> Change:
    """Return the change of a state that stays as it is."""
    nobody = Presence.empty(sanitiser)
    return _compared(nobody, nobody, nobody, sanitiser=sanitiser)


def exact_tallies(presence: Presence, sanitiser: StudySanitiser) -> Delta:
    """Return the contribution of a state, from nothing: the sum of all published and waiting changes."""
    delta = Delta.zero(sanitiser.plan)
    _add_tallies(delta, (presence, 1), sanitiser=sanitiser)
    return delta


def capped_tallies(presence: Presence, sanitiser: StudySanitiser) -> Delta:
    """Return the contribution of a state if only the first present days of each subscriber count.

    Raises
    ------
    PlanError : the plan caps no days
    """
    if sanitiser.plan.presence is None:
        raise PlanError("presence must be part of the plan, got a plan without a cap of days")
    capped = replace(presence, days=first_days(presence.days, most=sanitiser.plan.presence.max_days))
    return exact_tallies(capped, sanitiser)


def _change(
    was: Presence,
    after: Presence,
    touched: NDArray[np.int64],
    *,
    sanitiser: StudySanitiser,
    late_changes: int = 0,
) -> Change:
    """Compare the rows `touched` of a state with what they were, and with what is published of them."""
    now = after.take(touched)
    differs = differing_rows(was.days, now.days, was.static, now.static, was.daily, now.daily)
    if len(differs) < len(was):
        was, now, touched = was.take(differs), now.take(differs), touched[differs]
    change = _compared(was, now, after, sanitiser=sanitiser, late_changes=late_changes)
    if sanitiser.plan.presence is not None:  # then publications count no one
        return change
    more = compare_with_published(
        now.published, was.days, was.static, was.daily, now.days, now.static, now.daily
    )
    published = after.published.copy()
    published[touched] = now.published
    return replace(change, presence=replace(after, published=published), subscribers=more)


def _compared(
    was: Presence, now: Presence, after: Presence, *, sanitiser: StudySanitiser, late_changes: int = 0
) -> Change:
    """The change to the state `after`, whose places that differ were `was` and are `now`."""
    delta = Delta.zero(sanitiser.plan)
    _add_tallies(delta, (was, -1), (now, 1), sanitiser=sanitiser)
    return Change(
        presence=after,
        places=len(was),
        delta=delta,
        subscribers=0,
        opted_out=0,
        subscriber_days=days_present(now) - days_present(was),
        subscribers_new=int(np.count_nonzero(now.days)) - int(np.count_nonzero(was.days)),
        reports=_reports_given(now, sanitiser) - _reports_given(was, sanitiser),
        late_changes=late_changes,
    )


def _reports_given(presence: Presence, sanitiser: StudySanitiser) -> int:
    static = presence.static[:, sanitiser.answer_starts("static")]
    daily = presence.daily[:, sanitiser.answer_starts("daily")]
    return int((static != NO_VALUE).sum() + (daily != NO_VALUE).sum())


def _add_tallies(delta: Delta, *signed: Signed, sanitiser: StudySanitiser) -> None:
    """Add what subscribers contribute in each state, or take it away, in place; rows as each other's."""
    tallies, classes = sanitiser.plan.tallies, _classes_of(*signed, sanitiser=sanitiser)
    for presence, sign in signed:
        tally_visitors(presence.days, delta.visitors, sign=sign)
        tally_stays(presence.days, delta.stays[: len(tallies)], tallies=tallies, sign=sign)
        for number, rows in () if classes is None else sanitiser.members(classes):
            tally_visitors(presence.days[rows], delta.stays[len(tallies) + number], sign=sign)
    pseudonyms = signed[0][0].pseudonym
    signed = tuple(pair for pair in signed if pair[0].days.any())
    tally = tally_reports
    if sanitiser.has_classes:
        tally = partial(tally_class_reports, n_classes=len(sanitiser.plan.classes))
    for kind in get_args(Kind):
        for place in sanitiser.tallied(pseudonyms, kind=kind, classes=classes):
            for presence, sign in signed:
                for days, words in _reports_at(place, presence, kind=kind, sanitiser=sanitiser):
                    tally(
                        days,
                        words,
                        delta,
                        index=place.indicator,
                        is_unary=place.is_unary,
                        sign=sign,
                        **({"number": place.number} if sanitiser.has_classes else {}),
                    )


def _reports_at(
    place: Place, presence: Presence, *, kind: Kind, sanitiser: StudySanitiser
) -> Iterator[tuple[Pseudonyms, Words]]:
    """Yield days present, and reports: of shape (n, words) if they last, else (n, days, words)."""
    days, words = presence.days[place.rows], getattr(presence, kind)[place.rows, place.words]
    if kind == "daily":
        yield days, words.swapaxes(1, 2)
    elif not sanitiser.plan.is_renewed(place.indicator):
        yield days, words
    else:
        people, a_day = presence.pseudonym[place.rows], max(1, words.shape[1]) * sanitiser.plan.days
        for part in slices(len(days), rows=max(1, _WORDS_AT_ONCE // a_day)):
            of_days = sanitiser.renewed(place, people[part], words[part], days=days[part])
            yield days[part], of_days


def _classes_of(*signed: Signed, sanitiser: StudySanitiser) -> Words | None:
    """Class of each subscriber, by the state that knows it: a class is final, so no two differ."""
    if not sanitiser.has_classes:
        return None
    known = [presence.static[:, -1] for presence, _ in signed]
    return np.asarray(np.minimum.reduce(known), np.uint16)  # NO_VALUE is the largest


@njit(cache=True, nogil=True)
def keep_first(known: Words, rows: Rows, fresh: Words, starts: Rows) -> int:
    """Write each report that was not known yet at its row, in place; returns how many known ones differ.

    A report begins at each of `starts` and ends before the next one.
    """
    differing = 0
    for i in range(rows.shape[0]):
        row = rows[i]
        for report in range(starts.shape[0]):
            start = starts[report]
            end = starts[report + 1] if report + 1 < starts.shape[0] else fresh.shape[1]
            if fresh[i, start] == NO_ANSWER:
                continue
            is_new = known[row, start] == NO_ANSWER
            differs = False
            for word in range(start, end):
                if is_new:
                    known[row, word] = fresh[i, word]
                differs = differs or known[row, word] != fresh[i, word]
            differing += differs
    return differing


@njit(cache=True, nogil=True)
def differing_rows(
    days: NDArray[np.uint64],
    other_days: NDArray[np.uint64],
    static: Words,
    other_static: Words,
    daily: Words,
    other_daily: Words,
) -> Rows:
    """Rows at which two states differ in days, static or daily reports."""
    rows, n = np.empty(days.shape[0], np.int64), 0
    for i in range(days.shape[0]):
        differs = days[i] != other_days[i]
        for word in range(static.shape[1]):
            differs |= static[i, word] != other_static[i, word]
        for word in range(daily.shape[1]):
            for day in range(daily.shape[2]):
                differs |= daily[i, word, day] != other_daily[i, word, day]
        rows[n] = i
        n += differs
    return rows[:n]


@njit(cache=True, nogil=True)
def _stir(digest: Any, word: Any) -> Any:
    digest = (digest ^ word) * _FACTOR
    return digest ^ (digest >> _HALF)


@njit(cache=True, nogil=True)
def _digest(days: Any, i: int, static: Words, daily: Words) -> Any:
    """Return the digest of some days of row `i`, and of the answers that count on them."""
    digest = _stir(_SEED, days)
    for word in range(static.shape[1]):
        digest = _stir(digest, np.uint64(static[i, word]))
    for word in range(daily.shape[1]):
        for day in range(daily.shape[2]):
            if (days >> np.uint64(day)) & np.uint64(1):
                digest = _stir(digest, np.uint64(daily[i, word, day]))
    return _stir(digest, _SEED) | IS_DIGEST


@njit(cache=True, nogil=True)
def _differs(published: Any) -> Any:
    return (published != SAME) & (published != UNCERTAIN)


@njit(cache=True, nogil=True)
def compare_with_published(
    published: NDArray[np.uint64],
    old_days: NDArray[np.uint64],
    old_static: Words,
    old_daily: Words,
    days: NDArray[np.uint64],
    static: Words,
    daily: Words,
) -> int:
    """Renew `published` of those whose state changes, in place; returns how many more differ from it."""
    more = 0
    for i in range(published.shape[0]):
        known = published[i]
        if SAME < known <= UNCERTAIN:
            if old_days[i] & ~days[i]:
                published[i] = UNCERTAIN
        elif known & IS_DIGEST:
            if _digest(days[i], i, static, daily) == known:
                published[i] = SAME
        else:
            kept = old_days[i] if known == SAME else known ^ KEPT
            # Written out: a call with four arrays takes as long as all the rest.
            is_kept = not kept & ~days[i]
            for word in range(static.shape[1] if kept else 0):
                is_kept &= static[i, word] == old_static[i, word]
            for word in range(daily.shape[1] if kept else 0):
                for day in range(daily.shape[2]):
                    is_same = daily[i, word, day] == old_daily[i, word, day]
                    is_kept &= is_same or not (kept >> np.uint64(day)) & np.uint64(1)
            if is_kept:
                published[i] = SAME if days[i] == kept else kept | KEPT
            else:
                published[i] = _digest(kept, i, old_static, old_daily)
        more += _differs(published[i]) - _differs(known)
    return more
