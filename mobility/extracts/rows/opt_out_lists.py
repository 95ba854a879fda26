"""Lists of people who must not be counted: one subscriber on each line, with or without a header."""

import io
from collections.abc import Iterator
from dataclasses import replace
from typing import BinaryIO

import numba
import numpy as np
from django.utils.translation import gettext_noop as _
from numpy.typing import NDArray

from mobility.base.errors import BatchFormatError
from mobility.extracts.readers import Layout, RowBlock, Source, Texts
from mobility.extracts.readers.compression import PARQUET_MAGIC, buffered, with_head
from mobility.extracts.readers.csv import read_csv
from mobility.extracts.readers.header import UTF8_BOM
from mobility.extracts.readers.opening import plain_text
from mobility.extracts.rows.counts import RowCounts
from mobility.extracts.rows.lookups import pseudonyms_of, trimmed

LONGEST_BYTES = 256  # of an identifier; what is longer is another file
_NAME = "subscriber"
_FOREIGN = np.frombuffer(b',;\t|"', np.uint8)


def read_list(
    stream: BinaryIO | io.RawIOBase, *, name: str, source: Source | None = None
) -> Iterator[RowBlock]:
    """Blocks of a list, with the one column `name`; a first line that says just that is a header,
    in any case.

    A line that holds a delimiter or a quote, or is too long for an identifier, counts as misshapen; quotes
    around the whole of it are taken away.

    Raises
    ------
    BatchFormatError : the file is no text, or damaged; never shows content
    """
    source = Source() if source is None else source
    head, whole = with_head(buffered(stream))
    if head.startswith(PARQUET_MAGIC):
        raise BatchFormatError(
            _("the file is a Parquet file: send the opt-out list as text, with one subscriber on each line")
        )
    head, plain = with_head(plain_text(whole, head=head, source=source))
    mark = UTF8_BOM if head.startswith(UTF8_BOM) else b""
    plain.read(len(mark))
    is_first = True
    header, layout = mark + _NAME.encode(), Layout(columns=(_NAME,))
    for block in read_csv(plain, layout=layout, source=source, header=header):
        source.delimiter = ""
        texts, lines = trimmed(block.texts(_NAME)), block.lines
        if is_first and len(lines):
            is_first = False
            if _is_header(texts, name):
                texts, lines = texts.of_rows(np.arange(1, len(lines))), lines[1:]
        yield _without_misfits(replace(block, columns={name: texts}, lines=lines), texts, name)


def _is_header(texts: Texts, name: str) -> bool:
    (first,) = texts.of_rows(np.array([0])).to_list()
    return first.decode(errors="replace").casefold() == name.casefold()


def _without_misfits(block: RowBlock, texts: Texts, name: str) -> RowBlock:
    fits = np.ones(len(texts), np.bool_)
    _find_misfits(texts.data, texts.begins, texts.ends, _FOREIGN, LONGEST_BYTES, fits)
    if fits.all():
        return block
    return replace(
        block,
        columns={name: texts.of_rows(fits)},
        lines=block.lines[fits],
        misshapen=np.sort(np.concatenate([block.misshapen, block.lines[~fits]])),
    )


@numba.njit(cache=True, nogil=True)
def _find_misfits(data, begins, ends, foreign, longest, fits):  # type: ignore[no-untyped-def]
    for row in range(len(begins)):
        fits[row] = ends[row] - begins[row] <= longest
        for at in range(begins[row], ends[row]):
            for byte in foreign:
                fits[row] &= data[at] != byte


def opted_out_of(
    block: RowBlock, counts: RowCounts, *, name: str, pseudonym_key: bytes
) -> NDArray[np.uint64]:
    """Pseudonyms of the rows of a block of a list; `counts` grows by all its rows."""
    found = RowCounts(rows_read=block.n_rows, n_lines=block.n_lines)
    found.reject("wrong_columns", block.misshapen)
    found.reject("bad_text", block.bad_text)
    pseudonyms = pseudonyms_of(block.texts(name), pseudonym_key)
    found.reject("empty_subscriber", block.lines[pseudonyms.is_empty])
    found.accepted = int((~pseudonyms.is_empty).sum())
    counts.join(found)
    return pseudonyms.values[~pseudonyms.is_empty]
