"""Figures by class of subscribers as the API answers them."""

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from reports.api.answers import Content, answer, as_json
from reports.base.problems import ProblemError
from reports.classes.queries import NoClassesError, by_class
from reports.classes.texts import alike_words
from reports.estimates.fingerprints import state_of
from reports.estimates.queries import Window
from reports.exports.findings.classes import class_rows
from reports.studies.models import Indicator


def classes_answer(request: HttpRequest, indicator: Indicator, window: Window) -> HttpResponseBase:
    """Shares of each class in a window.

    ProblemError : 422 where the study has no classes
    """

    def build() -> Content:
        try:
            found = by_class(indicator, window)
        except NoClassesError as error:
            raise ProblemError(422, str(error)) from error
        test = None if found.pooled is None else found.pooled.test
        return as_json(
            {
                "sentence": alike_words(found),
                "p_value": None if test is None else test.p_value,
                "rows": class_rows(found),
            }
        )

    state = [state_of([indicator.study]), indicator.pk, window, "classes"]
    return answer(request, state=state, build=build)
