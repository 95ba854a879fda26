"""Mean and quantiles of a number as the API answers them."""

from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from reports.api.answers import Content, answer, as_json
from reports.base.problems import ProblemError
from reports.estimates.fingerprints import state_of
from reports.estimates.queries import Window
from reports.exports.findings.means import means_rows
from reports.exports.findings.numbers import number_rows
from reports.exports.findings.tables import head_of, tail_of
from reports.numbers.by_category import means_report
from reports.numbers.queries import NoNumberError, compare_means, number_report
from reports.numbers.texts import difference_sentence, mean_sentence
from reports.studies.models import Indicator


def number_answer(
    request: HttpRequest, indicator: Indicator, window: Window, reference: Window | None
) -> HttpResponseBase:
    """Figures of a window, and the difference from other days where these are given.

    ProblemError : 422 where the indicator is no number, or both windows are the same
    """

    def build() -> Content:
        try:
            comparison = None if reference is None else compare_means(indicator, window, reference)
            number = number_report(indicator, window) if comparison is None else comparison.number
        except NoNumberError as error:
            raise ProblemError(422, str(error)) from error
        sentence = mean_sentence(number) if comparison is None else difference_sentence(comparison)
        scale: dict[str, Any] = {"cuts": list(number.scale.cuts), "minimum": number.scale.minimum}
        scale["report"] = number.scale.report or "threshold"
        rows = {"sentence": sentence, **scale, "rows": number_rows(number, comparison)}
        return as_json(head_of(number.report) | rows | tail_of(number.report))

    return answer(request, state=[state_of([indicator.study]), indicator.pk, window, reference], build=build)


def means_answer(request: HttpRequest, indicator: Indicator, window: Window) -> HttpResponseBase:
    """Mean of a number in each category of another indicator.

    ProblemError : 422 where the indicator joins no number with another one
    """

    def build() -> Content:
        try:
            found = means_report(indicator, window)
        except NoNumberError as error:
            raise ProblemError(422, str(error)) from error
        scale = {"cuts": list(found.joint.scale.cuts), "minimum": found.joint.scale.minimum}
        rows = scale | {"rows": means_rows(found)}
        return as_json(head_of(found.report) | rows | tail_of(found.report))

    return answer(request, state=[state_of([indicator.study]), indicator.pk, window, "means"], build=build)
