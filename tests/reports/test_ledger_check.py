"""Whatever is done to the ledger, a check finds it and names the first entry that is wrong."""

import copy
import json
import re
import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from reports.exports.ledger import ledger_lines
from reports.ledger_chain import BEFORE_THE_FIRST, Content, SignedHead, entry_hash
from reports.ledger_check import check_lines, check_tables, read_head
from reports.models import LedgerEntry, LedgerHead, LedgerKind
from reports.services.ledger import record
from reports.services.ledger_checks import check_ledger
from tests.emptying import without_triggers

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
    """What a check says of a file with these lines; None = all is well."""
    written = [json.dumps(line).encode() for line in lines]
    return check_lines(written, **({"public_key": PUBLIC} | options)).to_json()["problem"]


ledgers = st.lists(contents, min_size=2, max_size=5)


@given(ledgers, st.sampled_from(["", "fair"]))
def test_a_whole_ledger_is_well(told: list[Content], left_out: str) -> None:
    lines = chained(told, left_out=left_out)
    assert problem([*lines, head_of(lines)]) is None


@given(ledgers, st.data())
def test_any_changed_field_of_any_entry_is_found(told: list[Content], data: st.DataObject) -> None:
    lines = chained(told, left_out="other")
    head = head_of(lines)
    number = data.draw(st.integers(1, len(lines)))
    line = lines[number - 1]
    name = data.draw(st.sampled_from(sorted(line)))
    others = st.integers() | words | st.dictionaries(words, words, max_size=2) | st.booleans() | st.none()
    line[name] = data.draw(others.filter(lambda value: json.dumps(value) != json.dumps(line[name])))
    found = problem([*lines, head])
    assert found is not None
    assert found["number"] == number


@given(ledgers, st.data())
def test_any_change_of_the_head_is_found(told: list[Content], data: st.DataObject) -> None:
    lines = chained(told)
    head = head_of(lines)
    name = data.draw(st.sampled_from(sorted(head["ledger_head"])))
    before = head["ledger_head"][name]
    head["ledger_head"][name] = data.draw((st.integers(0, 9) | words).filter(lambda value: value != before))
    assert problem([*lines, head]) is not None


@given(ledgers, st.data())
def test_an_entry_removed_added_or_moved_is_found(told: list[Content], data: st.DataObject) -> None:
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


@given(ledgers, st.data())
def test_who_computes_the_hashes_anew_lacks_the_key(told: list[Content], data: st.DataObject) -> None:
    """Change, removal, addition and a cut, each with a chain that fits: only the signature tells."""
    honest = chained(told)
    at = data.draw(st.integers(0, len(told) - 1))
    new = data.draw(contents.filter(lambda content: content != told[at]))
    for forged in (
        [*told[:at], new, *told[at + 1 :]],
        [*told[:at], *told[at + 1 :]],
        [*told[:at], new, *told[at:]],
        told[:-1],
    ):
        lines = chained(forged)
        assert problem([*lines, head_of(honest)]) is not None
        assert "signature" in problem([*lines, head_of(lines, key=Ed25519PrivateKey.generate())])["what"]


@given(ledgers, st.data())
def test_a_rollback_is_found_by_a_head_that_was_kept(told: list[Content], data: st.DataObject) -> None:
    """Even by who has the key: the regulator has kept a head."""
    lines = chained(told)
    kept = SignedHead.from_json(head_of(lines)["ledger_head"])
    cut = lines[:-1]
    assert problem([*cut, head_of(cut)]) is None
    assert "cut" in problem([*cut, head_of(cut)], earlier=kept)["what"]
    new = data.draw(contents.filter(lambda content: content != told[-1]))
    rewritten = chained([*told[:-1], new, new])
    found = problem([*rewritten, head_of(rewritten)], earlier=kept)
    assert found["number"] == len(told)
    longer = chained([*told, new])
    assert problem([*longer, head_of(longer)], earlier=kept) is None


def test_a_kept_head_of_another_ledger_proves_nothing() -> None:
    lines = chained([Content(at="", kind="x", actor="", study="", facts={}, event_id="", salt="")])
    foreign = SignedHead.from_json(head_of(lines, key=Ed25519PrivateKey.generate())["ledger_head"])
    assert "the earlier head" in problem([*lines, head_of(lines)], earlier=foreign)["what"]


@pytest.mark.parametrize(
    "line", [b"{", b"[]", b'{"number": NaN}', b'{"ledger_head": 7}', b'{"a": 1, "a": 2}', b"\xff", b""]
)
def test_what_is_no_export_is_refused(line: bytes) -> None:
    assert check_lines([line], public_key=PUBLIC).problem is not None


def test_a_name_that_comes_twice_is_refused() -> None:
    """One reader takes the first of two values, another the last."""
    lines = chained([Content(at="", kind="x", actor="adam", study="", facts={}, event_id="", salt="")])
    text = json.dumps(lines[0]).replace('"actor": "adam"', '"actor": "eve", "actor": "adam"')
    report = check_lines([text.encode(), json.dumps(head_of(lines)).encode()], public_key=PUBLIC)
    assert report.problem is not None


# --- the tables --------------------------------------------------------------------------------


def fill() -> None:
    record(LedgerKind.STUDY_CREATED, actor="adam", study="fair", facts={"days": 4}, event_id="study/fair")
    record(LedgerKind.SIGN_IN_SUCCEEDED, actor="anna")
    record(LedgerKind.STUDY_CLOSED, actor="adam", study="fair", facts={"sum": 10**18})


@pytest.fixture
def ledger(ledger_key: Path, transactional_db: None) -> Callable[[str], Any]:
    """Three entries; calling it changes the tables as the owner of the database could."""
    fill()

    def tamper(statement: str) -> Any:
        with without_triggers(connection), connection.cursor() as cursor:
            cursor.execute(statement)
        return check_ledger().to_json()["problem"]

    return tamper


database = pytest.mark.database


@database
def test_the_tables_are_well_and_the_page_is_told(ledger: Callable[[str], Any]) -> None:
    report = check_ledger()
    assert report.is_ok
    assert report.entries == 3
    head = LedgerHead.objects.get()
    assert head.checked_at is not None
    assert (head.checked_number, head.problem) == (3, None)


@database
@pytest.mark.parametrize(
    ("statement", "number"),
    [
        ("SET at = (SELECT at FROM reports_ledgerentry WHERE number = 1) WHERE number = 2", 2),
        ("SET kind = 'signed_out' WHERE number = 2", 2),
        ("SET actor = 'eve' WHERE number = 1", 1),
        ("SET study = 'other' WHERE number = 3", 3),
        ("SET facts = '{\"days\": 5}' WHERE number = 1", 1),
        ("SET facts = '7' WHERE number = 1", 1),
        ("SET event_id = 'another' WHERE number = 2", 2),
        ("SET salt = 'x' WHERE number = 2", 2),
        ("SET hash = previous_hash WHERE number = 3", 3),
        ("SET previous_hash = hash WHERE number = 2", 2),
        ("SET number = 9 WHERE number = 2", 2),
    ],
)
def test_a_changed_column_is_found(ledger: Callable[[str], Any], statement: str, number: int) -> None:
    found = ledger(f"UPDATE reports_ledgerentry {statement}")
    assert found["number"] == number
    assert LedgerHead.objects.get().problem == found


@database
@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_removed_row_is_found(ledger: Callable[[str], Any], number: int) -> None:
    assert ledger(f"DELETE FROM reports_ledgerentry WHERE number = {number}")["number"] == number  # noqa: S608


@database
def test_an_added_row_is_found(ledger: Callable[[str], Any]) -> None:
    columns = "at, kind, actor, study, facts, '', salt, hash, hash"
    insert = f"INSERT INTO reports_ledgerentry SELECT 4, {columns} FROM reports_ledgerentry WHERE number = 3"  # noqa: S608
    assert ledger(insert)["number"] == 4


@database
def test_a_removed_or_older_head_is_found(ledger: Callable[[str], Any]) -> None:
    old = LedgerHead.objects.get()
    record(LedgerKind.SIGNED_OUT, actor="anna")
    old.save()
    assert "head" in check_tables().to_json()["problem"]["what"]
    LedgerHead.objects.all().delete()
    assert check_tables().to_json()["problem"]["what"] == "there is no signed head"


@database
def test_cut_together_with_its_head_only_a_kept_head_tells(ledger: Callable[[str], Any]) -> None:
    old = LedgerHead.objects.get()
    record(LedgerKind.SIGNED_OUT, actor="anna")
    kept = LedgerHead.objects.get().signed
    old.save()
    assert ledger("DELETE FROM reports_ledgerentry WHERE number = 4") is None
    report = check_tables(earlier=kept)
    assert report.problem is not None
    assert report.problem.number == 4


@database
def test_an_emptied_ledger_is_found(ledger: Callable[[str], Any]) -> None:
    LedgerHead.objects.all().delete()
    assert "everything was removed" in ledger("DELETE FROM reports_ledgerentry")["what"]


@pytest.mark.parametrize("column", ["at", "facts"])
def test_what_cannot_be_read_is_found(ledger: Callable[[str], Any], column: str) -> None:
    """SQLite keeps any text in any column."""
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA ignore_check_constraints = ON")
    found = ledger(f"UPDATE reports_ledgerentry SET {column} = '{{' WHERE number = 2")  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA ignore_check_constraints = OFF")
    assert found["number"] == 2


# --- commands ---------------------------------------------------------------------------------


def printed(*words: Any) -> str:
    out = StringIO()
    call_command(*words, stdout=out)
    return out.getvalue()


@pytest.fixture
def exported(ledger: Callable[[str], Any], tmp_path: Path) -> Path:
    file = tmp_path / "ledger.jsonl"
    printed("export_ledger", "--out", str(file), "--public-key", str(tmp_path / "key.pem"))
    return file


def test_commands_agree_on_what_was_exported(exported: Path, tmp_path: Path) -> None:
    assert printed("export_ledger") == exported.read_text()
    here, there = (
        json.loads(printed("verify_ledger", *words))
        for words in ([], ["--file", str(exported), "--public-key", str(tmp_path / "key.pem")])
    )
    assert here == there
    assert (here["ok"], here["entries"], here["problem"]) == (True, 3, None)


def test_an_export_needs_no_database(exported: Path, tmp_path: Path, django_db_blocker: Any) -> None:
    with django_db_blocker.block():
        words = ("--file", str(exported), "--public-key", str(tmp_path / "key.pem"))
        assert json.loads(printed("verify_ledger", *words))["ok"]


def test_a_changed_export_fails_and_names_the_entry(
    exported: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    exported.write_text(exported.read_text().replace('"anna"', '"eve"'))
    out = StringIO()
    with pytest.raises(CommandError, match="entry 2: its hash does not fit"):
        call_command("verify_ledger", "--file", str(exported), stdout=out)
    assert json.loads(out.getvalue())["problem"]["number"] == 2


def test_any_json_with_a_head_serves_as_the_kept_one(exported: Path, tmp_path: Path) -> None:
    record(LedgerKind.SIGNED_OUT, actor="anna")
    checked = tmp_path / "checked.json"
    checked.write_text(printed("verify_ledger"))
    alone = tmp_path / "head.json"
    alone.write_text(json.dumps(LedgerHead.objects.get().signed.to_json()))
    for kept, number in ((exported, 3), (checked, 4), (alone, 4)):
        assert read_head(kept.read_bytes()).number == number
        assert json.loads(printed("verify_ledger", "--head", str(kept)))["earlier_head"]["number"] == number
    with pytest.raises(CommandError, match="entry 4"):
        printed("verify_ledger", "--file", str(exported), "--head", str(checked))


def test_a_wrong_file_is_said_to_be_wrong(exported: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("no key")
    with pytest.raises(CommandError, match="PEM"):
        printed("verify_ledger", "--public-key", str(other))
    with pytest.raises(CommandError, match="--head"):
        printed("verify_ledger", "--head", str(other))
    with pytest.raises(CommandError, match="No such file"):
        printed("verify_ledger", "--file", str(tmp_path / "none"))


def test_an_export_of_one_study_hides_the_others_and_can_be_checked(exported: Path) -> None:
    text = printed("export_ledger", "--study", "fair")
    assert "anna" not in text
    assert "sign_in" not in text
    assert '"days":4' in text
    report = check_lines(text.encode().splitlines())
    assert (report.is_ok, report.entries, report.left_out) == (True, 3, 1)
    with pytest.raises(CommandError, match="--study must be"):
        printed("export_ledger", "--study", "nope")


def test_what_was_left_out_cannot_be_guessed_by_trying(ledger: Callable[[str], Any]) -> None:
    """Two entries that say the same have different hashes of their content."""
    one = LedgerEntry.objects.get(number=2)
    record(LedgerKind.SIGN_IN_SUCCEEDED, actor="anna")
    other = LedgerEntry.objects.get(number=4)
    other.at = one.at
    assert one.content.hash != other.content.hash


def test_a_ledger_without_entries_is_well(ledger_key: Path, db: None) -> None:
    assert check_tables().is_ok
    assert list(ledger_lines()) == []


def test_the_check_in_the_documentation_works(exported: Path, tmp_path: Path) -> None:
    """As a regulator would run it: nothing of this software, an export and the public key."""
    document = (settings.BASE_DIR / "docs" / "ledger.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", document, flags=re.DOTALL)
    study = tmp_path / "study"
    study.mkdir()
    (study / "key.pem").write_bytes((tmp_path / "key.pem").read_bytes())
    (study / "ledger.jsonl").write_text(printed("export_ledger", "--study", "fair"))

    def run(folder: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
        )

    for folder in (tmp_path, study):
        assert run(folder).stdout == "3 entries, whole and signed\n"
    for before, after in (
        ('"anna"', '"eve"'),
        ('"number":3', '"number":4'),
        ('"signature":"', '"signature":"00'),
    ):
        exported.write_text(printed("export_ledger").replace(before, after))
        assert run(tmp_path).returncode == 1


def test_the_documentation_names_every_kind() -> None:
    document = (settings.BASE_DIR / "docs" / "ledger.md").read_text()
    assert [kind for kind in LedgerKind if f"`{kind.value}`" not in document] == []
