"""The header of text: its delimiter and the names of its columns."""

import csv
import re
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

import numpy as np
from django.utils.translation import gettext_noop as _

from mobility.base.errors import BatchFormatError
from mobility.extracts.profiles.aliases import ATTRIBUTES, IDENTIFIERS, OPERATORS, ROLES, plain
from mobility.extracts.readers import Layout, Source
from mobility.extracts.readers.text import UTF8, encoding_of, is_bad, kinds_of_rows
from reports.base.reasons import Reason, Value
from reports.studies.studyfile.formats import DELIMITERS

UTF8_BOM = b"\xef\xbb\xbf"
MOST_SHOWN = 1000  # characters of names that a failure lists
LEAST_KNOWN: Final = 2  # one name could be the value of a category
LONGEST_NAME: Final = 40  # shorter than pseudonyms
_DIGIT: Final = re.compile(r"\d")
_KNOWN: Final = frozenset(
    plain(name) for group in (*ROLES.values(), *ATTRIBUTES, OPERATORS, IDENTIFIERS) for name in group
)
BYTES: dict[str, str] = dict(zip(DELIMITERS, ",;\t|", strict=True))


def read_header(line: bytes, *, layout: Layout, source: Source) -> tuple[int, list[str]]:
    """The delimiter's byte and the names of the columns; each of those wanted is there, once.

    Raises
    ------
    BatchFormatError : this is no header, or not of these columns
    """
    source.delimiter, names = _columns_of(_text(line, source), layout=layout)
    return ord(BYTES[source.delimiter]), names


def _text(line: bytes, source: Source) -> str:
    plain = line.removeprefix(UTF8_BOM)
    if not plain.strip():
        raise BatchFormatError(_("line 1 is empty: add a header with the column names"))
    if b"\x00" in plain:
        raise BatchFormatError(
            _("line 1: the file contains NUL bytes, so it is binary or UTF-16: send CSV in UTF-8, or Parquet")
        )
    kinds = kinds_of_rows(np.frombuffer(plain, np.uint8), *np.array([[[0]], [[len(plain)]]], np.int32))
    source.encoding = UTF8 if len(plain) < len(line) else encoding_of(kinds)
    if is_bad(kinds, encoding=source.encoding or UTF8).any():
        raise BatchFormatError(
            _(
                "line 1: the header starts with a UTF-8 byte order mark, but is not valid UTF-8: save the "
                "file as UTF-8"
            )
        )
    return plain.decode(source.encoding or UTF8)


def _columns_of(header: str, *, layout: Layout) -> tuple[str, list[str]]:
    """The delimiter and the names of the columns."""
    wanted = layout.columns
    tried: Sequence[str] = [layout.delimiter] if layout.delimiter else DELIMITERS
    names = {delimiter: _names(header, BYTES[delimiter]) for delimiter in tried}
    fitting = [delimiter for delimiter in tried if all(names[delimiter].count(name) == 1 for name in wanted)]
    if len(fitting) > 1 and len({tuple(names[delimiter]) for delimiter in fitting}) > 1:
        raise BatchFormatError(
            _("line 1: the header matches %(names)s: choose one of them in the profile"),
            names=fitting,
        )
    if fitting:
        return fitting[0], names[fitting[0]]
    likely = max(tried, key=lambda delimiter: len(names[delimiter]))
    raise _misfit(names[likely], wanted=wanted, delimiter=likely)


def _names(header: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([header], delimiter=delimiter))
    except csv.Error:
        raise BatchFormatError(
            _("line 1: the header is too long for column names: check that this is a CSV file with a header")
        ) from None


def _misfit(names: list[str], *, wanted: tuple[str, ...], delimiter: str) -> BatchFormatError:
    missing = [name for name in wanted if name not in names]
    if missing:
        facts: dict[str, Value] = {"missing": missing, "count": len(names), "separator": Reason(delimiter)}
        if _is_header(names, wanted=wanted):
            return BatchFormatError(
                _(
                    "line 1: the header has no column %(missing)s, which the profile requires; it has "
                    "%(count)s columns (separator: %(separator)s): %(found)s. Choose another profile, or "
                    "correct the header"
                ),
                **facts,
                found=shortened(names),
            )
        return BatchFormatError(
            _(
                "line 1 does not look like a header (separator: %(separator)s; fields: %(count)s). Its "
                "fields may be data, so they are not shown. The profile requires the column %(missing)s. Add "
                "a header, choose another profile or create one"
            ),
            **facts,
        )
    twice = [name for name in wanted if names.count(name) > 1]
    return BatchFormatError(
        _("line 1: column %(names)s appears more than once: rename or remove one of them"), names=twice
    )


def _is_header(names: list[str], *, wanted: tuple[str, ...]) -> bool:
    """Return whether line 1 holds names of columns: if in doubt it is a row of data, which is never shown.

    A row has a time or an identifier, and so digits.
    """
    if 2 * sum(name in names for name in wanted) >= len(wanted):
        return True
    least = LEAST_KNOWN
    if not names[-1].strip():  # after the last separator; or the last value of a row is empty
        names, least = names[:-1], LEAST_KNOWN + 1
    known = sum(name in wanted or plain(name) in _KNOWN for name in names)
    may_be_names = all(
        name.strip() and len(name) <= LONGEST_NAME and not _DIGIT.search(name) for name in names
    )
    return known >= least and may_be_names and len(set(names)) == len(names)


def shortened(names: Sequence[str]) -> list[str]:
    """The first names, as many as a failure lists."""
    lengths = accumulate(map(len, names))
    shown = [name for name, length in zip(names, lengths, strict=True) if length <= MOST_SHOWN]
    return shown if len(shown) == len(names) else [*shown, "…"]
