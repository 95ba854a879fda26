"""Pages of operators: what they show, and that an extract goes in as a raw body and nowhere else."""

import json
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadhandler import MemoryFileUploadHandler, TemporaryFileUploadHandler
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from mobility import wording
from mobility.ingest.rows import IGNORED, REJECTED
from mobility.keystore import keystore
from mobility.models import Batch, VaultDay, VaultStudy
from reports.policies import Role
from tests.mobility.views.small_study import extract, rows

pytestmark = pytest.mark.django_db(databases=["default", "vault"], transaction=True)
Run = Callable[[], None]
STUDY_URL = "/operator/fair/"
UPLOAD_URL = "/operator/fair/upload/"
GOOD = extract(rows("a", "b", "c"))


@pytest.fixture(autouse=True)
def _signed_in(client: Client, operator: User) -> None:
    client.force_login(operator)


def page(client: Client, url: str) -> str:
    response = client.get(url)
    assert response.status_code == 200
    return text_of(response.content.decode())


def text_of(html: str) -> str:
    """Words of a page without its tags."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html)).replace("\u202f", " ")


def put(client: Client, body: bytes = GOOD, *, filename: str = "day.csv", more: bool = False) -> Batch:
    response = client.put(
        f"{UPLOAD_URL}?filename={filename}" + ("&more_to_come=1" if more else ""),
        data=body,
        content_type="application/octet-stream",
    )
    assert response.status_code == 201, response.content
    batch = Batch.objects.get(pk=response.json()["batch"])
    assert response.json()["url"] == reverse("operator:batch", args=[batch.pk])
    return batch


class TestStudies:
    def test_without_a_study_it_says_who_makes_one(self, client: Client) -> None:
        assert "An administrator creates studies from a file" in page(client, "/operator/")

    def test_a_study_is_listed_with_its_days_and_last_batch(
        self, client: Client, study: VaultStudy, run_batches: Run
    ) -> None:
        assert "none yet" in page(client, "/operator/")
        put(client)
        run_batches()
        shown = page(client, "/operator/")
        assert "Fair &amp; market" in shown
        assert "1 published of 3 days" in shown
        assert "day.csv Done" in shown


class TestStudy:
    def test_it_says_what_to_send(self, client: Client, study: VaultStudy) -> None:
        shown = page(client, STUDY_URL)
        assert "Columns it must have, in any order: msisdn , time , age" in shown
        assert "manage.py ingest fair FILE" in shown

    def test_unknown_study_is_not_found(self, client: Client) -> None:
        assert client.get("/operator/nothing/").status_code == 404

    def test_days_and_batches_follow_the_uploads(
        self, client: Client, study: VaultStudy, run_batches: Run
    ) -> None:
        assert page(client, STUDY_URL).count("no data") == 3
        put(client, more=True)
        put(client, extract(rows("d", "e", day=2)), filename="second.csv")
        run_batches()
        shown = page(client, STUDY_URL)
        days = re.findall(r"\w{3} \d May 2024 (open|published|closed|no data)", shown.split("Batches")[0])
        assert days == ["open", "published", "no data"]
        assert "second.csv Done 4 4 olga" in shown

    def test_number_of_queries_does_not_grow_with_batches(
        self, client: Client, study: VaultStudy, django_assert_max_num_queries: Callable[..., object]
    ) -> None:
        for _ in range(30):
            Batch.objects.create(study=study, state=Batch.State.DONE, filename="x.csv")
        with django_assert_max_num_queries(4, using="vault"):  # type: ignore[attr-defined]
            client.get(STUDY_URL)
        with django_assert_max_num_queries(4, using="vault"):  # type: ignore[attr-defined]
            client.get("/operator/")


class TestUpload:
    def test_a_raw_body_becomes_a_queued_batch(self, client: Client, study: VaultStudy) -> None:
        batch = put(client, filename="2024-05-01%20new.csv")
        assert (batch.state, batch.filename, batch.created_by) == ("queued", "2024-05-01 new.csv", "olga")
        assert (batch.bytes_total, batch.bytes_received, batch.more_to_come) == (len(GOOD), len(GOOD), False)

    def test_more_files_may_be_announced(self, client: Client, study: VaultStudy) -> None:
        assert put(client, more=True).more_to_come

    @pytest.mark.parametrize(
        ("given", "kept"),
        [("C%3A%5Cdata%5Cx.csv", "x.csv"), ("/data/x.csv", "x.csv"), ("a%0Ab.csv", "ab.csv"), ("", "upload")],
    )
    def test_only_the_name_of_the_file_is_kept(
        self, client: Client, study: VaultStudy, given: str, kept: str
    ) -> None:
        assert put(client, filename=given).filename == kept

    def test_what_is_staged_is_not_what_was_sent(
        self, client: Client, study: VaultStudy, data_dir: Path
    ) -> None:
        put(client, GOOD * 50)
        files = [file for file in data_dir.rglob("*") if file.is_file()]
        assert files
        assert not any(b"msisdn" in file.read_bytes() for file in files)

    def test_a_large_body_never_meets_a_handler_of_the_framework(
        self, client: Client, study: VaultStudy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: object, **__: object) -> None:
            raise AssertionError("the body was given to an upload handler")

        for handler in (MemoryFileUploadHandler, TemporaryFileUploadHandler):
            monkeypatch.setattr(handler, "__init__", refuse)
        body = extract(rows("a", "b")) + rows("c").encode() * 70_000  # above DATA_UPLOAD_MAX_MEMORY_SIZE
        assert len(body) > 3_000_000
        assert put(client, body).bytes_received == len(body)

    def test_an_empty_file_is_refused(self, client: Client, study: VaultStudy) -> None:
        response = client.put(UPLOAD_URL, data=b"", content_type="application/octet-stream")
        assert response.status_code in (400, 411)
        assert Batch.objects.count() == 0

    def test_an_unannounced_length_is_refused(self, client: Client, study: VaultStudy) -> None:
        response = client.put(UPLOAD_URL, data=GOOD, headers={"content-length": "soon"})
        assert response.status_code == 411
        assert "Content-Length" in response.json()["error"]

    def test_a_body_that_ends_early_fails_with_a_reason(self, client: Client, study: VaultStudy) -> None:
        response = client.put(UPLOAD_URL, data=GOOD, headers={"content-length": str(len(GOOD) + 10)})
        assert response.status_code == 400
        assert "the upload broke off after" in response.json()["error"]
        assert Batch.objects.get().state == Batch.State.FAILED
        assert not keystore().exists(Batch.objects.get().key_id)

    def test_a_study_without_its_key_takes_nothing(self, client: Client, study: VaultStudy) -> None:
        keystore().destroy(study.key_id)
        response = client.put(UPLOAD_URL, data=GOOD)
        assert response.status_code == 400
        assert "is not in the keystore" in response.json()["error"]

    def test_without_the_token_it_is_refused(self, study: VaultStudy, operator: User) -> None:
        strict = Client(enforce_csrf_checks=True)
        strict.force_login(operator)
        assert strict.put(UPLOAD_URL, data=GOOD).status_code == 403
        strict.get(STUDY_URL)
        token = strict.cookies["csrftoken"].value
        assert strict.put(UPLOAD_URL, data=GOOD, headers={"X-CSRFToken": token}).status_code == 201

    def test_signed_out_gets_an_answer_and_no_redirect(self, study: VaultStudy) -> None:
        """A browser would follow a redirect with the whole file."""
        response = Client().put(UPLOAD_URL, data=GOOD)
        assert response.status_code == 401
        assert "sign in" in response.json()["error"]

    @pytest.mark.parametrize("method", ["get", "post"])
    def test_nothing_but_put(self, client: Client, study: VaultStudy, method: str) -> None:
        assert getattr(client, method)(UPLOAD_URL).status_code == 405

    def test_an_unknown_study_is_not_found(self, client: Client) -> None:
        assert client.put("/operator/nothing/upload/", data=GOOD).status_code == 404


class TestBatch:
    def show(self, client: Client, batch: Batch) -> str:
        return page(client, reverse("operator:batch", args=[batch.pk]))

    def fragment(self, client: Client, batch: Batch) -> str:
        url = reverse("operator:batch", args=[batch.pk])
        response = client.get(url, headers={"HX-Request": "true"})
        assert response.status_code == 200
        return response.content.decode()

    def test_unknown_batch_is_not_found(self, client: Client) -> None:
        assert client.get(reverse("operator:batch", args=[uuid4()])).status_code == 404

    def test_it_asks_for_itself_until_the_end(
        self, client: Client, study: VaultStudy, run_batches: Run
    ) -> None:
        batch = put(client)
        waiting = self.fragment(client, batch)
        assert f'hx-get="{reverse("operator:batch", args=[batch.pk])}" hx-trigger="every 1s"' in waiting
        assert "<html" not in waiting
        run_batches()
        assert "hx-" not in self.fragment(client, batch)

    def test_a_published_batch_shows_its_numbers_and_the_way_on(
        self, client: Client, study: VaultStudy, run_batches: Run
    ) -> None:
        batch = put(client, extract(rows("a", "b", "c"), "x,never,old\n", "y,2024-05-01T10:00:00,ancient\n",
                                    "z,2024-06-01T10:00:00,old\n"))  # fmt: skip
        run_batches()
        shown = self.show(client, batch)
        assert "Done Published: analysts can read it now." in shown
        assert "Rows read 9 Rows accepted 6 Subscriber-days 3 New subscribers 3" in shown
        assert "Timestamp that cannot be read bad_timestamp 1 8" in shown
        assert "Value outside the categories of its indicator unknown_value 1 9" in shown
        assert "Not on a day of the study outside_period 1" in shown
        assert "never" not in shown
        assert "ancient" not in shown
        assert "Back to the study, for the next file" in shown
        assert "See the report" not in shown

    def test_whoever_may_read_gets_a_link_to_the_report(
        self, client: Client, study: VaultStudy, run_batches: Run, person: Callable[..., User]
    ) -> None:
        batch = put(client)
        run_batches()
        client.force_login(person("both", Role.OPERATOR, Role.ANALYST))
        assert "See the report" in self.show(client, batch)

    def test_a_small_batch_waits_and_says_how_many_of_how_many(
        self, client: Client, study: VaultStudy, run_batches: Run
    ) -> None:
        alone = put(client, extract(rows("a")))
        run_batches()
        shown = self.show(client, alone)
        assert "what waits covers 1 subscriber, and a publication must cover 2" in shown
        assert "Published" not in shown
        put(client, extract(rows("b", day=2)), filename="next.csv")
        run_batches()
        assert "Published: analysts can read it now." in self.show(client, alone)

    def test_open_days_are_explained(self, client: Client, study: VaultStudy, run_batches: Run) -> None:
        batch = put(client, more=True)
        run_batches()
        assert "its days stay open for more files" in self.show(client, batch)

    def test_the_same_file_again_points_to_the_first(
        self, client: Client, study: VaultStudy, run_batches: Run
    ) -> None:
        first = put(client)
        run_batches()
        second = put(client)
        run_batches()
        response = client.get(reverse("operator:batch", args=[second.pk]))
        assert "nothing was read and nothing changes" in text_of(response.content.decode())
        assert reverse("operator:batch", args=[first.pk]) in response.content.decode()

    def test_rows_that_were_known_bring_nothing_new(
        self, client: Client, study: VaultStudy, run_batches: Run
    ) -> None:
        put(client)
        again = put(client, GOOD + rows("a").encode())
        run_batches()
        shown = self.show(client, again)
        assert "It brought nothing new: the reports stay as they are." in shown
        assert "analysts can read it now" not in shown

    def test_a_failure_shows_its_reason_in_full(
        self, client: Client, study: VaultStudy, run_batches: Run
    ) -> None:
        batch = put(client, extract("a,never,old\n" * 9, rows("b")))
        run_batches()
        batch.refresh_from_db()
        shown = self.show(client, batch)
        assert "Failed" in shown
        assert "9 of 11 rows (81.8 %) cannot be used" in shown
        assert "bad_timestamp 9 2, 3, 4" in shown
        assert "Back to the study, to send it again" in shown

    def test_progress_is_of_bytes_then_rows_then_shards(self, client: Client, study: VaultStudy) -> None:
        batch = put(client)
        steps = [
            ({"state": "receiving", "bytes_received": 40, "bytes_total": 160}, "25", "The file is arriving"),
            ({"state": "reading", "bytes_read": 80, "rows_read": 1234}, "50", "Rows read 1 234"),
            ({"state": "merging", "shards_done": 3}, "75", "Merging into the study"),
        ]  # fmt: skip
        for fields, percent, words in steps:
            Batch.objects.filter(pk=batch.pk).update(**fields)
            html = self.fragment(client, batch)
            assert f'value="{percent}"' in html
            assert words in text_of(html)

    def test_a_queue_that_nobody_serves_is_noticed(self, client: Client, study: VaultStudy) -> None:
        batch = put(client)
        assert "No worker has taken it yet" not in self.show(client, batch)
        Batch.objects.filter(pk=batch.pk).update(created_at=timezone.now() - timedelta(minutes=1))
        assert "No worker has taken it yet" in self.show(client, batch)

    def test_a_batch_behind_another_says_so(self, client: Client, study: VaultStudy) -> None:
        first, second = put(client), put(client, extract(rows("d")))
        VaultStudy.objects.update(active_batch=first)
        assert "Another batch of this study is at work" in self.show(client, second)
        assert "Another batch of this study is at work" not in self.show(client, first)

    def test_a_silent_worker_is_noticed(self, client: Client, study: VaultStudy) -> None:
        batch = put(client)
        soon = timezone.now() + timedelta(minutes=1)
        Batch.objects.filter(pk=batch.pk).update(state="reading", lease_until=soon)
        assert "has not reported" not in self.show(client, batch)
        Batch.objects.filter(pk=batch.pk).update(lease_until=timezone.now() - timedelta(minutes=1))
        assert "has not reported" in self.show(client, batch)


class TestCloseAndUndo:
    def post(self, client: Client, name: str, **data: object) -> str:
        response = client.post(f"/operator/fair/{name}/", data, follow=True)
        return text_of(response.content.decode())

    @pytest.fixture(autouse=True)
    def _uploaded(self, client: Client, study: VaultStudy, run_batches: Run) -> None:
        put(client)
        run_batches()

    def test_closing_is_a_batch_and_days_become_final(self, client: Client, run_batches: Run) -> None:
        assert "Close days 1 to 2" in self.post(client, "close-days", day=2, confirm="on")
        run_batches()
        batch = Batch.objects.get(kind=Batch.Kind.CLOSE_DAYS)
        assert batch.created_by == "olga"
        shown = page(client, reverse("operator:batch", args=[batch.pk]))
        assert "The days are final." in shown
        assert "Rows read" not in shown
        assert list(VaultDay.objects.values_list("day", "state")) == [(1, "closed"), (2, "closed")]

    def test_undoing_is_a_batch_and_the_day_is_free_again(self, client: Client, run_batches: Run) -> None:
        assert "Undo day 1" in self.post(client, "void-day", day=1, confirm="on")
        run_batches()
        assert VaultDay.objects.count() == 0
        batch = Batch.objects.get(kind=Batch.Kind.VOID_DAY)
        assert "The day was undone" in page(client, reverse("operator:batch", args=[batch.pk]))

    @pytest.mark.parametrize("name", ["close-days", "void-day"])
    @pytest.mark.parametrize(
        "data", [{"day": 1}, {"confirm": "on"}, {"day": 9, "confirm": "on"}, {"day": "x", "confirm": "on"}]
    )
    def test_nothing_happens_without_a_day_and_a_confirmation(
        self, client: Client, name: str, data: dict[str, object]
    ) -> None:
        assert "Nothing was changed: choose a day and confirm." in self.post(client, name, **data)
        assert Batch.objects.count() == 1

    def test_a_closed_day_is_not_offered_for_undoing(self, client: Client, run_batches: Run) -> None:
        self.post(client, "close-days", day=3, confirm="on")
        run_batches()
        shown = page(client, STUDY_URL)
        assert "All days are closed." in shown
        assert "There is no day to undo." in shown
        assert "Nothing was changed" in self.post(client, "void-day", day=1, confirm="on")

    def test_a_refusal_of_the_vault_is_shown(self, client: Client, study: VaultStudy) -> None:
        keystore().destroy(study.key_id)
        assert "is not in the keystore" in self.post(client, "close-days", day=1, confirm="on")

    @pytest.mark.parametrize("name", ["close-days", "void-day"])
    def test_a_get_changes_nothing(self, client: Client, name: str) -> None:
        assert client.get(f"/operator/fair/{name}/").status_code == 405


def test_every_outcome_of_a_row_has_words() -> None:
    assert set(wording.ROW_REASONS) == {*REJECTED, *IGNORED}


@pytest.mark.parametrize(
    ("done", "total", "words"),
    [(3_300_000, 11_600_000, "3.3 of 11.6 MB"), (12, 12, "0.001 MB"), (0, 5_000, "0.0 of 0.005 MB"),
      (7_000_000, None, "7.0 MB")],
)  # fmt: skip
def test_sizes_are_in_megabytes(done: int, total: int | None, words: str) -> None:
    assert wording.size_of(done, total) == words


def test_every_state_has_words() -> None:
    assert set(wording.BATCH_STATES) == set(wording.BATCH_BADGES) == set(Batch.State.values)
    assert set(wording.DAY_STATES) == set(wording.DAY_BADGES) == set(VaultDay.State.values)


def test_pages_have_no_inline_script_or_style(client: Client, study: VaultStudy, run_batches: Run) -> None:
    batch = put(client)
    run_batches()
    for url in ("/operator/", STUDY_URL, reverse("operator:batch", args=[batch.pk])):
        html = client.get(url).content.decode()
        assert not re.search(r"\sstyle=|\son\w+=|<style", html), url
        inline = re.findall(r"<script(?![^>]*\ssrc=)([^>]*)>", html)
        assert all('type="application/json"' in attributes for attributes in inline), url


def test_texts_of_the_script_are_on_the_page(client: Client, study: VaultStudy) -> None:
    html = client.get(STUDY_URL).content.decode()
    found = re.search(r'<script id="upload-texts" type="application/json">(.*?)</script>', html)
    assert found is not None
    script = (Path(__file__).parents[3] / "static/js/upload.js").read_text()
    assert set(re.findall(r"texts\.(\w+)", script)) == set(json.loads(found[1]))
