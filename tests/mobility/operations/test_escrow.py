"""Keys in escrow open for one private key only, and none that was destroyed comes back."""

import json
import stat
import subprocess
from pathlib import Path
from unittest.mock import Mock

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from django.core.management import CommandError, call_command
from django.utils import timezone

from mobility.base.errors import OperationsError
from mobility.operations.backup.escrow import make_escrow, read_private_key, read_recipient
from mobility.operations.backup.escrow_restore import restore_keys
from mobility.operations.models import Backup
from mobility.plans.escrows import escrow_days
from mobility.vault.keystore import keystore
from mobility.vault.models.subscribers import VaultStudy
from reports.ledger.actions import record
from reports.ledger.models import LedgerEntry, LedgerKind
from tests.mobility.commands import printed
from tests.mobility.operations.probe_world import vault_row

pytestmark = pytest.mark.django_db(databases=["default", "vault"], transaction=True)
FAIR, MARKET = "study-fair-0a1b2c3d", "study-market"


@pytest.fixture(autouse=True)
def _own_files(data_dir, settings):
    settings.MOBILITY_LEDGER_KEY_FILE = data_dir / "ledger_key.pem"
    settings.MOBILITY_SENDER_KEY_FILE = data_dir / "sender_key.pem"


@pytest.fixture
def recipient() -> X25519PrivateKey:
    return X25519PrivateKey.generate()


def edited(escrow, change):
    listed = json.loads((escrow / "manifest.json").read_text())
    change(listed)
    (escrow / "manifest.json").write_text(json.dumps(listed))


@pytest.fixture
def escrow(tmp_path: Path, recipient: X25519PrivateKey) -> Path:
    for key_id in (FAIR, MARKET, "batch-1"):
        keystore().create(key_id)
    record(LedgerKind.SIGN_IN_SUCCEEDED, actor="olga")
    folder, _ = make_escrow(tmp_path / "safe", recipient=recipient.public_key(), by="olga")
    return folder


def lose_keys(settings):
    for path in keystore().folder.iterdir():
        path.unlink()
    Path(settings.MOBILITY_LEDGER_KEY_FILE).unlink()


def test_the_medium_alone_shows_no_key_and_keys_come_back_as_they_were(escrow, recipient, settings):
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
    secrets = [keystore().read(key_id) for key_id in (FAIR, MARKET)]
    secrets.append(Path(settings.MOBILITY_LEDGER_KEY_FILE).read_bytes().splitlines()[1])
    for path in (escrow, *escrow.iterdir()):
        assert path.stat().st_mode & 0o077 == 0
        assert path.is_dir() or not [1 for secret in secrets if secret in path.read_bytes()]
    assert {path.stem for path in escrow.glob("*.sealed")} == {FAIR, MARKET, "ledger"}
    row = Backup.objects.get()
    assert (row.kind, sorted(row.contents)) == (Backup.Kind.ESCROW, ["ledger", FAIR, MARKET])
    assert FAIR in LedgerEntry.objects.get(kind="keys.escrowed").facts["keys"]


def test_an_escrow_is_noted_before_it_is_there(tmp_path, recipient, monkeypatch):
    keystore().create(FAIR)
    monkeypatch.setattr(Path, "rename", Mock(side_effect=OSError(5, "Input/output error")))
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


def test_another_private_key_opens_nothing_and_a_key_cannot_pass_for_another(escrow, recipient, settings):
    """Anyone who can write to the medium swaps two files, and their hashes in the list."""
    lose_keys(settings)

    def check_refused(said, key=recipient):
        with pytest.raises(OperationsError, match=said):
            restore_keys(escrow, private_key=key, by="olga")

    check_refused("the private key does not open", X25519PrivateKey.generate())
    one, other = (escrow / f"{key_id}.sealed" for key_id in (FAIR, MARKET))
    held = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(held)
    check_refused(f"the sealed key {FAIR} was changed")
    edited(escrow, lambda told: told["keys"].update({FAIR: told["keys"][MARKET], MARKET: told["keys"][FAIR]}))
    check_refused("the private key does not open")
    assert not list(keystore().folder.iterdir())


@pytest.mark.parametrize("by", ["tombstone", "ledger", "escrow", "elsewhere"])
def test_a_destroyed_key_does_not_come_back(escrow, recipient, settings, tmp_path, by):
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
    assert (told["refused"], FAIR in told["restored"]) == ([FAIR], False)
    assert (keystore().destroyed(), keystore().exists(FAIR)) == ([FAIR], False)
    assert keystore().exists(MARKET)


def test_the_list_of_an_escrow_destroys_no_key(escrow, recipient, tmp_path, capsys):
    """No one signs it: anyone who can write to the medium names the key of an open study as destroyed."""
    for slug, key_id in (("fair", FAIR), ("market", MARKET)):
        vault_row(slug, key_id)
    key = keystore().read(FAIR)
    edited(escrow, lambda told: told.update(destroyed=[FAIR, MARKET]))
    (keystore().folder / f"{MARKET}.key").unlink()
    private = tmp_path / "private.pem"
    private.write_bytes(recipient.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    with pytest.raises(CommandError, match=f"open here: {FAIR}, {MARKET}"):
        call_command("restore_keys", str(escrow), "--private-key", str(private))
    told = json.loads(capsys.readouterr().out)
    assert (told["disputed"], told["restored"]) == ([FAIR, MARKET], [])
    assert (keystore().read(FAIR), keystore().exists(MARKET)) == (key, False)
    assert (keystore().destroyed(), VaultStudy.objects.filter(closed_at=None).count()) == ([], 2)


def test_a_damaged_key_stops_no_other(escrow, recipient, settings, tmp_path, capsys):
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


def test_commands_take_what_openssl_makes_and_no_other_kinds_of_keys(tmp_path):
    def openssl(words):
        subprocess.run(["openssl", *words.split()], cwd=tmp_path, check=True, capture_output=True)

    keystore().create(FAIR)
    private, public = tmp_path / "k.pem", tmp_path / "public.pem"
    (tmp_path / "password").write_text("only for tests\n")
    openssl("genpkey -algorithm X25519 -aes-256-cbc -pass file:password -out k.pem")
    openssl("pkey -in k.pem -passin file:password -pubout -out public.pem")
    told = printed("escrow_keys", "--to", str(tmp_path), "--recipient", str(public))
    assert told["keys"] == [FAIR]
    (keystore().folder / f"{FAIR}.key").unlink()
    words = ["restore_keys", told["escrow"], "--private-key", str(private)]
    with pytest.raises(CommandError, match="has a password"):
        call_command(*words)
    assert printed(*words, "--password-file", str(tmp_path / "password"))["restored"] == [FAIR]
    openssl("genpkey -algorithm ED25519 -out k.pem")
    openssl("pkey -in k.pem -pubout -out public.pem")
    with pytest.raises(OperationsError, match="must be an X25519 key"):
        read_recipient(public.read_bytes())
    with pytest.raises(OperationsError, match="the private key must be an X25519 key"):
        read_private_key(private.read_bytes(), password=None)
    with pytest.raises(OperationsError, match="BEGIN PUBLIC KEY"):
        read_recipient(b"no key")
