"""State as bytes: columns of numbers, each with its bytes shuffled and compressed."""

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mobility.base.errors import SealBrokenError

Column = NDArray[Any]

_FORMAT = 2
_HEAD = struct.Struct("<BH")  # format, columns
_COLUMN = struct.Struct("<3sQQ")  # type as NumPy writes it, items, compressed bytes
# Level 1: what does not compress at once are random bits, with which no level could do more.
_CODEC = pa.Codec("zstd", compression_level=1)


def pack_columns(columns: Sequence[Column]) -> bytes:
    """Compressed bytes that `unpack_columns` reads; they must be sealed before they are stored.

    Parameters
    ----------
    columns : integers, shape (n,); n may differ
    """
    parts = [_HEAD.pack(_FORMAT, len(columns))]
    bodies = []
    for column in columns:
        body = _CODEC.compress(_shuffled(column), asbytes=True)
        parts.append(_COLUMN.pack(column.dtype.str.encode(), len(column), len(body)))
        bodies.append(body)
    return b"".join(parts + bodies)


def unpack_columns(packed: bytes) -> list[Column]:
    """Return the output of `pack_columns` as writable arrays.

    Raises
    ------
    SealBrokenError : another version of the program wrote it
    """
    version, n_columns = _HEAD.unpack_from(packed)
    if version != _FORMAT:
        raise SealBrokenError(
            f"the stored state has format {version}, but this version of the software reads "
            f"{_FORMAT}: use the version that wrote it"
        )
    heads = [_COLUMN.unpack_from(packed, _HEAD.size + i * _COLUMN.size) for i in range(n_columns)]
    at = _HEAD.size + n_columns * _COLUMN.size
    columns = []
    for dtype, n, size in heads:
        columns.append(_unshuffled(memoryview(packed)[at : at + size], np.dtype(dtype.decode()), n))
        at += size
    return columns


def steps(rising: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Differences of rising numbers, the first from 0: they take fewer bytes."""
    return np.diff(rising, prepend=np.uint64(0))


def from_steps(differences: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The rising numbers with these differences."""
    return np.cumsum(differences, dtype=np.uint64)


def _shuffled(column: Column) -> NDArray[np.uint8]:
    """First bytes of all items, then their second bytes, and so on."""
    items = np.ascontiguousarray(column).view(np.uint8).reshape(len(column), column.itemsize)
    return np.ascontiguousarray(items.T)


def _unshuffled(body: memoryview, dtype: np.dtype[Any], n: int) -> Column:
    shuffled = np.frombuffer(_CODEC.decompress(body, n * dtype.itemsize), np.uint8)
    return np.ascontiguousarray(shuffled.reshape(dtype.itemsize, n).T).view(dtype).reshape(n)
