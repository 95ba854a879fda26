"""Inner loops over the state of a shard, in machine code. They know arrays; no key, no study, no file.

Callers check their arguments: nothing here checks a bound. Pseudonyms stand in rising order, each once,
unless a text says otherwise.
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ldp.codes import NO_ANSWER

Pseudonyms = NDArray[np.uint64]
Words = NDArray[np.uint16]
Rows = NDArray[np.int64]

NOWHERE = -1


# --- order ------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def put_rows(out: NDArray[Any], rows: Rows, items: NDArray[Any]) -> None:
    """Write each row of `items` at its place, in place."""
    for i in range(rows.shape[0]):
        for j in range(items.shape[1]):
            out[rows[i], j] = items[i, j]


@njit(cache=True, nogil=True)
def union_places(lists: Pseudonyms, starts: Rows) -> tuple[Pseudonyms, Rows]:
    """Union of lists that begin at `starts` (the last of which is the end), and each item's place in it."""
    heads = starts[:-1].copy()
    union, places = np.empty(lists.shape[0], np.uint64), np.empty(lists.shape[0], np.int64)
    n = 0
    while True:
        smallest, is_left = np.uint64(0), False
        for k in range(heads.shape[0]):
            if heads[k] < starts[k + 1] and (not is_left or lists[heads[k]] < smallest):
                smallest, is_left = lists[heads[k]], True
        if not is_left:
            return union[:n].copy(), places
        for k in range(heads.shape[0]):
            if heads[k] < starts[k + 1] and lists[heads[k]] == smallest:
                places[heads[k]] = n
                heads[k] += 1
        union[n] = smallest
        n += 1


@njit(cache=True, nogil=True)
def find_rows(known: Pseudonyms, wanted: Pseudonyms) -> Rows:
    """Row of each wanted one among those known; NOWHERE if it is not there. Long gaps are jumped over."""
    rows = np.empty(wanted.shape[0], np.int64)
    low = np.int64(0)
    for i in range(wanted.shape[0]):
        step = np.int64(1)
        high = low
        while high < known.shape[0] and known[high] < wanted[i]:
            low = high + 1
            high += step
            step *= 2
        high = min(high, known.shape[0])
        while low < high:
            middle = (low + high) // 2
            if known[middle] < wanted[i]:
                low = middle + 1
            else:
                high = middle
        rows[i] = low if low < known.shape[0] and known[low] == wanted[i] else NOWHERE
    return rows


# --- answers ----------------------------------------------------------------------------------------


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


# --- what is published ------------------------------------------------------------------------------

# What is published of a subscriber: SAME as the state; or what the state holds of some days, as their bitmap
# with KEPT, which without a day is NOTHING; or anything else, as a digest with IS_DIGEST.
SAME = np.uint64(0)
KEPT, IS_DIGEST = np.uint64(1 << 62), np.uint64(1 << 63)  # studies have at most 62 days
NOTHING = KEPT
UNKNOWN = np.uint64(1)  # an earlier release noted no more than that it differs
UNCERTAIN = np.uint64(2)  # and since then it may have become the same again
_SEED, _FACTOR, _HALF = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93), np.uint64(32)


@njit(cache=True, nogil=True)
def _stir(digest: Any, word: Any) -> Any:
    digest = (digest ^ word) * _FACTOR
    return digest ^ (digest >> _HALF)


@njit(cache=True, nogil=True)
def _digest(days: Any, i: int, static: Words, daily: Words) -> Any:
    """Of some days of row `i`, and the answers that count on them."""
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
