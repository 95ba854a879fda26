"""Groups and categories that answers disclose: `protect` of [[indicator]]."""

from collections.abc import Sequence
from typing import Any, get_args

from django.utils.translation import gettext_noop as _

from ldp.privacy.plans import DISCLOSING
from reports.base.reasons import Reason
from reports.studies.studyfile.definition import (
    IN_GROUPS,
    ONE_A_DAY,
    SENSITIVE,
    Groups,
    IndicatorDefinition,
    PlanDefinition,
    Protect,
    StudyDefinition,
)
from reports.studies.studyfile.hours import OF_HOURS
from reports.studies.studyfile.numbers import NUMBER
from reports.studies.studyfile.problems import Problems, unknown
from reports.studies.studyfile.table import Table

KEY = "protect"
ALL = "all"


def read_protect(table: Table, groups: Groups) -> dict[str, Any]:
    """Return what answers hide; notes where that cannot be."""
    protect = table.choice(KEY, (ALL, *get_args(Protect))) if table.has(KEY) else ALL
    if protect != SENSITIVE:
        table.refuse(SENSITIVE, _('must be absent: only protect = "sensitive" has it'))
    listed = table.raw(SENSITIVE) if protect == SENSITIVE else ()
    if protect == ALL:
        return {}
    values = table.values
    is_single = "parts" not in values and values.get("kind") != NUMBER
    if not is_single or values.get("derive") in (*ONE_A_DAY, *OF_HOURS):
        rule = _(
            "must be absent: only a single indicator with categories of a column or zones has groups to tell"
        )
        table.add(KEY, rule, protect)
        return {}
    if protect == IN_GROUPS and not groups:
        table.add("groups", _('is missing: protect = "in_groups" tells the group of each answer'))
        return {}
    if protect == IN_GROUPS:
        return {"protect": protect}
    if not isinstance(listed, list) or not listed or not all(isinstance(each, str) for each in listed):
        if listed is not None:  # else noted as missing
            table.add(SENSITIVE, _("must be a list of categories of this indicator"), listed)
        return {}
    return {"protect": protect, "sensitive": tuple(listed)}


def check_protect(table: Table, indicator: IndicatorDefinition) -> None:
    """Note groups or sensitive categories that do not fit the categories."""
    if indicator.protect == IN_GROUPS:
        _check_regions(table, indicator)
    for place, category in enumerate(indicator.sensitive):
        if category not in indicator.categories:
            table.add(SENSITIVE, unknown(category, known=indicator.categories))
        elif category in indicator.sensitive[:place]:
            table.add(SENSITIVE, _("must name each category once"), category)
    if set(indicator.sensitive) == {*indicator.categories}:
        rule = _('must not have all categories: protect = "all" hides them, and discloses none')
        table.add(SENSITIVE, rule, list(indicator.sensitive))


def _check_regions(table: Table, indicator: IndicatorDefinition) -> None:
    """Note categories without a group, and groups of one category, which answers would disclose."""
    grouped = {member for _name, members in indicator.groups for member in members}
    for category in indicator.categories:
        if category not in grouped:
            table.add("groups", _("must have each category where answers tell the group"), category)
    if len(indicator.groups) < 2:
        table.add(
            "groups", _("must be two groups or more where answers tell the group"), len(indicator.groups)
        )
    for name, members in indicator.groups:
        if len(members) == 1:
            rule = _("must have two categories or more: answers tell the group, and would tell this category")
            table.add(f"groups.{name}", rule, list(members))


def refuse_protected_parts(table: Table, parts: Sequence[IndicatorDefinition]) -> bool:
    """Note parts of which answers disclose something; returns whether there are any."""
    told = [each.slug for each in parts if each.protect is not None]
    if told:
        table.add(
            "parts", _("must not name an indicator whose answers disclose groups or categories"), told[0]
        )
    return bool(told)


def protect_problems(definition: StudyDefinition, problems: Problems) -> None:
    """Note what has no figures where answers disclose something, and a plan that does not say so."""
    told = [each for each in definition.indicators if each.protect is not None]
    _check_said(definition, problems)
    for each in told:
        _check_mechanism(problems, each, definition.plan)
    if not told:
        return
    absent = Reason(
        _('must be absent with protect = "%(protect)s" (%(slug)s)'),
        protect=told[0].protect or "",
        slug=told[0].slug,
    )
    kept: dict[str, object] = {
        "study.small_category": definition.small_category,
        "plan.presence_epsilon": definition.plan.presence_epsilon,
        "study.kind": definition.units,
        "class": definition.classes or None,
    }
    for key, value in kept.items():
        if value is not None:
            problems.add(key, absent)
    for shares in definition.category_shares:
        if shares.indicator in {each.slug for each in told}:
            problems.add("study.category_shares", absent)


def _check_said(definition: StudyDefinition, problems: Problems) -> None:
    """Values are disclosed only if the plan says so."""
    open_ones = [each.slug for each in definition.indicators if each.protect == SENSITIVE]
    is_said = definition.plan.discloses_values is True
    if open_ones and not is_said:
        rule = Reason(
            _('must be true: protect = "sensitive" (%(slug)s) discloses categories that are not sensitive'),
            slug=open_ones[0],
        )
        problems.add("plan.discloses_values", rule)
    elif is_said and not open_ones:
        absent = _('must be absent: no indicator has protect = "sensitive"')
        problems.add("plan.discloses_values", absent, True)


def _check_mechanism(problems: Problems, indicator: IndicatorDefinition, plan: PlanDefinition) -> None:
    if plan.mechanism not in DISCLOSING:
        rule = Reason(
            _("must be absent under %(mechanism)s: use one of %(others)s"),
            mechanism=plan.mechanism,
            others=", ".join(DISCLOSING),
        )
        problems.add(f"indicator[{indicator.slug}].{KEY}", rule, indicator.protect)
