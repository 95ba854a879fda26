"""Tables 6.3 and 6.4: how much smaller the error of ALLOMFREE is than that of L-SUE and L-OUE.

On MS-FIMU and Nursery. Each person answers one attribute (Smp), once. The error of a run is the squared error
of the clipped estimates, averaged over the categories of an attribute and then over the attributes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from math import sqrt
from statistics import fmean
from typing import Final, Literal, get_args

import numpy as np

import ldp
from benchmarks.reproduce import published, runs
from benchmarks.reproduce.exact import budgets
from benchmarks.reproduce.marginals import People, everybody, nursery
from benchmarks.reproduce.published import DataSet
from benchmarks.reproduce.runs import Comparison, Estimate, Floats

ALPHAS: Final = ("0.3", "0.6")
PEOPLE: Final[Mapping[DataSet, Callable[[], People]]] = {"ms-fimu": everybody, "nursery": nursery}
Baseline = Literal["l-sue", "l-oue"]
Tuning = Literal["paper", "exact"]  # of ALLOMFREE
PROTOCOLS: Final[tuple[Tuning | Baseline, ...]] = (*get_args(Tuning), *get_args(Baseline))

Channel = ldp.TwoRoundGrr | ldp.TwoRoundUnary


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One protocol at one pair of epsilons on one data set; epsilon_1 is alpha epsilon_inf."""

    protocol: Tuning | Baseline
    alpha: str
    epsilon_inf: str
    data: DataSet = "ms-fimu"

    @property
    def name(self) -> str:
        """Return the name of its runs."""
        place = "" if self.data == "ms-fimu" else f"{self.data}/"
        return f"gains/{place}{self.protocol}/{self.alpha}/{self.epsilon_inf}"

    @property
    def people(self) -> People:
        """Return the people of its data set."""
        return PEOPLE[self.data]()


Errors = Mapping[Setting, Floats]


def settings() -> list[Setting]:
    """Return all settings of both tables."""
    return [
        Setting(data=data, protocol=protocol, alpha=alpha, epsilon_inf=epsilon_inf)
        for data, protocol, alpha, epsilon_inf in product(PEOPLE, PROTOCOLS, ALPHAS, published.GAIN_EPSILONS)
    ]


def channels(setting: Setting) -> list[Channel]:
    """Channel of each attribute."""
    nominal = budgets(setting.epsilon_inf, alpha=setting.alpha)

    def channel(domain_size: int) -> Channel:
        match setting.protocol:
            case "l-sue" | "l-oue" as baseline:
                return ldp.lue_channel(baseline, **nominal, domain_size=domain_size)
            case tuning:
                return ldp.allomfree_channel(**nominal, domain_size=domain_size, tuning=tuning)

    return [channel(k) for k in setting.people.domain_sizes]


def errors(setting: Setting, n_runs: int) -> Floats:
    """Mean squared error of each run; shape (n_runs,)."""
    chosen = channels(setting)
    people = setting.people
    return np.array([_error(chosen, people=people, prf=runs.prf(setting.name, run)) for run in range(n_runs)])


def expected_error(setting: Setting) -> float:
    """Mean squared error of the unbiased estimates, without the clip; exact."""
    people = setting.people
    variances = [
        ldp.pure_variance(
            f,
            n_reports=people.pseudonyms.size / len(people.columns),
            n_population=people.pseudonyms.size,
            channel=channel,
        ).mean()
        for f, channel in zip(people.frequencies, channels(setting), strict=True)
    ]
    return float(np.mean(variances))


def gain(
    found: Errors, *, alpha: str, baseline: Baseline, tuning: Tuning, data: DataSet = "ms-fimu"
) -> Estimate:
    """Gain in percent, mean over epsilon_inf, with its standard error over the runs.

    Notes
    -----
    All settings have their own keys, so they are independent: the error follows from the derivatives of
    1 - A / B by A and B.
    """
    value, variance = 0.0, 0.0
    n = len(published.GAIN_EPSILONS)
    for epsilon_inf in published.GAIN_EPSILONS:
        a, b = (
            runs.mean(found[Setting(data=data, protocol=protocol, alpha=alpha, epsilon_inf=epsilon_inf)])
            for protocol in (tuning, baseline)
        )
        ratio = a.value / b.value
        value += 100 * (1 - ratio) / n
        relative = (a.std_error / a.value) ** 2 + (b.std_error / b.value) ** 2
        variance += (100 * ratio / n) ** 2 * relative
    return Estimate(value=value, std_error=sqrt(variance))


def gains(found: Errors, *, alpha: str, baseline: Baseline, tuning: Tuning) -> list[float]:
    """Gain in percent for each epsilon_inf."""
    return [
        100
        * (
            1
            - found[Setting(protocol=tuning, alpha=alpha, epsilon_inf=epsilon_inf)].mean()
            / found[Setting(protocol=baseline, alpha=alpha, epsilon_inf=epsilon_inf)].mean()
        )
        for epsilon_inf in published.GAIN_EPSILONS
    ]


def expected_gain(*, alpha: str, baseline: Baseline, tuning: Tuning, data: DataSet = "ms-fimu") -> float:
    """Gain in percent of unbiased estimates, mean over epsilon_inf; exact."""
    ratios = []
    for epsilon_inf in published.GAIN_EPSILONS:
        ours, theirs = (
            expected_error(Setting(data=data, protocol=protocol, alpha=alpha, epsilon_inf=epsilon_inf))
            for protocol in (tuning, baseline)
        )
        ratios.append(ours / theirs)
    return 100 * (1 - fmean(ratios))


def compare(found: Errors, *, alpha: str, baseline: Baseline, data: DataSet = "ms-fimu") -> Comparison:
    """Return our gain in paper tuning and the published one, which is over 100 runs."""
    ours = gain(found, alpha=alpha, baseline=baseline, tuning="paper", data=data)
    n_runs = next(iter(found.values())).size
    published_error = ours.std_error * sqrt(n_runs / published.GAIN_RUNS)
    value = published.GAINS[data][alpha, baseline]
    return Comparison(published=Estimate(value=value, std_error=published_error), ours=ours)


def _error(chosen: list[Channel], *, people: People, prf: ldp.KeyedPrf) -> float:
    asked = ldp.choose_indicator(people.pseudonyms, prf=prf, d=len(chosen))
    squared = []
    for index, (channel, column, truth) in enumerate(
        zip(chosen, people.columns, people.frequencies, strict=True)
    ):
        rows = np.flatnonzero(asked == index)
        support = _reporter(channel, prf=prf, indicator=index).support(
            column[rows], pseudonyms=people.pseudonyms[rows], report=0
        )
        estimates = ldp.pure_frequencies(
            support.counts, n_reports=support.n_reports, n_population=asked.size, channel=channel
        )
        squared.append(((runs.clipped(estimates.frequency) - truth) ** 2).mean())
    return float(np.mean(squared))


def _reporter(channel: Channel, *, prf: ldp.KeyedPrf, indicator: int) -> ldp.GrrReporter | ldp.UnaryReporter:
    if isinstance(channel, ldp.TwoRoundGrr):
        return ldp.GrrReporter(channel=channel, prf=prf, indicator=indicator, plan_version=1)
    return ldp.UnaryReporter(channel=channel, prf=prf, indicator=indicator, plan_version=1)
