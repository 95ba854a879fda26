"""Errors of many plans at once, in floats, to find the few that are worth an exact look.

A search for the smallest epsilon with some error cannot bisect. The error of an adaptive mechanism rises
where an indicator changes from OUE to GRR, whose variance is smaller at frequency 0 but not at any other.
That of RS+FD per attribute rises also where `hidden_epsilon` stops below another jump of the loss. So all
epsilons are looked at here, to about eleven digits, and those that may do, exactly.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldp.protocols.channels import MAX_DOMAIN_SIZE, MAX_EPSILON, Unit
from ldp.protocols.projective import PRIMES, least_dimensions

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

STEP: Final = 2.0**-30  # of epsilons of answers, as `hidden_epsilon` takes them
ROUNDING: Final = 4e-12  # of floats: far more than some hundred operations without cancellation lose
WORD_ROUNDING: Final = 4e-18  # of thresholds: some 80 times half of 1/2**64


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportLaws:
    """Reports on one indicator under n plans, nearly.

    Parameters
    ----------
    q : ndarray of float64, shape (n,); probability that a report supports a given value that is not true
    difference : ndarray of float64, shape (n,); p - q, p being that of the true value
    rest : ndarray of float64, shape (n,); 1 - p - q
    slack : ndarray of float64, shape (n,); relative error of an error that follows from these, at most
    is_sure : ndarray of bool, shape (n,); whether the plan has this law; else a comparison was too close
    """

    q: Floats
    difference: Floats
    rest: Floats
    slack: Floats
    is_sure: Bools

    def std_error(
        self,
        frequency: ArrayLike,
        *,
        n_reports: float,
        n_population: float,
        count_variance: float = 0.0,
        domain_size: ArrayLike = 0,
    ) -> Floats:
        """Nearly the root of `pure_variance`, and of `noise_variance` if counts have one; shape (n,)."""
        f = np.asarray(frequency, np.float64)
        noise = self.q * (1 - self.q) + f * self.difference * self.rest
        seen = self.q + f * self.difference
        noise += count_variance * ((1 - seen) ** 2 + (np.asarray(domain_size) - 1) * seen**2) / n_reports
        left = (n_population - n_reports) / max(n_population - 1, 1)
        return np.asarray(np.sqrt((noise / self.difference**2 + f * (1 - f) * left) / n_reports), np.float64)


@dataclass(frozen=True, slots=True)
class _Answers:
    """Answers to one indicator: as `ReportLaws`, those of a fake, and a wrong answer's likelihood over it."""

    q: Floats
    difference: Floats
    rest: Floats
    fake: Floats
    fake_rest: Floats
    weight: Floats


def report_laws(
    mechanism: str, *, unit: Unit, epsilons: Sequence[Fraction], domain_sizes: Sequence[ArrayLike]
) -> list[ReportLaws]:
    """Laws of the reports on each of d indicators, for each of n plans.

    Parameters
    ----------
    mechanism : str; a `Solution` or `Mechanism`
    unit : "profile" or "attribute"; what epsilon is promised for
    epsilons : sequence of Fraction, shape (n,); as typed
    domain_sizes : sequence of d int, or arrays of int of shape (n,)
    """
    family, oracle = mechanism.split("-")
    sizes = [np.broadcast_to(np.asarray(k, np.float64), len(epsilons)) for k in domain_sizes]
    share = 1 / len(sizes) if family == "rsfd" else 1.0
    promised = np.array([float(each) for each in epsilons])
    answers, is_sure = promised / (len(sizes) if family == "spl" else 1), np.ones(len(epsilons), np.bool_)
    if family == "rsfd" and unit == "attribute":
        if oracle == "ouez":
            answers = np.minimum(np.log1p(len(sizes) * np.expm1(promised)), float(MAX_EPSILON))
        else:
            answers, is_sure = _hidden(oracle, epsilons, sizes=sizes, share=share)
    laws = []
    for k in sizes:
        found, is_clear = _answers(oracle, answers, k=k, share=share)
        q, difference, rest = _mixed(found, share)
        laws.append(
            ReportLaws(
                q=q, difference=difference, rest=rest, slack=_slack(answers, k), is_sure=is_sure & is_clear
            )
        )
    return laws


def code_laws(*, epsilons: Sequence[Fraction], domain_sizes: ArrayLike, max_codes: int) -> ReportLaws:
    """Laws of the reports of one code each, those of `code_channel`, for n epsilons and numbers of values."""
    answers = np.array([float(each) for each in epsilons])
    k = np.broadcast_to(np.asarray(domain_sizes, np.float64), answers.shape)
    e, gain = np.exp(answers), np.expm1(answers)
    grr = e + k - 1
    laws, sizes = [np.array([1 / grr, gain / grr, (k - 2) / grr])], [k]
    for prime in PRIMES:
        dimension = least_dimensions(prime, k)
        size, support, shared = ((prime ** (dimension - less) - 1) / (prime - 1) for less in range(3))
        whole = e * support + size - support
        q = (e * shared + support - shared) / whole
        law = np.array([q, gain * (support - shared) / whole, 1 - q - e * support / whole])
        laws.append(np.where(size <= min(max_codes, MAX_DOMAIN_SIZE), law, np.nan))
        sizes.append(size)
    return _best_laws(answers, laws, sizes)


def question_laws(
    *,
    epsilons: Sequence[Fraction],
    domain_sizes: ArrayLike,
    cells: Sequence[int] = (2,),
    max_codes: int = MAX_DOMAIN_SIZE,
) -> ReportLaws:
    """Laws of the answers to one question, those of `question_channel` and `hash_channel`; as `code_laws`.

    epsilons : of one report
    cells : possible numbers of answers to a question, primes
    """
    answers = np.array([float(each) for each in epsilons])
    k = np.broadcast_to(np.asarray(domain_sizes, np.int64), answers.shape)
    e, gain = np.exp(answers), np.expm1(answers)
    laws, sizes = [], []
    for size in cells:
        powers = float(size) ** np.arange(1, 17)
        whole = powers[np.searchsorted(powers, k)]
        apart = (whole - whole / size) / (whole - 1)  # of the questions that tell two values apart
        p, difference = e / (e + size - 1), apart * gain / (e + size - 1)
        law = np.array([p - difference, difference, 1 - 2 * p + difference])
        n_codes = size * (whole - 1) / (size - 1)
        laws.append(np.where(n_codes <= min(max_codes, MAX_DOMAIN_SIZE), law, np.nan))
        sizes.append(np.full(len(answers), float(size)))
    return _best_laws(answers, laws, sizes)


def _best_laws(answers: Floats, laws: Sequence[Floats], sizes: Sequence[Floats]) -> ReportLaws:
    """Choose the law (q, p - q, 1 - p - q) with the least variance, given the number of answers of each."""
    with np.errstate(invalid="ignore"):
        noise = np.nan_to_num([q * (1 - q) / difference**2 for q, difference, _ in laws], nan=np.inf)
    best = noise.argmin(axis=0)[np.newaxis]
    q, difference, rest = np.take_along_axis(np.array(laws), best[:, np.newaxis], axis=0)[0]
    slack = _slack(answers, np.take_along_axis(np.array(sizes), best, axis=0)[0])
    is_close = noise <= noise.min(axis=0) * (1 + _slack(answers, np.max(sizes, axis=0)))
    return ReportLaws(q=q, difference=difference, rest=rest, slack=slack, is_sure=is_close.sum(axis=0) == 1)


def first_that_reaches(
    nearly: Floats,
    laws: Sequence[ReportLaws],
    *,
    exactly: Callable[[int], float],
    wanted: float,
    order: Iterable[int] | None = None,
) -> int | None:
    """First position at which the exact error is as wanted or smaller; None if there is none.

    Parameters
    ----------
    nearly : ndarray of float64, shape (n,); errors as they follow from the laws, or something smaller
    laws : sequence of ReportLaws; those from which they follow
    exactly : callable; the error at a position: it decides
    wanted : float
    order : iterable of int; positions as they are tried; None = from 0 on

    Notes
    -----
    A position that is not tried exactly has a larger error for certain.
    """
    slack = np.max([law.slack for law in laws], axis=0)
    is_sure = np.all([law.is_sure for law in laws], axis=0)
    possible = ~is_sure | (nearly <= wanted * (1 + slack))
    tried = range(len(nearly)) if order is None else order
    return next((at for at in tried if possible[at] and exactly(at) <= wanted), None)


def _answers(oracle: str, epsilon: Floats, *, k: Floats, share: float) -> tuple[_Answers, Bools]:
    """Return answers of GRR or OUE (adaptive: less variance at frequency 0), and whether that is sure."""
    e, gain = np.exp(epsilon), np.expm1(epsilon)
    grr, oue = e + k - 1, e + 1
    both = (
        _Answers(1 / grr, gain / grr, (k - 2) / grr, 1 / k, 1 - 2 / k, k / grr),
        _Answers(1 / oue, gain / (2 * oue), gain / (2 * oue), 1 / oue, gain / oue, oue / (2 * e)),
    )
    if oracle != "adp":
        return both[oracle != "grr"], np.ones(len(e), np.bool_)
    (q, difference, _), (other_q, other_difference, _) = (_mixed(each, share) for each in both)
    odds = q * (1 - q) / difference**2 / (other_q * (1 - other_q) / other_difference**2)
    columns = zip(*map(astuple, both), strict=True)
    return _Answers(*(np.where(odds <= 1, *pair) for pair in columns)), np.abs(odds - 1) > _slack(epsilon, k)


def _mixed(answers: _Answers, share: float) -> tuple[Floats, Floats, Floats]:
    """q, p - q and 1 - p - q of a report that is an answer this often, else a fake."""
    return (
        share * answers.q + (1 - share) * answers.fake,
        share * answers.difference,
        share * answers.rest + (1 - share) * answers.fake_rest,
    )


def _hidden(
    oracle: str, epsilons: Sequence[Fraction], *, sizes: Sequence[Floats], share: float
) -> tuple[Floats, Bools]:
    """Follow `hidden_epsilon` through its bisection: epsilons of the answers, and whether they are sure."""
    promised, is_sure = np.array([float(each) for each in epsilons]), np.ones(len(epsilons), np.bool_)
    kept = np.zeros(len(epsilons), np.int64)
    broken = np.array([int((MAX_EPSILON - each) * 2**30) + 1 for each in epsilons], np.int64)
    while (is_open := broken - kept > 1).any():
        middle = (kept + broken) // 2
        answers = promised + middle * STEP
        found = [_answers(oracle, answers, k=k, share=share) for k in sizes]
        weights = np.array([each.weight for each, _ in found])
        # The loss of one value, minus 1, over what is allowed, minus 1.
        loss = np.expm1(answers) * weights.max(axis=0) / weights.sum(axis=0) / np.expm1(promised)
        is_clear = np.abs(loss - 1) > np.max([_slack(answers, k) for k in sizes], axis=0)
        is_too_much = np.expm1(answers) > 2 * len(sizes) * np.expm1(promised)  # for any choice
        is_sure &= ~is_open | is_too_much | np.all([is_clear, *(each for _, each in found)], axis=0)
        kept = np.where(is_open & (loss <= 1), middle, kept)
        broken = np.where(is_open & (loss > 1), middle, broken)
    return promised + kept * STEP, is_sure


def _slack(answers: Floats, k: Floats) -> Floats:
    """Relative error of what follows from thresholds, which are integers out of 2**64."""
    e = np.exp(answers)
    return ROUNDING + WORD_ROUNDING * (e + (e + k) / np.expm1(answers))
