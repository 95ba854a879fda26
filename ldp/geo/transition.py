"""Transitions of planar Laplace noise: exact probabilities between cells of a grid, and their operator.

A subscriber is at the centre of a cell, noise of `epsilon_per_m` is added, the point is clamped to the
rectangle of the grid and snapped to a cell. Without the clamping, the chance depends on the offset of two
cells only: a convolution, done by FFT. Points outside land on the edge, and the chance of an edge cell
depends on its distance as well: one transform along the edge for each side, and four corners.
"""

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.geo.grid import Grid

Floats = NDArray[np.float64]
Waves = NDArray[np.complex128]

_NODES: Final = 24  # the flux through a side of the origin's cell is exact to 1e-17 with 22
_FAR: Final = 44.0  # beyond this many mean lengths lies (1 + 44) e^-44 = 4e-18 of the noise
_NEGLIGIBLE: Final = 40.0  # and beyond these 2e-16: nothing that a sum of doubles would notice


class Transition:
    """Probabilities of the cell of a report, given the cell of the subscriber, for a whole grid.

    Parameters
    ----------
    grid : Grid; of at least 2 x 2 cells
    epsilon_per_m : float; above 0, of the noise that is sampled, per metre

    Notes
    -----
    Probabilities are exact to 1e-15, `forward` and `adjoint` to 1e-14 of the sum of what they are given.
    Either costs two transforms of a grid padded by the reach of the noise (at most the grid itself).
    Source of the noise: Andres et al., CCS 2013.
    """

    __slots__ = (
        "_by_column",
        "_by_row",
        "_corner",
        "_kernel",
        "_padded",
        "_shape",
        "epsilon_per_m",
        "grid",
        "offsets",
    )

    def __init__(self, grid: Grid, *, epsilon_per_m: float) -> None:
        if not (math.isfinite(epsilon_per_m) and epsilon_per_m > 0):
            raise LdpError(f"epsilon_per_m must be > 0, got {epsilon_per_m}")
        if min(grid.n_x, grid.n_y) < 2:
            raise LdpError(f"grid must have at least 2 x 2 cells, got {grid.n_x} x {grid.n_y}")
        self.grid: Final = grid
        self.epsilon_per_m: Final = epsilon_per_m
        n_y, n_x = self._shape = grid.shape
        epsilon_per_cell = epsilon_per_m * grid.step_m
        beyond = quadrant_probabilities(max(n_x, n_y), epsilon_per_cell)
        strips = np.maximum(beyond[:, :-1] - beyond[:, 1:], 0)  # [k, j]: k or more away, and j along the edge
        self.offsets: Floats = np.maximum(strips[:-1] - strips[1:], 0)[:n_x, :n_y].T.copy()
        self._corner: Floats = beyond[:n_x, :n_y].T.copy()
        reach = math.ceil(_NEGLIGIBLE / epsilon_per_cell)
        self._padded = (_fast_size(n_y + min(n_y - 1, reach)), _fast_size(n_x + min(n_x - 1, reach)))
        around_y, around_x = (
            _wrapped(n, padded) for n, padded in zip(self._shape, self._padded, strict=True)
        )
        kernel = _spread(_spread(self.offsets, around_y, axis=0), around_x, axis=1)
        # Symmetric kernels have real transforms. Axes: y is halved, x is complete.
        self._kernel: Floats = np.fft.rfft2(kernel, axes=(1, 0)).real
        # [wave along the edge, distance from it]
        self._by_column: Floats = np.fft.rfft(_spread(strips[:n_x, :n_y].T, around_y, axis=0), axis=0).real
        self._by_row: Floats = np.fft.rfft(_spread(strips[:n_y, :n_x].T, around_x, axis=0), axis=0).real

    def forward(self, density: Floats) -> Floats:
        """Expected reports per cell, given subscribers per cell: float64, shape (..., n_y, n_x).

        Not modified. The result has the same shape and sum; rounding may leave less than 0 where no one is
        near.
        """
        n_y, n_x = self._check(density)
        padded_y, padded_x = self._padded
        columns = np.fft.rfft(density, n=padded_y, axis=-2)
        waves = np.fft.fft(columns, n=padded_x, axis=-1) * self._kernel
        reports = np.fft.irfft(np.fft.ifft(waves, axis=-1)[..., :n_x], n=padded_y, axis=-2)[..., :n_y, :]
        reports = np.ascontiguousarray(reports)
        for at, distances in ((0, self._by_column), (-1, self._by_column[:, ::-1])):
            edge = np.fft.irfft(np.einsum("...kx,kx->...k", columns, distances), n=padded_y)
            reports[..., at] = edge[..., :n_y]
        rows = np.fft.rfft(density, n=padded_x, axis=-1)
        for at, distances in ((0, self._by_row), (-1, self._by_row[:, ::-1])):
            edge = np.fft.irfft(np.einsum("...yk,ky->...k", rows, distances), n=padded_x)
            reports[..., at, :] = edge[..., :n_x]
        for (row, column), corner in self._corners():
            reports[..., row, column] = np.einsum("...yx,yx->...", density, corner)
        return reports

    def adjoint(self, weights: Floats) -> Floats:
        """Expected weight of a subscriber's report, per cell of the subscriber.

        `weights` are those of a report per cell: float64, shape (..., n_y, n_x), like the result; not
        modified.
        """
        n_y, n_x = self._check(weights)
        padded_y, padded_x = self._padded
        inner, sides, ends = np.zeros_like(weights), weights.copy(), weights.copy()
        inner[..., 1:-1, 1:-1] = weights[..., 1:-1, 1:-1]
        sides[..., [0, -1], :] = 0
        ends[..., [0, -1]] = 0
        waves = np.fft.fft(np.fft.rfft(inner, n=padded_y, axis=-2), n=padded_x, axis=-1) * self._kernel
        columns = np.fft.ifft(waves, axis=-1)[..., :n_x]
        for at, distances in ((0, self._by_column), (-1, self._by_column[:, ::-1])):
            edge = np.fft.rfft(sides[..., at], n=padded_y)
            columns += edge[..., :, np.newaxis] * distances
        rows: Waves = np.zeros((*weights.shape[:-1], padded_x // 2 + 1), np.complex128)
        for at, distances in ((0, self._by_row.T), (-1, self._by_row.T[::-1])):
            edge = np.fft.rfft(ends[..., at, :], n=padded_x)
            rows += edge[..., np.newaxis, :] * distances
        expected = np.fft.irfft(columns, n=padded_y, axis=-2)[..., :n_y, :]
        expected = expected + np.fft.irfft(rows, n=padded_x, axis=-1)[..., :n_x]
        for (row, column), corner in self._corners():
            expected += weights[..., row, column, np.newaxis, np.newaxis] * corner
        return expected

    def _check(self, array: Floats) -> tuple[int, int]:
        if array.shape[-2:] != self._shape:
            raise LdpError(
                f"array must have shape (..., {self._shape[0]}, {self._shape[1]}), got {array.shape}"
            )
        return self._shape

    def _corners(self) -> list[tuple[tuple[int, int], Floats]]:
        corner = self._corner
        return [
            ((0, 0), corner),
            ((0, -1), corner[:, ::-1]),
            ((-1, 0), corner[::-1]),
            ((-1, -1), corner[::-1, ::-1]),
        ]


def quadrant_probabilities(n: int, epsilon_per_cell: float) -> Floats:
    """Chance that a point is moved at least j - 1/2 cells to the left and k - 1/2 down, exact to 1e-16.

    Parameters
    ----------
    n : int; largest j and k, at least 1
    epsilon_per_cell : float; above 0, of the noise per side of a cell

    Returns
    -------
    ndarray of float64, shape (n + 1, n + 1), symmetric; differences of it are the chances of strips and cells

    Notes
    -----
    The density a^2 / (2 pi) e^(-a r) is the divergence of F = -(1 + a r) e^(-a r) / (2 pi r) along r, except
    at 0, where F brings in 1: the chance of a region is the flux of F through its border, plus 1 if the
    point is in it. So only integrals along the lines between cells are needed. Cost O(n^2).
    """
    rays = _flux_through_rays(n, epsilon_per_cell)
    # Row 0 lies half a cell on the other side of the point: the flux through it has the other sign.
    signed = np.concatenate([-rays[:1, :], rays])
    beyond = -(signed + signed.T)
    beyond[0, 0] += 1
    return np.asarray(np.maximum(beyond, 0), np.float64)


def _flux_through_rays(n: int, a: float) -> Floats:
    """[i, k]: flux of F through the line i + 1/2 away from the point, from k - 1/2 along it to infinity."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    distances = np.arange(n)[:, np.newaxis, np.newaxis] + 0.5

    def integrals(starts: Floats, lengths: Floats) -> Floats:
        along = starts[:, np.newaxis] + lengths[:, np.newaxis] * (nodes + 1) / 2
        squares = distances**2 + along**2
        radii = a * np.sqrt(squares)
        flux: Floats = -(1 + radii) * np.exp(-radii) * distances / squares
        return np.asarray(flux @ weights, np.float64) * lengths / (4 * np.pi)

    cells = integrals(np.arange(n, dtype=np.float64) - 0.5, np.ones(n))
    # The rest of the line in panels that grow with the distance: each is short against it and 1 / a.
    start, edges = n - 0.5, [n - 0.5]
    while start < _FAR / a or len(edges) < 2:
        start += min(max(start, 0.5), 2 / a)
        edges.append(start)
    far = integrals(np.array(edges[:-1]), np.asarray(np.diff(edges), np.float64)).sum(axis=1)
    rays = np.empty((n, n + 1))
    rays[:, n] = far
    rays[:, :n] = np.cumsum(cells[:, ::-1], axis=1)[:, ::-1] + far[:, np.newaxis]
    return rays


def _wrapped(n: int, padded: int) -> NDArray[np.int64]:
    """Distance of each place of a ring from place 0; n where it is farther than any two cells are apart."""
    around = np.minimum(np.arange(padded), padded - np.arange(padded))
    return np.minimum(around, n)


def _spread(probabilities: Floats, around: NDArray[np.int64], *, axis: int) -> Floats:
    """Lay chances by distance around a ring, and 0 where no distance reaches."""
    width = [(0, 0)] * probabilities.ndim
    width[axis] = (0, 1)
    return np.asarray(np.take(np.pad(probabilities, width), around, axis=axis), np.float64)


def _fast_size(least: int) -> int:
    """Smallest even size from `least` on with factors 2, 3 and 5 only."""
    size = least + least % 2
    while True:
        rest = size
        for factor in (2, 3, 5):
            while rest % factor == 0:
                rest //= factor
        if rest == 1:
            return size
        size += 2
