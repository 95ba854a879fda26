"""Four kinds of blank: each where it belongs, none of them zero, and all of them on the pages."""

import io
import json
import re
from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from reports import charts, selectors, wording
from reports.models import DayNote, Study
from reports.selectors import Window, WindowReport
from reports.services.notes import note_day
from reports.status import WIDEST_INTERVAL, Status, estimates_status, is_suppressed, window_status
from reports.templatetags.wording import consistent_cell, share_cell
from tests.reports import report_factory as factory

pytestmark = pytest.mark.django_db

DAY_3 = date(2024, 6, 1)
MANY = factory.indicator("region", *(f"Region {letter}" for letter in "ABCDEFGH"))


def report_of(study: Study, *window: int, slug: str = "gender") -> WindowReport:
    fresh = Study.objects.get(pk=study.pk)
    return selectors.window_report(fresh.indicators.get(slug=slug), Window(*window))


def records(*args: str) -> list[dict[str, Any]]:
    out = io.StringIO()
    call_command("export_report", "fair-2024", *args, stdout=out)
    found: list[dict[str, Any]] = json.loads(out.getvalue())
    return found


def page(client: Client, name: str = "indicator", *, slug: str = "gender", **query: str) -> str:
    args = ["fair-2024"] if name in ("study", "notes") else ["fair-2024", slug]
    return client.get(reverse(f"reports:{name}", args=args), query).content.decode()


@pytest.mark.parametrize(
    ("sizes", "is_outage", "expected"),
    [
        ((500, 200, 0), False, Status.OK),
        ((0, 0, 0), False, Status.NOT_COLLECTED),
        ((500, 0, 0), False, Status.NOT_COLLECTED),  # visitors, but no answers
        ((0, 0, 30), False, Status.NOT_COLLECTED),  # nobody is not a small cell
        ((29, 9, 30), False, Status.SUPPRESSED),
        ((30, 9, 30), False, Status.OK),
        ((0, 0, 0), True, Status.OUTAGE),
        ((500, 200, 0), True, Status.OUTAGE),
        ((29, 9, 30), True, Status.SUPPRESSED),  # a mark does not undo the policy
    ],
)
def test_window_has_one_status(sizes: tuple[int, int, int], is_outage: bool, expected: Status) -> None:
    n_visitors, n_reports, small_cell = sizes
    found = window_status(
        n_visitors=n_visitors, n_reports=n_reports, small_cell=small_cell, is_outage=is_outage
    )
    assert found == expected


def test_the_mean_width_decides_for_all_categories_together() -> None:
    wide = WIDEST_INTERVAL + 0.01
    for low in (-0.3, 0.0, 0.45):
        both = {"ci_low": [low, low], "ci_high": [low + wide, low + wide]}
        assert estimates_status(Status.OK, **both) == Status.NOT_RELIABLE
        one = {"ci_low": [low, low], "ci_high": [low + wide, low + wide - 0.04]}
        assert estimates_status(Status.OK, **one) == Status.OK
        assert estimates_status(Status.OUTAGE, **both) == Status.OUTAGE


def test_no_report_shows_only_its_lowest_estimates() -> None:
    """An interval is wider where its estimate is higher: what a width left out would bias what stays."""
    seen: set[str] = set()
    for n in range(60, 400, 20):
        study = factory.create(MANY, slug=f"of-{n}")
        factory.publish(study, factory.crowd(study, n=n, seed=n))
        report = selectors.window_report(study.indicators.get(), Window(1, 4))
        assert len({estimate.status for estimate in report.estimates}) == 1
        widths = [(estimate.ci_high or 0) - (estimate.ci_low or 0) for estimate in report.estimates]
        seen.add(report.status)
        seen.add("mixed" if min(widths) < WIDEST_INTERVAL < max(widths) else "")
    assert seen >= {Status.OK, Status.NOT_RELIABLE, "mixed"}


def test_without_a_rule_one_visitor_is_shown() -> None:
    assert not is_suppressed(1, small_cell=0)


def test_few_answers_are_not_reliable_and_keep_their_numbers_in_files() -> None:
    study = factory.create()
    factory.publish(study, factory.crowd(study, n=120))
    report = report_of(study, 1, 1)
    assert report.status == Status.NOT_RELIABLE
    record = records("--indicator", "gender", "--from", "2024-05-30", "--to", "2024-05-30")[0]
    for estimate, exported in zip(report.estimates, record["estimates"], strict=True):
        assert estimate.ci_high - estimate.ci_low > WIDEST_INTERVAL
        assert exported["status"] == "not_reliable"
        assert exported["frequency"] == estimate.frequency
        assert list(exported)[-1] == "status"


def test_enough_answers_are_reliable(fair: Study) -> None:
    report = report_of(fair, 1, 4)
    assert {report.status, *(estimate.status for estimate in report.estimates)} == {Status.OK}


def test_page_and_chart_do_not_draw_what_is_not_reliable(reader: Client) -> None:
    study = factory.create()
    factory.publish(study, factory.crowd(study, n=120))
    report = report_of(study, 1, 1)
    text = page(reader, **{"from": "2024-05-30"})
    for estimate in report.estimates:
        assert wording.share_range(estimate) in text
        assert f">{wording.percent(estimate.frequency)}<" not in text
    figure = charts.report_figure(report)
    assert set(figure["data"][0]["marker"]["color"]) == {"rgba(0,0,0,0)"}
    assert set(figure["data"][1]["text"]) == {" ? not reliable"}
    lines = charts.days_figure([report], shown=[0])
    assert lines["data"][1]["y"] == [None]
    assert "cannot tell a quarter from three quarters" in text


def test_small_windows_are_suppressed_everywhere(reader: Client) -> None:
    study = factory.create(small_cell=3000)
    delta = factory.publish(study, factory.crowd(study))
    one_day = int(delta.visitors[0, 1])
    report = report_of(study, 1, 1)
    assert 0 < one_day < 3000
    assert (report.status, report.n_visitors, report.n_reports) == (Status.SUPPRESSED, None, None)
    for estimate in report.estimates:
        expected = selectors.Estimate(category=estimate.category, reports=None, status=Status.SUPPRESSED)
        assert estimate == expected
    assert report_of(study, 1, 4).status == Status.OK
    record = records("--indicator", "gender")[0]
    assert (record["n_visitors"], record["n_reports"]) == (None, None)
    for text in (
        page(reader, **{"from": "2024-05-30"}), page(reader), page(reader, "days"), page(reader, "study")
    ):  # fmt: skip
        assert wording.number(one_day) not in text
        assert "suppressed" in text
    assert "policy of the study, not a part of its privacy promise" in page(reader, **{"from": "2024-05-30"})


def test_small_studies_are_suppressed_in_the_list() -> None:
    study = factory.create(small_cell=5000)
    factory.publish(study, factory.crowd(study))
    assert selectors.study_summaries(Study.objects.all())[0].n_visitors is None


def test_day_without_data_is_not_collected_and_not_zero(reader: Client) -> None:
    study = factory.create()
    factory.publish(study, factory.absent_on(factory.crowd(study), day=3))
    report = report_of(study, 3, 3)
    assert report.status == Status.NOT_COLLECTED
    assert {estimate.status for estimate in report.estimates} == {Status.NOT_COLLECTED}
    text = page(reader, "days")
    assert text.count("not collected") >= len(report.estimates)
    assert "0.0 %" not in text


def test_method_of_a_day_without_data_does_not_call_its_total_exactly_zero(reader: Client) -> None:
    study = factory.create()
    factory.publish(study, factory.absent_on(factory.crowd(study), day=2))
    answer = reader.get(reverse("reports:indicator", args=["fair-2024", "age"]) + "?from=2024-05-31")
    facts = re.findall(r'<dd id="n-(?:visitors|reports)">(.*?)</dd>', answer.content.decode(), re.DOTALL)
    assert len(facts) == 2
    assert all("not collected" in fact and "0" not in fact for fact in facts)


def test_marked_day_is_an_outage_with_and_without_data(reader: Client) -> None:
    study = factory.create()
    factory.publish(study, factory.absent_on(factory.crowd(study), day=3))
    note_day(study, day=DAY_3, kind=DayNote.Kind.OUTAGE, text="Power cut at the core site", by="adam")
    note_day(study, day=date(2024, 5, 31), kind=DayNote.Kind.OUTAGE, text="Half the cells", by="adam")
    empty, part = report_of(study, 3, 3), report_of(study, 2, 2)
    assert (empty.status, part.status) == (Status.OUTAGE, Status.OUTAGE)
    assert empty.estimates[0].frequency is None
    assert part.estimates[0].frequency is not None  # files keep what there is, with its code
    assert f">{wording.percent(part.estimates[0].frequency)}<" not in page(reader, **{"from": "2024-05-31"})
    assert "Power cut at the core site" in page(reader, **{"from": "2024-06-01"})


def test_longer_window_with_an_outage_is_read_with_a_warning(reader: Client, fair: Study) -> None:
    note_day(fair, day=DAY_3, kind=DayNote.Kind.OUTAGE, text="Power cut", by="adam")
    report = report_of(fair, 2, 3)
    assert report.status == Status.OK
    assert [note.text for note in report.notes] == ["Power cut"]
    assert "is missing from these numbers" in page(reader, **{"from": "2024-05-31", "to": "2024-06-01"})
    assert report_of(fair, 1, 2).notes == ()


def test_event_changes_no_status(reader: Client, fair: Study) -> None:
    note_day(fair, day=DAY_3, kind=DayNote.Kind.EVENT, text="Fireworks", by="adam")
    assert report_of(fair, 3, 3).status == Status.OK
    assert "Fireworks" in page(reader, **{"from": "2024-06-01"})


def test_every_blank_has_its_own_word_sign_and_reason(fair: Study) -> None:
    blanks = [status for status in Status if status != Status.OK]
    for words in (wording.status_word, wording.status_sign):
        assert len({words(status) for status in blanks} - {""}) == len(blanks)
        assert words(Status.OK) == ""
    assert len({wording.status_reason(status, fair) for status in blanks} - {""}) == len(blanks)
    assert "50 points" in wording.status_reason(Status.NOT_RELIABLE, fair)


def test_longer_window_names_the_days_that_it_lacks(reader: Client) -> None:
    study = factory.create()
    factory.publish(study, factory.absent_on(factory.crowd(study), day=3))
    whole = page(reader)
    assert "Sat 1 Jun 2024</li>" in whole
    assert "Sat 1 Jun 2024</li>" not in page(reader, **{"from": "2024-05-30", "to": "2024-05-31"})
    # in the grid of windows, too, no data is not zero
    assert "Sat 1 Jun 2024: not collected" in whole
    assert ">0<" not in whole


def test_outage_is_explained_once_and_not_called_imprecise(reader: Client) -> None:
    study = factory.create()
    factory.publish(study, factory.crowd(study, n=400))
    assert "Imprecise:" in page(reader, **{"from": "2024-06-01"})
    note_day(study, day=DAY_3, kind=DayNote.Kind.OUTAGE, text="Power cut", by="adam")
    text = page(reader, **{"from": "2024-06-01"})
    assert "Imprecise:" not in text
    visible = text.split("<script")[0]
    assert visible.count("The source failed on these days") <= 2  # in words, and as the chart's alternative


def test_consistent_column_says_the_word_to_screen_readers(fair: Study) -> None:
    estimate = selectors.Estimate(category="x", reports=3, frequency=0.5, status=Status.NOT_RELIABLE)
    assert '<span class="visually-hidden">not reliable</span>' in consistent_cell(estimate)
    assert "visually-hidden" not in share_cell(estimate)


def test_no_category_is_named_largest_where_it_has_nobody_or_more_than_all(fair: Study) -> None:
    report = report_of(fair, 1, 4)
    low = replace(report.estimates[0], frequency=-0.09, ci_low=-0.28, ci_high=0.2)
    for largest in (low, replace(low, frequency=1.01)):
        text = wording.report_summary(replace(report, estimates=(replace(low, frequency=-0.2), largest)))
        assert "it cannot be told in which category most are" in text
        assert "next one" not in text


def test_category_of_nearly_everybody_is_named_although_noise_pushes_it_above_all(fair: Study) -> None:
    report = report_of(fair, 1, 4)
    low = replace(report.estimates[0], frequency=-0.01, ci_low=-0.06, ci_high=0.04)
    most = replace(low, category="City", frequency=1.049, ci_low=0.973, ci_high=1.127)
    text = wording.report_summary(replace(report, estimates=(low, most)))
    assert (
        "an estimated 104.9\u202f% (95 % interval 97.3 to 112.7\u202f%) are in the largest category, City."
        in text
    )
    assert text.endswith("The noise can push an estimate above 100 %; read it as a large share.")


def test_summary_ranks_all_categories_of_a_report_and_leaves_none_out() -> None:
    """Status is one of the report: a category with a wide interval is named, too, if it is the second."""
    study = factory.create(MANY)
    factory.publish(study, factory.crowd(study, n=3000))
    report = report_of(study, 1, 4, slug="region")
    assert {estimate.status for estimate in report.estimates} == {Status.OK}
    by_size = sorted(report.estimates, key=lambda estimate: -estimate.frequency)
    wide = replace(by_size[1], ci_low=0.01, ci_high=0.01 + 2 * WIDEST_INTERVAL)
    estimates = tuple(wide if each is by_size[1] else each for each in report.estimates)
    text = wording.report_summary(replace(report, estimates=estimates))
    assert f"the largest category, {by_size[0].category}." in text
    assert f"The next one is {by_size[1].category} with {wording.percent(by_size[1].frequency)}" in text
    unsure = tuple(replace(each, ci_low=-0.01) if each is wide else each for each in estimates)
    assert "next one" not in wording.report_summary(replace(report, estimates=unsure))
