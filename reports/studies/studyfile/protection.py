"""Groups of categories that answers disclose: `protect` of [[indicator]]."""

from collections.abc import Sequence

from django.utils.translation import gettext_noop as _

from ldp.privacy.plans import OF_REGIONS
from reports.base.reasons import Reason
from reports.studies.studyfile.definition import (
    IN_GROUPS,
    ONE_A_DAY,
    Groups,
    IndicatorDefinition,
    PlanDefinition,
    Protect,
    StudyDefinition,
)
from reports.studies.studyfile.hours import OF_HOURS
from reports.studies.studyfile.numbers import NUMBER
from reports.studies.studyfile.problems import Problems
from reports.studies.studyfile.table import Table

KEY = "protect"
ALL = "all"


def read_protect(table: Table, groups: Groups) -> Protect | None:
    """Return what answers hide; notes where that cannot be."""
    if not table.has(KEY) or table.choice(KEY, (ALL, IN_GROUPS)) != IN_GROUPS:
        return None
    values = table.values
    is_single = "parts" not in values and values.get("kind") != NUMBER
    if not is_single or values.get("derive") in (*ONE_A_DAY, *OF_HOURS):
        rule = _(
            "must be absent: only a single indicator with categories of a column or zones has groups to tell"
        )
        table.add(KEY, rule, IN_GROUPS)
        return None
    if not groups:
        table.add("groups", _('is missing: protect = "in_groups" tells the group of each answer'))
        return None
    return IN_GROUPS


def check_regions(table: Table, indicator: IndicatorDefinition) -> None:
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
    """Note parts of which answers tell the group; returns whether there are any."""
    told = [each.slug for each in parts if each.protect is not None]
    if told:
        table.add("parts", _("must not name an indicator whose answers tell the group"), told[0])
    return bool(told)


def protect_problems(definition: StudyDefinition, problems: Problems) -> None:
    """Note what has no figures where answers tell the group."""
    told = [each for each in definition.indicators if each.protect is not None]
    for each in told:
        _check_mechanism(problems, each, definition.plan)
    if not told:
        return
    absent = Reason(_('must be absent with protect = "in_groups" (%(slug)s)'), slug=told[0].slug)
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


def _check_mechanism(problems: Problems, indicator: IndicatorDefinition, plan: PlanDefinition) -> None:
    if plan.mechanism not in OF_REGIONS:
        rule = Reason(
            _("must be absent under %(mechanism)s: use one of %(others)s"),
            mechanism=plan.mechanism,
            others=", ".join(OF_REGIONS),
        )
        problems.add(f"indicator[{indicator.slug}].{KEY}", rule, indicator.protect)
