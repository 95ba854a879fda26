"""Columns of static values: which there are, and those whose meaning depends on a second column."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from mobility.extracts.profiles.definition import Profile
from mobility.extracts.rows.events import NO_VALUE
from mobility.extracts.rows.lookups import CodeTable, NumberTable
from reports.studies.studyfile.origins import NATIONAL


class ValueColumn(NamedTuple):
    """A column of values, the place in the plan of the indicator that they are of, and its table."""

    column: str
    place: int
    table: CodeTable | NumberTable


class ValueColumns(NamedTuple):
    """The columns of a file that hold static values.

    all : those of `plain`, then columns of operators' countries
    plain : one of each indicator
    operators : place among `all` of the operators' column, by place of the visitor category that needs it
    """

    all: tuple[ValueColumn, ...]
    plain: tuple[ValueColumn, ...]
    operators: dict[int, int]

    @classmethod
    def of(
        cls, profile: Profile, indicators: Iterable[tuple[int, str]], *, empty: int = int(NO_VALUE)
    ) -> Self:
        """Take the columns that a profile names for indicators, each a place in the plan and a slug."""
        plain: list[ValueColumn] = []
        operators: list[ValueColumn] = []
        needs: list[int] = []
        for place, slug in indicators:
            if slug not in profile.columns:
                continue
            table = profile.tables[slug]
            if table.operator is not None:
                needs.append(len(plain))
                operator = CodeTable.of(table.operator, empty=empty)
                operators.append(ValueColumn(profile.operators[slug], place, operator))
            plain.append(ValueColumn(profile.columns[slug], place, CodeTable.of(table, empty=empty)))
        places = {column: len(plain) + number for number, column in enumerate(needs)}
        return cls((*plain, *operators), tuple(plain), places)

    def values(self, codes: Sequence[NDArray[np.int32]] | NDArray[np.int32]) -> list[NDArray[np.int32]]:
        """Codes of the indicators, shape (n,) each, from those of all columns."""
        found = list(codes[: len(self.plain)])
        for column, operator in self.operators.items():
            found[column] = np.where(codes[operator] == NATIONAL, codes[column], codes[operator])
        return found
