"""Sums over sets of categories: the groups of the study, or any that a page chooses."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from django.utils.translation import gettext, gettext_noop

from ldp import project_simplex, pure_frequencies
from ldp.estimation.joint.linear import LinearChannel, LinearEstimate, linear_answer
from ldp.estimation.partial.regions import share_of_sample
from reports.base.status import Status, estimates_status
from reports.estimates.queries import LEVEL, Estimate, WindowError, WindowReport, has_small
from reports.studies.studyfile.definition import IN_GROUPS

OTHERS: Final = gettext_noop("Other categories")


class GroupsError(WindowError):
    """The indicator has no groups, or its answers cannot be added up."""


def in_groups(report: WindowReport) -> WindowReport:
    """Return the groups of the study as estimates, for files and programs.

    They have no numbers where the window has none, or where the small-category rule hides a category.
    GroupsError if there are no groups, or no sums.
    """
    found = report_by_group(report)
    if found is not None:
        return found
    if not report.indicator.groups:
        text = gettext("%(indicator)s has no groups of categories.")
        raise GroupsError(text % {"indicator": report.indicator.slug})
    status = Status.SMALL if has_small([report]) else report.status
    if status in (Status.OK, Status.NOT_RELIABLE):
        text = gettext("The answers to %(indicator)s cannot be added up over groups of categories.")
        raise GroupsError(text % {"indicator": report.indicator.slug})
    blanks = (_blank(name, status=status) for name, _ in sets_of_groups(report))
    return replace(report, estimates=tuple(blanks))


def report_by_group(report: WindowReport) -> WindowReport | None:
    """Sums over the study's groups of categories, and over those in no group; None where there are none."""
    sets = sets_of_groups(report)
    members = [each for _, each in sets]
    answers = (_told_groups(report, members) or sums(report, members)) if sets else None
    if answers is None:
        return None
    status = estimates_status(
        Status.OK if report.status == Status.NOT_RELIABLE else report.status,
        ci_low=[each.ci_low for each in answers],
        ci_high=[each.ci_high for each in answers],
    )
    rows = zip(sets, answers, strict=True)
    return made_consistent(report, [sum_estimate(report, *of, answer, status=status) for of, answer in rows])


def sets_of_groups(report: WindowReport) -> list[tuple[str, list[Estimate]]]:
    """Name and members of each group of the study, and of the categories in none; empty without groups."""
    groups = report.indicator.groups or {}
    by_name = {each.category: each for each in report.estimates}
    found = [(name, [by_name[each] for each in members]) for name, members in groups.items()]
    grouped = {each for members in groups.values() for each in members}
    rest = [each for each in report.estimates if each.category not in grouped]
    return [*found, (OTHERS, rest)] if groups and rest else found


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


def sums(report: WindowReport, sets: Sequence[Sequence[Estimate]]) -> list[LinearEstimate] | None:
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


def sum_estimate(
    report: WindowReport,
    name: str,
    members: Sequence[Estimate],
    answer: LinearEstimate,
    *,
    status: Status,
) -> Estimate:
    """Return the sum over some categories as one of them."""
    scale = report.scale or 0.0
    return Estimate(
        category=name,
        category_fr=_french(name),
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


def made_consistent(report: WindowReport, estimates: Sequence[Estimate]) -> WindowReport:
    """Values of few categories need less adjustment than those of all."""
    shares = project_simplex(np.array([each.frequency for each in estimates], np.float64))
    rows = zip(estimates, shares.tolist(), strict=True)
    return replace(
        report,
        estimates=tuple(each._replace(consistent=share) for each, share in rows),
        status=estimates[0].status,  # all have the same
    )


def _blank(name: str, *, status: Status) -> Estimate:
    return Estimate(category=name, category_fr=_french(name), reports=None, status=status)


def _french(name: str) -> str | None:
    return gettext(name) if name == OTHERS else None
