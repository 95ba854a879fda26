"""Joint loss of a person in the studies of the same people: losses add up.

Each kind of loss has its own unit, and no two kinds are added: values (per profile, per attribute),
presence, counts by slot (at a delta), and places (per kilometre).
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

from django.db.models import Exists, OuterRef
from django.utils.translation import gettext

from ldp import PlanSpec, certify
from ldp.privacy.accounting import certify_presence
from ldp.privacy.slot_losses import certify_slots
from reports.privacy.event_texts import population_words
from reports.privacy.models import BudgetCap, DeletedStudy
from reports.studies.models import Study
from reports.studies.plan_models import Plan
from reports.studies.queries import current_plan
from reports.studies.tally_models import Publication

Unit = BudgetCap.Unit
METRES = Fraction(1000)  # to which the epsilon of places refers
_UP = Context(prec=60, rounding=ROUND_CEILING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Losses:
    """Certified losses of a person, rounded up.

    presence : None = no bound: visitor totals are exact; with that of the slots, at `delta`
    slots : of counts by slot alone, at `delta`; None = no bound: they are exact
    delta : probability with which `presence` and `slots` may not hold
    location : of all places that a person reports, between lives whose places are a kilometre apart
    """

    profile: Decimal = Decimal(0)
    attribute: Decimal = Decimal(0)
    presence: Decimal | None = Decimal(0)
    location: Decimal = Decimal(0)
    slots: Decimal | None = Decimal(0)
    delta: Decimal = Decimal(0)

    def of(self, unit: str) -> Decimal | None:
        """Loss in a unit of `BudgetCap`; None = no bound."""
        found: Decimal | None = getattr(self, Unit(unit).value)
        return found

    def __add__(self, other: "Losses") -> "Losses":
        return Losses(
            profile=_UP.add(self.profile, other.profile),
            attribute=_UP.add(self.attribute, other.attribute),
            presence=_sum(self.presence, other.presence),
            location=_UP.add(self.location, other.location),
            slots=_sum(self.slots, other.slots),
            delta=_UP.add(self.delta, other.delta),
        )

    @classmethod
    def total(cls, losses: Iterable["Losses"]) -> "Losses":
        """Sum of the losses of studies with the same people, each in its unit."""
        found = cls()
        for each in losses:
            found += each
        return found


def _sum(one: Decimal | None, other: Decimal | None) -> Decimal | None:
    """Sum of two losses of one kind; None = no bound."""
    return None if one is None or other is None else _UP.add(one, other)


@lru_cache(maxsize=1024)
def losses_of(spec: PlanSpec, *, voided_days: int = 0) -> Losses:
    """Return the loss of a person by a plan, from the numbers in use; cached: it takes a millisecond.

    Of events without a limit for each person it is the loss of an event.
    """
    certificate = certify(spec, extra_daily_values=voided_days)
    presence, slots = certify_presence(spec), certify_slots(spec)
    location = Decimal(0)
    if spec.location is not None:
        n_places = spec.location.values_per_person(spec.days) + voided_days
        location = spec.location.loss_at(METRES, n_places=n_places)
    attribute = certificate.epsilon_attribute
    losses = Losses(
        profile=certificate.epsilon_person or certificate.epsilon_profile,
        attribute=_UP.multiply(attribute, Decimal(spec.max_events or 1)),
        presence=None if presence is None else presence.epsilon,
        location=location,
        slots=Decimal(0) if spec.slots is None else None,
    )
    if slots is None:
        return losses
    delta = _UP.divide(*map(Decimal, slots.noise.delta.as_integer_ratio()))
    return replace(losses, presence=slots.epsilon, slots=slots.study.absent.epsilon, delta=delta)


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyLosses:
    """A study with what it reveals of a person, or could: it counts from its creation on.

    is_counted : False once it was closed without having published anything: then nothing was revealed
    is_deleted : its rows are gone, and what it revealed stays spent
    """

    study: Study
    plan: Plan
    losses: Losses
    is_counted: bool
    is_deleted: bool = False


def studies_of(population: str) -> list[StudyLosses]:
    """Studies of a population, by their first day and slug, then deleted ones; three statements."""
    published = Publication.objects.filter(study=OuterRef("pk"))
    studies = Study.objects.filter(population=population).annotate(has_published=Exists(published))
    newest = {plan.study_id: plan for plan in Plan.objects.filter(study__in=studies).order_by("version")}
    there = [
        StudyLosses(
            study=study,
            plan=newest[study.pk],
            losses=losses_of(newest[study.pk].parsed, voided_days=newest[study.pk].voided_days),
            is_counted=study.state == Study.State.OPEN or study.has_published,
        )
        for study in studies.order_by("first_day", "slug")
    ]
    gone = DeletedStudy.objects.filter(population=population).order_by("first_day", "pk")
    return there + [_of_deleted(each) for each in gone]


def _of_deleted(row: DeletedStudy) -> StudyLosses:
    plan = Plan(spec=row.spec, spec_hash=row.spec_hash, voided_days=row.voided_days)
    return StudyLosses(
        study=Study(
            slug=row.slug,
            name=row.name,
            name_fr=row.name_fr,
            first_day=row.first_day,
            days=row.days,
            state="deleted",
        ),
        plan=plan,
        losses=losses_of(plan.parsed, voided_days=plan.voided_days),
        is_counted=True,
        is_deleted=True,
    )


def counted(studies: Iterable[StudyLosses]) -> Losses:
    """Sum over the studies that count."""
    return Losses.total(each.losses for each in studies if each.is_counted)


def composition_facts(study: Study, *, with_names: bool) -> dict[str, Any]:
    """Joint loss of a person who is in all studies of a population, as plain values of the statement.

    Other studies are named only `with_names`: a reader may have no right to know of them.
    """
    studies = studies_of(study.population)
    return {
        "population": study.population,
        "definition": population_words(current_plan(study).parsed)
        if study.of_events
        else gettext(
            "Studies of the same population may cover the same people, so the information that these "
            "studies reveal about a person adds up. Each type of privacy loss adds up separately, in its "
            "own unit. A study is included from the time it is created, unless it was closed without "
            "publishing anything."
        ),
        "studies": [_row(each, this=study, with_names=with_names) for each in studies],
        **_plain(counted(studies)),
        "rounding": "up",
    }


def _row(found: StudyLosses, *, this: Study, with_names: bool) -> dict[str, Any]:
    is_this = found.study == this
    return {
        "study": found.study.slug if is_this or with_names else None,
        "first_day": found.study.first_day.isoformat(),
        "last_day": found.study.last_day.isoformat(),
        "state": found.study.state,
        "spec_sha256": found.plan.spec_hash,
        "is_this": is_this,
        "is_counted": found.is_counted,
        **_plain(found.losses),
    }


def _plain(losses: Losses) -> dict[str, str | None]:
    return {
        "epsilon_profile": str(losses.profile),
        "epsilon_attribute": str(losses.attribute),
        "epsilon_presence": None if losses.presence is None else str(losses.presence),
        "epsilon_location_per_km": f"{losses.location:f}",
        **_plain_slots(losses),
    }


def _plain_slots(losses: Losses) -> dict[str, str | None]:
    """Members on counts by slot; none where no study has any."""
    if losses.slots == 0:
        return {}
    return {
        "epsilon_slots": None if losses.slots is None else str(losses.slots),
        "delta": f"{losses.delta:f}",
    }
