"""LOLOHA's paper (EDBT 2023): numbers of hash values, variances, and its synthetic data over 120 collections.

Figures 1 to 4 and tables 1 and 2, as far as they need no closed data. All protocols are in paper tuning, with
epsilon_1 = alpha epsilon_inf; dBitFlipPM has one round. Errors are those of some collections, since all are
alike.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

import ldp
from benchmarks.reproduce import published, runs
from benchmarks.reproduce.exact import budgets
from benchmarks.reproduce.runs import Comparison, Estimate, Floats
from ldp.kernels.entropy import HASH_SEED
from ldp.keyed.hashing import hash_values
from ldp.protocols.two_round import best_buckets

Protocol = Literal["RAPPOR", "L-OSUE", "L-GRR", "1BitFlipPM", "bBitFlipPM", "BiLOLOHA", "OLOLOHA"]
Words = NDArray[np.uint64]
Values = NDArray[np.int32]

PROTOCOLS: Final[tuple[Protocol, ...]] = get_args(Protocol)
SAMPLED: Final = {"1BitFlipPM": 1, "bBitFlipPM": published.SYN_VALUES}  # bits of a person
COLUMNS: Final = ("error", "loss", "caught")
ALPHA: Final = "0.5"
EPSILONS: Final = ("1", "3", "5")
MOST_BUCKETS: Final = 40  # that are tried; the best have up to 17
REPORTED: Final = range(0, published.SYN_COLLECTIONS, 30)  # collections of which errors are computed
WATCHED: Final = 1000  # people of whom changes are looked for
_FIELDS: Final = {"indicator": 0, "plan_version": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One protocol at one epsilon_inf."""

    protocol: Protocol
    epsilon_inf: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Figures 1 and 2 at one epsilon_inf and alpha.

    best : int; number of buckets with the least variance, of all up to `MOST_BUCKETS`
    equation : int; that of equation (6)
    variances : dict of float; at frequency 0, of `published.TABLE_USERS` people, by protocol with two rounds
    """

    epsilon_inf: str
    alpha: str
    best: int
    equation: int
    variances: dict[Protocol, float]


def settings() -> list[Setting]:
    """All settings of the simulation."""
    return [
        Setting(protocol=protocol, epsilon_inf=epsilon) for protocol, epsilon in product(PROTOCOLS, EPSILONS)
    ]


def channel(protocol: Protocol, *, epsilon_inf: str, alpha: str = ALPHA) -> Any:
    """Return the channel on the synthetic data."""
    nominal: dict[str, Any] = {**budgets(epsilon_inf, alpha=alpha), "domain_size": published.SYN_VALUES}
    if protocol in SAMPLED:
        nominal = {"epsilon": Fraction(epsilon_inf), "domain_size": published.SYN_VALUES}
        return ldp.bit_flip_channel(**nominal, sampled=SAMPLED[protocol], tuning="paper")
    if protocol == "L-GRR":
        return ldp.lgrr_channel(**nominal, tuning="paper")
    if protocol in ("RAPPOR", "L-OSUE"):
        return ldp.lue_channel("l-sue" if protocol == "RAPPOR" else "l-osue", **nominal)
    return ldp.loloha_channel(**nominal, buckets=2 if protocol == "BiLOLOHA" else None, tuning="paper")


@cache
def cells() -> tuple[Cell, ...]:
    """Figures 1 and 2."""
    return tuple(map(_cell, *zip(*product(published.TABLE_ALPHAS, published.LOLOHA_EPSILONS), strict=True)))


def _cell(alpha: str, epsilon_inf: str) -> Cell:
    nominal = budgets(epsilon_inf, alpha=alpha)

    def noise(buckets: int) -> Fraction:
        asked: dict[str, Any] = {**nominal, "buckets": buckets, "tuning": "paper"}
        return ldp.noise_at_zero(ldp.loloha_channel(domain_size=published.SYN_VALUES, **asked))

    two_rounds = [protocol for protocol in PROTOCOLS if protocol not in SAMPLED]
    made = {each: channel(each, epsilon_inf=epsilon_inf, alpha=alpha) for each in two_rounds}
    return Cell(
        epsilon_inf=epsilon_inf,
        alpha=alpha,
        best=min(range(2, MOST_BUCKETS + 1), key=noise),
        equation=best_buckets(**nominal, tuning="paper"),
        variances={
            name: float(ldp.noise_at_zero(each) / published.TABLE_USERS) for name, each in made.items()
        },
    )


def variance_ratios(protocol: Protocol) -> tuple[float, float]:
    """Least and largest variance over that of L-OSUE, in all cells of figure 2."""
    found = [each.variances[protocol] / each.variances["L-OSUE"] for each in cells()]
    return min(found), max(found)


def kept_answers(setting: Setting) -> int:
    """Most answers that are kept of one person, which table 1 multiplies by epsilon_inf."""
    if setting.protocol in SAMPLED:
        return min(SAMPLED[setting.protocol] + 1, published.SYN_VALUES)
    return int(channel(setting.protocol, epsilon_inf=setting.epsilon_inf).kept_answers)


def errors(setting: Setting, n_runs: int) -> Floats:
    """Run the synthetic data; shape (n_runs, 3), columns `COLUMNS`.

    error : mean squared error over values and some collections, not clipped
    loss : mean over people of epsilon_inf times their kept answers, over all collections
    caught : share of some people of whom equal and different reports show every change; 0 with fresh noise
    """
    name = f"loloha/{setting.protocol}/{setting.epsilon_inf}"
    return np.array([_run(setting, name, run) for run in range(n_runs)])


def truth(name: str, run: int) -> Values:
    """Values of all people: uniform at first, then another one with the probability of a change.

    Returns
    -------
    ndarray of int32, shape (120, 10,000)
    """
    stream = ldp.KeyedStream(runs.key(f"{name}/values", run))
    n, k, change = published.SYN_USERS, published.SYN_VALUES, published.SYN_CHANGE
    found = [stream.uniform_int(n, 0, k)]
    for _ in range(published.SYN_COLLECTIONS - 1):
        moves = stream.uniform_int(n, 0, change.denominator) < change.numerator
        found.append(np.where(moves, (found[-1] + stream.uniform_int(n, 1, k)) % k, found[-1]))
    return np.array(found, np.int32)


def expected_error(setting: Setting, *, values: Values) -> float:
    """Mean over values of the exact variance of a collection."""
    n, k = values.size, published.SYN_VALUES
    made = channel(setting.protocol, epsilon_inf=setting.epsilon_inf)
    n_reports = n * SAMPLED.get(setting.protocol, k) / k
    shares = np.bincount(values, minlength=k) / n
    return float(ldp.pure_variance(shares, n_reports=n_reports, n_population=n, channel=made).mean())


def compare(setting: Setting, of_runs: Floats) -> Comparison:
    """Compare the share of people who are caught with that of table 2."""
    printed = Estimate(value=published.CAUGHT[setting.protocol], std_error=published.CAUGHT_ROUNDING)
    return Comparison(published=printed, ours=runs.mean(of_runs[:, COLUMNS.index("caught")]))


def _run(setting: Setting, name: str, run: int) -> tuple[float, float, float]:
    values, people = truth(name, run), np.arange(1, published.SYN_USERS + 1, dtype=np.uint64)
    made = channel(setting.protocol, epsilon_inf=setting.epsilon_inf)
    reporter = _reporter(made, runs.prf(name, run))
    squares = []
    for report, day in enumerate(REPORTED):
        of_day = values[day]
        numbered = {} if setting.protocol in SAMPLED else {"report": report}
        found = reporter.support(of_day, pseudonyms=people, **numbered)
        estimates = ldp.pure_frequencies(
            found.counts, n_reports=found.n_reports, n_population=people.size, channel=made
        )
        shares = np.bincount(of_day, minlength=published.SYN_VALUES) / people.size
        squares.append(float(np.mean((estimates.frequency - shares) ** 2)))
    kept = _distinct(_answered(setting, reporter, values, people))
    watched = values[:, :WATCHED].copy(), people[:WATCHED]
    caught = _caught(reporter, *watched) if setting.protocol in SAMPLED else 0.0
    return float(np.mean(squares)), float(setting.epsilon_inf) * float(kept.mean()), caught


def _reporter(made: Any, prf: ldp.KeyedPrf) -> Any:
    kinds = {
        ldp.TwoRoundGrr: ldp.GrrReporter,
        ldp.TwoRoundUnary: ldp.UnaryReporter,
        ldp.TwoRoundHash: ldp.HashReporter,
        ldp.BitFlipChannel: ldp.BitFlipReporter,
    }
    return kinds[type(made)](channel=made, prf=prf, **_FIELDS)


def _answered(setting: Setting, reporter: Any, values: Values, people: Words) -> NDArray[np.int64]:
    """Number of the kept answer on each day: by value or bucket; one for all values that are not sampled."""
    if setting.protocol in ("BiLOLOHA", "OLOLOHA"):
        seeds = reporter.prf.words(people, **_FIELDS, purpose=HASH_SEED, values=0, counter=0)[:, 0].copy()
        n_cells = reporter.channel.buckets
        return np.array(
            [hash_values(seeds, values=of_day.astype(np.uint32), n_cells=n_cells) for of_day in values],
            np.int64,
        )
    if setting.protocol in SAMPLED:
        words = reporter.chosen(people)
        bits = words[np.arange(people.size), values >> 6] >> (values & 63).astype(np.uint64)
        return np.where(bits & np.uint64(1) == 1, values, published.SYN_VALUES).astype(np.int64)
    return values.astype(np.int64)


def _distinct(answered: NDArray[np.int64]) -> NDArray[np.int64]:
    """Different answers of each person; shape (people,)."""
    ordered = np.sort(answered, axis=0)
    return np.asarray(1 + (np.diff(ordered, axis=0) != 0).sum(axis=0), np.int64)


def _caught(reporter: Any, values: Values, people: Words) -> float:
    """Share of people with a change, of whom reports change whenever values do."""
    reports = [reporter.reports(of_day, pseudonyms=people) for of_day in values]
    is_seen = np.array(
        [(one != other).any(axis=1) for one, other in zip(reports[1:], reports[:-1], strict=True)]
    )
    is_change = np.diff(values, axis=0) != 0
    return float((is_seen == is_change).all(axis=0)[is_change.any(axis=0)].mean())
