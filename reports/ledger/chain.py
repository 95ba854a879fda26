"""Chain of ledger entries: canonical text, hashes, and the signed head. Knows no database.

Each entry has two hashes. The one of its content covers what happened and a salt; the one of the entry covers
its number, the hash of the entry before it, and the hash of its content. So an export may leave the content
of an entry out, and the chain through it can still be computed. The salt keeps what was left out from being
guessed by trying.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

Json = None | bool | int | str | list["Json"] | dict[str, "Json"]

HEAD_FORMAT = "mobility-ledger-head/1"
BEFORE_THE_FIRST = "0" * 64  # the previous hash of entry 1


def canonical(value: Any) -> bytes:
    """JSON that is the same anyone who writes it: sorted keys, no spaces, UTF-8."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode()


def moment(at: datetime) -> str:
    """A time as it is hashed: UTC with six digits of the second."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """Content of an entry; `at` as `moment` writes it, `salt` 32 hexadecimal digits."""

    at: str
    kind: str
    actor: str
    study: str
    facts: dict[str, Json]
    event_id: str
    salt: str

    def to_json(self) -> dict[str, Json]:
        # Not asdict(): it copies, and a check does this for every entry.
        return {name: getattr(self, name) for name in self.__slots__}

    @property
    def hash(self) -> str:
        return canonical_hash(self.to_json())


def entry_hash(*, number: int, previous_hash: str, content_hash: str) -> str:
    """Hash of an entry, which the next one repeats."""
    return canonical_hash({"number": number, "previous_hash": previous_hash, "content_hash": content_hash})


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedHead:
    """The end of the chain at one time; anyone who keeps one can tell later whether the chain was cut.

    public_key, signature : hexadecimal, of Ed25519; the signature covers all other fields
    """

    number: int
    hash: str
    at: str
    public_key: str
    signature: str

    @classmethod
    def signed(cls, *, number: int, entry: str, at: str, key: Ed25519PrivateKey) -> "SignedHead":
        """The head after entry `number` with hash `entry`."""
        public = key.public_key().public_bytes_raw().hex()
        unsigned = cls(number=number, hash=entry, at=at, public_key=public, signature="")
        return cls(
            number=number, hash=entry, at=at, public_key=public, signature=key.sign(unsigned._signed).hex()
        )

    @classmethod
    def from_json(cls, value: Any) -> "SignedHead":
        """Read a head; ValueError when it is none."""
        fields = {"number": int, "hash": str, "at": str, "public_key": str, "signature": str}
        if not isinstance(value, Mapping) or value.get("format") != HEAD_FORMAT:
            raise ValueError(f"a head of a ledger must be an object with the format {HEAD_FORMAT}")
        if set(value) != {"format", *fields} or any(
            type(value[name]) is not kind for name, kind in fields.items()
        ):
            raise ValueError(f"a head of a ledger must have the fields {', '.join(fields)}, and no others")
        return cls(**{name: value[name] for name in fields})

    def to_json(self) -> dict[str, Any]:
        return {"format": HEAD_FORMAT, **asdict(self)}

    def is_signed_by(self, public_key: str) -> bool:
        """Return whether the key, and no other, signed exactly this."""
        try:
            key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key))
            key.verify(bytes.fromhex(self.signature), self._signed)
        except (ValueError, InvalidSignature):
            return False
        return self.public_key == public_key

    @property
    def _signed(self) -> bytes:
        return canonical({name: value for name, value in self.to_json().items() if name != "signature"})


def canonical_hash(value: Any) -> str:
    """SHA-256 of the canonical JSON, hexadecimal."""
    return hashlib.sha256(canonical(value)).hexdigest()
