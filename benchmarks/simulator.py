"""Is the error as large as the simulator says? The FIMU population under many independent study keys.

The inputs are what an administrator can know: mean visitors of a day and mean days present. For each
mechanism and indicator it prints, for one day and for all days together, the half-width that the page shows
(of a category of average size), and 1.96 times the root of the mean squared error that was measured over all
days, categories and keys, with its standard error. It fails unless they are within 5%, or two standard
errors more where there are few keys.

    python -m benchmarks.simulator --keys 400 --processes 2
"""

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

import ldp
from benchmarks import soak
from ldp.estimation.simulation import Crowd, Forecast, forecast
from ldp.privacy.plans import Mechanism
from ldp.protocols.channels import Unit

KEYS_PER_TASK: Final = 20
TOLERANCE: Final = 0.05
KINDS: Final = ("one day", "all days")
Z: Final = NormalDist().inv_cdf(0.975)

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One indicator, one kind of window.

    Parameters
    ----------
    foretold, measured : float; half-widths
    doubt : float; standard error of `measured`, as a share of it
    """

    mechanism: str
    indicator: str
    kind: str
    foretold: float
    measured: float
    doubt: float

    @property
    def ratio(self) -> float:
        """Ratio of predicted and measured values."""
        return self.foretold / self.measured

    @property
    def is_good(self) -> bool:
        """Return whether prediction and measurement agree within their errors."""
        return abs(self.ratio - 1) <= TOLERANCE + 2 * self.doubt


def main() -> int:
    """Run the mechanisms; 0 if all is within the tolerance."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, default=400, help="independent study keys")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--unit", choices=soak.UNITS, default="profile")
    parser.add_argument("--mechanism", choices=soak.MECHANISMS, action="append", help="default: each of them")
    options = parser.parse_args()
    passed = True
    keys = soak.study_keys(options.keys, seed=options.seed)
    soak.write(heading(len(keys), unit=options.unit))
    with ProcessPoolExecutor(options.processes) as pool:
        for mechanism in options.mechanism or soak.MECHANISMS:
            started = time.perf_counter()
            tasks = [keys[i : i + KEYS_PER_TASK] for i in range(0, len(keys), KEYS_PER_TASK)]
            parts = list(pool.map(partial(squared_errors, mechanism, options.unit), tasks))
            found = scores(mechanism, options.unit, np.concatenate(parts))
            for score in found:
                soak.write(line(score))
            passed &= all(score.is_good for score in found)
            sys.stderr.write(f"{mechanism}: {time.perf_counter() - started:.0f} s\n")
    soak.write("passed" if passed else "FAILED")
    return 0 if passed else 1


def heading(n_keys: int, *, unit: str) -> str:
    """Head of the table."""
    crowd = expected_crowd()
    return (
        f"Epsilon 1 per {unit}, {n_keys} keys; {crowd.visitors:.0f} visitors a day, each on "
        f"{crowd.days_present:.2f} days\n\n"
        "| mechanism | indicator | window | simulator | measured | ratio |\n|--|--|--|--|--|--|"
    )


def line(score: Score) -> str:
    """Row of the table; ± in percentage points."""
    mark = "" if score.is_good else " out of tolerance"
    return (
        f"| {score.mechanism} | {score.indicator} | {score.kind} | ± {100 * score.foretold:.2f} "
        f"| ± {100 * score.measured:.2f} | {score.ratio:.3f} (± {score.doubt:.3f}){mark} |"
    )


@cache
def expected_crowd() -> Crowd:
    """Return an administrator's knowledge of the festival."""
    population = soak.people()
    return Crowd(
        visitors=population.subscriber_days / population.days,
        days_present=population.subscriber_days / population.n_subscribers,
    )


def squared_errors(mechanism: Mechanism, unit: Unit, keys: Sequence[bytes]) -> Floats:
    """Mean squared error over categories, and days; shape (keys, indicators, 2): one day, all days."""
    plan = soak.make_plan(mechanism, unit)
    return np.stack([_of_one(plan, soak.sanitise(plan, key=key)) for key in keys])


def scores(mechanism: Mechanism, unit: Unit, squared: Floats) -> list[Score]:
    """Predicted and measured values of one figure."""
    plan = soak.make_plan(mechanism, unit)
    found = []
    for foretold in forecast(plan, crowd=expected_crowd()):
        for kind, place in zip(KINDS, (0, 1), strict=True):
            if place == 1 and foretold.union is None:  # of a stream
                continue
            of_keys = squared[:, foretold.index, place]
            mean = float(of_keys.mean())
            # The root halves the relative error of the mean.
            doubt = float(of_keys.std()) / np.sqrt(of_keys.size) / mean / 2
            found.append(
                Score(
                    mechanism=mechanism,
                    indicator=plan.indicators[foretold.index].slug,
                    kind=kind,
                    foretold=_shown(foretold, kind=kind),
                    measured=Z * float(np.sqrt(mean)),
                    doubt=float(doubt),
                )
            )
    return found


def _shown(foretold: Forecast, *, kind: str) -> float:
    """The number of the page."""
    curve = foretold.day if kind == KINDS[0] else foretold.union
    if curve is None:
        raise ValueError(f"{kind} must be foretold, got none")
    return curve.half_width(foretold.even)


def _of_one(plan: ldp.PlanSpec, delta: ldp.Delta) -> Floats:
    windows = [*[(day, day) for day in range(1, plan.days + 1)], (1, plan.days)]
    visitors = soak.truth().visitors
    rows = []
    for index in range(plan.d):
        unions, n_reports = ldp.all_unions(delta.counts[index]), ldp.all_unions(delta.n_reports[index])
        errors = []
        for first, last in windows:
            estimates = ldp.pure_frequencies(
                unions[:, first, last],
                n_reports=int(n_reports[first, last]),
                n_population=int(visitors[first, last]),
                channel=plan.channel(index),
            )
            true = soak.truth().frequencies[index][:, first, last]
            errors.append(float(((estimates.frequency - true) ** 2).mean()))
        rows.append((float(np.mean(errors[:-1])), errors[-1]))
    return np.array(rows)


if __name__ == "__main__":
    sys.exit(main())
