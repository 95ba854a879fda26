"""Figure 7.11: mean squared error of Spl, Smp and RS+FD on MS-FIMU by epsilon, clipped as in the paper."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

import ldp
from benchmarks.reproduce import published, runs
from benchmarks.reproduce.exact import VARIANTS, Variant, amplified_epsilon
from benchmarks.reproduce.marginals import everybody
from benchmarks.reproduce.runs import Floats

Solution = Literal["smp", "spl"] | Variant
Channel = ldp.GrrChannel | ldp.UnaryChannel
PLAIN: Final[tuple[Solution, ...]] = ("smp", "spl")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One solution at one epsilon.

    Parameters
    ----------
    solution : "smp" or "spl" (of ADP), or a variant of RS+FD
    epsilon : str; nominal
    amplified : bool; RS+FD only: answers with the epsilon of the thesis, which a profile then loses
    """

    solution: Solution
    epsilon: str
    amplified: bool

    @property
    def name(self) -> str:
        """Name of its runs."""
        return f"solutions/{self.solution}/{self.epsilon}/{'thesis' if self.amplified else 'profile'}"


def settings() -> list[Setting]:
    """All of the figure, and RS+FD at the same epsilon per profile."""
    plain = product(PLAIN, published.SOLUTION_EPSILONS, (False,))
    faked = product(VARIANTS, published.SOLUTION_EPSILONS, (True, False))
    return [
        Setting(solution=solution, epsilon=epsilon, amplified=amplified)
        for solution, epsilon, amplified in (*plain, *faked)
    ]


def curve(solution: Solution, *, amplified: bool) -> list[Setting]:
    """One line of the figure; Smp and Spl have nothing to amplify."""
    return [
        Setting(solution=solution, epsilon=epsilon, amplified=amplified and solution not in PLAIN)
        for epsilon in published.SOLUTION_EPSILONS
    ]


def errors(setting: Setting, n_runs: int) -> Floats:
    """Mean squared error of each run; shape (n_runs,)."""
    return np.array([_error(setting, prf=runs.prf(setting.name, run)) for run in range(n_runs)])


def _error(setting: Setting, *, prf: ldp.KeyedPrf) -> float:
    people, epsilon = everybody(), Fraction(setting.epsilon)
    d = len(people.columns)
    if setting.solution == "smp":
        channels = _adaptive(epsilon)
        asked = ldp.choose_indicator(people.pseudonyms, prf=prf, d=d)
        rows = [np.flatnonzero(asked == index) for index in range(d)]
        return _mean_error(channels, _supports(channels, rows=rows, prf=prf))
    if setting.solution == "spl":
        channels = _adaptive(epsilon / d)
        everyone = np.arange(people.pseudonyms.size)
        return _mean_error(channels, _supports(channels, rows=[everyone] * d, prf=prf))
    channel = ldp.fake_data_channel(
        setting.solution,
        epsilon=amplified_epsilon(epsilon, d=d) if setting.amplified else epsilon,
        unit="profile",
        domain_sizes=people.domain_sizes,
    )
    counts = ldp.fake_data_counts(
        people.columns, pseudonyms=people.pseudonyms, prf=prf, channel=channel, plan_version=1
    )
    supports = [ldp.Support(counts=each, n_reports=people.pseudonyms.size) for each in counts]
    return _mean_error(channel.reports, supports)


def _adaptive(epsilon: Fraction) -> list[Channel]:
    return [ldp.adp_channel(epsilon=epsilon, domain_size=k) for k in everybody().domain_sizes]


def _supports(
    channels: Sequence[Channel], *, rows: Sequence[NDArray[np.intp]], prf: ldp.KeyedPrf
) -> list[ldp.Support]:
    """Counts of each attribute, answered by some rows."""
    people = everybody()
    supports = []
    for index, (channel, chosen) in enumerate(zip(channels, rows, strict=True)):
        counts = ldp.support_counts(
            people.columns[index][chosen],
            pseudonyms=people.pseudonyms[chosen],
            prf=prf,
            channel=channel,
            indicator=index,
            plan_version=1,
        )
        supports.append(ldp.Support(counts=counts, n_reports=chosen.size))
    return supports


def _mean_error(channels: Sequence[ldp.PureChannel], supports: Sequence[ldp.Support]) -> float:
    people = everybody()
    squared = []
    for channel, support, truth in zip(channels, supports, people.frequencies, strict=True):
        estimates = ldp.pure_frequencies(
            support.counts,
            n_reports=support.n_reports,
            n_population=people.pseudonyms.size,
            channel=channel,
        )
        squared.append(((runs.clipped(estimates.frequency) - truth) ** 2).mean())
    return float(np.mean(squared))
