"""Gap tallies: counts by previous present day and day, from which every union of consecutive days follows.

A subscriber present on day t, and before it last on day p (0 = never), counts once at [p, t]. In a union a..b
she counts on her first day there: the only one with p < a <= t <= b. Days are numbered from 1; row 0 means no
previous day, column 0 stays empty.

A plan may ask for two more tallies of presence. `visits`: H[k, t] subscribers have their k-th present day on
t. `runs`: R[l, t] subscribers are present on t, for l days in a row so far. Row and column 0 stay empty.

Where the units are events, none has a previous day: of [p, t] there is row 0 alone, and the union of days is
the sum of their counts.
"""

import struct
import zlib
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.privacy.plans import PlanSpec

Counts = NDArray[np.int64]

_MAGIC = b"LDPD\x01"
_NOISY_MAGIC = b"LDPD\x02"  # with one more byte: the day up to which cells are noisy
_MORE_MAGIC = b"LDPD\x03"  # with one more byte: the number of further tallies of presence; none is noisy
_EVENTS_MAGIC = b"LDPD\x04"  # with two bytes of days, and one row in each tally

_HEADER = struct.Struct(">5sBB")
_EVENTS_HEADER = struct.Struct(">5sHB")


def class_blocks(counts: Counts, *, n_classes: int) -> Counts:
    """Blocks of the tally of an indicator in a plan with classes: a view, to be filled in place.

    Parameters
    ----------
    counts : ndarray of int64, shape (n_classes (k + 1), ...)

    Returns
    -------
    ndarray of int64, shape (n_classes, k + 1, ...); of each class the reports that support each of k values,
        then the number of its reports
    """
    return counts.reshape(n_classes, -1, *counts.shape[1:])


@dataclass(frozen=True, slots=True, eq=False)
class Delta:
    """Additions of one publication to the totals: presence, and per indicator counts and reports.

    A plan with locations has one more tally, the last: reports by cell of the grid. With events all arrays
    have one row in the place of days + 1. With classes a tally has a block for each (`class_blocks`).

    Parameters
    ----------
    visitors : ndarray of int64, shape (days + 1, days + 1)
    stays : ndarray of int64, shape (tallies, days + 1, days + 1); the plan's `tallies`, then the visitors of
        each of its classes
    counts : per tally ndarray of int64, shape (domain_size, days + 1, days + 1)
    n_reports : per tally ndarray of int64, shape (days + 1, days + 1)
    noisy_through : int; with presence noise the last day whose cells are in here, each with its noise; 0 =
        the counts are exact. Of parts that are added up it says nothing: anyone who adds the noise sets it
    """

    visitors: Counts
    stays: Counts
    counts: tuple[Counts, ...]
    n_reports: tuple[Counts, ...]
    noisy_through: int = 0

    @classmethod
    def zero(cls, plan: PlanSpec) -> Self:
        """Return the empty delta of a plan; its arrays may be filled in place."""
        return cls._zero(plan.tally_shape, n_stays=plan.n_stays, domain_sizes=plan.tally_sizes)

    def __add__(self, other: "Delta") -> "Delta":
        """Sum, as new arrays; LdpError if the shapes differ."""
        total = Delta(
            visitors=self.visitors.copy(),
            stays=self.stays.copy(),
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
        """Return whether adding it changes nothing."""
        return not any(array.any() for array in self._arrays())

    def pack(self) -> bytes:
        """Self-describing bytes; `unpack` gives back exactly this delta."""
        (rows, columns), n_stays, domain_sizes = self._shape()
        sizes = struct.pack(f">{len(domain_sizes)}H", *domain_sizes)
        if rows == 1:
            magic = _EVENTS_MAGIC
            header = _EVENTS_HEADER.pack(magic, columns - 1, len(domain_sizes))
        else:
            magic = _NOISY_MAGIC if self.noisy_through else _MORE_MAGIC if n_stays else _MAGIC
            header = _HEADER.pack(magic, columns - 1, len(domain_sizes))
        if magic in (_NOISY_MAGIC, _MORE_MAGIC):
            sizes += struct.pack(">B", self.noisy_through or n_stays)
        body = b"".join(array.astype("<i8").tobytes() for array in self._arrays())
        return header + sizes + zlib.compress(body, level=1)

    @classmethod
    def unpack(cls, packed: bytes, *, plan: PlanSpec | None = None) -> Self:
        """Delta that `pack` wrote; LdpError if the bytes are not a whole packed delta, or not of this plan.

        Parameters
        ----------
        plan : whose delta it must be; the header is compared with it before anything is allocated, so give it
            where the bytes come from elsewhere
        """
        magics = (_MAGIC, _NOISY_MAGIC, _MORE_MAGIC, _EVENTS_MAGIC)
        header = _EVENTS_HEADER if packed.startswith(_EVENTS_MAGIC) else _HEADER
        if len(packed) < header.size or not packed.startswith(magics):
            raise LdpError(f"packed delta must start with {_MAGIC!r}, got {packed[: len(_MAGIC)]!r}")
        magic, days, d = header.unpack_from(packed)
        body_start = header.size + 2 * d + (magic in (_NOISY_MAGIC, _MORE_MAGIC))
        if len(packed) < body_start:
            raise LdpError(f"packed delta must have at least {body_start} bytes, got {len(packed)}")
        sizes = struct.unpack_from(f">{d}H", packed, header.size)
        n_stays = packed[body_start - 1] if magic == _MORE_MAGIC else 0
        shape = (1 if magic == _EVENTS_MAGIC else days + 1, days + 1)
        found = (shape, n_stays, sizes)
        if plan is not None and found != (plan.tally_shape, plan.n_stays, plan.tally_sizes):
            raise LdpError("packed delta must have the days and the tallies of the plan, got others")
        delta = replace(
            cls._zero(shape, n_stays=n_stays, domain_sizes=sizes),
            noisy_through=packed[body_start - 1] if magic == _NOISY_MAGIC else 0,
        )
        delta._fill(packed[body_start:])
        return delta

    @classmethod
    def _zero(cls, shape: tuple[int, int], *, n_stays: int, domain_sizes: Any) -> Self:
        return cls(
            visitors=np.zeros(shape, np.int64),
            stays=np.zeros((n_stays, *shape), np.int64),
            counts=tuple(np.zeros((k, *shape), np.int64) for k in domain_sizes),
            n_reports=tuple(np.zeros(shape, np.int64) for _ in domain_sizes),
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
        return [self.visitors, *self.stays, *self.counts, *self.n_reports]

    def _shape(self) -> tuple[tuple[int, ...], int, tuple[int, ...]]:
        sizes = tuple(counts.shape[0] for counts in self.counts)
        return self.visitors.shape, self.stays.shape[0], sizes
