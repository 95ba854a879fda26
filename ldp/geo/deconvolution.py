"""Where subscribers are, most likely, given where noise took their reports: EM, stopped by held-out reports.

Maximum likelihood of a density that was blurred is a set of spikes. EM from an even density reaches the broad
features first and the spikes last, so stopping early is a regularisation. When to stop is asked of the data:
reports are dealt into folds, each is predicted from the others, and the step that predicts best is taken.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.geo.transition import Transition
from ldp.kernels.streams import KeyedStream

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Land = NDArray[np.bool_]

N_FOLDS: Final = 4
MAX_STEPS: Final = 70
PLAIN_STEPS: Final = 50  # the first ones; each later one is three and a leap, where hundreds would be needed
_PATIENCE = (
    5  # steps, or a quarter of those taken: so long the prediction may get worse before it is believed
)
_FOLDS_KEY: Final = b"folds of reports"  # public: any split will do, the same one makes results repeatable
_REPLICATES_KEY: Final = b"drawn once again"
_TINY: Final = 1e-9  # expected reports in a cell, at least: where no one is near, FFT leaves rounding errors
_LEAST_OF_STEP: Final = 1e-3  # a leap leaves this share of a cell at least
_TOGETHER: Final = 5  # maps that are transformed at once: they fit into the cache


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Density:
    """Deconvolved density.

    Parameters
    ----------
    density : ndarray of float64, shape (n_y, n_x); subscribers per cell, at least 0; sum = number of reports
    expected : ndarray of float64, same shape; reports per cell that it makes likely, same sum
    steps : int; of EM
    """

    density: Floats
    expected: Floats
    steps: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Uncertainty:
    """Spread of the deconvolved density over replicates, per cell; the bias of smoothing is not in it.

    Parameters
    ----------
    std_error : ndarray of float64, shape (n_y, n_x)
    low, high : ndarray of float64, same shape; percentiles of the replicates
    """

    std_error: Floats
    low: Floats
    high: Floats


def deconvolve(
    counts: Ints, *, transition: Transition, land: Land | None = None, steps: int | None = None
) -> Density:
    """Density of subscribers, given the reports per cell.

    Parameters
    ----------
    counts : ndarray of int64, shape (n_y, n_x); at least one report; not modified
    transition : Transition; as the reports were made
    land : ndarray of bool, same shape; False where no one can be. None: people can be anywhere
    steps : int or None; of EM, in [1, 70]. None: as many as predict held-out reports best

    Raises
    ------
    LdpError : a rule above is broken, or land has no cell

    Notes
    -----
    One step is f <- f A^T(counts / A f), from the 51st on with a leap (see `advance`). It keeps the sum and
    never lowers the likelihood, and a cell without land stays at 0. Source: Richardson 1972, Lucy 1974; as
    iterative Bayesian update, ElSalamouny and Palamidessi, EuroS&P 2020. A step takes about 5 ms for
    200 x 200 cells, their choice 4 times as long as the steps themselves.
    """
    allowed = _check(counts, transition=transition, land=land)
    if steps is None:
        steps = held_out_steps(counts, transition=transition, land=land)
    if not 1 <= steps <= MAX_STEPS:
        raise LdpError(f"steps must be in [1, {MAX_STEPS}], got {steps}")
    return _run(counts, transition=transition, land=allowed, steps=steps)


def held_out_steps(counts: Ints, *, transition: Transition, land: Land | None = None) -> int:
    """Number of EM steps, in [1, 70], after which the other folds predict a fold best, over all folds.

    Parameters, Raises : as in `deconvolve`

    Reports are dealt into 4 folds at random, with fixed bits. Given where people are, folds are independent,
    so a fold judges the density of the others without bias. Score: sum of counts x log(expected) of the fold.
    """
    allowed = _check(counts, transition=transition, land=land)
    folds = _folds(counts)
    others = counts - folds
    density = _start(others, allowed)
    best, best_step = -np.inf, 1
    for step in range(1, MAX_STEPS + 1):
        density = advance(density, others, transition=transition, step=step)
        expected = np.maximum(transition.forward(density), _TINY)
        score = float(np.sum(folds * np.log(expected)))
        if score > best:
            best, best_step = score, step
        elif step > best_step + max(_PATIENCE, best_step // 4):
            break
    return best_step


def em_step(density: Floats, counts: Ints, *, transition: Transition) -> Floats:
    """One step of EM from a density with the sum of the counts; shapes (..., n_y, n_x)."""
    expected = np.maximum(transition.forward(density), _TINY)
    stepped = np.maximum(density * transition.adjoint(counts / expected), 0)
    # The sum is kept but for reports where less than the least was expected.
    sums = stepped.sum(axis=(-2, -1), keepdims=True)
    return np.asarray(stepped * (counts.sum(axis=(-2, -1), keepdims=True) / sums), np.float64)


def advance(density: Floats, counts: Ints, *, transition: Transition, step: int) -> Floats:
    """Take the given step: of EM, or from step 51 on three of them and a leap between (SQUAREM).

    Parameters
    ----------
    density, counts : ndarrays, shape (..., n_y, n_x), of one sum
    step : int; from 1 on

    Notes
    -----
    The leap continues along the last two steps as far as they shrink. Where it ends less likely than without
    it, it is not taken: no step lowers the likelihood. Source: Varadhan and Roland, Scand. J. Statist. 2008.
    """
    first = em_step(density, counts, transition=transition)
    if step <= PLAIN_STEPS:
        return first
    second = em_step(first, counts, transition=transition)
    change, bend = first - density, second - 2 * first + density
    axes = (-2, -1)
    lengths = [np.sqrt(np.sum(each**2, axis=axes, keepdims=True)) for each in (change, bend)]
    factor = np.maximum(lengths[0] / np.maximum(lengths[1], _TINY), 1)
    leap = density + 2 * factor * change + factor**2 * bend
    leap = np.maximum(leap, _LEAST_OF_STEP * second)  # EM never brings back what is 0
    third = em_step(leap, counts, transition=transition)
    better = _likelihood(third, counts, transition) >= _likelihood(second, counts, transition)
    return np.where(better, third, second)


def _likelihood(density: Floats, counts: Ints, transition: Transition) -> Floats:
    """Logarithm of it, but for a constant; shape (..., 1, 1)."""
    expected = np.maximum(transition.forward(density), _TINY)
    return np.asarray(np.sum(counts * np.log(expected), axis=(-2, -1), keepdims=True), np.float64)


def bootstrap(
    counts: Ints,
    *,
    transition: Transition,
    steps: int,
    land: Land | None = None,
    n_replicates: int = 50,
    level: float = 0.95,
) -> Uncertainty:
    """Spread of the density if the reports were drawn again from themselves, each with the same steps.

    Parameters
    ----------
    counts, transition, land : as in `deconvolve`
    steps : int; of the density whose spread is wanted
    n_replicates : int; in [2, 1000]
    level : float; share of the replicates between `low` and `high`, in (0, 1)

    Notes
    -----
    Draws are multinomial with the shares of the counts, from fixed bits. That is the spread of a new
    population with new noise, hence somewhat more than that of noise alone; and what early stopping smooths
    away, it smooths away in every replicate, so the bands need not hold the truth of a cell.
    """
    allowed = _check(counts, transition=transition, land=land)
    if not 2 <= n_replicates <= 1000:
        raise LdpError(f"n_replicates must be in [2, 1000], got {n_replicates}")
    if not 0 < level < 1:
        raise LdpError(f"level must be in (0, 1), got {level}")
    stream = KeyedStream(_REPLICATES_KEY)
    reports = np.repeat(np.arange(counts.size), counts.ravel())
    found = np.empty((n_replicates, *counts.shape))
    for start in range(0, n_replicates, _TOGETHER):
        part = found[start : start + _TOGETHER]
        drawn = np.array([_redrawn(reports, stream, shape=counts.shape) for _ in part])
        part[:] = _run(drawn, transition=transition, land=allowed, steps=steps).density
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return Uncertainty(std_error=found.std(axis=0, ddof=1), low=low, high=high)


def _run(counts: Ints, *, transition: Transition, land: Land, steps: int) -> Density:
    density = _start(counts, land)
    for step in range(1, steps + 1):
        density = advance(density, counts, transition=transition, step=step)
    expected = np.maximum(transition.forward(density), 0)
    return Density(density=density, expected=expected, steps=steps)


def _start(counts: Ints, land: Land) -> Floats:
    """Even density on land with the sum of each map of counts."""
    return np.asarray(counts.sum(axis=(-2, -1), keepdims=True) * (land / land.sum()), np.float64)


def _folds(counts: Ints) -> Ints:
    """Deal reports into folds; shape (N_FOLDS, n_y, n_x), sum over folds = counts."""
    cells = np.repeat(np.arange(counts.size), counts.ravel())
    fold = KeyedStream(_FOLDS_KEY).uniform_int(cells.size, 0, N_FOLDS)
    dealt = np.bincount(fold * counts.size + cells, minlength=N_FOLDS * counts.size)
    return dealt.reshape(N_FOLDS, *counts.shape)


def _redrawn(reports: Ints, stream: KeyedStream, *, shape: tuple[int, ...]) -> Ints:
    drawn = reports[stream.uniform_int(reports.size, 0, reports.size)]
    return np.bincount(drawn, minlength=shape[0] * shape[1]).reshape(shape)


def _check(counts: Ints, *, transition: Transition, land: Land | None) -> Land:
    """Return the squares where people can be."""
    shape = transition.grid.shape
    allowed = np.ones(shape, np.bool_) if land is None else land
    for name, array in (("counts", counts), ("land", allowed)):
        if array.shape != shape:
            raise LdpError(f"{name} must have shape {shape}, got {array.shape}")
    if counts.min() < 0 or not counts.any():
        raise LdpError(f"counts must be >= 0 with at least one report, got {counts.min()}..{counts.max()}")
    if not allowed.any():
        raise LdpError("land must have at least one cell, got none")
    return allowed
