"""Questions about categories of indicators as the API answers them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import TypeVar

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.translation import gettext

from reports.api.answers import Content, answer, as_json
from reports.api.schemas import Query, Range
from reports.base.problems import FieldError, ProblemError
from reports.crosstab.association import verdict_of
from reports.crosstab.joints import Joint, Part, joint_indicators, selectable_indicators
from reports.crosstab.model import MODEL, THIRD, model_table, model_view, triples
from reports.crosstab.queries import NoCrosstabError, measure
from reports.crosstab.query import COLUMNS, ROWS, checked_choice, joint_of, part_view
from reports.crosstab.texts import sentence
from reports.estimates.fingerprints import state_of
from reports.estimates.queries import (
    UnionNotAvailableError,
    Window,
    WindowError,
    check_union,
    visitor_unions,
    window_between,
)
from reports.exports.findings.models import model_head, model_rows, model_words, pair_columns
from reports.exports.findings.tables import head_of, tail_of
from reports.studies.models import Indicator, Study

T = TypeVar("T")
_SHOWN = 80  # characters of a value in a refusal


def query_answer(request: HttpRequest, study: Study, question: Query) -> HttpResponseBase:
    """The share that a question asks for.

    Raises
    ------
    FieldError : a field names something that there is not
    ProblemError : 422 where the study has no such figures
    """
    joint = _joint(study, question.indicator)
    window = _window(joint.indicator, question)
    choice = _choice(joint, question)

    def build() -> Content:
        try:
            measured = measure(joint, window)
        except NoCrosstabError as error:
            raise ProblemError(422, str(error)) from error
        figure = measured.answer(choice)
        numbers = asdict(figure)
        numbers["frequency"] = numbers.pop("share")
        limit = numbers.pop("below")
        del numbers["consistent"], numbers["consistent_visitors"]
        if study.small_category:
            numbers["visitors_below"] = limit
        return as_json(
            head_of(measured.report)
            | {"where": _named(joint, choice), "sentence": sentence(measured, figure, choice)}
            | numbers
            | tail_of(measured.report)
        )

    return answer(request, state=[state_of([study]), question.model_dump(mode="json")], build=build)


def _named(joint: Joint, choice: Mapping[int, Sequence[int]]) -> dict[str, list[str | None]]:
    """Categories of a choice as a question names them."""
    parts = ((joint.parts[place], codes) for place, codes in choice.items())
    return {part.slug: [[*part.indicator.categories, None][code] for code in codes] for part, codes in parts}


def association_answer(
    request: HttpRequest, indicator: Indicator, *, rows: str, columns: str, window: Window
) -> HttpResponseBase:
    """Answer with the test of two parts of a joint indicator.

    Raises
    ------
    ProblemError : 422 where the indicator has no such parts, or the study no figures of them
    """
    study = indicator.study

    def build() -> Content:
        names = {ROWS: rows, COLUMNS: columns}
        try:
            joint = joint_of(indicator.slug, joint_indicators(study))
            measured = measure(joint, window)
            view = part_view(joint, window, names)
        except (NoCrosstabError, WindowError) as error:
            raise ProblemError(422, str(error)) from error
        verdict = verdict_of(measured, view)
        tested = None if verdict.found is None else asdict(verdict.found)
        return as_json(
            head_of(measured.report)
            | {"rows": view.row_part.slug, "columns": view.column_part.slug}
            | {"go_together": verdict.is_together, "sentence": verdict.sentence, "limits": verdict.limits}
            | (tested or dict.fromkeys(("statistic", "degrees", "p_value")))
            | tail_of(measured.report)
        )

    return answer(request, state=[state_of([study]), indicator.pk, rows, columns, window], build=build)


def _joint(study: Study, slug: str) -> Joint:
    joints = selectable_indicators(study)
    if not joints:
        raise ProblemError(422, gettext("This study has no indicator with categories to select."))
    try:
        return joint_of(slug or "?", joints)
    except WindowError as error:
        raise FieldError("indicator", str(error)) from error


def _window(indicator: Indicator, question: Query) -> Window:
    first, last = question.first_day, question.last_day
    try:
        window = window_between(indicator.study, first, last)
        check_union(indicator, window)
    except UnionNotAvailableError as error:
        raise FieldError("from" if first is None else "to", str(error)) from error
    except WindowError as error:
        raise FieldError("to" if first is None else "from", str(error)) from error
    return window


def _choice(joint: Joint, question: Query) -> dict[int, tuple[int, ...]]:
    """Codes of the categories that a question names."""
    places = {part.slug: place for place, part in enumerate(joint.parts)}
    found: dict[int, list[int]] = defaultdict(list)
    for field in ("where", "ranges", "groups"):
        for slug, asked in getattr(question, field).items():
            if slug not in places:
                raise FieldError(f"{field}.{slug[:_SHOWN]}", _unknown_part(joint, slug))
            codes = _codes(joint.parts[places[slug]], asked, field=field)
            if not codes:
                raise FieldError(f"{field}.{slug}", _no_category(joint, slug))
            found[places[slug]] += codes
    if not found:
        text = gettext("Specify categories for at least one part of the joint indicator.")
        raise FieldError("where", _no_category(joint, joint.indicator.slug) if joint.is_single else text)
    return checked_choice(joint, found)


def _unknown_part(joint: Joint, slug: str) -> str:
    names = {"name": slug[:_SHOWN], "known": ", ".join(part.slug for part in joint.parts)}
    if joint.is_single:
        return gettext("“%(name)s” is not the indicator in this question. Use “%(known)s” instead.") % names
    return gettext("“%(name)s” is not a part of this indicator. Its parts are %(known)s.") % names


def _no_category(joint: Joint, slug: str) -> str:
    text = gettext("Specify at least one category of “%(part)s”.")
    if not joint.is_single:
        text = gettext(
            "Specify at least one category of “%(part)s”. To allow any category, leave this part out."
        )
    return text % {"part": slug}


def _codes(part: Part, asked: list[str | None] | Range, *, field: str) -> list[int]:
    """Codes of some categories, of a range of them, or of groups."""
    names: list[str] = part.indicator.categories
    code_of: dict[str | None, int] = {name: code for code, name in enumerate(names)}
    if isinstance(asked, Range):
        ends = asked.first or names[0], asked.last or names[-1]
        first, last = (_known(part, each, code_of, at=f"{field}.{part.slug}") for each in ends)
        if first > last:
            text = gettext(
                "“%(first)s” comes after “%(last)s” in the order of the plan. Swap “from” and “to”, or list "
                "the categories in “where”."
            )
            raise FieldError(f"{field}.{part.slug}", text % dict(zip(("first", "last"), ends, strict=True)))
        return list(range(first, last + 1))
    if field == "groups":
        groups: dict[str | None, tuple[int, ...]] = dict(part.groups)
        codes = [_known(part, each, groups, at=f"{field}.{part.slug}.{i}") for i, each in enumerate(asked)]
        return [code for group in codes for code in group]
    if part.has_no_value:
        code_of[None] = part.no_value
    return [_known(part, each, code_of, at=f"{field}.{part.slug}.{i}") for i, each in enumerate(asked)]


def _known(part: Part, name: str | None, known: Mapping[str | None, T], *, at: str) -> T:
    if name in known:
        return known[name]
    text = gettext("%(indicator)s has no category or group “%(name)s”.")
    raise FieldError(at, text % {"indicator": part.slug, "name": str(name)[:_SHOWN]})


def model_answer(
    request: HttpRequest, study: Study, window: Window, parts: Sequence[str]
) -> HttpResponseBase:
    """Modelled shares of all combinations of three indicators.

    ProblemError : 422 where there is no model of these
    """
    names = dict(zip((ROWS, COLUMNS, THIRD), parts, strict=True))

    def build() -> Content:
        try:
            view = model_view(names, triples(study), visitors=visitor_unions(study))
            table = model_table(replace(view, window=window))
        except (WindowError, NoCrosstabError) as error:
            raise ProblemError(422, str(error)) from error
        rows = [] if table.cells is None else model_rows(table)
        marked = {"model": MODEL, "explanation": model_words(table), "rows": rows}
        head = model_head(table) | pair_columns(table)
        return as_json(head | marked | tail_of(table.report))

    return answer(request, state=[state_of([study]), window, *parts], build=build)
