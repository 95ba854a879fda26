"""The tus server: what it answers, that bodies meet no upload handler, and that an upload goes on."""

import json
import re
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadhandler import MemoryFileUploadHandler, TemporaryFileUploadHandler
from django.test import Client
from django.urls import reverse

from mobility.errors import StagingUnavailableError
from mobility.keystore import keystore
from mobility.models import Batch, VaultStudy
from mobility.services import staging, uploads
from mobility.services.staging import UploadReader
from reports.policies import Role
from tests.mobility.views.small_study import (
    GOOD,
    STUDY_URL,
    TUS,
    UPLOADS_URL,
    begin,
    extract,
    page,
    put,
    rows,
    send,
)

pytestmark = pytest.mark.django_db(databases=["default", "vault"], transaction=True)
FRAME = 50


@pytest.fixture(autouse=True)
def _signed_in(client: Client, operator: User) -> None:
    client.force_login(operator)


@pytest.fixture(autouse=True)
def _small_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "FRAME_BYTES", FRAME)


@pytest.fixture
def opened(client: Client, study: VaultStudy) -> str:
    """Address of an upload of GOOD of which nothing was sent."""
    return str(begin(client, len(GOOD), filename="day.csv")["Location"])


def batch_of(url: str) -> Batch:
    return Batch.objects.get(pk=url.split("/")[-2])


def head(client: Client, url: str) -> Any:
    return client.head(url, headers=TUS)


class TestServer:
    def test_it_says_what_it_does(self, client: Client, study: VaultStudy, settings: Any) -> None:
        settings.MOBILITY_MAX_UPLOAD_BYTES = 1234
        response = client.options(UPLOADS_URL)
        assert response.status_code == 204
        assert response["Tus-Version"] == "1.0.0"
        assert response["Tus-Extension"] == "creation,termination,expiration"
        assert response["Tus-Max-Size"] == "1234"

    @pytest.mark.parametrize("headers", [{}, {"Tus-Resumable": "0.2.2"}])
    def test_another_version_is_refused(self, client: Client, opened: str, headers: dict[str, str]) -> None:
        for response in (
            client.post(UPLOADS_URL, headers=headers),
            client.head(opened, headers=headers),
            client.patch(opened, headers=headers),
            client.delete(opened, headers=headers),
        ):
            assert response.status_code == 412
            assert response["Tus-Version"] == "1.0.0"
        assert Batch.objects.get().state == Batch.State.RECEIVING

    @pytest.mark.parametrize("method", ["put", "get"])
    def test_other_methods_are_refused(self, client: Client, study: VaultStudy, method: str) -> None:
        assert getattr(client, method)(UPLOADS_URL).status_code == 405

    def test_an_unknown_study_is_not_found(self, client: Client) -> None:
        assert client.post("/operator/nothing/uploads/", headers=TUS).status_code == 404


class TestOpen:
    def test_an_upload_is_described(self, client: Client, study: VaultStudy) -> None:
        response = begin(
            client, 7, filename="C:\\data\\2024-05-01 neu ä.csv", profile="opt-out", more_to_come="1",
            validate_only="1",
        )  # fmt: skip
        assert response.status_code == 201
        assert response["Upload-Offset"] == "0"
        assert response["Upload-Expires"].endswith("GMT")
        batch = batch_of(response["Location"])
        assert (batch.filename, batch.profile, batch.kind) == ("2024-05-01 neu ä.csv", "opt-out", "opt_out")
        assert (batch.created_by, batch.bytes_total, batch.state) == ("olga", 7, "receiving")
        assert batch.more_to_come
        assert batch.validate_only

    def test_what_is_not_said_is_off(self, client: Client, opened: str) -> None:
        batch = batch_of(opened)
        assert (batch.profile, batch.more_to_come, batch.validate_only) == ("default", False, False)

    @pytest.mark.parametrize(
        ("given", "kept"),
        [
            ("C:\\data\\x.csv", "x.csv"),
            ("/data/x.csv", "x.csv"),
            ("a\nb.csv", "ab.csv"),
            ("", "upload"),
            ("../../etc/passwd", "passwd"),
            ("..\\..\\boot.ini", "boot.ini"),
            ("..", "upload"),
            ("a/..", "upload"),
        ],
    )
    def test_only_the_name_of_the_file_is_kept(
        self, client: Client, study: VaultStudy, given: str, kept: str
    ) -> None:
        assert batch_of(begin(client, 1, filename=given)["Location"]).filename == kept

    @pytest.mark.parametrize(
        ("headers", "words"),
        [({"Upload-Length": "0"}, "The file is empty"), ({}, "Upload-Length"),
         ({"Upload-Length": "-5"}, "Upload-Length"),
         ({"Upload-Length": "soon"}, "Upload-Length"), ({"Upload-Length": "9" * 20}, "Upload-Length"),
         ({"Upload-Length": "1", "Upload-Metadata": "filename =?="}, "Upload-Metadata"),
         ({"Upload-Length": "1", "Upload-Metadata": "filename /w=="}, "Upload-Metadata"),
         ({"Upload-Length": "1", "Upload-Metadata": "profile bm9uZQ=="}, "no profile 'none'")],
    )  # fmt: skip
    def test_what_cannot_be_opened_says_why(
        self, client: Client, study: VaultStudy, headers: dict[str, str], words: str
    ) -> None:
        response = client.post(UPLOADS_URL, headers={**TUS, **headers})
        assert response.status_code == 400
        assert words in response.json()["error"]
        assert Batch.objects.count() == 0

    def test_a_file_that_is_too_large_is_refused_before_its_bytes(
        self, client: Client, study: VaultStudy, settings: Any
    ) -> None:
        settings.MOBILITY_MAX_UPLOAD_BYTES = 10
        response = begin(client, 11)
        assert response.status_code == 413
        assert "may have 10 bytes at most" in json.loads(response.content)["error"]

    def test_a_file_that_would_not_fit_is_refused_before_its_bytes(
        self, client: Client, study: VaultStudy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(staging, "free_bytes", lambda: 10)
        assert begin(client, 11).status_code == 507

    def test_a_study_with_many_waiting_files_takes_no_more_for_now(
        self, client: Client, study: VaultStudy, settings: Any
    ) -> None:
        settings.MOBILITY_MAX_WAITING_BATCHES = 1
        put(client)
        response = begin(client, 11)
        assert (response.status_code, response["Retry-After"]) == (503, "60")
        assert "1 file(s) of this study wait for their turn" in json.loads(response.content)["error"]

    def test_an_upload_stays_while_staging_is_full(
        self, client: Client, opened: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(staging, "free_bytes", lambda: 10)
        response = send(client, opened, GOOD)
        assert (response.status_code, response["Retry-After"]) == (507, "60")
        monkeypatch.undo()
        assert send(client, opened, GOOD).status_code == 204

    def test_a_storage_that_does_not_answer_is_asked_again_later(
        self, client: Client, opened: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object) -> None:
            raise StagingUnavailableError("the staging bucket does not answer")

        monkeypatch.setattr(staging, "write_frame", fail)
        response = send(client, opened, GOOD)
        assert (response.status_code, response["Retry-After"]) == (503, "60")

    def test_a_study_that_a_restore_has_stopped_is_asked_again_later(
        self, client: Client, study: VaultStudy
    ) -> None:
        """It goes on by itself when the analyst zone is back to what the vault knows."""
        VaultStudy.objects.update(stopped=VaultStudy.Stopped.AHEAD)
        response = begin(client, 11)
        assert (response.status_code, response["Retry-After"]) == (503, "60")

    def test_a_study_without_its_key_takes_nothing(self, client: Client, study: VaultStudy) -> None:
        keystore().destroy(study.key_id)
        response = begin(client, 11)
        assert response.status_code == 410
        assert "was destroyed, and stays so for ever" in json.loads(response.content)["error"]


class TestSend:
    def test_a_whole_file_becomes_a_queued_batch(
        self, client: Client, study: VaultStudy, run_batches: Callable[[], None]
    ) -> None:
        batch = put(client)
        assert (batch.state, batch.bytes_received) == ("queued", len(GOOD))
        run_batches()
        batch.refresh_from_db()
        assert (batch.state, batch.rows_accepted) == ("done", 6)

    def test_it_goes_on_after_the_last_whole_frame(self, client: Client, opened: str) -> None:
        response = send(client, opened, GOOD[:120])
        assert (response.status_code, response["Upload-Offset"]) == (204, "100")
        state = head(client, opened)
        assert (state.status_code, state["Upload-Offset"], state["Upload-Length"]) == (
            200,
            "100",
            str(len(GOOD)),
        )
        assert state["Cache-Control"] == "no-store"
        assert state["Upload-Expires"].endswith("GMT")
        response = send(client, opened, GOOD[100:], offset=100)
        assert response["Upload-Offset"] == str(len(GOOD))
        assert batch_of(opened).state == Batch.State.QUEUED
        assert UploadReader(batch_of(opened)).readall() == GOOD

    def test_another_offset_is_a_conflict(self, client: Client, opened: str) -> None:
        send(client, opened, GOOD[:120])
        response = send(client, opened, GOOD[120:], offset=120)
        assert response.status_code == 409
        assert "byte 100" in json.loads(response.content)["error"]

    def test_two_connections_at_once_are_one_too_many(self, client: Client, opened: str) -> None:
        hold = uploads.Hold(batch_of(opened), rest_s=24 * 3600)
        assert send(client, opened, GOOD).status_code == 423
        hold.release()
        assert send(client, opened, GOOD).status_code == 204

    @pytest.mark.parametrize(
        ("headers", "body_type", "status"),
        [({"Upload-Offset": "0"}, "text/csv", 415), ({}, "application/offset+octet-stream", 400),
         ({"Upload-Offset": "-1"}, "application/offset+octet-stream", 400)],
    )  # fmt: skip
    def test_headers_are_checked(
        self, client: Client, opened: str, headers: dict[str, str], body_type: str, status: int
    ) -> None:
        response = client.patch(opened, data=GOOD, content_type=body_type, headers={**TUS, **headers})
        assert response.status_code == status
        assert batch_of(opened).bytes_received == 0

    def test_a_batch_whose_last_answer_was_lost_is_queued_by_the_question(
        self, client: Client, opened: str
    ) -> None:
        uploads.append(batch_of(opened), BytesIO(GOOD), offset=0)
        assert batch_of(opened).state == Batch.State.RECEIVING
        assert head(client, opened)["Upload-Offset"] == str(len(GOOD))
        assert batch_of(opened).state == Batch.State.QUEUED
        assert head(client, opened).status_code == 200
        assert send(client, opened, b"more", offset=len(GOOD)).status_code == 410

    def test_a_large_body_never_meets_a_handler_of_the_framework(
        self, client: Client, study: VaultStudy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: object, **__: object) -> None:
            raise AssertionError("the body was given to an upload handler")

        for handler in (MemoryFileUploadHandler, TemporaryFileUploadHandler):
            monkeypatch.setattr(handler, "__init__", refuse)
        monkeypatch.setattr(staging, "FRAME_BYTES", 1 << 20)
        body = extract(rows("a", "b")) + rows("c").encode() * 120_000  # above DATA_UPLOAD_MAX_MEMORY_SIZE
        assert len(body) > 5_000_000
        assert put(client, body).bytes_received == len(body)

    def test_what_is_staged_is_not_what_was_sent(
        self, client: Client, study: VaultStudy, data_dir: Path
    ) -> None:
        put(client, GOOD * 5)
        files = [file for file in data_dir.rglob("*") if file.is_file()]
        assert len(files) > 10
        assert not any(b"msisdn" in file.read_bytes() for file in files)


class TestGiveUp:
    def test_nothing_is_left(self, client: Client, opened: str) -> None:
        send(client, opened, GOOD[:120])
        assert client.delete(opened, headers=TUS).status_code == 204
        assert batch_of(opened).state == Batch.State.CANCELLED
        assert staging.staged_batches() == set()
        for response in (
            head(client, opened),
            send(client, opened, GOOD),
            client.delete(opened, headers=TUS),
        ):
            assert response.status_code == 410

    def test_the_page_offers_to_go_on_or_to_discard(self, client: Client, opened: str) -> None:
        send(client, opened, GOOD[:120])
        html = client.get(STUDY_URL).content.decode()
        data = re.search(r'<script id="upload-data" type="application/json">(.*?)</script>', html)
        assert data is not None
        assert json.loads(data[1])["unfinished"] == [
            {"url": opened, "filename": "day.csv", "total": len(GOOD), "received": 100, "profile": "default",
             "more_to_come": False, "validate_only": False}
        ]  # fmt: skip
        assert "Uploads that rest" in page(client, STUDY_URL)
        client.post(reverse("operator:cancel", args=[batch_of(opened).pk]))
        assert "Uploads that rest" not in page(client, STUDY_URL)
        assert staging.staged_batches() == set()


class TestWho:
    def test_signed_out_gets_an_answer_and_no_redirect(self, opened: str) -> None:
        """A browser would follow a redirect with the whole file."""
        for response in (
            begin(Client(), 1),
            send(Client(), opened, GOOD),
            head(Client(), opened),
            Client().delete(opened, headers=TUS),
        ):
            assert response.status_code == 401
        assert batch_of(opened).bytes_received == 0

    def test_an_upload_belongs_to_whoever_opened_it(
        self, client: Client, opened: str, person: Callable[..., User]
    ) -> None:
        client.force_login(person("oscar", Role.OPERATOR))
        assert head(client, opened).status_code == 404
        assert send(client, opened, GOOD).status_code == 404
        assert client.delete(opened, headers=TUS).status_code == 404
        assert "Uploads that rest" not in page(client, STUDY_URL)

    def test_without_the_token_it_is_refused(self, opened: str, operator: User) -> None:
        strict = Client(enforce_csrf_checks=True)
        strict.force_login(operator)
        assert begin(strict, 1).status_code == 403
        assert send(strict, opened, GOOD).status_code == 403
        assert strict.delete(opened, headers=TUS).status_code == 403
        strict.get(STUDY_URL)
        token = {"X-CSRFToken": strict.cookies["csrftoken"].value}
        headers = {**TUS, **token, "Upload-Length": "1"}
        assert strict.post(UPLOADS_URL, headers=headers).status_code == 201

    def test_a_plain_get_leads_to_the_batch(self, client: Client, opened: str) -> None:
        response = client.get(opened)
        assert response.status_code == 302
        assert response["Location"] == reverse("operator:batch", args=[batch_of(opened).pk])


def test_profiles_can_be_chosen(client: Client, study: VaultStudy) -> None:
    html = client.get(STUDY_URL).content.decode()
    choices = html.split('id="upload-profile"')[1].split("</select>")[0]
    assert re.findall(r'<option value="([^"]*)"', choices) == ["default", "subscribers", "opt-out"]


def test_texts_of_the_script_are_on_the_page(client: Client, study: VaultStudy) -> None:
    html = client.get(STUDY_URL).content.decode()
    found = re.search(r'<script id="upload-data" type="application/json">(.*?)</script>', html)
    assert found is not None
    script = (Path(__file__).parents[3] / "static/js/upload.js").read_text()
    assert set(re.findall(r"texts\.(\w+)", script)) == set(json.loads(found[1])["texts"])
