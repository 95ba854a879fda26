"""Headers of the pages of a Parquet file, read before the pages are.

A reader of Parquet allocates what a page's header says, and a page can be a thousand times larger than its
bytes in the file. Headers are Thrift structs in the compact protocol (parquet.thrift of the format).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow.parquet as pq

from mobility.base.errors import BatchFormatError
from mobility.extracts.readers.compression import Buffered

MAX_OPEN_BYTES = 256 << 20  # of the columns that are read side by side
MAX_PAGES = 100_000  # of a column in a row group: writers make some hundred
HEADER_BYTES = 512  # enough for most; statistics in a header can be long
MAX_HEADER_BYTES = 1 << 20
_DICTIONARY_PAGE = 2
_DICTIONARY_ENCODINGS = (2, 8)
_MAX_DEPTH = 8
# Fields of a page header, and the place of the encoding in the headers of data pages (version 1 and 2).
_TYPE, _PLAIN_BYTES, _PACKED_BYTES = 1, 2, 3
_ENCODINGS = ((5, 2), (8, 4))


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page: its plain bytes, and whether its values are places in the dictionary (or are it)."""

    plain_bytes: int
    is_dictionary: bool
    has_places: bool


def check_pages(
    file: Buffered,
    *,
    metadata: pq.FileMetaData,
    columns: dict[str, int],
    groups: range,
    max_bytes: int | None = None,
) -> set[str]:
    """Names of the columns all of whose values are places in a dictionary.

    Parameters
    ----------
    columns : place of each wanted column in the file
    groups : the row groups to read
    max_bytes : of plain pages that are open side by side; None = MAX_OPEN_BYTES

    Raises
    ------
    BatchFormatError : the pages would need more memory than any extract should, or are none
    """
    by_place = set(columns)
    limit = MAX_OPEN_BYTES if max_bytes is None else max_bytes
    for number in groups:
        group = metadata.row_group(number)
        if not group.num_rows:  # nothing of it is read, and its places may be anything
            continue
        needed = 0
        for name, index in columns.items():
            dictionary_bytes = values_bytes = 0
            for n_pages, page in enumerate(_pages(file, chunk=group.column(index)), start=1):
                if n_pages > MAX_PAGES:
                    raise BatchFormatError(
                        f"column {name!r} has more than {MAX_PAGES} pages in row group {number + 1} "
                        "of the Parquet file: write pages of about 1 MB"
                    )
                if page.is_dictionary:
                    dictionary_bytes = max(dictionary_bytes, page.plain_bytes)
                else:
                    values_bytes = max(values_bytes, page.plain_bytes)
                if not page.has_places:
                    by_place.discard(name)
            needed += dictionary_bytes + values_bytes
        if needed > limit:
            raise BatchFormatError(
                f"row group {number + 1} of the Parquet file has pages of {needed >> 20} MiB, more "
                f"than {limit >> 20}: write pages of about 1 MB"
            )
    return by_place


def _pages(file: Buffered, *, chunk: pq.ColumnChunkMetaData) -> Iterator[Page]:
    at = chunk.data_page_offset
    if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < at:
        at = chunk.dictionary_page_offset
    end = at + chunk.total_compressed_size
    if at < 0:
        raise NoPageError
    while at < end:
        header, length = _header(file, at)
        plain, packed = header.get(_PLAIN_BYTES), header.get(_PACKED_BYTES)
        if not isinstance(plain, int) or not isinstance(packed, int):
            raise NoPageError
        if plain < 0 or packed < 0 or at + length + packed > end:
            raise NoPageError
        is_dictionary = header.get(_TYPE) == _DICTIONARY_PAGE
        has_places = is_dictionary or _encoding(header) in _DICTIONARY_ENCODINGS
        yield Page(plain_bytes=plain, is_dictionary=is_dictionary, has_places=has_places)
        at += length + packed


def _encoding(header: dict[int, Any]) -> int | None:
    for field, place in _ENCODINGS:
        if isinstance(header.get(field), dict):
            encoding = header[field].get(place)
            return encoding if isinstance(encoding, int) else None
    return None


class NoPageError(Exception):
    """The header of a page is invalid."""


def _header(file: Buffered, at: int) -> tuple[dict[int, Any], int]:
    """Fields of the page header at this place, and its length."""
    size = HEADER_BYTES
    while size <= MAX_HEADER_BYTES:
        file.seek(at)
        data = file.read(size)
        thrift = _Thrift(data)
        try:
            return thrift.struct(), thrift.at
        except IndexError:
            if len(data) < size:
                break
            size *= 8
    raise NoPageError


@dataclass(slots=True)
class _Thrift:
    """The compact protocol, as far as page headers need it; IndexError where the data ends."""

    data: bytes
    at: int = 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """Whole numbers and structs by field; other values are passed over."""
        if depth > _MAX_DEPTH:
            raise NoPageError
        fields: dict[int, Any] = {}
        field = 0
        while head := self._byte():
            field = field + (head >> 4) if head >> 4 else self._integer()
            fields[field] = self._value(head & 15, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
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
        head = self._byte()
        count = head >> 4 if head >> 4 < 15 else self._varint()
        for _ in range(count):
            # A truth value has its own byte here.
            self._value(3 if head & 15 in (1, 2) else head & 15, depth + 1)

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
