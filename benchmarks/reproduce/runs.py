"""Independent runs of one experiment: their keys, their mean and its error; comparison with a paper."""

from dataclasses import dataclass
from math import hypot, sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

import ldp

MASTER: Final = b"reproduction of published tables"
TOLERANCE: Final = 3.0  # standard errors; one of 370 true claims would seem to differ

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A number with its standard error, 0 if it is exact."""

    value: float
    std_error: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Does a published number agree with ours?

    Parameters
    ----------
    published : Estimate; its error is that of as many runs as the paper has
    ours : Estimate
    """

    published: Estimate
    ours: Estimate

    @property
    def distance(self) -> float:
        """Difference in standard errors of the difference."""
        difference = abs(self.published.value - self.ours.value)
        return difference / hypot(self.published.std_error, self.ours.std_error)

    @property
    def agrees(self) -> bool:
        """Return whether chance explains the difference."""
        return self.distance <= TOLERANCE

    @property
    def verdict(self) -> str:
        """Return the verdict in words, for a table."""
        return f"{'agrees' if self.agrees else '**differs**'} ({self.distance:.1f} standard errors)"


def key(experiment: str, run: int) -> bytes:
    """Return the key of one run; no two runs of any two experiments share it."""
    return ldp.derive_subkey(MASTER, purpose=f"reproduce/{experiment}/{run}")


def prf(experiment: str, run: int) -> ldp.KeyedPrf:
    """Keyed bits of one run."""
    return ldp.KeyedPrf(key(experiment, run))


def mean(runs: Floats) -> Estimate:
    """Mean of independent runs, shape (n,), n at least 2."""
    return Estimate(value=float(runs.mean()), std_error=float(runs.std(ddof=1) / sqrt(runs.size)))


def clipped(frequency: Floats) -> Floats:
    """Post-process estimates as the papers do, unstated: no negative value, then sum 1."""
    positive = np.maximum(frequency, 0)
    total = positive.sum()
    return positive / total if total else positive
