"""How long do synthetic populations take, and how far are they from exact figures?

Prints a markdown table. The thesis draws people until their unions are near enough: 22 minutes for
MS-FIMU, with an error rate of up to 8.1%. Attributes are those of the demo study, with exact counts.

    python -m benchmarks.synthesise
"""

import sys
import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import ldp
from ldp.estimation.scenario.flows import with_departures
from mobility.demo.population import Population, build_population

THESIS_S: Final = 22 * 60
ATTRIBUTES: Final = ("visitor_category", "age", "geolife", "region")
MOST_ERROR: Final = {3: 0.0001, 8: 0.0005, 12: 0.0010, 37: 0.0022}  # by categories
KEY: Final = b"synthetic people"


def main() -> int:
    """Print the table; 0 if every number is as small as it has to be."""
    rows = [fimu_presence(), *fimu_attributes(), long_study()]
    sys.stdout.write("| people | seconds | at most | error | at most | thesis |\n|---|---|---|---|---|---|\n")
    for name, seconds, most_s, error, most_error in rows:
        ours = f"| {name} | {seconds:.2f} | {most_s:g} | {error:.4%} | {most_error:.2%} "
        sys.stdout.write(f"{ours}| {THESIS_S:,} s, 8.1% |\n")
    return int(any(s > most_s or error > most for _, s, most_s, error, most in rows))


Row = tuple[str, float, float, float, float]


def fimu_presence() -> Row:
    """All people of the demo: the 28 unions."""
    tally = ldp.people_tally(fimu().presence, days=7)[0]
    presence, seconds = timed(lambda: people(tally))
    error = ldp.error_rate(unions(presence, days=7), ldp.all_unions(tally))
    return f"{presence.size:,} of MS-FIMU, 28 unions", seconds, 1.0, error, 0.0


def fimu_attributes() -> list[Row]:
    """Four attributes of the demo, of few and of many categories."""
    population, rows = fimu(), []
    presence = people(ldp.people_tally(population.presence, days=7)[0])
    for slug in ATTRIBUTES:
        n_codes = len(population.categories[slug])
        true = ldp.people_tally(population.presence, population.static[slug], days=7, n_codes=n_codes)
        targets = with_departures(true).astype(np.float64)

        def dealt(targets: NDArray[np.float64] = targets) -> NDArray[np.int32]:
            return ldp.synthetic_static(presence, targets, stream=ldp.KeyedStream(KEY))

        codes, seconds = timed(dealt)
        made = ldp.all_unions(ldp.people_tally(presence, codes, days=7, n_codes=n_codes))
        error = ldp.error_rate(made, ldp.all_unions(true))
        rows.append((f"{slug}, {n_codes} categories", seconds, 1.0, error, MOST_ERROR[n_codes]))
    return rows


def long_study() -> Row:
    """38,000 people on 62 days, each more or less keen: about 344,000 person-days."""
    draws = ldp.KeyedStream(KEY).words(38_000 * 63).reshape(63, -1) / 2.0**64
    keen = 0.02 + 0.2585 * draws[62] ** 1.05
    bits = sum((draws[day] < keen).astype(np.uint64) << np.uint64(day) for day in range(62))
    tally = ldp.people_tally(np.asarray(bits, np.uint64), days=62)[0]
    presence, seconds = timed(lambda: people(tally))
    error = ldp.error_rate(unions(presence, days=62), ldp.all_unions(tally))
    return f"{int(tally.sum()):,} person-days, 1,953 unions", seconds, 3.0, error, 0.0


def fimu() -> Population:
    """The population of the demo study."""
    return build_population(seed=1)


def people(tally: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Synthetic presence with the unions of a tally."""
    return ldp.synthetic_presence(ldp.flows_of(tally), stream=ldp.KeyedStream(KEY))


def unions(presence: NDArray[np.uint64], *, days: int) -> NDArray[np.int64]:
    """Number of people in each window."""
    return ldp.all_unions(ldp.people_tally(presence, days=days)[0])


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Result, and processor seconds."""
    start = time.process_time()
    return work(), time.process_time() - start


if __name__ == "__main__":
    sys.exit(main())
