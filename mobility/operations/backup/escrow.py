"""Keys in escrow: copies that only the holder of an offline private key can open.

Each key is sealed separately with HPKE (RFC 9180: X25519, HKDF-SHA256, ChaCha20-Poly1305) for the recipient's
public key and bound to its id. So the medium alone shows names of keys and nothing of them. Only keys of
studies and those that sign are taken: one-time keys of batches are destroyed within hours.
"""

import hashlib
import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from mobility.base.errors import OperationsError
from mobility.operations.backup.folder import digest_of, new_folder, stamp
from mobility.operations.backup.ledger import can_sign
from mobility.operations.models import Backup
from mobility.vault.keystore import keystore
from reports.base.version import software
from reports.ledger.actions import record
from reports.ledger.chain import Json
from reports.ledger.models import LedgerKind

log = logging.getLogger(__name__)

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
STUDY_PREFIX: Final = "study-"
SUITE: Final = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.CHACHA20_POLY1305)
INFO: Final = b"mobility-escrow-1 "
LEDGER, SENDER = "ledger", "sender"  # ids of the keys that sign; those of studies begin with STUDY_PREFIX


@dataclass(frozen=True, slots=True, kw_only=True)
class EscrowList:
    """Contents of an escrow.

    recipient : SHA-256 of the recipient's public key, 32 raw bytes
    keys : {id: SHA-256 of the sealed file ID.sealed}
    destroyed : ids of the keys that were destroyed by then
    """

    software: Mapping[str, str]
    zone: str
    made_at: str
    recipient: str
    keys: Mapping[str, str]
    destroyed: list[str]

    def to_bytes(self) -> bytes:
        told = {"format": FORMAT, **asdict(self)}
        return (json.dumps(told, indent=1, sort_keys=True) + "\n").encode()


def read_recipient(pem: bytes) -> X25519PublicKey:
    """The public key that an escrow is sealed for.

    Raises
    ------
    OperationsError : it is none of X25519
    """
    try:
        key = load_pem_public_key(pem)
    except ValueError:
        raise OperationsError("the recipient must be a public key in PEM format (BEGIN PUBLIC KEY)") from None
    if not isinstance(key, X25519PublicKey):
        raise OperationsError(
            "the recipient must be an X25519 key, as created by `openssl genpkey -algorithm X25519`"
        )
    return key


def read_private_key(pem: bytes, *, password: bytes | None) -> X25519PrivateKey:
    """The private key that opens an escrow.

    Raises
    ------
    OperationsError : it is none, or the password does not open it
    """
    try:
        key = load_pem_private_key(pem, password=password)
    except TypeError:
        raise OperationsError(
            "the private key has a password: write the password to a file and use --password-file"
            if password is None
            else "the private key has no password: do not use --password-file"
        ) from None
    except ValueError:
        raise OperationsError(
            "the private key cannot be read: the file is not a private key, or the password is wrong"
        ) from None
    if not isinstance(key, X25519PrivateKey):
        raise OperationsError("the private key must be an X25519 key")
    return key


def make_escrow(parent: Path, *, recipient: X25519PublicKey, by: str) -> tuple[Path, EscrowList]:
    """Write all intact keys, sealed, into a new folder below `parent`.

    Where the ledger cannot be written, because its key is missing, only the database says so.

    Raises
    ------
    OperationsError : it cannot be written; nothing is left of it
    """
    made_at = timezone.now()
    sizes, hashes = {}, {}
    try:
        with new_folder(parent, f"escrow-{stamp(made_at)}") as folder:
            for key_id, key in _keys():
                sealed = SUITE.encrypt(key, recipient, INFO + key_id.encode())
                (folder / f"{key_id}.sealed").write_bytes(sealed)
                sizes[key_id], hashes[key_id] = len(sealed), hashlib.sha256(sealed).hexdigest()
            listed = EscrowList(
                software=software(),
                zone=settings.MOBILITY_ZONE,
                made_at=made_at.isoformat(),
                recipient=hashlib.sha256(recipient.public_bytes_raw()).hexdigest(),
                keys=hashes,
                destroyed=keystore().destroyed(),
            )
            (folder / MANIFEST).write_bytes(listed.to_bytes())
            note_beside_keys(hashes, made_at)  # before the folder is there: no copy is out that no one noted
    except OSError as error:
        raise OperationsError(f"{error.filename or parent}: {error.strerror}") from None
    final = parent / folder.name.removesuffix(".part")
    note_escrow(digest_of(final), sizes, made_at=made_at)
    if can_sign():
        facts: dict[str, Json] = {"keys": list(hashes), "recipient": listed.recipient}
        record(LedgerKind.KEYS_ESCROWED, actor=by, facts=facts)
    log.info("keys_escrowed keys=%s", len(hashes))
    return final, listed


def read_escrow(folder: Path) -> EscrowList:
    """Contents of an escrow; every file is there, byte for byte.

    Raises
    ------
    OperationsError
    """
    try:
        told = json.loads((folder / MANIFEST).read_bytes())
        if told.pop("format") != FORMAT:
            raise OperationsError(
                f"the escrow has another format than {FORMAT}: use a newer version of the software"
            )
        listed = EscrowList(**told)
    except OSError as error:
        raise OperationsError(f"no escrow in this folder ({error.strerror}: {MANIFEST})") from None
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise OperationsError(f"the list of the escrow cannot be read ({type(error).__name__})") from None
    for key_id, digest in listed.keys.items():
        path = folder / f"{key_id}.sealed"
        if path.parent != folder or not path.is_file():
            raise OperationsError(f"the sealed key {key_id} is missing")
        if hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            raise OperationsError(f"the sealed key {key_id} was changed")
    return listed


def unsealed(folder: Path, key_id: str, *, private_key: X25519PrivateKey) -> bytes:
    """A key out of an escrow.

    Raises
    ------
    OperationsError : it was sealed for another recipient, or is not the key of that id
    """
    try:
        return SUITE.decrypt((folder / f"{key_id}.sealed").read_bytes(), private_key, INFO + key_id.encode())
    except (InvalidTag, ValueError):
        raise OperationsError(
            f"the private key does not open {key_id}: it belongs to another recipient, or the file "
            "belongs to another key"
        ) from None


@transaction.atomic
def note_escrow(digest: str, sizes: Mapping[str, int], *, made_at: datetime) -> None:
    """Keep that keys are in an escrow; once for each escrow."""
    Backup.objects.get_or_create(
        kind=Backup.Kind.ESCROW,
        digest=digest,
        defaults={
            "zone": settings.MOBILITY_ZONE,
            "made_at": made_at,
            "bytes": sum(sizes.values()),
            "contents": dict(sizes),
        },
    )


def note_beside_keys(key_ids: Iterable[str], made_at: datetime) -> None:
    """Keep it in the keystore as well, which no restored database replaces."""
    keys = keystore()
    of_studies = [key_id for key_id in key_ids if key_id.startswith(STUDY_PREFIX)]
    new = [key_id for key_id in of_studies if made_at.date() not in keys.escrow_days(key_id)]
    if new:  # without studies there may be no keystore, as in an analyst zone
        keys.note_escrow(new, made_at=made_at)


def signing_files() -> dict[str, Path]:
    """Files of the keys that sign, by their ids in an escrow."""
    return {
        LEDGER: Path(settings.MOBILITY_LEDGER_KEY_FILE),
        SENDER: Path(settings.MOBILITY_SENDER_KEY_FILE),
    }


def damaged_keys() -> list[str]:
    """Ids of keys whose files are no keys: no escrow takes them."""
    keys = keystore()
    damaged = [key_id for key_id in _study_keys() if keys.is_damaged(key_id)]
    return sorted(damaged + [key_id for key_id, path in signing_files().items() if is_damaged_pem(path)])


def is_damaged_pem(path: Path) -> bool:
    """Return whether there is a file that is no private key."""
    if not path.exists():
        return False
    try:
        load_pem_private_key(path.read_bytes(), password=None)
    except (ValueError, TypeError):
        return True
    return False


def _keys() -> Iterator[tuple[str, bytes]]:
    keys = keystore()
    for key_id in _study_keys():
        if not keys.is_damaged(key_id):
            yield key_id, keys.read(key_id)
    for key_id, path in signing_files().items():
        if path.exists() and not is_damaged_pem(path):
            yield key_id, path.read_bytes()


def _study_keys() -> list[str]:
    keys = keystore()
    key_ids = [f"{STUDY_PREFIX}{name}" for name in sorted(keys.names(prefix=STUDY_PREFIX))]
    return [key_id for key_id in key_ids if not keys.is_destroyed(key_id)]
