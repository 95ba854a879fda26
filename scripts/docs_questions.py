"""Reference of the questions that a study answers, with their errors from the formulas of the library."""

from fractions import Fraction
from math import ceil, sqrt

import numpy as np

HEAD = """\
# Possible questions and their accuracy

Written by `make docs` from the formulas of `ldp`. Each subscriber answers **one** indicator or one declared
combination, so every combination makes all others less precise: see the [simulator](../simulator.md)
before you declare one.

- Share of a category on a day, or any run of days: report of the indicator.
- Shares of combinations, of a row or column, of several categories; do two indicators go together?
  [Cross-tabulation](../compare.md#cross-tabulations) of a declared combination.
- Differences, days, places: [comparisons](../compare.md), [maps](../maps.md), [presence](../presence.md).
- Mean, median, shares above a cut: [numbers](study-file.md#numbers); the mean by zone or category of a
  declared combination.
- [Moves](../daily_values.md) of a visitor along a pair of zones: error of one cell, times `max_moves`.
- [Visited zones](../compare.md#visited-zones) of a day, and pairs: error of one cell, times `max_visits`.

Nothing answers combinations that no indicator declares; of three that are declared in pairs there is a
[model](../compare.md#cross-tabulations), marked as one.

## Errors

Half of the 95% interval of a rare share, in percentage points, at epsilon 1/2/3: six indicators
and one combination of 12 and 37 categories, asked equally often. Last column: the mean of a number in one of
12 categories of equal size, combined with it instead, as a percentage of its range.

"""
EPSILONS = (1, 2, 3)
VISITORS = (10_000, 100_000, 1_000_000)
SHAPE = (12, 37)
GROUPS = 7
_Z = 1.959964


def page() -> str:
    """The page, in Markdown."""
    of_question = [_deviations(epsilon) for epsilon in EPSILONS]
    names = list(of_question[0])
    rows = [["visitors", *names]]
    for n in VISITORS:
        shown = ["/".join(f"{100 * each[name] / sqrt(n):.2f}" for each in of_question) for name in names]
        rows.append([f"{n:,}", *shown])
    needed = [ceil((each["one cell"] / 0.01) ** 2 / 1000) * 1000 for each in of_question]
    return (
        HEAD
        + "\n".join([_line(rows[0]), "|" + "---|" * len(rows[0]), *map(_line, rows[1:])])
        + "\n\nVisitors for ± 1 point of one cell: "
        + "/".join(f"{n:,}" for n in needed)
        + ". With g questions instead of 7, multiply errors by √(g/7).\n"
    )


def _deviations(epsilon: int) -> dict[str, float]:
    """Half widths for one visitor, by question."""
    from ldp.estimation.joint.linear import linear_noise
    from ldp.privacy.joint import SIDES, joint_size
    from ldp.privacy.plans import ORACLES
    from ldp.protocols.channels import noise_at_zero
    from ldp.protocols.projective import code_channel

    single = ORACLES["adp"](epsilon=Fraction(epsilon), domain_size=SHAPE[1])
    joint = code_channel(epsilon=Fraction(epsilon), domain_size=joint_size(SHAPE))
    found = {"one indicator": float(noise_at_zero(single)), "one cell": float(noise_at_zero(joint))}
    for n_cells in (4, 10):
        weights = (np.arange(joint.domain_size) < n_cells).astype(np.float64)
        noise = linear_noise(weights, channel=joint)
        found[f"{n_cells} cells"] = float(noise[n_cells:].mean())
    sides = code_channel(epsilon=Fraction(epsilon), domain_size=joint_size((SHAPE[0], SIDES)))
    codes = np.arange(sides.domain_size).reshape(SHAPE[0] + 1, SIDES + 1)[:-1, :SIDES]
    weights = np.zeros(sides.domain_size)
    weights[codes[0]] = -SHAPE[0] / 2, SHAPE[0] / 2
    found["a mean"] = float(linear_noise(weights, channel=sides)[codes].mean() + SHAPE[0] / 4)
    return {name: _Z * sqrt(GROUPS * noise) for name, noise in found.items()}


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"
