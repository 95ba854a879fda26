"""Count reports into gap tallies (`ldp.estimation.tallies`), in place."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ldp.codes import NO_ANSWER, WORD_BITS
from ldp.errors import LdpError
from ldp.estimation.tallies import Counts, Delta, class_blocks
from ldp.kernels import codes as kernels
from ldp.kernels import presence as kernels_presence
from ldp.kernels import words as kernels_words
from ldp.privacy.plans import PresenceTally

Bitmaps = NDArray[np.uint64]
Codes = NDArray[np.uint16]
Sign = Literal[1, -1]

_MAX_PATTERNS = 2**16  # counters of half a megabyte still stay in the cache


def tally_static(bitmaps: Bitmaps, codes: Codes, out: Counts, *, sign: Sign) -> None:
    """Add (or take away) the subscribers' contributions to the tally of a static indicator, in place.

    Parameters
    ----------
    bitmaps : ndarray of uint64, shape (n,); bit t-1 = present on day t
    codes : ndarray of uint16, shape (n,); sanitised code, or NO_ANSWER
    out : ndarray of int64, shape (domain_size, days + 1, days + 1); [code, previous day, day]
    sign : 1 or -1

    Raises
    ------
    LdpError : shapes do not fit, or a day or code lies outside `out`; `out` is then unchanged
    """
    _check(bitmaps, codes, out, codes_shape=bitmaps.shape, sign=sign)
    _tally_static(bitmaps, codes, out, sign=sign)


def tally_daily(bitmaps: Bitmaps, codes: Codes, out: Counts, *, sign: Sign) -> None:
    """Add (or take away) the subscribers' contributions to the tally of a daily indicator, in place.

    The previous day is the previous *presence*, answered or not: so windows count the value of the first day.

    Parameters
    ----------
    codes : ndarray of uint16, shape (n, days); code of day t in column t-1; ignored where absent
    bitmaps, out, sign, Raises : as in `tally_static`
    """
    _check(bitmaps, codes, out, codes_shape=(bitmaps.shape[0], out.shape[-1] - 1), sign=sign)
    kernels.tally_daily(bitmaps, codes, out, sign)


def tally_words(bitmaps: Bitmaps, words: Codes, counts: Counts, n_reports: Counts, *, sign: Sign) -> None:
    """Run `tally_static` or `tally_daily` on reports with one bit per value: each one counts for its value.

    Parameters
    ----------
    words : ndarray of uint16, 15 bits each, or NO_ANSWER (`ldp.keyed.words`); shape (n, words), or (n, days,
        words) of a daily indicator: the report of day t in row t-1, ignored where absent
    counts : ndarray of int64, shape (domain_size, days + 1, days + 1); [value, previous day, day]
    n_reports : ndarray of int64, shape (days + 1, days + 1); every report once
    bitmaps, sign, Raises : as in `tally_static`
    """
    _check_out(counts, ndim=3)
    _check_out(n_reports, ndim=2)
    days = counts.shape[-1] - 1
    _check_bitmaps(bitmaps, days=days, sign=sign)
    if n_reports.shape != counts.shape[1:]:
        raise LdpError(f"n_reports must have shape {counts.shape[1:]}, got {n_reports.shape}")
    is_daily = words.ndim == 3
    by_day = np.ascontiguousarray(words if is_daily else words[:, np.newaxis])
    shape = (bitmaps.shape[0], days if is_daily else 1, -(-counts.shape[0] // WORD_BITS))
    if by_day.dtype != np.uint16 or by_day.shape != shape:
        raise LdpError(f"words must be uint16 of shape {shape}, got {words.dtype} of {by_day.shape}")
    broken = kernels_words.count_broken(by_day.reshape(-1, shape[-1]), counts.shape[0])
    if broken:
        raise LdpError(f"words must hold bits of {counts.shape[0]} values, or none, got {broken} that do not")
    kernels_words.tally_words(bitmaps, by_day, counts, n_reports, sign)


def tally_asked(
    bitmaps: Bitmaps, asked: NDArray[np.uint8], codes: Codes, out: Sequence[Counts], *, sign: Sign
) -> None:
    """Add (or take away) contributions to static indicators of which each subscriber answers one, in place.

    Parameters
    ----------
    asked : ndarray of uint8, shape (n,); position of the indicator that the subscriber answers
    codes : ndarray of uint16, shape (n,); sanitised code, or NO_ANSWER
    out : sequence of ndarray of int64, shape (domain_size, days + 1, days + 1), one per indicator
    bitmaps, sign, Raises : as in `tally_static`

    Notes
    -----
    Counts (indicator, code, bitmap) jointly where that is faster: one pass without selecting rows.
    """
    sizes = _check_asked(bitmaps, asked, codes, out, sign=sign)
    days = out[0].shape[-1] - 1
    ends = np.cumsum(sizes)
    if int(ends[-1]) << days > min(bitmaps.size, _MAX_PATTERNS):
        for indicator, counts in enumerate(out):
            rows = np.flatnonzero(asked == indicator)
            _tally_static(bitmaps[rows], codes[rows], counts, sign=sign)
        return
    patterns = np.zeros((int(ends[-1]) << days) + 1, np.int64)
    kernels.count_patterns(bitmaps, asked, codes, ends - sizes, days, patterns)
    by_code = patterns[:-1].reshape(-1, 1 << days)
    for counts, own in zip(out, np.split(by_code, ends[:-1]), strict=True):
        kernels.spread_patterns(own, counts, sign)


def tally_reports(
    bitmaps: Bitmaps, words: Codes, delta: Delta, *, index: int, is_unary: bool, sign: Sign
) -> None:
    """Add (or subtract) reports on an indicator, of any kind, in place.

    Parameters
    ----------
    words : ndarray of uint16, shape (n, words), or (n, days, words) of a daily indicator; as
        `ldp.keyed.words` says
    delta : Delta; its counts and reports of the indicator change
    index : int; position in the plan; d, the number of indicators, of the location
    is_unary : bool; whether a report is bits; else it is one code
    bitmaps, sign, Raises : as in `tally_static`
    """
    counts, n_reports = delta.counts[index], delta.n_reports[index]
    if is_unary:
        tally_words(bitmaps, words, counts, n_reports, sign=sign)
        return
    tally = tally_daily if words.ndim == 3 else tally_static
    tally(bitmaps, np.ascontiguousarray(words[..., 0]), counts, sign=sign)
    n_reports[:] = counts.sum(axis=0)  # a code supports exactly one value


def tally_class_reports(
    bitmaps: Bitmaps,
    words: Codes,
    delta: Delta,
    *,
    index: int,
    number: int,
    n_classes: int,
    is_unary: bool,
    sign: Sign,
) -> None:
    """Add (or subtract) reports of the people of one class on an indicator, in place.

    Parameters
    ----------
    number, n_classes : int; place of the class in the plan, and how many there are
    is_unary : bool; whether a report of this class is bits; else it is one code
    others, Raises : as of `tally_reports`
    """
    blocks = class_blocks(delta.counts[index], n_classes=n_classes)
    own = Delta(delta.visitors, delta.stays, (blocks[number, :-1],), (blocks[number, -1],))
    tally_reports(bitmaps, words, own, index=0, is_unary=is_unary, sign=sign)
    delta.n_reports[index][:] = blocks[:, -1].sum(axis=0)


def tally_visitors(bitmaps: Bitmaps, out: Counts, *, sign: Sign) -> None:
    """Add (or take away) the subscribers' presence, in place; `out` has shape (days + 1, days + 1)."""
    _check_out(out, ndim=2)
    _check_bitmaps(bitmaps, days=out.shape[-1] - 1, sign=sign)
    _tally_static(bitmaps, np.zeros(bitmaps.shape, np.uint16), out[np.newaxis], sign=sign)


def tally_stays(bitmaps: Bitmaps, out: Counts, *, tallies: Sequence[PresenceTally], sign: Sign) -> None:
    """Add (or take away) the subscribers' presence to further tallies, in place.

    Parameters
    ----------
    tallies : which ones
    out : ndarray of int64, shape (tallies, days + 1, days + 1); `ldp.estimation.tallies` explains them
    bitmaps, sign, Raises : as in `tally_static`
    """
    if len(tallies) != len(out):
        raise LdpError(f"stays must have the {len(tallies)} tallies of the plan, got {len(out)}")
    if not tallies:
        return
    _check_out(out, ndim=3)
    _check_bitmaps(bitmaps, days=out.shape[-1] - 1, sign=sign)
    kernels = {"visits": kernels_presence.tally_visits, "runs": kernels_presence.tally_runs}
    for name, counts in zip(tallies, out, strict=True):
        kernels[name](bitmaps, counts, sign)


def _tally_static(bitmaps: Bitmaps, codes: Codes, out: Counts, *, sign: int) -> None:
    """Pick the faster of two equal kernels: counting patterns pays only where most of them occur."""
    n_patterns = out.shape[0] << (out.shape[-1] - 1)
    kernel = (
        kernels.tally_patterns if n_patterns <= min(bitmaps.size, _MAX_PATTERNS) else kernels.tally_static
    )
    kernel(bitmaps, codes, out, sign)


def _check(bitmaps: Bitmaps, codes: Codes, out: Counts, *, codes_shape: tuple[int, ...], sign: int) -> None:
    _check_out(out, ndim=3)
    _check_bitmaps(bitmaps, days=out.shape[-1] - 1, sign=sign)
    if codes.dtype != np.uint16 or codes.shape != codes_shape:
        raise LdpError(f"codes must be uint16 of shape {codes_shape}, got {codes.dtype} of {codes.shape}")
    largest = kernels.max_code(codes.reshape(-1))
    if largest >= out.shape[0]:
        raise LdpError(f"code must be < domain_size {out.shape[0]} or {NO_ANSWER}, got {largest}")


def _check_asked(
    bitmaps: Bitmaps, asked: NDArray[np.uint8], codes: Codes, out: Sequence[Counts], *, sign: int
) -> NDArray[np.int64]:
    """Domain sizes, if everything fits."""
    if not out:
        raise LdpError("tallies must be of one indicator or more, got none")
    for counts in out:
        _check_out(counts, ndim=3)
    sizes = np.array([counts.shape[0] for counts in out], np.int64)
    days = {counts.shape[-1] for counts in out}
    if len(days) > 1:
        raise LdpError(f"tallies must have the same days, got {sorted(days)} rows")
    _check_bitmaps(bitmaps, days=days.pop() - 1, sign=sign)
    for name, array, dtype in (("asked", asked, np.uint8), ("codes", codes, np.uint16)):
        if array.dtype != dtype or array.shape != bitmaps.shape:
            expected = f"{np.dtype(dtype)} of shape {bitmaps.shape}"
            raise LdpError(f"{name} must be {expected}, got {array.dtype} of {array.shape}")
    if asked.size and asked.max() >= len(out):
        raise LdpError(f"asked must be < {len(out)}, got {asked.max()}")
    row = kernels.first_outside(asked, codes, sizes)
    if row >= 0:
        raise LdpError(f"code must be < domain_size {sizes[asked[row]]} or {NO_ANSWER}, got {codes[row]}")
    return sizes


def _check_out(out: Counts, *, ndim: int) -> None:
    if out.dtype != np.int64 or out.ndim != ndim or out.shape[-1] != out.shape[-2]:
        raise LdpError(
            f"tally must be int64 with {ndim} axes, the last two equal, got {out.dtype} of {out.shape}"
        )


def _check_bitmaps(bitmaps: Bitmaps, *, days: int, sign: int) -> None:
    if sign not in {1, -1}:
        raise LdpError(f"sign must be 1 or -1, got {sign}")
    if bitmaps.dtype != np.uint64 or bitmaps.ndim != 1:
        raise LdpError(f"bitmaps must be uint64 of shape (n,), got {bitmaps.dtype} of {bitmaps.shape}")
    if bitmaps.size and int(bitmaps.max()) >> days:
        raise LdpError(f"bitmap must have days 1..{days} only, got {int(bitmaps.max()):#x}")
