"""The tus server: what it answers, that bodies meet no upload handler, and that an upload continues."""
# Frames, holds and what is kept of names: tests/mobility/uploads/test_uploads.py.

import errno
import json
import re
import socket
from io import BytesIO
from pathlib import Path
from unittest.mock import Mock

import pytest
from django.core.files.uploadhandler import MemoryFileUploadHandler, TemporaryFileUploadHandler
from django.test import Client, RequestFactory
from django.urls import reverse

from mobility.base.errors import NoRoomError, StagingUnavailableError, UploadBrokenError
from mobility.batches import staging
from mobility.batches.staging import UploadReader
from mobility.models import Batch, VaultStudy
from mobility.uploads import actions as uploads
from mobility.uploads import incoming
from mobility.vault.keystore import keystore
from reports.base.problems import CONTENT_TYPE
from reports.studies.policies import Role
from tests.mobility.pages.pages import AS_OPERATOR, html_of, page
from tests.mobility.pages.small_study import GOOD, STUDY_URL, TUS, UPLOADS_URL, begin, put, rows, send

pytestmark = AS_OPERATOR


@pytest.fixture(autouse=True)
def _small_frames(monkeypatch):
    monkeypatch.setattr(staging, "FRAME_BYTES", 50)


@pytest.fixture
def opened(client, study) -> str:
    return str(begin(client, len(GOOD), filename="day.csv")["Location"])


def batch_of(url):
    return Batch.objects.get(pk=url.split("/")[-2])


def head(client, url):
    return client.head(url, headers=TUS)


def discard(client, url):
    return client.delete(url, headers=TUS)


def data_of_page(client):
    script = r'<script id="upload-data" type="application/json">(.*?)</script>'
    return json.loads(re.search(script, html_of(client, STUDY_URL))[1])


class TestServer:
    def test_it_says_what_it_does(self, client, study, settings):
        settings.MOBILITY_MAX_UPLOAD_BYTES = 1234
        response = client.options(UPLOADS_URL)
        assert (response.status_code, response["Tus-Version"]) == (204, "1.0.0")
        assert response["Tus-Extension"] == "creation,termination,expiration"
        assert response["Tus-Max-Size"] == "1234"
        for method in (client.put, client.get):
            assert method(UPLOADS_URL).status_code == 405
        assert client.post("/operator/nothing/uploads/", headers=TUS).status_code == 404

    def test_another_version_is_refused(self, client, opened):
        for headers in ({}, {"Tus-Resumable": "0.2.2"}):
            methods = client.head, client.patch, client.delete
            answers = [method(opened, headers=headers) for method in methods]
            for response in (client.post(UPLOADS_URL, headers=headers), *answers):
                assert (response.status_code, response["Tus-Version"]) == (412, "1.0.0")
        assert Batch.objects.get().state == Batch.State.RECEIVING


class TestOpen:
    def test_an_upload_is_described(self, client, study):
        name = "C:\\data\\2024-05-01 neu ä.csv"
        response = begin(client, 7, filename=name, profile="opt-out", more_to_come="1", validate_only="1")
        assert (response.status_code, response["Upload-Offset"]) == (201, "0")
        assert response["Upload-Expires"].endswith("GMT")
        batch = batch_of(response["Location"])
        assert (batch.filename, batch.profile, batch.kind) == ("2024-05-01 neu ä.csv", "opt-out", "opt_out")
        assert (batch.created_by, batch.bytes_total, batch.state) == ("olga", 7, "receiving")
        assert (batch.more_to_come, batch.validate_only) == (True, True)
        batch = batch_of(begin(client, 7)["Location"])  # omitted options are off
        assert (batch.profile, batch.more_to_come, batch.validate_only) == ("default", False, False)

    def test_what_cannot_be_opened_says_why(self, client, study):
        wrong = "-5", "soon", "9" * 20
        for headers, words in (
            ({"Upload-Length": "0"}, "The file is empty"), ({}, "Upload-Length"),
            *(({"Upload-Length": length}, "Upload-Length") for length in wrong),
            ({"Upload-Length": "1", "Upload-Metadata": "filename =?="}, "Upload-Metadata"),
            ({"Upload-Length": "1", "Upload-Metadata": "filename /w=="}, "Upload-Metadata"),
            ({"Upload-Length": "1", "Upload-Metadata": "profile bm9uZQ=="}, "no profile 'none'"),
        ):  # fmt: skip
            response = client.post(UPLOADS_URL, headers={**TUS, **headers})
            assert (response.status_code, words in response.json()["detail"]) == (400, True), headers
        assert Batch.objects.count() == 0

    @pytest.mark.parametrize(
        ("limits", "changes", "status", "words"),
        [({"MOBILITY_MAX_UPLOAD_BYTES": 10}, {}, 413, "must have at most 10 bytes"),
         ({"MOBILITY_MAX_WAITING_BATCHES": 1}, {}, 503, "1 file(s) of this study are waiting"),
         # after a restore, until the analyst zone is back to what the vault knows
         ({}, {"stopped": VaultStudy.Stopped.AHEAD}, 503, ""),
         ({}, {"key_id": "another"}, 503, "")],
    )  # fmt: skip
    def test_it_is_refused_before_its_bytes(self, client, study, settings, limits, changes, status, words):
        put(client)
        for name, value in limits.items():
            setattr(settings, name, value)
        VaultStudy.objects.update(**changes)
        response = begin(client, 11)
        assert response.status_code == status
        assert response.get("Retry-After") == ("60" if status == 503 else None)
        assert words in response.json()["detail"]

    def test_without_room_nothing_is_opened_and_what_is_open_stays(self, client, opened, monkeypatch, study):
        monkeypatch.setattr(staging, "free_bytes", lambda: 10)
        assert begin(client, 11).status_code == 507
        response = send(client, opened, GOOD)
        assert (response.status_code, response["Retry-After"]) == (507, "60")
        monkeypatch.undo()
        hold = uploads.Hold(batch_of(opened), rest_s=24 * 3600)
        assert send(client, opened, GOOD).status_code == 423
        hold.release()
        assert send(client, opened, GOOD).status_code == 204
        keystore().destroy(study.key_id)
        response = begin(client, 11)
        assert response.status_code == 410
        assert "was destroyed and cannot be restored" in response.json()["detail"]


class TestSend:
    def test_it_goes_on_after_the_last_whole_frame(self, client, opened):
        response = send(client, opened, GOOD[:120])
        assert (response.status_code, response["Upload-Offset"]) == (204, "100")
        state = head(client, opened)
        assert (state["Upload-Offset"], state["Upload-Length"]) == ("100", str(len(GOOD)))
        assert state["Cache-Control"] == "private, no-store" and state["Upload-Expires"].endswith("GMT")
        response = send(client, opened, GOOD[120:], offset=120)
        assert response.status_code == 409 and "byte 100" in response.json()["detail"]
        assert send(client, opened, GOOD[100:], offset=100)["Upload-Offset"] == str(len(GOOD))
        assert batch_of(opened).state == Batch.State.QUEUED
        assert UploadReader(batch_of(opened)).readall() == GOOD

    def test_more_bytes_than_announced_are_refused_before_any_is_kept(self, client, opened):
        for body, offset in ((GOOD + b"x", 0), (GOOD[100:] + b"x", 100)):
            response = send(client, opened, body, offset=offset)
            assert (response.status_code, batch_of(opened).bytes_received) == (413, offset)
            assert f"announced with {len(GOOD)} bytes" in response.json()["detail"]
            send(client, opened, GOOD[offset:100], offset=offset)
        assert send(client, opened, GOOD[100:], offset=100).status_code == 204

    def test_headers_are_checked(self, client, opened):
        right = "application/offset+octet-stream"
        for offset, body_type, status in (("0", "text/csv", 415), ("", right, 400), ("-1", right, 400)):
            headers = TUS | ({"Upload-Offset": offset} if offset else {})
            response = client.patch(opened, data=GOOD, content_type=body_type, headers=headers)
            assert response.status_code == status
        assert batch_of(opened).bytes_received == 0

    def test_a_batch_whose_last_answer_was_lost_is_queued_by_the_question(self, client, opened):
        uploads.append(batch_of(opened), BytesIO(GOOD), offset=0)
        assert batch_of(opened).state == Batch.State.RECEIVING
        assert head(client, opened)["Upload-Offset"] == str(len(GOOD))
        assert (batch_of(opened).state, head(client, opened).status_code) == (Batch.State.QUEUED, 200)
        assert send(client, opened, b"more", offset=len(GOOD)).status_code == 410

    def test_a_large_body_never_meets_a_handler_of_the_framework(self, client, study, monkeypatch):
        for handler in (MemoryFileUploadHandler, TemporaryFileUploadHandler):
            monkeypatch.setattr(handler, "__init__", Mock(side_effect=AssertionError("not for this body")))
        monkeypatch.setattr(staging, "FRAME_BYTES", 1 << 20)
        body = GOOD + rows("c").encode() * 120_000  # above DATA_UPLOAD_MAX_MEMORY_SIZE
        assert len(body) > 5_000_000
        assert put(client, body).bytes_received == len(body)


class TestGiveUp:
    def test_nothing_is_left(self, client, opened):
        send(client, opened, GOOD[:120])
        assert (discard(client, opened).status_code, batch_of(opened).state) == (204, Batch.State.CANCELLED)
        assert staging.staged_batches() == set()
        for response in (head(client, opened), send(client, opened, GOOD), discard(client, opened)):
            assert response.status_code == 410

    def test_the_page_offers_to_go_on_or_to_discard(self, client, opened):
        send(client, opened, GOOD[:120])
        assert data_of_page(client)["unfinished"] == [
            {"url": opened, "filename": "day.csv", "total": len(GOOD), "received": 100, "profile": "default",
             "more_to_come": False, "validate_only": False}
        ]  # fmt: skip
        assert "Paused uploads" in page(client, STUDY_URL)
        client.post(reverse("operator:cancel", args=[batch_of(opened).pk]))
        assert "Paused uploads" not in page(client, STUDY_URL)
        assert staging.staged_batches() == set()


class TestWho:
    def test_signed_out_gets_an_answer_and_no_redirect(self, opened):
        out = Client()
        for response in (begin(out, 1), send(out, opened, GOOD), head(out, opened), discard(out, opened)):
            assert response.status_code == 401
        assert batch_of(opened).bytes_received == 0

    def test_an_unknown_upload_is_a_problem_for_programs_and_a_page_for_people(self, client, opened):
        unknown = opened.replace(opened.split("/")[-2], "0b0e7a86-0000-4000-8000-000000000001")
        for response in (head(client, unknown), send(client, unknown, GOOD), discard(client, unknown)):
            assert (response.status_code, response["Content-Type"]) == (404, CONTENT_TYPE)
        for nowhere in (opened.replace(opened.split("/")[-2], "x"), f"{opened}part/"):
            for response in (send(client, nowhere, GOOD), discard(client, nowhere)):
                assert (response.status_code, response["Content-Type"]) == (404, CONTENT_TYPE)
            assert client.get(nowhere)["Content-Type"].startswith("text/html")
        assert client.get(unknown)["Content-Type"].startswith("text/html")

    def test_an_upload_belongs_to_whoever_opened_it(self, client, opened, person):
        assert client.get(opened)["Location"] == reverse("operator:batch", args=[batch_of(opened).pk])
        client.force_login(person("oscar", Role.OPERATOR))
        for response in (head(client, opened), send(client, opened, GOOD), discard(client, opened)):
            assert response.status_code == 404
        assert "Paused uploads" not in page(client, STUDY_URL)


def test_page_offers_profiles_and_the_texts_of_its_script(client, study):
    form = html_of(client, STUDY_URL)
    choices, after = form.split('id="upload-profile"')[1].split("</select>", 1)
    assert re.findall(r'<option value="([^"]*)"', choices) == ["default", "subscribers", "opt-out"]
    profiles, new = (reverse(f"operator:{name}", args=["fair"]) for name in ("profiles", "new_profile"))
    assert f'id="upload-profile-link" href="{profiles}#built-in-default">default</a>' in after
    assert f'href="{new}"' in after
    for place in re.findall(r'data-address="[^"#]*#([^"]*)"', choices):
        assert f'id="{place}"' in html_of(client, profiles)
    script = (Path(__file__).parents[3] / "static/js/upload.js").read_text()
    assert set(re.findall(r"texts\.(\w+)", script)) == set(data_of_page(client)["texts"])


def test_a_sender_that_falls_silent_does_not_hold_a_thread_for_ever(monkeypatch):
    monkeypatch.setattr(incoming, "SILENCE_S", 0.05)
    here, there = socket.socketpair()
    with here, there:
        incoming.notice_silence(RequestFactory().put("/", **{"gunicorn.socket": here}))
        with pytest.raises(TimeoutError):
            here.recv(1)
    incoming.notice_silence(RequestFactory().put("/"))  # a server that does not tell its socket is fine


def test_an_upload_that_broke_off_has_the_status_of_its_cause():
    of_system = {
        errno.ENOSPC: 507, errno.EDQUOT: 507, errno.EROFS: 503, errno.EACCES: 503, errno.ESTALE: 503,
        errno.ECONNRESET: 400, errno.ETIMEDOUT: 400,
    }  # fmt: skip
    for cause, status in (
        *((OSError(number, "x"), status) for number, status in of_system.items()),
        (StagingUnavailableError("down"), 503), (NoRoomError("full"), 507), (UploadBrokenError("early"), 400),
        (None, 400),
    ):  # fmt: skip
        broken = UploadBrokenError("the upload was interrupted after")
        broken.__cause__ = cause
        assert incoming.status_of(broken) == status, cause
