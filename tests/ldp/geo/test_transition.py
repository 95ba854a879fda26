"""The metric grid and transitions by noise: borders, integrals, and the operator against its matrix."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.integrate import dblquad

from ldp.errors import InvalidGridError
from ldp.geo.grid import Grid
from ldp.geo.transition import Transition, quadrant_probabilities
from tests.ldp.exact import refuses

SQUARES = Grid(x0_m=-300, y0_m=1000, step_m=100, n_x=5, n_y=3)
origins, steps = st.integers(-20_000_000, 20_000_000), st.integers(1, 100_000)


def test_code_is_row_times_columns_plus_column() -> None:
    x_m, y_m = np.array([-250.0, -150.0, -250.0, 199.9]), np.array([1050.0, 1001.0, 1150.0, 1299.9])
    assert SQUARES.codes(x_m, y_m).tolist() == [0, 1, 5, 14]
    assert SQUARES.codes(x_m, y_m).dtype == np.uint16


def test_a_square_holds_its_lower_and_left_edge() -> None:
    edges = np.array([-300.0, -200.0, -200.0 - 1e-9])
    assert SQUARES.codes(edges, np.full(3, 1000.0)).tolist() == [0, 1, 0]
    assert SQUARES.codes(np.full(2, -300.0), np.array([1100.0, 1100.0 - 1e-9])).tolist() == [5, 0]


@pytest.mark.parametrize(
    ("x_m", "y_m", "code"),
    [(-1e300, -1e300, 0), (1e300, 1050.0, 4), (200.0, 1300.0, 14), (-50.0, 5e9, 12), (-301.0, 1150.0, 5)],
)
def test_points_outside_belong_to_the_nearest_square(x_m: float, y_m: float, code: int) -> None:
    x, y = np.array([x_m]), np.array([y_m])
    assert SQUARES.codes(x, y).tolist() == [code]
    centre_x, centre_y = SQUARES.centres()
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
        refuses(message, Grid.from_json, SQUARES.to_json() | change, error=InvalidGridError)


def test_what_is_no_grid_and_no_number_is_refused() -> None:
    for data in ({"x0_m": 1}, [1, 2], None):
        refuses("grid must be an object as to_json writes it", Grid.from_json, data, error=InvalidGridError)
    refuses("coordinates must be finite", SQUARES.codes, np.array([np.nan]), np.array([0.0]))
    refuses(r"one shape, got \(2,\) and \(1,\)", SQUARES.codes, np.zeros(2), np.zeros(1))


Floats = NDArray[np.float64]


def small_grid(n_x: int = 7, n_y: int = 5) -> Grid:
    return Grid(x0_m=1_000, y0_m=-500, step_m=100, n_x=n_x, n_y=n_y)


def matrix(transition: Transition) -> Floats:
    n = transition.grid.n_cells
    return transition.forward(np.eye(n).reshape(n, *transition.grid.shape)).reshape(n, n)


def folded(transition: Transition) -> Floats:
    """[place, report] without a transform: chances of cells far and wide, kept by the nearest in the grid."""
    grid, steps = transition.grid, np.arange(-79, 80)
    wide = Grid(x0_m=0, y0_m=0, step_m=grid.step_m, n_x=80, n_y=80)
    far = Transition(wide, epsilon_per_m=transition.epsilon_per_m).offsets
    chances = far[np.abs(steps)[:, np.newaxis], np.abs(steps)].ravel()
    found = []
    for y, x in np.ndindex(grid.shape):
        rows, columns = np.clip(y + steps, 0, grid.n_y - 1), np.clip(x + steps, 0, grid.n_x - 1)
        reports = (rows[:, np.newaxis] * grid.n_x + columns).ravel()
        found.append(np.bincount(reports, chances, minlength=grid.n_cells))
    return np.array(found)


@pytest.mark.parametrize("epsilon_per_cell", [0.01, 0.3466, 3.0])
@pytest.mark.parametrize("offset", [(1, 0), (3, 2), (20, 11)])
def test_chance_of_a_cell_is_the_integral_of_the_density(epsilon_per_cell, offset) -> None:
    a = epsilon_per_cell
    row, column = offset

    def density(y: float, x: float) -> float:
        return float(a * a / (2 * np.pi) * np.exp(-a * np.hypot(x, y)))

    sides = column - 0.5, column + 0.5, row - 0.5, row + 0.5
    expected, _ = dblquad(density, *sides, epsabs=1e-15, epsrel=1e-13)
    grid = Grid(x0_m=0, y0_m=0, step_m=100, n_x=24, n_y=24)
    found = Transition(grid, epsilon_per_m=a / 100).offsets
    assert found[row, column] == pytest.approx(expected, rel=1e-9, abs=2e-15)
    assert found[column, row] == pytest.approx(found[row, column], abs=2e-16)


def test_chance_to_stay_is_the_integral_in_polar_coordinates() -> None:
    for a in (0.05, 0.5, 5.0):
        angles, weights = np.polynomial.legendre.leggauss(60)
        radius = a * 0.5 / np.cos((angles + 1) * np.pi / 8)
        expected = np.mean((1 - (1 + radius) * np.exp(-radius)) * weights) * 60 / 2
        beyond = quadrant_probabilities(1, a)
        assert beyond[0, 0] - 2 * beyond[0, 1] + beyond[1, 1] == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize(("n_x", "n_y"), [(7, 5), (2, 2), (2, 9), (6, 6)])
@pytest.mark.parametrize("epsilon_per_m", [0.005, 0.05])
def test_operator_is_the_folded_matrix(n_x: int, n_y: int, epsilon_per_m: float) -> None:
    transition = Transition(small_grid(n_x, n_y), epsilon_per_m=epsilon_per_m)
    np.testing.assert_allclose(matrix(transition), folded(transition), atol=1e-14)
    np.testing.assert_allclose(matrix(transition).sum(axis=1), 1, atol=1e-14)


def test_adjoint_is_the_transposed_matrix() -> None:
    transition = Transition(small_grid(), epsilon_per_m=0.004)
    n = transition.grid.n_cells
    transposed = transition.adjoint(np.eye(n).reshape(n, 5, 7)).reshape(n, n)
    np.testing.assert_allclose(transposed, matrix(transition).T, atol=1e-15)


@pytest.mark.parametrize("epsilon_per_m", [0.02, 0.002])
def test_padding_by_the_reach_of_noise_changes_nothing(epsilon_per_m: float) -> None:
    grid = Grid(x0_m=0, y0_m=0, step_m=100, n_x=120, n_y=90)
    transition = Transition(grid, epsilon_per_m=epsilon_per_m)
    spike = np.zeros(grid.shape)
    spike[2, 3] = 1
    reports = transition.forward(spike)
    np.testing.assert_allclose(reports[4:-1, 5:-1], transition.offsets[2:87, 2:116], atol=1e-15)
    rng = np.random.default_rng(1)
    density, weights = rng.random(grid.shape), rng.normal(size=grid.shape)
    there, back = transition.forward(density) * weights, density * transition.adjoint(weights)
    assert there.sum() == pytest.approx(back.sum(), rel=1e-12)
    np.testing.assert_allclose(transition.adjoint(np.ones(grid.shape)), 1, atol=1e-14)


def test_what_cannot_be_is_refused() -> None:
    for epsilon_per_m in (0, -1, float("nan"), float("inf")):
        refuses("epsilon_per_m must be > 0, got", Transition, small_grid(), epsilon_per_m=epsilon_per_m)
    refuses("at least 2 x 2 cells, got 7 x 1", Transition, small_grid(n_y=1), epsilon_per_m=0.01)
    transition = Transition(small_grid(), epsilon_per_m=0.01)
    for apply in (transition.forward, transition.adjoint):
        refuses(r"array must have shape \(..., 5, 7\), got \(7, 5\)", apply, np.zeros((7, 5)))
