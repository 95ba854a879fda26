"""Budgets of populations: what may be spent, and who decides. Everything that spends or caps passes here.

Anyone who spends or changes a budget locks the row of its population first: two studies that are created at
once cannot both take the rest. BudgetExceededError says that a cap forbids what is asked for.
"""

from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext_noop as _

from ldp import PlanSpec
from reports.accounts import second_person
from reports.base.reasons import Reason
from reports.ledger.actions import record
from reports.ledger.models import LedgerKind
from reports.privacy.budget.spending import BudgetLine, BudgetOutlook, caps_in_force, outlook
from reports.privacy.composition import losses_of
from reports.privacy.models import BudgetCap, BudgetPopulation, CapDecision
from reports.studies.models import Study
from reports.studies.plan_models import Plan
from reports.studies.studyfile import StudyDefinition

_SHOWN = Decimal("0.0001")


class BudgetExceededError(ValueError):
    """A cap forbids it; nothing was created or undone."""

    def __init__(self, outlook: BudgetOutlook, *, what: Reason) -> None:
        text = _(
            "%(what)s must fit the budget of the population %(population)s: %(lines)s. Choose a smaller "
            "epsilon or fewer daily values, or raise the cap on the Budget page, where a second person "
            "confirms it"
        )
        first, *others = (_words(line) for line in outlook.exceeded)
        for line in others:
            first = Reason("%(first)s; %(line)s", first=first, line=line)
        super().__init__(Reason(text, what=what, population=outlook.population, lines=first))
        self.outlook = outlook


class PopulationUnitsError(BudgetExceededError):
    """A population would have studies whose losses have different units; nothing was created."""

    def __init__(self, definition: StudyDefinition, other: Study) -> None:
        text = _(
            "study.population must differ from that of study %(other)s: losses of this study are of "
            "%(unit)s, those of the other one are of %(other_unit)s, and they cannot be added; got "
            "%(population)s"
        )
        unit, other_unit = (
            Reason(_unit_of(spec)) for spec in (definition.plan_spec(), _newest(other).parsed)
        )
        ValueError.__init__(
            self,
            Reason(
                text, other=other.slug, unit=unit, other_unit=other_unit, population=definition.population
            ),
        )


class BudgetChangeError(ValueError):
    """A cap cannot be changed like that; nothing was changed."""


def outlook_of(definition: StudyDefinition) -> BudgetOutlook:
    """Return a study's spending of the budget, by its definition; changes nothing, and refuses nothing."""
    return outlook(
        definition.population,
        first_day=definition.first_day,
        last_day=definition.last_day,
        takes=losses_of(definition.plan_spec()),
        without=definition.slug,
    )


def check_budget(definition: StudyDefinition, *, by: str) -> BudgetOutlook:
    """Spend a study's part of the budget, if it is left; others who spend it wait for this transaction.

    Call it in the transaction that creates the study, or replaces its plan.
    """
    _lock(definition.population)
    _check_units(definition)
    found = outlook_of(definition)
    if found.exceeded:
        raise BudgetExceededError(
            found, what=Reason(_("study %(slug)s, requested by %(by)s,"), slug=definition.slug, by=by)
        )
    return found


def _check_units(definition: StudyDefinition) -> None:
    """Refuse to add up losses of people, of single events, and of all events of a person."""
    others = Study.objects.filter(population=definition.population).exclude(slug=definition.slug)
    unit = _unit_of(definition.plan_spec())
    other = next((study for study in others if _unit_of(_newest(study).parsed) != unit), None)
    if other is not None:
        raise PopulationUnitsError(definition, other)


def _unit_of(spec: PlanSpec) -> str:
    """Name what loses the epsilons of a plan."""
    if not spec.events:
        return _("people")
    return _("single events") if spec.max_events is None else _("all events of a person")


def _newest(study: Study) -> Plan:
    return study.plans.order_by("-version")[0]


def check_voided_day(slug: str, *, voided_days: int) -> None:
    """Refuse to undo one more published day of a study if the budget has no room for its second answers.

    `voided_days` counts this one.
    """
    study = Study.objects.filter(slug=slug).first()
    plan = None if study is None else study.plans.order_by("-version").first()
    if study is None or plan is None:
        return  # nothing of it is in this zone, and nothing spent
    takes = losses_of(plan.parsed, voided_days=max(voided_days, plan.voided_days))
    found = outlook(
        study.population, first_day=study.first_day, last_day=study.last_day, takes=takes, without=slug
    )
    # Only what grows can be refused: a unit that was over its cap before is not spent any further.
    before = losses_of(plan.parsed, voided_days=plan.voided_days)
    grows = tuple(line for line in found.lines if takes.of(line.unit) != before.of(line.unit))
    found = replace(found, lines=grows)
    if found.exceeded:
        raise BudgetExceededError(
            found, what=Reason(_("undoing a published day of study %(slug)s"), slug=slug)
        )


def reserve_voided_day(slug: str, *, voided_days: int) -> None:
    """Spend what undoing a published day costs, before its answers leave the operator zone."""
    with transaction.atomic():
        population = Study.objects.filter(slug=slug).values_list("population", flat=True).first()
        if population is None:
            return
        _lock(population)
        check_voided_day(slug, voided_days=voided_days)
        plans = Plan.objects.filter(study__slug=slug).order_by("-version")
        newest = list(plans.values_list("pk", flat=True)[:1])
        Plan.objects.filter(pk__in=newest, voided_days__lt=voided_days).update(voided_days=voided_days)


@transaction.atomic
def propose_cap(*, population: str, unit: str, period: str, epsilon: Decimal | None, by: str) -> BudgetCap:
    """Set a cap: a smaller one, or a first one, at once; a larger one or none waits for a second person.

    Unless the installation has no one for that: MOBILITY_SECOND_PERSON. An epsilon of None is no cap.
    BudgetChangeError if it is the cap in force, or another one waits.
    """
    row = _lock(population)
    now = caps_in_force(population).get((unit, period))
    if (None if now is None else now.epsilon) == epsilon:
        raise BudgetChangeError(
            f"cap per {unit} and {period} must differ from the one in force, got {epsilon}"
        )
    is_smaller = epsilon is not None and (now is None or now.epsilon is None or epsilon < now.epsilon)
    waiting = BudgetCap.objects.filter(
        population=row, unit=unit, period=period, needs_second=True, decision=None
    )
    if not is_smaller and waiting.exists():  # a smaller one never waits for anything
        raise BudgetChangeError(
            f"cap per {unit} and {period} must not already be waiting for a second person, got another "
            "change: confirm or refuse it first"
        )
    cap = BudgetCap.objects.create(
        population=row,
        unit=unit,
        period=period,
        epsilon=epsilon,
        replaces=now,
        needs_second=not is_smaller and settings.MOBILITY_SECOND_PERSON,
        set_by=by,
    )
    _record(cap, by=by, what="proposed" if cap.needs_second else "set")
    return cap


@transaction.atomic
def decide_cap(cap: BudgetCap, *, confirm: bool, by: str) -> CapDecision:
    """Confirm or refuse a cap that waits.

    BudgetChangeError if `by` is no second person (reports/accounts/second_person.py), the cap does not wait,
    or the one in force is another now.
    """
    _lock(cap.population_id)
    if not cap.needs_second or CapDecision.objects.filter(cap=cap).exists():
        raise BudgetChangeError(f"cap must be waiting for a second person, got one that is not: {cap}")
    reason = confirmation_obstacle(cap, by=by) if confirm else ""
    if reason:
        raise BudgetChangeError(reason)
    now = caps_in_force(cap.population_id).get((cap.unit, cap.period))
    if confirm and (None if now is None else now.pk) != cap.replaces_id:
        raise BudgetChangeError(
            f"cap in force must not have changed since {cap.set_by} requested another, got {now}: refuse "
            "this change and request it again"
        )
    decision = CapDecision.objects.create(cap=cap, is_confirmed=confirm, decided_by=by)
    _record(cap, by=by, what="confirmed" if confirm else "refused")
    return decision


def confirmation_obstacle(cap: BudgetCap, *, by: str) -> str:
    """Say why an account cannot confirm a cap that waits; empty if it can."""
    own = f"cap must be confirmed by someone other than {cap.set_by}, who requested it"
    return second_person.obstacle(by, authors=[cap.set_by], of_author=own)


def _lock(population: str) -> BudgetPopulation:
    """Row of a population, locked until the transaction ends."""
    BudgetPopulation.objects.get_or_create(name=population)
    return BudgetPopulation.objects.select_for_update().get(name=population)


def _record(cap: BudgetCap, *, by: str, what: str) -> None:
    record(
        LedgerKind.BUDGET_CHANGED,
        actor=by,
        facts={
            "what": what,
            "cap": cap.pk,
            "population": cap.population_id,
            "unit": cap.unit,
            "period": cap.period,
            "epsilon": None if cap.epsilon is None else f"{cap.epsilon.normalize():f}",
        },
    )


def _words(line: BudgetLine) -> Reason:
    left = (line.left or Decimal(0)).quantize(_SHOWN, rounding=ROUND_FLOOR)
    text = _(
        "per %(unit)s, %(span)s: the cap is %(cap)s, studies have spent %(spent)s, %(left)s is left, "
        "this %(takes)s"
    )
    return Reason(
        text,
        unit=Reason(line.unit),
        span=str(line.span),
        cap=_short(line.cap or Decimal(0)),
        spent=Reason(_("an unbounded loss")) if line.spent is None else _short(line.spent),
        left=f"{left.normalize():f}",
        takes=Reason(_("has no bound"))
        if line.takes is None
        else Reason(_("takes %(epsilon)s"), epsilon=_short(line.takes)),
    )


def _short(value: Decimal) -> str:
    return f"{value.quantize(_SHOWN, rounding=ROUND_CEILING).normalize():f}"
