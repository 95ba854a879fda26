"""The key that signs the head of the ledger: its own file, in no database."""

import os
import secrets
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)
from django.conf import settings


class LedgerKeyError(Exception):
    """The key is missing or is none; nothing was recorded."""


def signing_key(*, may_make: bool) -> Ed25519PrivateKey:
    """The key in MOBILITY_LEDGER_KEY_FILE.

    A missing key may be made only while the ledger is empty: otherwise a server that was started without the
    file would continue with an unknown key.
    """
    path = Path(settings.MOBILITY_LEDGER_KEY_FILE)
    if may_make and not path.exists():
        _make(path)
    try:
        key = load_pem_private_key(path.read_bytes(), password=None)
    except FileNotFoundError:
        raise LedgerKeyError(
            f"the ledger has entries, but the key that signs it is not in {path}: give this process the file "
            "that the others use (MOBILITY_LEDGER_KEY_FILE), or, if it is permanently lost, run "
            "renew_ledger_key"
        ) from None
    except ValueError:
        raise LedgerKeyError(f"MOBILITY_LEDGER_KEY_FILE must hold a private key, got {path}") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise LedgerKeyError(f"MOBILITY_LEDGER_KEY_FILE must hold an Ed25519 key, got {type(key).__name__}")
    return key


def replace_key() -> str:
    """Make a new key, and return its public half; LedgerKeyError if there is one, which must not be lost."""
    path = Path(settings.MOBILITY_LEDGER_KEY_FILE)
    if path.exists():
        raise LedgerKeyError(f"a key exists in {path}: keep it; create a new one only if it is lost")
    _make(path)
    return signing_key(may_make=False).public_key().public_bytes_raw().hex()


def own_public_key() -> str | None:
    """The public half of the key of this installation, hexadecimal; None where there is none yet."""
    if not Path(settings.MOBILITY_LEDGER_KEY_FILE).exists():
        return None
    return signing_key(may_make=False).public_key().public_bytes_raw().hex()


def public_pem(public_key: str) -> bytes:
    """A public key as a file that other tools read."""
    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key))
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def read_public_pem(pem: bytes) -> str:
    """The hexadecimal public key in a file as `public_pem` writes it."""
    try:
        key = load_pem_public_key(pem)
    except ValueError:
        raise LedgerKeyError("the public key must be a PEM file (BEGIN PUBLIC KEY)") from None
    if not isinstance(key, Ed25519PublicKey):
        raise LedgerKeyError(f"the public key must be an Ed25519 key, got {type(key).__name__}")
    return key.public_bytes_raw().hex()


def _make(path: Path) -> None:
    """Write a new key whole or not at all; one that another process has just made stays."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    pem = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(pem)
        file.flush()
        os.fsync(file.fileno())
    try:
        path.hardlink_to(fresh)
    except FileExistsError:
        pass
    finally:
        fresh.unlink()
