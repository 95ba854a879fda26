"""Keys in escrow open for one private key only, and none that was destroyed comes back."""

import json
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from django.core.management import CommandError, call_command
from django.utils import timezone
from pytest_django.fixtures import Settings

from mobility.keystore import keystore
from mobility.models import VaultStudy
from mobility.operations.errors import OperationsError
from mobility.operations.escrow import make_escrow, read_private_key, read_recipient
from mobility.operations.escrow_restore import restore_keys
from mobility.operations.models import Backup
from mobility.operations.selectors import escrow_days
from reports.models import LedgerEntry, LedgerKind
from reports.services.ledger import record

pytestmark = pytest.mark.django_db(databases=["default", "vault"], transaction=True)
FAIR, MARKET = "study-fair-0a1b2c3d", "study-market"


@pytest.fixture(autouse=True)
def _own_files(data_dir: Path, settings: Settings) -> None:
    settings.MOBILITY_LEDGER_KEY_FILE = data_dir / "ledger_key.pem"
    settings.MOBILITY_SENDER_KEY_FILE = data_dir / "sender_key.pem"


@pytest.fixture
def recipient() -> X25519PrivateKey:
    return X25519PrivateKey.generate()


@pytest.fixture
def escrow(tmp_path: Path, recipient: X25519PrivateKey) -> Path:
    """Of two studies and the ledger; a one-time key is there, too."""
    for key_id in (FAIR, MARKET, "batch-1"):
        keystore().create(key_id)
    record(LedgerKind.SIGN_IN_SUCCEEDED, actor="olga")
    folder, _ = make_escrow(tmp_path / "safe", recipient=recipient.public_key(), by="olga")
    return folder


def lose_keys(settings: Settings) -> None:
    for path in keystore().folder.iterdir():
        path.unlink()
    Path(settings.MOBILITY_LEDGER_KEY_FILE).unlink()


def test_keys_come_back_as_they_were(escrow: Path, recipient: X25519PrivateKey, settings: Settings) -> None:
    keys = {key_id: keystore().read(key_id) for key_id in (FAIR, MARKET)}
    lose_keys(settings)
    told = restore_keys(escrow, private_key=recipient, by="olga")
    assert told["restored"] == ["ledger", FAIR, MARKET]
    assert {key_id: keystore().read(key_id) for key_id in keys} == keys
    assert stat.S_IMODE(Path(settings.MOBILITY_LEDGER_KEY_FILE).stat().st_mode) == 0o600
    told = restore_keys(escrow, private_key=recipient, by="olga")
    assert (told["restored"], told["present"]) == ([], ["ledger", FAIR, MARKET])
    entries = LedgerEntry.objects.filter(kind="keys.restored").order_by("number")
    assert [entry.facts["keys"] for entry in entries] == [["ledger", FAIR, MARKET], []]


def test_the_medium_alone_shows_no_key(escrow: Path, settings: Settings) -> None:
    secrets = [keystore().read(key_id) for key_id in (FAIR, MARKET)]
    secrets.append(Path(settings.MOBILITY_LEDGER_KEY_FILE).read_bytes().splitlines()[1])
    for path in (escrow, *escrow.iterdir()):
        assert path.stat().st_mode & 0o077 == 0
        assert path.is_dir() or not [1 for secret in secrets if secret in path.read_bytes()]
    assert {path.name for path in escrow.glob("*.sealed")} == {
        f"{FAIR}.sealed", f"{MARKET}.sealed", "ledger.sealed",
    }  # fmt: skip
    row = Backup.objects.get()
    assert (row.kind, sorted(row.contents)) == (Backup.Kind.ESCROW, ["ledger", FAIR, MARKET])
    assert FAIR in LedgerEntry.objects.get(kind="keys.escrowed").facts["keys"]


def test_an_escrow_is_noted_before_it_is_there(
    tmp_path: Path, recipient: X25519PrivateKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever stops it then: no copy of a key is out that nobody has noted."""
    keystore().create(FAIR)

    def crash(self: Path, target: Path) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(Path, "rename", crash)
    with pytest.raises(OperationsError, match="Input/output"):
        make_escrow(tmp_path / "safe", recipient=recipient.public_key(), by="olga")
    assert list((tmp_path / "safe").iterdir()) == []
    today = timezone.now().date()
    assert keystore().escrow_days(FAIR) == escrow_days(FAIR) == (today,)
    assert escrow_days(MARKET) == ()
    listed = keystore().folder / "escrows.jsonl"
    assert stat.S_IMODE(listed.stat().st_mode) == 0o600
    listed.write_text(listed.read_text() + '{"made_at": "2026-0')  # the power failed
    keystore().note_escrow([MARKET], made_at=timezone.now())
    assert (keystore().escrow_days(FAIR), keystore().escrow_days(MARKET)) == ((today,), (today,))


def test_another_private_key_opens_nothing(escrow: Path, settings: Settings) -> None:
    lose_keys(settings)
    with pytest.raises(OperationsError, match="the private key does not open"):
        restore_keys(escrow, private_key=X25519PrivateKey.generate(), by="olga")
    assert not list(keystore().folder.iterdir())


def test_a_key_cannot_pass_for_another(escrow: Path, recipient: X25519PrivateKey, settings: Settings) -> None:
    """Whoever can write to the medium swaps two files, and their hashes in the list."""
    lose_keys(settings)
    listed = json.loads((escrow / "manifest.json").read_text())
    one, other = (escrow / f"{key_id}.sealed" for key_id in (FAIR, MARKET))
    held = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(held)
    with pytest.raises(OperationsError, match=f"the sealed key {FAIR} was changed"):
        restore_keys(escrow, private_key=recipient, by="olga")
    listed["keys"][FAIR], listed["keys"][MARKET] = listed["keys"][MARKET], listed["keys"][FAIR]
    (escrow / "manifest.json").write_text(json.dumps(listed))
    with pytest.raises(OperationsError, match="the private key does not open"):
        restore_keys(escrow, private_key=recipient, by="olga")
    assert not list(keystore().folder.iterdir())


@pytest.mark.parametrize("by", ["tombstone", "ledger", "escrow", "elsewhere"])
def test_a_destroyed_key_does_not_come_back(
    escrow: Path, recipient: X25519PrivateKey, settings: Settings, tmp_path: Path, by: str
) -> None:
    """Each of these alone is enough: the tombstone, the ledger, a later escrow, a ledger kept elsewhere."""
    closed = set()
    if by == "tombstone":
        keystore().destroy(FAIR)
    elif by == "ledger":
        record(LedgerKind.KEY_CREATED, study="fair", facts={"key": FAIR})
        record(LedgerKind.KEY_DESTROYED, study="fair", facts={"key": FAIR})
        (keystore().folder / f"{FAIR}.key").unlink()
    elif by == "escrow":
        keystore().destroy(FAIR)
        later, _ = make_escrow(tmp_path / "later", recipient=recipient.public_key(), by="olga")
        assert FAIR not in {path.stem for path in later.iterdir()}
        lose_keys(settings)
        restore_keys(later, private_key=recipient, by="olga")
    else:
        (keystore().folder / f"{FAIR}.key").unlink()
        closed = {"fair"}
    told = restore_keys(escrow, private_key=recipient, by="olga", closed=closed)
    assert told["refused"] == [FAIR]
    assert FAIR not in told["restored"]
    assert keystore().destroyed() == [FAIR]
    assert not keystore().exists(FAIR)
    assert keystore().exists(MARKET)


def test_the_list_of_an_escrow_destroys_no_key(
    escrow: Path, recipient: X25519PrivateKey, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody signs it: whoever can write to the medium names the key of an open study as destroyed."""
    for slug, key_id in (("fair", FAIR), ("market", MARKET)):
        VaultStudy.objects.create(
            slug=slug, definition={}, plan={}, plan_hash="0" * 64, key_id=key_id, n_shards=4
        )
    key = keystore().read(FAIR)
    listed = json.loads((escrow / "manifest.json").read_text())
    listed["destroyed"] = [FAIR, MARKET]
    (escrow / "manifest.json").write_text(json.dumps(listed))
    (keystore().folder / f"{MARKET}.key").unlink()
    private = tmp_path / "private.pem"
    private.write_bytes(recipient.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    with pytest.raises(CommandError, match=f"open here: {FAIR}, {MARKET}"):
        call_command("restore_keys", str(escrow), "--private-key", str(private))
    assert keystore().read(FAIR) == key
    told = json.loads(capsys.readouterr().out)
    assert (told["disputed"], told["restored"]) == ([FAIR, MARKET], [])
    assert not keystore().exists(MARKET)
    assert keystore().destroyed() == []
    assert VaultStudy.objects.filter(closed_at=None).count() == 2


def test_a_key_made_again_after_the_demo_is_no_destroyed_one(
    escrow: Path, recipient: X25519PrivateKey
) -> None:
    """Studies of earlier versions used a name twice: the last word of the ledger counts."""
    for kind in (LedgerKind.KEY_DESTROYED, LedgerKind.KEY_CREATED):
        record(kind, study="market", facts={"key": MARKET})
    (keystore().folder / f"{MARKET}.key").unlink()
    assert restore_keys(escrow, private_key=recipient, by="olga")["restored"] == [MARKET]


def test_another_key_of_that_name_stays(escrow: Path, recipient: X25519PrivateKey) -> None:
    (keystore().folder / f"{FAIR}.key").write_bytes(bytes(32))
    assert restore_keys(escrow, private_key=recipient, by="olga")["differs"] == [FAIR]
    assert keystore().read(FAIR) == bytes(32)


def test_a_damaged_key_stops_no_other(
    escrow: Path,
    recipient: X25519PrivateKey,
    settings: Settings,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    keys = {key_id: keystore().read(key_id) for key_id in (FAIR, MARKET)}
    (keystore().folder / f"{FAIR}.key").write_bytes(b"")
    Path(settings.MOBILITY_LEDGER_KEY_FILE).write_bytes(b"")
    pem = recipient.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "public.pem").write_bytes(pem)
    with pytest.raises(CommandError, match=f"damaged.*: ledger, {FAIR}"):
        call_command("escrow_keys", "--to", str(tmp_path), "--recipient", str(tmp_path / "public.pem"))
    told = json.loads(capsys.readouterr().out)
    assert (told["keys"], told["damaged"]) == ([MARKET], ["ledger", FAIR])
    assert Backup.objects.filter(kind=Backup.Kind.ESCROW).count() == 2  # also without the ledger

    (keystore().folder / f"{MARKET}.key").unlink()
    assert restore_keys(escrow, private_key=recipient, by="olga")["restored"] == ["ledger", FAIR, MARKET]
    assert {key_id: keystore().read(key_id) for key_id in keys} == keys
    assert [entry.kind for entry in LedgerEntry.objects.order_by("number")][-1] == "keys.restored"


def openssl(folder: Path, *words: str) -> None:
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)


def test_commands_take_what_openssl_makes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As docs/backup.md says it, with a password."""
    keystore().create(FAIR)
    (tmp_path / "password").write_text("only for tests\n")
    openssl(
        tmp_path, "genpkey", "-algorithm", "X25519", "-aes-256-cbc", "-pass", "file:password", "-out", "k.pem"
    )
    openssl(tmp_path, "pkey", "-in", "k.pem", "-passin", "file:password", "-pubout", "-out", "public.pem")
    call_command("escrow_keys", "--to", str(tmp_path), "--recipient", str(tmp_path / "public.pem"))
    told: Any = json.loads(capsys.readouterr().out)
    assert told["keys"] == [FAIR]
    (keystore().folder / f"{FAIR}.key").unlink()
    words = ["restore_keys", told["escrow"], "--private-key", str(tmp_path / "k.pem")]
    with pytest.raises(CommandError, match="has a password"):
        call_command(*words)
    call_command(*words, "--password-file", str(tmp_path / "password"))
    assert json.loads(capsys.readouterr().out)["restored"] == [FAIR]


def test_other_kinds_of_keys_are_refused(tmp_path: Path) -> None:
    openssl(tmp_path, "genpkey", "-algorithm", "ED25519", "-out", "k.pem")
    openssl(tmp_path, "pkey", "-in", "k.pem", "-pubout", "-out", "public.pem")
    with pytest.raises(OperationsError, match="must be a key of X25519"):
        read_recipient((tmp_path / "public.pem").read_bytes())
    with pytest.raises(OperationsError, match="must be one of X25519"):
        read_private_key((tmp_path / "k.pem").read_bytes(), password=None)
    with pytest.raises(OperationsError, match="BEGIN PUBLIC KEY"):
        read_recipient(b"no key")
