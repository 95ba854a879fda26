"""A report with few categories: those significantly above zero, and the sum of all others."""

from dataclasses import replace
from typing import Any, Final

import numpy as np
from django.utils.translation import gettext, gettext_noop

from ldp import PlanSpec, project_simplex, pure_frequencies
from ldp.estimation.joint.linear import LinearChannel, linear_answer
from ldp.estimation.multiple import chosen_reach
from reports.base.status import Status
from reports.estimates import charts
from reports.estimates.options import ReportOptions
from reports.estimates.queries import LEVEL, Estimate, WindowReport, surely_present
from reports.estimates.texts import report_summary

# Fewer categories are read as they are.
LEAST: Final = 9
OTHERS: Final = gettext_noop("Other categories")


def grouping_context(report: WindowReport, *, options: ReportOptions, query: str) -> dict[str, Any]:
    """Return the link to the grouped view and, where the address asks for it, its chart and table."""
    grouped = grouped_report(report)
    if grouped is None:
        return {}
    is_grouped = options.group == "found"
    # Found categories come first, the largest on top, in any order of the page.
    shown = replace(options, order="natural")
    drawn = {
        "estimates": grouped.estimates,
        "figure": charts.report_figure(grouped, options=shown),
        "summary": report_summary(replace(grouped, estimates=grouped.estimates[:-1]), options=options),
    }
    return (drawn if is_grouped else {}) | {
        "n_found": len(grouped.estimates) - 1,
        "group_query": options.query(query, group="all" if is_grouped else "found"),
    }


def grouped_report(report: WindowReport) -> WindowReport | None:
    """Keep the categories that surely have visitors and sum up the others; None where that helps no one.

    The sum is what the found ones leave of 1. The same reports chose them, so those that just missed have an
    error below 0: the interval of the sum holds for any choice (`chosen_reach`).
    """
    found = surely_present(report) if len(report.estimates) >= LEAST else None
    if not found or len(found) > len(report.estimates) - 2:
        return None
    spec = PlanSpec.from_json(report.plan.spec)
    channel = spec.channel(spec.index(report.indicator.slug))
    others = [each for each in report.estimates if each not in found]
    if not isinstance(channel, LinearChannel) or report.n_visitors is None:
        return None
    sizes = {"n_reports": report.n_reports or 0, "n_population": report.n_visitors}
    counts = np.array([each.reports for each in report.estimates], np.int64)
    answer = linear_answer(
        pure_frequencies(counts, channel=channel, level=LEVEL, **sizes),
        weights=np.array([float(each in found) for each in report.estimates]),
        channel=channel,
        level=LEVEL,
        **sizes,
    )
    scale, share = report.scale or 0.0, 1 - answer.value
    reach = answer.std_error * chosen_reach(len(found), len(report.estimates), level=LEVEL)
    rest = Estimate(
        category=OTHERS,
        category_fr=gettext(OTHERS),
        reports=sum(each.reports or 0 for each in others),
        frequency=share,
        std_error=answer.std_error,
        ci_low=share - reach,
        ci_high=share + reach,
        visitors=share * scale,
        visitors_ci_low=(share - reach) * scale,
        visitors_ci_high=(share + reach) * scale,
        status=Status.OK,
    )
    # Values of few categories need less adjustment than those of all.
    shares = project_simplex(np.array([each.frequency for each in (*found, rest)], np.float64))
    rows = zip((*found, rest), shares.tolist(), strict=True)
    return replace(report, estimates=tuple(replace(each, consistent=share) for each, share in rows))
