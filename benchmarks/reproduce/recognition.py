"""Attribute inference on RS+FD (finding the answer): the best attack, on simulated reports.

The attacker sees all six reports of a visitor of MS-FIMU and knows the channel and the shares of each
attribute. The thesis asks whether this can be done (section 12.2) and prints nothing. Answers have its
amplified epsilon.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

import ldp
from benchmarks.reproduce import runs
from benchmarks.reproduce.exact import amplified_epsilon
from benchmarks.reproduce.marginals import everybody
from benchmarks.reproduce.runs import Floats
from ldp.privacy.attacker import answer_success, answered_success

Variant = Literal["grr", "ouez", "ouer"]
EPSILONS: Final = ("0.5", "1", "2", "3")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One variant of RS+FD at one epsilon of the thesis."""

    variant: Variant
    epsilon: str

    @property
    def name(self) -> str:
        """Name of its runs."""
        return f"recognition/{self.variant}/{self.epsilon}"


def settings() -> list[Setting]:
    """All of the table."""
    return [Setting(variant=each, epsilon=epsilon) for each, epsilon in product(get_args(Variant), EPSILONS)]


@cache
def channel(setting: Setting) -> ldp.FakeDataChannel:
    """Return the channel of the thesis: the answers have the amplified epsilon."""
    sizes = everybody().domain_sizes
    answers = amplified_epsilon(Fraction(setting.epsilon), d=len(sizes))
    return ldp.fake_data_channel(setting.variant, epsilon=answers, unit="profile", domain_sizes=sizes)


def expected(setting: Setting) -> tuple[float, float]:
    """Probability that the best guess names the answer, and that it names the answer and its true value."""
    known = everybody().frequencies
    return answered_success(channel(setting), priors=known), answer_success(channel(setting), priors=known)


def before() -> tuple[float, float]:
    """Return the success of the best guess without reports."""
    d = len(everybody().domain_sizes)
    return 1 / d, max(float(f.max()) for f in everybody().frequencies) / d


def successes(setting: Setting, n_runs: int) -> Floats:
    """Share of people whose answer is recognised, by run; shape (n_runs,)."""
    return np.array([_success(setting, prf=runs.prf(setting.name, run)) for run in range(n_runs)])


def _success(setting: Setting, *, prf: ldp.KeyedPrf) -> float:
    people, made = everybody(), channel(setting)
    reports = ldp.fake_data_answers(
        people.columns, pseudonyms=people.pseudonyms, prf=prf, channel=made, plan_version=1
    )
    likelihoods = [
        _likelihood(seen, report=report, shares=f)
        for seen, report, f in zip(reports, made.reports, people.frequencies, strict=True)
    ]
    answered = ldp.choose_indicator(people.pseudonyms, prf=prf, d=len(likelihoods))
    return float((np.argmax(likelihoods, axis=0) == answered).mean())


def _likelihood(seen: NDArray[Any], *, report: ldp.FakedChannel, shares: Floats) -> Floats:
    """Return the likelihood ratio of each report, as an answer and as a fake."""
    p, q = float(report.answer.p), float(report.answer.q)
    if report.fake == "code":
        return np.asarray(shares.size * (q + (p - q) * shares[seen]))
    hit, miss = p / q, (1 - p) / (1 - q)
    values = np.arange(shares.size, dtype=np.uint64)
    bits = (seen[:, values // 64] >> values % 64 & 1).astype(np.float64)
    as_answer = miss + (hit - miss) * bits @ shares
    if report.fake == "no value":
        return np.asarray(as_answer)
    return np.asarray(as_answer / (miss + (hit - miss) * bits.mean(axis=1)))
