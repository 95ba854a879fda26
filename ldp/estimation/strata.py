"""Comparisons among the people of several classes, each class with its own channel.

The people of different classes are different people with independent answers, so every sum or difference of
all people is the sum of one such figure of each class g (`independent_sum`): of visitors as they are; of
shares with the weight N_g / N in each window, which `totals` hands down. `Strata` are the tallies of all
classes; where people have no classes, it is one, and every figure is that of its tallies.
"""

from collections.abc import Sequence
from typing import cast

import numpy as np

from ldp.errors import NoReportsError
from ldp.estimation.contrasts import Contrast, Sample, day_difference, sample_of, value_difference
from ldp.estimation.estimators import project_simplex
from ldp.estimation.joint.association import Association
from ldp.estimation.joint.linear import LinearChannel
from ldp.estimation.joint.table_change import table_change
from ldp.estimation.windows import (
    IndicatorTallies,
    Part,
    Quantity,
    Window,
    WindowEstimate,
    independent_sum,
    part_of,
    parts_difference,
    pieces_of,
    window_difference,
)

Strata = tuple[IndicatorTallies, ...]


def visitors_in(strata: Strata, window: Window) -> int:
    """Visitors of all classes; FewVisitorsError if a class has too few of them to be shown."""
    return sum(part_of(each, window).n_visitors for each in strata)


def has_shares(strata: Strata, window: Window) -> bool:
    """Return whether each class that has visitors in a window has reports, and one has visitors."""
    parts = [part_of(each, window) for each in strata]
    return any(part.n_visitors for part in parts) and all(part.n_reports for part in parts if part.n_visitors)


def samples_of(strata: Strata, window: Window) -> list[Sample]:
    """Reports of each class that has visitors in a window; LdpError if one of these has no reports."""
    found = [sample_of(each, window) for each in strata if part_of(each, window).n_visitors]
    if not found:
        raise NoReportsError(f"window {window.first_day}..{window.last_day} must have reports, got 0")
    return found


def window_shares(strata: Strata, window: Window, *, level: float = 0.95) -> WindowEstimate:
    """Share of each value among the visitors of all classes in a window; exact.

    Raises as `samples_of`.
    """
    samples = samples_of(strata, window)
    total = sum(each.n_population for each in samples)
    found = []
    for each in samples:
        weight, own = each.n_population / total, each.estimates(level=level)
        found.append(
            WindowEstimate(
                value=weight * own.frequency,
                std_error=weight * own.std_error,
                ci_low=weight * own.ci_low,
                ci_high=weight * own.ci_high,
                is_exact=True,
            )
        )
    return independent_sum(found)


def windows_difference(
    strata: Strata, *, first: Window, second: Window, of: Quantity, level: float = 0.95
) -> WindowEstimate:
    """Per value, the second window less the first; exact if it is in each class.

    Parameters, Raises : as of `window_difference`
    """
    totals = visitors_in(strata, first), visitors_in(strata, second)
    return independent_sum(
        [
            window_difference(each, first=first, second=second, of=of, level=level, totals=totals)
            for each in strata
        ]
    )


def windows_change(strata: Strata, windows: tuple[Window, Window]) -> Association | None:
    """Test whether two windows have the same shares of all values (`table_change`).

    None where it is not known which reports they share; raises as of `windows_difference`, and
    FewReportsError.
    """
    totals = visitors_in(strata, windows[0]), visitors_in(strata, windows[1])
    found = [
        (
            cast(LinearChannel, each.channel),
            pieces_of(each, windows, factors=(-1, 1), of="frequency", totals=totals),
        )
        for each in strata
    ]
    if not all(is_exact for _, (_, is_exact) in found):
        return None
    common = np.mean([project_simplex(window_shares(strata, each).value) for each in windows], axis=0)
    return table_change([(pieces, channel) for channel, (pieces, _) in found], common=common)


def sides_difference(
    strata: Strata, sides: Sequence[tuple[Part, Part]], *, level: float = 0.95
) -> WindowEstimate:
    """Per value, the share in the second of two sides less that in the first; exact.

    sides : of each class two parts with different people; a part may be empty

    Raises : as of `parts_difference`
    """
    first, second = (sum(pair[side].n_visitors for pair in sides) for side in (0, 1))
    return independent_sum(
        [
            parts_difference(each, parts=pair, level=level, totals=(first, second))
            for each, pair in zip(strata, sides, strict=True)
        ]
    )


def values_difference(
    strata: Strata, window: Window, *, reference: int, of: Quantity
) -> tuple[Contrast, ...]:
    """Each value less the value `reference` in one window; the sum of these contrasts.

    Raises : as of `value_difference` and `samples_of`
    """
    samples = samples_of(strata, window)
    total = sum(each.n_population for each in samples)
    return tuple(value_difference(each, reference=reference, of=of, total=total) for each in samples)


def days_difference(
    strata: Strata, *, day: int, baseline: Sequence[int], of: Quantity
) -> tuple[Contrast, ...]:
    """A day less the mean of other days; the sum of these contrasts, a bound.

    Parameters, Raises : as of `day_difference`
    """
    totals = [visitors_in(strata, Window(each, each)) for each in (day, *baseline)]
    return tuple(day_difference(each, day=day, baseline=baseline, of=of, totals=totals) for each in strata)


def sum_of(contrasts: Sequence[Contrast], *, level: float = 0.95) -> WindowEstimate:
    """Sum of contrasts about different people."""
    return independent_sum([each.estimate(level=level) for each in contrasts])
