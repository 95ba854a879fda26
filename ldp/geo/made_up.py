"""Reports of subscribers who do not exist, to see what noise does to a density that is known."""

import numpy as np
from numpy.typing import NDArray

from ldp.geo.transition import Transition
from ldp.kernels.streams import KeyedStream

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def made_up_reports(density: Floats, *, transition: Transition, stream: KeyedStream) -> Ints:
    """Reports per cell of subscribers spread as the density is, as many as its sum, with noise of the stream.

    Parameters
    ----------
    density : ndarray of float64, shape (n_y, n_x); at least 0, the sum an integer but for rounding
    transition : Transition; whose noise
    stream : KeyedStream; these are no reports of anyone

    Returns
    -------
    ndarray of int64, same shape
    """
    running = density.ravel().cumsum()
    n = round(running[-1])
    # Every 1 / n of the density is one subscriber: the same places in each replicate, only the noise changes.
    return _reports(_cells_at(running, (np.arange(n) + 0.5) / n), transition=transition, stream=stream)


def made_up_people(density: Floats, *, transition: Transition, stream: KeyedStream) -> tuple[Ints, Ints]:
    """Subscribers per cell, each drawn from the density, and their reports.

    Parameters : as in `made_up_reports`

    Returns
    -------
    places, reports : ndarray of int64, shape (n_y, n_x)
    """
    running = density.ravel().cumsum()
    cells = _cells_at(running, _uniform(stream, 1, round(running[-1]))[0])
    places = np.bincount(cells, minlength=density.size).reshape(density.shape)
    return places, _reports(cells, transition=transition, stream=stream)


def _cells_at(running: Floats, shares: Floats) -> Ints:
    """Cell in which each share of the density ends."""
    found = np.searchsorted(running, shares * running[-1])
    return np.asarray(np.minimum(found, running.size - 1), np.int64)


def _reports(cells: Ints, *, transition: Transition, stream: KeyedStream) -> Ints:
    grid = transition.grid
    first, second, turn = _uniform(stream, 3, cells.size)
    radius = -(np.log(first) + np.log(second)) / transition.epsilon_per_m
    x, y = (each[cells] for each in grid.centres())
    codes = grid.codes(x + radius * np.cos(2 * np.pi * turn), y + radius * np.sin(2 * np.pi * turn))
    return np.asarray(np.bincount(codes, minlength=grid.n_cells).reshape(grid.shape), np.int64)


def _uniform(stream: KeyedStream, rows: int, n: int) -> Floats:
    """Numbers in (0, 1)."""
    return np.asarray((stream.words(rows * n).reshape(rows, n) + 0.5) / 2.0**64, np.float64)
