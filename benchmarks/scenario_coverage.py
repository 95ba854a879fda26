"""Do the bars of scenarios by category hold the truth? One population under many independent study keys.

Prints a markdown table: per mechanism, indicator and question the share of keys whose 95% bars hold the truth
in all categories at once, and the mean width of a bar over that of the bounds of all visitors, and of the
bounds that would follow if the people of each category were known. Bars are bounds, so they may hold it more
often; it fails if the share is significantly below 95%.

    python -m benchmarks.scenario_coverage --keys 1000 --processes 2
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Final

import numpy as np

import ldp
from benchmarks.derived_coverage import DAYS, LEVEL, Bools, Floats, people, reports_of, tallies_of, under_keys
from ldp.privacy.plans import Mechanism

MECHANISMS: Final[tuple[Mechanism, ...]] = ("smp-grr", "rsfd-ouez")
INDICATORS: Final = ("region", "gender")
ERRORS: Final = 3.5  # standard errors that a share may be below the level; by chance 1 of 4,000 is

Found = dict[tuple[str, str], tuple[float, float, float]]  # by indicator, question: do all hold, both widths


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One question about one indicator under one mechanism; a key counts if all categories hold the truth."""

    mechanism: str
    indicator: str
    question: str
    keys: int
    coverage: float
    width: float
    width_of_known: float

    @property
    def is_good(self) -> bool:
        """Return whether the share of keys is not significantly below the level."""
        return self.coverage >= LEVEL - ERRORS * float(np.sqrt(LEVEL * (1 - LEVEL) / self.keys))


def main() -> int:
    """Print the table; 0 if every bar is as stated."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, default=1000, help="independent study keys")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    rows = run(n_keys=options.keys, processes=options.processes)
    sys.stdout.write(table(rows))
    return 0 if all(row.is_good for row in rows) else 1


def run(
    *, n_keys: int, processes: int, mechanisms: Sequence[Mechanism] = MECHANISMS, seed: int = 11
) -> list[Row]:
    """Rows of every mechanism; the same for a seed."""
    rows: list[Row] = []
    for mechanism in mechanisms:
        rows += summary(mechanism, under_keys(partial(look, mechanism), n_keys, processes, seed=seed))
    return rows


def table(rows: Sequence[Row]) -> str:
    """Markdown, one line per row."""
    lines = [
        "| mechanism | indicator | question | all hold the truth | width, bounds of all = 1 | "
        "categories known = 1 |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        mark = "" if row.is_good else " (out of tolerance)"
        lines.append(
            f"| {row.mechanism} | {row.indicator} | {row.question} | "
            f"{100 * row.coverage:.1f} % of {row.keys}{mark} | {row.width:.2f} | "
            f"{row.width_of_known:.2f} |"
        )
    return "\n".join(lines) + "\n"


@cache
def questions() -> dict[str, tuple[ldp.Scenario, Bools]]:
    """Scenarios, and who of the people is in each."""
    there = people().presence
    runs = there[:, :-2] & there[:, 1:-1] & there[:, 2:]
    return {
        "on days 3 and 6, not on 4": (
            ldp.on_days(days=DAYS, present=[3, 6], absent=[4]),
            there[:, 2] & there[:, 5] & ~there[:, 3],
        ),
        "exactly 1 day": (ldp.exactly_days(1, days=DAYS), there.sum(axis=1) == 1),
        "3 days in a row": (ldp.days_in_a_row(3, days=DAYS), runs.any(axis=1)),
    }


def look(mechanism: Mechanism, key: bytes) -> Found:
    """Return all bars of one study, with the truth."""
    words, found = reports_of(mechanism, key), {}
    for index, (indicator, values) in enumerate(zip(INDICATORS, people().static, strict=True)):
        tallies = tallies_of(mechanism, index, words[index], people().bitmaps, days=DAYS)
        for question, (scenario, chosen) in questions().items():
            truth: Floats = np.bincount(values[chosen], minlength=tallies.counts.shape[0]).astype(float)
            bars, of_all = (
                ldp.category_people(tallies, scenario),
                ldp.scenario_people(tallies.visitors, scenario),
            )
            covered = (bars.ci_low <= truth) & (truth <= bars.ci_high)
            width = (bars.ci_high - bars.ci_low).mean()
            widths = width / (of_all.most - of_all.least), width / width_of_known(index, question)
            found[indicator, question] = (float(covered.all()), *map(float, widths))
    return found


@cache
def width_of_known(index: int, question: str) -> float:
    """Mean width of the bounds of the categories of an indicator, from the tallies of their people."""
    values, scenario = people().static[index].astype(np.int32), questions()[question][0]
    tallies = ldp.people_tally(people().bitmaps, values, days=DAYS, n_codes=int(values.max()) + 1)
    bounds = [ldp.scenario_people(tally, scenario) for tally in tallies]
    return float(np.mean([each.most - each.least for each in bounds]))


def summary(mechanism: Mechanism, results: Sequence[Found]) -> list[Row]:
    """One row per indicator and question."""
    rows = []
    for indicator, question in results[0]:
        coverage, width, of_known = np.array([each[indicator, question] for each in results]).T
        rows.append(
            Row(
                mechanism=mechanism,
                indicator=indicator,
                question=question,
                keys=coverage.size,
                coverage=float(coverage.mean()),
                width=float(width.mean()),
                width_of_known=float(of_known.mean()),
            )
        )
    return rows


if __name__ == "__main__":
    sys.exit(main())
