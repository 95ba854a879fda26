"""Thrift's compact protocol, as far as footers and page headers of Parquet need it (parquet.thrift)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_MAX_DEPTH = 8
_MAX_FIELD = (1 << 15) - 1
LONG, LIST, STRUCT = 6, 9, 12


class NoPageError(Exception):
    """The footer, or the header of a page, is invalid."""


@dataclass(slots=True)
class Thrift:
    """Values from a place of the data on; IndexError where the data ends."""

    data: bytes
    at: int = 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """Whole numbers and structs by field; other values are passed over."""
        return {field: self.value(kind, depth) for field, kind in self.fields(depth)}

    def fields(self, depth: int = 0) -> Iterator[tuple[int, int]]:
        """Number and kind of each field of a struct; the caller reads each value in turn."""
        if depth > _MAX_DEPTH:
            raise NoPageError
        field = 0
        while head := self._byte():
            field = field + (head >> 4) if head >> 4 else self._integer()
            if not 0 <= field <= _MAX_FIELD:  # other readers take 16 bits of it
                raise NoPageError
            yield field, head & 15

    def structs(self, kind: int) -> int:
        """Number of structs in the list that follows; the caller reads them. NoPageError if it is no list."""
        count, of = self._list_head()
        if kind != LIST or (count and of != STRUCT):
            raise NoPageError
        return count

    def long(self, kind: int) -> int:
        """Whole number of 64 bits; NoPageError if it is none, which other readers pass over."""
        if kind != LONG:
            raise NoPageError
        return self._integer()

    def value(self, kind: int, depth: int = 0) -> Any:
        """Whole number, truth value or struct; None of any other, which is passed over."""
        match kind:
            case 1 | 2:  # true, false
                return kind == 1
            case 3:
                return self._byte()
            case 4 | 5 | 6:
                return self._integer()
            case 7:
                return self._skip(8)
            case 8:
                return self._skip(self._varint())
            case 9 | 10:
                return self._list(depth)
            case 12:
                return self.struct(depth + 1)
            case _:
                raise NoPageError

    def _list(self, depth: int) -> None:
        if depth > _MAX_DEPTH:
            raise NoPageError
        count, kind = self._list_head()
        for _ in range(count):
            # A truth value has its own byte here.
            self.value(3 if kind in (1, 2) else kind, depth + 1)

    def _list_head(self) -> tuple[int, int]:
        head = self._byte()
        return head >> 4 if head >> 4 < 15 else self._varint(), head & 15

    def _byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def _skip(self, count: int) -> None:
        self.at += count
        if self.at > len(self.data):
            raise IndexError

    def _varint(self) -> int:
        value = self._byte()
        if value < 128:  # nearly always
            return value
        value, shift = value & 127, 7
        while shift < 70:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
        raise NoPageError

    def _integer(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
