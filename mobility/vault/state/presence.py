"""State of one shard: who was present on which days, and the sanitised answers that stay for ever.

A change is published as the difference of two states: the tallies of the subscribers it touches after it,
minus theirs before it. Late days, answers that arrive after the presence, and days that are undone need no
rule of their own.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from ldp.errors import PlanError
from ldp.estimation.tallies import Delta
from ldp.keyed.tallying import tally_reports, tally_visitors
from ldp.privacy.plans import Kind
from ldp.privacy.presence import first_days
from mobility.extracts.rows.events import NO_VALUE
from mobility.vault.kernels import (
    NOTHING,
    SAME,
    UNCERTAIN,
    UNKNOWN,
    compare_with_published,
    differing_rows,
    keep_first,
    put_present,
    put_rows,
    take_present,
)
from mobility.vault.sanitise import StudySanitiser
from mobility.vault.state import positions as places
from mobility.vault.state.answers import KnownAnswers
from mobility.vault.state.columns import from_steps, pack_columns, steps, unpack_columns

Pseudonyms = NDArray[np.uint64]
NO_NUMBER: Final = np.uint32(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Presence:
    """One place per pseudonym of a shard, sorted.

    pseudonym : uint64 (n,)
    days : uint64 (n,); bit t-1 = present on day t. A subscriber whose only day was undone keeps its place, so
        that its static answer stays final
    published : uint64 (n,); what was published of each before publication `number`: SAME as the state, or
        some of its days, or else a digest, by which it is known should the state become the same again
    static : uint16 (n, words); sanitised reports, NO_VALUE for none
    daily : uint16 (n, words, study days); sanitised reports of the present days
    number : of the next publication when the state was written; once that is out, all is published
    """

    pseudonym: Pseudonyms
    days: NDArray[np.uint64]
    published: NDArray[np.uint64]
    static: NDArray[np.uint16]
    daily: NDArray[np.uint16]
    number: np.uint32 = NO_NUMBER

    @classmethod
    def empty(cls, sanitiser: StudySanitiser) -> Self:
        return cls._blank(
            np.empty(0, np.uint64),
            static_words=sanitiser.words("static"),
            daily_words=sanitiser.words("daily"),
            days=sanitiser.plan.days,
        )

    @classmethod
    def _blank(cls, pseudonym: Pseudonyms, *, static_words: int, daily_words: int, days: int) -> Self:
        n = len(pseudonym)
        return cls(
            pseudonym=pseudonym,
            days=np.zeros(n, np.uint64),
            published=np.full(n, SAME),
            static=np.full((n, static_words), NO_VALUE, np.uint16),
            daily=np.full((n, daily_words, days), NO_VALUE, np.uint16),
        )

    def __len__(self) -> int:
        return len(self.pseudonym)

    def take(self, rows: NDArray[np.int64]) -> "Presence":
        taken: dict[str, Any] = {name: np.take(getattr(self, name), rows, axis=0) for name in _OF_EACH}
        return replace(self, **taken)

    def as_of(self, number: int) -> "Presence":
        """The same state, compared with what was published before publication `number`."""
        if self.number == number:
            return self
        return replace(self, number=np.uint32(number), published=np.full(len(self), SAME))

    def with_places_for(self, others: Sequence[Pseudonyms]) -> "tuple[Presence, list[NDArray[np.int64]]]":
        """A copy that also has a blank place for everyone in `others` who had none.

        Parameters
        ----------
        others : sorted lists of pseudonyms

        Returns
        -------
        the copy, and for each list its rows there
        """
        everyone, (mine, *theirs) = places.union([self.pseudonym, *others])
        wider = Presence._blank(
            everyone,
            static_words=self.static.shape[1],
            daily_words=self.daily.shape[1],
            days=self.daily.shape[2],
        )
        for name in _OF_EACH[1:]:
            put_rows(_as_rows(getattr(wider, name)), mine, _as_rows(getattr(self, name)))
        return replace(wider, number=self.number), theirs

    def pack(self) -> bytes:
        """Compressed bytes that `unpack` reads; they must be sealed before they are stored."""
        daily = take_present(self.days, self.daily, _days_present(self))
        number = np.array([self.number])
        return pack_columns(
            [steps(self.pseudonym), self.days, self.published, *self.static.T, daily.ravel(), number]
        )

    @classmethod
    def unpack(cls, packed: bytes, sanitiser: StudySanitiser) -> Self:
        differences, days, published, *columns = unpack_columns(packed)
        if published.dtype == np.uint32:
            published, number = _of_earlier_release(changed_in=published)
        else:
            number = columns.pop()[0]
        *static, daily = columns
        blank = cls._blank(
            from_steps(differences),
            static_words=sanitiser.words("static"),
            daily_words=sanitiser.words("daily"),
            days=sanitiser.plan.days,
        )
        presence = replace(blank, days=days, published=published, number=number)
        for word, column in enumerate(static):
            presence.static[:, word] = column
        put_present(days, daily.reshape(presence.daily.shape[1], _days_present(presence)), presence.daily)
        return presence


_OF_EARLIER_RELEASE: Final = np.array([UNKNOWN, UNCERTAIN])
_OF_EACH: Final = ("pseudonym", "days", "published", "static", "daily")


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
    touched = _marked([*rows_of, *(rows for rows, _ in shared)], n=len(after))
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


def final_answers(presence: Presence, known: KnownAnswers, pseudonyms: Pseudonyms) -> NDArray[np.uint16]:
    """Static reports that some subscribers have for ever, shape (n, words), before a file says more.

    Parameters
    ----------
    pseudonyms : sorted
    """
    static = np.full((len(pseudonyms), presence.static.shape[1]), NO_VALUE, np.uint16)
    mine, rows = places.shared_rows(presence.pseudonym, pseudonyms)
    static[rows] = presence.static[mine]
    return known.fill(pseudonyms, static)


def remove_day(before: Presence, *, day: int, number: int, sanitiser: StudySanitiser) -> Change:
    """Undo one day: nobody was present, and its daily answers are withdrawn. Static answers stay final."""
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
    nobody = Presence._blank(
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


def exact_tallies(presence: Presence, sanitiser: StudySanitiser) -> Delta:
    """What a state counts, from nothing: the sum of all that was published of it and of what waits."""
    delta = Delta.zero(sanitiser.plan)
    _add_tallies(delta, (presence, 1), sanitiser=sanitiser)
    return delta


def capped_tallies(presence: Presence, sanitiser: StudySanitiser) -> Delta:
    """What a state counts when only the first present days of each subscriber do, as many as the plan says.

    Raises
    ------
    PlanError : the plan caps no days
    """
    if sanitiser.plan.presence is None:
        raise PlanError("presence must be part of the plan, got a plan without a cap of days")
    capped = replace(presence, days=first_days(presence.days, most=sanitiser.plan.presence.max_days))
    delta = Delta.zero(sanitiser.plan)
    _add_tallies(delta, (capped, 1), sanitiser=sanitiser)
    return delta


def _as_rows(items: NDArray[Any]) -> NDArray[Any]:
    """One row for each place."""
    return items.reshape(len(items), math.prod(items.shape[1:]))


def _marked(rows_of: list[NDArray[np.int64]], *, n: int) -> NDArray[np.int64]:
    """Rows below `n` that are in any of the lists, in rising order."""
    is_marked = np.zeros(n, np.bool_)
    for rows in rows_of:
        is_marked[rows] = True
    return np.flatnonzero(is_marked)


def _of_earlier_release(changed_in: NDArray[np.uint32]) -> tuple[NDArray[np.uint64], np.uint32]:
    """`published` and `number` of a state of a release that noted in which publication each changed last.

    The highest number is the present one, or one that is out, of which nothing has to be known any more.
    """
    number = changed_in.max(initial=np.uint32(0))
    return np.where((changed_in == number) & (number > 0), UNKNOWN, SAME), number


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
    if sanitiser.plan.presence is not None:  # then publications count nobody
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
        subscriber_days=_days_present(now) - _days_present(was),
        subscribers_new=int(np.count_nonzero(now.days)) - int(np.count_nonzero(was.days)),
        reports=_reports_given(now, sanitiser) - _reports_given(was, sanitiser),
        late_changes=late_changes,
    )


def _days_present(presence: Presence) -> int:
    return int(np.bitwise_count(presence.days).sum())


def _reports_given(presence: Presence, sanitiser: StudySanitiser) -> int:
    static = presence.static[:, sanitiser.starts("static")]
    daily = presence.daily[:, sanitiser.starts("daily")]
    return int((static != NO_VALUE).sum() + (daily != NO_VALUE).sum())


def _add_tallies(delta: Delta, *signed: Signed, sanitiser: StudySanitiser) -> None:
    """Add what subscribers contribute in each state, or take it away, in place; rows as each other's."""
    for presence, sign in signed:
        tally_visitors(presence.days, delta.visitors, sign=sign)
    pseudonyms = signed[0][0].pseudonym
    signed = tuple(pair for pair in signed if pair[0].days.any())
    for kind in get_args(Kind):
        for place in sanitiser.tallied(pseudonyms, kind=kind):
            for presence, sign in signed:
                words = getattr(presence, kind)[place.rows, place.words]
                tally_reports(
                    presence.days[place.rows],
                    words if kind == "static" else words.swapaxes(1, 2),
                    delta,
                    index=place.indicator,
                    is_unary=place.is_unary,
                    sign=sign,
                )
