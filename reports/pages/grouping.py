"""A report with few categories: groups of the study, or those above zero and the sum of the others."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from django.utils.translation import gettext, gettext_noop

from ldp import project_simplex, pure_frequencies
from ldp.estimation.joint.linear import LinearChannel, LinearEstimate, linear_answer
from ldp.estimation.multiple import chosen_reach
from ldp.estimation.partial.regions import share_of_sample
from reports.base.status import Status, estimates_status
from reports.estimates import charts
from reports.estimates.options import ReportOptions, Switch, ordered
from reports.estimates.queries import LEVEL, Estimate, WindowReport, surely_present
from reports.estimates.texts import report_sentences
from reports.studies.studyfile.definition import IN_GROUPS

# Fewer categories are read as they are.
LEAST: Final = 9
OTHERS: Final = gettext_noop("Other categories")


def grouping_context(report: WindowReport, *, options: ReportOptions, query: str) -> dict[str, Any]:
    """Return links to the grouped views and, where the address asks for one, its chart and table."""
    found, by_group = grouped_report(report), report_by_group(report)
    drawn: dict[str, Any] = {}
    if options.group == "found" and found is not None:
        # Found categories come first, the largest on top, in any order of the page.
        drawn = _drawn(found, options=replace(options, order="natural"), n_named=len(found.estimates) - 1)
    elif options.group == "groups" and by_group is not None:
        drawn = _drawn(by_group, options=options, n_named=len(report.indicator.groups or ()))
    links: dict[str, Any] = {
        "all_query": options.query(query, group="all") if drawn else "",
        "found_query": options.query(query, group="found") if found else "",
        "groups_query": options.query(query, group="groups") if by_group else "",
    }
    offered = {"found": found, "groups": by_group}
    names = {"all": gettext("All"), "found": gettext("Above zero"), "groups": gettext("Groups")}
    choices = tuple(
        (name, options.query(query, group=key), options.group == key)
        for key, name in names.items()
        if key == "all" or offered[key] is not None
    )
    switch = Switch(title=gettext("Categories"), links=choices)
    links["switches"] = [switch] if len(choices) > 1 else []
    return drawn | links | {"n_found": len(found.estimates) - 1 if found else 0}


def _drawn(report: WindowReport, *, options: ReportOptions, n_named: int) -> dict[str, Any]:
    """Chart, table and sentence; the sentence is about the first categories."""
    of_first = replace(report, estimates=report.estimates[:n_named])
    sentences = report_sentences(of_first, options=options)
    return {
        "estimates": ordered(report, options=options),
        "figure": charts.report_figure(report, options=options),
        "sentences": sentences,
        "summary": " ".join(sentences),
    }


def grouped_report(report: WindowReport) -> WindowReport | None:
    """Keep the categories that surely have visitors and sum up the others; None where that helps no one.

    The sum is what the found ones leave of 1. The same reports chose them, so those that just missed have an
    error below 0: the interval of the sum holds for any choice (`chosen_reach`).
    """
    found = surely_present(report) if len(report.estimates) >= LEAST else None
    if not found or len(found) > len(report.estimates) - 2:
        return None
    others = [each for each in report.estimates if each not in found]
    answers = _sums(report, [others])
    if answers is None:
        return None
    (answer,) = answers
    reach = answer.std_error * chosen_reach(len(found), len(report.estimates), level=LEVEL)
    answer = replace(answer, ci_low=answer.value - reach, ci_high=answer.value + reach)
    rest = _estimate(report, OTHERS, others, answer, status=Status.OK)
    return _consistent(report, (*found, rest))


def report_by_group(report: WindowReport) -> WindowReport | None:
    """Sums over the study's groups of categories, and over those in no group; None where there are none."""
    groups = report.indicator.groups or {}
    by_name = {each.category: each for each in report.estimates}
    members = [[by_name[each] for each in names] for names in groups.values()]
    grouped = {each for names in groups.values() for each in names}
    rest = [each for each in report.estimates if each.category not in grouped]
    named = [*groups, OTHERS] if rest else [*groups]
    sets = [*members, rest] if rest else members
    answers = (_told_groups(report, sets) or _sums(report, sets)) if groups else None
    if answers is None:
        return None
    status = estimates_status(
        Status.OK if report.status == Status.NOT_RELIABLE else report.status,
        ci_low=[each.ci_low for each in answers],
        ci_high=[each.ci_high for each in answers],
    )
    rows = zip(named, sets, answers, strict=True)
    return _consistent(report, [_estimate(report, *row, status=status) for row in rows])


def _told_groups(report: WindowReport, sets: Sequence[Sequence[Estimate]]) -> list[LinearEstimate] | None:
    """Shares of groups that answers tell, without noise; None where they tell none.

    Those of a group's categories are made to add up to the share of its answers.
    """
    if report.indicator.protect != IN_GROUPS or not (report.n_visitors and report.n_reports):
        return None
    found = []
    for members in sets:
        reports = round(sum(each.consistent or 0.0 for each in members) * report.n_reports)
        sizes = {"n_reports": report.n_reports, "n_population": report.n_visitors}
        own = share_of_sample(reports, level=LEVEL, **sizes)
        found.append(
            LinearEstimate(value=own.share, std_error=own.std_error, ci_low=own.ci_low, ci_high=own.ci_high)
        )
    return found


def _sums(report: WindowReport, sets: Sequence[Sequence[Estimate]]) -> list[LinearEstimate] | None:
    """Share of each set of categories; None where there are no answers, or none that can be added up."""
    spec = report.plan.parsed
    channel = spec.channel(spec.index(report.indicator.slug))
    counts = [each.reports for each in report.estimates]
    if not isinstance(channel, LinearChannel) or not (report.n_visitors and report.n_reports):
        return None
    if None in counts or report.noisy_visitors is not None or report.cuts is not None:
        return None
    sizes = {"n_reports": report.n_reports, "n_population": report.n_visitors}
    whole = pure_frequencies(np.array(counts, np.int64), channel=channel, level=LEVEL, **sizes)
    names = [[each.category for each in members] for members in sets]
    return [
        linear_answer(
            whole,
            weights=np.array([float(each.category in chosen) for each in report.estimates]),
            channel=channel,
            level=LEVEL,
            **sizes,
        )
        for chosen in names
    ]


def _estimate(
    report: WindowReport,
    name: str,
    members: Sequence[Estimate],
    answer: LinearEstimate,
    *,
    status: Status,
) -> Estimate:
    scale = report.scale or 0.0
    return Estimate(
        category=name,
        category_fr=gettext(name) if name == OTHERS else None,
        reports=round(answer.value * (report.n_reports or 0))
        if report.indicator.protect == IN_GROUPS
        else sum(each.reports or 0 for each in members),
        frequency=answer.value,
        std_error=answer.std_error,
        ci_low=answer.ci_low,
        ci_high=answer.ci_high,
        visitors=answer.value * scale,
        visitors_ci_low=answer.ci_low * scale,
        visitors_ci_high=answer.ci_high * scale,
        status=status,
    )


def _consistent(report: WindowReport, estimates: Sequence[Estimate]) -> WindowReport:
    """Values of few categories need less adjustment than those of all."""
    shares = project_simplex(np.array([each.frequency for each in estimates], np.float64))
    rows = zip(estimates, shares.tolist(), strict=True)
    return replace(
        report,
        estimates=tuple(each._replace(consistent=share) for each, share in rows),
        status=estimates[0].status,  # all have the same
    )
