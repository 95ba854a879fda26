"""Counts of some consecutive slots by zone, as one publication brings them."""

import struct
import zlib
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError

_MAGIC: Final = b"SLOTS1"
_HEADER: Final = struct.Struct(">6sIIH")  # magic, first slot, slots, zones


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotCounts:
    """People of each zone in some slots; of the plan's noise they hold all or nothing.

    first_slot : number in the study of the first of them, from 0
    counts : int64, shape (slots, zones); with noise some are below zero
    """

    first_slot: int
    counts: NDArray[np.int64]

    def pack(self) -> bytes:
        """Self-describing bytes; `unpack` gives back exactly these counts."""
        header = _HEADER.pack(_MAGIC, self.first_slot, *self.counts.shape)
        return header + zlib.compress(self.counts.astype("<i8").tobytes(), level=1)

    @classmethod
    def unpack(cls, packed: bytes, *, slots: int, zones: int) -> Self:
        """Read what `pack` wrote.

        Parameters
        ----------
        slots, zones : of the study; the header is compared with them before anything is allocated

        Raises
        ------
        LdpError : the bytes are not whole packed counts, or not of this study
        """
        if len(packed) < _HEADER.size or not packed.startswith(_MAGIC):
            raise LdpError(f"packed slots must start with {_MAGIC!r}, got {packed[: len(_MAGIC)]!r}")
        _, first, n_slots, n_zones = _HEADER.unpack_from(packed)
        if n_zones != zones or first + n_slots > slots:
            raise LdpError(
                f"packed slots must be of {zones} zones and end by slot {slots}, "
                f"got {n_zones} and {first + n_slots}"
            )
        expected = n_slots * n_zones * 8
        inflater = zlib.decompressobj()
        try:
            body = inflater.decompress(packed[_HEADER.size :], expected + 1)
        except zlib.error as error:
            raise LdpError(f"packed slots must hold compressed counts, got {error}") from error
        if len(body) != expected or not inflater.eof or inflater.unused_data:
            raise LdpError(f"packed slots must hold {expected} bytes of counts, got {len(body)} or more")
        counts = np.frombuffer(body, "<i8").reshape(n_slots, n_zones).astype(np.int64)
        return cls(first_slot=first, counts=counts)
