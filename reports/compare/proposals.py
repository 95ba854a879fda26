"""Other windows for a comparison that finds no difference: those whose differences have less noise."""

from collections.abc import Iterator
from statistics import fmean
from typing import Final

from reports.compare.queries import Comparison, Kind, NotComparableError, compare_windows
from reports.estimates.queries import Window
from reports.studies.queries import has_unions

# A narrower interval by less is not worth another question.
WORTH_IT: Final = 0.85
Proposal = tuple[Window, Window, float, float]


def better_windows(comparison: Comparison) -> Proposal | None:
    """The two windows with the narrowest differences, where no row of `comparison` differs.

    Returns (window, reference, half width, half width now), means over the rows, as the comparison measures;
    None where a row differs, or no other windows of the study are clearly better. Only errors are looked at,
    never whether these windows differ: so it is not a search for a difference.
    """
    indicator = comparison.report.indicator
    if comparison.kind != Kind.WINDOWS or comparison.n_held or not has_unions(indicator):
        return None
    now = _half_width(comparison)
    found: list[Proposal] = []
    for window, reference in _candidates(comparison):
        try:
            other = compare_windows(indicator, window, reference, of=comparison.of)
        except NotComparableError:
            continue
        found.append((window, reference, _half_width(other), now))
    best = min(found, key=lambda proposal: proposal[2], default=None)
    return best if best is not None and best[2] < WORTH_IT * now else None


def _half_width(comparison: Comparison) -> float:
    return fmean((row.high - row.low) / 2 for row in comparison.rows)


def _candidates(comparison: Comparison) -> Iterator[tuple[Window, Window]]:
    """Both windows grown until they meet or the study ends, and the halves of the study."""
    days = comparison.report.study.days
    one, other = comparison.report.window, comparison.reference.window
    early, late = sorted((one, other), key=lambda window: window.first_day)
    if early.last_day < late.first_day:
        middle = (early.last_day + late.first_day) // 2
        yield Window(middle + 1, days), Window(1, middle)
    if days > 1:
        yield Window(days // 2 + 1, days), Window(1, days // 2)
