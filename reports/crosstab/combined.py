"""Tables from all answers on their parts, also those of other joint indicators and of single ones."""

import numpy as np
from django.utils.translation import gettext

from ldp import project_simplex
from ldp.estimation.joint.association import MAX_TESTED_CELLS, margin_of
from ldp.estimation.joint.consistency import Combinations, Single, combined_table, nearest_table
from ldp.estimation.joint.consistency import View as Source
from ldp.estimation.joint.crosstab import CrossTable, Shares
from ldp.estimation.simulation import reporting_share
from ldp.estimation.windows import IndicatorTallies
from reports.base import formats
from reports.crosstab.joints import joint_indicators
from reports.crosstab.queries import Measured, reports_of
from reports.crosstab.query import View
from reports.estimates.queries import LEVEL, WindowReport, has_small, reports_with_tallies

Loaded = dict[str, tuple[WindowReport, IndicatorTallies]]


class NotCombinedError(ValueError):
    """No other answers can be used for a table; `str()` says why."""


def combining_refusal(measured: Measured, view: View) -> str:
    """Reason why no other answers can be used for this table; "" if they can, as far as the view tells."""
    if view.base != "all":
        return gettext(
            "Other answers can be used only for shares of all visitors, because shares of a row or a column "
            "are ratios."
        )
    if view.within is not None:
        return gettext(
            "Other answers cannot be used for a table of some visitors only. To use them, choose “All” above."
        )
    if measured.joint.indicator.kind != "static" and view.window.days > 1:
        return gettext(
            "Other answers can be used for single days only, because values of this table can change from "
            "day to day."
        )
    n_cells = view.row_part.size * view.column_part.size
    if n_cells > MAX_TESTED_CELLS:
        return gettext(
            "Other answers cannot be used, because this table has %(n)s cells. The limit is %(most)s."
        ) % {"n": formats.number(n_cells), "most": formats.number(MAX_TESTED_CELLS)}
    return ""


def combined(measured: Measured, view: View) -> CrossTable:
    """Best linear unbiased table of all answers; NotCombinedError if there are only those of the table."""
    if refusal := combining_refusal(measured, view):
        raise NotCombinedError(refusal)
    study, window = measured.report.study, measured.report.window
    kind = measured.joint.indicator.kind
    # Over several days, daily values are those of each person's first day there: only lasting ones agree.
    asked = study.indicators.select_related("study")
    indicators = [each for each in asked if each.kind == kind or window.days == 1]
    found = reports_with_tallies(indicators, [[window]] * len(indicators))
    if has_small(report for (report,), _ in found):  # the best estimate of a table is made of all of these
        text = gettext("Other answers are not used, because this study hides small categories.")
        raise NotCombinedError(text)
    loaded = {each.slug: (report, t) for each, ((report,), t) in zip(indicators, found, strict=True)}
    slugs = [part.slug for part in measured.joint.parts]
    sources, sizes = _sources(measured, view, loaded, slugs)
    if measured.reports is None or len(sources) < 2:
        text = gettext("On these days, no other answers about these indicators are available.")
        raise NotCombinedError(text)
    return combined_table(
        sources,
        axes=(view.rows, view.columns),
        sizes=sizes,
        n_population=measured.reports.n_population,
        level=LEVEL,
    )


def projected(found: CrossTable) -> CrossTable:
    """Table without negative shares: nearest margins, and nearest cells that add up to them.

    The intervals stay.
    """
    rows, columns = project_simplex(found.rows.value), project_simplex(found.columns.value)
    cells = nearest_table(found.cells.value, rows=rows, columns=columns)
    return CrossTable(
        cells=_around(found.cells, cells),
        rows=_around(found.rows, rows),
        columns=_around(found.columns, columns),
        whole=found.whole,
    )


def _around(shares: Shares, value: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> Shares:
    return Shares(
        value=value,
        std_error=shares.std_error,
        ci_low=np.minimum(shares.ci_low, value),
        ci_high=np.maximum(shares.ci_high, value),
    )


def _sources(
    measured: Measured, view: View, loaded: Loaded, slugs: list[str]
) -> tuple[list[Source], list[int]]:
    """Answers about rows or columns, and the sizes of all parts that they have; `slugs` get further parts."""
    spec = measured.report.plan.parsed
    has_all = sum(report.n_reports or 0 for report, _ in loaded.values()) == measured.report.n_visitors
    asked = {view.row_part.slug, view.column_part.slug}
    sizes = [part.size for part in measured.joint.parts]
    found = []
    for slug in sorted(asked):
        reports = reports_of(*loaded[slug]) if slug in loaded else None
        if reports is not None:
            share = float(reporting_share(spec, spec.index(slug)))
            margin = margin_of(reports, asked=share, has_all=has_all)
            found.append(Source(axes=(slugs.index(slug),), source=Single(margin=margin)))
    for joint in joint_indicators(measured.report.study):
        if joint.indicator.slug not in loaded or not asked & {part.slug for part in joint.parts}:
            continue
        for part in joint.parts:
            if part.slug not in slugs:
                slugs.append(part.slug)
                sizes.append(part.size)
        axes = tuple(slugs.index(part.slug) for part in joint.parts)
        reports = reports_of(*loaded[joint.indicator.slug])
        if reports is not None:
            found.append(Source(axes=axes, source=Combinations(reports=reports)))
    return found, sizes
