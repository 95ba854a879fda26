"""The form of a draft: its fields, what they are called, and what is wrong with each."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.utils.translation import gettext

from mobility.extracts.form_fields import Field
from mobility.plans.pages.draft_typed import DAILY, Typed
from reports.studies.studyfile import NIGHT_ZONE, Problem
from reports.studies.studyfile.definition import DERIVED
from reports.studies.studyfile.sections import MECHANISMS, UNITS


@dataclass(frozen=True, slots=True, kw_only=True)
class IndicatorRow:
    """The fields of one indicator."""

    key: str
    title: str
    is_daily: bool
    fields: Sequence[Field]
    categories: Field | None
    errors: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftForm:
    """All fields, with what is wrong with each; `errors` belong to none of them."""

    study: Sequence[Field]
    plan: Sequence[Field]
    rows: Sequence[IndicatorRow]
    errors: Sequence[str]
    n_problems: int


def draft_form(typed: Typed, *, problems: Iterable[Problem] = (), slug_is_fixed: bool) -> DraftForm:
    """Return the form with the problems next to their fields."""
    found = list(problems)
    errors = _Errors(found)
    study = [_with_errors(each, errors) for each in _study_fields(typed, slug_is_fixed=slug_is_fixed)]
    plan = [_with_errors(each, errors) for each in _plan_fields(typed)]
    rows = [
        _row(typed, row, errors=errors, key=key)
        for row, key in zip(typed.rows, _keys_of_rows(typed), strict=True)
    ]
    return DraftForm(study=study, plan=plan, rows=rows, errors=errors.left(), n_problems=len(found))


class _Errors:
    """Problems by key; what no field has asked for is left in the end."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self._left = list(problems)

    def of(self, key: str) -> list[str]:
        """Take the problems of a key, of its entries and of everything below it."""
        own = [each for each in self._left if each.key == key or each.key.startswith((f"{key}[", f"{key}."))]
        self._left = [each for each in self._left if each not in own]
        return [_words(each, below=key) for each in own]

    def left(self) -> list[str]:
        return [f"{each.key}: {_words(each, below=each.key)}" for each in self._left]


def _words(problem: Problem, *, below: str) -> str:
    """A problem of the study file, which is in English in every language."""
    place = problem.key.removeprefix(below).strip("[].")
    if place.isdecimal():
        place = f"category {place}"
    found = "" if problem.value is None else f", got {problem.value}"
    return (f"{place}: " if place else "") + problem.rule + found


def _with_errors(each: Field, errors: _Errors) -> Field:
    """The field with the problems of its key."""
    return replace(each, errors=errors.of(each.name))


def _keys_of_rows(typed: Typed) -> list[str]:
    """Return the parser's name of each indicator: its slug, or its place while it has no slug."""
    keys: list[str] = []
    seen: set[str] = set()
    for place, row in enumerate(typed.rows, start=1):
        slug = typed.values.get(f"{row}.slug", "").strip()
        keys.append(f"indicator[{slug if slug and slug not in seen else place}]")
        seen.add(slug)
    return keys


def _row(typed: Typed, row: str, *, errors: _Errors, key: str) -> IndicatorRow:
    is_daily = typed.values.get(f"{row}.kind") == DAILY
    fields = []
    for each in _daily_fields(typed, row) if is_daily else _static_fields(typed, row):
        name = each.name.rpartition(".")[2]
        fields.append(replace(each, errors=errors.of(f"{key}.{name}")))
    title = typed.values.get(f"{row}.name", "").strip() or gettext("New indicator")
    return IndicatorRow(
        key=row,
        title=title,
        is_daily=is_daily,
        fields=[each for each in fields if each.kind != "textarea"],
        categories=next((each for each in fields if each.kind == "textarea"), None),
        errors=errors.of(key),
    )


def _field(typed: Typed, name: str, label: str, *, kind: str = "text", hint: str = "", **more: Any) -> Field:
    value = typed.values.get(name, "")
    return Field(name=name, label=label, value=value, kind=kind, help=hint, **more)


def _study_fields(typed: Typed, *, slug_is_fixed: bool) -> list[Field]:
    fields = [*_name_fields(typed), *_rule_fields(typed)]
    return [each for each in fields if not (slug_is_fixed and each.name == "study.slug")]


def _name_fields(typed: Typed) -> list[Field]:
    return [
        _field(typed, "study.name", gettext("Name")),
        _field(
            typed,
            "study.slug",
            gettext("Short name"),
            hint=gettext("Used in web addresses and file names. Lower-case letters, digits, - and _."),
        ),
        _field(typed, "study.first_day", gettext("First day"), kind="date"),
        _field(typed, "study.days", gettext("Days"), hint=gettext("From 1 to 62.")),
        _field(
            typed,
            "study.market_share",
            gettext("Market share"),
            hint=gettext("Above 0, up to 1. Visitor numbers are divided by this share."),
        ),
    ]


def _rule_fields(typed: Typed) -> list[Field]:
    return [
        _field(
            typed,
            "study.small_cell",
            gettext("Suppress windows with fewer visitors than"),
            hint=gettext(
                "0 = never suppress. Lowering this weakens protection, so it may need approval "
                "by a second person."
            ),
        ),
        _field(
            typed,
            "study.min_publication",
            gettext("Minimum subscribers per publication"),
            hint=gettext("Lowering this weakens protection, so it may need approval by a second person."),
        ),
        _field(
            typed,
            "study.population",
            gettext("Population"),
            hint=gettext(
                "Name of the group of people studied. Studies of the same population share a privacy budget."
            ),
        ),
        _field(
            typed,
            "study.key_until",
            gettext("Destroy key by (optional)"),
            kind="date",
            hint=gettext("The study must be closed by this day."),
        ),
    ]


def _plan_fields(typed: Typed) -> list[Field]:
    return [*_choice_fields(typed), *_epsilon_fields(typed)]


def _choice_fields(typed: Typed) -> list[Field]:
    return [
        _field(
            typed,
            "plan.mechanism",
            gettext("Mechanism"),
            kind="select",
            options=[(each, _mechanism_choice(each)) for each in MECHANISMS],
        ),
        _field(
            typed,
            "plan.unit",
            gettext("Privacy unit"),
            kind="select",
            options=[(each, _unit_words(each)) for each in UNITS],
        ),
    ]


def _epsilon_fields(typed: Typed) -> list[Field]:
    return [
        _field(
            typed,
            "plan.epsilon",
            gettext("Epsilon"),
            hint=gettext(
                "Above 0, up to 20. Smaller values protect better; larger values give more accurate results."
            ),
        ),
        _field(
            typed,
            "plan.epsilon_profile",
            gettext("Maximum epsilon per profile (epsilon_profile, optional)"),
            hint=gettext("Plans with a higher certified epsilon per profile are refused."),
        ),
        _field(
            typed,
            "plan.presence_epsilon",
            gettext("Presence epsilon (optional)"),
            hint=gettext(
                "Adds noise to visitor counts. If empty, visitor counts are exact and presence is "
                "not protected."
            ),
        ),
        _field(
            typed,
            "plan.presence_days",
            gettext("Maximum days counted per subscriber (with presence epsilon)"),
            hint=gettext(
                "Only the first days on which a subscriber is present are counted, up to this number."
            ),
        ),
    ]


def _own_fields(typed: Typed, row: str) -> list[Field]:
    return [
        _field(
            typed,
            f"{row}.epsilon",
            gettext("Separate epsilon (optional)"),
            hint=gettext("Leave empty to use the plan's epsilon."),
        ),
        _field(
            typed,
            f"{row}.weight",
            gettext("Weight (optional)"),
            hint=gettext("Relative frequency with which people report on this indicator. Leave empty for 1."),
        ),
    ]


def _named_fields(typed: Typed, row: str) -> list[Field]:
    return [
        _field(typed, f"{row}.name", gettext("Name")),
        _field(typed, f"{row}.slug", gettext("Short name")),
    ]


def _static_fields(typed: Typed, row: str) -> list[Field]:
    return [
        *_named_fields(typed, row),
        _field(typed, f"{row}.column", gettext("Column in the extract")),
        *_own_fields(typed, row),
        _field(
            typed,
            f"{row}.categories",
            gettext("Categories, one per line"),
            kind="textarea",
            hint=gettext(
                "Cannot be changed once the study has rows. A row with any other value is rejected."
            ),
        ),
    ]


def _daily_fields(typed: Typed, row: str) -> list[Field]:
    night = gettext("Only for the night zone. Default:")
    return [
        *_named_fields(typed, row),
        _field(
            typed,
            f"{row}.derive",
            gettext("Value derived from a day's events"),
            kind="select",
            options=[(each, derived_words(each)) for each in DERIVED],
        ),
        _field(
            typed,
            f"{row}.max_values",
            gettext("Maximum answers per person (optional)"),
            hint=gettext(
                "Maximum number of days on which each person answers. Leave empty for all days of the study."
            ),
        ),
        *_own_fields(typed, row),
        _field(typed, f"{row}.night_from", gettext("Night starts at (optional)"), hint=f"{night} 22:00"),
        _field(typed, f"{row}.night_to", gettext("Night ends at (optional)"), hint=f"{night} 06:00"),
    ]


def derived_words(derive: str) -> str:
    words = {
        "visit_duration": gettext("duration of the visit"),
        "main_zone": gettext("zone where most time was spent"),
        NIGHT_ZONE: gettext("night zone"),
    }
    return words.get(derive, derive)


def _unit_words(unit: str) -> str:
    if unit == "profile":
        return gettext("all of a person's values (profile)")
    return gettext("one of a person's values (attribute)")


def _mechanism_choice(mechanism: str) -> str:
    return gettext("%(name)s: %(figure)s") % {"name": mechanism, "figure": _mechanism_words(mechanism)}


def _mechanism_words(mechanism: str) -> str:
    words = {
        "smp-grr": gettext("each person reports on one indicator"),
        "smp-oue": gettext("one indicator per person, with a yes/no mark for each category"),
        "smp-adp": gettext("one indicator per person, using the more accurate method"),
        "spl-grr": gettext("each person reports on all indicators, which share epsilon"),
        "rsfd-grr": gettext("an answer for one indicator, and made-up answers for the others"),
        "rsfd-ouez": gettext("yes/no marks for one indicator, and made-up marks for the others"),
        "rsfd-adp": gettext(
            "an answer for one indicator, and made-up answers for the others, using the more accurate method"
        ),
    }
    return words.get(mechanism, mechanism)
