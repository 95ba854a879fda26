"""Questions about joint indicators as the API answers them."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.translation import gettext

from reports.api.answers import Content, answer, as_json
from reports.api.schemas import Query
from reports.base.problems import FieldError, ProblemError
from reports.crosstab.association import verdict_of
from reports.crosstab.joints import Joint, Part, joint_indicators
from reports.crosstab.queries import NoCrosstabError, measure
from reports.crosstab.query import COLUMNS, ROWS, checked_choice, joint_of, part_view
from reports.crosstab.texts import sentence
from reports.estimates.fingerprints import state_of
from reports.estimates.queries import Window, WindowError, window_from_dates
from reports.exports.findings.tables import head_of, tail_of
from reports.studies.models import Indicator, Study

_SHOWN = 80  # characters of a value in a refusal


def query_answer(request: HttpRequest, study: Study, question: Query) -> HttpResponseBase:
    """The share that a question asks for.

    Raises
    ------
    FieldError : a field names something that there is not
    ProblemError : 422 where the study has no figures of joint indicators
    """
    joint = _joint(study, question.indicator)
    window = _window(study, question)
    choice = _choice(joint, question.where)

    def build() -> Content:
        try:
            measured = measure(joint, window)
        except NoCrosstabError as error:
            raise ProblemError(422, str(error)) from error
        figure = measured.answer(choice)
        numbers = asdict(figure)
        numbers["frequency"] = numbers.pop("share")
        return as_json(
            head_of(measured.report)
            | {"where": question.where, "sentence": sentence(measured, figure, choice)}
            | numbers
            | tail_of(measured.report)
        )

    return answer(request, state=[state_of([study]), question.model_dump(mode="json")], build=build)


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
    joints = joint_indicators(study)
    if not joints:
        raise ProblemError(422, gettext("This study has no joint indicators, so it has no such tables."))
    try:
        return joint_of(slug or "?", joints)
    except WindowError as error:
        raise FieldError("indicator", str(error)) from error


def _window(study: Study, question: Query) -> Window:
    first, last = question.first_day, question.last_day
    try:
        if first is None:
            return window_from_dates(study, study.first_day, last or study.last_day)
        return window_from_dates(study, first, last or first)
    except WindowError as error:
        raise FieldError("to" if first is None else "from", str(error)) from error


def _choice(joint: Joint, where: Mapping[str, list[str | None]]) -> dict[int, tuple[int, ...]]:
    """Codes of the categories that a question names."""
    slugs = [part.slug for part in joint.parts]
    if not where:
        raise FieldError("where", gettext("Name categories of at least one part of the indicator."))
    found: dict[int, Any] = {}
    for slug, names in where.items():
        if slug not in slugs:
            text = gettext("“%(name)s” is not a part of this indicator. Its parts are %(known)s.")
            values = {"name": slug[:_SHOWN], "known": ", ".join(slugs)}
            raise FieldError(f"where.{slug[:_SHOWN]}", text % values)
        place = slugs.index(slug)
        if not names:
            text = gettext("Name at least one category, or leave this part out for any category.")
            raise FieldError(f"where.{slug}", text)
        found[place] = [_code(joint.parts[place], name, place=i) for i, name in enumerate(names)]
    return checked_choice(joint, found)


def _code(part: Part, name: str | None, *, place: int) -> int:
    if name is None:
        return part.no_value
    categories: list[str] = part.indicator.categories
    if name not in categories:
        raise FieldError(
            f"where.{part.slug}.{place}",
            gettext("%(indicator)s has no category “%(name)s”.")
            % {"indicator": part.slug, "name": name[:_SHOWN]},
        )
    return categories.index(name)
