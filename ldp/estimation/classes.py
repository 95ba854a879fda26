"""Classes of people who answer one question, each class by another channel: estimates for all people.

Each class g has N_g of the N visitors, and its reports give the unbiased f_g. Then

    stratified    f = sum of N_g / N f_g,        Var(f) = sum of (N_g / N)^2 Var(f_g),

for any shares of the classes. If all classes have the same shares, every f_g estimates them, and the mean
with weights in inverse proportion to the variances of the noise is more exact,

    pooled        f = sum of a_g f_g,            a_g ~ n_g / V_g,

where V_g is the noise of one report at f = 0: weights that depend on the data would make it biased. It is
given only if a chi-square test does not find that the classes differ. Not to find it proves nothing: so
pages must say that the same shares are assumed. Source of the idea: Chen et al., ICDE 2016 (PCE).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError, NoReportsError
from ldp.estimation.estimators import ENDLESS, Estimates, project_simplex, pure_frequencies, pure_variance
from ldp.estimation.joint.association import MAX_TESTED_CELLS, Association, chi_square_tail, contrasts
from ldp.estimation.joint.linear import frequency_covariances
from ldp.protocols.channels import GrrChannel, noise_at_zero
from ldp.protocols.unary import UnaryChannel

Floats = NDArray[np.float64]
ClassChannel = GrrChannel | UnaryChannel
ERROR: Final = 0.05  # of the test, where the classes have the same shares


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClassReports:
    """Reports of one class on one indicator in one window.

    Parameters
    ----------
    counts : ndarray of int64, shape (domain_size,); reports that support each value
    n_reports, n_visitors : int; of the class; visitors are at least as many as reports
    channel : GrrChannel or UnaryChannel; as used for the reports
    """

    counts: NDArray[np.int64]
    n_reports: int
    n_visitors: int
    channel: ClassChannel

    def estimates(self, *, n_population: int | None = None, level: float = 0.95) -> Estimates:
        """Return the estimates of `pure_frequencies`, by default among the visitors of the class."""
        population = self.n_visitors if n_population is None else n_population
        sizes = {"n_reports": self.n_reports, "n_population": population}
        return pure_frequencies(self.counts, channel=self.channel, level=level, **sizes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pooled:
    """Estimates that assume the same shares in all classes, and the test of that.

    estimates : None where the test finds that the classes differ
    test : homogeneity of the classes
    """

    estimates: Estimates | None
    test: Association


def stratified(classes: Sequence[ClassReports], *, level: float = 0.95) -> Estimates:
    """Frequency of each value among the visitors of all classes; each class weighs as its visitors.

    Parameters
    ----------
    classes : ClassReports; of one indicator and window; those without visitors have no weight
    level : float; of the interval, in (0, 1)

    Raises
    ------
    NoReportsError : a class with visitors has no reports, or no class has visitors
    LdpError : the classes have different numbers of values

    Notes
    -----
    Variances are exact, as those of the classes are, whose people are others. The interval is put together
    from the score intervals of the classes (MOVER, Zou and Donner, Statistics in Medicine 2008).
    """
    present = _present(classes)
    total = sum(each.n_visitors for each in present)
    return _mean([(each.n_visitors / total, each.estimates(level=level)) for each in present])


def stratified_variance(f: Sequence[Floats], *, classes: Sequence[ClassReports]) -> Floats:
    """Exact variance of `stratified` at true frequencies f of each class; shape (domain_size,).

    Of the classes only the sizes and the channels are used.
    """
    total = sum(each.n_visitors for each in classes)
    found = np.zeros(classes[0].channel.domain_size)
    for own, each in zip(f, classes, strict=True):
        sizes = {"n_reports": each.n_reports, "n_population": each.n_visitors}
        found += (each.n_visitors / total) ** 2 * pure_variance(own, channel=each.channel, **sizes)
    return found


def pooled_if_alike(
    classes: Sequence[ClassReports], *, error: float = ERROR, level: float = 0.95
) -> Pooled | None:
    """Frequency of each value if all classes have the same shares; none where a test finds that they differ.

    Parameters
    ----------
    classes, level : as of `stratified`
    error : float; chance that the test finds a difference where there is none, in (0, 1)

    Returns
    -------
    Pooled; None if fewer than two classes have visitors, or there are too many values for the test

    Raises
    ------
    LdpError, NoReportsError : as of `stratified`, or error is out of range

    Notes
    -----
    The visitors are taken as a sample of people like them: that among exactly these all classes have the
    same shares is true of no class. So the interval is about these people, too.
    """
    if not 0 < error < 1:
        raise LdpError(f"error must be in (0, 1), got {error}")
    present = _present(classes)
    if len(present) < 2 or (len(present) - 1) * (present[0].counts.size - 1) > MAX_TESTED_CELLS:
        return None
    test = homogeneity_test(present)
    if test.p_value < error:
        return Pooled(estimates=None, test=test)
    estimates = [each.estimates(n_population=ENDLESS, level=level) for each in present]
    return Pooled(estimates=_mean(list(zip(pooled_weights(present), estimates, strict=True))), test=test)


def pooled_weights(classes: Sequence[ClassReports]) -> list[float]:
    """Weights of the classes in a pooled estimate; they add up to 1, and depend on no answer."""
    precision = [each.n_reports / float(noise_at_zero(each.channel)) for each in classes]
    return [own / sum(precision) for own in precision]


def homogeneity_test(classes: Sequence[ClassReports]) -> Association:
    """Test whether two or more classes have the same shares.

    Parameters, Raises : as of `stratified`; each class has reports

    Notes
    -----
    Wald's chi-square of the contrasts of the values in each class, about their mean by inverse covariances,
    with (classes - 1)(values - 1) degrees of freedom. The covariances are exact at the pooled frequencies
    made consistent, as the hypothesis has them.
    """
    found = [each.estimates(n_population=ENDLESS).frequency for each in classes]
    weights = pooled_weights(classes)
    shares = project_simplex(sum(weight * own for weight, own in zip(weights, found, strict=True)))
    of_values = contrasts(shares.size)
    inverses = []
    for each in classes:
        sizes = {"n_reports": each.n_reports, "n_population": ENDLESS}
        covariance = frequency_covariances(shares, channel=each.channel, **sizes)
        inverses.append(np.linalg.inv(of_values @ covariance @ of_values.T))
    z = [of_values @ own for own in found]
    weighted = sum(inverse @ own for inverse, own in zip(inverses, z, strict=True))
    mean = np.linalg.solve(np.sum(inverses, axis=0), weighted)
    statistic = sum(
        float((own - mean) @ inverse @ (own - mean)) for inverse, own in zip(inverses, z, strict=True)
    )
    degrees = (len(classes) - 1) * (shares.size - 1)
    return Association(statistic=statistic, degrees=degrees, p_value=chi_square_tail(statistic, degrees))


def _present(classes: Sequence[ClassReports]) -> list[ClassReports]:
    """Classes with visitors."""
    if len({each.channel.domain_size for each in classes}) > 1:
        raise LdpError(f"classes must have the same values, got {[each.channel for each in classes]}")
    present = [each for each in classes if each.n_visitors]
    if not present:
        raise NoReportsError("a class must have visitors, got none")
    for each in present:
        if each.n_reports < 1:
            raise NoReportsError(f"a class with {each.n_visitors} visitors must have reports, got 0")
    return present


def _mean(terms: Sequence[tuple[float, Estimates]]) -> Estimates:
    """Weighted mean of independent estimates."""
    frequency = np.sum([weight * each.frequency for weight, each in terms], axis=0)

    def length(reaches: list[Floats]) -> Floats:
        squares = [(weight * reach) ** 2 for (weight, _), reach in zip(terms, reaches, strict=True)]
        return np.asarray(np.sqrt(np.sum(squares, axis=0)), np.float64)

    return Estimates(
        frequency=frequency,
        std_error=length([each.std_error for _, each in terms]),
        ci_low=frequency - length([each.frequency - each.ci_low for _, each in terms]),
        ci_high=frequency + length([each.ci_high - each.frequency for _, each in terms]),
        consistent=project_simplex(frequency),
    )
