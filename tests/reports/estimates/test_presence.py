"""Studies with presence noise: estimates, files, API and pages say how noisy a number is, or nothing."""

import csv
import io
import json
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from django.test import Client

from ldp import PlanSpec
from ldp.estimation.noisy_estimators import UnionNoise, noisy_frequencies
from reports.api.records import study_record, visitors_record
from reports.api.schemas import Day, Report, VisitorsOfWindow
from reports.base import formats
from reports.base.status import Status
from reports.compare.queries import NotComparableError, Reason, compare_categories, compare_windows
from reports.estimates import queries
from reports.estimates.coverage import coverage_of
from reports.estimates.derived import key_figures
from reports.estimates.noise import answer_noise, visitor_noise
from reports.exports.bundle import bundle_of
from reports.exports.errors import ExportError
from reports.exports.facts import facts_of
from reports.exports.formats.choosing import formats_for
from reports.exports.records import report_record, to_csv
from reports.exports.selection import Scope, select_window
from reports.models import Plan, Study
from reports.movement.queries import NoisyTotalsError, movement
from tests.reports import report_factory as factory
from tests.reports.report_factory import People

pytestmark = pytest.mark.django_db
N = 6000


@pytest.fixture
def study() -> Study:
    return factory.create_noisy()


@pytest.fixture
def people(study) -> People:
    return factory.crowd(study, n=N)


@pytest.fixture
def closed(study, people) -> Study:
    factory.close(study, people, first=1, last=4)
    return study


def report(study: Study, first: int, last: int, *, slug: str = "gender") -> queries.WindowReport:
    return queries.window_report(study.indicators.get(slug=slug), queries.Window(first, last))


def body_of(client: Client, path: str) -> str:
    response = client.get(path)
    assert response.status_code == 200, response.content
    return response.content.decode().replace("\u00a0", " ").replace("\u202f", " ")


def test_study_with_exact_totals_is_as_it_was(fair) -> None:
    found = report(fair, 1, 4)
    assert (fair.presence, fair.noisy_through, found.noisy_visitors) == (None, 0, None)
    assert visitor_noise(fair) is None
    for written in (report_record(found), to_csv([found])):
        assert "n_visitors_ci_low" not in written


def test_totals_are_near_the_truth_and_shares_are_of_them(closed, people) -> None:
    for found in queries.study_reports(list(closed.indicators.all()), None):
        total, truth = found.noisy_visitors, people.present(*found.window).sum()
        assert found.n_visitors == total.value
        assert queries.surely_present(found) is None  # its errors are those of counts without noise
        assert abs(total.value - truth) < 5 * total.std_error
        assert total.ci_low < total.value < total.ci_high
        for estimate in found.estimates:
            assert estimate.visitors == pytest.approx(estimate.frequency * total.value)
    whole = report(closed, 1, 1).estimates[0].visitors
    Study.objects.update(market_share=Decimal("0.5"))
    assert report(Study.objects.get(), 1, 1).estimates[0].visitors == pytest.approx(2 * whole)
    spec = PlanSpec.from_json(Plan.objects.get().spec)
    for first, last, cells in ((1, 1, 1), (1, 4, 4), (2, 4, 6), (3, 3, 3)):  # each brings its noise
        expected = (cells * visitor_noise(closed).channel.variance) ** 0.5
        found = report(closed, first, last)
        assert found.noisy_visitors.std_error == pytest.approx(expected)
        counts = np.array([each.reports for each in found.estimates])
        noise = UnionNoise(channel=answer_noise(spec, closed).channel, n_cells=cells)
        asked = {"n_visitors": found.n_visitors, "noise": noise, "channel": spec.channel(0)}
        errors = noisy_frequencies(counts, **asked).std_error.tolist()
        assert [each.std_error for each in found.estimates] == pytest.approx(errors)


def test_days_that_are_not_closed_are_not_there_and_bring_no_noise(study, people) -> None:
    assert report(study, 1, 1).status == Status.NOT_COLLECTED
    factory.close(study, people, first=1, last=2)
    assert (report(study, 3, 4).status, report(study, 3, 4).noisy_visitors) == (Status.NOT_COLLECTED, None)
    assert [estimate.frequency for estimate in report(study, 3, 4).estimates] == [None] * 3
    whole, closed_days = report(study, 1, 4), report(study, 1, 2)
    assert (whole.noisy_visitors, whole.status) == (closed_days.noisy_visitors, Status.OK)


def test_counts_that_could_be_noise_alone_are_not_reliable_and_have_no_estimates(study) -> None:
    factory.close(study, factory.nobody(study), first=1, last=4)
    reports = queries.study_reports(list(study.indicators.all()), None)
    assert any((found.n_visitors or 0) < 0 for found in reports)
    for found in reports:
        assert found.status == Status.NOT_RELIABLE
        assert {estimate.status for estimate in found.estimates} == {Status.NOT_RELIABLE}
        assert {estimate.frequency for estimate in found.estimates} == {None}
        assert found.n_reports == sum(estimate.reports or 0 for estimate in found.estimates)


@pytest.mark.parametrize("mechanism", ["smp-grr", "spl-grr"])
def test_noise_of_the_answers_covers_all_that_a_person_answers(mechanism) -> None:
    study = factory.create_noisy(mechanism=mechanism, presence_days=2)
    spec = PlanSpec.from_json(Plan.objects.get().spec)
    assert spec.answer_noise.sensitivity == (2 if mechanism == "smp-grr" else 4)
    factory.close(study, factory.crowd(study, n=N), first=1, last=4)
    assert report(study, 1, 4).status == Status.OK


def test_differences_of_noisy_numbers_are_refused_in_words(closed) -> None:
    gender = closed.indicators.get(slug="gender")
    with pytest.raises(NotComparableError) as windows:
        compare_windows(gender, queries.Window(1, 1), queries.Window(2, 2), of="frequency")
    with pytest.raises(NotComparableError) as categories:
        compare_categories(gender, queries.Window(1, 1), reference=0, category=None, of="visitors")
    assert windows.value.reason == categories.value.reason == Reason.NOISY
    for error, refused, of in ((NoisyTotalsError, movement, gender), (ExportError, bundle_of, closed)):
        with pytest.raises(error, match="presence noise"):
            refused(of)
    assert key_figures(closed).n_visitors is None


def test_files_have_the_interval_of_the_visitors_and_say_what_is_noisy(closed) -> None:
    found = report(closed, 1, 2)
    total = found.noisy_visitors
    record = json.loads(json.dumps(report_record(found)))
    ends = [total.ci_low, total.ci_high]
    assert [record["n_visitors_ci_low"], record["n_visitors_ci_high"]] == ends
    rows = list(csv.DictReader(io.StringIO(to_csv([found, report(closed, 1, 1)]))))
    assert len(rows) == 6
    assert [int(rows[0]["n_visitors_ci_low"]), int(rows[0]["n_visitors_ci_high"])] == ends
    facts = {fact.name: fact.value for fact in facts_of(select_window(found.indicator, found.window))}
    assert ("exact" in facts, "5.642 x sqrt(a (b - a + 1))" in facts["noise"]) == (False, True)


def test_pages_say_about_give_intervals_and_why_there_are_no_differences(closed, reader) -> None:
    total = report(closed, 1, 4).noisy_visitors
    page = body_of(reader, f"/studies/{closed.slug}/").lower()
    assert "exact" not in page.replace("only from exact counts", "")  # why there is no bundle
    ends = f"{total.ci_low:,} to {total.ci_high:,}"
    noisy = ("Visitors (noisy)", "Answers received (noisy)", "all counts include noise", "about ")
    noisy += ("Noise added to every count also hides whether a person was present", "Of about ")
    for path, said in (
        (f"/studies/{closed.slug}/", ("This study has presence noise", ends)),
        (f"/studies/{closed.slug}/gender/", noisy),
        (f"/studies/{closed.slug}/gender/days/", ("Visitors (noisy)",)),
        ("/studies/", ("Visitors, all days (noisy)",)),
        (f"/studies/{closed.slug}/statement/", ('id="presence-title"',)),
    ):
        assert [words for words in said if words not in body_of(reader, path)] == []
    days = "from=2024-05-30&to=2024-05-30&with_from=2024-05-31&with_to=2024-05-31"
    moved = body_of(reader, f"/studies/{closed.slug}/gender/movement/")
    assert "New and returning visitors are not available for this study" in moved
    for asked, day in ((f"?kind=windows&{days}", 2), ("", 1)):  # without days: the last day with the first
        text = body_of(reader, f"/studies/{closed.slug}/gender/compare/{asked}")
        assert "This study adds presence noise" in text
        other = report(closed, day, day).noisy_visitors
        assert f"against about {other.value:,} ({other.ci_low:,} to {other.ci_high:,})" in text
    assert "shares of visitors" not in text  # the form that asks for them
    for ending in ("csv", "json"):
        assert reader.get(f"/studies/{closed.slug}/gender/movement.{ending}").status_code in {400, 404, 409}


@pytest.mark.parametrize("last", [0, 2, 4])
def test_every_page_bears_noise_without_people(study, reader, last) -> None:
    if last:
        factory.close(study, factory.nobody(study), first=1, last=last)
    days = ("gender/days/?show=cumulative&form=multiples", "stay/days/?measure=visitors")
    options = ("", "&measure=visitors", "&view=table&values=consistent")
    windows = ("", "from=2024-05-30&to=2024-05-30", "from=2024-05-31&to=2024-06-02")
    reports = [f"gender/?{window}{option}" for window in windows for option in options]
    for path in ("", "?from=2024-06-02&to=2024-06-02", "gender/movement/", *days, *reports):
        assert formats.MINUS not in body_of(reader, f"/studies/{study.slug}/{path}").split("<main")[1], path
    if last == 4:
        assert "Thu 30 May 2024: about" in body_of(reader, f"/studies/{study.slug}/gender/")
    body_of(reader, "/studies/")
    assert np.isfinite(queries.visitor_unions(study)).all()


def test_every_file_format_bears_noise(study, reader) -> None:
    factory.close(study, factory.nobody(study), first=1, last=3)
    for scope, path in {
        Scope.WINDOW: "gender/export",
        Scope.DAYS: "stay/days",
        Scope.STUDY: "export",
    }.items():
        for ending in [found.ending for found in formats_for(scope)]:
            response = reader.get(f"/studies/{study.slug}/{path}.{ending}")
            assert response.status_code == 200, (ending, scope, response.content[:300])
            assert len(response.content) > 100


def test_who_is_there_for_the_first_time_has_the_noise_of_one_cell_and_is_the_same_everywhere(reader) -> None:
    outside, spread = 0, []
    for key in range(1, 9):
        study = factory.create_noisy(slug=f"s{key}")
        people = replace(factory.crowd(study, n=300), bitmaps=np.full(300, 0b0011, np.uint64))
        factory.close(study, people, first=1, last=3, key=key.to_bytes(16, "big"))
        unions = queries.visitor_unions(study)
        days = coverage_of(study, visitors=unions, notes=[]).days
        record = study_record(study, visitors=unions)["coverage"]
        text = body_of(reader, f"/studies/{study.slug}/")
        assert (days[3].first_time, days[3].noisy_first_time) == (None, None)  # not closed yet
        for day, said, truth in zip(days[:3], record, (300, 0, 0), strict=False):
            total = day.noisy_first_time
            assert Day.model_validate(said).first_time == day.first_time == total.value
            assert (said["first_time_ci_low"], said["first_time_ci_high"]) == (total.ci_low, total.ci_high)
            assert f"{formats.noisy_number(total)}<br>" in text and formats.noisy_range(total) in text
            assert total.std_error == pytest.approx(visitor_noise(study).channel.variance ** 0.5)
            assert said["n_visitors"] == day.visitors == day.noisy.value
            spread.append((total.value - truth) / total.std_error)
            outside += not total.ci_low <= truth <= total.ci_high
    assert min(spread) < 0 < max(spread) and outside <= 4
    assert 0.6 < np.sqrt(np.mean(np.square(spread))) < 1.5


def test_programs_get_intervals_of_noisy_visitors(study, people) -> None:
    factory.close(study, people, first=1, last=2)
    given = {"visitors": queries.visitor_unions(study), "outages": frozenset()}
    for window in queries.windows_of(study):
        record = visitors_record(study, window, **given)
        VisitorsOfWindow.model_validate(record)
        is_here = window.first_day <= 2
        assert record["status"] == ("ok" if is_here else "not_collected")
        assert (record["n_visitors_ci_low"] is not None) == is_here
    for days, is_here in (((1, 2), True), ((3, 4), False)):
        record = Report.model_validate(report_record(report(study, *days)))
        assert (record.n_visitors_ci_low is not None) == is_here
