"""The part of a profile's form that says how a column becomes the categories of an indicator."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from django.utils.translation import gettext, gettext_lazy

from mobility.extracts.form_fields import Columns, Errors, Field
from mobility.extracts.profiles.definition import NO_ANSWER, own_table
from mobility.extracts.profiles.parse import INDICATOR
from mobility.extracts.profiles.preview import OPERATOR, table_of, texts_seen
from mobility.extracts.profiles.value_guess import DATE_PATTERNS
from mobility.uploads.profile_pages.draft import (
    AS_OTHERS,
    BIRTH_DATE,
    BIRTH_YEAR,
    NONE,
    PREFIX,
    TEXTS,
    band_text,
    sent_for,
)
from reports.studies.studyfile import IndicatorDefinition

RULE_NAMES: Final = {
    TEXTS: gettext_lazy("category names"),
    PREFIX: gettext_lazy("a code (matched by its first characters)"),
    BIRTH_YEAR: gettext_lazy("a year of birth"),
    BIRTH_DATE: gettext_lazy("a date of birth"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeFields:
    """The fields of one indicator; `seen` are texts, `bands` ages of categories, as its `rule` needs them."""

    slug: str
    title: str
    column: Field
    rule: str = ""
    fields: Sequence[Field] = ()
    seen: Sequence[Mapping[str, Any]] = ()
    not_listed: int = 0
    bands: Sequence[Field] = ()
    errors: Sequence[str] = ()

    @property
    def operator_role(self) -> str:
        """Role of the column with the country of the operator."""
        return OPERATOR % self.slug


def attribute_fields(indicator: IndicatorDefinition, columns: Columns, *, first_day: date) -> AttributeFields:
    """The fields of one indicator; `first_day` of the study is the day on which ages hold."""
    slug, errors = indicator.slug, columns.errors
    key = f"{INDICATOR}.{slug}"
    rule = columns.proposal.draft[INDICATOR].get(slug, {})
    none = gettext("none (these files have no such column)")
    chosen = rule.get("column", "")
    column = columns.field(f"column-{slug}", gettext("Column"), chosen, key=f"{key}.column", none=none)
    if not column.value or own_table(indicator) is not None:
        fields = [_operator_field(indicator, columns, rule)] if column.value and indicator.origin else []
        return AttributeFields(slug=slug, title=indicator.shown_name, column=column, fields=fields)
    kind = next((each for each in (BIRTH_YEAR, BIRTH_DATE, PREFIX) if each in rule), TEXTS)
    options = [(name, str(label)) for name, label in RULE_NAMES.items()]
    fields = [select(f"rule-{slug}", gettext("Content"), kind, options)]
    seen: list[dict[str, Any]] = []
    bands: list[Field] = []
    not_listed = 0
    if kind in (BIRTH_YEAR, BIRTH_DATE):
        fields += _birth_fields(slug, kind, rule[kind], first_day, errors)
        bands = _band_fields(indicator, rule[kind])
    else:
        if kind == PREFIX:
            fields.append(_prefix_field(slug, rule, errors))
        seen, not_listed = _seen(indicator, rule, columns.sample.column(column.value))
    fields += _last_fields(indicator, rule, {each["text"] for each in seen}, errors)
    return AttributeFields(
        slug=slug,
        title=indicator.shown_name,
        column=column,
        rule=kind,
        fields=fields,
        seen=seen,
        not_listed=not_listed,
        bands=bands,
        errors=errors.of(f"{key}.values", f"{key}.{kind}"),
    )


def _operator_field(indicator: IndicatorDefinition, columns: Columns, rule: Mapping[str, Any]) -> Field:
    return columns.field(
        f"operator-{indicator.slug}",
        gettext("Column with the country of the operator"),
        rule.get("operator_column", ""),
        key=f"{INDICATOR}.{indicator.slug}.operator_column",
        none=gettext("choose a column"),
    )


def select(name: str, label: str, value: str, options: Sequence[tuple[str, str]], **more: Any) -> Field:
    """A choice among `options`, each a value and its label."""
    return Field(name=name, kind="select", label=label, value=value, options=options, **more)


def _prefix_field(slug: str, rule: Mapping[str, Any], errors: Errors) -> Field:
    return Field(
        name=f"prefix-{slug}",
        kind="number",
        label=gettext("Number of leading characters to match"),
        value=str(rule["prefix"]),
        errors=errors.of(f"{INDICATOR}.{slug}.prefix"),
    )


def _birth_fields(
    slug: str, kind: str, birth: Mapping[str, Any], first_day: date, errors: Errors
) -> list[Field]:
    key = f"{INDICATOR}.{slug}.{kind}"
    of_year = gettext(
        "If only the year of birth is known, the study uses the age that the subscriber reaches in "
        "the calendar year of this date."
    )
    reference = Field(
        name=f"reference-{slug}",
        kind="date",
        label=gettext("Calculate ages as of"),
        value=str(birth.get("reference", first_day)),
        help=of_year if kind == BIRTH_YEAR else "",
        errors=errors.of(f"{key}.reference"),
    )
    if kind == BIRTH_YEAR:
        return [reference]
    options = [("", gettext("choose a format")), *((each, each) for each in DATE_PATTERNS)]
    value, found = birth.get("pattern", ""), errors.of(f"{key}.pattern")
    return [reference, select(f"pattern-{slug}", gettext("Date format"), value, options, errors=found)]


def _band_fields(indicator: IndicatorDefinition, birth: Mapping[str, Any]) -> list[Field]:
    bands = birth.get("bands", {})
    return [
        Field(
            name=f"band-{indicator.slug}",
            key=f"band-{indicator.slug}-{place}",
            label=name,
            value=band_text(bands[name]) if name in bands else "",
        )
        for place, name in enumerate(indicator.categories)
    ]


def _seen(
    indicator: IndicatorDefinition, rule: Mapping[str, Any], texts: list[str]
) -> tuple[list[dict[str, Any]], int]:
    """Texts of the first rows, in how many, each with a choice of what it means; how many are not listed."""
    length = rule.get("prefix", 0)
    prefix = length if isinstance(length, int) and length > 0 else 0
    known = _meanings(indicator, rule, texts, prefix=prefix)
    listed, not_listed = texts_seen(texts, prefix=prefix, known=known)
    own = () if prefix else indicator.categories  # categories mean themselves in any case
    name, seen = f"meaning-{indicator.slug}", []
    for place, (text, rows) in enumerate(listed):
        options = _category_options(indicator, gettext("Not mapped") if text not in own else "")
        choice = select(name, text, sent_for(known.get(text)), options, key=f"{name}-{place}")
        seen.append({"text": text, "rows": rows, "choice": choice})
    return seen, not_listed


def _meanings(
    indicator: IndicatorDefinition, rule: Mapping[str, Any], texts: list[str], *, prefix: int
) -> dict[str, str]:
    """Category of the texts that have one, without what the rule says of all others."""
    table = table_of({key: part for key, part in rule.items() if key != "otherwise"}, indicator)
    if table is None:  # the rule has problems: what was chosen stays chosen
        return dict(rule.get("values", {}))
    codes = {text[: prefix or None]: table.code_of(text.encode()) for text in texts if text}
    found = {text: code for text, code in codes.items() if code is not None}
    return {text: "" if code == NO_ANSWER else indicator.categories[code] for text, code in found.items()}


def _category_options(indicator: IndicatorDefinition, others: str) -> list[tuple[str, str]]:
    """Choices of a category; `others` is what it means to choose none, empty where one must be chosen."""
    options = [(sent_for(name), name) for name in indicator.categories]
    options.append((NONE, gettext("no answer")))
    return [(AS_OTHERS, others), *options] if others else options


def _last_fields(
    indicator: IndicatorDefinition, rule: Mapping[str, Any], seen: set[str], errors: Errors
) -> list[Field]:
    """Rule for texts that are not in the first rows."""
    key = f"{INDICATOR}.{indicator.slug}"
    more = {text: name for text, name in rule.get("values", {}).items() if text not in seen}
    return [
        Field(
            name=f"more-{indicator.slug}",
            kind="textarea",
            label=gettext("More values, one per line"),
            value="\n".join(f"{text} = {name}" for text, name in more.items()),
            help=gettext(
                "Write “value = category” on each line. If a value means “no answer”, leave the part "
                "after “=” empty. An empty value always means “no answer”."
            ),
        ),
        Field(
            name=f"ignore_case-{indicator.slug}",
            kind="checkbox",
            label=gettext("Ignore case"),
            value="on" if rule.get("ignore_case") else "",
            errors=errors.of(f"{key}.ignore_case"),
        ),
        select(
            f"otherwise-{indicator.slug}",
            gettext("Any other value"),
            sent_for(rule.get("otherwise")),
            _category_options(indicator, gettext("Reject the row")),
            errors=errors.of(f"{key}.otherwise"),
        ),
    ]
