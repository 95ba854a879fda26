"""After a restore nobody counts twice, what was closed stays closed, and what cannot go on says so."""

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

import jsonschema
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command
from django.test import Client
from pytest_django.fixtures import Settings

from mobility.errors import StudyStoppedError
from mobility.handover import sender_key
from mobility.keystore import keystore
from mobility.models import Applied, Batch, Handover, OptOutShard, PresenceShard, VaultPublication, VaultStudy
from mobility.operations import restore as restoring
from mobility.operations.backup import make_backup
from mobility.operations.backup_dumps import load
from mobility.operations.backup_folder import read_manifest
from mobility.operations.errors import OperationsError
from mobility.operations.escrow import make_escrow
from mobility.operations.escrow_restore import restore_keys
from mobility.operations.findings import Level
from mobility.operations.models import Backup
from mobility.operations.probes import fitting
from mobility.operations.restore import restore
from mobility.operations.restore_closings import Closings, closed_in, known_keys
from mobility.operations.restore_reconcile import reconcile
from mobility.services import handover
from mobility.services.closing import Leave, StudyNotClosedError, close_study
from mobility.services.publishing import catch_up
from mobility.services.recovery import recover
from mobility.services.vault import open_study
from reports.ledger_check import check_tables
from reports.ledger_key import read_public_pem
from reports.models import LedgerEntry, LedgerKind, Publication, Study
from reports.services.ledger import record
from reports.studyfile import StudyDefinition
from tests.mobility.services.conftest import Pipeline

pytestmark = [
    pytest.mark.database,
    pytest.mark.django_db(databases=["default", "vault"], transaction=True),
]
SMALL = {"expected_subscribers": 100, "min_publication": 10}
SCHEMA = json.loads((Path(__file__).parents[3] / "docs/certificate.schema.json").read_text())


@pytest.fixture(autouse=True)
def _nobody_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether workers answer is for tests/e2e/test_restore_drill.py, which has some."""
    monkeypatch.setattr(restoring, "_check_nobody_works", lambda: None)


@pytest.fixture
def few(extract: list[Path], tmp_path: Path) -> list[Path]:
    """Three days of a tenth of the people."""
    files = []
    for path in extract[:3]:
        header, *rows = path.read_text().splitlines(keepends=True)
        file = tmp_path / path.name
        file.write_text(header + "".join(row for row in rows if row.split(",")[0].endswith("3")))
        files.append(file)
    return files


@pytest.fixture
def pipeline(make_pipeline: Callable[..., Pipeline]) -> Pipeline:
    return make_pipeline(**SMALL)


def back_up(tmp_path: Path) -> Path:
    return make_backup(tmp_path / "backups", by="test").folder


def put_back(folder: Path, **options: Any) -> dict[str, Any]:
    return restore(folder, by="test", replaces=True, **options)


def test_what_came_after_the_backup_is_sent_again_and_counts_once(
    pipeline: Pipeline, few: list[Path], tmp_path: Path, person: Callable[..., User], client: Client
) -> None:
    client.force_login(person("anna"))
    pipeline.upload(*few[:2])
    folder, before = back_up(tmp_path), pipeline.tallies()
    pipeline.upload(few[2])
    after = pipeline.tallies()
    assert after != before

    told = put_back(folder)
    assert pipeline.tallies() == before
    assert (told["sessions_ended"], Session.objects.count()) == (0, 0)  # the backup has none
    assert (told["waits_for"], told["keys_missing"], told["studies_stopped"]) == (None, [], {})
    assert told["openings"]["accounts"] == ["anna"]
    report = check_tables()
    assert report.problem is None
    client.force_login(person("bert"))
    assert "sessions_ended" in reconcile(by="test")  # as restore_keys does, whenever that is
    assert Session.objects.count() == 1  # of after the restore: it goes on
    last = LedgerEntry.objects.get(kind="backup.restored")
    assert last.facts["backup_of"] == read_manifest(folder).made_at.isoformat()
    assert [batch.duplicate_of is None for batch in pipeline.upload(few[1], few[2])] == [False, True]
    assert pipeline.tallies() == after


# After so many tasks the batch is in this state, and so many of its four shards have it.
MOMENTS = {1: ("reading", 0), 2: ("merging", 0), 4: ("merging", 2)}


@pytest.mark.parametrize("n_tasks", MOMENTS)
def test_a_batch_under_way_ends_and_its_file_counts_once(
    pipeline: Pipeline, few: list[Path], tmp_path: Path, n_tasks: int
) -> None:
    """Wherever the backup finds it: waiting, read, or merged into some of the shards."""
    pipeline.upload(few[0])
    batch = pipeline.receive(few[1])
    pipeline.queue.append(("advance", str(batch.pk)))
    for _ in range(n_tasks):
        task, *ids = pipeline.queue.popleft()
        from mobility.services import running

        getattr(running, task)(*ids)
    batch.refresh_from_db()
    merged, state = Applied.objects.filter(batch=batch).count(), batch.state
    folder = back_up(tmp_path)
    pipeline.work()
    after = pipeline.tallies()

    told = put_back(folder)
    batch.refresh_from_db()
    assert told["batches_ended"] == {pipeline.study.slug: 1}
    assert batch.state == Batch.State.FAILED
    assert "Send the same file again" in batch.failure
    (again,) = pipeline.upload(few[1])
    assert again.state == Batch.State.DONE
    assert pipeline.tallies() == after
    assert (state, merged) == MOMENTS[n_tasks]


def test_a_batch_whose_file_is_still_there_goes_on(
    pipeline: Pipeline, few: list[Path], tmp_path: Path
) -> None:
    """Restored in place, nothing was lost in between."""
    pipeline.upload(few[0])
    batch = pipeline.receive(few[1])
    folder = back_up(tmp_path)
    assert put_back(folder)["batches_ended"] == {}
    assert pipeline.finished(batch).state == Batch.State.DONE
    assert Publication.objects.count() == 2


def test_a_vault_older_than_its_totals_stops_instead_of_counting_twice(
    pipeline: Pipeline, few: list[Path], tmp_path: Path
) -> None:
    pipeline.upload(few[0])
    folder = back_up(tmp_path)
    pipeline.upload(few[1])
    after = pipeline.tallies()
    load(next(folder.glob("vault.*")), alias="vault")

    told = recover(by="test", closed=set())
    assert (
        "1 publications of it that this vault does not know" in told["studies_stopped"][pipeline.study.slug]
    )
    study = VaultStudy.objects.get()
    with pytest.raises(StudyStoppedError, match="nobody is counted twice"):
        open_study(study)
    with pytest.raises(StudyStoppedError):
        pipeline.study = study
        pipeline.upload(few[1])
    assert pipeline.tallies() == after
    (found,) = fitting.stopped()
    assert (found.code, found.level, found.subject) == ("study_stopped", Level.ERROR, study.slug)

    put_back(folder)  # both of one backup: they fit, and the study goes on
    assert VaultStudy.objects.get().stopped == ""
    assert [each.level for each in fitting.stopped()] == [Level.OK]
    pipeline.study.refresh_from_db()
    pipeline.upload(few[1])
    assert pipeline.tallies() == after


def test_nothing_is_added_even_where_nobody_has_looked_yet(
    pipeline: Pipeline, few: list[Path], tmp_path: Path
) -> None:
    """The study is not marked yet, and a file is taken in: it is merged, but crosses to nobody."""
    pipeline.upload(few[0])
    folder = back_up(tmp_path)
    pipeline.upload(few[1])
    after = pipeline.tallies()
    load(next(folder.glob("vault.*")), alias="vault")
    (batch,) = pipeline.upload(few[1])
    assert (batch.state, "nobody is counted twice" in batch.failure) == (Batch.State.FAILED, True)
    assert pipeline.tallies() == after


def test_a_stopped_study_can_be_ended(pipeline: Pipeline, few: list[Path], tmp_path: Path) -> None:
    pipeline.upload(few[0])
    folder = back_up(tmp_path)
    pipeline.upload(few[1])
    after = pipeline.tallies()
    load(next(folder.glob("vault.*")), alias="vault")
    recover(by="test", closed=set())
    with pytest.raises(StudyNotClosedError, match="nothing was erased"):
        close_study(pipeline.study, by="test", leave=Leave())
    assert PresenceShard.objects.exists()
    certificate = close_study(pipeline.study, by="test", leave=Leave(came_back=True))
    jsonschema.Draft202012Validator(SCHEMA).validate(certificate)
    assert "came_back" in [row["name"] for row in certificate["not_reached"]]
    assert not PresenceShard.objects.exists()
    assert not keystore().exists(pipeline.study.key_id)
    assert pipeline.tallies() == after
    catch_up()
    assert VaultStudy.objects.get().certificate == certificate


def test_a_main_database_older_than_the_vault_catches_up(
    pipeline: Pipeline, few: list[Path], tmp_path: Path
) -> None:
    pipeline.upload(few[0])
    folder = back_up(tmp_path)
    pipeline.upload(few[1])
    after = pipeline.tallies()
    load(next(folder.glob("default.*")), alias="default")
    assert pipeline.tallies() != after
    assert recover(by="test", closed=set())["studies_stopped"] == {}
    assert pipeline.tallies() == after


def noisy_study(make: Callable[..., Pipeline], definition: StudyDefinition) -> Pipeline:
    plan = replace(definition.plan, presence_epsilon=Decimal(1), presence_days=2)
    return make(slug="noisy", plan=plan, expected_subscribers=100)


def test_no_day_crosses_twice_with_the_same_presence_noise(
    make_pipeline: Callable[..., Pipeline], definition: StudyDefinition, few: list[Path], tmp_path: Path
) -> None:
    """A day that was closed after the backup would cross again, without those who opted out."""
    noisy = noisy_study(make_pipeline, definition)
    noisy.upload(*few)
    noisy.close_days(through=1)
    folder = back_up(tmp_path)
    noisy.close_days(through=2)

    told = put_back(folder)
    assert "--after-restore" in told["studies_stopped"]["noisy"]
    study = VaultStudy.objects.get()
    before = noisy.tallies()
    catch_up()
    recover(by="test", closed=set())  # everything fits, and yet
    with pytest.raises(StudyStoppedError, match="--no-day-closed-since"):
        open_study(VaultStudy.objects.get())
    noisy.study = study
    with pytest.raises(StudyStoppedError):
        noisy.close_days(through=2)
    assert noisy.tallies() == before
    (found,) = fitting.stopped()
    assert (found.level, found.facts) == (Level.ERROR, {"why": "presence"})
    certificate = close_study(study, by="test", leave=Leave(came_back=True))
    assert certificate["erased_at"] is not None
    assert noisy.tallies() == before


def test_presence_noise_goes_on_if_no_day_was_closed_since(
    make_pipeline: Callable[..., Pipeline], definition: StudyDefinition, few: list[Path], tmp_path: Path
) -> None:
    noisy = noisy_study(make_pipeline, definition)
    noisy.upload(few[0])
    folder = back_up(tmp_path)
    assert list(put_back(folder)["studies_stopped"]) == ["noisy"]
    assert put_back(folder, no_day_closed=True)["studies_stopped"] == {}
    noisy.study.refresh_from_db()
    noisy.close_days(through=definition.days)  # then no day is left that could cross
    folder = make_backup(tmp_path / "later", by="test").folder
    assert put_back(folder)["studies_stopped"] == {}


def test_a_study_closed_since_stays_closed(pipeline: Pipeline, few: list[Path], tmp_path: Path) -> None:
    pipeline.upload(few[0])
    private = X25519PrivateKey.generate()
    escrow, _ = make_escrow(tmp_path / "escrow", recipient=private.public_key(), by="test")
    folder, before = back_up(tmp_path), pipeline.tallies()
    first = close_study(pipeline.study, by="olga", leave=Leave())
    (text,) = (row["text"] for row in first["not_reached"] if row["name"] == "escrow")
    assert read_manifest(folder).made_at.date().isoformat() in text
    key_id = pipeline.study.key_id

    told = put_back(folder)
    assert told["studies_closed_again"] == [pipeline.study.slug]
    study = VaultStudy.objects.get()
    jsonschema.Draft202012Validator(SCHEMA).validate(study.certificate)
    assert study.certificate["erased_at"] is not None
    (key,) = study.certificate["keys"]
    assert (study.certificate["key_was_lost"], key["id"]) == (False, key_id)
    assert key["destroyed_at"] <= first["keys"][0]["destroyed_at"]
    assert not PresenceShard.objects.exists()
    assert not VaultPublication.objects.exists()
    assert Study.objects.get().state == Study.State.CLOSED
    assert pipeline.tallies() == before
    told = restore_keys(escrow, private_key=private, by="test")
    assert (told["refused"], told["restored"]) == ([key_id], [])
    assert not keystore().exists(key_id)
    assert check_tables().problem is None


def exported(tmp_path: Path, **options: Any) -> Path:
    file = tmp_path / "ledger.jsonl"
    call_command("export_ledger", out=file, **options)
    return file


def test_a_ledger_kept_elsewhere_closes_what_it_names(
    pipeline: Pipeline, few: list[Path], tmp_path: Path
) -> None:
    pipeline.upload(few[0])
    folder, study = back_up(tmp_path), pipeline.study
    close_study(study, by="olga", leave=Leave())
    ledger = exported(tmp_path)
    (keystore().folder / f"{study.key_id}.destroyed").unlink()  # another host, an old copy of the key
    keystore().put_back(study.key_id, bytes(32))
    call_command("restore", str(folder), "--yes", "--replace", "--ledger", str(ledger))
    assert VaultStudy.objects.get().certificate["erased_at"] is not None
    assert keystore().is_destroyed(study.key_id)
    assert not keystore().exists(study.key_id)


def test_a_ledger_never_closes_another_study_of_the_slug(pipeline: Pipeline) -> None:
    study = pipeline.study
    earlier, later = (study.created_at + timedelta(seconds=s) for s in (-1, 1))
    other = f"study-{study.slug}-00000000"
    assert Closings(keys=frozenset([other])).studies() == set()
    assert Closings(slugs={study.slug: earlier}).studies() == set()
    assert Closings(slugs={study.slug: later}).studies() == {study.slug}
    assert Closings(keys=frozenset([study.key_id])).studies() == {study.slug}
    assert Closings(keys=frozenset(["study-gone-00000000"])).studies() == {"gone"}


def test_only_a_whole_ledger_of_a_known_signer_is_believed(
    pipeline: Pipeline, few: list[Path], tmp_path: Path
) -> None:
    pipeline.upload(few[0])
    folder = back_up(tmp_path)
    close_study(pipeline.study, by="olga", leave=Leave())
    ledger, known = exported(tmp_path), known_keys(head=None, pem=None)
    assert closed_in(ledger, known=known) == Closings(keys=frozenset([pipeline.study.key_id]))
    head = read_manifest(folder).ledger_head
    assert head is not None
    assert known_keys(head=head, pem=None) == {head["public_key"]}
    with pytest.raises(OperationsError, match="--ledger-key"):
        closed_in(ledger, known={"00" * 32})
    ledger.write_bytes(ledger.read_bytes().replace(b"olga", b"adam"))
    with pytest.raises(OperationsError, match="is not whole"):
        closed_in(ledger, known=known)
    with pytest.raises(CommandError, match="leaves out"):
        part = exported(tmp_path, study=pipeline.study.slug)
        call_command("restore", str(folder), "--yes", "--replace", "--ledger", str(part))


def test_a_ledger_of_the_analysts_tells_when_a_study_was_closed(pipeline: Pipeline, tmp_path: Path) -> None:
    """It names no key, and is signed with another one, which people name."""
    record(LedgerKind.STUDY_CLOSED, study="fair", facts={"at": "2026-01-02T03:04:05+00:00"})
    pem = tmp_path / "analysts.pem"
    call_command("export_ledger", out=tmp_path / "ledger.jsonl", public_key=pem)
    key = read_public_pem(pem.read_bytes())
    assert key in known_keys(head=None, pem=pem)
    found = closed_in(tmp_path / "ledger.jsonl", known={key})
    assert found == Closings(slugs={"fair": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)})


def test_an_escrow_after_the_backup_is_in_the_certificate(pipeline: Pipeline, tmp_path: Path) -> None:
    """The restored database does not know of it; the list beside the keys does."""
    folder = back_up(tmp_path)
    _, listed = make_escrow(
        tmp_path / "escrow", recipient=X25519PrivateKey.generate().public_key(), by="test"
    )
    put_back(folder)
    assert not Backup.objects.filter(kind=Backup.Kind.ESCROW).exists()
    certificate = close_study(VaultStudy.objects.get(), by="olga", leave=Leave())
    (text,) = (row["text"] for row in certificate["not_reached"] if row["name"] == "escrow")
    assert listed.made_at[:10] in text


def test_what_opens_it_from_outside_is_ended_if_asked_for(
    pipeline: Pipeline, tmp_path: Path, person: Callable[..., User]
) -> None:
    from reports.models import ApiToken
    from reports.policies import Role
    from reports.services.access import create_token

    anna = person("anna", Role.ANALYST)
    create_token(by=anna, name="night", days=9, study=None)
    folder = back_up(tmp_path)
    ApiToken.objects.all().delete()
    assert put_back(folder)["openings"]["api_tokens"] == ["anna: night"]
    assert ApiToken.objects.get().is_valid
    assert put_back(folder, revokes=True)["openings"]["api_tokens"] == []
    assert not ApiToken.objects.get().is_valid


def test_people_are_told_that_opt_outs_since_are_gone(
    pipeline: Pipeline, few: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = back_up(tmp_path)
    OptOutShard.objects.create(study=pipeline.study, shard=0, blob=b"sealed")
    with pytest.raises(CommandError, match="--replace"):
        call_command("restore", str(folder), "--yes")
    assert OptOutShard.objects.exists()
    call_command("restore", str(folder), "--yes", "--replace")
    assert not OptOutShard.objects.exists()
    printed = capsys.readouterr()
    told = json.loads(printed.out)
    assert told["opt_outs_missing_since"] == read_manifest(folder).made_at.isoformat()
    assert f"PEOPLE WHO OPTED OUT AFTER {told['opt_outs_missing_since']} ARE COUNTED AGAIN" in printed.err


class AnalystState(BaseHTTPRequestHandler):
    """Answers as an analyst server does when it is asked what it has."""

    answer: ClassVar[dict[str, Any]] = {}
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(f"{self.command} {self.path.rpartition('/')[2]}")
        body = json.dumps(self.answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def analysts(settings: Settings, data_dir: Path) -> Iterator[type[AnalystState]]:
    class Handler(AnalystState):
        asked: ClassVar[list[str]] = []

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    settings.MOBILITY_ANALYST_URL = f"http://127.0.0.1:{listening.server_port}"
    settings.MOBILITY_SENDER_KEY_FILE = data_dir / "sender_key.pem"
    yield Handler
    listening.shutdown()
    listening.server_close()


@pytest.mark.parametrize("is_closed", [False, True])
def test_an_analyst_server_that_is_ahead_gets_nothing(
    pipeline: Pipeline,
    few: list[Path],
    analysts: type[AnalystState],
    settings: Settings,
    is_closed: bool,
) -> None:
    pipeline.upload(few[0])
    settings.HANDS_OVER = True
    known = [str(each) for each in Publication.objects.values_list("publication_id", flat=True)]
    analysts.answer = {
        "is_known": True,
        "plan_hash": pipeline.study.plan_hash,
        "publications": known if is_closed else [str(uuid4())],
        "receipts": [],
        "is_closed": is_closed,
    }
    with pytest.raises(StudyStoppedError, match="it was closed" if is_closed else "does not know"):
        handover.deliver(pipeline.study)
    assert analysts.asked == ["GET state"]
    assert "stopped" in Handover.objects.get().problem
    with pytest.raises(StudyStoppedError):
        open_study(VaultStudy.objects.get())
    analysts.answer = {**analysts.answer, "publications": known, "is_closed": False}
    catch_up()
    assert open_study(VaultStudy.objects.get())


def test_keys_wait_until_the_analysts_server_was_asked(
    pipeline: Pipeline,
    tmp_path: Path,
    analysts: type[AnalystState],
    settings: Settings,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It may know a study as closed that this vault calls open."""
    private, pem = X25519PrivateKey.generate(), tmp_path / "private.pem"
    pem.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    sender_key()
    escrow, _ = make_escrow(tmp_path / "escrow", recipient=private.public_key(), by="test")
    key_id = pipeline.study.key_id
    sender = settings.MOBILITY_SENDER_KEY_FILE.read_bytes()
    settings.MOBILITY_SENDER_KEY_FILE.unlink()
    (keystore().folder / f"{key_id}.key").unlink()
    settings.HANDS_OVER = True
    words = ["restore_keys", str(escrow), "--private-key", str(pem)]

    server, settings.MOBILITY_ANALYST_URL = settings.MOBILITY_ANALYST_URL, "http://127.0.0.1:9"
    with pytest.raises(CommandError, match=f"does not answer.*{key_id}.*--without-asking"):
        call_command(*words)
    told = json.loads(capsys.readouterr().out)
    assert (told["unasked"], told["restored"]) == ([key_id], ["sender"])
    assert settings.MOBILITY_SENDER_KEY_FILE.read_bytes() == sender  # it asks with the right key
    assert not keystore().exists(key_id)
    call_command(*words, "--without-asking")
    printed = capsys.readouterr()
    assert json.loads(printed.out)["restored"] == [key_id]
    assert "was not asked" in printed.err

    (keystore().folder / f"{key_id}.key").unlink()
    settings.MOBILITY_ANALYST_URL = server
    analysts.answer = {"is_known": True, "is_closed": True, "publications": [], "receipts": []}
    call_command(*words)
    told = json.loads(capsys.readouterr().out)
    assert (told["refused"], told["restored"]) == ([key_id], [])
    assert keystore().is_destroyed(key_id)
    assert told["studies_closed_again"] == [pipeline.study.slug]
