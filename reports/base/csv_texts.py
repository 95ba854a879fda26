"""Tables as CSV for people who open them in a spreadsheet."""

import csv
import io
from collections.abc import Iterable
from typing import Any

_STARTS_OF_FORMULAS = ("=", "+", "-", "@", "\t", "\r")


def csv_text(names: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Rows as CSV in which no text is a formula to a spreadsheet."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_inert(value) for value in row] for row in rows)
    return text.getvalue()


def _inert(value: Any) -> Any:
    """A text that a spreadsheet would take for a formula gets an apostrophe in front; numbers stay."""
    if isinstance(value, str) and value.startswith(_STARTS_OF_FORMULAS):
        return f"'{value}"
    return value
