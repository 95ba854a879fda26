"""The API of feeds: a file in one stream, for whom it is open, and what it answers; and the page of feeds."""
# The tokens themselves: tests/mobility/uploads/test_admission.py.

import errno
import html
import io
import re
import subprocess
from datetime import date, timedelta
from unittest.mock import Mock

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from mobility import models
from mobility.batches import staging
from mobility.batches.finalisation import cancel
from mobility.batches.staging import UploadReader
from mobility.models import Batch, FeedToken, VaultStudy
from mobility.operations.sweeping import sweep
from mobility.uploads import actions as uploads
from mobility.uploads.feeds import actions as feeds
from mobility.vault.keystore import keystore
from reports.accounts.actions import COMMAND_LINE, set_roles
from reports.accounts.grants import give_grant, withdraw_grant
from reports.models import LedgerEntry, LedgerKind, Study
from reports.studies.grant_models import StudyGrant, today
from reports.studies.policies import Role
from tests.mobility.pages.pages import IN_BOTH, html_of, page, says, text_of
from tests.mobility.pages.small_study import GOOD, extract, rows

pytestmark = IN_BOTH
URL, PAGE_URL = "/api/v1/studies/fair/extracts/day.csv", "/operator/fair/feeds/"


@pytest.fixture
def token(study, operator) -> str:
    return feeds.create_token(study, name="nightly", days=3, by="olga")[1]


def bearer(token, **headers):
    return {"Authorization": f"Bearer {token}", **headers}


def put(client, token, body=GOOD, url=URL, **headers):
    return client.put(url, data=body, content_type="text/csv", headers=bearer(token, **headers))


def get(client, token, batch):
    return client.get(f"/api/v1/batches/{batch}", headers=bearer(token))


def put_in_chunks(client, token, stream):
    """Send a body in chunks, as the server hands it over: without a length, and with its end marked."""
    return client.generic(
        "PUT", URL, headers=bearer(token, **{"Transfer-Encoding": "chunked"}),
        **{"wsgi.input": stream, "wsgi.input_terminated": True, "CONTENT_LENGTH": ""},
    )  # fmt: skip


def check_problem(response, status, words):
    assert (response.status_code, response["Content-Type"]) == (status, "application/problem+json")
    problem = response.json()
    assert (set(problem), problem["status"]) == ({"type", "title", "status", "detail"}, status)
    assert words in problem["detail"]


class Body:
    def __init__(self, chunks):
        self._chunks = chunks

    def read(self, size, /):
        return next(self._chunks, b"")[:size]

    readline = read  # the framework takes it at hand


class TestPut:
    def test_a_file_becomes_a_batch_whose_state_can_be_read(self, client, token, run_batches):
        response = put(Client(enforce_csrf_checks=True), token)  # which does not concern programs
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
        again = put(client, token).json()
        run_batches()
        assert get(client, token, again["batch"]).json()["duplicate"]

    def test_options_are_in_the_address_and_what_has_no_meaning_is_refused(self, client, token):
        either = "must be one of 1, true, yes, on; or one of 0, false, no, off"
        for query, words in (
            ("validate-only=1", "'validate-only'; parameters: profile, more_to_come, validate_only"),
            ("validate_only=ture", f"validate_only {either}"), ("more_to_come=2", f"more_to_come {either}"),
        ):  # fmt: skip
            check_problem(put(client, token, url=f"{URL}?{query}"), 400, words)
            assert Batch.objects.count() == 0
        for query, expected in (
            ("profile=opt-out&more_to_come=1&validate_only=1", ("opt-out", "opt_out", True, True)),
            ("", ("default", "extract", False, False)),
            ("more_to_come=no&validate_only=on", ("default", "extract", False, True)),
            ("more_to_come=TRUE&validate_only=", ("default", "extract", True, False)),
        ):
            put(client, token, url=f"{URL}?{query}")
            batch = Batch.objects.latest("created_at")
            assert (batch.profile, batch.kind, batch.more_to_come, batch.validate_only) == expected, query

    def test_a_body_that_ends_early_leaves_nothing(self, client, token):
        response = put(client, token, **{"content-length": str(len(GOOD) + 10)})
        check_problem(response, 400, "the upload was interrupted after")
        assert not keystore().exists(Batch.objects.get().key_id)

    def test_refusals_are_problems_and_the_length_must_be_known(
        self, client, study, token, settings, monkeypatch
    ):
        refusals = [(each, 400, "Content-Length must be") for each in ("-1", "12 bytes", "+5", "9" * 30)]
        refusals += [("0", 400, "The file is empty"), ("", 411, "Content-Length")]
        for length, status, words in refusals:
            check_problem(put(client, token, **{"content-length": length}), status, words)
        assert Batch.objects.count() == 0
        check_problem(put(client, token, url=f"{URL}?profile=none"), 400, "no profile 'none'")
        with monkeypatch.context() as patch:
            patch.setattr(staging, "write_frame", Mock(side_effect=OSError(errno.ENOSPC, "full")))
            response = put(client, token)  # other causes: test_uploads.py
        check_problem(response, 507, "")
        assert (response.get("Retry-After"), Batch.objects.get().state) == ("60", Batch.State.FAILED)
        settings.MOBILITY_MAX_UPLOAD_BYTES = 3
        for response in (put(client, token), put_in_chunks(client, token, io.BytesIO(GOOD))):
            check_problem(response, 413, "must have at most 3 bytes")
        keystore().destroy(study.key_id)
        check_problem(put(client, token), 410, "was destroyed and cannot be restored")
        elsewhere = client.put("/api/v2/studies/fair/extracts/day.csv", data=GOOD)
        check_problem(elsewhere, 404, "address does not exist")
        for method in (client.get, client.post, client.delete):
            check_problem(response := method(URL), 405, "does not accept this request method")
            assert response["Allow"] == "PUT"


class TestChunks:
    def test_it_is_taken_to_its_end(self, client, token, monkeypatch):
        monkeypatch.setattr(staging, "FRAME_BYTES", 50)
        assert put_in_chunks(client, token, io.BytesIO(GOOD)).status_code == 201
        batch = Batch.objects.get()
        assert (batch.bytes_total, UploadReader(batch).readall()) == (len(GOOD), GOOD)

    def test_one_that_is_cancelled_meanwhile_is_gone(self, client, token):
        def cancelled():
            cancel(Batch.objects.get(), by="oscar")
            yield GOOD

        check_problem(put_in_chunks(client, token, Body(cancelled())), 410, "cancelled by oscar")

    def test_one_that_paused_for_longer_than_its_lease_may_be_sent_again(self, client, token):
        def lapsed():
            Batch.objects.update(alive_until=timezone.now())
            sweep()
            yield GOOD

        response = put_in_chunks(client, token, Body(lapsed()))
        check_problem(response, 503, "send the file again")
        assert (response["Retry-After"], put(client, token).status_code) == ("60", 201)


class TestWho:
    def test_without_a_valid_token_nobody(self, client, token, as_operator):
        for header in (None, "", "Bearer", "Bearer mobility-feed-x", "Basic {}", "{}", "Bearer {}x"):
            headers = {} if header is None else {"Authorization": header.format(token)}
            found = client.get("/api/v1/batches/0b0e7a86-0000-4000-8000-000000000001", headers=headers)
            for response in (client.put(URL, data=GOOD, headers=headers), found):
                check_problem(response, 401, "The token is missing")
                assert response["WWW-Authenticate"] == 'Bearer realm="mobility"'
        assert Batch.objects.count() == 0

    def test_only_own_files_of_the_study_are_found_and_by_valid_tokens_alone(self, client, study, token):
        row = FeedToken.objects.get()
        feeds.revoke(row, by="olga")
        check_problem(put(client, token), 401, "revoked")
        FeedToken.objects.update(revoked_at=None, expires_at=row.created_at)
        check_problem(put(client, token), 401, "expired")
        FeedToken.objects.update(expires_at=row.expires_at)
        check_problem(put(client, token, url=URL.replace("fair", "other")), 404, "a study with that name")
        for given in ({"kind": "close_days", "day": 1}, {"kind": "extract", "created_by": "olga"}):
            batch = Batch.objects.create(study=study, **given)
            check_problem(get(client, token, batch.pk), 404, "a batch with that name")

    @pytest.mark.parametrize(
        ("rows", "lost", "given"),
        [(User.objects, {"is_active": False}, {"is_active": True}),
         (StudyGrant.objects, {"until": date(2020, 1, 1)}, {"until": None})],
    )  # fmt: skip
    def test_a_token_ends_with_the_rights_of_its_maker_and_does_not_come_back(
        self, client, study, token, rows, lost, given
    ):
        unused = feeds.create_token(study, name="weekly", days=3, by="olga")[1]
        by_command = feeds.create_token(study, name="monthly", days=3, by=COMMAND_LINE)[1]
        rows.update(**lost)
        for _ in range(2):
            check_problem(put(client, token), 403, "this token no longer works")
        sweep()
        rows.update(**given)
        for text in (token, unused):
            check_problem(put(client, text), 401, "revoked")
        assert put(client, by_command).status_code == 201
        entries = LedgerEntry.objects.filter(kind=LedgerKind.TOKEN_REVOKED)
        assert [entry.actor for entry in entries] == ["", ""]

    @pytest.mark.parametrize("ending", ["withdrawn", "expired", "role", "disabled", "another account"])
    def test_nor_does_it_when_role_or_grant_come_back_before_anyone_looked(
        self, client, person, study, ending, monkeypatch
    ):
        of_study, maker = Study.objects.get(slug="fair"), person("otto", Role.OPERATOR, studies=[])
        grant = give_grant(maker, study=of_study, until=today())
        token = feeds.create_token(study, name="weekly", days=3, by="otto")[1]
        give_grant(maker, study=of_study, until=today() + timedelta(days=1))
        set_roles(maker, roles=[Role.OPERATOR, Role.ANALYST])
        assert put(client, token).status_code == 201
        match ending:
            case "withdrawn":
                withdraw_grant(grant)
            case "expired":
                tomorrow = timezone.now() + timedelta(days=2)
                monkeypatch.setattr(timezone, "now", lambda: tomorrow)
            case "role":
                set_roles(maker, roles=[Role.ANALYST])
                set_roles(maker, roles=[Role.OPERATOR])
            case "disabled":
                for maker.is_active in (False, True):
                    maker.save()
            case _:
                maker.delete()
                maker = person("otto", Role.OPERATOR, studies=[])
        give_grant(maker, study=of_study)
        check_problem(put(client, token), 403, "this token no longer works")

    def test_a_grant_that_another_one_covers_ends_nothing(self, client, person, study):
        maker = person("otto", Role.OPERATOR)  # of all studies
        grant = give_grant(maker, study=Study.objects.get(slug="fair"))
        token = feeds.create_token(study, name="weekly", days=3, by="otto")[1]
        withdraw_grant(grant)
        assert put(client, token).status_code == 201


class TestWhatIsTold:
    # Studies that differ in people give the same answers to the same files.
    FILES = (GOOD, GOOD + rows("d").encode(), extract(rows("a", day=2)), extract("a,soon,old\n", rows("e")))
    LISTS = (b"a\n", b"e\n", b"nobody\n")

    def answers(self, client, token, run_batches):
        told = []
        asked = [(body, query) for body in self.FILES for query in ("", "validate_only=1", "more_to_come=1")]
        asked += [(body, query) for body in self.LISTS for query in ("validate_only=1&profile=opt-out",)]
        for body, query in asked:
            made = put(client, token, body, url=f"{URL}?{query}").json()
            run_batches()
            answer = get(client, token, made["batch"]).json()
            assert answer.pop("batch") == made["batch"]
            told.append(answer)
        return told

    def test_no_answer_tells_who_was_there_or_has_opted_out(self, client, token, operator, run_batches):
        nobody = self.answers(client, token, run_batches)
        tables = "Batch", "PresenceShard", "DayState", "VaultDay", "AnswerShard", "OptOutShard", "OutboxDelta"
        for table in tables:
            getattr(models, table).objects.all().delete()
        study = VaultStudy.objects.get()
        for body, profile in ((self.FILES[1], "default"), (self.FILES[2], "default"), (b"a\ne\n", "opt-out")):
            uploads.receive(
                io.BytesIO(body), study=study, filename="x.csv", by="olga", more_to_come=False,
                bytes_total=None, profile=profile,
            )  # fmt: skip
            run_batches()
        assert models.OptOutShard.objects.exists()
        assert self.answers(client, token, run_batches) == nobody
        assert {name for told in nobody for name in told} == {
            "state", "is_final", "failure", "profile", "validate_only", "source", "timezone", "rows_read",
            "rows_accepted", "rows_ignored", "rows_rejected", "duplicate", "checks",
        }  # fmt: skip
        assert {told["state"] for told in nobody} == {"done"}


@pytest.mark.usefixtures("as_operator")
class TestPage:
    def test_the_way_up_is_one_that_the_person_may_go(self, client, study, person):
        for role, way in ((Role.OPERATOR, "/operator/"), (Role.ADMINISTRATOR, "/administrator/")):
            client.force_login(person(f"one-{role}", role))
            crumbs = html_of(client, PAGE_URL).split('class="breadcrumbs"')[1].split("</nav>")[0]
            assert re.findall(r'href="([^"]+)"', crumbs) == [way, f"{way}fair/"]

    def test_a_token_is_shown_once_and_a_form_that_is_wrong_makes_none(self, client, study):
        for given in ({"name": "", "days": "30"}, {"name": "x", "days": "0"}, {"name": "x"}):
            assert "errorlist" in client.post(PAGE_URL, given).content.decode()
        shown = page(client, PAGE_URL)
        says(shown, "No tokens yet", "http://testserver/api/v1/studies/fair/extracts/FILE?profile=default")
        response = client.post(PAGE_URL, {"name": "nightly", "days": "30"})
        assert response.status_code == 200 and "no-store" in response["Cache-Control"]
        (text,) = set(re.findall(r"mobility-feed-[\w-]{43}", response.content.decode()))
        token = feeds.token_of(text)
        assert (token.name, token.created_by, token.study) == ("nightly", "olga", study)
        shown = page(client, PAGE_URL)
        assert "nightly valid" in shown and text not in shown

    def test_its_command_sends_a_file_and_shows_no_token(self, client, token, live_server, tmp_path):
        (tmp_path / "TOKEN").write_text(token + "\n")
        (tmp_path / "FILE").write_bytes(GOOD)
        shown = html_of(client, PAGE_URL, Host=live_server.url.removeprefix("http://"))
        command = html.unescape(re.search(r"<pre [^>]*>(.*?)</pre>", shown, re.DOTALL)[1])
        done = subprocess.run(  # with -x bash tells the words of every program that it starts
            ["bash", "-xc", command], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert Batch.objects.get().created_by == "feed nightly"
        assert "+ curl " in done.stderr and token not in done.stderr

    def test_the_list_says_the_state_of_each_and_ends_what_is_valid(self, client, study):
        made = {name: feeds.create_token(study, name=name, days=3, by="olga") for name in ("a <b>", "old")}
        FeedToken.objects.filter(pk=made["old"][0].pk).update(expires_at=timezone.now())
        found = html_of(client, PAGE_URL)
        assert "old expired" in text_of(found)
        (revoke,) = re.findall(r'<form method="post" action="([^"]+)">.*?aria-label="Revoke a &lt;b', found)
        assert 'aria-label="Revoke old' not in found
        assert client.get(revoke).status_code == 405
        assert client.post(revoke.replace("fair", "other")).status_code == 404
        assert feeds.token_of(made["a <b>"][1]) is not None
        shown = client.post(revoke, follow=True).content.decode()
        says(text_of(shown), "The token “a &lt;b&gt;” was revoked", "a &lt;b&gt; revoked")
        assert feeds.token_of(made["a <b>"][1]) is None
