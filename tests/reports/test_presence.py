"""Studies with presence noise: estimates, files, API and pages say how noisy a number is, or nothing."""

import csv
import io
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from django.test import Client

from ldp import PlanSpec
from reports import wording
from reports.api.records import visitors_record
from reports.api.schemas import Report, VisitorsOfWindow
from reports.compare import NotComparableError, Reason, compare_categories, compare_windows
from reports.derived import key_figures
from reports.dpia import dpia_pack
from reports.exports.bundle import bundle_of
from reports.exports.errors import ExportError
from reports.exports.facts import facts_of
from reports.exports.formats import FORMATS
from reports.exports.records import report_record, to_csv
from reports.exports.selection import Scope, select_window
from reports.models import Plan, Study
from reports.movement import NoisyTotalsError, movement
from reports.noise import visitor_noise
from reports.selectors import Window, WindowReport, study_reports, visitor_unions, window_report, windows_of
from reports.statement import privacy_statement
from reports.status import Status
from scripts.check_statement import check
from tests.reports import noisy_factory
from tests.reports import report_factory as factory
from tests.reports.report_factory import People

pytestmark = pytest.mark.django_db

N = 6000
SCHEMA = json.loads((Path(__file__).parents[2] / "docs/statement.schema.json").read_text())


@pytest.fixture
def study() -> Study:
    return noisy_factory.create()


@pytest.fixture
def people(study: Study) -> People:
    return factory.crowd(study, n=N)


@pytest.fixture
def closed(study: Study, people: People) -> Study:
    noisy_factory.close(study, people, first=1, last=4)
    return study


def report(study: Study, first: int, last: int, *, slug: str = "gender") -> WindowReport:
    return window_report(study.indicators.get(slug=slug), Window(first, last))


def test_study_with_exact_totals_is_as_it_was() -> None:
    exact = factory.create()
    factory.publish(exact, factory.crowd(exact))
    found = report(exact, 1, 4)
    assert (exact.presence, exact.noisy_through, found.noisy_visitors) == (None, 0, None)
    assert visitor_noise(exact) is None
    assert "n_visitors_ci_low" not in report_record(found)
    assert "n_visitors_ci_low" not in to_csv([found])


def test_estimates_are_near_the_truth_in_standard_errors(closed: Study, people: People) -> None:
    """All windows and indicators; totals and shares, against the true values of the people."""
    distances = []
    for found in study_reports(list(closed.indicators.all()), None):
        window = found.window
        there = people.present(window.first_day, window.last_day)
        total = found.noisy_visitors
        assert total is not None
        assert found.n_visitors == total.value
        assert abs(total.value - there.sum()) < 5 * total.std_error
        assert total.ci_low < total.value < total.ci_high
        values = first_values(people, found)
        for code, estimate in enumerate(found.estimates):
            truth = float((values[there] == code).mean())
            assert estimate.frequency is not None
            assert estimate.std_error is not None
            distances.append((estimate.frequency - truth) / estimate.std_error)
            assert estimate.visitors == pytest.approx(estimate.frequency * total.value)
    assert np.abs(distances).max() < 5
    assert 0.6 < np.sqrt(np.mean(np.square(distances))) < 1.5


def first_values(people: People, found: WindowReport) -> np.ndarray:
    """Value of each person: the lasting one, or that of the first day in the window."""
    slug = found.indicator.slug
    if slug in people.static:
        return people.static[slug]
    days = np.arange(found.window.first_day - 1, found.window.last_day)
    there = people.bitmaps[:, np.newaxis] >> days.astype(np.uint64) & np.uint64(1) == 1
    return people.daily[slug][np.arange(people.bitmaps.size), days[there.argmax(axis=1)]]


def test_interval_of_a_longer_union_allows_for_the_noise_of_its_cells(closed: Study) -> None:
    noise = visitor_noise(closed)
    assert noise is not None
    for window, cells in [(Window(1, 1), 1), (Window(1, 4), 4), (Window(2, 4), 6), (Window(3, 3), 3)]:
        total = report(closed, *window_days(window)).noisy_visitors
        assert total is not None
        assert total.std_error == pytest.approx((cells * noise.channel.variance) ** 0.5)


def window_days(window: Window) -> tuple[int, int]:
    return window.first_day, window.last_day


def test_days_that_are_not_closed_are_not_there_and_bring_no_noise(study: Study, people: People) -> None:
    assert report(study, 1, 1).status == Status.NOT_COLLECTED
    noisy_factory.close(study, people, first=1, last=2)
    assert report(study, 3, 4).status == Status.NOT_COLLECTED
    assert report(study, 3, 4).noisy_visitors is None
    assert [estimate.frequency for estimate in report(study, 3, 4).estimates] == [None] * 3
    whole, closed_days = report(study, 1, 4), report(study, 1, 2)
    assert whole.noisy_visitors == closed_days.noisy_visitors
    assert whole.status == Status.OK


def test_counts_that_could_be_noise_alone_are_not_reliable_and_have_no_estimates(study: Study) -> None:
    noisy_factory.close(study, noisy_factory.nobody(study), first=1, last=4)
    reports = study_reports(list(study.indicators.all()), None)
    assert any((found.n_visitors or 0) < 0 for found in reports)
    for found in reports:
        assert found.status == Status.NOT_RELIABLE
        assert {estimate.status for estimate in found.estimates} == {Status.NOT_RELIABLE}
        assert {estimate.frequency for estimate in found.estimates} == {None}
        assert found.n_reports == sum(estimate.reports or 0 for estimate in found.estimates)


@pytest.mark.parametrize("mechanism", ["smp-grr", "spl-grr"])
def test_noise_of_the_answers_covers_all_that_a_person_answers(mechanism: str) -> None:
    study = noisy_factory.create(mechanism=mechanism, presence_days=2)
    spec = PlanSpec.from_json(Plan.objects.get().spec)
    assert spec.answer_noise is not None
    assert spec.answer_noise.sensitivity == (2 if mechanism == "smp-grr" else 4)
    noisy_factory.close(study, factory.crowd(study, n=N), first=1, last=4)
    assert report(study, 1, 4).status == Status.OK


def test_differences_of_noisy_numbers_are_refused_in_words(closed: Study) -> None:
    gender = closed.indicators.get(slug="gender")
    with pytest.raises(NotComparableError) as windows:
        compare_windows(gender, Window(1, 1), Window(2, 2), of="frequency")
    with pytest.raises(NotComparableError) as categories:
        compare_categories(gender, Window(1, 1), reference=0, category=None, of="visitors")
    assert windows.value.reason == categories.value.reason == Reason.NOISY
    with pytest.raises(NoisyTotalsError, match="presence noise"):
        movement(gender)
    with pytest.raises(ExportError, match="presence noise"):
        bundle_of(closed)
    assert key_figures(closed).n_visitors is None


def test_files_have_the_interval_of_the_visitors_and_say_what_is_noisy(closed: Study) -> None:
    found = report(closed, 1, 2)
    total = found.noisy_visitors
    assert total is not None
    record = json.loads(json.dumps(report_record(found)))
    ends = [total.ci_low, total.ci_high]
    assert [record["n_visitors_ci_low"], record["n_visitors_ci_high"]] == ends
    rows = list(csv.DictReader(io.StringIO(to_csv([found, report(closed, 1, 1)]))))
    assert len(rows) == 6
    assert [int(rows[0]["n_visitors_ci_low"]), int(rows[0]["n_visitors_ci_high"])] == ends
    facts = {fact.name: fact.value for fact in facts_of(select_window(found.indicator, found.window))}
    assert "exact" not in facts
    assert "5.642 x sqrt(a (b - a + 1))" in facts["noise"]


def page(client: Client, path: str) -> str:
    response = client.get(path)
    assert response.status_code == 200, response.content
    return response.content.decode().replace("\u00a0", " ").replace("\u202f", " ")


def test_pages_say_about_and_give_intervals(closed: Study, reader: Client) -> None:
    text = page(reader, f"/studies/{closed.slug}/")
    total = report(closed, 1, 4).noisy_visitors
    assert total is not None
    assert "This study has presence noise" in text
    assert f"{total.ci_low:,} to {total.ci_high:,}".replace(",", " ") in text
    assert "exact" not in text.lower().replace("inexact", "")
    shown = page(reader, f"/studies/{closed.slug}/gender/")
    assert "Visitors (noisy)" in shown
    assert "Reports (noisy)" in shown
    assert "Presence noise: all counts are noisy" in shown
    assert "about " in shown
    assert "Visitors (noisy)" in page(reader, f"/studies/{closed.slug}/gender/days/")
    assert "Visitors, all days (noisy)" in page(reader, "/studies/")


def test_pages_of_differences_say_why_there_are_none(closed: Study, reader: Client) -> None:
    text = page(reader, f"/studies/{closed.slug}/gender/movement/")
    assert "No movements of this study" in text
    days = "from=2024-05-30&to=2024-05-30&with_from=2024-05-31&with_to=2024-05-31"
    text = page(reader, f"/studies/{closed.slug}/gender/compare/?kind=windows&{days}")
    assert "This study has presence noise" in text
    asked_nothing = page(reader, f"/studies/{closed.slug}/gender/compare/")
    assert "This study has presence noise" in asked_nothing
    assert "What to compare" not in asked_nothing
    for ending in ("csv", "json"):
        refused = reader.get(f"/studies/{closed.slug}/gender/movement.{ending}")
        assert refused.status_code in {400, 404, 409}


@pytest.mark.parametrize("last", [0, 2, 4])
def test_every_page_bears_noise_without_people(study: Study, reader: Client, last: int) -> None:
    """Negative totals, ratios of nothing, open days: no page breaks, and none shows less than none."""
    if last:
        noisy_factory.close(study, noisy_factory.nobody(study), first=1, last=last)
    paths = ["gender/movement/", "gender/days/?show=cumulative&form=multiples", "stay/days/?measure=visitors"]
    for first_last in ("", "from=2024-05-30&to=2024-05-30", "from=2024-05-31&to=2024-06-02"):
        for shown in ("", "&measure=visitors", "&view=table&values=consistent"):
            paths.append(f"gender/?{first_last}{shown}")
    for path in ("", *paths):
        text = page(reader, f"/studies/{study.slug}/{path}")
        assert wording.MINUS not in text.split("<main")[1], path
    if last == 4:
        assert "could be presence noise alone" in page(reader, f"/studies/{study.slug}/gender/")
        assert "Thu 30 May 2024: about" in page(reader, f"/studies/{study.slug}/gender/")
    page(reader, "/studies/")
    for window in windows_of(study):
        assert np.isfinite(visitor_unions(study)[window_days(window)])


def stated(study: Study) -> dict[str, Any]:
    """The statement as a file has it, valid by its schema, and right by the script that recomputes it."""
    found: dict[str, Any] = json.loads(json.dumps(privacy_statement(study)))
    jsonschema.Draft202012Validator(SCHEMA).validate(found)
    assert check(found).texts == []
    return found


@pytest.mark.parametrize(
    ("mechanism", "epsilon", "days"),
    [("smp-grr", "1", 4), ("smp-grr", "0.001", 1), ("spl-grr", "2.5", 3), ("smp-adp", "20", 2)],
)
def test_statement_certifies_twice_the_presence_epsilon_at_most(
    mechanism: str, epsilon: str, days: int
) -> None:
    study = noisy_factory.create(mechanism=mechanism, presence_epsilon=epsilon, presence_days=days)
    presence = stated(study)["presence"]
    nominal = 2 * Fraction(epsilon)
    assert Fraction(presence["nominal_epsilon"]) == nominal
    assert nominal * Fraction(999_999, 10**6) < Fraction(presence["epsilon"]) <= nominal
    assert presence["days_per_person"] == presence["visitors"]["counts_per_person"] == days
    assert presence["answers"]["counts_per_person"] == days * (2 if mechanism == "spl-grr" else 1)
    assert Fraction(presence["epsilon_moved"]) <= Fraction(presence["epsilon_replaced"])


def test_limits_of_a_study_name_presence_only_where_nothing_hides_it(closed: Study) -> None:
    exact = factory.create(slug="exact")
    assert stated(exact)["presence"] is None
    hidden = {limit["name"] for limit in stated(closed)["not_protected"]}
    shown = {limit["name"] for limit in stated(exact)["not_protected"]}
    assert hidden ^ shown == {"presence", "missing_values", "closings"}
    assert "closings" in hidden
    assert stated(closed)["presence"]["noisy_through"] == 4


def test_noise_hides_how_many_cross_so_no_least_number_is_claimed(closed: Study) -> None:
    def claims(study: Study) -> str:
        times = next(limit["text"] for limit in stated(study)["not_protected"] if limit["name"] == "times")
        return times + "".join(point for section in dpia_pack(study).sections for point in section.points)

    exact = claims(factory.create(slug="exact"))
    assert "at least as many subscribers as the study asks for" in exact
    assert "merged over at least" in exact
    noisy = claims(closed)
    assert "no least number of them is asked for" in noisy
    assert "at least" not in noisy
    assert "each with presence noise, once, when its day is closed" in noisy


def test_script_finds_each_number_of_presence_that_is_changed(closed: Study) -> None:
    missed, n = [], 0
    for path in paths_of(stated(closed)["presence"]):
        found = stated(closed)
        *parents, last = path
        inner = found["presence"]
        for key in parents:
            inner = inner[key]
        value = inner[last]
        if isinstance(value, str) and not value[0].isdigit():
            continue
        inner[last] = value + 1 if isinstance(value, int) else f"1{value}"
        n += 1
        if not check(found).texts:
            missed.append(path)
    assert n > 20
    assert missed == [("noisy_through",)]  # a state, no promise


def paths_of(value: Any) -> list[tuple[Any, ...]]:
    """Where the leaves of a document are."""
    if not isinstance(value, dict | list):
        return [()]
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return [(key, *rest) for key, inner in items for rest in paths_of(inner)]


def test_page_of_the_statement_says_what_is_promised_of_presence(closed: Study, reader: Client) -> None:
    text = page(reader, f"/studies/{closed.slug}/statement/")
    assert "Whether a person was there at all is protected with epsilon 2:" in text
    assert "only the first 4 present days of a person count" in text
    assert "Nothing hides whether a person was there" not in text


@pytest.mark.parametrize("has_people", [True, False])
def test_every_file_format_bears_noise(study: Study, reader: Client, has_people: bool) -> None:
    """Also where nothing can be estimated from negative counts."""
    people = factory.crowd(study, n=N) if has_people else noisy_factory.nobody(study)
    noisy_factory.close(study, people, first=1, last=3)
    for ending, found in FORMATS.items():
        for scope, path in (
            (Scope.WINDOW, "gender/export"),
            (Scope.DAYS, "stay/days"),
            (Scope.STUDY, "export"),
        ):
            if scope in found.scopes and ending not in {"geojson", "geoparquet"}:
                response = reader.get(f"/studies/{study.slug}/{path}.{ending}")
                assert response.status_code == 200, (ending, path, response.content[:300])
                assert len(response.content) > 100


def test_programs_get_intervals_of_noisy_visitors(study: Study, people: People) -> None:
    noisy_factory.close(study, people, first=1, last=2)
    unions = visitor_unions(study)
    records = [
        visitors_record(study, window, visitors=unions, outages=frozenset()) for window in windows_of(study)
    ]
    for window, record in zip(windows_of(study), records, strict=True):
        VisitorsOfWindow.model_validate(record)
        is_here = window.first_day <= 2
        assert record["status"] == ("ok" if is_here else "not_collected")
        assert (record["n_visitors_ci_low"] is not None) == is_here
    assert Report.model_validate(report_record(report(study, 1, 2))).n_visitors_ci_low is not None
    assert Report.model_validate(report_record(report(study, 3, 4))).n_visitors_ci_low is None
