"""A closed study stays closed after a restore, on the word of keys, a ledger, or the analysts' server."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import jsonschema
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from django.core.management import CommandError, call_command

from mobility.base.errors import OperationsError
from mobility.batches import queries
from mobility.batches.publication import handover
from mobility.batches.publication.analyst_server import HandoverAheadError, sender_key
from mobility.batches.publication.publishing import catch_up
from mobility.models import Batch, PresenceShard, VaultPublication, VaultStudy
from mobility.operations.backup.closings import Closings, closed_in, known_keys
from mobility.operations.backup.escrow import make_escrow
from mobility.operations.backup.escrow_restore import restore_keys
from mobility.operations.backup.folder import read_manifest
from mobility.operations.findings import Level
from mobility.operations.models import Backup
from mobility.operations.probes import crossing
from mobility.plans.closing import Leave, close_study
from mobility.plans.recovery import recover
from mobility.vault.keystore import keystore
from mobility.vault.studies import open_study
from reports.ledger.actions import record
from reports.ledger.check import check_tables
from reports.ledger.key import read_public_pem
from reports.models import LedgerKind, Publication, Study
from tests.mobility.data_folder import answering
from tests.mobility.operations.restoring.conftest import back_up, put_back
from tests.mobility.pipeline import SCHEMA

pytestmark = pytest.mark.django_db(databases=["default", "vault"], transaction=True)


@pytest.mark.database
def test_a_study_closed_since_stays_closed(pipeline, few, tmp_path):
    pipeline.upload(few[0])
    private = X25519PrivateKey.generate()
    escrow, _ = make_escrow(tmp_path / "escrow", recipient=private.public_key(), by="test")
    folder, before, key_id = back_up(tmp_path), pipeline.tallies(), pipeline.study.key_id
    first = close_study(pipeline.study, by="olga", leave=Leave())
    assert read_manifest(folder).made_at.date().isoformat() in told_of_escrow(first)

    assert put_back(folder)["studies_closed_again"] == [pipeline.study.slug]
    certificate = VaultStudy.objects.get().certificate
    jsonschema.Draft202012Validator(SCHEMA).validate(certificate)
    assert certificate["erased_at"] is not None
    (key,) = certificate["keys"]
    assert (certificate["key_was_lost"], key["id"]) == (False, key_id)
    assert key["destroyed_at"] <= first["keys"][0]["destroyed_at"]
    assert (PresenceShard.objects.count(), VaultPublication.objects.count()) == (0, 0)
    assert (Study.objects.get().state, pipeline.tallies()) == (Study.State.CLOSED, before)
    told = restore_keys(escrow, private_key=private, by="test")
    assert (told["refused"], told["restored"]) == ([key_id], [])
    assert (keystore().exists(key_id), check_tables().problem) == (False, None)


def told_of_escrow(certificate: dict[str, Any]) -> str:
    (text,) = (row["text"] for row in certificate["not_reached"] if row["name"] == "escrow")
    return str(text)


def exported(tmp_path, **options):
    file = tmp_path / "ledger.jsonl"
    call_command("export_ledger", out=file, **options)
    return file


def test_a_ledger_kept_elsewhere_closes_what_it_names(pipeline, few, tmp_path):
    pipeline.upload(few[0])
    folder, study = back_up(tmp_path), pipeline.study
    close_study(study, by="olga", leave=Leave())
    ledger = exported(tmp_path)
    (keystore().folder / f"{study.key_id}.destroyed").unlink()  # another host, an old copy of the key
    keystore().put_back(study.key_id, bytes(32))
    call_command("restore", str(folder), "--yes", "--replace", "--ledger", str(ledger))
    assert VaultStudy.objects.get().certificate["erased_at"] is not None
    assert (keystore().is_destroyed(study.key_id), keystore().exists(study.key_id)) == (True, False)


def test_a_ledger_never_closes_another_study_of_the_slug(pipeline):
    study = pipeline.study
    earlier, later = (study.created_at + timedelta(seconds=s) for s in (-1, 1))
    other = f"study-{study.slug}-00000000"
    assert Closings(keys=frozenset([other])).studies() == set()
    assert Closings(slugs={study.slug: earlier}).studies() == set()
    assert Closings(slugs={study.slug: later}).studies() == {study.slug}
    assert Closings(keys=frozenset([study.key_id])).studies() == {study.slug}
    assert Closings(keys=frozenset(["study-gone-00000000"])).studies() == {"gone"}


def test_only_a_whole_ledger_of_a_known_signer_is_believed(pipeline, few, tmp_path):
    pipeline.upload(few[0])
    folder = back_up(tmp_path)
    close_study(pipeline.study, by="olga", leave=Leave())
    ledger, known = exported(tmp_path), known_keys(head=None, pem=None)
    assert closed_in(ledger, known=known) == Closings(keys=frozenset([pipeline.study.key_id]))
    head = read_manifest(folder).ledger_head
    assert known_keys(head=head, pem=None) == {head["public_key"]}
    with pytest.raises(OperationsError, match="--ledger-key"):
        closed_in(ledger, known={"00" * 32})
    ledger.write_bytes(ledger.read_bytes().replace(b"olga", b"adam"))
    with pytest.raises(OperationsError, match="failed its integrity check"):
        closed_in(ledger, known=known)
    with pytest.raises(CommandError, match="leaves out"):
        part = exported(tmp_path, study=pipeline.study.slug)
        call_command("restore", str(folder), "--yes", "--replace", "--ledger", str(part))


def test_a_ledger_of_the_analysts_tells_when_a_study_was_closed(pipeline, tmp_path):
    record(LedgerKind.STUDY_CLOSED, study="fair", facts={"at": "2026-01-02T03:04:05+00:00"})
    pem = tmp_path / "analysts.pem"
    ledger, key = exported(tmp_path, public_key=pem), read_public_pem(pem.read_bytes())
    assert key in known_keys(head=None, pem=pem)
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert closed_in(ledger, known={key}) == Closings(slugs={"fair": at})


def test_an_escrow_after_the_backup_is_in_the_certificate(pipeline, tmp_path):
    """The restored database does not know of it; the list with the keys does."""
    folder = back_up(tmp_path)
    recipient = X25519PrivateKey.generate().public_key()
    _, listed = make_escrow(tmp_path / "escrow", recipient=recipient, by="test")
    put_back(folder)
    assert not Backup.objects.filter(kind=Backup.Kind.ESCROW).exists()
    certificate = close_study(VaultStudy.objects.get(), by="olga", leave=Leave())
    assert listed.made_at[:10] in told_of_escrow(certificate)


@pytest.fixture
def analysts(settings, data_dir):
    with answering() as site:
        settings.MOBILITY_ANALYST_URL = site.url
        settings.MOBILITY_SENDER_KEY_FILE = data_dir / "sender_key.pem"
        yield site


def says(site, **claims):
    site.body = json.dumps({"is_known": True, "publications": [], "receipts": [], **claims}).encode()


@pytest.mark.parametrize("is_closed", [False, True])
def test_a_server_that_claims_too_much_gets_and_stops_nothing(pipeline, few, analysts, settings, is_closed):
    """Files are accepted as before, its claim is named, and waiting data cross once it claims nothing."""
    pipeline.upload(few[0])
    settings.HANDS_OVER = True
    known = [str(each) for each in Publication.objects.values_list("publication_id", flat=True)]
    strange, plan_hash = str(uuid4()), pipeline.study.plan_hash
    says(analysts, plan_hash=plan_hash, publications=known if is_closed else [strange], is_closed=is_closed)
    closed = "reports this study as closed, but it is open here"
    claim = closed if is_closed else f"lists 1 publication.* as {strange}"
    with pytest.raises(HandoverAheadError, match=claim) as refused:
        handover.deliver(pipeline.study)
    assert "close_study" not in str(refused.value)
    (batch,) = pipeline.upload(few[1])
    assert batch.state == Batch.State.DONE
    assert open_study(VaultStudy.objects.get())
    assert recover(by="test", closed=set())["studies_closed_again"] == []
    assert {f"{got.method} {got.path.rpartition('/')[2]}" for got in analysts.asked} == {"GET state"}
    assert queries.waiting_handover(pipeline.study.pk).problem == str(refused.value)
    (found,) = crossing.waiting()
    assert (found.level, found.facts) == (Level.ERROR, {"why": "ahead"})
    settings.MOBILITY_ANALYST_URL = "http://127.0.0.1:9"
    catch_up()  # it does not answer: the claim remains
    assert [each.facts for each in crossing.waiting()] == [{"why": "ahead"}]
    settings.MOBILITY_ANALYST_URL = analysts.url
    says(analysts, plan_hash=plan_hash, publications=known, is_closed=False)
    catch_up()
    assert [each.level for each in crossing.waiting()] == [Level.OK]
    assert handover.has_crossed(pipeline.study)


LIES = (
    {"receipts": [[]]}, {"receipts": [{}]}, {"receipts": 5}, {"publications": [[1]]}, {"publications": {}},
    {"publications": [None]}, {"plan_hash": [1]}, {"is_closed": [[]]}, {"is_known": "no"},
)  # fmt: skip


def test_an_answer_of_any_shape_ends_no_batch(pipeline, few, analysts, settings):
    settings.HANDS_OVER = True
    lines = few[0].read_text().splitlines(keepends=True)
    for number, lie in enumerate(LIES, start=1):
        says(analysts, **{"plan_hash": pipeline.study.plan_hash, **lie})
        analysts.asked.clear()
        few[0].write_text("".join([lines[0], *lines[number:]]))  # another file each time
        (batch,) = pipeline.upload(few[0])
        assert (batch.state, batch.failure, bool(analysts.asked)) == (Batch.State.DONE, "", True), lie


def test_keys_wait_until_the_analysts_server_was_asked(pipeline, tmp_path, analysts, settings, capsys):
    """A study closed by its word alone is not used until people decide: its word destroys nothing."""
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

    settings.MOBILITY_ANALYST_URL = "http://127.0.0.1:9"
    with pytest.raises(CommandError, match=f"did not report whether.*{key_id}.*--without-asking"):
        call_command(*words)
    told = json.loads(capsys.readouterr().out)
    assert (told["unasked"], told["restored"]) == ([key_id], ["sender"])
    assert settings.MOBILITY_SENDER_KEY_FILE.read_bytes() == sender  # it asks with the right key
    assert not keystore().exists(key_id)
    call_command(*words, "--without-asking")
    printed = capsys.readouterr()
    assert json.loads(printed.out)["restored"] == [key_id]
    assert "Keys were restored without asking the analyst server where it did not respond" in printed.err

    (keystore().folder / f"{key_id}.key").unlink()
    settings.MOBILITY_ANALYST_URL = analysts.url
    says(analysts, is_closed=True)
    with pytest.raises(CommandError, match=f"only the analyst server reports.*{key_id}.*--without-asking"):
        call_command(*words)
    told = json.loads(capsys.readouterr().out)
    assert (told["disputed"], told["restored"], told["studies_closed_again"]) == ([key_id], [], [])
    assert not keystore().is_destroyed(key_id)
    call_command(*words, "--without-asking")
    assert keystore().exists(key_id)
