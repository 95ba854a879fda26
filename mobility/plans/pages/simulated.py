"""Values of a simulation, by the names of the fields that take them: of a draft, or of a new study."""

from collections.abc import Collection
from decimal import Decimal
from typing import Final

from django.http import QueryDict

from ldp.privacy.plans import OF_FIRST, STREAM
from mobility.plans.class_shares import CLASSES, EPSILON, classes_text, read_classes_text
from mobility.plans.pages.draft_typed import CLASS, JOINT, ORIGIN, Typed, lines
from mobility.plans.pages.simulator_form import COMBINED, SimulatorForm
from mobility.plans.pages.simulator_source import CROWD

# Fields of the simulator and the keys of the study file that they are.
PLAN: Final = {
    name: f"plan.{name}"
    for name in (
        "mechanism", "unit", "epsilon", "epsilon_first", "hash_cells", "window_days", "presence_epsilon",
        "presence_days",
    )
}  # fmt: skip
SLOTS: Final = {"slots_epsilon": "slots.epsilon_day", "slots_per_day": "slots.slots_per_day"}
CAP, PARTS = "cap", "parts"
USED: Final = "used"  # in the address: the form comes from the simulator


def query_for_draft(form: SimulatorForm) -> str:
    """Address of the changes for the page that edits the draft; what was not changed stays to the digit."""
    changed = {key: _text(form, name) for name, key in SLOTS.items() if _is_changed(form, name)}
    plan = _plan(form)
    changed |= {key: plan[key] for name, key in PLAN.items() if _is_changed(form, name)}
    if PLAN["presence_epsilon"] in changed:
        changed[PLAN["presence_days"]] = plan[PLAN["presence_days"]]
    if CAP in form.fields and _is_changed(form, CAP):
        cap = form.cleaned_data[CAP]
        changed[CAP] = "" if cap >= form.source.days else str(cap)
    if any(_is_changed(form, f"{EPSILON}{slug}") for slug, _ in form.class_names):
        changed |= {PLAN["epsilon"]: plan[PLAN["epsilon"]], CLASSES: classes_text(form.setting.classes)}
    parts = [form.cleaned_data[name] for name in COMBINED if form.cleaned_data.get(name)]
    return _query(changed | {PARTS: " ".join(parts)} if parts else changed)


def query_for_new_study(form: SimulatorForm) -> str:
    """Address of the page of a new study with the plan, its days and, if someone entered them, its people."""
    people = people_entered(form)
    of_study = {"study.days": str(form.cleaned_data["days"])}
    if people is not None:
        of_study["study.expected_subscribers"] = str(people)
    if classes := form.setting.classes:
        of_study[CLASSES] = classes_text(classes)
    if form.cleaned_data["slots_epsilon"] is not None:
        of_study |= {key: _text(form, name) for name, key in SLOTS.items()}
    cap = form.cleaned_data.get(CAP)
    if cap is not None and cap < form.cleaned_data["days"] and form.cleaned_data["mechanism"] != STREAM:
        of_study[CAP] = str(cap)
    return _query({**_plan(form), **of_study})


def people_entered(form: SimulatorForm) -> int | None:
    """Subscribers in all days; None if visitors are those that the simulator proposed.

    A study file fixes the number of shards by them, and no one may have looked at a proposed number.
    """
    if not any(_is_changed(form, name) for name in CROWD):
        return None
    return round(form.setting.crowd.in_all(form.cleaned_data["days"]))


def _plan(form: SimulatorForm) -> dict[str, str]:
    """The plan as a study file has it: keys of another mechanism, or of no noise, are absent there."""
    values = {key: _text(form, name) for name, key in PLAN.items()}
    values |= dict.fromkeys(_not_of(form.cleaned_data["mechanism"]), "")
    days = values[PLAN["presence_days"]] or str(form.setting.days)
    return values | {PLAN["presence_days"]: days if values[PLAN["presence_epsilon"]] else ""}


def _not_of(mechanism: str | None) -> list[str]:
    """Keys of the plan that only other mechanisms have."""
    of_some = {OF_FIRST: ("epsilon_first", "hash_cells"), (STREAM,): ("window_days",)}
    return [PLAN[name] for some, names in of_some.items() if mechanism not in some for name in names]


def unlike_the_draft(form: SimulatorForm) -> bool:
    """Return whether numbers were changed that a draft cannot take: categories have names, zones shapes."""
    names = [each.name for each in form.category_fields()]
    return any(_is_changed(form, name) for name in (*names, "slots_levels", "slots_zones"))


def use(typed: Typed, query: QueryDict) -> None:
    """Put the values of a simulation into the form of a draft; nothing is saved."""
    known = {*PLAN.values(), *SLOTS.values()}
    has_slots = any(name.startswith("slots.") for name in typed.values)
    typed.values |= {
        name: str(value)
        for name, value in query.items()
        if isinstance(value, str) and name in known and (has_slots or name not in SLOTS.values())
    }
    mechanism = typed.values.get(PLAN["mechanism"])
    typed.values |= dict.fromkeys(_not_of(mechanism), "")
    cap, parts = query.get(CAP), query.get(PARTS, "").split()
    if mechanism == STREAM:
        cap = ""  # it follows from the window
    if cap is not None:
        use_cap(typed, cap)
    use_classes(typed, query)
    if parts:
        row = typed.add(JOINT)
        typed.values |= {f"{row}.parts": "\n".join(parts), f"{row}.slug": "_and_".join(parts)[:64]}


def use_cap(typed: Typed, cap: str) -> None:
    """Put the maximum answers per person into all daily indicators of a form."""
    rows = [row for row in typed.rows if typed.kind_of(row) != ORIGIN]
    derived = {typed.values.get(f"{row}.slug") for row in rows if typed.values.get(f"{row}.derive")}
    daily = [row for row in typed.rows if _is_daily(typed, row, derived)]
    typed.values |= {f"{row}.max_values": cap for row in daily}


def use_classes(typed: Typed, query: QueryDict) -> None:
    """Put the epsilons of classes into a form; a class that it does not have is added."""
    rows = {typed.values.get(f"{row}.slug"): row for row in typed.classes}
    for slug, epsilon in read_classes_text(query.get(CLASSES, "")):
        row = rows.get(slug) or typed.add(CLASS)
        typed.values |= {f"{row}.slug": slug, f"{row}.epsilon": epsilon}


def _is_daily(typed: Typed, row: str, derived: Collection[str | None]) -> bool:
    slug, parts = typed.values.get(f"{row}.slug"), lines(typed.values.get(f"{row}.parts", ""))
    return slug in derived or any(part in derived for part in parts)


def _is_changed(form: SimulatorForm, name: str) -> bool:
    """Return whether a field has another value than the draft gave it."""
    at_first, now = form.source.initial.get(name), form.cleaned_data.get(name)
    if at_first in (None, "") or now in (None, ""):
        return (at_first in (None, "")) != (now in (None, ""))
    if isinstance(now, Decimal | int):
        return Decimal(str(at_first)) != now
    return str(at_first) != str(now)


def _text(form: SimulatorForm, name: str) -> str:
    value = form.cleaned_data.get(name)
    if value is None:
        return ""
    return f"{value.normalize():f}" if isinstance(value, Decimal) else str(value)


def _query(values: dict[str, str]) -> str:
    query = QueryDict(mutable=True)
    query.update({USED: "1", **values})
    return query.urlencode()
