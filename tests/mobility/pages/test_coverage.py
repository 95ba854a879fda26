"""Days and sources on the calendar, and checks of files on the page of a batch."""
# Which day is complete and what is unusual: tests/mobility/batches/quality.

import csv
import io
import json
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from mobility.batches.quality.coverage import coverage_of
from mobility.extracts.profiles.typed import TypedProfile
from mobility.models import Batch, ExtractProfile, VaultStudy
from mobility.plans.studies import create_study
from mobility.uploads import actions as uploads
from tests.mobility.batches.quality.deliveries_by_hand import day_hours
from tests.mobility.commands import printed
from tests.mobility.pages.pages import AS_OPERATOR, html_of, page, says, text_of
from tests.mobility.pages.small_study import STUDY, STUDY_URL, definition_of

pytestmark = AS_OPERATOR
COVERAGE_URL = "/operator/fair/coverage/"
FULL = day_hours(100)
START = datetime(2024, 6, 1, tzinfo=UTC)


def ended(study, at, hours=None, *, checks=None, **fields) -> Batch:
    """A batch that ended `at` hours after the others, with accepted rows by day and hour."""
    hours = hours or {}
    accepted = sum(sum(of_day) for of_day in hours.values())
    given = {
        "state": Batch.State.DONE, "filename": f"file-{at}.csv", "finished_at": START + timedelta(hours=at),
        "days_touched": sorted(hours), "rows_read": accepted, "rows_accepted": accepted,
        "checks": {"hours": {str(day): of_day for day, of_day in hours.items()}, **(checks or {})},
    }  # fmt: skip
    return Batch.objects.create(study=study, **{**given, **fields})


def shown(client, batch):
    return page(client, reverse("operator:batch", args=[batch.pk]))


class TestCoverage:
    def test_every_state_of_a_day_has_its_words_and_its_reason(self, client, study):
        text = page(client, COVERAGE_URL)
        assert "Source default M missing 3 days" in text and "Files not attributed to a day" not in text
        ended(study, 1, {1: day_hours(100, silent=(9, 10)), 2: FULL, 3: FULL})
        ended(study, 2, {3: FULL}, state=Batch.State.FAILED, failure="3 of 9 rows cannot be used")
        text = page(client, COVERAGE_URL)
        assert "C complete 1 day P partial 1 day F failed 1 day" in text
        says(
            text,
            "Wed 1 May 2024 P partial No events between 09:00 and 11:00. Was there an outage? 200 file-1.csv",
        )
        failed = "Fri 3 May 2024 F failed file-2.csv: 3 of 9 rows cannot be used"
        earlier = "The study still contains rows for this day from earlier files."
        says(
            text,
            "Thu 2 May 2024 C complete 400 file-1.csv",
            f"{failed} {earlier} Open the failed batch 400 file-1.csv",
        )
        ended(study, 3, kind=Batch.Kind.VOID_DAY, day=1, filename="")
        ended(study, 4, state=Batch.State.FAILED, failure="the header has no column time", checks={})
        lost = "file-4.csv default the header has no column time"
        says(page(client, COVERAGE_URL), "Wed 1 May 2024 U undone", "Files not attributed to a day", lost)

    def test_days_end_in_the_time_zone_of_the_study(self, study):
        for now, first in (("21:59:59", "not_due"), ("22:00:00", "missing")):
            (source,) = coverage_of(study.pk, now=datetime.fromisoformat(f"2024-05-01T{now}+00:00")).sources
            assert [day.status.value for day in source.days] == [first, "not_due", "not_due"]

    def test_sources_and_expected_ones_add_no_query(self, client, study, django_assert_max_num_queries):
        ended(study, 1, {1: FULL})
        ended(study, 2, {2: FULL}, profile="roaming")
        ExtractProfile.objects.create(study=study, name="core", definition={"kind": "events"})
        ExtractProfile.objects.create(study=study, name="people", definition={"kind": "subscribers"})
        text = page(client, COVERAGE_URL)
        assert "Source default C complete 1 day M missing 2 days" in text
        core = "Source core M missing 1 day – not expected 2 days"  # noqa: RUF001
        assert core in text.split("Source default")[1]
        assert "Source roaming C complete 1 day" in text and "Source people" not in text
        for at in range(3, 30):
            ended(study, at, {1 + at % 3: FULL}, profile=f"source-{at % 5}")
        with django_assert_max_num_queries(7, using="vault"):
            client.get(COVERAGE_URL)

    def test_a_source_is_expected_once_a_file_of_it_was_taken_in(self, client, study):
        ended(study, 1, state=Batch.State.FAILED, failure="no column msisdn")
        ended(study, 2, {1: FULL}, profile="roaming")
        text = page(client, COVERAGE_URL)
        assert "Source default" not in text and "Source roaming C complete 1 day" in text
        assert "default: missing" not in page(client, STUDY_URL)
        ended(study, 3, {2: FULL})
        assert "Source default C complete 1 day" in page(client, COVERAGE_URL)

    def test_the_profile_of_the_last_good_file_is_proposed(self, client, study):
        columns = {"subscriber": "imsi", "timestamp": "at", "cell": "lac"}
        made = TypedProfile(name="roaming", kind="events", max_bad_share=Decimal(0), **columns)
        ExtractProfile.objects.create(study=study, name="roaming", definition=made.to_json())
        feeds = reverse("operator:feeds", args=[study.slug])
        ended(study, 1, {1: FULL}, profile="roaming")
        ended(study, 2, state=Batch.State.FAILED, failure="no column msisdn")
        ended(study, 3, kind=Batch.Kind.OPT_OUT, profile="opt-out")
        assert '<option value="roaming" selected' in html_of(client, STUDY_URL)
        says(page(client, STUDY_URL), "this profile: roaming . Its columns, in any order: imsi, at, lac .")
        assert "FILE?profile=roaming" in html_of(client, feeds)
        ended(study, 4, {2: FULL}, validate_only=True)
        assert '<option value="default" selected' in html_of(client, STUDY_URL)
        assert "FILE?profile=default" in html_of(client, feeds)

    def test_files_that_were_only_checked_or_cancelled_or_the_same_cover_nothing(self, client, study):
        first = ended(study, 1, {1: FULL})
        ended(study, 2, {2: FULL}, validate_only=True)
        ended(study, 3, {2: FULL}, state=Batch.State.CANCELLED, failure="cancelled by olga")
        ended(study, 4, {2: FULL}, duplicate_of=first)
        ended(study, 5, {2: FULL}, kind=Batch.Kind.SUBSCRIBERS)
        assert "C complete 1 day M missing 2 days" in page(client, COVERAGE_URL)

    def test_every_day_leads_to_the_batches_whose_rows_it_has(self, client, study):
        undone = ended(study, 1, {1: FULL})
        ended(study, 2, kind=Batch.Kind.VOID_DAY, day=1, filename="")
        kept = [ended(study, at, {1: FULL}) for at in (3, 4)]
        html = html_of(client, COVERAGE_URL)
        links = [f'href="{reverse("operator:batch", args=[batch.pk])}"' in html for batch in (undone, *kept)]
        assert links == [False, True, True]

    def test_every_day_of_the_calendar_leads_to_its_line(self, client, study):
        ended(study, 1, {1: FULL})
        html = html_of(client, COVERAGE_URL)
        assert f'href="{reverse("reports:notes", args=[study.slug])}"' in html
        assert re.findall(r'href="#(source-1-day-\d)"', html) == [f"source-1-day-{day}" for day in (1, 2, 2)]
        assert re.findall(r'<tr id="(source-1-day-\d)"', html) == ["source-1-day-1", "source-1-day-2"]
        # the first is a Wednesday, and weeks begin on Monday
        assert re.search(r"<tr>(<td></td>){2}(<td><a .*?</a></td>){3}(<td></td>){2}</tr>", html)
        assert "Thu 2 May 2024 to Fri 3 May 2024 (2 days)" in text_of(html)

    def test_the_page_of_the_study_marks_its_days(self, client, study):
        ended(study, 1, {1: FULL, 2: FULL})
        text = page(client, STUDY_URL)
        says(text, "Wed 1 May 2024 no data C default: complete", "Fri 3 May 2024 no data M default: missing")
        assert "Sources, left to right" not in text
        ended(study, 2, {3: FULL}, profile="roaming")
        text = page(client, STUDY_URL)
        assert "Fri 3 May 2024 no data M default: missing C roaming: complete" in text
        assert "Sources, left to right: default , roaming" in text

    def test_the_command_prints_one_json_value(self, study):
        ended(study, 1, {1: day_hours(100, silent=(9,)), 2: FULL, 3: FULL})
        failed = ended(study, 2, {2: FULL}, state=Batch.State.FAILED, failure="refused", more_to_come=True)
        lost = ended(study, 3, state=Batch.State.FAILED, failure="truncated")
        found = printed("coverage", "fair")
        assert (found["study"], found["timezone"]) == ("fair", "Europe/Paris")
        (source,) = found["sources"]
        assert source["source"] == "default"
        assert source["days"][0] == {
            "date": "2024-05-01", "status": "partial", "rows_with_duplicates": 300, "files": 1,
            "more_to_come": False, "silent_hours": [[9, 10]], "failure": "", "failed_batch": None,
        }  # fmt: skip
        second = {"status": "failed", "failure": "refused", "failed_batch": str(failed.pk)}
        assert second.items() <= source["days"][1].items()
        about = {"filename": "file-3.csv", "source": "default", "failure": "truncated"}
        assert found["unattributed"] == [{"batch": str(lost.pk), **about}]
        with pytest.raises(CommandError, match="no study 'fare'; studies: fair"):
            call_command("coverage", "fare")


class TestChecks:
    CHECKS = {
        "empty": {"msisdn": 0, "age": 90},
        "columns": {"bad_timestamp": ["time"], "unknown_value": ["age", "gender"], "outside_hours": ["time"]},
        "unmatched_cells": [[f"FR-{cell}", 100 - cell] for cell in range(12)],
        "unmatched_more": 5, "unmatched_hidden": 1, "located": 380, "locatable_of": 400,
        "first_event": 1714543200, "last_event": 1714586400, "duplicates": 10, "duplicates_of": 400,
        "subscribers": 123, "day_subscribers": {"2": 123},
    }  # fmt: skip

    def full(self, study, **fields):
        return ended(
            study, 9, {2: day_hours(100, silent=(9,))}, checks=self.CHECKS, rows_read=400,
            **{"rows_rejected": {"bad_timestamp": 30, "unknown_value": 10},
               "rows_ignored": {"outside_hours": 60},
               "rejected_lines": {"bad_timestamp": [2, 3], "unknown_value": [8]}, **fields},
        )  # fmt: skip

    def test_it_stands_beside_what_came_before(self, client, study):
        before = {"day_subscribers": {"1": 150}, "empty": {"age": 0}}
        ended(study, 1, {1: day_hours(300), 3: day_hours(300)}, checks=before)
        text = shown(client, self.full(study))
        assert "This is the first file from its source" not in text
        says(text, "4 values are unusual", "Thu 2 May 2024: Subscribers 123 150 1 earlier day normal")
        says(text, "Rejected rows: 10.0% in this file, usually 0.0% (1 earlier file).")

    def test_unmatched_cells_are_listed_and_can_be_downloaded(self, client, study):
        batch = self.full(study)
        text = shown(client, batch)
        says(
            text, "FR-0 100 FR-1 99", "FR-9 91",
            "For 5 of the rows outside the area, the network cells are not listed.",
        )  # fmt: skip
        says(text, "In 1 row, the text in the cell column differs so much")
        assert "FR-10" not in text
        response = client.get(reverse("operator:unmatched_cells", args=[batch.pk]))
        assert response.headers["Content-Type"] == "text/csv; charset=utf-8"
        assert f'filename="unmatched-cells-{batch.pk}.csv"' in response.headers["Content-Disposition"]
        rows = list(csv.reader(io.StringIO(response.content.decode())))
        assert (rows[:2], len(rows)) == ([["cell_id", "rows"], ["FR-0", "100"]], 13)

    def test_they_are_shown_after_reading_however_it_goes_on(self, client, study):
        failed = self.full(study, state=Batch.State.FAILED, failure="40 of 400 rows cannot be used")
        merging = self.full(study, state=Batch.State.MERGING, finished_at=None)
        unread = ended(study, 1, state=Batch.State.FAILED, failure="truncated")
        Batch.objects.filter(pk=unread.pk).update(checks={})
        expected = ((failed, True, True), (merging, True, False), (unread, False, False))
        for batch, is_read, is_compared in expected:
            text = shown(client, batch)
            assert ("380 of 400 (95.0%)" in text, "Checks" in text) == (is_read, is_read)
            assert ("Compared with earlier files" in text) is is_compared

    def test_a_file_that_was_only_checked_leads_to_the_real_upload(self, client, study):
        text = shown(client, self.full(study, validate_only=True))
        assert "This was only a check. No data from the file was kept or published." in text
        says(text, "Subscribers in the file", "Choose the file again to publish it")
        assert "Upload another file" not in text


class TestOfFiles:  # checks of real files, from the upload to the page and to the calendar
    SWAPPED = "33699999999"  # an identifier in the column of the cells

    @pytest.fixture
    def study(self, data_dir) -> VaultStudy:
        text = STUDY.replace('timestamp = "time"\n', 'timestamp = "time"\ncell = "cell"\n')
        text += '[area]\ncells = "cells.csv"\n'
        cells = b"cell_id,lon,lat\nFR-101,6.0,47.0\nFR-2000,6.0,47.0\n"
        create_study(definition_of(text, cells), by="adam")
        return VaultStudy.objects.get(slug="fair")

    @pytest.fixture
    def take_in(self, study, run_batches):
        def run(*parts, **options):
            body = ("msisdn,time,age,cell\n" + "".join(parts)).encode()
            given = {"filename": "day.csv", "more_to_come": False, "bytes_total": len(body), **options}
            batch = uploads.receive(io.BytesIO(body), study=study, by="olga", **given)
            run_batches()
            batch.refresh_from_db()
            return batch

        return run

    def events(self, day, *, people=30, hours=(8, 9, 10, 11)):
        asked = [(hour, who) for hour in hours for who in range(people)]
        row = "336{who:08},2024-05-0{day}T{hour:02}:{minute:02}:00,old,FR-101\n"
        return "".join(row.format(who=who, day=day, hour=hour, minute=who % 60) for hour, who in asked)

    def test_the_page_says_what_the_file_holds_and_no_identifier_of_a_wrong_column(self, client, take_in):
        batch = take_in(
            self.events(1, people=10),
            "1,2024-05-01T10:00:00,old,FR-101\n" * 3,  # two are duplicates
            "2,2024-05-01T10:00:00,,FR-999\n",
            "3,2024-05-01T10:00:00,,FR-999\n",
            f"4,2024-05-01T10:00:00,old,{self.SWAPPED}\n",
            "5,2024-05-01T23:59:59,old,\n",
            "6,never,ancient,FR-101\n",
            "too,few\n",
        )
        assert batch.state == Batch.State.DONE, batch.failure
        text = shown(client, batch)
        says(text, "Earliest event Wed 1 May 2024, 08:00:00 (UTC+02:00)", "Duplicates 2 of 43 (4.7%)")
        says(
            text,
            "Latest event Wed 1 May 2024, 23:59:59 (UTC+02:00)",
            "before the visitor rule 11",
            "FR-999 2",
        )
        says(text, "area 43 of 47 (91.5%)")  # 40 + 3; the cells of five others are unknown, strange or empty
        says(text, "They count as outside the area: 3 of 47 (6.4%)", "Otherwise, you need not do anything")
        says(text, "age 2 of 48 (4.2%) cell 1 of 48 (2.1%) msisdn 0 of 48 (0.0%) time 0 of 48 (0.0%)")
        says(text, "3 of 49 rows contain errors", "bad_timestamp 1 49 time", "wrong_columns 1 50")
        says(text, "In 1 row, the text in the cell column differs so much")
        kept = json.dumps([str(value) for value in Batch.objects.filter(pk=batch.pk).values_list()])
        assert "FR-999" in kept
        assert self.SWAPPED not in kept + text
