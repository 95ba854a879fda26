"""Figures 5.4 and 5.5: error of Smp[GRR] and Spl[GRR] on MS-FIMU in all 28 windows of seven days.

French visitors only, five attributes that stay and the visit duration, which a window counts on a visitor's
first day in it. The error of a window is the root of the mean squared error over the categories of all six
attributes together, clipped as in the paper.
"""

from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from itertools import product
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

import ldp
from benchmarks.reproduce import published, runs
from benchmarks.reproduce.marginals import french_visitors
from benchmarks.reproduce.runs import Floats

DAYS: Final = 7
WINDOWS: Final = tuple((a, b) for a in range(1, DAYS + 1) for b in range(a, DAYS + 1))
SLUGS: Final = ("gender", "age", "geolife", "region", "sleeping_area", "visit_duration")

Solution = Literal["smp-grr", "spl-grr"]
SOLUTIONS: Final[tuple[Solution, ...]] = ("smp-grr", "spl-grr")
Codes = NDArray[np.uint16]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One solution at one epsilon.

    Parameters
    ----------
    solution : "smp-grr" or "spl-grr"
    epsilon : str; nominal
    per_profile : bool; epsilon is what a whole profile loses in the week, daily answers added up; else, as in
        the thesis, what one answer (smp) or all answers of one day (spl) have
    """

    solution: Solution
    epsilon: str
    per_profile: bool

    @property
    def name(self) -> str:
        """Name of its runs."""
        return f"windows/{self.solution}/{self.epsilon}/{'profile' if self.per_profile else 'thesis'}"


def settings() -> list[Setting]:
    """All of the figures, and the same at equal epsilon per profile."""
    return [
        Setting(solution=solution, epsilon=epsilon, per_profile=per_profile)
        for solution, epsilon, per_profile in product(SOLUTIONS, published.WINDOW_EPSILONS, (False, True))
    ]


def plan(setting: Setting) -> ldp.PlanSpec:
    """The plan of a study with these attributes."""
    epsilon = Decimal(setting.epsilon)
    daily = None
    if setting.per_profile and setting.solution == "spl-grr":
        epsilon /= 2  # (5 + 7) answers of epsilon / 6
    elif setting.per_profile:
        daily = (epsilon / DAYS).quantize(Decimal("1e-12"), "ROUND_DOWN")
    requests = [
        ldp.IndicatorRequest(
            slug=slug,
            kind="daily" if slug == SLUGS[-1] else "static",
            domain_size=k,
            epsilon=daily if slug == SLUGS[-1] else None,
        )
        for slug, k in zip(SLUGS, domain_sizes(), strict=True)
    ]
    return ldp.build_plan(
        mechanism=setting.solution,
        unit="profile",
        version=1,
        days=DAYS,
        epsilon=epsilon,
        indicators=requests,
    )


def domain_sizes() -> tuple[int, ...]:
    """Return the domain sizes of the six attributes."""
    visitors = french_visitors()
    return (*visitors.people.domain_sizes, int(visitors.durations.max()) + 1)


def errors(setting: Setting, n_runs: int) -> Floats:
    """Root mean squared error of each run and window; shape (n_runs, 28)."""
    spec = plan(setting)
    return np.array([_errors(spec, prf=runs.prf(setting.name, run)) for run in range(n_runs)])


@cache
def n_visitors() -> tuple[int, ...]:
    """Visitors of each window."""
    tally = np.zeros((DAYS + 1, DAYS + 1), np.int64)
    ldp.tally_visitors(french_visitors().presence, tally, sign=1)
    unions = ldp.all_unions(tally)
    return tuple(int(unions[window]) for window in WINDOWS)


@cache
def truth() -> tuple[Floats, ...]:
    """True frequencies per attribute; shape (domain size, 28)."""
    visitors = french_visitors()
    everyone = np.arange(visitors.presence.size)
    codes = [column.astype(np.uint16) for column in visitors.people.columns]
    daily = np.where(visitors.durations < 0, ldp.NO_ANSWER, visitors.durations).astype(np.uint16)
    counts = [_tally(index, each, everyone) for index, each in enumerate([*codes, daily])]
    return tuple(each / each.sum(axis=0) for each in counts)


def _errors(spec: ldp.PlanSpec, *, prf: ldp.KeyedPrf) -> Floats:
    visitors = french_visitors()
    pseudonyms = visitors.people.pseudonyms
    everyone = np.arange(pseudonyms.size)
    asked = ldp.choose_indicator(pseudonyms, prf=prf, d=spec.d) if spec.is_sampled else None
    squared = np.zeros(len(WINDOWS))
    for index, indicator in enumerate(spec.indicators):
        rows = everyone if asked is None else np.flatnonzero(asked == index)
        channel = ldp.grr_channel(epsilon=indicator.epsilon, domain_size=indicator.domain_size)
        counts = _tally(index, _answers(index, rows, channel=channel, prf=prf), rows)
        for window, f in enumerate(truth()[index].T):
            estimates = ldp.grr_frequencies(
                np.ascontiguousarray(counts[:, window]),
                n_reports=int(counts[:, window].sum()),
                n_population=n_visitors()[window],
                channel=channel,
            )
            squared[window] += ((runs.clipped(estimates.frequency) - f) ** 2).sum()
    return np.sqrt(squared / sum(domain_sizes()))


def _answers(index: int, rows: NDArray[np.intp], *, channel: ldp.GrrChannel, prf: ldp.KeyedPrf) -> Codes:
    """Codes of the rows; of the last attribute, one column per day."""
    visitors = french_visitors()
    who = visitors.people.pseudonyms[rows]

    def answers(values: NDArray[np.int32]) -> Codes:
        reports: Codes = ldp.oracle_answers(
            np.ascontiguousarray(values),
            pseudonyms=who,
            prf=prf,
            channel=channel,
            indicator=index,
            plan_version=1,
        )
        return reports

    if index < len(visitors.people.columns):
        return answers(visitors.people.columns[index][rows])
    return np.stack([answers(visitors.durations[rows, day]) for day in range(DAYS)], axis=1)


def _tally(index: int, codes: Codes, rows: NDArray[np.intp]) -> NDArray[np.int64]:
    """Counts of each category in each window; shape (domain size, 28)."""
    tally = np.zeros((domain_sizes()[index], DAYS + 1, DAYS + 1), np.int64)
    add = ldp.tally_static if codes.ndim == 1 else ldp.tally_daily
    add(french_visitors().presence[rows], codes, tally, sign=1)
    unions = ldp.all_unions(tally)
    return np.stack([unions[:, a, b] for a, b in WINDOWS], axis=1)
