"""Iterative Bayesian update (EM): the most likely frequencies that are frequencies, through any channel."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ldp.codes import NO_COUNT
from ldp.errors import LdpError
from ldp.protocols.bit_flip import BitFlipChannel
from ldp.protocols.channels import GrrChannel, PureChannel
from ldp.protocols.faked_reports import FakedChannel, FakedReport
from ldp.protocols.histogram import HistogramChannel

Floats = NDArray[np.float64]

_FLOOR_GAP = 1e-13  # per report; below it the gap is rounding
_HELD = 1e-18  # a frequency that is 0 but for an EM step that may still raise it
_TINY = 1e-12  # no Newton step for less, unless it grows
_NEARLY = 1 - 1e-6
_ROUNDING = 1e-15  # of a mean log-likelihood
_DAMPINGS = (1e-9, 1e-6, 1e-3, 1e-1)
_LEAST_ANSWER = 1e-15  # probability of an answer that no information may be divided by less than


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BayesEstimates:
    """Most likely frequencies of the values of one indicator.

    Parameters
    ----------
    frequency : ndarray of float64, shape (domain_size,); at least 0, sum 1; biased near 0
    std_error : same shape; standard deviation of the same estimate if it were free to leave [0, 1]
    covariance : ndarray of float64, shape (domain_size, domain_size); of which `std_error` is the diagonal
    gap : float; the log-likelihood is at most this far below its maximum
    iterations : int; EM steps taken
    """

    frequency: Floats
    std_error: Floats
    covariance: Floats
    gap: float
    iterations: int


def grr_matrix(channel: GrrChannel) -> Floats:
    """Channel matrix of GRR, [answer, value]; float64, shape (domain_size, domain_size)."""
    matrix = np.full((channel.domain_size, channel.domain_size), float(channel.q))
    np.fill_diagonal(matrix, float(channel.p))
    return matrix


def support_likelihoods(supports: NDArray[np.bool_], *, channel: PureChannel) -> Floats:
    """Likelihoods for `bayes_reports` of reports that support values: float64, shape (n, domain_size).

    A report is `channel.ratio` times as likely under a value that it supports as under another one. That
    holds for any pure protocol: codes, bits, sets, cells and columns, from one round or two, also if some are
    fakes (RS+FD). Source: Wang et al., USENIX Security 2017 (pure protocols).

    Parameters
    ----------
    supports : ndarray of bool, shape (n, domain_size); whether report i supports value x
    channel : PureChannel; as used for the reports

    Raises
    ------
    LdpError : fakes of any value (-r), or with priors, are among the reports: all of a report tells then; or
        reports are about some values only (dBitFlipPM), since no report on a value is not a report against it
    """
    if isinstance(channel, FakedReport) and not (
        isinstance(channel, FakedChannel) and channel.fake in {"code", "no value"}
    ):
        raise LdpError(f"fakes must be even codes or of no value, got {channel}")
    if isinstance(channel, BitFlipChannel) and channel.sampled < channel.domain_size:
        raise LdpError(f"sampled must be {channel.domain_size}, got {channel.sampled}")
    return np.where(supports, float(channel.ratio), 1.0)


def histogram_likelihoods(reports: NDArray[np.int16], *, channel: HistogramChannel) -> Floats:
    """Likelihoods for `bayes_reports` of noisy counts (SHE); float64, shape (n, domain_size).

    How much likelier the count of a value is if it is present than if it is absent; the counts of all other
    values are equally likely. LdpError if a report has no counts.

    Parameters
    ----------
    reports : ndarray of int16, shape (n, domain_size); without rows of NO_COUNT
    channel : HistogramChannel; as used for the reports
    """
    if np.any(reports == NO_COUNT):
        raise LdpError("reports must have counts, got a row of NO_COUNT")
    absent = np.array(channel.weights, np.float64)
    return np.asarray((absent[::-1] / absent)[reports - channel.lowest], np.float64)


def bayes_frequencies(
    counts: NDArray[np.int64],
    *,
    matrix: Floats,
    n_population: int,
    tolerance: float = 1e-6,
    max_iterations: int = 1000,
) -> BayesEstimates:
    """Maximum-likelihood frequencies under "none negative, sum 1", by expectation maximisation.

    Parameters
    ----------
    counts : ndarray of int64, shape (n_answers,); reports per possible answer; not modified
    matrix : ndarray of float64, shape (n_answers, domain_size); [y, x] = probability of answer y for value x:
        columns sum to 1, rows need not; neither square nor symmetric; of rank domain_size
    n_population : int; those of whom the reports are a simple random sample, at least the number of reports
    tolerance : float; stop at a log-likelihood this close to its maximum, above 0. An error d of it moves an
        estimate by about sqrt(2 d) standard errors: 0.0014 for 1e-6
    max_iterations : int; at least 1

    Raises
    ------
    LdpError : a rule above is broken, an answer was given that no value gives, or max_iterations do not do

    Notes
    -----
    One step is f_x <- f_x g_x with g = matrix^T (share / (matrix f)). The log-likelihood L is concave, so
    max L - L(f) <= n (max_x g_x - 1): a certificate at every step, and the stopping rule (for more than 1e7
    reports, 1e-13 n where that is larger, since doubles carry no more). After each step one of Newton's
    among the frequencies above 0 is tried, and kept only where it is at least as likely: EM alone needs
    millions of steps for a small epsilon, both together about ten.

    Error: the inverse of the Fisher information J at the estimate, for changes that sum to 0; less the part
    of the sampling error that a finite population does not have: (diag f - f f^T) / n (n - 1) /
    (n_population - 1). It is the error without the constraint. With it the estimate is a projection in the
    norm of J, hence never farther from the truth in that norm. A bootstrap would cost hundreds of runs, and
    is not consistent where a frequency is 0 (Andrews, Econometrica 2000). No interval: the estimate is
    biased near 0; the unbiased estimate has one.

    Source: Agrawal and Aggarwal, PODS 2001 (EM). Cost O(n_answers domain_size**2 + domain_size**3) a step.
    """
    _check(counts, matrix=matrix, n_population=n_population)
    likelihood = _Likelihood(counts, matrix)
    frequency, gap = likelihood.maximise(tolerance=tolerance, max_iterations=max_iterations)
    answers = np.maximum(matrix @ frequency, _LEAST_ANSWER)
    return likelihood.estimates(
        frequency,
        gap=gap,
        information=matrix.T @ (matrix / answers[:, np.newaxis]),
        n_population=n_population,
    )


def bayes_reports(
    likelihoods: Floats, *, n_population: int, tolerance: float = 1e-6, max_iterations: int = 1000
) -> BayesEstimates:
    """Return `bayes_frequencies` report by report: for mechanisms with too many answers for a matrix.

    Parameters
    ----------
    likelihoods : ndarray of float64, shape (n, domain_size); [i, x] = probability of report i under value x,
        up to a factor per report: from `support_likelihoods` or `histogram_likelihoods`; at least 0
    n_population, tolerance, max_iterations : as of `bayes_frequencies`

    Raises
    ------
    LdpError : a rule is broken, the reports do not tell the values apart, or max_iterations do not do

    Notes
    -----
    Error: as there, from the information that these reports hold (Efron and Hinkley, Biometrika 1978) instead
    of that expected. Cost O(n domain_size**2 + domain_size**3) a step, memory of a few copies of likelihoods.
    """
    if likelihoods.ndim != 2 or likelihoods.shape[0] < 1 or likelihoods.shape[1] < 2:
        raise LdpError(f"likelihoods must have shape (n >= 1, domain_size >= 2), got {likelihoods.shape}")
    if not (np.isfinite(likelihoods).all() and likelihoods.min() >= 0 and likelihoods.any(axis=1).all()):
        raise LdpError("likelihoods must be finite and >= 0, with one > 0 per report")
    n = likelihoods.shape[0]
    if n_population < n:
        raise LdpError(f"n_population must be >= n_reports = {n}, got {n_population}")
    likelihood = _Likelihood(np.ones(n, np.int64), likelihoods)
    frequency, gap = likelihood.maximise(tolerance=tolerance, max_iterations=max_iterations)
    information = likelihood.curvature(frequency)
    if np.linalg.matrix_rank(information) < likelihoods.shape[1]:
        raise LdpError(f"reports must tell {likelihoods.shape[1]} values apart, got {n} that do not")
    return likelihood.estimates(frequency, gap=gap, information=information, n_population=n_population)


class _Likelihood:
    """Mean log-likelihood of a report, and steps that raise it; counts the EM steps."""

    def __init__(self, counts: NDArray[np.int64], matrix: Floats) -> None:
        given = counts > 0
        self._n = int(counts.sum())
        self._share = counts[given] / self._n
        self._matrix = matrix[given]
        self.steps = 0

    def maximise(self, *, tolerance: float, max_iterations: int) -> tuple[Floats, float]:
        """Frequencies whose gap is at most the tolerance, and their gap per report."""
        if not tolerance > 0:
            raise LdpError(f"tolerance must be > 0, got {tolerance}")
        if max_iterations < 1:
            raise LdpError(f"max_iterations must be >= 1, got {max_iterations}")
        wanted = max(tolerance / self._n, _FLOOR_GAP)
        f = np.full(self._matrix.shape[1], 1 / self._matrix.shape[1])
        while True:
            following, gap = self._step(f)
            if gap <= wanted:
                return f, gap
            if self.steps >= max_iterations:
                rule = f"gap must be <= {wanted:.3g} per report after max_iterations = {max_iterations}"
                raise LdpError(f"{rule}, got {gap:.3g}")
            f = self._leap(following)

    def estimates(self, f: Floats, *, gap: float, information: Floats, n_population: int) -> BayesEstimates:
        """Result with the error that follows from the information."""
        covariance = _covariance(f, information=information, n=self._n, n_population=n_population)
        return BayesEstimates(
            frequency=f,
            # Where there is no error at all, rounding may leave less than none.
            std_error=np.sqrt(np.maximum(np.diag(covariance), 0.0)),
            covariance=covariance,
            gap=self._n * gap,
            iterations=self.steps,
        )

    def curvature(self, f: Floats) -> Floats:
        """Negative second derivative of the mean log-likelihood."""
        scaled = (np.sqrt(self._share) / (self._matrix @ f))[:, np.newaxis] * self._matrix
        return np.asarray(scaled.T @ scaled, np.float64)

    def _step(self, f: Floats) -> tuple[Floats, float]:
        """Next frequencies, and how far at most this one is below the maximum."""
        self.steps += 1
        gradient = self._gradient(f)
        following = f * gradient
        return following / following.sum(), max(float(gradient.max()) - 1, 0.0)

    def _leap(self, f: Floats) -> Floats:
        """Newton's step among the frequencies that are not held at 0, damped until it pays."""
        before = self._mean_log(f)
        undamped = f
        for damping in _DAMPINGS:
            direction = self._newton(f, damping=damping)
            # Negative entries are cut off, or the step ends before the first. EM never leaves 0, so no
            # frequency may be sent there for good.
            room = np.min(f[direction < 0] / -direction[direction < 0], initial=1 / _NEARLY)
            steps = (f + direction, f + _NEARLY * room * direction)
            found = max((_on_simplex(step) for step in steps), key=self._mean_log)
            if self._mean_log(found) > before + _ROUNDING:
                return found
            if damping == _DAMPINGS[0]:
                undamped = found
        # At the maximum no gain is visible, but Newton's step still leads there.
        return undamped if self._mean_log(undamped) >= before - _ROUNDING else f

    def _newton(self, f: Floats, *, damping: float) -> Floats:
        """Best change that sums to 0, by the second-order expansion of the log-likelihood.

        The damping draws towards the step of EM; also, answers that no one gave leave directions open.
        """
        gradient = self._gradient(f)
        curvature = self.curvature(f) + np.diag(damping / np.maximum(f, _TINY))
        free = (f > _TINY) | (gradient > 1)
        while True:
            rows = np.flatnonzero(free)
            sides = np.column_stack([gradient[rows], np.ones(rows.size)])
            solved, ones = np.linalg.solve(curvature[np.ix_(rows, rows)], sides).T
            direction = np.zeros_like(f)
            direction[rows] = solved - ones * (solved.sum() / ones.sum())
            stuck = (f <= _TINY) & (direction < 0)
            if not stuck.any():
                return direction
            free &= ~stuck

    def _gradient(self, f: Floats) -> Floats:
        return np.asarray((self._share / (self._matrix @ f)) @ self._matrix, np.float64)

    def _mean_log(self, f: Floats) -> float:
        return float(self._share @ np.log(self._matrix @ f))


def _on_simplex(f: Floats) -> Floats:
    held = np.maximum(f, _HELD)
    return np.asarray(held / held.sum(), np.float64)


def _covariance(f: Floats, *, information: Floats, n: int, n_population: int) -> Floats:
    inverse = np.linalg.inv(information)
    ones = inverse.sum(axis=1)
    # A population of one has no sampling error; the maximum only avoids 0 / 0 there.
    known = 1 - (n_population - n) / max(n_population - 1, 1)
    sampling = np.diag(f) - np.outer(f, f)
    return np.asarray((inverse - np.outer(ones, ones) / ones.sum() - known * sampling) / n, np.float64)


def _check(counts: NDArray[np.int64], *, matrix: Floats, n_population: int) -> None:
    if matrix.ndim != 2 or matrix.shape[1] < 2 or counts.shape != matrix.shape[:1]:
        raise LdpError(
            f"counts must have one entry per row of matrix (n_answers, domain_size >= 2), "
            f"got {counts.shape} and {matrix.shape}"
        )
    totals = matrix.sum(axis=0)
    if not ((matrix >= 0).all() and (np.abs(totals - 1) < 1e-9).all()):
        worst = totals[np.argmax(np.abs(totals - 1))]
        raise LdpError(f"columns of matrix must be >= 0 and sum to 1, got {matrix.min()} and {worst}")
    rank = int(np.linalg.matrix_rank(matrix))
    if rank < matrix.shape[1]:
        raise LdpError(f"matrix must have rank {matrix.shape[1]}, got {rank}")
    n = int(counts.sum())
    if counts.min() < 0 or n < 1:
        raise LdpError(f"counts must be >= 0 with a report at least, got {counts.min()} to {n} in all")
    if n_population < n:
        raise LdpError(f"n_population must be >= n_reports = {n}, got {n_population}")
    impossible = np.flatnonzero((counts > 0) & ~matrix.any(axis=1))
    if impossible.size:
        raise LdpError(f"answer must be possible for a value, got {counts[impossible[0]]} of {impossible[0]}")
