"""Pages of coverage and checks; batches as services leave them."""

import csv
import io
import json
import re
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from mobility.models import Batch, ExtractProfile, VaultDay, VaultStudy
from mobility.quality.coverage import coverage_of
from tests.mobility.quality.deliveries_by_hand import day_hours
from tests.mobility.views.small_study import STUDY_URL, page, text_of

pytestmark = pytest.mark.django_db(databases=["default", "vault"], transaction=True)
COVERAGE_URL = "/operator/fair/coverage/"
FULL = day_hours(100)
START = datetime(2024, 6, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _signed_in(client: Client, operator: User) -> None:
    client.force_login(operator)


def ended(
    study: VaultStudy, at: int, hours: dict[int, list[int]] | None = None, *,
    checks: dict[str, Any] | None = None, **fields: Any,
) -> Batch:  # fmt: skip
    """A batch that ended `at` hours after the others, with accepted rows by day and hour."""
    hours = hours or {}
    accepted = sum(sum(of_day) for of_day in hours.values())
    given = {
        "state": Batch.State.DONE,
        "filename": f"file-{at}.csv",
        "finished_at": START + timedelta(hours=at),
        "days_touched": sorted(hours),
        "rows_read": accepted,
        "rows_accepted": accepted,
        "checks": {"hours": {str(day): of_day for day, of_day in hours.items()}, **(checks or {})},
    }
    return Batch.objects.create(study=study, **{**given, **fields})


def shown(client: Client, batch: Batch) -> str:
    return page(client, reverse("operator:batch", args=[batch.pk]))


class TestCoverage:
    def test_it_leads_to_the_notes_on_days(self, client: Client, study: VaultStudy) -> None:
        address = reverse("reports:notes", args=[study.slug])
        assert f'href="{address}"' in client.get(COVERAGE_URL).content.decode()
        assert client.get(address).status_code == 200

    def test_every_state_of_a_day_has_its_words_and_its_reason(
        self, client: Client, study: VaultStudy
    ) -> None:
        ended(study, 1, {1: day_hours(100, silent=(9, 10)), 2: FULL, 3: FULL})
        ended(study, 2, {3: FULL}, state=Batch.State.FAILED, failure="3 of 9 rows cannot be used")
        text = page(client, COVERAGE_URL)
        assert "C complete 1 day P partial 1 day F failed 1 day" in text
        assert "Wed 1 May 2024 P partial No events between 09:00 and 11:00: an outage? 200 1" in text
        assert "Thu 2 May 2024 C complete 400 1" in text
        assert (
            "Fri 3 May 2024 F failed file-2.csv: 3 of 9 rows cannot be used "
            "Rows of earlier files are in the study. See that batch 400 1"
        ) in text

    def test_a_study_without_files_is_missing_every_day(self, client: Client, study: VaultStudy) -> None:
        text = page(client, COVERAGE_URL)
        assert "Source default M missing 3 days" in text
        assert "Not attributed to a day" not in text

    def test_days_end_in_the_time_zone_of_the_study(self, study: VaultStudy) -> None:
        def statuses(now: str) -> list[str]:
            (source,) = coverage_of(study.pk, now=datetime.fromisoformat(now)).sources
            return [day.status.value for day in source.days]

        assert statuses("2024-05-01T21:59:59+00:00") == ["not_due"] * 3
        assert statuses("2024-05-01T22:00:00+00:00") == ["missing", "not_due", "not_due"]

    def test_sources_stand_beside_each_other_and_expected_ones_too(
        self, client: Client, study: VaultStudy
    ) -> None:
        ended(study, 1, {1: FULL})
        ended(study, 2, {2: FULL}, profile="roaming")
        ExtractProfile.objects.create(study=study, name="core", definition={"kind": "events"})
        ExtractProfile.objects.create(study=study, name="people", definition={"kind": "subscribers"})
        text = page(client, COVERAGE_URL)
        assert "Source default C complete 1 day M missing 2 days" in text
        assert "Source core M missing 3 days" in text
        assert "Source roaming C complete 1 day" in text
        assert "Source people" not in text
        day = text.split("Source core")[0]
        assert day.index("Source default") > 0

    def test_files_that_were_only_checked_or_cancelled_or_the_same_cover_nothing(
        self, client: Client, study: VaultStudy
    ) -> None:
        first = ended(study, 1, {1: FULL})
        ended(study, 2, {2: FULL}, validate_only=True)
        ended(study, 3, {2: FULL}, state=Batch.State.CANCELLED, failure="cancelled by olga")
        ended(study, 4, {2: FULL}, duplicate_of=first)
        ended(study, 5, {2: FULL}, kind=Batch.Kind.SUBSCRIBERS)
        assert "C complete 1 day M missing 2 days" in page(client, COVERAGE_URL)

    def test_a_day_that_was_undone_is_undone(self, client: Client, study: VaultStudy) -> None:
        ended(study, 1, {1: FULL})
        ended(study, 2, kind=Batch.Kind.VOID_DAY, day=1, filename="")
        assert "Wed 1 May 2024 U undone" in page(client, COVERAGE_URL)

    def test_announced_files_are_waited_for_until_the_day_is_closed(
        self, client: Client, study: VaultStudy
    ) -> None:
        ended(study, 1, {1: FULL}, more_to_come=True)
        text = page(client, COVERAGE_URL)
        assert "P partial More files were announced and have not come. 400 1" in text
        VaultDay.objects.create(study=study, day=1, state=VaultDay.State.CLOSED)
        assert "C complete 400 1" in page(client, COVERAGE_URL)

    def test_a_file_that_failed_early_is_named_apart(self, client: Client, study: VaultStudy) -> None:
        ended(study, 1, state=Batch.State.FAILED, failure="the header has no column time", checks={})
        text = page(client, COVERAGE_URL)
        assert "Not attributed to a day" in text
        assert "file-1.csv default the header has no column time" in text

    def test_every_day_of_the_calendar_leads_to_its_line(self, client: Client, study: VaultStudy) -> None:
        ended(study, 1, {1: FULL})
        html = client.get(COVERAGE_URL).content.decode()
        assert re.findall(r'href="#(source-1-day-\d)"', html) == [f"source-1-day-{day}" for day in (1, 2, 2)]
        assert re.findall(r'<tr id="(source-1-day-\d)"', html) == ["source-1-day-1", "source-1-day-2"]
        # the first is a Wednesday, and weeks begin on Monday
        assert re.search(r"<tr>(<td></td>){2}(<td><a .*?</a></td>){3}(<td></td>){2}</tr>", html)
        assert "Thu 2 May 2024 to Fri 3 May 2024 (2 days)" in text_of(html).replace("\u202f", " ")

    def test_the_page_of_the_study_marks_its_days(self, client: Client, study: VaultStudy) -> None:
        ended(study, 1, {1: FULL, 2: FULL})
        text = page(client, STUDY_URL)
        assert "Wed 1 May 2024 no data C default: complete" in text
        assert "Fri 3 May 2024 no data M default: missing" in text
        assert "Marks of a day stand in this order" not in text
        ended(study, 2, {3: FULL}, profile="roaming")
        text = page(client, STUDY_URL)
        assert "Fri 3 May 2024 no data M default: missing C roaming: complete" in text
        assert "Marks of a day stand in this order: default , roaming" in text

    def test_the_number_of_queries_does_not_grow(
        self, client: Client, study: VaultStudy, django_assert_max_num_queries: Any
    ) -> None:
        for at in range(1, 30):
            ended(study, at, {1 + at % 3: FULL}, profile=f"source-{at % 5}")
        with django_assert_max_num_queries(7, using="vault"):
            client.get(COVERAGE_URL)


class TestChecks:
    CHECKS = {
        "empty": {"msisdn": 0, "age": 90},
        "columns": {"bad_timestamp": ["time"], "unknown_value": ["age", "gender"], "outside_hours": ["time"]},
        "unmatched_cells": [[f"FR-{cell}", 100 - cell] for cell in range(12)],
        "unmatched_more": 5,
        "unmatched_hidden": 1,
        "located": 380,
        "locatable_of": 400,
        "first_event": 1714543200,
        "last_event": 1714586400,
        "duplicates": 10,
        "duplicates_of": 400,
        "subscribers": 123,
        "day_subscribers": {"2": 123},
    }

    def full(self, study: VaultStudy, **fields: Any) -> Batch:
        return ended(
            study, 9, {2: day_hours(100, silent=(9,))}, checks=self.CHECKS, rows_read=400,
            **{"rows_rejected": {"bad_timestamp": 30, "unknown_value": 10},
               "rows_ignored": {"outside_hours": 60},
               "rejected_lines": {"bad_timestamp": [2, 3], "unknown_value": [8]}, **fields},
        )  # fmt: skip

    def test_every_number_stands_beside_its_whole(self, client: Client, study: VaultStudy) -> None:
        text = shown(client, self.full(study))
        assert "Earliest event Wed 1 May 2024, 08:00:00 (UTC+02:00)" in text
        assert "Latest event Wed 1 May 2024, 20:00:00 (UTC+02:00)" in text
        assert "list 380 of 400 (95.0 %)" in text
        assert "Duplicates 10 of 400 (2.5 %)" in text
        assert "Subscribers 123" in text
        assert "age 90 of 400 (22.5 %) msisdn 0 of 400 (0.0 %)" in text
        assert "something is wrong with 40 of 400 rows" in text
        assert "does not ask about 60 of 400 rows" in text

    def test_reasons_name_lines_and_columns(self, client: Client, study: VaultStudy) -> None:
        text = shown(client, self.full(study))
        assert "bad_timestamp 30 2, 3 time" in text
        assert "unknown_value 10 8 one of age , gender" in text
        assert "outside_hours 60 time" in text

    def test_opted_out_and_misshapen_rows_are_not_asked_for_values(
        self, client: Client, study: VaultStudy
    ) -> None:
        batch = self.full(
            study, rows_rejected={"wrong_columns": 5, "bad_text": 5}, rows_ignored={"opted_out": 30}
        )
        assert "age 90 of 360 (25.0 %)" in shown(client, batch)

    def test_it_stands_beside_what_came_before(self, client: Client, study: VaultStudy) -> None:
        ended(
            study,
            1,
            {1: day_hours(300), 3: day_hours(300)},
            checks={"day_subscribers": {"1": 150}, "empty": {"age": 0}},
        )
        text = shown(client, self.full(study))
        assert "4 things are unusual" in text
        assert "no events between 09:00 and 10:00, where there are usually 300 rows" in text
        assert (
            "Rows accepted: 300, usually 1 200 (median of 2 earlier days). Is a part of the file missing?"
            in text
        )
        assert "Rejected rows: 10.0 % of the file, usually 0.0 % (1 earlier file)." in text
        assert "Thu 2 May 2024: Subscribers 123 150 1 earlier day as usual" in text

    def test_later_files_do_not_change_what_was_noticed(self, client: Client, study: VaultStudy) -> None:
        batch = self.full(study)
        ended(study, 10, {1: day_hours(900)})
        assert "nothing to compare with yet" in shown(client, batch)

    def test_a_file_as_usual_says_so(self, client: Client, study: VaultStudy) -> None:
        ended(study, 1, {1: FULL})
        text = shown(client, ended(study, 2, {2: FULL}))
        assert "Nothing unusual beside what came before from this source." in text

    def test_unmatched_cells_are_listed_and_can_be_downloaded(
        self, client: Client, study: VaultStudy
    ) -> None:
        batch = self.full(study)
        text = shown(client, batch)
        assert "FR-0 100 FR-1 99" in text
        assert "FR-9 91" in text
        assert "FR-10" not in text
        assert "5 rows with further cells are not listed." in text
        assert "1 row has a text there that does not look like a cell" in text
        response = client.get(reverse("operator:unmatched_cells", args=[batch.pk]))
        assert response.headers["Content-Type"] == "text/csv; charset=utf-8"
        assert f'filename="unmatched-cells-{batch.pk}.csv"' in response.headers["Content-Disposition"]
        rows = list(csv.reader(io.StringIO(response.content.decode())))
        assert rows[:2] == [["cell_id", "rows"], ["FR-0", "100"]]
        assert len(rows) == 13

    @pytest.mark.parametrize(
        ("state", "failure"),
        [(Batch.State.FAILED, "40 of 400 rows cannot be used"), (Batch.State.MERGING, "")],
    )
    def test_they_are_shown_after_reading_however_it_goes_on(
        self, client: Client, study: VaultStudy, state: str, failure: str
    ) -> None:
        finished = {} if failure else {"finished_at": None}
        text = shown(client, self.full(study, state=state, failure=failure, **finished))
        assert "380 of 400 (95.0 %)" in text
        assert ("Beside what came before" in text) is bool(failure)

    def test_a_batch_that_was_not_read_has_none(self, client: Client, study: VaultStudy) -> None:
        batch = ended(study, 1, state=Batch.State.FAILED, failure="truncated")
        Batch.objects.filter(pk=batch.pk).update(checks={})
        assert "Checks" not in shown(client, batch)

    def test_a_file_that_was_only_checked_leads_to_the_real_upload(
        self, client: Client, study: VaultStudy
    ) -> None:
        text = shown(client, self.full(study, validate_only=True))
        assert "The file was only checked: nothing of it was kept or published." in text
        assert "Subscribers it would add" in text
        assert "Upload it for real" in text
        assert "for the next file" not in text

    def test_a_file_that_announced_more_waits_with_its_days(self, client: Client, study: VaultStudy) -> None:
        ended(study, 1, {1: day_hours(300)})
        text = shown(client, self.full(study, more_to_come=True))
        assert "compared when their last file is there" in text
        assert "no events between" not in text


class TestCommand:
    def test_it_prints_one_json_value(self, study: VaultStudy) -> None:
        ended(study, 1, {1: day_hours(100, silent=(9,)), 2: FULL, 3: FULL})
        failed = ended(study, 2, {2: FULL}, state=Batch.State.FAILED, failure="refused", more_to_come=True)
        lost = ended(study, 3, state=Batch.State.FAILED, failure="truncated")
        out = StringIO()
        call_command("coverage", "fair", stdout=out)
        found = json.loads(out.getvalue())
        assert (found["study"], found["timezone"]) == ("fair", "Europe/Paris")
        (source,) = found["sources"]
        assert source["source"] == "default"
        assert source["days"][0] == {
            "date": "2024-05-01", "status": "partial", "rows_accepted": 300, "files": 1,
            "more_to_come": False, "silent_hours": [[9, 10]], "failure": "", "failed_batch": None,
        }  # fmt: skip
        assert source["days"][1]["status"] == "failed"
        assert source["days"][1]["failure"] == "refused"
        assert source["days"][1]["failed_batch"] == str(failed.pk)
        assert found["unattributed"] == [
            {"batch": str(lost.pk), "filename": "file-3.csv", "source": "default", "failure": "truncated"}
        ]

    def test_an_unknown_study_is_an_error(self, study: VaultStudy) -> None:
        with pytest.raises(CommandError, match="no study 'fare'; studies: fair"):
            call_command("coverage", "fare")
