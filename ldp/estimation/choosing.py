"""Choosing: how large the error of a plan will be, which epsilon an error needs, which mechanism does best.

Errors come from `pure_variance` only; this module says which channel each mechanism uses for which promise:

- Smp: each person answers one indicator, with all of epsilon, in either unit.
- Spl: each answers all, with epsilon / d, in either unit, as in a plan.
- RS+FD: each answers one indicator and sends fake values for the others. Per profile that hides nothing: the
  answers have epsilon. Per attribute they may have more, since the report that is not fake is unknown.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite, sqrt
from statistics import NormalDist, fmean
from typing import Literal, NotRequired, TypedDict, Unpack, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldp.errors import LdpError
from ldp.estimation.approximate_errors import first_that_reaches, report_laws
from ldp.estimation.estimators import pure_variance
from ldp.privacy.plans import FAKED, ORACLES
from ldp.protocols.channels import PureChannel, Unit
from ldp.protocols.fake_data import fake_data_channel, hidden_epsilon

Floats = NDArray[np.float64]
Solution = Literal[
    "smp-grr",
    "smp-oue",
    "smp-adp",
    "spl-grr",
    "spl-oue",
    "spl-adp",
    "rsfd-grr",
    "rsfd-ouez",
    "rsfd-adp",
]
WeightRule = Literal["uniform", "optimal", "minimax"]

_Z = NormalDist().inv_cdf(0.975)

LEAST_EPSILON = Fraction(1, 1000)  # of the search; less is no estimate, more is no privacy
LARGEST_EPSILON = Fraction(16)


class _Setting(TypedDict):
    """Questions of a plan and the people who answer them; as in `expected_error`."""

    unit: Unit
    domain_sizes: Sequence[int]
    n_population: int
    frequency: NotRequired[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedError:
    """Error of a mechanism before any report is there.

    Parameters
    ----------
    mechanism : str
    unit : "profile" or "attribute"; what epsilon is promised for
    epsilon : Fraction; the promise
    epsilon_answers : Fraction; nominal epsilon of one answer
    std_errors : tuple of float, shape (d,); standard deviation of a frequency of each indicator
    half_widths : tuple of float, shape (d,); half of the 95% interval, 1.96 times as large
    """

    mechanism: Solution
    unit: Unit
    epsilon: Fraction
    epsilon_answers: Fraction
    std_errors: tuple[float, ...]
    half_widths: tuple[float, ...]

    @property
    def mean_variance(self) -> float:
        """Mean over the indicators."""
        return fmean(error**2 for error in self.std_errors)

    @property
    def mean_half_width(self) -> float:
        """Mean over the indicators."""
        return fmean(self.half_widths)


def expected_error(
    mechanism: Solution,
    *,
    epsilon: Fraction,
    unit: Unit,
    domain_sizes: Sequence[int],
    n_population: int,
    frequency: float = 0.0,
    weights: Sequence[float] | None = None,
) -> ExpectedError:
    """Error of the unbiased estimate of one frequency, per indicator.

    Parameters
    ----------
    mechanism : str; a `Solution`
    epsilon : Fraction; as promised for the unit
    unit : "profile" or "attribute"
    domain_sizes : sequence of int, shape (d,)
    n_population : int; persons, all of whom take part; at least 1
    frequency : float; at which the error is wanted, in [0, 1]; 0 is the usual yardstick
    weights : sequence of float, shape (d,), or None; Smp only: share of each indicator; None = 1 / d

    Notes
    -----
    `pure_variance` at the expected number of reports. RS+FD: equal shares, and answers with `hidden_epsilon`.
    """
    _check(mechanism, unit, domain_sizes, n_population=n_population, frequency=frequency)
    shares = _shares(weights, d=len(domain_sizes), mechanism=mechanism)
    answers, channels = _channels(mechanism, epsilon=epsilon, unit=unit, domain_sizes=domain_sizes)
    is_sampled = mechanism.startswith("smp")
    errors = tuple(
        sqrt(
            pure_variance(
                frequency,
                n_reports=n_population * (share if is_sampled else 1),
                n_population=n_population,
                channel=channel,
            )
        )
        for share, channel in zip(shares, channels, strict=True)
    )
    return ExpectedError(
        mechanism=mechanism,
        unit=unit,
        epsilon=epsilon,
        epsilon_answers=answers,
        std_errors=errors,
        half_widths=tuple(_Z * error for error in errors),
    )


def rank_mechanisms(*, epsilon: Fraction, **setting: Unpack[_Setting]) -> tuple[ExpectedError, ...]:
    """All mechanisms with the same promise, the smallest mean variance first.

    Parameters : as in `expected_error`

    Per profile RS+FD never wins: it is Smp with fake values added to the answer. Per attribute it may, for a
    small epsilon and large domains.
    """
    errors = [expected_error(mechanism, epsilon=epsilon, **setting) for mechanism in get_args(Solution)]
    return tuple(sorted(errors, key=lambda error: error.mean_variance))


def epsilon_for_error(
    mechanism: Solution,
    *,
    half_width: float,
    **setting: Unpack[_Setting],
) -> Fraction:
    """Smallest epsilon, to a thousandth, with a mean half-width of the 95% interval as wanted or smaller.

    Parameters
    ----------
    half_width : float; above 0, as a frequency
    mechanism, setting : as in `expected_error`

    Raises
    ------
    LdpError : no epsilon of [0.001, 16] has this error; the message names the range that can be reached

    Notes
    -----
    With "adp" the error does not always fall as epsilon rises. So every thousandth is looked at, nearly, and
    those that may do exactly, in their order (`ldp.estimation.approximate_errors`).
    """

    def error(thousandths: int) -> float:
        return expected_error(mechanism, epsilon=Fraction(thousandths, 1000), **setting).mean_half_width

    few, many = int(1000 * LEAST_EPSILON), int(1000 * LARGEST_EPSILON)
    largest = error(few)
    steps = [Fraction(thousandths, 1000) for thousandths in range(few, many + 1)]
    sizes, n_population = setting["domain_sizes"], setting["n_population"]
    laws = report_laws(mechanism, unit=setting["unit"], epsilons=steps, domain_sizes=sizes)
    n_reports = n_population / len(sizes) if mechanism.startswith("smp") else n_population
    f = setting.get("frequency", 0.0)
    errors = [law.std_error(f, n_reports=n_reports, n_population=n_population) for law in laws]
    nearly = _Z * np.mean(errors, axis=0)
    found = None
    if half_width <= largest:
        found = first_that_reaches(nearly, laws, exactly=lambda at: error(few + at), wanted=half_width)
    if found is None:
        smallest = error(few + int(nearly.argmin()))
        raise LdpError(f"half_width must be in [{smallest:.6g}, {largest:.6g}], got {half_width:.6g}")
    return steps[found]


def smp_weights(variances: ArrayLike, *, rule: WeightRule, importance: ArrayLike | None = None) -> Floats:
    """Return how often Smp should ask each indicator; independent of all data, so the promise is the same.

    Parameters
    ----------
    variances : array_like of float, shape (d,); of one report's estimate (`noise_at_zero`), above 0
    rule : "uniform", "optimal" (least weighted sum of variances) or "minimax" (least largest variance)
    importance : array_like of float, shape (d,), or None; of the sum, above 0; None = all 1

    Returns
    -------
    ndarray of float64, shape (d,); sum 1

    Notes
    -----
    Minimise sum of u_j V_j / w_j: w_j proportional to sqrt(u_j V_j); largest of V_j / w_j: to V_j.
    """
    if rule not in get_args(WeightRule):
        raise LdpError(f"rule must be one of {get_args(WeightRule)}, got {rule!r}")
    if importance is not None and rule != "optimal":
        raise LdpError(f"importance must be absent for rule {rule!r}, got {importance!r}")
    noise = _positive("variances", variances)
    worth = np.ones(noise.shape) if importance is None else _positive("importance", importance)
    if worth.shape != noise.shape:
        raise LdpError(f"importance must have shape {noise.shape}, got {worth.shape}")
    exponent = {"uniform": 0.0, "optimal": 0.5, "minimax": 1.0}[rule]
    raw = (worth * noise) ** exponent
    return np.asarray(raw / raw.sum(), np.float64)


def _channels(
    mechanism: Solution, *, epsilon: Fraction, unit: Unit, domain_sizes: Sequence[int]
) -> tuple[Fraction, Sequence[PureChannel]]:
    """Nominal epsilon of the answers, and the channel of the reports on each indicator."""
    family, kind = mechanism.split("-")
    if family == "rsfd":
        protocol = FAKED[mechanism]
        answers = hidden_epsilon(protocol, epsilon=epsilon, unit=unit, domain_sizes=domain_sizes)
        # Per profile, since what is found is the epsilon of the answers already.
        faked = fake_data_channel(protocol, epsilon=answers, unit="profile", domain_sizes=domain_sizes)
        return answers, faked.reports
    answers = epsilon / len(domain_sizes) if family == "spl" else epsilon
    return answers, [ORACLES[kind](epsilon=answers, domain_size=k) for k in domain_sizes]


def _shares(weights: Sequence[float] | None, *, d: int, mechanism: Solution) -> Sequence[float]:
    if weights is None:
        return [1 / d] * d
    if not mechanism.startswith("smp"):
        raise LdpError(f"weights must be absent for {mechanism}, got {weights!r}")
    if len(weights) != d or min(weights) <= 0 or not abs(sum(weights) - 1) < 1e-9:
        raise LdpError(f"weights must be {d} numbers > 0 with sum 1, got {weights!r}")
    return weights


def _positive(name: str, values: ArrayLike) -> Floats:
    array = np.asarray(values, np.float64)
    if array.ndim != 1 or array.size == 0 or not (np.isfinite(array) & (array > 0)).all():
        raise LdpError(f"{name} must be finite and > 0 with shape (d,), got {values!r}")
    return array


def _check(
    mechanism: Solution, unit: Unit, domain_sizes: Sequence[int], *, n_population: int, frequency: float
) -> None:
    if mechanism not in get_args(Solution):
        raise LdpError(f"mechanism must be one of {get_args(Solution)}, got {mechanism!r}")
    if unit not in get_args(Unit):
        raise LdpError(f"unit must be one of {get_args(Unit)}, got {unit!r}")
    if not domain_sizes:
        raise LdpError("domain_sizes must hold an indicator, got none")
    if n_population < 1:
        raise LdpError(f"n_population must be >= 1, got {n_population}")
    if not (isfinite(frequency) and 0 <= frequency <= 1):
        raise LdpError(f"frequency must be in [0, 1], got {frequency}")
