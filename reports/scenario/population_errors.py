"""Synthetic numbers next to published ones: how far a synthetic population is from the figures of a study."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ldp import all_unions, people_tally
from reports.base.status import Status
from reports.estimates.queries import Counts, Window, WindowReport, windows_of
from reports.estimates.small_cells import ShownVisitors
from reports.studies.models import Indicator, Study

Bitmaps = NDArray[np.uint64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRow:
    """One number of people: of a category in a window, or of all visitors in it.

    Parameters
    ----------
    indicator, category : "" of all visitors
    status : of the published number
    published : visitors of the network, not scaled; of a category its consistent share of them; None where
        there is no number, or it is hidden
    scaled : `published` for as many people as the population has; errors are those from it
    synthetic : None where `published` is
    """

    indicator: str
    category: str
    window: Window
    status: Status
    published: float | None
    scaled: float | None
    synthetic: int | None


def visitor_errors(study: Study, visitors: Counts, presence: Bitmaps, *, scale: float) -> Iterator[ErrorRow]:
    """Visitors of each window.

    Parameters
    ----------
    visitors : gap tally that the study publishes
    presence : of the synthetic people
    scale : people per visitor
    """
    shown = ShownVisitors(study, all_unions(visitors))
    unions = all_unions(people_tally(presence, days=study.days)[0])
    for window in windows_of(study):
        published = shown.of(window.first_day, window.last_day)
        yield ErrorRow(
            indicator="",
            category="",
            window=window,
            status=shown.status(window.first_day, window.last_day, is_outage=False),
            published=published,
            scaled=None if published is None else published * scale,
            synthetic=None if published is None else int(unions[window.first_day, window.last_day]),
        )


def indicator_errors(
    indicator: Indicator,
    reports: Sequence[WindowReport],
    *,
    presence: Bitmaps,
    codes: NDArray[np.int32],
    scale: float,
) -> Iterator[ErrorRow]:
    """Visitors of each window and category.

    Parameters
    ----------
    reports : of the windows
    presence, codes : of the synthetic people
    scale : people per visitor
    """
    tally = people_tally(presence, codes, days=indicator.study.days, n_codes=len(indicator.categories))
    unions = all_unions(tally)
    for report in reports:
        synthetic = unions[:, report.window.first_day, report.window.last_day].tolist()
        for estimate, number in zip(report.estimates, synthetic, strict=True):
            is_known = estimate.consistent is not None and report.n_visitors is not None
            published = (estimate.consistent or 0.0) * max(report.n_visitors or 0, 0)
            yield ErrorRow(
                indicator=indicator.slug,
                category=estimate.category,
                window=report.window,
                status=estimate.status,
                published=published if is_known else None,
                scaled=published * scale if is_known else None,
                synthetic=number if is_known else None,
            )


def error_rates(rows: Iterable[ErrorRow]) -> dict[str, float | None]:
    """Sum of absolute errors over the sum of scaled published numbers, by indicator; None: it is not above 0.

    Definition 10 of the thesis, over all windows and categories with a number. 0.01 = 1%. All visitors are
    under the name "visitors".
    """
    sums: dict[str, list[float]] = {}
    for row in rows:
        both = sums.setdefault(row.indicator or "visitors", [0.0, 0.0])
        if row.scaled is not None and row.synthetic is not None:
            both[0] += abs(row.synthetic - row.scaled)
            both[1] += row.scaled
    return {name: error / total if total > 0 else None for name, (error, total) in sums.items()}
