"""Filter of unknown texts of the cell column that may be noted: those that look like a cell of the area.

A file whose columns are mixed up has identifiers where cells should be, and these must be kept nowhere. Their
form alone does not tell them from cells that are plain digits: with as many digits as an identifier has, only
what begins like a known cell is noted. A cell that the list lacks has the codes of network and place that its
neighbours have; the number of a subscriber has not.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from mobility.extracts.profiles.masking import DIGITS_OF_IDENTIFIER

LEAST_SHARED: Final = 5  # leading characters: the country and the network of a cell's global identity
MOST_OTHER: Final = 4  # characters at the end: the cell and a part of its site
CELLS_REMEMBERED: Final = 10_000
_RUN = re.compile(r"(0+|a+)")


class CellForms:
    """Forms of known cells: where their runs of digits and of letters are, and how long they may be.

    >>> forms = CellForms(["FR-101", "FR-2000", "208011234512345"])
    >>> [forms.has(text) for text in ("FR-999", "33612345678", "208011234519999", "208019876543210")]
    [True, False, True, False]
    """

    def __init__(self, cells: Iterable[str]) -> None:
        cells = list(cells)
        self._lengths: dict[str, tuple[int, int]] = {}
        # An area may have 100,000 cells, of which few differ in the classes of their characters.
        for classes in {cell.translate(_CLASSES) for cell in cells}:
            form, length = _form_of(classes), len(classes)
            shortest, longest = self._lengths.get(form, (length, length))
            self._lengths[form] = (min(shortest, length), max(longest, length))
        self._beginnings = {(len(cell), _beginning(cell)) for cell in cells}
        self.has = lru_cache(maxsize=CELLS_REMEMBERED)(self._has)  # the same few come again in every block

    def _has(self, text: str) -> bool:
        """Return whether `text` has the form and length of a known cell, and the beginning of a long one."""
        classes = text.translate(_CLASSES)
        shortest, longest = self._lengths.get(_form_of(classes), (1, 0))
        if not shortest <= len(text) <= longest:
            return False
        return classes.count("0") < DIGITS_OF_IDENTIFIER or (len(text), _beginning(text)) in self._beginnings


class _CharacterClasses(dict[int, str]):
    """0 for every digit, a for every letter; other characters stand for themselves."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        self[code] = "0" if char.isdigit() else "a" if char.isalpha() else char
        return self[code]


_CLASSES = _CharacterClasses()


def _form_of(classes: str) -> str:
    return _RUN.sub(lambda run: run[0][0], classes)


def _beginning(text: str) -> str:
    """Return the part that a cell of the same place must share with `text`."""
    return text[: max(LEAST_SHARED, len(text) - MOST_OTHER)]
