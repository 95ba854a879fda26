"""The test whether the categories of two windows have the same shares, as the API sends it."""

from dataclasses import asdict

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from ldp.estimation.joint.association import Association
from reports.api.answers import Content, answer, as_json
from reports.base.problems import ProblemError
from reports.compare import texts
from reports.compare.queries import NotComparableError, windows_test
from reports.estimates.fingerprints import state_of
from reports.estimates.queries import LEVEL, Window
from reports.exports.findings.tables import head_of, tail_of
from reports.studies.models import Indicator


def change_answer(
    request: HttpRequest, indicator: Indicator, *, window: Window, reference: Window
) -> HttpResponseBase:
    """Answer with the test of all categories of an indicator in two windows.

    Raises
    ------
    ProblemError : 422 where both windows are the same, or one has no figures
    UnionNotAvailableError : as of `compare_windows`
    """

    def build() -> Content:
        try:
            report, other, overall = windows_test(indicator, window, reference)
        except NotComparableError as error:
            raise ProblemError(422, texts.not_comparable(error)) from error
        found = overall if isinstance(overall, Association) else None
        tested = dict.fromkeys(("statistic", "degrees", "p_value")) if found is None else asdict(found)
        names = ("first_day", "last_day", "n_visitors", "n_reports")
        return as_json(
            head_of(report)
            | {f"reference_{name}": head_of(other)[name] for name in names}
            | {"differs": None if found is None else found.p_value < 1 - LEVEL}
            | {"sentence": texts.overall_words(overall)}
            | tested
            | tail_of(report)
        )

    return answer(
        request, state=[state_of([indicator.study]), indicator.slug, window, reference], build=build
    )
