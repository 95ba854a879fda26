"""The API of feeds: a file in one stream, for whom it is open, and what it answers."""

import errno
import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.contrib.auth.models import User
from django.test import Client

from mobility.errors import NoRoomError, StagingUnavailableError
from mobility.keystore import keystore
from mobility.models import Batch, FeedToken, VaultStudy
from mobility.services import feeds, staging, uploads
from mobility.services.staging import UploadReader
from tests.mobility.views.small_study import GOOD

pytestmark = pytest.mark.django_db(databases=["default", "vault"], transaction=True)
URL = "/api/v1/studies/fair/extracts/day.csv"
Run = Callable[[], None]


@pytest.fixture
def token(study: VaultStudy) -> str:
    return feeds.create_token(study, name="nightly", days=3, by="olga")[1]


def put(client: Client, token: str, body: bytes = GOOD, url: str = URL, **options: Any) -> Any:
    headers = {"Authorization": f"Bearer {token}"} | options.pop("headers", {})
    return client.put(url, data=body, content_type="text/csv", headers=headers, **options)


def get(client: Client, token: str, batch: str) -> Any:
    return client.get(f"/api/v1/batches/{batch}", headers={"Authorization": f"Bearer {token}"})


def check_problem(response: Any, status: int, words: str) -> None:
    assert response.status_code == status
    assert response["Content-Type"] == "application/problem+json"
    problem = json.loads(response.content)
    assert set(problem) == {"type", "title", "status", "detail"}
    assert problem["status"] == status
    assert words in problem["detail"]


class TestPut:
    def test_a_file_becomes_a_batch_whose_state_can_be_read(
        self, client: Client, study: VaultStudy, token: str, run_batches: Run
    ) -> None:
        response = put(client, token)
        assert response.status_code == 201
        made = response.json()
        assert made["url"] == response["Location"] == f"http://testserver/api/v1/batches/{made['batch']}"
        batch = Batch.objects.get(pk=made["batch"])
        assert (batch.state, batch.filename, batch.created_by) == ("queued", "day.csv", "feed nightly")
        assert UploadReader(batch).readall() == GOOD
        before = get(client, token, made["batch"]).json()
        assert (before["state"], before["is_final"], before["rows_read"]) == ("queued", False, 0)
        run_batches()
        after = get(client, token, made["batch"]).json()
        assert (after["state"], after["is_final"], after["failure"]) == ("done", True, "")
        assert (after["rows_read"], after["rows_accepted"], after["duplicate"]) == (6, 6, False)

    def test_the_same_file_again_changes_nothing(
        self, client: Client, study: VaultStudy, token: str, run_batches: Run
    ) -> None:
        for is_duplicate in (False, True):
            made = put(client, token).json()
            run_batches()
            assert get(client, token, made["batch"]).json()["duplicate"] == is_duplicate

    def test_options_are_in_the_address(self, client: Client, study: VaultStudy, token: str) -> None:
        put(client, token, url=f"{URL}?profile=opt-out&more_to_come=1&validate_only=1")
        batch = Batch.objects.get()
        assert (batch.profile, batch.kind) == ("opt-out", "opt_out")
        assert batch.more_to_come
        assert batch.validate_only

    def test_options_are_off_by_default(self, client: Client, study: VaultStudy, token: str) -> None:
        put(client, token, url=f"{URL}?more_to_come=0&validate_only=")
        batch = Batch.objects.get()
        assert (batch.profile, batch.more_to_come, batch.validate_only) == ("default", False, False)

    @pytest.mark.parametrize("on", ["1", "true", "yes", "on", "TRUE"])
    @pytest.mark.parametrize("off", ["0", "false", "no", "off", ""])
    def test_flags_have_their_words(
        self, client: Client, study: VaultStudy, token: str, on: str, off: str
    ) -> None:
        put(client, token, url=f"{URL}?more_to_come={off}&validate_only={on}")
        batch = Batch.objects.get()
        assert (batch.more_to_come, batch.validate_only) == (False, True)

    @pytest.mark.parametrize(
        ("query", "words"),
        [("validate-only=1", "'validate-only'; parameters: profile, more_to_come, validate_only"),
         ("validate_only=ture", "validate_only must be one of 1, true, yes, on, or one of 0, false, no, off"),
         ("more_to_come=2", "more_to_come must be one of")],
    )  # fmt: skip
    def test_what_has_no_meaning_is_refused(
        self, client: Client, study: VaultStudy, token: str, query: str, words: str
    ) -> None:
        check_problem(put(client, token, url=f"{URL}?{query}"), 400, words)
        assert Batch.objects.count() == 0

    @pytest.mark.parametrize(
        ("error", "status"),
        [(StagingUnavailableError("the staging bucket does not answer"), 503),
         (NoRoomError("no room"), 507), (OSError(errno.ENOSPC, "full"), 507)],
    )  # fmt: skip
    def test_what_is_wrong_with_the_server_is_not_the_senders_fault(
        self, client: Client, study: VaultStudy, token: str, monkeypatch: pytest.MonkeyPatch,
        error: Exception, status: int,
    ) -> None:  # fmt: skip
        def fail(*_: object) -> None:
            raise error

        monkeypatch.setattr(staging, "write_frame", fail)
        response = put(client, token)
        check_problem(response, status, "")
        assert response.get("Retry-After") == "60"
        assert Batch.objects.get().state == Batch.State.FAILED

    def test_a_body_in_chunks_that_gets_too_large_is_told_so(
        self, client: Client, study: VaultStudy, token: str, settings: Any
    ) -> None:
        settings.MOBILITY_MAX_UPLOAD_BYTES = 3
        check_problem(put_in_chunks(client, token, io.BytesIO(GOOD)), 413, "may have 3 bytes at most")

    def test_a_batch_that_is_cancelled_meanwhile_is_gone(
        self, client: Client, study: VaultStudy, token: str
    ) -> None:
        def cancelled() -> Iterator[bytes]:
            uploads.abandon(Batch.objects.get(), by="oscar")
            yield GOOD

        check_problem(put_in_chunks(client, token, Body(cancelled())), 410, "cancelled by oscar")

    def test_a_parquet_body_is_read_as_such(
        self, client: Client, study: VaultStudy, token: str, run_batches: Run
    ) -> None:
        columns = zip(*(line.split(",") for line in GOOD.decode().split()[1:]), strict=True)
        file = io.BytesIO()
        pq.write_table(pa.table(dict(zip(["msisdn", "time", "age"], map(list, columns), strict=True))), file)
        made = put(client, token, file.getvalue()).json()
        run_batches()
        answer = get(client, token, made["batch"]).json()
        assert (answer["state"], answer["rows_accepted"]) == ("done", 6)
        assert answer["source"]["format"] == "parquet"

    def test_a_body_in_chunks_is_taken_to_its_end(
        self, client: Client, study: VaultStudy, token: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(staging, "FRAME_BYTES", 50)
        response = put_in_chunks(client, token, io.BytesIO(GOOD))
        assert response.status_code == 201
        batch = Batch.objects.get()
        assert batch.bytes_total == len(GOOD)
        assert UploadReader(batch).readall() == GOOD

    def test_a_body_in_chunks_that_breaks_leaves_nothing(
        self, client: Client, study: VaultStudy, token: str
    ) -> None:
        def breaking() -> Iterator[bytes]:
            yield GOOD
            raise OSError(errno.ECONNRESET, "reset")

        check_problem(put_in_chunks(client, token, Body(breaking())), 400, "the upload broke off")
        assert Batch.objects.get().state == Batch.State.FAILED
        assert staging.staged_batches() == set()

    def test_a_body_that_ends_early_leaves_nothing(
        self, client: Client, study: VaultStudy, token: str
    ) -> None:
        response = put(client, token, headers={"content-length": str(len(GOOD) + 10)})
        check_problem(response, 400, "the upload broke off")
        assert not keystore().exists(Batch.objects.get().key_id)

    @pytest.mark.parametrize(
        ("length", "status", "words"),
        [("0", 400, "The file is empty"), ("", 411, "Content-Length"), ("-1", 411, "")],
    )
    def test_the_length_must_be_known(
        self, client: Client, study: VaultStudy, token: str, length: str, status: int, words: str
    ) -> None:
        check_problem(put(client, token, headers={"content-length": length}), status, words)
        assert Batch.objects.count() == 0

    def test_refusals_are_problems(
        self, client: Client, study: VaultStudy, token: str, settings: Any
    ) -> None:
        check_problem(put(client, token, url=f"{URL}?profile=none"), 400, "no profile 'none'")
        settings.MOBILITY_MAX_UPLOAD_BYTES = 3
        check_problem(put(client, token), 413, "may have 3 bytes at most")
        keystore().destroy(study.key_id)
        check_problem(put(client, token), 410, "was destroyed, and stays so for ever")
        for method in ("get", "post", "delete"):
            response = getattr(client, method)(URL)
            check_problem(response, 405, "not allowed")
            assert response["Allow"] == "PUT"


class Body:
    """A body in chunks as the server hands it over: it can be read, and nothing else."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks

    def read(self, size: int, /) -> bytes:
        data = next(self._chunks, b"")
        assert len(data) <= size
        return data

    readline = read  # the framework takes it at hand


def put_in_chunks(client: Client, token: str, stream: Any) -> Any:
    """As the server hands such a body over: without a length, and with its end marked."""
    return client.generic(
        "PUT", URL, headers={"Authorization": f"Bearer {token}", "Transfer-Encoding": "chunked"},
        **{"wsgi.input": stream, "wsgi.input_terminated": True, "CONTENT_LENGTH": ""},
    )  # fmt: skip


class TestWho:
    @pytest.mark.parametrize(
        "header",
        [None, "", "Bearer", "Bearer ", "Bearer mobility-feed-wrong", "Basic {}", "{}", "Bearer {}x"],
    )
    def test_without_a_valid_token_nobody(
        self, client: Client, token: str, header: str | None, operator: User
    ) -> None:
        client.force_login(operator)  # a session opens nothing here
        headers = {} if header is None else {"Authorization": header.format(token)}
        for response in (
            client.put(URL, data=GOOD, headers=headers),
            client.get("/api/v1/batches/0b0e7a86-0000-4000-8000-000000000001", headers=headers),
        ):
            check_problem(response, 401, "The token is missing")
            assert response["WWW-Authenticate"] == 'Bearer realm="mobility"'
        assert Batch.objects.count() == 0

    def test_revoked_and_expired_tokens_open_nothing(self, client: Client, token: str) -> None:
        row = FeedToken.objects.get()
        feeds.revoke(row, by="olga")
        check_problem(put(client, token), 401, "revoked")
        FeedToken.objects.update(revoked_at=None, expires_at=row.created_at)
        check_problem(put(client, token), 401, "expired")

    def test_another_study_is_not_found(self, client: Client, token: str) -> None:
        check_problem(put(client, token, url=URL.replace("fair", "other")), 404, "no study")

    def test_only_files_of_the_study_are_found(self, client: Client, study: VaultStudy, token: str) -> None:
        definition = study.definition | {"slug": "other"}
        other = VaultStudy.objects.create(
            slug="other", definition=definition, plan=study.plan, key_id="other", n_shards=1
        )
        hidden = [
            Batch.objects.create(study=other, state="done"),
            Batch.objects.create(study=study, kind=Batch.Kind.CLOSE_DAYS, day=1),
        ]
        for batch in hidden:
            check_problem(get(client, token, str(batch.pk)), 404, "no batch")

    def test_csrf_does_not_concern_it(self, study: VaultStudy, token: str) -> None:
        assert put(Client(enforce_csrf_checks=True), token).status_code == 201
