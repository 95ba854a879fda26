"""Pages of operators: what they show, and that an extract goes in as a raw body and nowhere else."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadhandler import MemoryFileUploadHandler, TemporaryFileUploadHandler
from django.test import Client
from django.urls import reverse

from mobility import wording
from mobility.ingest.rows import IGNORED, REJECTED
from mobility.keystore import keystore
from mobility.models import Batch, VaultDay, VaultStudy
from tests.mobility.views.small_study import GOOD, STUDY_URL, UPLOAD_URL, extract, page, put, rows

pytestmark = pytest.mark.django_db(databases=["default", "vault"], transaction=True)
Run = Callable[[], None]


@pytest.fixture(autouse=True)
def _signed_in(client: Client, operator: User) -> None:
    client.force_login(operator)


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

    @pytest.mark.parametrize(
        ("length", "status", "words"),
        [("0", 400, "The file is empty"), ("-5", 400, "The file is empty"), ("", 411, "Content-Length"),
         ("soon", 411, "Content-Length")],
    )  # fmt: skip
    def test_the_length_must_be_announced_and_more_than_nothing(
        self, client: Client, study: VaultStudy, length: str, status: int, words: str
    ) -> None:
        response = client.put(UPLOAD_URL, data=GOOD, headers={"content-length": length})
        assert response.status_code == status
        assert words in response.json()["error"]
        assert Batch.objects.count() == 0

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
