"""A report with few categories: groups of the study, or those above zero and the sum of the others."""

from dataclasses import replace
from typing import Any, Final

from django.utils.translation import gettext

from ldp.estimation.multiple import chosen_reach
from reports.base.status import Status
from reports.estimates import charts
from reports.estimates.groups import OTHERS, made_consistent, report_by_group, sum_estimate, sums
from reports.estimates.options import GROUPS, ReportOptions, Switch, ordered
from reports.estimates.queries import LEVEL, WindowReport, surely_present
from reports.estimates.texts import report_sentences

# Fewer categories are read as they are.
LEAST: Final = 9


def grouping_context(report: WindowReport, *, options: ReportOptions, query: str) -> dict[str, Any]:
    """Return links to the grouped views and, where the address asks for one, its chart and table."""
    found, by_group = grouped_report(report), report_by_group(report)
    drawn: dict[str, Any] = {}
    if options.group == "found" and found is not None:
        # Found categories come first, the largest on top, in any order of the page.
        drawn = _drawn(found, options=replace(options, order="natural"), n_named=len(found.estimates) - 1)
    elif options.group == GROUPS and by_group is not None:
        drawn = _drawn(by_group, options=options, n_named=len(report.indicator.groups or ()))
        drawn["by_group"] = True
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
    answers = sums(report, [others])
    if answers is None:
        return None
    (answer,) = answers
    reach = answer.std_error * chosen_reach(len(found), len(report.estimates), level=LEVEL)
    answer = replace(answer, ci_low=answer.value - reach, ci_high=answer.value + reach)
    rest = sum_estimate(report, OTHERS, others, answer, status=Status.OK)
    return made_consistent(report, (*found, rest))
