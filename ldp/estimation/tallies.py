"""Gap tallies: counts by previous present day and day, from which every union of consecutive days follows.

A subscriber present on day t, and before it last on day p (0 = never), counts once at [p, t]. In a union a..b
she counts on her first day there: the only one with p < a <= t <= b. Days are numbered from 1; row 0 means no
previous day, column 0 stays empty.

A plan may ask for two more tallies of presence. `visits`: H[k, t] subscribers have their k-th present day on
t. `runs`: R[l, t] subscribers are present on t, for l days in a row so far. Row and column 0 stay empty.
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

_HEADER = struct.Struct(">5sBB")


@dataclass(frozen=True, slots=True, eq=False)
class Delta:
    """Additions of one publication to the totals: presence, and per indicator counts and reports.

    A plan with locations has one more tally, the last: reports by cell of the grid.

    Parameters
    ----------
    visitors : ndarray of int64, shape (days + 1, days + 1)
    stays : ndarray of int64, shape (tallies, days + 1, days + 1); the plan's `tallies`
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
        return cls._zero(days=plan.days, n_stays=len(plan.tallies), domain_sizes=plan.tally_sizes)

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
        days, n_stays, domain_sizes = self._shape()
        magic = _NOISY_MAGIC if self.noisy_through else _MORE_MAGIC if n_stays else _MAGIC
        header = _HEADER.pack(magic, days, len(domain_sizes))
        sizes = struct.pack(f">{len(domain_sizes)}H", *domain_sizes)
        if magic != _MAGIC:
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
        if len(packed) < _HEADER.size or not packed.startswith((_MAGIC, _NOISY_MAGIC, _MORE_MAGIC)):
            raise LdpError(f"packed delta must start with {_MAGIC!r}, got {packed[: len(_MAGIC)]!r}")
        magic, days, d = _HEADER.unpack_from(packed)
        body_start = _HEADER.size + 2 * d + (magic != _MAGIC)
        if len(packed) < body_start:
            raise LdpError(f"packed delta must have at least {body_start} bytes, got {len(packed)}")
        sizes = struct.unpack_from(f">{d}H", packed, _HEADER.size)
        n_stays = packed[body_start - 1] if magic == _MORE_MAGIC else 0
        found = (days, n_stays, sizes)
        if plan is not None and found != (plan.days, len(plan.tallies), plan.tally_sizes):
            raise LdpError("packed delta must have the days and the tallies of the plan, got others")
        delta = replace(
            cls._zero(days=days, n_stays=n_stays, domain_sizes=sizes),
            noisy_through=packed[body_start - 1] if magic == _NOISY_MAGIC else 0,
        )
        delta._fill(packed[body_start:])
        return delta

    @classmethod
    def _zero(cls, *, days: int, n_stays: int, domain_sizes: Any) -> Self:
        square = (days + 1, days + 1)
        return cls(
            visitors=np.zeros(square, np.int64),
            stays=np.zeros((n_stays, *square), np.int64),
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
        return [self.visitors, *self.stays, *self.counts, *self.n_reports]

    def _shape(self) -> tuple[int, int, tuple[int, ...]]:
        sizes = tuple(counts.shape[0] for counts in self.counts)
        return self.visitors.shape[0] - 1, self.stays.shape[0], sizes
