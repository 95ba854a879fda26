"""Gap tallies: counts by previous present day and day, from which every union of consecutive days follows.

A subscriber present on day t, and before it last on day p (0 = never), counts once at [p, t]. In a union a..b
she counts on her first day there: the only one with p < a <= t <= b. Days are numbered from 1; row 0 means no
previous day, column 0 stays empty.
"""

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.estimation.unions import all_unions, union
from ldp.kernels import codes as kernels
from ldp.kernels import words as kernels_words
from ldp.kernels.codes import NO_ANSWER
from ldp.privacy.plans import PlanSpec

__all__ = [
    "NO_ANSWER",
    "Delta",
    "all_unions",
    "tally_asked",
    "tally_daily",
    "tally_daily_words",
    "tally_reports",
    "tally_static",
    "tally_static_words",
    "tally_visitors",
    "union",
]

Counts = NDArray[np.int64]
Bitmaps = NDArray[np.uint64]
Codes = NDArray[np.uint16]
Sign = Literal[1, -1]

_MAGIC = b"LDPD\x01"
_NOISY_MAGIC = b"LDPD\x02"  # with one more byte: the day up to which cells are noisy
_MAX_PATTERNS = 2**16  # counters of half a megabyte still stay in the cache

_HEADER = struct.Struct(">5sBB")


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


def tally_static_words(
    bitmaps: Bitmaps, words: Codes, counts: Counts, n_reports: Counts, *, sign: Sign
) -> None:
    """As `tally_static`, of reports with one bit per value: each bit that is one counts for its value.

    Parameters
    ----------
    words : ndarray of uint16, shape (n, words); 15 bits each, or NO_ANSWER (`ldp.keyed.words`)
    counts : ndarray of int64, shape (domain_size, days + 1, days + 1); [value, previous day, day]
    n_reports : ndarray of int64, shape (days + 1, days + 1); every report once, whatever it supports
    bitmaps, sign, Raises : as in `tally_static`
    """
    _tally_words(bitmaps, words[:, np.newaxis], counts, n_reports, rows=1, sign=sign)


def tally_daily_words(
    bitmaps: Bitmaps, words: Codes, counts: Counts, n_reports: Counts, *, sign: Sign
) -> None:
    """As `tally_daily`, of reports with one bit per value.

    Parameters
    ----------
    words : ndarray of uint16, shape (n, days, words); report of day t in row t-1; ignored where absent
    bitmaps, counts, n_reports, sign, Raises : as in `tally_static_words`
    """
    _tally_words(bitmaps, words, counts, n_reports, rows=counts.shape[-1] - 1, sign=sign)


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
    bitmaps: Bitmaps, words: Codes, delta: "Delta", *, index: int, is_unary: bool, sign: Sign
) -> None:
    """Add (or take away) reports on an indicator, whatever they are, in place.

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
    is_daily = words.ndim == 3
    if is_unary:
        tally_words = tally_daily_words if is_daily else tally_static_words
        tally_words(bitmaps, words, counts, n_reports, sign=sign)
        return
    tally = tally_daily if is_daily else tally_static
    tally(bitmaps, np.ascontiguousarray(words[..., 0]), counts, sign=sign)
    n_reports[:] = counts.sum(axis=0)  # a code supports exactly one value


def tally_visitors(bitmaps: Bitmaps, out: Counts, *, sign: Sign) -> None:
    """Add (or take away) the subscribers' presence, in place; `out` has shape (days + 1, days + 1)."""
    _check_out(out, ndim=2)
    _check_bitmaps(bitmaps, days=out.shape[-1] - 1, sign=sign)
    _tally_static(bitmaps, np.zeros(bitmaps.shape, np.uint16), out[np.newaxis], sign=sign)


@dataclass(frozen=True, slots=True, eq=False)
class Delta:
    """What one publication adds to the totals: visitors, and per indicator counts and reports.

    A plan with locations has one more tally, the last: reports by cell of the grid.

    Parameters
    ----------
    visitors : ndarray of int64, shape (days + 1, days + 1)
    counts : per tally ndarray of int64, shape (domain_size, days + 1, days + 1)
    n_reports : per tally ndarray of int64, shape (days + 1, days + 1)
    noisy_through : int; with presence noise the last day whose cells are in here, each with its noise; 0 =
        the counts are exact. Of parts that are added up it says nothing: whoever adds the noise sets it
    """

    visitors: Counts
    counts: tuple[Counts, ...]
    n_reports: tuple[Counts, ...]
    noisy_through: int = 0

    @classmethod
    def zero(cls, plan: PlanSpec) -> Self:
        """Return the empty delta of a plan; its arrays may be filled in place."""
        return cls._zero(days=plan.days, domain_sizes=plan.tally_sizes)

    def __add__(self, other: "Delta") -> "Delta":
        """Sum, as new arrays; LdpError if the shapes differ."""
        total = Delta(
            visitors=self.visitors.copy(),
            counts=tuple(array.copy() for array in self.counts),
            n_reports=tuple(array.copy() for array in self.n_reports),
        )
        total.add(other)
        return total

    def add(self, other: "Delta") -> None:
        """Add another delta to the arrays of this one, in place; LdpError if the shapes differ."""
        if self._shape() != other._shape():
            raise LdpError(f"deltas must have the same shape, got {self._shape()} and {other._shape()}")
        for mine, theirs in zip(self._arrays(), other._arrays(), strict=True):
            np.add(mine, theirs, out=mine)

    @property
    def is_zero(self) -> bool:
        """Whether adding it changes nothing."""
        return not any(array.any() for array in self._arrays())

    def pack(self) -> bytes:
        """Self-describing bytes; `unpack` gives back exactly this delta."""
        days, domain_sizes = self._shape()
        header = _HEADER.pack(_NOISY_MAGIC if self.noisy_through else _MAGIC, days, len(domain_sizes))
        sizes = struct.pack(f">{len(domain_sizes)}H", *domain_sizes)
        if self.noisy_through:
            sizes += struct.pack(">B", self.noisy_through)
        body = b"".join(array.astype("<i8").tobytes() for array in self._arrays())
        return header + sizes + zlib.compress(body, level=1)

    @classmethod
    def unpack(cls, packed: bytes, *, plan: PlanSpec | None = None) -> Self:
        """Delta that `pack` wrote.

        Parameters
        ----------
        plan : whose delta it must be; the header is compared with it before anything is allocated, so give it
            where the bytes come from elsewhere

        Raises
        ------
        LdpError : the bytes are not a whole packed delta, or not of this plan
        """
        if len(packed) < _HEADER.size or not packed.startswith((_MAGIC, _NOISY_MAGIC)):
            raise LdpError(f"packed delta must start with {_MAGIC!r}, got {packed[: len(_MAGIC)]!r}")
        magic, days, d = _HEADER.unpack_from(packed)
        is_noisy = magic == _NOISY_MAGIC
        body_start = _HEADER.size + 2 * d + is_noisy
        if len(packed) < body_start:
            raise LdpError(f"packed delta must have at least {body_start} bytes, got {len(packed)}")
        sizes = struct.unpack_from(f">{d}H", packed, _HEADER.size)
        if plan is not None and (days, sizes) != (plan.days, plan.tally_sizes):
            raise LdpError("packed delta must have the days and the tallies of the plan, got others")
        delta = replace(
            cls._zero(days=days, domain_sizes=sizes), noisy_through=packed[body_start - 1] if is_noisy else 0
        )
        delta._fill(packed[body_start:])
        return delta

    @classmethod
    def _zero(cls, *, days: int, domain_sizes: Any) -> Self:
        square = (days + 1, days + 1)
        return cls(
            visitors=np.zeros(square, np.int64),
            counts=tuple(np.zeros((k, *square), np.int64) for k in domain_sizes),
            n_reports=tuple(np.zeros(square, np.int64) for _ in domain_sizes),
        )

    def _fill(self, compressed: bytes) -> None:
        """Read the arrays from the body; never inflates more than they hold."""
        expected = sum(array.nbytes for array in self._arrays())
        inflater = zlib.decompressobj()
        try:
            body = inflater.decompress(compressed, expected + 1)
        except zlib.error as error:
            raise LdpError(f"packed delta must hold compressed counts, got {error}") from error
        if len(body) != expected or not inflater.eof or inflater.unused_data:
            raise LdpError(f"packed delta must hold {expected} bytes of counts, got {len(body)} or more")
        offset = 0
        for array in self._arrays():
            array[...] = np.frombuffer(body, "<i8", count=array.size, offset=offset).reshape(array.shape)
            offset += array.nbytes

    def _arrays(self) -> list[Counts]:
        return [self.visitors, *self.counts, *self.n_reports]

    def _shape(self) -> tuple[int, tuple[int, ...]]:
        return self.visitors.shape[0] - 1, tuple(counts.shape[0] for counts in self.counts)


def _tally_static(bitmaps: Bitmaps, codes: Codes, out: Counts, *, sign: int) -> None:
    """Pick the faster of two equal kernels: counting patterns pays only where most of them occur."""
    n_patterns = out.shape[0] << (out.shape[-1] - 1)
    kernel = (
        kernels.tally_patterns if n_patterns <= min(bitmaps.size, _MAX_PATTERNS) else kernels.tally_static
    )
    kernel(bitmaps, codes, out, sign)


def _tally_words(
    bitmaps: Bitmaps, words: Codes, counts: Counts, n_reports: Counts, *, rows: int, sign: int
) -> None:
    _check_out(counts, ndim=3)
    _check_out(n_reports, ndim=2)
    _check_bitmaps(bitmaps, days=counts.shape[-1] - 1, sign=sign)
    if n_reports.shape != counts.shape[1:]:
        raise LdpError(f"n_reports must have shape {counts.shape[1:]}, got {n_reports.shape}")
    shape = (bitmaps.shape[0], rows, -(-counts.shape[0] // kernels_words.BITS))
    if words.dtype != np.uint16 or words.shape != shape:
        raise LdpError(f"words must be uint16 of shape {shape}, got {words.dtype} of {words.shape}")
    broken = kernels_words.count_broken(words.reshape(-1, shape[-1]), counts.shape[0])
    if broken:
        raise LdpError(f"words must hold bits of {counts.shape[0]} values, or none, got {broken} that do not")
    kernels_words.tally_words(bitmaps, np.ascontiguousarray(words), counts, n_reports, sign)


def _check(bitmaps: Bitmaps, codes: Codes, out: Counts, *, codes_shape: tuple[int, ...], sign: int) -> None:
    _check_out(out, ndim=3)
    _check_bitmaps(bitmaps, days=out.shape[-1] - 1, sign=sign)
    if codes.dtype != np.uint16 or codes.shape != codes_shape:
        raise LdpError(f"codes must be uint16 of shape {codes_shape}, got {codes.dtype} of {codes.shape}")
    largest = kernels.max_code(codes)
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
