"""Headers of the pages of a Parquet file, read before the pages are.

A reader of Parquet allocates what a page's header says, and a page can be a thousand times larger than its
bytes in the file.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_noop as _

from mobility.base.errors import BatchFormatError
from mobility.extracts.readers.compression import Buffered
from mobility.extracts.readers.parquet_footer import Chunk, RowGroup
from mobility.extracts.readers.thrift import NoPageError, Thrift

MAX_OPEN_BYTES = 256 << 20  # of the columns that are read side by side
MAX_PAGES = 100_000  # of a column in a row group: writers make some hundred
HEADER_BYTES = 512  # enough for most; statistics in a header can be long
MAX_HEADER_BYTES = 1 << 20
_MAX_PACKED_BYTES = (1 << 31) - 1  # of the format; places beyond 63 bits cannot be read
_DICTIONARY_PAGE = 2
_DICTIONARY_ENCODINGS = (2, 8)
# Fields of a page header, and the place of the encoding in the headers of data pages (version 1 and 2).
_TYPE, _PLAIN_BYTES, _PACKED_BYTES = 1, 2, 3
_OF_DICTIONARY, _N_VALUES = 7, 1
_ENCODINGS = ((5, 2), (8, 4))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """Facts of all pages that are read.

    by_place : names of the columns all of whose values are places in a dictionary
    plain_bytes : of all values, about, as a reader holds them
    """

    by_place: set[str]
    plain_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page: its plain bytes, and whether its values are places in the dictionary (or are it).

    value_bytes : of a value of a dictionary, on average
    """

    plain_bytes: int
    value_bytes: float
    is_dictionary: bool
    has_places: bool


def check_pages(
    file: Buffered,
    *,
    row_groups: Sequence[RowGroup],
    columns: dict[str, int],
    groups: range,
    max_bytes: int | None = None,
) -> Pages:
    """Read the headers of all pages before any page is.

    Parameters
    ----------
    row_groups : all of the file
    columns : place of each wanted column in the file
    groups : the row groups to read
    max_bytes : of plain pages that are open side by side; None = MAX_OPEN_BYTES

    Raises
    ------
    BatchFormatError : the pages would need more memory than any extract should, or are none
    """
    by_place = set(columns)
    as_places, as_values = Counter[str](), Counter[str]()  # bytes of each column, read as one or the other
    limit = MAX_OPEN_BYTES if max_bytes is None else max_bytes
    for number in groups:
        group = row_groups[number]
        if not group.n_rows:  # nothing of it is read, and its places may be anything
            continue
        needed = 0
        for name, index in columns.items():
            dictionary_bytes = values_bytes = pages_bytes = 0
            value_bytes = 0.0
            for n_pages, page in enumerate(_pages(file, chunk=group.columns[index]), start=1):
                if n_pages > MAX_PAGES:
                    raise BatchFormatError(
                        _(
                            "column %(name)s has more than %(limit)s pages in row group %(group)s of the "
                            "Parquet file: write pages of about 1 MB"
                        ),
                        name=[name],
                        limit=str(MAX_PAGES),
                        group=str(number + 1),
                    )
                pages_bytes += page.plain_bytes
                value_bytes = max(value_bytes, page.value_bytes)
                if page.is_dictionary:
                    dictionary_bytes = max(dictionary_bytes, page.plain_bytes)
                else:
                    values_bytes = max(values_bytes, page.plain_bytes)
                if not page.has_places:
                    by_place.discard(name)
            needed += dictionary_bytes + values_bytes
            as_places[name] += pages_bytes
            as_values[name] += max(pages_bytes, int(value_bytes * group.n_rows))
        if needed > limit:
            raise BatchFormatError(
                _(
                    "row group %(group)s of the Parquet file has pages of %(size)s MiB, more than %(limit)s: "
                    "write pages of about 1 MB"
                ),
                group=str(number + 1),
                size=str(needed >> 20),
                limit=str(limit >> 20),
            )
    plain_bytes = sum((as_places if name in by_place else as_values)[name] for name in columns)
    return Pages(by_place=by_place, plain_bytes=plain_bytes)


def _pages(file: Buffered, *, chunk: Chunk) -> Iterator[Page]:
    at = chunk.data_page
    if chunk.dictionary_page is not None and 0 < chunk.dictionary_page < at:
        at = chunk.dictionary_page
    end = at + chunk.n_bytes
    if at < 0:
        raise NoPageError
    while at < end:
        header, length = _header(file, at)
        plain, packed = header.get(_PLAIN_BYTES), header.get(_PACKED_BYTES)
        if not isinstance(plain, int) or not isinstance(packed, int):
            raise NoPageError
        if plain < 0 or not 0 <= packed <= _MAX_PACKED_BYTES or at + length + packed > end:
            raise NoPageError
        is_dictionary = header.get(_TYPE) == _DICTIONARY_PAGE
        has_places = is_dictionary or _encoding(header) in _DICTIONARY_ENCODINGS
        yield Page(
            plain_bytes=plain,
            value_bytes=plain / _n_values(header) if is_dictionary else 0.0,
            is_dictionary=is_dictionary,
            has_places=has_places,
        )
        at += length + packed


def _n_values(header: dict[int, Any]) -> int:
    """Return how many values a page of a dictionary says it has, at least one."""
    about = header.get(_OF_DICTIONARY)
    n_values = about.get(_N_VALUES) if isinstance(about, dict) else None
    return max(n_values, 1) if isinstance(n_values, int) else 1


def _encoding(header: dict[int, Any]) -> int | None:
    for field, place in _ENCODINGS:
        if isinstance(header.get(field), dict):
            encoding = header[field].get(place)
            return encoding if isinstance(encoding, int) else None
    return None


def _header(file: Buffered, at: int) -> tuple[dict[int, Any], int]:
    """Fields of the page header at this place, and its length."""
    size = HEADER_BYTES
    while size <= MAX_HEADER_BYTES:
        file.seek(at)
        data = file.read(size)
        thrift = Thrift(data)
        try:
            return thrift.struct(), thrift.at
        except IndexError:
            if len(data) < size:
                break
            size *= 8
    raise NoPageError
