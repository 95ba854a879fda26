"""The flat table of an export, with the type of each column: the same names as in the CSV."""

from enum import Enum, auto
from typing import Any, Final

from reports.exports.records import CONTEXT_NAMES, ESTIMATE_NAMES, REPORT_NAMES


class Kind(Enum):
    """Type of a column; any cell may be None."""

    TEXT = auto()
    DAY = auto()  # ISO 8601, in the time zone of the study
    COUNT = auto()  # exact
    SHARE = auto()  # in [0, 1], but noise may push it out
    PEOPLE = auto()  # estimated, scaled by the market share
    NUMBER = auto()


NAMES: Final = (*REPORT_NAMES, *ESTIMATE_NAMES, *CONTEXT_NAMES)

_KINDS: Final = {
    "first_day": Kind.DAY,
    "last_day": Kind.DAY,
    "plan_version": Kind.COUNT,
    "epsilon": Kind.NUMBER,
    "n_visitors": Kind.COUNT,
    "n_reports": Kind.COUNT,
    "reports": Kind.COUNT,
    "frequency": Kind.SHARE,
    "std_error": Kind.SHARE,
    "ci_low": Kind.SHARE,
    "ci_high": Kind.SHARE,
    "consistent": Kind.SHARE,
    "visitors": Kind.PEOPLE,
    "visitors_ci_low": Kind.PEOPLE,
    "visitors_ci_high": Kind.PEOPLE,
    "ci_level": Kind.NUMBER,
}


def kind_of(name: str) -> Kind:
    """Kind of a column; text unless it is known as something else."""
    return _KINDS.get(name, Kind.TEXT)


def columns_of(rows: list[list[Any]]) -> dict[str, list[Any]]:
    """Rows of `flat_rows` as columns by name."""
    return {name: [row[place] for row in rows] for place, name in enumerate(NAMES)}
