"""The steps of the form: which field is in which, and what is wrong with each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, Final

from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy, gettext_noop, ngettext

from mobility.extracts.form_fields import Field
from mobility.extracts.profiles.sample import Sample
from mobility.plans.new_study.samples import columns_for, offers, values_of
from mobility.plans.pages.draft_fields import (
    CLASS_COLUMN,
    MECHANISM,
    Errors,
    classes_of,
    field_of,
    mechanism_field,
    rows_of_form,
    with_labels,
)
from mobility.plans.pages.draft_fields import LABELS as DRAFT_LABELS
from mobility.plans.pages.draft_typed import CLASS, INDICATOR, STATIC, Typed, lines
from reports.base.reasons import Reason, words_of
from reports.simulator.model import Recommendation
from reports.studies.studyfile import Problem
from reports.studies.studyfile.lookups import NOT_GIVEN
from reports.studies.studyfile.sections import known_timezones

LABELS: Final[dict[str, Promise]] = {
    "study.timezone": gettext_lazy("Time zone"),
    "study.expected_subscribers": gettext_lazy("Expected number of subscribers (optional)"),
    "study.visitor.min_minutes": gettext_lazy("Minimum time between first and last event (minutes)"),
    "study.visitor.from": gettext_lazy("Count events from"),
    "study.visitor.to": gettext_lazy("Count events until"),
    "extract.subscriber": gettext_lazy("Subscriber column"),
    "extract.timestamp": gettext_lazy("Event time column"),
    "extract.timestamp_format": gettext_lazy("Time format (optional)"),
    "extract.cell": gettext_lazy("Cell column"),
    "area.cells": gettext_lazy("Name of the cell file"),
    "area.zones": gettext_lazy("Name of the zone file (optional)"),
    "area.zone_column": gettext_lazy("Attribute with the zone code (optional)"),
    "area.layers": gettext_lazy("Names of the map layer files, one per line (optional)"),
    "area.water": gettext_lazy("Name of the water file (optional)"),
    "area.land": gettext_lazy("Name of the land file (optional)"),
}
_ALL_LABELS: Final = DRAFT_LABELS | LABELS
HINTS: Final[dict[str, Promise]] = {
    "study.expected_subscribers": gettext_lazy(
        "The number of people across all files. It determines how the data is split among the "
        "workers and cannot be changed later."
    ),
    "study.visitor.min_minutes": gettext_lazy(
        "Enter 0 to count, for each day, everyone who has an event in the area on that day."
    ),
    "study.visitor.to": gettext_lazy("Events during the minute that you enter are also counted."),
    "extract.timestamp_format": gettext_lazy(
        "Leave empty for ISO 8601. Otherwise enter epoch_s, epoch_ms, or a pattern such as %d/%m/%Y %H:%M:%S."
    ),
    "extract.cell": gettext_lazy("Needed only if the study has cells. Without cells, every event counts."),
    "area.zone_column": gettext_lazy("If you leave this field empty, “zone” is used."),
}
# Fields of each step; those after the bar are folded away.
STEPS: Final[dict[str, tuple[Promise, tuple[str, ...], tuple[str, ...]]]] = {
    "about": (
        gettext_lazy("Name and days"),
        ("study.name", "study.slug", "study.timezone", "study.first_day", "study.days"),
        (
            "study.name_fr", "study.expected_subscribers", "study.market_share", "study.small_cell",
            "study.small_category", "study.min_publication", "study.population", "study.key_until",
        ),
    ),
    "visitors": (
        gettext_lazy("Visitor rule"),
        ("study.visitor.min_minutes", "study.visitor.from", "study.visitor.to"),
        (),
    ),
    "columns": (
        gettext_lazy("Columns"),
        ("extract.subscriber", "extract.timestamp", "extract.cell", "extract.timestamp_format"),
        (),
    ),
    "area": (
        gettext_lazy("Cells and zones (optional)"),
        ("area.cells", "area.zones", "area.zone_column"),
        ("area.layers", "area.water", "area.land"),
    ),
    "indicators": (gettext_lazy("Indicators"), (), ()),
    "plan": (
        gettext_lazy("Plan"),
        ("plan.mechanism", "plan.unit", "plan.epsilon"),
        (
            "plan.epsilon_profile", "plan.epsilon_first", "plan.hash_cells", "plan.window_days",
            "plan.presence_epsilon", "plan.presence_days", "plan.tallies", "plan.discloses_values",
            "slots.epsilon_day", "slots.slots_per_day",
        ),
    ),
    "classes": (gettext_lazy("Classes of subscribers (optional)"), (), ()),
}  # fmt: skip
_KINDS: Final = {"first_day": "date", "key_until": "date", "layers": "textarea"}
_FOLDED: Final = frozenset(  # of indicators: what most leave empty
    {
        "name_fr",
        "epsilon",
        "weight",
        "max_values",
        "max_moves",
        "max_visits",
        "night_from",
        "night_to",
        "categories_fr",
    }
    | {"groups", "protect", "sensitive", "minimum"}
)
_CLOCKS: Final = ("study.visitor.from", "study.visitor.to")
MISSING: Final = "is missing"
_SECTIONS: Final = {
    "indicator": "indicators",
    "study.visitor": "visitors",
    "extract": "columns",
    "plan": "plan",
}


@dataclass(slots=True, kw_only=True)
class Step:
    """One step: `todo` says what is still missing."""

    key: str
    title: str
    fields: list[Field]
    more: list[Field]
    todo: str = ""
    errors: list[str] = field(default_factory=list)

    @property
    def has_errors_in_more(self) -> bool:
        """Return whether the folded fields must be shown."""
        return any(each.errors for each in self.more)


def new_study_form(
    typed: Typed,
    *,
    problems: Sequence[Problem],
    sample: Sample | None,
    warnings: Mapping[str, str],
    recommendation: Recommendation,
    notes: Mapping[str, str],
    is_final: bool,
) -> dict[str, Any]:
    """Lay out the form; what is missing is an error only at the last check (`is_final`).

    `warnings` are sentences at fields, which refuse nothing; `notes` are on the epsilon of classes, by slug.
    """
    problems = [_of_form(each) for each in problems]
    missing = [each for each in problems if _is_missing(each)]
    errors = Errors([each for each in problems if is_final or not _is_missing(each)], labels=_ALL_LABELS)
    rows = [_row(each, sample) for each in rows_of_form(typed, INDICATOR, errors=errors)]
    classes = _classes(classes_of(typed, errors=errors, notes=notes), sample)

    def field_named(name: str) -> Field:
        if name == MECHANISM:
            return mechanism_field(typed, errors=errors.of(name), recommendation=recommendation)
        made = _field(typed, name, errors, sample)
        return replace(made, errors=[*made.errors, warnings[name]]) if name in warnings else made

    steps = {
        key: Step(
            key=key,
            title=str(title),
            fields=[field_named(name) for name in names],
            more=[field_named(name) for name in more],
            todo=_todo([each for each in missing if _is_in(each, key)]),
        )
        for key, (title, names, more) in STEPS.items()
    }
    used = {"area": any(each.value for each in steps["area"].fields), "classes": bool(typed.classes)}
    for key, is_used in used.items():
        if not is_used and steps[key].todo == gettext("complete"):
            steps[key].todo = gettext("nothing chosen")
    if typed.values.get("area.cells") and steps["area"].todo == gettext("complete"):
        steps["area"].todo = gettext("files not checked yet")
    steps["indicators"].errors = errors.of("indicator")
    steps["classes"].errors = classes["errors"]
    steps["plan"].errors = errors.of("plan")
    return {
        "steps": steps.values(),
        "rows": rows,
        "classes": classes,
        "sample": sample,
        "offers": [] if sample is None else offers(sample, typed),
        "errors": errors.left(),
    }


def listed_words(problem: Problem) -> str:
    """A problem in the list of all: by the label of its field, if it has one, and its place in the file."""
    problem = _of_form(problem)
    if (step := _SECTIONS.get(problem.key)) is not None:
        return problem.marked(f"“{STEPS[step][0]}”: {problem.words} ({problem.file}: {problem.key})")
    label = with_labels(problem.key, _ALL_LABELS)
    if label == problem.key:
        return problem.marked(f"{problem.file}: {problem.key}: {problem.words}")
    rule = with_labels(words_of(problem.rule), _ALL_LABELS)
    return problem.marked(f"{label}: {rule}{problem.found_words} ({problem.file}: {problem.key})")


def _of_form(problem: Problem) -> Problem:
    """The problem of a file that was not sent, in words for a form, which loses chosen files."""
    if problem.rule != NOT_GIVEN or problem.value is None:
        return problem
    again = gettext_noop("Choose %(file)s again. Chosen files are lost when you leave this page.")
    return replace(problem, rule=Reason(again, file=problem.value.strip('"')), value=None)


def _row(row: dict[str, Any], sample: Sample | None) -> dict[str, Any]:
    """The fields of an indicator, and the values of its column in the sample, to be ticked."""
    fields = {each.name.partition(".")[2]: each for each in (*row["fields"], *row["lists"])}
    shown = [_safe(_with_columns(each, sample)) for each in (*row["fields"], *row["lists"])]
    row["more"] = [each for each in shown if each.name.rpartition(".")[2] in _FOLDED]
    row["has_errors_in_more"] = any(each.errors for each in row["more"])
    row["fields"] = [each for each in shown if each not in row["more"]]
    column = fields["column"].value if row["kind"] == STATIC and "column" in fields else ""
    if sample is not None and column and column in sample.names:
        seen, row["not_listed"] = values_of(sample, column)
        picked = set(lines(fields["categories"].value))
        row["seen"] = [{"text": text, "rows": n, "is_picked": text in picked} for text, n in seen]
        row["rows_read"] = len(sample.rows)
        row["categories_id"] = fields["categories"].id
    return row


def _classes(classes: dict[str, Any], sample: Sample | None) -> dict[str, Any]:
    if classes["column"] is not None:
        classes["column"] = _safe(_with_columns(classes["column"], sample))
    for row in classes["rows"]:
        row["fields"] = [_safe(each) for each in row["fields"]]
    return classes


def _field(typed: Typed, name: str, errors: Errors, sample: Sample | None) -> Field:
    if name in DRAFT_LABELS:
        return _safe(field_of(typed, name, name=name, errors=errors.of(name)))
    key, value = name.rpartition(".")[2], typed.values.get(name, "")
    made = Field(
        name=name,
        label=str(LABELS[name]),
        value=value,
        kind="time" if name in _CLOCKS else _KINDS.get(key, "text"),
        help=str(HINTS.get(name, "")),
        errors=errors.of(name),
    )
    if name == "study.timezone":
        made = replace(made, kind="select", options=_timezones())
    is_column = name.startswith("extract.") and key != "timestamp_format"
    return _safe(_with_columns(made, sample) if is_column else made)


def _with_columns(made: Field, sample: Sample | None) -> Field:
    is_column = made.name.startswith("extract.") or made.name.endswith((".column", "_column"))
    options = columns_for(sample, made.value) if is_column else []
    return replace(made, kind="select", options=options) if options else made


def _safe(made: Field) -> Field:
    """A control that keeps any value of the text: a browser would send another value for an unusual one."""
    if made.kind == "select" and made.value not in [value for value, _ in made.options]:
        return replace(made, options=[(made.value, made.value), *made.options])
    if made.kind == "date" and made.value and not _is_date(made.value):
        return replace(made, kind="text")
    if made.kind == "time" and made.value and not _is_clock(made.value):
        return replace(made, kind="text")
    return replace(made, kind="textarea") if made.kind == "text" and "\n" in made.value else made


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _is_clock(text: str) -> bool:
    hours, _, minutes = text.partition(":")
    return (
        len(text) == len("06:00")
        and hours.isdecimal()
        and minutes.isdecimal()
        and int(hours) < 24
        and int(minutes) < 60
    )


def _timezones() -> list[tuple[str, str]]:
    names = sorted(name for name in known_timezones() if "/" in name and not name.startswith("Etc/"))
    return [(name, name) for name in ("UTC", *names)]


def _is_missing(problem: Problem) -> bool:
    return problem.value is None and problem.rule.startswith(MISSING)


def _is_in(problem: Problem, step: str) -> bool:
    """Return whether a problem belongs to a step."""
    is_of_classes = problem.key == CLASS_COLUMN or problem.key.startswith(CLASS)
    if step == "classes" or is_of_classes:
        return step == "classes" and is_of_classes
    if step == "indicators":
        return problem.key.startswith(INDICATOR)
    _, names, more = STEPS[step]
    sections = {name.rpartition(".")[0] for name in (*names, *more)}
    return problem.key in (*names, *more) or problem.key in sections


def _todo(missing: Sequence[Problem]) -> str:
    n = len(missing)
    return (
        ngettext("%(n)s field to fill in", "%(n)s fields to fill in", n) % {"n": n}
        if n
        else gettext("complete")
    )
