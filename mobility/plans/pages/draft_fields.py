"""The form of a draft: its fields, what they are called, and what is wrong with each."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from django.utils.functional import Promise
from django.utils.text import format_lazy
from django.utils.translation import gettext, gettext_lazy

from ldp import certify, certify_classes
from ldp.privacy.first_reports import HASH_CELLS
from mobility.extracts.form_fields import Field
from mobility.plans.pages.draft_typed import CLASS, INDICATOR, Typed
from mobility.plans.pages.mechanism_field import MechanismField
from reports.base import formats
from reports.simulator.model import Recommendation
from reports.simulator.texts import cells_words
from reports.studies.studyfile import (
    EVENTS,
    HOME_DISTANCE,
    MOVES,
    NIGHT_ZONE,
    VISITED_PAIRS,
    VISITED_ZONES,
    Problem,
    StudyDefinition,
)
from reports.studies.studyfile.definition import DERIVED, IN_GROUPS, SENSITIVE
from reports.studies.studyfile.hours import BUSIEST_HOUR, FIRST_HOUR, LAST_HOUR
from reports.studies.studyfile.numbers import DERIVED_NUMBERS, NUMBER
from reports.studies.studyfile.origins import VISITOR_CATEGORY
from reports.studies.studyfile.sections import SLOT_NOISES, UNITS
from reports.studies.texts import tallies_words

MECHANISM: Final = "plan.mechanism"
CLASS_COLUMN: Final = "plan.class_column"
NIGHT: Final = gettext_lazy(
    "This time is used only for the night zone and for the distance from home. Default:"
)
FRENCH: Final = gettext_lazy(
    "This name is shown on French pages. If you leave the field empty, French pages show the name from "
    "the field “Name” instead."
)
# By the key in the study file, in the order of the page.
LABELS: Final[dict[str, Promise]] = {
    "study.name": gettext_lazy("Name"),
    "study.name_fr": gettext_lazy("French name (optional)"),
    "study.slug": gettext_lazy("Short name"),
    "study.first_day": gettext_lazy("First day"),
    "study.days": gettext_lazy("Number of days"),
    "study.market_share": gettext_lazy("Market share"),
    "study.small_cell": gettext_lazy("Minimum number of visitors for a date range to be shown"),
    "study.small_category": gettext_lazy("Minimum number of visitors for a category to be shown"),
    "study.min_publication": gettext_lazy("Minimum subscribers per publication"),
    "study.population": gettext_lazy("Population"),
    "study.key_until": gettext_lazy("Date by which the key must be destroyed (optional)"),
    "plan.mechanism": gettext_lazy("Mechanism"),
    "plan.unit": gettext_lazy("Privacy unit"),
    "plan.epsilon": gettext_lazy("Epsilon"),
    "plan.epsilon_profile": gettext_lazy("Maximum epsilon per profile (epsilon_profile, optional)"),
    "plan.epsilon_first": gettext_lazy("Epsilon of one report (smp-loloha and smp-allomfree, optional)"),
    "plan.hash_cells": gettext_lazy("Number of sets of categories (smp-loloha and smp-allomfree, optional)"),
    "plan.window_days": gettext_lazy("Window length in days (smp-stream, optional)"),
    "plan.presence_epsilon": gettext_lazy("Presence epsilon (optional)"),
    "plan.presence_days": gettext_lazy("Maximum days counted per subscriber (with presence epsilon)"),
    "plan.tallies": gettext_lazy("Additional exact counts"),
    "plan.discloses_values": gettext_lazy("Disclose values that are not sensitive"),
    "plan.class_column": gettext_lazy("Column with the class of the subscriber"),
    "class.name": gettext_lazy("Name"),
    "class.epsilon": gettext_lazy("Epsilon of the class"),
    "class.value": gettext_lazy("Value in the column (optional)"),
    "class.slug": gettext_lazy("Short name"),
    "class.name_fr": gettext_lazy("French name (optional)"),
    "slots.minutes": gettext_lazy("Minutes per time slot"),
    "slots.hold_minutes": gettext_lazy(
        "Minutes to keep counting a person in the zone where they were last seen"
    ),
    "slots.slots_per_day": gettext_lazy("Maximum number of time slots counted per person per day"),
    "slots.noise": gettext_lazy("Noise added to the counts for time slots"),
    "slots.epsilon_day": gettext_lazy("Epsilon per person per day"),
    "slots.delta": gettext_lazy("Delta (probability that the guarantee fails)"),
    "slots.close_after_minutes": gettext_lazy(
        "Minutes between the end of a time slot and its publication (optional)"
    ),
    "indicator.name": gettext_lazy("Name"),
    "indicator.name_fr": gettext_lazy("French name (optional)"),
    "indicator.slug": gettext_lazy("Short name"),
    "indicator.column": gettext_lazy("Column in the extract"),
    "indicator.operator_column": gettext_lazy("Column with the country of the operator"),
    "indicator.home": gettext_lazy("First characters of home codes in the area, one entry per line"),
    "indicator.countries": gettext_lazy("Countries that count as domestic (ISO codes), one per line"),
    "indicator.parts": gettext_lazy("Parts: short names of the indicators to combine, one per line"),
    "indicator.unit": gettext_lazy("Unit of measurement"),
    "indicator.minimum": gettext_lazy("Minimum (optional)"),
    "indicator.cuts": gettext_lazy("Thresholds (“cuts” in the study file), one per line"),
    "indicator.report": gettext_lazy("Type of report"),
    "indicator.derive": gettext_lazy("Value computed from a day's events"),
    "indicator.max_values": gettext_lazy("Maximum answers per person (optional)"),
    "indicator.max_moves": gettext_lazy("Number of moves per day counted at full weight (optional)"),
    "indicator.max_visits": gettext_lazy("Number of visits per day counted at full weight (optional)"),
    "indicator.epsilon": gettext_lazy("Separate epsilon for this indicator (optional)"),
    "indicator.weight": gettext_lazy("Weight (optional)"),
    "indicator.night_from": gettext_lazy("Night starts at (optional)"),
    "indicator.night_to": gettext_lazy("Night ends at (optional)"),
    "indicator.categories": gettext_lazy("Categories, one per line"),
    "indicator.categories_fr": gettext_lazy("Category names in French, one per line (optional)"),
    "indicator.groups": gettext_lazy("Groups of categories (optional)"),
    "indicator.protect": gettext_lazy("Protection of categories in groups"),
    "indicator.sensitive": gettext_lazy("Sensitive categories, one per line (optional)"),
}
HINTS: Final[dict[str, Promise | str]] = {
    "study.name_fr": FRENCH,
    "study.slug": gettext_lazy(
        "The short name is used in web addresses and file names. Use lower-case letters, digits, "
        "hyphens (-) and underscores (_)."
    ),
    "study.days": gettext_lazy("A whole number from 1 to 62."),
    "study.market_share": gettext_lazy(
        "Enter a number above 0 and up to 1. Visitor numbers are divided by this share."
    ),
    "study.small_cell": gettext_lazy(
        "Enter 0 to show all date ranges. Lowering this number weakens protection, so a second person "
        "may have to approve the change."
    ),
    "study.small_category": gettext_lazy(
        "Enter 0 to show all categories. This minimum is a display policy, not a privacy guarantee. "
        "Lowering it weakens protection, so a second person may have to approve the change."
    ),
    "study.min_publication": gettext_lazy(
        "Lowering this number weakens protection, so a second person may have to approve the change."
    ),
    "study.population": gettext_lazy(
        "Name of the group of people studied. Studies of the same population share a privacy budget."
    ),
    "study.key_until": gettext_lazy("The study must be closed by this date."),
    "plan.epsilon": gettext_lazy(
        "Enter a number above 0 and up to 20. Smaller values give better protection; larger values give "
        "more accurate results."
    ),
    "plan.epsilon_profile": gettext_lazy(
        "Plans whose certified epsilon per profile is above this number are refused."
    ),
    "plan.epsilon_first": gettext_lazy(
        "Enter a number lower than epsilon. This number limits what one report reveals. Epsilon "
        "limits what all reports with the same value reveal together. If you leave this field empty, "
        "half of epsilon is used."
    ),
    "plan.discloses_values": gettext_lazy(
        "Needed for indicators that protect only sensitive categories: their answers disclose all other "
        "categories of a person, without noise."
    ),
    "plan.window_days": gettext_lazy(
        "Each person answers daily indicators at most once in this many consecutive days. Any such days "
        "together reveal at most epsilon. If you leave this field empty, a window has 7 days, or all days of "
        "a shorter study."
    ),
    "plan.presence_epsilon": gettext_lazy(
        "This epsilon sets the noise that is added to visitor counts. If you leave this field empty, "
        "visitor counts are exact and presence is not protected."
    ),
    "plan.presence_days": gettext_lazy(
        "For example, 3 means that only a subscriber's first 3 days of presence are counted."
    ),
    "plan.tallies": gettext_lazy(
        "These presence figures are published without noise, in addition to visitor counts. You "
        "cannot add these figures if the study has a presence epsilon or already has data."
    ),
    "plan.class_column": gettext_lazy(
        "Each row of an uploaded file must have the value of a class in this column. Other rows are rejected."
    ),
    "class.value": gettext_lazy("If you leave this field empty, the short name is used."),
    "slots.minutes": "15, 30, 60, 120.",
    "slots.hold_minutes": gettext_lazy(
        "Enter a whole number from 0 to 1440. With 0, a person is counted only in the time slots in which "
        "they had an event."
    ),
    "slots.slots_per_day": gettext_lazy(
        "For example, 8 means that only a person's first 8 time slots of each day (local time) are "
        "counted. Fewer slots need less noise."
    ),
    "slots.epsilon_day": gettext_lazy(
        "This epsilon covers all of a person's time slots on one day (local time), at every zone level. "
        "Leave the field empty if no noise is used."
    ),
    "slots.delta": gettext_lazy(
        "Probability that the epsilon guarantee fails, such as 0.000001. Leave it empty if no noise is used."
    ),
    "slots.close_after_minutes": gettext_lazy(
        "Minutes are counted from the end of each time slot. If you leave this field empty, time slots "
        "are published only when you run manage.py close_slots."
    ),
    "indicator.name_fr": FRENCH,
    "indicator.parts": gettext_lazy(
        "Enter two or three indicators of this study. If you enter two, one of them may be a number. "
        "Reports then show the mean of this number in each category of the other indicator. A "
        "missing value counts as “no value” in the combination. If one of the indicators is daily, "
        "the combination is also daily. Each person reports on only one indicator, so a combination "
        "reduces the number of answers for all other indicators."
    ),
    "indicator.unit": gettext_lazy(
        "For example, EUR. Use min for the duration of the visit, km for the distance from home, and "
        "events for the number of events."
    ),
    "indicator.minimum": gettext_lazy(
        "Values below the minimum are treated as equal to the minimum. If "
        "you leave this field empty, the minimum is 0."
    ),
    "indicator.cuts": gettext_lazy(
        "Enter 2 to 127 thresholds as whole numbers in ascending order. Each person is asked about "
        "one threshold. Values above the last threshold are treated as equal to it. With more "
        "thresholds, the mean is more accurate, but the share at each threshold is less accurate."
    ),
    "indicator.report": gettext_lazy(
        "Use the square wave only for numbers that each person reports once. This is the case if the "
        "number comes from a column, if the study lasts one day, or if each person gives at most one "
        "answer. The simulator shows which type of report is more accurate."
    ),
    "indicator.max_values": gettext_lazy(
        "Maximum number of days on which each person answers. Leave empty for all days of the study."
    ),
    "indicator.max_moves": gettext_lazy(
        "This number is used only for moves between zones. For each day, each person reports one of "
        "their moves, chosen at random. On days when a person makes more moves than this number, "
        "each of these moves has less weight. A larger number makes the results less accurate. If "
        "you leave this field empty, 6 is used."
    ),
    "indicator.max_visits": gettext_lazy(
        "This number applies only to visited zones and pairs of visited zones. Each day, each person "
        "reports one of their zones or pairs, chosen at random. If a person has more zones or pairs on a "
        "day than this number, each of them has less weight. A larger number makes the results less "
        "accurate. If you leave this field empty, the number is 6, or the number of zones or pairs in the "
        "area if that is smaller."
    ),
    "indicator.epsilon": gettext_lazy("Leave empty to use the plan's epsilon."),
    "indicator.weight": gettext_lazy(
        "The weight sets how often people report on this indicator, compared with the other "
        "indicators. Leave the field empty for a weight of 1."
    ),
    "indicator.night_from": format_lazy("{} 22:00", NIGHT),
    "indicator.night_to": format_lazy("{} 06:00", NIGHT),
    "indicator.categories": gettext_lazy(
        "Once the study contains rows, you cannot change the categories. Rows whose value is not one of "
        "the categories are rejected."
    ),
    "indicator.categories_fr": gettext_lazy(
        "These names are shown on French pages. Enter one name for each category or duration, in the "
        "same order. Zone names come from the zones file."
    ),
    "indicator.operator_column": gettext_lazy(
        "Each value must begin with a mobile country code, such as 208 for France. Network codes and "
        "IMSIs do."
    ),
    "indicator.groups": gettext_lazy(
        "Enter one category per line, with its group first, such as “North: Lille”. Reports can show "
        "totals for each group."
    ),
    "indicator.protect": gettext_lazy(
        "If answers give the group, the group of each subscriber is not protected. In return, the shares of "
        "categories are more accurate, because only people in the same group add noise to them. Each "
        "category must be in a group, and each group must have at least two categories."
    ),
}
# By the last part of the key: controls that are no line of text.
CONTROLS: Final = {
    "first_day": "date",
    "key_until": "date",
    "unit": "select",
    "noise": "select",
    "hash_cells": "select",
    "discloses_values": "select",
    "tallies": "select",
    "derive": "select",
    "report": "select",
    "protect": "select",
    "sensitive": "textarea",
    "parts": "textarea",
    "home": "textarea",
    "countries": "textarea",
    "cuts": "textarea",
    "categories": "textarea",
    "categories_fr": "textarea",
    "groups": "textarea",
}


def draft_form(
    typed: Typed,
    *,
    problems: Iterable[Problem] = (),
    slug_is_fixed: bool,
    recommendation: Recommendation,
    notes: Mapping[str, str],
) -> dict[str, Any]:
    """Return the form with the problems next to their fields; `errors` belong to none of them.

    `notes` are sentences on the epsilon of classes, by slug.
    """
    found = list(problems)
    errors = Errors(found)
    study, plan, slots = (
        [
            field_of(typed, key, name=key, errors=errors.of(key))
            for key in LABELS
            if key.startswith(section)
            and key not in (MECHANISM, CLASS_COLUMN)
            and not (slug_is_fixed and key == "study.slug")
        ]
        for section in ("study.", "plan.", "slots.")
    )
    rows = rows_of_form(typed, INDICATOR, errors=errors)
    classes = classes_of(typed, errors=errors, notes=notes)
    has_slots = any(name.startswith("slots.") for name in typed.values)
    return {
        "study": study,
        "mechanism": mechanism_field(typed, errors=errors.of(MECHANISM), recommendation=recommendation),
        "plan": plan,
        "slots": slots if has_slots else [],
        "rows": rows,
        "classes": classes,
        "errors": errors.left(),
        "n_problems": len(found),
    }


Labels = Mapping[str, Promise]
# A key of the study file, or the last part of one that no sentence has by chance; not what a value says.
_KEY: Final = re.compile(
    r"(?<![\w\".])(?:[a-z_]+(?:\[[^\]\s]*\])?\.)+[a-z_]+(?![\w.])|(?<![\w\".])[a-z]+(?:_[a-z]+)+(?![\w.])"
)


class Errors:
    """Problems by key; what no field has asked for is left in the end.

    Parameters
    ----------
    labels : what the form calls its fields, by key: at a field, no problem speaks of keys of the file
    """

    def __init__(self, problems: Sequence[Problem], *, labels: Labels = LABELS) -> None:
        self._left = list(problems)
        self._labels = labels

    def of(self, key: str) -> list[str]:
        """Take the problems of a key, of its entries and of everything below it."""
        own = [each for each in self._left if each.key == key or each.key.startswith((f"{key}[", f"{key}."))]
        self._left = [each for each in self._left if each not in own]
        return [each.marked(with_labels(_words(each, below=key), self._labels)) for each in own]

    def left(self) -> list[str]:
        return [each.marked(f"{each.key}: {_words(each, below=each.key)}") for each in self._left]


def _words(problem: Problem, *, below: str) -> str:
    """A problem of the study file; rules that only a text can break stay in English."""
    place = problem.key.removeprefix(below).strip("[].")
    if place.isdecimal():
        place = gettext("category %(number)s") % {"number": place}
    return (f"{place}: " if place else "") + problem.words


def with_labels(text: str, labels: Labels) -> str:
    """Replace the keys in a text by the labels of their fields, in quotation marks."""
    return _KEY.sub(lambda found: _quoted(found[0], labels), text)


def _quoted(key: str, labels: Labels) -> str:
    whole = re.sub(r"\[[^\]]*\]", "", key)  # indicator[age].column is a column of the extract
    known = [each for each in labels if each == whole or each.endswith(f".{whole}")]
    return f"“{labels[known[0]]}”" if len(known) == 1 else key


def rows_of_form(typed: Typed, array: str, *, errors: Errors) -> list[dict[str, Any]]:
    """The fields of each indicator or class."""
    keys = _keys_of_rows(typed, array)
    return [
        _row_of(typed, row, errors=errors, key=key)
        for row, key in zip(typed.rows_in(array), keys, strict=True)
    ]


def classes_of(typed: Typed, *, errors: Errors, notes: Mapping[str, str]) -> dict[str, Any]:
    """The fields of classes, and of their column where there are some; with what is certified for each."""
    rows = rows_of_form(typed, CLASS, errors=errors)
    for row in rows:
        note = notes.get(typed.values.get(f"{row['key']}.slug", "").strip(), "")
        row["fields"] = [
            replace(each, note=note) if each.name.endswith(".epsilon") else each for each in row["fields"]
        ]
    column = field_of(typed, CLASS_COLUMN, name=CLASS_COLUMN, errors=errors.of(CLASS_COLUMN))
    is_shown = rows or column.value or column.errors
    return {"column": column if is_shown else None, "rows": rows, "errors": errors.of(CLASS)}


def certified_words(definition: StudyDefinition) -> dict[str, str]:
    """Sentences with the certified epsilon of each class, by its slug; of the plan under ""."""
    spec = definition.plan_spec()
    certificates = zip(definition.classes, certify_classes(spec), strict=False)
    found = {each.slug: certificate for each, certificate in certificates} | {"": certify(spec)}
    return {
        slug: gettext("Certified epsilon: %(attribute)s per attribute, %(profile)s per profile")
        % {
            "attribute": formats.epsilon(certificate.epsilon_attribute),
            "profile": formats.epsilon(certificate.epsilon_profile),
        }
        for slug, certificate in found.items()
    }


def _keys_of_rows(typed: Typed, array: str) -> list[str]:
    """Return the parser's name of each indicator or class: its slug, or its place while it has no slug."""
    keys: list[str] = []
    seen: set[str] = set()
    for place, row in enumerate(typed.rows_in(array), start=1):
        slug = typed.values.get(f"{row}.slug", "").strip()
        keys.append(f"{array}[{slug if slug and slug not in seen else place}]")
        seen.add(slug)
    return keys


def _row_of(typed: Typed, row: str, *, errors: Errors, key: str) -> dict[str, Any]:
    """The fields of one indicator or class."""
    kind, array = typed.kind_of(row), key.partition("[")[0]
    new = gettext("New class") if array == CLASS else gettext("New indicator")
    fields = [
        field_of(typed, label, name=f"{row}.{part}", errors=errors.of(f"{key}.{part}"), kind=kind)
        for label in LABELS
        if label.startswith(f"{array}.") and (part := label.removeprefix(f"{array}.")) in typed.keys_of(row)
    ]
    return {
        "key": row,
        "title": typed.values.get(f"{row}.name", "").strip() or new,
        "kind": kind,
        "fields": [each for each in fields if each.kind != "textarea"],
        "lists": [each for each in fields if each.kind == "textarea"],
        "errors": errors.of(key),
    }


def field_of(typed: Typed, key: str, *, name: str, errors: Sequence[str], kind: str = "") -> Field:
    part = key.partition(".")[2]
    return Field(
        name=name,
        label=str(LABELS[key]),
        value=typed.values.get(name, ""),
        kind="text" if key == "indicator.unit" else CONTROLS.get(part, "text"),
        options=_derived_numbers() if (part, kind) == ("derive", NUMBER) else _options(part),
        help=str(HINTS.get(key, "")),
        errors=errors,
    )


def mechanism_field(typed: Typed, *, errors: Sequence[str], recommendation: Recommendation) -> MechanismField:
    return MechanismField(
        name=MECHANISM,
        label=str(LABELS[MECHANISM]),
        value=typed.values.get(MECHANISM, ""),
        errors=errors,
        recommendation=recommendation,
    )


def _options(part: str) -> list[tuple[str, str]]:
    """Return the choices of a key of the study file."""
    if part == "unit":
        return [(each, _unit_words(each)) for each in UNITS]
    if part == "noise":
        return [(each, _noise_words(each)) for each in SLOT_NOISES]
    if part == "hash_cells":
        return [("", gettext("two, by default")), *((each, cells_words(each)) for each in HASH_CELLS)]
    if part == "discloses_values":
        return [
            ("", gettext("no")),
            ("true", gettext("yes, if a second person approves the plan")),
        ]
    if part == "report":
        return [
            ("", gettext("Threshold: whether the person's value is at or above one threshold")),
            ("wave", gettext("Square wave: a random value, usually close to the person's own")),
        ]
    if part == "protect":
        return [
            ("", gettext("The category among all categories")),
            (SENSITIVE, gettext("Only sensitive categories: answers disclose all others")),
            (IN_GROUPS, gettext("Only the category within its group: answers give the group without noise")),
        ]
    if part == "tallies":
        return [(names, tallies_words(names.split())) for names in ("", "visits", "runs", "visits runs")]
    return [(each, derived_words(each)) for each in DERIVED] if part == "derive" else []


def _derived_numbers() -> list[tuple[str, str]]:
    derived = [(each, derived_words(each)) for each in DERIVED_NUMBERS]
    return [("", gettext("none: the number is read from a column")), *derived]


def derived_words(derive: str) -> str:
    words = {
        "visit_duration": gettext("duration of the visit"),
        "main_zone": gettext("zone in which the person spent the most time"),
        MOVES: gettext("moves between zones"),
        VISITED_ZONES: gettext("zones visited in a day"),
        VISITED_PAIRS: gettext("pairs of zones visited on the same day"),
        EVENTS: gettext("number of quarter-hours with an event"),
        HOME_DISTANCE: gettext("greatest distance from where the person sleeps"),
        NIGHT_ZONE: gettext("night zone"),
        FIRST_HOUR: gettext("hour of the first event"),
        LAST_HOUR: gettext("hour of the last event"),
        BUSIEST_HOUR: gettext("busiest hour"),
        VISITOR_CATEGORY: gettext("visitor category"),
    }
    return words.get(derive, derive)


def _unit_words(unit: str) -> str:
    if unit == "profile":
        return gettext("all of a person's values (profile)")
    return gettext("one of a person's values (attribute)")


def _noise_words(noise: str) -> str:
    if noise == "none":
        return gettext("none: presence by time slot is not protected")
    return gettext("discrete Gaussian (gaussian)")
