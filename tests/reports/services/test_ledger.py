"""Adding to the ledger: numbers without gaps, a chain of hashes, a signed head, and no way back."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from io import StringIO
from itertools import pairwise
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from reports.ledger_chain import BEFORE_THE_FIRST, entry_hash
from reports.ledger_check import check_tables
from reports.ledger_key import LedgerKeyError, own_public_key
from reports.models import LedgerEntry, LedgerHead, LedgerKind
from reports.models.ledger import AppendOnlyError
from reports.services.ledger import LedgerFactsError, record

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]
COLUMNS = "number, at, kind, actor, study, facts, event_id, salt, previous_hash, hash"


def entries() -> list[LedgerEntry]:
    return list(LedgerEntry.objects.order_by("number"))


def test_entries_are_numbered_and_chained(ledger_key: Path) -> None:
    record(LedgerKind.STUDY_CREATED, actor="adam", study="fair", facts={"days": 4, "names": ["Å", None]})
    record(LedgerKind.SIGNED_OUT, actor="adam")
    one, two = entries()
    assert (one.number, one.kind, one.actor, one.study) == (1, "study.created", "adam", "fair")
    assert one.previous_hash == BEFORE_THE_FIRST
    for entry in (one, two):
        assert entry.hash == entry_hash(
            number=entry.number, previous_hash=entry.previous_hash, content_hash=entry.content.hash
        )
    assert two.number == 2
    assert two.previous_hash == one.hash
    assert timezone.now() - one.at < timedelta(minutes=1)


def test_the_head_is_signed_by_the_key_in_its_file(ledger_key: Path) -> None:
    record(LedgerKind.SIGNED_OUT, actor="adam")
    head = LedgerHead.objects.get()
    assert (head.number, head.hash) == (1, entries()[0].hash)
    public = own_public_key()
    assert public is not None
    assert head.signed.is_signed_by(public)
    assert settings.MOBILITY_LEDGER_KEY_FILE.stat().st_mode & 0o777 == 0o600
    head.number = 2
    assert not head.signed.is_signed_by(public)


def test_a_server_without_the_key_does_not_make_another(ledger_key: Path) -> None:
    record(LedgerKind.SIGNED_OUT, actor="adam")
    settings.MOBILITY_LEDGER_KEY_FILE.rename(ledger_key.with_name("elsewhere"))
    with pytest.raises(LedgerKeyError, match="give this process the file"):
        record(LedgerKind.SIGNED_OUT, actor="adam")
    assert len(entries()) == 1
    assert not settings.MOBILITY_LEDGER_KEY_FILE.exists()


def test_a_lost_key_is_replaced_and_the_ledger_says_so(ledger_key: Path) -> None:
    record(LedgerKind.SIGNED_OUT, actor="adam")
    old = own_public_key()
    with pytest.raises(CommandError, match="keep it"):
        call_command("renew_ledger_key")
    ledger_key.unlink()
    call_command("renew_ledger_key", stdout=StringIO())
    new = own_public_key()
    assert new != old
    assert entries()[-1].facts == {"key": "ledger", "public_key": new, "instead_of": old}
    assert check_tables().is_ok
    record(LedgerKind.SIGNED_OUT, actor="adam")
    assert check_tables().is_ok


@pytest.mark.parametrize("name", ["actor", "study", "event_id"])
def test_what_does_not_fit_its_column_is_refused(ledger_key: Path, name: str) -> None:
    """Also by SQLite, which would take it."""
    longest = LedgerEntry._meta.get_field(name).max_length
    record(LedgerKind.SIGNED_OUT, **{name: "x" * longest})
    with pytest.raises(LedgerFactsError, match=f"{name} must have at most {longest}"):
        record(LedgerKind.SIGNED_OUT, **{name: "x" * (longest + 1)})


def test_an_event_is_recorded_once(ledger_key: Path) -> None:
    for _ in range(2):
        record(LedgerKind.STUDY_CLOSED, study="fair", event_id="study.closed/fair")
    record(LedgerKind.STUDY_CLOSED, study="other", event_id="study.closed/other")
    assert [entry.study for entry in entries()] == ["fair", "other"]
    assert LedgerHead.objects.get().number == 2


def test_what_is_rolled_back_leaves_no_gap(ledger_key: Path) -> None:
    record(LedgerKind.SIGNED_OUT, actor="one")
    with pytest.raises(RuntimeError), transaction.atomic():
        record(LedgerKind.SIGNED_OUT, actor="two")
        raise RuntimeError
    record(LedgerKind.SIGNED_OUT, actor="three")
    assert [(entry.number, entry.actor) for entry in entries()] == [(1, "one"), (2, "three")]
    assert entries()[1].previous_hash == entries()[0].hash


@pytest.mark.parametrize(
    "value", [0.5, b"raw", {"a": {1: 2}}, "a\0b", "\ud800", "x" * 20_000], ids=lambda v: type(v).__name__
)
def test_facts_that_read_back_differently_are_refused(ledger_key: Path, value: object) -> None:
    with pytest.raises(LedgerFactsError):
        record(LedgerKind.SIGNED_OUT, facts={"value": value})  # type: ignore[dict-item]
    assert entries() == []


def test_the_model_refuses_change_and_removal(ledger_key: Path) -> None:
    record(LedgerKind.SIGNED_OUT, actor="adam")
    entry = LedgerEntry.objects.get()
    entry.actor = "eve"
    refused = (
        entry.save,
        entry.delete,
        LedgerEntry.objects.all().delete,
        lambda: LedgerEntry.objects.update(actor="eve"),
        lambda: LedgerEntry.objects.bulk_update([entry], ["actor"]),
        lambda: LedgerEntry.objects.bulk_create([entry]),
    )
    for change in refused:
        with pytest.raises(AppendOnlyError):
            change()
    assert LedgerEntry.objects.get().actor == "adam"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE reports_ledgerentry SET actor = 'eve' WHERE number = 1",
        "DELETE FROM reports_ledgerentry WHERE number = 2",
        "INSERT INTO reports_ledgerentry SELECT 9, at, kind, actor, study, facts, event_id, salt,"
        " previous_hash, hash FROM reports_ledgerentry WHERE number = 1",
    ],
)
def test_the_database_refuses_change_and_removal(ledger_key: Path, statement: str) -> None:
    for actor in ("adam", "anna"):
        record(LedgerKind.SIGNED_OUT, actor=actor)
    with pytest.raises(DatabaseError, match="append-only"), connection.cursor() as cursor:
        cursor.execute(statement)
    assert [entry.actor for entry in entries()] == ["adam", "anna"]


@pytest.mark.parametrize("number", [1, 3])
def test_the_database_refuses_to_replace(ledger_key: Path, number: int) -> None:
    for name in ("one", "two"):
        record(LedgerKind.STUDY_CLOSED, study=name, event_id=name)
    values = f"SELECT {number}, at, kind, 'eve', study, facts, event_id, salt, previous_hash, hash"
    replace = f"INSERT OR REPLACE INTO reports_ledgerentry ({COLUMNS}) {values} FROM reports_ledgerentry"
    if connection.vendor == "postgresql":
        replace = "TRUNCATE reports_ledgerentry"
    with pytest.raises(DatabaseError, match="append-only"), connection.cursor() as cursor:
        cursor.execute(replace)
    assert [entry.study for entry in entries()] == ["one", "two"]


# Databases of tests in SQLite are in memory, where nobody waits for a lock; files: test_ledger_processes.
@pytest.mark.skipif("connection.vendor == 'sqlite'")
def test_many_at_once_leave_no_gap(ledger_key: Path) -> None:
    def write(worker: int) -> None:
        try:
            for turn in range(5):
                record(LedgerKind.SIGNED_OUT, actor=f"{worker}", event_id=f"{turn}")
                record(LedgerKind.SIGNED_OUT, actor=f"{worker}")
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(write, range(6)))
    found = entries()
    assert [entry.number for entry in found] == list(range(1, 36))  # 5 events once, 30 others
    assert all(later.previous_hash == earlier.hash for earlier, later in pairwise(found))
    assert LedgerHead.objects.get().hash == found[-1].hash
