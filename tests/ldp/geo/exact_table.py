"""Exact probabilities of noisy squares: every angle of a sampler, with the exact law of its radius."""

from collections.abc import Callable
from itertools import product

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]
Law = Callable[[Doubles], Doubles]


def sampled_law(*, bits: int, zeros: int | None) -> Law:
    """Distribution of minus the logarithm of two numbers of so many bits, as the kernel draws them.

    One that begins with `zeros` zeros counts as 2**-zeros times one that is drawn again; None: none is.
    """
    numbers = np.arange(2 ** (bits - (zeros or bits)) if zeros else 0, 2**bits)
    lengths = -np.log((numbers + 0.5) / 2**bits)
    pairs = np.add.outer(lengths, lengths).ravel()
    weights = np.full(pairs.size, 4.0**-bits)
    if zeros:
        # How many zeros both have more has the law of a sum of two geometric variables.
        repeats = np.arange(60 // zeros)
        pairs = np.add.outer(zeros * np.log(2) * repeats, pairs).ravel()
        weights = np.multiply.outer((repeats + 1) * 2.0 ** (-zeros * repeats), weights).ravel()
    order = np.argsort(pairs)
    lengths, below = pairs[order], np.concatenate([[0.0], np.cumsum(weights[order])])
    return lambda radii: np.where(np.isinf(radii), 1.0, below[np.searchsorted(lengths, radii)])


def square_table(law, *, epsilon, n_x, n_y, angle_bits, clamps=True) -> Doubles:
    """Probability of each square from the middle of each one; shape (n_x * n_y, n_x * n_y), side 1.

    Points outside belong to the nearest square, or to none. Along a ray the square changes where it crosses a
    line of the grid, so the probability of a square is a difference of the law at two crossings.
    """
    theta = -np.pi / 4 + 2 * np.pi * (np.arange(2**angle_bits) + 0.5) / 2**angle_bits
    cosine, sine = np.cos(theta)[:, None], np.sin(theta)[:, None]
    table = np.zeros((n_x * n_y, n_x * n_y))
    for row, column in product(range(n_y), range(n_x)):
        x, y = column + 0.5, row + 0.5
        across = np.hstack([(np.arange(n_x + 1) - x) / cosine, (np.arange(n_y + 1) - y) / sine])
        stops = np.sort(np.where(across > 0, across, np.inf), axis=1)
        stops = np.hstack([np.zeros_like(cosine), stops, np.full_like(cosine, np.inf)])
        mass = np.diff(law(epsilon * stops), axis=1) / 2**angle_bits
        inner = np.where(np.isinf(stops[:, 1:]), stops[:, :-1] + 1, (stops[:, :-1] + stops[:, 1:]) / 2)
        inner = np.where(np.isinf(inner), 0.0, inner)  # beyond the last crossing but one there is no mass
        to_x, to_y = np.floor(x + inner * cosine), np.floor(y + inner * sine)
        inside = (to_x >= 0) & (to_x < n_x) & (to_y >= 0) & (to_y < n_y)
        codes = np.clip(to_y, 0, n_y - 1) * n_x + np.clip(to_x, 0, n_x - 1)
        kept = mass if clamps else mass * inside
        table[row * n_x + column] = np.bincount(codes.ravel().astype(int), kept.ravel(), minlength=n_x * n_y)
    return table


def worst_loss(table: Doubles, *, n_x: int) -> float:
    """Largest logarithm of a ratio of two rows, per distance of their squares; inf if one of them is 0."""
    rows, columns = np.divmod(np.arange(table.shape[0]), n_x)
    distances = np.hypot(np.subtract.outer(rows, rows), np.subtract.outer(columns, columns))
    worst = 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(table)
        for one in range(table.shape[0]):
            gaps = np.nanmax(logs[one] - logs, axis=1)  # -inf less -inf is no loss
            gaps[one] = 0.0
            worst = max(worst, float(np.max(gaps / np.maximum(distances[one], 1.0))))
    return worst
