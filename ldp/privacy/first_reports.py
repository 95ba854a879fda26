"""Promise of a plan about single reports: less than what all reports of a value lose together."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from ldp.errors import PlanError
from ldp.protocols.channels import check_epsilon, exact_text
from ldp.protocols.projective import PRIMES, is_prime


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstReports:
    """Noise that daily reports have on top of the lasting one, and the cells that values are hashed to.

    Parameters
    ----------
    epsilon : Fraction; of one report, below that of the answers
    cells : int or None; a prime up to 251; None = for each indicator the number with the least variance

    Raises
    ------
    InvalidBudgetError : epsilon is out of [0.000001, 64]
    PlanError : cells is no such prime
    """

    epsilon: Fraction
    cells: int | None = None

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        if self.cells is not None and not (type(self.cells) is int and is_prime(self.cells)):
            raise PlanError(f"hash_cells must be a prime number up to {PRIMES[-1]}, got {self.cells!r}")

    def to_json(self) -> dict[str, Any]:
        """Plain values; epsilon as the exact string "a/b"."""
        return {"epsilon": exact_text(self.epsilon), "cells": self.cells}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Build what `to_json` wrote; KeyError, TypeError or ValueError for anything else."""
        return cls(epsilon=Fraction(data["epsilon"]), cells=data["cells"])
