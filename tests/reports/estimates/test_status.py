"""Four kinds of blank, each where it belongs and none of them zero; and notes that mark days."""

import json
import re
from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from django.core.management import CommandError
from django.db import IntegrityError
from django.test import Client
from django.urls import reverse

from reports.base import formats
from reports.base.status import WIDEST_INTERVAL, Status, estimates_status, window_status
from reports.estimates import charts, queries
from reports.estimates import texts as estimates_texts
from reports.estimates.notes import DayNoteError, note_day, remove_note
from reports.estimates.options import ReportOptions
from reports.estimates.queries import Window, WindowReport
from reports.models import DayNote, Study
from reports.studies import texts as studies_texts
from reports.templatetags.wording import consistent_cells, share_cell
from tests.reports import report_factory as factory
from tests.reports.page_texts import page, printed, signed_in

pytestmark = pytest.mark.django_db
DAY_3 = date(2024, 6, 1)
EIGHT = factory.indicator("region", *(f"Region {letter}" for letter in "ABCDEFGH"))


def report_of(study: Study, *window: int, slug: str = "gender") -> WindowReport:
    return queries.window_report(Study.objects.get(pk=study.pk).indicators.get(slug=slug), Window(*window))


def records(*args: str) -> list[dict[str, Any]]:
    return json.loads(printed("export_report", "fair-2024", *args))


def note(study: Study, day: date = DAY_3, kind: str = "outage", text: str = "Power cut") -> DayNote:
    return note_day(study, day=day, kind=DayNote.Kind(kind), text=text, by="adam")


def shown(client: Client, name: str = "indicator", *, slug: str = "gender", **query: str) -> str:
    return page(client, name, *([] if name in ("study", "notes") else [slug]), **query)


def test_window_has_one_status() -> None:
    for n_visitors, n_reports, small_cell, is_outage, expected in (
        (500, 200, 0, False, Status.OK),
        (1, 1, 0, False, Status.OK),  # without a rule one visitor is shown
        (0, 0, 0, False, Status.NOT_COLLECTED),
        (500, 0, 0, False, Status.NOT_COLLECTED),  # visitors, but no answers
        (0, 0, 30, False, Status.NOT_COLLECTED),  # no one is not a small cell
        (29, 9, 30, False, Status.SUPPRESSED),
        (30, 9, 30, False, Status.OK),
        (0, 0, 0, True, Status.OUTAGE),
        (500, 200, 0, True, Status.OUTAGE),
        (29, 9, 30, True, Status.SUPPRESSED),  # a mark does not undo the policy
    ):
        sizes = {"n_visitors": n_visitors, "n_reports": n_reports, "small_cell": small_cell}
        assert window_status(**sizes, is_outage=is_outage) == expected, (sizes, is_outage)


def test_the_mean_width_decides_for_all_categories_together() -> None:
    wide = WIDEST_INTERVAL + 0.01
    for low in (-0.3, 0.0, 0.45):
        for more, less, is_read in ((0, 0, False), (0, 0.04, True), (0.05, 0.04, False)):
            ends = {"ci_low": [low, low], "ci_high": [low + wide + more, low + wide - less]}
            assert estimates_status(Status.OK, **ends) == (Status.OK if is_read else Status.NOT_RELIABLE)
            assert estimates_status(Status.OUTAGE, **ends) == Status.OUTAGE


def test_no_report_shows_only_its_lowest_estimates() -> None:
    """An interval is wider where its estimate is higher: what a width left out would bias what stays."""
    seen: set[str] = set()
    for n in range(60, 400, 40):
        study = factory.create(EIGHT, slug=f"of-{n}")
        factory.publish(study, factory.crowd(study, n=n, seed=n))
        report = queries.window_report(study.indicators.get(), Window(1, 4))
        assert len({estimate.status for estimate in report.estimates}) == 1
        widths = [(estimate.ci_high or 0) - (estimate.ci_low or 0) for estimate in report.estimates]
        seen |= {report.status, "mixed" if min(widths) < WIDEST_INTERVAL < max(widths) else ""}
    assert seen >= {Status.OK, Status.NOT_RELIABLE, "mixed"}


def test_few_answers_are_not_reliable_and_only_files_keep_their_numbers(reader) -> None:
    report = report_of(factory.published(n=120), 1, 1)
    assert report.status == Status.NOT_RELIABLE
    record = records("--indicator", "gender", "--from", "2024-05-30", "--to", "2024-05-30")[0]
    text = shown(reader, **{"from": "2024-05-30"})
    for estimate, exported in zip(report.estimates, record["estimates"], strict=True):
        assert estimate.ci_high - estimate.ci_low > WIDEST_INTERVAL
        assert (exported["status"], exported["frequency"]) == ("not_reliable", estimate.frequency)
        assert list(exported)[-1] == "status"
        assert estimates_texts.share_range(estimate) in text
        assert f">{formats.percent(estimate.frequency)}<" not in text
    figure = charts.report_figure(report)
    told = {*figure["data"][0]["marker"]["color"], *figure["data"][1]["text"]}
    assert told == {"rgba(0,0,0,0)", " ? not reliable"}
    assert charts.days_figure([report], shown=[0])["data"][1]["y"] == [None]
    assert "cannot distinguish a share of one quarter from a share of three quarters" in text


def test_small_windows_are_suppressed_everywhere(reader) -> None:
    study = factory.create(small_cell=3000)
    one_day = int(factory.publish(study, factory.crowd(study)).visitors[0, 1])
    report = report_of(study, 1, 1)
    assert 0 < one_day < 3000
    assert (report.status, report.n_visitors, report.n_reports) == (Status.SUPPRESSED, None, None)
    hidden = queries.Estimate(category="F", reports=None, status=Status.SUPPRESSED)
    assert list(report.estimates) == [hidden._replace(category=name) for name in ("F", "M", "NR")]
    assert report_of(study, 1, 4).status == Status.OK
    record = records("--indicator", "gender")[0]
    assert (record["n_visitors"], record["n_reports"]) == (None, None)
    day = shown(reader, **{"from": "2024-05-30"})
    for text in (day, shown(reader), shown(reader, "days"), shown(reader, "study")):
        assert (formats.number(one_day) in text, "suppressed" in text) == (False, True)
    assert "policy of the study. It is not part of the privacy guarantee" in day
    Study.objects.update(small_cell=5000)
    assert queries.study_summaries(Study.objects.all())[0].n_visitors is None


def test_day_without_data_is_not_collected_and_not_zero(reader) -> None:
    report = report_of(factory.published(gap=3), 3, 3)
    assert {report.status, *(estimate.status for estimate in report.estimates)} == {Status.NOT_COLLECTED}
    text = shown(reader, "days", values="unbiased")
    assert text.count("not collected") >= len(report.estimates)
    assert "0.0%" not in text
    day = shown(reader, slug="age", **{"from": "2024-06-01"})
    facts = re.findall(r'<dd id="n-(?:visitors|reports)">(.*?)</dd>', day, re.DOTALL)
    assert ["not collected" in fact and "0" not in fact for fact in facts] == [True, True]
    whole = shown(reader)  # names the days that it lacks, and in its grid no data is not zero either
    assert "Sat 1 Jun 2024</li>" in whole
    assert "Sat 1 Jun 2024</li>" not in shown(reader, **{"from": "2024-05-30", "to": "2024-05-31"})
    assert ("Sat 1 Jun 2024: not collected" in whole, ">0<" in whole) == (True, False)


def test_marked_day_is_an_outage_with_and_without_data(reader) -> None:
    study = factory.published(gap=3)
    note(study, DAY_3, "outage", "Power cut at the core site")
    note(study, date(2024, 5, 31), "outage", "Half the cells")
    empty, part = report_of(study, 3, 3), report_of(study, 2, 2)
    assert (empty.status, part.status, empty.estimates[0].frequency) == (Status.OUTAGE, Status.OUTAGE, None)
    assert part.estimates[0].frequency is not None  # files keep the estimate, with its code
    assert f">{formats.percent(part.estimates[0].frequency)}<" not in shown(reader, **{"from": "2024-05-31"})
    assert "Power cut at the core site" in shown(reader, **{"from": "2024-06-01"})


def test_longer_window_with_an_outage_is_read_with_a_warning_and_an_event_changes_no_status(reader, fair):
    note(fair)
    note(fair, date(2024, 5, 30), "event", "Fireworks")
    for days, text in (((2, 3), "Power cut"), ((1, 1), "Fireworks"), ((1, 2), "Fireworks")):
        report = report_of(fair, *days)
        assert (report.status, [each.text for each in report.notes]) == (Status.OK, [text])
    assert "are missing from these figures" in shown(reader, **{"from": "2024-05-31", "to": "2024-06-01"})
    assert "Fireworks" in shown(reader, **{"from": "2024-05-30"})


def test_every_blank_has_its_own_word_sign_and_reason(fair) -> None:
    blanks = [status for status in Status if status != Status.OK]
    signs = {status: formats.status_sign(status) for status in blanks}
    assert signs.pop(Status.SMALL) == signs[Status.SUPPRESSED]  # both are too small to be shown
    for found in (signs.values(), [formats.status_word(status) for status in blanks]):
        assert len(set(found) - {""}) == len(found)
    assert formats.status_word(Status.OK) == formats.status_sign(Status.OK) == ""
    assert len({studies_texts.status_reason(status, fair) for status in blanks} - {""}) == len(blanks)
    assert "50 percentage points" in studies_texts.status_reason(Status.NOT_RELIABLE, fair)
    estimate = queries.Estimate(category="x", reports=3, frequency=0.5, status=Status.NOT_RELIABLE)
    assert (
        '<span class="visually-hidden">not reliable</span>'
        in consistent_cells(report_of(fair, 1, 1), [estimate], "frequency")[0]
    )
    assert "visually-hidden" not in share_cell(estimate)


def test_no_category_is_named_largest_where_it_has_nobody_or_more_than_all(fair) -> None:
    report = report_of(fair, 1, 4)
    low = report.estimates[0]._replace(frequency=-0.09, ci_low=-0.28, ci_high=0.2)
    for largest in (low, low._replace(frequency=1.01)):
        both = replace(report, estimates=(low._replace(frequency=-0.2), largest))
        text = estimates_texts.report_summary(both)
        assert "The noise is too large to identify the largest category" in text and "next one" not in text
    near = low._replace(frequency=-0.01, ci_low=-0.06, ci_high=0.04)
    most = near._replace(category="City", frequency=1.049, ci_low=0.973, ci_high=1.127)  # by noise
    both, unbiased = replace(report, estimates=(near, most)), ReportOptions(values="unbiased")
    assert f"{formats.percent(most.consistent)} (95% interval" in estimates_texts.report_summary(both)
    text = estimates_texts.report_summary(both, options=unbiased)
    assert "an estimated 104.9% (95% interval 97.3 to 112.7%) are in the largest category, City." in text


def test_summary_ranks_all_categories_of_a_report_and_leaves_none_out() -> None:
    report = report_of(factory.published(EIGHT, n=3000), 1, 4, slug="region")
    assert {estimate.status for estimate in report.estimates} == {Status.OK}
    by_size = sorted(report.estimates, key=lambda estimate: -estimate.frequency)
    wide = by_size[1]._replace(ci_low=0.01, ci_high=0.01 + 2 * WIDEST_INTERVAL)
    estimates = tuple(wide if each is by_size[1] else each for each in report.estimates)
    text = estimates_texts.report_summary(replace(report, estimates=estimates))
    assert f"the largest category, {by_size[0].category}." in text
    assert f"{by_size[1].category}, with {formats.percent(by_size[1].consistent)}" in text
    unsure = tuple(each._replace(ci_low=-0.01) if each is wide else each for each in estimates)
    assert "next largest" not in estimates_texts.report_summary(replace(report, estimates=unsure))


def test_summary_names_the_largest_recorded_category_and_says_apart_what_is_not_recorded() -> None:
    region = factory.indicator("region", "NR", *"ABCD")
    report = report_of(factory.published(region, n=3000), 1, 4, slug="region")
    by_size = sorted(report.estimates, key=lambda estimate: -estimate.frequency)
    assert by_size[0].category == "NR"
    first, second = by_size[1:3]
    text = estimates_texts.report_summary(report)
    assert f"an estimated {formats.percent(first.consistent)} (" in text
    assert f"the largest recorded category, {first.category}." in text
    assert f"The next largest recorded category is {second.category}," in text
    assert f"No value is recorded (NR) for {formats.percent(by_size[0].consistent)} (" in text
    rare = tuple(
        each._replace(frequency=0.01, ci_low=-0.01) if each is by_size[0] else each
        for each in report.estimates
    )
    text = estimates_texts.report_summary(replace(report, estimates=rare))
    assert f"the largest recorded category, {first.category}." in text and "No value" not in text
    parts = tuple(
        each._replace(category=f"{each.category} / Lille", frequency=each.frequency)
        for each in report.estimates
    )
    text = estimates_texts.report_summary(replace(report, estimates=parts))
    assert "Part of the value is not recorded (NR / Lille) for " in text


ADDRESS = "/studies/fair-2024/notes/"


def form(**changes: str) -> dict[str, str]:
    return {"day": "2024-05-31", "kind": "outage", "text": "Power cut"} | changes


def test_command_keeps_a_note_and_prints_it_or_says_what_is_wrong() -> None:
    study = factory.create()
    for args, message in (
        (["nope", "2024-05-31", "--event", "x"], r"the slug of a study \(fair-2024\), got nope"),
        (["fair-2024", "2024-06-03", "--event", "x"], "2024-05-30 to 2024-06-02, got 2024-06-03"),
        (["fair-2024", "May", "--event", "x"], "must be a date such as"),
        (["fair-2024", "2024-05-31"], "--outage --event is required"),
        (["fair-2024", "2024-05-31", "--outage", "x", "--event", "y"], "not allowed with"),
        (["fair-2024", "2024-05-31", "--outage", " "], "one line of 1 to 200 characters, got 0"),
    ):
        with pytest.raises(CommandError, match=message):
            printed("note_day", *args)
        assert not DayNote.objects.exists()
    found = json.loads(printed("note_day", "fair-2024", "2024-05-31", "--event", " Fireworks at nine "))
    told = {"kind": "event", "text": "Fireworks at nine"}
    assert found == {"study": "fair-2024", "day": "2024-05-31", **told}
    assert study.day_notes.values("kind", "text").get(day=2) == told


def test_a_note_replaces_its_kind_alone_has_one_line_and_a_kind_that_the_database_knows() -> None:
    study, other = factory.create(), factory.create(slug="other-2024")
    for kind, text in (("outage", "first"), ("event", "fair"), ("outage", "second")):
        note(study, kind=kind, text=text)
    assert sorted(study.day_notes.values_list("kind", "text")) == [("event", "fair"), ("outage", "second")]
    kept = note(study)
    assert [remove_note(each, note_id=kept.pk) for each in (other, study, study)] == [False, True, False]
    for text in ("", " ", "x" * 201, "two\nlines"):
        with pytest.raises(DayNoteError, match="one line of 1 to 200"):
            note(study, text=text)
    with pytest.raises(IntegrityError, match="day_note_kind"):
        DayNote.objects.create(study=study, day=1, kind="rumour", text="x", by="adam")


def test_only_operators_and_administrators_write_notes(operator, administrator, reader, fair) -> None:
    for person in (operator, administrator):
        writer = signed_in(person)
        answer, kept = writer.post(ADDRESS, form(), follow=True), fair.day_notes.get()
        assert "The note on Fri 31 May 2024 was saved" in answer.content.decode()
        assert (kept.text, kept.by, kept.kind) == ("Power cut", person.username, "outage")
        answer = writer.post(reverse("reports:remove_note", args=["fair-2024", kept.pk]), follow=True)
        assert ("The note was removed" in answer.content.decode(), fair.day_notes.exists()) == (True, False)
    assert reader.post(ADDRESS, form()).status_code == 404  # access to the page: test_permissions.py
    assert not fair.day_notes.exists()


def test_page_says_what_is_wrong(client, administrator) -> None:
    fair = factory.create()
    client.force_login(administrator)
    unseen = ("a\tb", "a\u200bb", "a\x07b", "one\u2028two")
    texts = [{"text": text} for text in ("", "x" * 201, *unseen)]
    for changes in ({"day": "2024-06-03"}, {"kind": "rumour"}, *texts):
        answer = client.post(ADDRESS, form(**changes))
        assert (answer.status_code, 'class="errorlist"' in answer.content.decode()) == (400, True)
        assert ("Enter one line" in answer.content.decode()) == (changes.get("text") in unseen)
        assert not fair.day_notes.exists()
    french = "Panne\u00a0: 3\u202f000 abonnés"  # its spaces are text
    assert client.post(ADDRESS, form(text=french)).status_code == 302
    assert fair.day_notes.get().text == french
