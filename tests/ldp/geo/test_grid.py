"""The metric grid: codes, borders, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp.errors import InvalidGridError
from ldp.geo.grid import Grid
from tests.ldp.exact import refuses

GRID = Grid(x0_m=-300, y0_m=1000, step_m=100, n_x=5, n_y=3)
origins, steps = st.integers(-20_000_000, 20_000_000), st.integers(1, 100_000)


def test_code_is_row_times_columns_plus_column() -> None:
    x_m, y_m = np.array([-250.0, -150.0, -250.0, 199.9]), np.array([1050.0, 1001.0, 1150.0, 1299.9])
    assert GRID.codes(x_m, y_m).tolist() == [0, 1, 5, 14]
    assert GRID.codes(x_m, y_m).dtype == np.uint16


def test_a_square_holds_its_lower_and_left_edge() -> None:
    edges = np.array([-300.0, -200.0, -200.0 - 1e-9])
    assert GRID.codes(edges, np.full(3, 1000.0)).tolist() == [0, 1, 0]
    assert GRID.codes(np.full(2, -300.0), np.array([1100.0, 1100.0 - 1e-9])).tolist() == [5, 0]


@pytest.mark.parametrize(
    ("x_m", "y_m", "code"),
    [(-1e300, -1e300, 0), (1e300, 1050.0, 4), (200.0, 1300.0, 14), (-50.0, 5e9, 12), (-301.0, 1150.0, 5)],
)
def test_points_outside_belong_to_the_nearest_square(x_m: float, y_m: float, code: int) -> None:
    x, y = np.array([x_m]), np.array([y_m])
    assert GRID.codes(x, y).tolist() == [code]
    centre_x, centre_y = GRID.centres()
    if abs(x_m) < 1e9 and abs(y_m) < 1e9:
        assert np.hypot(centre_x - x_m, centre_y - y_m).argmin() == code


@given(x0_m=origins, y0_m=origins, step_m=steps, n_x=st.integers(1, 255), n_y=st.integers(1, 256))
def test_middles_are_inside_and_give_their_code(**sides: int) -> None:
    grid = Grid(**sides)
    x_m, y_m = grid.centres()
    assert np.array_equal(grid.codes(x_m, y_m), np.arange(grid.n_cells))
    assert grid.shape == (sides["n_y"], sides["n_x"])
    assert Grid.from_json(grid.to_json()) == grid


@given(step_m=steps, n_x=st.integers(1, 300), n_y=st.integers(1, 200))
def test_diameter_is_the_diagonal_rounded_up(step_m: int, n_x: int, n_y: int) -> None:
    diameter = Grid(x0_m=0, y0_m=0, step_m=step_m, n_x=n_x, n_y=n_y).diameter_m
    squared = (n_x**2 + n_y**2) * step_m**2
    assert (diameter - 1) ** 2 < squared <= diameter**2


def test_bad_sides_are_refused() -> None:
    for change, message in (
        ({"step_m": 0}, "step_m must be in"),
        ({"step_m": 100_001}, "step_m must be in"),
        ({"n_x": 0}, "n_x must be in"),
        ({"n_y": -1}, "n_y must be in"),
        ({"x0_m": 20_000_001}, "x0_m must be in"),
        ({"y0_m": -20_000_001}, "y0_m must be in"),
        ({"n_x": 32_768, "n_y": 2}, r"n_x \* n_y must be in \[1, 65534\], got 65536"),
        ({"n_x": True}, "n_x must be an int, got True"),
        ({"step_m": 1.5}, "step_m must be an int, got 1.5"),
        ({"step_m": "100"}, "step_m must be an int, got '100'"),
    ):
        refuses(message, Grid.from_json, GRID.to_json() | change, error=InvalidGridError)


def test_what_is_no_grid_and_no_number_is_refused() -> None:
    for data in ({"x0_m": 1}, [1, 2], None):
        refuses("grid must be an object as to_json writes it", Grid.from_json, data, error=InvalidGridError)
    refuses("coordinates must be finite", GRID.codes, np.array([np.nan]), np.array([0.0]))
    refuses(r"one shape, got \(2,\) and \(1,\)", GRID.codes, np.zeros(2), np.zeros(1))
