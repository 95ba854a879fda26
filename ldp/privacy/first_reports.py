"""Promise of a plan about single reports: less than what all reports of a value lose together."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal, Self, get_args

from ldp.errors import PlanError
from ldp.protocols.channels import check_epsilon, exact_text

HashCells = Literal["two", "optimal"]

HASH_CELLS: Final[tuple[HashCells, ...]] = get_args(HashCells)


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstReports:
    """Noise that daily reports have on top of the lasting one, and the cells that values are hashed to.

    Parameters
    ----------
    epsilon : Fraction or None; of one report, below that of the answers; None = half of it
    cells : "two" (BiLOLOHA), or "optimal" (OLOLOHA): for each indicator the number with the least variance

    Raises
    ------
    InvalidBudgetError : epsilon is out of [0.000001, 64]
    PlanError : cells is neither
    """

    epsilon: Fraction | None = None
    cells: HashCells = "two"

    def __post_init__(self) -> None:
        if self.epsilon is not None:
            check_epsilon(self.epsilon)
        if self.cells not in HASH_CELLS:
            raise PlanError(f"hash_cells must be one of {', '.join(HASH_CELLS)}, got {self.cells!r}")

    @property
    def n_cells(self) -> int | None:
        """Number of cells; None where it depends on the indicator."""
        return 2 if self.cells == "two" else None

    def epsilon_of(self, answer: Fraction) -> Fraction:
        """Return the epsilon of one report, from that of an answer that is kept."""
        return answer / 2 if self.epsilon is None else self.epsilon

    def to_json(self) -> dict[str, Any]:
        """Plain values; epsilon as the exact string "a/b", or None."""
        return {"epsilon": None if self.epsilon is None else exact_text(self.epsilon), "cells": self.cells}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Build what `to_json` wrote; KeyError, TypeError or ValueError for anything else."""
        epsilon = data["epsilon"]
        return cls(epsilon=None if epsilon is None else Fraction(epsilon), cells=data["cells"])
