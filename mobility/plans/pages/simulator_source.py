"""Start of a simulation: a study, a draft, or typed numbers only."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Decimal
from typing import Any, get_args
from urllib.parse import urlencode

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.translation import gettext

from ldp import PlanSpec
from ldp.errors import LdpError
from ldp.privacy.first_reports import FirstReports
from ldp.privacy.plans import Kind
from ldp.privacy.presence import PresenceSpec
from ldp.privacy.slots import SlotSpec
from ldp.protocols.channels import MAX_DOMAIN_SIZE
from mobility.plans.class_shares import CLASSES, Names, initial_classes, named_classes
from mobility.plans.models import PlanDraft
from reports.simulator.model import Question, crowd_so_far, questions_of_definition, questions_of_study
from reports.studies.models import Study
from reports.studies.queries import current_plan
from reports.studies.studyfile import StudyDefinition
from reports.studies.studyfile.sections import DEFAULT_DELTA

TYPED = {"days": "7", "indicators": "5", "daily": "0", "categories": "8", "cap": "7"}
PLAN = {"unit": "profile", "epsilon": "1"}  # the mechanism is the recommended one
SLOTS = {"slots_per_day": "48", "slots_levels": "1", "slots_zones": "10"}
ASKED, MOST_ASKED, LONGEST_NAME = "asked", 50, 100
KINDS = get_args(Kind)
CROWD = {"visitors": "10000", "stay": "1.5"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Initial values of a simulation.

    name : of the study, empty for typed numbers
    kept : part of the address that names it, as {"study": slug}
    address : of its page
    initial : values of fields that are not in the address
    questions : empty for typed numbers
    classes : short name and name of each class of the plan; empty without any
    """

    name: str
    kept: Mapping[str, str]
    address: str
    initial: Mapping[str, Any]
    questions: tuple[Question, ...]
    days: int
    small_cell: int
    slots_delta: Decimal = DEFAULT_DELTA
    classes: Names = ()

    @property
    def reset(self) -> str:
        """Address with nothing changed."""
        base = reverse("administrator:simulator")
        return f"{base}?{urlencode(self.kept)}" if self.kept else base


def source_of(request: HttpRequest) -> Source:
    if "draft" in request.GET:
        number = request.GET["draft"]
        draft = get_object_or_404(PlanDraft, pk=int(number) if number.isdecimal() else 0)
        return source_of_draft(draft)
    if "study" in request.GET:
        return _of_study(get_object_or_404(Study, units=Study.Units.VISITORS, slug=request.GET["study"]))
    questions = _asked(request.GET.get(ASKED, ""))
    found = _of_asked(questions, request) if questions else typed_source()
    names = named_classes(request.GET.get(CLASSES, ""))
    if not names:
        return found
    kept = {**found.kept, CLASSES: " ".join(slug for slug, _ in names)}
    shares = initial_classes(dict.fromkeys((slug for slug, _ in names), Decimal(1)))
    return replace(found, kept=kept, initial={**found.initial, **shares}, classes=names)


def asked_query(rows: Iterable[tuple[str, Kind, int]]) -> str:
    """Name, kind and number of categories of each indicator, as the address of the simulator has them."""
    return json.dumps([[name[:LONGEST_NAME], kind, size] for name, kind, size in rows])


def _asked(text: str) -> tuple[Question, ...]:
    """Indicators of an address; none if it was not made by `asked_query`."""
    try:
        rows = json.loads(text)
        found = [
            Question(slug=f"i{number}", name=name, kind=kind, domain_size=size)
            for number, (name, kind, size) in enumerate(rows, start=1)
            if isinstance(name, str) and kind in KINDS and type(size) is int and 2 <= size <= MAX_DOMAIN_SIZE
        ]
    except (ValueError, TypeError, LdpError, RecursionError):
        return ()
    return tuple(found) if len(found) == len(rows) <= MOST_ASKED else ()


def _of_asked(questions: tuple[Question, ...], request: HttpRequest) -> Source:
    """Start from the indicators of a form that is not a draft yet; the days can be changed."""
    start = {**PLAN, **_initial(questions, days=int(TYPED["days"])), **SLOTS, "days": TYPED["days"]}
    start.pop("cap", None)
    return replace(typed_source(), kept={ASKED: request.GET[ASKED]}, initial=start, questions=questions)


def typed_source() -> Source:
    return Source(
        name="",
        kept={},
        address="",
        initial={**PLAN, **CROWD, **TYPED, **SLOTS},
        questions=(),
        days=7,
        small_cell=0,
    )


def _of_study(study: Study) -> Source:
    plan, crowd = current_plan(study), crowd_so_far(study)
    spec = plan.parsed
    n_zones = (
        len(study.slots.zones) - sum(len(level["zones"]) for level in study.slots.levels) if spec.slots else 0
    )
    seen = {} if crowd is None else {"visitors": round(crowd.visitors), "stay": round(crowd.days_present, 3)}
    return Source(
        name=study.shown_name,
        kept={"study": study.slug},
        address=reverse("administrator:study", args=[study.slug]),
        initial={
            **_initial(questions_of_study(study), days=study.days),
            **seen,
            "mechanism": plan.mechanism,
            "unit": plan.unit,
            "epsilon": f"{plan.epsilon.normalize():f}",
            **_presence(spec.presence),
            **_first(spec.first),
            **_window(spec),
            **_slots(spec.slots, n_zones=n_zones),
            **_classes(spec),
        },
        questions=questions_of_study(study),
        days=study.days,
        small_cell=study.small_cell,
        slots_delta=_delta(spec.slots),
        classes=list(zip((each.slug for each in spec.classes), study.shown_classes, strict=True)),
    )


def source_of_draft(draft: PlanDraft) -> Source:
    # Positions of a study's cells may be megabytes, and nothing here is about places.
    definition = StudyDefinition.from_json({**draft.definition, "area": None, "location": None})
    questions, days = questions_of_definition(definition), definition.days
    spec, area = definition.plan_spec(), draft.definition["area"]
    visitors = expected_visitors(definition)
    return Source(
        name=definition.shown_name,
        kept={"draft": str(draft.pk)},
        address="",
        initial={
            **_initial(questions, days=days),
            **({} if visitors is None else {"visitors": visitors}),
            "mechanism": definition.plan.mechanism,
            "unit": definition.plan.unit,
            "epsilon": f"{definition.plan.epsilon.normalize():f}",
            **_presence(spec.presence),
            **_first(spec.first),
            **_window(spec),
            **_slots(spec.slots, n_zones=len(area["zones"]) if area else 0),
            **_classes(spec),
        },
        questions=questions,
        days=days,
        small_cell=definition.small_cell,
        slots_delta=_delta(spec.slots),
        classes=[(each.slug, each.shown_name) for each in definition.classes],
    )


def _initial(questions: tuple[Question, ...], *, days: int) -> dict[str, Any]:
    """Fields about the questions; one cap stands for all daily ones, if they have one."""
    fields: dict[str, Any] = {**CROWD, "stay": min(Decimal(CROWD["stay"]), Decimal(days))}
    fields |= {f"k-{each.slug}": each.domain_size for each in questions if each.has_size}
    caps = {each.max_values or days for each in questions if each.kind == "daily"}
    return fields | ({"cap": caps.pop()} if len(caps) == 1 else {})


def _presence(presence: PresenceSpec | None) -> dict[str, Any]:
    """Fields of the noise that hides who was there."""
    if presence is None:
        return {}
    return {"presence_epsilon": f"{float(presence.epsilon):g}", "presence_days": presence.max_days}


def _first(first: FirstReports | None) -> dict[str, Any]:
    """Fields of fresh noise."""
    if first is None:
        return {}
    epsilon = "" if first.epsilon is None else f"{float(first.epsilon):g}"
    return {"epsilon_first": epsilon, "hash_cells": "" if first.cells == "two" else first.cells}


def _window(spec: PlanSpec) -> dict[str, Any]:
    """Field of the days of a window."""
    return {} if spec.window_days is None else {"window_days": spec.window_days}


def _slots(slots: SlotSpec | None, *, n_zones: int) -> dict[str, Any]:
    """Fields of counts by slot."""
    if slots is None:
        return SLOTS
    noise = slots.noise
    of_noise = {} if noise is None else {"slots_epsilon": _short(noise.epsilon(days=1))}
    return {
        "slots_per_day": slots.slots_per_day,
        "slots_levels": slots.levels,
        "slots_zones": max(n_zones, 1),
        **of_noise,
    }


def _classes(spec: PlanSpec) -> dict[str, str]:
    """Fields of classes."""
    return initial_classes({each.slug: Decimal(f"{float(each.epsilon):g}") for each in spec.classes})


def _short(epsilon: Decimal) -> str:
    return f"{epsilon.quantize(Decimal('0.0001'), ROUND_CEILING).normalize():f}"


def _delta(slots: SlotSpec | None) -> Decimal:
    found = None if slots is None else slots.delta
    return DEFAULT_DELTA if found is None else Decimal(found.numerator) / Decimal(found.denominator)


def expected_visitors(definition: StudyDefinition) -> int | None:
    """Visitors of a day, from the subscribers that the study file expects in all; None if it says nothing."""
    if definition.expected_subscribers is None:
        return None
    stay = min(Decimal(CROWD["stay"]), Decimal(definition.days))
    return max(1, round(definition.expected_subscribers * stay / definition.days))


def crumbs_of(source: Source) -> list[tuple[str, str]]:
    crumbs = [(gettext("Administration"), reverse("administrator:studies"))]
    return [*crumbs, (source.name, source.address)] if source.address else crumbs
