"""State of one shard: who was present on which days, and the sanitised answers that stay permanently."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mobility.extracts.rows.events import NO_VALUE
from mobility.vault.sanitise import StudySanitiser
from mobility.vault.state import positions
from mobility.vault.state.answers import KnownAnswers
from mobility.vault.state.columns import from_steps, pack_columns, steps, unpack_columns

Pseudonyms = NDArray[np.uint64]
Words = NDArray[np.uint16]
NO_NUMBER: Final = np.uint32(0)
# Published contribution of a subscriber: SAME as the state; or the state on some days, as their bitmap
# with KEPT, which without a day is NOTHING; or anything else, as a digest with IS_DIGEST.
SAME = np.uint64(0)
KEPT, IS_DIGEST = np.uint64(1 << 62), np.uint64(1 << 63)  # studies have at most 62 days
NOTHING = KEPT
UNKNOWN = np.uint64(1)  # an earlier release noted no more than that it differs
UNCERTAIN = np.uint64(2)  # and since then it may have become the same again
_OF_EACH: Final = ("pseudonym", "days", "published", "static", "daily")


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
        return cls.blank(
            np.empty(0, np.uint64),
            static_words=sanitiser.words("static"),
            daily_words=sanitiser.words("daily"),
            days=sanitiser.plan.days,
        )

    @classmethod
    def blank(cls, pseudonym: Pseudonyms, *, static_words: int, daily_words: int, days: int) -> Self:
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
        """Return the same state, compared with the publications before `number`."""
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
        everyone, (mine, *theirs) = positions.union([self.pseudonym, *others])
        wider = Presence.blank(
            everyone,
            static_words=self.static.shape[1],
            daily_words=self.daily.shape[1],
            days=self.daily.shape[2],
        )
        for name in _OF_EACH[1:]:
            positions.put(getattr(wider, name), mine, getattr(self, name))
        return replace(wider, number=self.number), theirs

    def pack(self) -> bytes:
        """Compressed bytes that `unpack` reads; they must be sealed before they are stored."""
        daily = take_present(self.days, self.daily, days_present(self))
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
        blank = cls.blank(
            from_steps(differences),
            static_words=sanitiser.words("static"),
            daily_words=sanitiser.words("daily"),
            days=sanitiser.plan.days,
        )
        presence = replace(blank, days=days, published=published, number=number)
        for word, column in enumerate(static):
            presence.static[:, word] = column
        put_present(days, daily.reshape(presence.daily.shape[1], days_present(presence)), presence.daily)
        return presence


def final_answers(presence: Presence, known: KnownAnswers, pseudonyms: Pseudonyms) -> NDArray[np.uint16]:
    """Static reports that some subscribers have permanently, shape (n, words), before a file says more.

    Parameters
    ----------
    pseudonyms : sorted
    """
    static = np.full((len(pseudonyms), presence.static.shape[1]), NO_VALUE, np.uint16)
    mine, rows = positions.shared_rows(presence.pseudonym, pseudonyms)
    static[rows] = presence.static[mine]
    return known.fill(pseudonyms, static)


def days_present(presence: Presence) -> int:
    return int(np.bitwise_count(presence.days).sum())


def _of_earlier_release(changed_in: NDArray[np.uint32]) -> tuple[NDArray[np.uint64], np.uint32]:
    """`published` and `number` of a state of a release that noted in which publication each changed last.

    The highest number is the present one, or one that is out, whose details no longer matter.
    """
    number = changed_in.max(initial=np.uint32(0))
    return np.where((changed_in == number) & (number > 0), UNKNOWN, SAME), number


@njit(cache=True, nogil=True)
def take_present(days: NDArray[np.uint64], daily: Words, n_days: int) -> Words:
    """Reports of the present days, shape (words, present days), subscriber by subscriber."""
    out = np.empty((daily.shape[1], n_days), np.uint16)
    at = 0
    for i in range(days.shape[0]):
        for day in range(daily.shape[2]):
            if (days[i] >> np.uint64(day)) & np.uint64(1):
                for word in range(daily.shape[1]):
                    out[word, at] = daily[i, word, day]
                at += 1
    return out


@njit(cache=True, nogil=True)
def put_present(days: NDArray[np.uint64], reports: Words, daily: Words) -> None:
    """Write what `take_present` took."""
    at = 0
    for i in range(days.shape[0]):
        for day in range(daily.shape[2]):
            if (days[i] >> np.uint64(day)) & np.uint64(1):
                for word in range(daily.shape[1]):
                    daily[i, word, day] = reports[word, at]
                at += 1
