"""A metric grid over the area of a study: what a place is where locations are reported."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from math import isqrt
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from ldp.codes import NO_ANSWER
from ldp.errors import InvalidGridError, LdpError

MAX_CELLS: Final = NO_ANSWER - 1  # a code is a uint16; the two largest mean "drawn again" and "no answer"
MAX_STEP_M: Final = 100_000
MAX_COORDINATE_M: Final = 20_000_000  # half of the equator: no projection of metres goes beyond it

Metres = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Squares of one size, in metres of the study's local projection, which the library does not know.

    The code of a square is ``row * n_x + column``; rows go north from y0_m, columns east from x0_m. A square
    holds its lower and left edge.

    Parameters
    ----------
    x0_m, y0_m : int; lower left corner, in [-20_000_000, 20_000_000]
    step_m : int; side of a square, in [1, 100_000]
    n_x, n_y : int; columns and rows, at least 1 each, with n_x * n_y <= 65_534

    Raises
    ------
    InvalidGridError : a number is not an int, or out of range
    """

    x0_m: int
    y0_m: int
    step_m: int
    n_x: int
    n_y: int

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if type(value) is not int:  # True is an int, and 1.5 would make codes of no square
                raise InvalidGridError(f"{field.name} must be an int, got {value!r}")
        for name in ("x0_m", "y0_m"):
            _check_range(name, getattr(self, name), low=-MAX_COORDINATE_M, high=MAX_COORDINATE_M)
        _check_range("step_m", self.step_m, low=1, high=MAX_STEP_M)
        _check_range("n_x", self.n_x, low=1, high=MAX_CELLS)
        _check_range("n_y", self.n_y, low=1, high=MAX_CELLS)
        _check_range("n_x * n_y", self.n_cells, low=1, high=MAX_CELLS)

    @property
    def n_cells(self) -> int:
        """Number of squares; codes are in [0, n_cells)."""
        return self.n_x * self.n_y

    @property
    def shape(self) -> tuple[int, int]:
        """Return the shape of a map of the grid: (n_y, n_x), so that raveling it gives the order of codes."""
        return self.n_y, self.n_x

    @property
    def diameter_m(self) -> int:
        """Diagonal of the rectangle in metres, rounded up: no two points of the grid are further apart."""
        return isqrt((self.n_x**2 + self.n_y**2) * self.step_m**2 - 1) + 1

    def codes(self, x_m: Metres, y_m: Metres) -> NDArray[np.uint16]:
        """Code of the square of each point; of a point outside, that of the nearest square.

        Parameters
        ----------
        x_m, y_m : ndarray of float64, one shape; metres; not modified

        Returns
        -------
        ndarray of uint16, the same shape; in [0, n_cells)

        Raises
        ------
        LdpError : shapes differ, or a coordinate is not finite
        """
        if x_m.shape != y_m.shape:
            raise LdpError(f"x_m and y_m must have one shape, got {x_m.shape} and {y_m.shape}")
        columns = _nearest(x_m, start=self.x0_m, step=self.step_m, size=self.n_x)
        rows = _nearest(y_m, start=self.y0_m, step=self.step_m, size=self.n_y)
        return (rows * self.n_x + columns).astype(np.uint16)

    def centres(self) -> tuple[Metres, Metres]:
        """Coordinates (x_m, y_m) of the middle of every square, by code; float64, shape (n_cells,) each."""
        rows, columns = np.divmod(np.arange(self.n_cells), self.n_x)
        return self.x0_m + (columns + 0.5) * self.step_m, self.y0_m + (rows + 0.5) * self.step_m

    def to_json(self) -> dict[str, Any]:
        """Plain integers by name."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Build the grid that `to_json` wrote.

        InvalidGridError if a key is missing, of the wrong type, or breaks a rule.
        """
        try:
            return cls(**{field.name: data[field.name] for field in fields(cls)})
        except (KeyError, TypeError) as error:
            raise InvalidGridError(f"grid must be an object as to_json writes it, got {error!r}") from error


def _nearest(metres: Metres, *, start: int, step: int, size: int) -> NDArray[np.int64]:
    """Column, or row, that holds each coordinate, or is nearest to it."""
    if not np.isfinite(metres).all():
        raise LdpError("coordinates must be finite, got one that is not")
    # Clamped before the conversion: a large float has no int64.
    return np.clip(np.floor((metres - start) / step), 0, size - 1).astype(np.int64)


def _check_range(name: str, value: int, *, low: int, high: int) -> None:
    if not low <= value <= high:
        raise InvalidGridError(f"{name} must be in [{low}, {high}], got {value}")
