"""Adding to the ledger, with no gap and no way back; and a check that names the first entry that is wrong."""

import copy
import json
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from io import StringIO
from itertools import pairwise
from pathlib import Path
from subprocess import Popen
from threading import Barrier, current_thread
from typing import Any

import hypothesis
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from reports.audit.export import ledger_lines
from reports.ledger import actions as service
from reports.ledger.actions import LedgerFactsError, chain_waiting, record
from reports.ledger.chain import BEFORE_THE_FIRST, Content, SignedHead, entry_hash
from reports.ledger.check import check_lines, check_tables, read_head
from reports.ledger.checks import check_ledger
from reports.ledger.key import LedgerKeyError, own_public_key
from reports.ledger.models import (
    AppendOnlyError,
    LedgerEntry,
    LedgerHead,
    LedgerKind,
    LedgerWaiting,
)
from tests.emptying import without_triggers
from tests.mobility.data_folder import Folder
from tests.reports.page_texts import printed

pytestmark = pytest.mark.django_db
database = pytest.mark.database
KEY = Ed25519PrivateKey.generate()
PUBLIC = KEY.public_key().public_bytes_raw().hex()
Lines = list[dict[str, Any]]
words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)
contents = st.builds(
    Content,
    at=st.datetimes().map(lambda at: at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")),
    kind=st.sampled_from([kind.value for kind in LedgerKind]),
    actor=words,
    study=st.sampled_from(["", "fair", "other"]),
    facts=st.dictionaries(words, st.integers() | words | st.none() | st.booleans(), max_size=3),
    event_id=words,
    salt=st.binary(min_size=16, max_size=16).map(bytes.hex),
)


def chained(told: list[Content], *, left_out: str = "") -> Lines:
    """Lines of an export of these; those of the study `left_out` show their hashes only."""
    lines: Lines = []
    previous = BEFORE_THE_FIRST
    for number, content in enumerate(told, start=1):
        own = entry_hash(number=number, previous_hash=previous, content_hash=content.hash)
        shown = {name: getattr(content, name) for name in Content.__dataclass_fields__}
        if left_out and content.study == left_out:
            shown = {"content_hash": content.hash}
        lines.append({"number": number, **shown, "previous_hash": previous, "hash": own})
        previous = own
    return lines


def head_of(lines: Lines, *, key: Ed25519PrivateKey = KEY) -> dict[str, Any]:
    last = lines[-1]
    head = SignedHead.signed(number=len(lines), entry=last["hash"], at=last.get("at", "long ago"), key=key)
    return {"ledger_head": head.to_json()}


def problem(lines: Lines, **options: Any) -> Any:
    written = [json.dumps(line).encode() for line in lines]
    return check_lines(written, **({"public_key": PUBLIC} | options)).to_json()["problem"]


def single(**changes: Any) -> Lines:
    blank = {"at": "", "kind": "x", "actor": "", "study": "", "facts": {}, "event_id": "", "salt": ""}
    return chained([Content(**blank | changes)])


few = hypothesis.settings(max_examples=40)  # each breaks one of about thirty fields
ledgers = st.lists(contents, min_size=2, max_size=5)


@few
@given(ledgers, st.sampled_from(["", "fair"]))
def test_a_whole_ledger_is_well(told, left_out) -> None:
    lines = chained(told, left_out=left_out)
    assert problem([*lines, head_of(lines)]) is None


@few
@given(ledgers, st.data())
def test_any_changed_field_of_any_entry_is_found(told, data) -> None:
    lines = chained(told, left_out="other")
    head = head_of(lines)
    number = data.draw(st.integers(1, len(lines)))
    line = lines[number - 1]
    name = data.draw(st.sampled_from(sorted(line)))
    others = st.integers() | words | st.dictionaries(words, words, max_size=2) | st.booleans() | st.none()
    line[name] = data.draw(others.filter(lambda value: json.dumps(value) != json.dumps(line[name])))
    assert problem([*lines, head])["number"] == number


def test_the_signature_covers_every_field_of_the_head_and_one_of_another_ledger_proves_nothing() -> None:
    lines = single()
    shown = head_of(lines)["ledger_head"]
    head = SignedHead.from_json(shown)
    assert head.is_signed_by(PUBLIC)
    other = {"number": 2, "hash": "0" * 64, "at": "later", "public_key": "00" * 32, "signature": "00" * 64}
    assert shown.keys() == {"format", *other}
    for name, value in other.items():
        assert not replace(head, **{name: value}).is_signed_by(PUBLIC), name
        assert problem([*lines, {"ledger_head": shown | {name: value}}]) is not None, name
    assert problem([*lines, {"ledger_head": shown | {"format": "mobility-ledger-head/2"}}]) is not None
    foreign = SignedHead.from_json(head_of(lines, key=Ed25519PrivateKey.generate())["ledger_head"])
    assert "the earlier head" in problem([*lines, head_of(lines)], earlier=foreign)["what"]


@few
@given(ledgers, st.data())
def test_an_entry_removed_added_or_moved_is_found(told, data) -> None:
    lines = chained(told)
    head = head_of(lines)
    at = data.draw(st.integers(0, len(lines) - 1))
    other = data.draw(st.integers(0, len(lines) - 1).filter(lambda place: place != at))
    removed = [*lines[:at], *lines[at + 1 :]]
    doubled = [*lines[: at + 1], lines[at], *lines[at + 1 :]]
    swapped = copy.copy(lines)
    swapped[at], swapped[other] = lines[other], lines[at]
    assert problem([*removed, head])["number"] == at + 1
    assert problem([*doubled, head])["number"] == at + 2
    assert problem([*swapped, head])["number"] == min(at, other) + 1


@few
@given(ledgers, st.data())
def test_who_computes_the_hashes_anew_lacks_the_key(told, data) -> None:
    honest = chained(told)
    at = data.draw(st.integers(0, len(told) - 1))
    new = data.draw(contents.filter(lambda content: content != told[at]))
    before, after = told[:at], told[at + 1 :]
    for forged in ([*before, new, *after], [*before, *after], [*before, new, *told[at:]], told[:-1]):
        lines = chained(forged)
        assert problem([*lines, head_of(honest)]) is not None
        assert "signature" in problem([*lines, head_of(lines, key=Ed25519PrivateKey.generate())])["what"]


@few
@given(ledgers, st.data())
def test_a_rollback_is_found_by_a_head_that_was_kept(told, data) -> None:
    """Even by who has the key: the regulator has kept a head."""
    lines = chained(told)
    kept = SignedHead.from_json(head_of(lines)["ledger_head"])
    cut = lines[:-1]
    assert problem([*cut, head_of(cut)]) is None
    assert "cut" in problem([*cut, head_of(cut)], earlier=kept)["what"]
    new = data.draw(contents.filter(lambda content: content != told[-1]))
    rewritten = chained([*told[:-1], new, new])
    assert problem([*rewritten, head_of(rewritten)], earlier=kept)["number"] == len(told)
    longer = chained([*told, new])
    assert problem([*longer, head_of(longer)], earlier=kept) is None


def test_what_is_no_export_is_refused() -> None:
    lines = single(actor="adam")
    # One reader takes the first of two values, another the last.
    twice = json.dumps(lines[0]).replace('"actor": "adam"', '"actor": "eve", "actor": "adam"')
    wrong = [b"{", b"[]", b'{"number": NaN}', b'{"ledger_head": 7}', b'{"a": 1, "a": 2}', b"\xff", b""]
    for export in ([twice.encode(), json.dumps(head_of(lines)).encode()], *([line] for line in wrong)):
        assert check_lines(export, public_key=PUBLIC).problem is not None, export


@pytest.fixture
def ledger(ledger_key, db) -> Callable[[str], Any]:
    """Three entries; calling it changes the tables as the owner of the database could."""
    assert (check_tables().is_ok, list(ledger_lines())) == (True, [])  # of no entries
    record(LedgerKind.STUDY_CREATED, actor="adam", study="fair", facts={"days": 4}, event_id="study/fair")
    record(LedgerKind.SIGN_IN_SUCCEEDED, actor="anna")
    record(LedgerKind.STUDY_CLOSED, actor="adam", study="fair", facts={"sum": 10**18})

    def tamper(statement: str) -> Any:
        with without_triggers(connection), connection.cursor() as cursor:
            cursor.execute(statement)
        return check_ledger().to_json()["problem"]

    return tamper


ROW = "at, kind, actor, study, facts, '', salt, hash, hash FROM reports_ledgerentry WHERE number = 3"


@pytest.mark.parametrize(
    ("statement", "number"),
    [
        ("UPDATE # SET at = (SELECT at FROM # WHERE number = 1) WHERE number = 2", 2),
        ("UPDATE # SET kind = 'signed_out' WHERE number = 2", 2),
        ("UPDATE # SET actor = 'eve' WHERE number = 1", 1),
        ("UPDATE # SET study = 'other' WHERE number = 3", 3),
        pytest.param("UPDATE # SET facts = '{\"days\": 5}' WHERE number = 1", 1, marks=database),
        ("UPDATE # SET facts = '7' WHERE number = 1", 1),
        ("UPDATE # SET event_id = 'another' WHERE number = 2", 2),
        ("UPDATE # SET salt = 'x' WHERE number = 2", 2),
        ("UPDATE # SET hash = previous_hash WHERE number = 3", 3),
        ("UPDATE # SET previous_hash = hash WHERE number = 2", 2),
        ("UPDATE # SET number = 9 WHERE number = 2", 2),
        ("DELETE FROM # WHERE number = 1", 1),
        ("DELETE FROM # WHERE number = 2", 2),
        ("DELETE FROM # WHERE number = 3", 3),
        (f"INSERT INTO # SELECT 4, {ROW}", 4),
    ],
)
def test_a_changed_removed_or_added_row_is_found(ledger, statement, number) -> None:
    found = ledger(statement.replace("#", "reports_ledgerentry"))
    assert found["number"] == number
    assert LedgerHead.objects.get().problem == found


def test_a_removed_or_older_head_and_an_emptied_ledger_are_found(ledger) -> None:
    old = LedgerHead.objects.get()
    record(LedgerKind.SIGNED_OUT, actor="anna")
    old.save()
    assert "head" in check_tables().to_json()["problem"]["what"]
    LedgerHead.objects.all().delete()
    assert check_tables().to_json()["problem"]["what"] == "there is no signed head"
    assert "all entries were removed" in ledger("DELETE FROM reports_ledgerentry")["what"]


def test_cut_together_with_its_head_only_a_kept_head_tells(ledger) -> None:
    old = LedgerHead.objects.get()
    record(LedgerKind.SIGNED_OUT, actor="anna")
    kept = LedgerHead.objects.get().signed
    old.save()
    assert ledger("DELETE FROM reports_ledgerentry WHERE number = 4") is None
    assert check_tables(earlier=kept).problem.number == 4


@pytest.mark.parametrize("column", ["at", "facts"])
def test_what_cannot_be_read_is_found(ledger, column) -> None:
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA ignore_check_constraints = ON")
        found = ledger(f"UPDATE reports_ledgerentry SET {column} = '{{' WHERE number = 2")  # noqa: S608
        cursor.execute("PRAGMA ignore_check_constraints = OFF")
    assert found["number"] == 2


@pytest.fixture
def exported(ledger, tmp_path) -> Path:
    file = tmp_path / "ledger.jsonl"
    printed("export_ledger", "--out", str(file), "--public-key", str(tmp_path / "key.pem"))
    return file


def test_commands_agree_on_what_was_exported_which_needs_no_database(exported, tmp_path, django_db_blocker):
    assert printed("export_ledger") == exported.read_text()
    here = json.loads(printed("verify_ledger"))
    with django_db_blocker.block():
        words = ("--file", str(exported), "--public-key", str(tmp_path / "key.pem"))
        assert json.loads(printed("verify_ledger", *words)) == here
    assert (here["ok"], here["entries"], here["problem"]) == (True, 3, None)


def test_a_changed_export_fails_and_names_the_entry_and_a_wrong_file_its_fault(exported, tmp_path) -> None:
    exported.write_text(exported.read_text().replace('"anna"', '"eve"'))
    out, other = StringIO(), tmp_path / "other"
    with pytest.raises(CommandError, match="entry 2: its hash does not match"):
        call_command("verify_ledger", "--file", str(exported), stdout=out)
    assert json.loads(out.getvalue())["problem"]["number"] == 2
    other.write_text("no key")
    wrong = (("--public-key", other, "PEM"), ("--head", other, "--head"))
    for option, file, rule in (*wrong, ("--file", tmp_path / "none", "No such file")):
        with pytest.raises(CommandError, match=rule):
            printed("verify_ledger", option, str(file))


def test_any_json_with_a_head_serves_as_the_kept_one(exported, tmp_path) -> None:
    record(LedgerKind.SIGNED_OUT, actor="anna")
    checked, alone = tmp_path / "checked.json", tmp_path / "head.json"
    checked.write_text(printed("verify_ledger"))
    alone.write_text(json.dumps(LedgerHead.objects.get().signed.to_json()))
    for kept, number in ((exported, 3), (checked, 4), (alone, 4)):
        assert read_head(kept.read_bytes()).number == number
        assert json.loads(printed("verify_ledger", "--head", str(kept)))["earlier_head"]["number"] == number
    with pytest.raises(CommandError, match="entry 4"):
        printed("verify_ledger", "--file", str(exported), "--head", str(checked))


def test_an_export_of_one_study_hides_the_others_and_can_be_checked(exported) -> None:
    text = printed("export_ledger", "--study", "fair")
    assert [words in text for words in ("anna", "sign_in", '"days":4')] == [False, False, True]
    report = check_lines(text.encode().splitlines())
    assert (report.is_ok, report.entries, report.left_out) == (True, 3, 1)
    with pytest.raises(CommandError, match="--study must be"):
        printed("export_ledger", "--study", "nope")
    # Omitted content cannot be guessed by trying: the same content twice has different hashes.
    record(LedgerKind.SIGN_IN_SUCCEEDED, actor="anna")
    one, other = (LedgerEntry.objects.get(number=number) for number in (2, 4))
    other.at = one.at
    assert one.content.hash != other.content.hash


def test_the_documentation_names_every_kind_and_its_check_works(exported, tmp_path) -> None:
    document = (settings.BASE_DIR / "docs" / "ledger.md").read_text()
    assert [kind for kind in LedgerKind if f"`{kind.value}`" not in document] == []
    (code,) = re.findall(r"```python\n(.*?)```", document, flags=re.DOTALL)
    study = tmp_path / "study"
    study.mkdir()
    (study / "key.pem").write_bytes((tmp_path / "key.pem").read_bytes())
    (study / "ledger.jsonl").write_text(printed("export_ledger", "--study", "fair"))

    def run(folder: Path) -> Any:
        asked = [sys.executable, "-c", code]
        return subprocess.run(asked, cwd=folder, capture_output=True, text=True, check=False)

    for folder in (tmp_path, study):
        assert run(folder).stdout == "3 entries, whole and signed\n"
    changes = {'"anna"': '"eve"', '"number":3': '"number":4', '"signature":"': '"signature":"00'}
    for before, after in changes.items():
        exported.write_text(printed("export_ledger").replace(before, after))
        assert run(tmp_path).returncode == 1


COLUMNS = "at, kind, actor, study, facts, event_id, salt, previous_hash, hash"


def entries() -> list[LedgerEntry]:
    return list(LedgerEntry.objects.order_by("number"))


@database
def test_entries_are_numbered_and_chained(ledger_key) -> None:
    record(LedgerKind.STUDY_CREATED, actor="adam", study="fair", facts={"days": 4, "names": ["Å", None]})
    record(LedgerKind.SIGNED_OUT, actor="adam")
    one, two = entries()
    assert (one.number, one.kind, one.actor, one.study) == (1, "study.created", "adam", "fair")
    assert one.previous_hash == BEFORE_THE_FIRST
    for entry in (one, two):
        place = {"number": entry.number, "previous_hash": entry.previous_hash}
        assert entry.hash == entry_hash(**place, content_hash=entry.content.hash)
    assert (two.number, two.previous_hash) == (2, one.hash)
    assert timezone.now() - one.at < timedelta(minutes=1)


def test_the_head_is_signed_by_the_key_in_its_file_and_no_other_is_made(ledger_key) -> None:
    record(LedgerKind.SIGNED_OUT, actor="adam")
    head = LedgerHead.objects.get()
    assert (head.number, head.hash) == (1, entries()[0].hash)
    assert ledger_key.stat().st_mode & 0o777 == 0o600
    for head.number in (1, 2):
        assert head.signed.is_signed_by(own_public_key()) == (head.number == 1)
    ledger_key.rename(ledger_key.with_name("elsewhere"))  # a server without the key
    with pytest.raises(LedgerKeyError, match="give this process the file"):
        record(LedgerKind.SIGNED_OUT, actor="adam")
    assert (len(entries()), ledger_key.exists()) == (1, False)


def test_a_lost_key_is_replaced_and_the_ledger_says_so(ledger_key) -> None:
    record(LedgerKind.SIGNED_OUT, actor="adam")
    old = own_public_key()
    with pytest.raises(CommandError, match="keep it"):
        printed("renew_ledger_key")
    ledger_key.unlink()
    printed("renew_ledger_key")
    assert (new := own_public_key()) != old
    assert entries()[-1].facts == {"key": "ledger", "public_key": new, "instead_of": old}
    assert check_tables().is_ok
    record(LedgerKind.SIGNED_OUT, actor="adam")
    assert check_tables().is_ok


def test_an_event_is_recorded_once_and_what_is_rolled_back_leaves_no_gap(ledger_key) -> None:
    for _ in range(2):
        record(LedgerKind.STUDY_CLOSED, study="fair", event_id="study.closed/fair")
    with pytest.raises(RuntimeError), transaction.atomic():
        record(LedgerKind.SIGNED_OUT, actor="two")
        raise RuntimeError
    record(LedgerKind.STUDY_CLOSED, study="other", event_id="study.closed/other")
    one, other = entries()
    assert [(entry.number, entry.study) for entry in (one, other)] == [(1, "fair"), (2, "other")]
    assert (LedgerHead.objects.get().number, other.previous_hash) == (2, one.hash)


def test_facts_that_read_back_differently_or_do_not_fit_their_column_are_refused(ledger_key) -> None:
    """Also by SQLite, which would take longer texts."""
    for value in (0.5, b"raw", {"a": {1: 2}}, "a\0b", "\ud800", "x" * 20_000):
        with pytest.raises(LedgerFactsError):
            record(LedgerKind.SIGNED_OUT, facts={"value": value})
    for place, name in enumerate(("actor", "study", "event_id")):
        longest = LedgerEntry._meta.get_field(name).max_length
        with pytest.raises(LedgerFactsError, match=f"{name} must have at most {longest}"):
            record(LedgerKind.SIGNED_OUT, **{name: "x" * (longest + 1)})
        assert len(entries()) == place
        record(LedgerKind.SIGNED_OUT, **{name: "x" * longest})


def test_the_model_refuses_change_and_removal(ledger_key) -> None:
    record(LedgerKind.SIGNED_OUT, actor="adam")
    entry = LedgerEntry.objects.get()
    entry.actor = "eve"
    rows = LedgerEntry.objects
    of_all = [(lambda: rows.update(actor="eve"),), (rows.bulk_update, [entry], ["actor"])]
    of_one = [(entry.save,), (entry.delete,), (rows.all().delete,), (rows.bulk_create, [entry])]
    for change, *args in (*of_one, *of_all):
        with pytest.raises(AppendOnlyError):
            change(*args)
    assert rows.get().actor == "adam"


@database
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE # SET actor = 'eve' WHERE number = 1",
        "DELETE FROM # WHERE number = 2",
        "INSERT INTO # (number, COLUMNS) SELECT 9, COLUMNS FROM # WHERE number = 1",
        "INSERT OR REPLACE INTO # (number, COLUMNS) SELECT 1, COLUMNS FROM # WHERE number = 1",
        "INSERT OR REPLACE INTO # (number, COLUMNS) SELECT 3, COLUMNS FROM # WHERE number = 1",
    ],
)
def test_the_database_refuses_change_and_removal(ledger_key, statement) -> None:
    for actor in ("adam", "anna"):
        record(LedgerKind.SIGNED_OUT, actor=actor, event_id=actor)
    if connection.vendor == "postgresql" and "REPLACE" in statement:
        statement = "TRUNCATE #"
    refused = pytest.raises(DatabaseError, match="append-only")
    with refused, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement.replace("#", "reports_ledgerentry").replace("COLUMNS", COLUMNS))
    assert [entry.actor for entry in entries()] == ["adam", "anna"]


# Databases of tests in SQLite are in memory, where no one waits for a lock; files: the test below.
@database
@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif("connection.vendor == 'sqlite'")
def test_many_at_once_leave_no_gap_and_record_an_event_once(ledger_key, monkeypatch) -> None:
    looked = service._is_recorded
    together = Barrier(6, timeout=60)

    def look(event_id: str) -> bool:
        """All look for the first event before one of them records it."""
        found = looked(event_id)
        if event_id == "0" and current_thread().name not in seen:
            seen.add(current_thread().name)
            together.wait()
        return found

    def write(worker: int) -> None:
        try:
            for turn in range(5):
                record(LedgerKind.SIGNED_OUT, actor=f"{worker}", event_id=f"{turn}", may_wait=worker > 2)
                record(LedgerKind.SIGNED_OUT, actor=f"{worker}", may_wait=worker > 2)
        finally:
            connection.close()

    seen: set[str] = set()
    monkeypatch.setattr(service, "_is_recorded", look)
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(write, range(6)))
    chain_waiting()
    found = entries()
    assert [entry.number for entry in found] == list(range(1, 36))  # 5 events once, 30 others
    assert all(later.previous_hash == earlier.hash for earlier, later in pairwise(found))
    assert LedgerHead.objects.get().hash == found[-1].hash


@database
@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif("connection.vendor == 'sqlite'")
def test_an_answer_of_the_api_does_not_wait_for_the_head_and_is_chained_next(ledger_key) -> None:
    record(LedgerKind.SIGNED_OUT, actor="first")

    def read() -> None:
        try:
            for _ in range(2):
                record(LedgerKind.EXPORT_MADE, actor="reader", event_id="export/1", may_wait=True)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            record(LedgerKind.SIGNED_OUT, actor="slow")
            pool.submit(read).result(timeout=30)
        assert [entry.actor for entry in entries()] == ["first", "slow"]
        record(LedgerKind.EXPORT_MADE, actor="reader", event_id="export/1")
        pool.submit(read).result(timeout=30)
    assert [entry.actor for entry in entries()] == ["first", "slow", "reader"]
    assert check_tables().is_ok
    assert not LedgerWaiting.objects.exists()


def wait(actor: str, *, key_file: Path) -> None:
    """Store an entry as one that finds the head locked does."""
    row = LedgerWaiting(at=timezone.now(), kind=LedgerKind.EXPORT_MADE, actor=actor)
    key = load_pem_private_key(key_file.read_bytes(), password=None)
    row.signature = key.sign(row.signed_bytes).hex()  # type: ignore[call-arg,union-attr]
    row.save()


def test_what_waits_is_in_the_chain_before_anyone_reads_it_if_the_key_is_there(ledger_key) -> None:
    record(LedgerKind.SIGNED_OUT, actor="adam")
    for reader in ("anna", "vera"):
        wait(reader, key_file=ledger_key)
    kept = ledger_key.rename(ledger_key.with_name("away"))
    assert len(list(ledger_lines())) == 2
    kept.rename(ledger_key)
    assert len(list(ledger_lines())) == 4
    assert [entry.actor for entry in entries()] == ["adam", "anna", "vera"]
    assert check_tables().is_ok


def test_what_waits_without_a_signature_of_the_key_is_not_chained(ledger_key) -> None:
    record(LedgerKind.SIGNED_OUT, actor="adam")
    wait("anna", key_file=ledger_key)
    LedgerWaiting.objects.update(actor="eve")
    wait("vera", key_file=ledger_key)
    LedgerWaiting.objects.create(at=timezone.now(), kind=LedgerKind.PLAN_REVIEWED, actor="eve")
    assert len(list(ledger_lines())) == 3
    assert [entry.actor for entry in entries()] == ["adam", "vera"]
    assert not LedgerWaiting.objects.exists()


def test_what_waits_outlives_the_loss_of_the_key(ledger_key) -> None:
    record(LedgerKind.SIGNED_OUT, actor="adam")
    wait("anna", key_file=ledger_key)
    ledger_key.unlink()
    printed("renew_ledger_key")
    assert [entry.actor for entry in entries()][:2] == ["adam", "anna"]
    assert check_tables().is_ok


WRITE = """
from reports.models import LedgerKind
from reports.ledger.actions import record
for turn in range(10):
    record(LedgerKind.SIGNED_OUT, actor="own")
    record(LedgerKind.SIGNED_OUT, actor="shared", event_id=f"turn {turn}")
"""


@pytest.mark.long
def test_processes_that_write_at_once_leave_no_gap_and_make_one_key(tmp_path) -> None:
    folder = Folder(tmp_path / "var")

    def out_of(process: Popen[str]) -> str:
        out, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
        return out

    try:
        out_of(folder.shell())  # makes the databases
        for process in [folder.shell(WRITE) for _ in range(3)]:
            out_of(process)
        report = json.loads(out_of(folder.command("verify_ledger")))
    finally:
        folder.stop_all()
    assert (report["ok"], report["entries"]) == (True, 3 * 10 + 10)
    assert len(list(folder.root.glob("ledger_key*"))) == 1
