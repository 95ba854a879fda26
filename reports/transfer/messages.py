"""Messages from a separate operator zone, as bytes, and their signatures.

A message is a request below `/api/v1/intake/`. Its kind, study and item are in the address; four headers
say who sends it, when, the SHA-256 of its body, and the Ed25519 signature of all of that. So a signature is
good for one message only, and a server can refuse strangers before it reads a byte of their body.

Readers of a part of a message raise MessageError where it does not have its form.
"""

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, Literal

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from reports.studies.areas import area_fields
from reports.studies.plan_models import Plan
from reports.studies.studyfile.definition import ExtractProfile, IndicatorDefinition, StudyDefinition
from reports.studies.studyfile.lookups import Lookup
from reports.studies.studyfile.table import is_one_line, with_plain_spaces
from reports.transfer.studies import Approval

Kind = Literal["state", "study", "publication", "receipts", "closed"]

FORMAT: Final = "mobility-handover-1"
SENDER, TIME, DIGEST, SIGNATURE = "Mobility-Sender", "Mobility-Time", "Mobility-Digest", "Mobility-Signature"
SENDER_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
HEX_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
KEY_BYTES: Final = 32
AREA_KEYS: Final = frozenset({"n_cells", "zones", "geojson", "projection", "outlines", "layers"})
OPTIONAL_AREA_KEYS: Final = frozenset(
    {"grid", "grid_zones", "grid_land", "grid_at_antennas", "h3_resolution", "zones_fr"}
)
BINARY: Final = ("grid_zones", "grid_land")  # fields of an area that are bytes


class MessageError(ValueError):
    """A message is not what its kind must be; nothing was changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """Signed content of a message.

    item : which of its kind in the study: the id of a publication; else empty
    sent_at : seconds since 1970
    digest : SHA-256 of the body, hexadecimal
    """

    kind: Kind
    sender: str
    study: str
    item: str
    sent_at: int
    digest: str

    def to_bytes(self) -> bytes:
        """Return the signed bytes; no part can hold a line break, so that no two messages share these."""
        parts = (FORMAT, self.kind, self.sender, self.study, self.item, str(self.sent_at), self.digest)
        return "\n".join(parts).encode()

    def signed(self, key: Ed25519PrivateKey) -> dict[str, str]:
        """Return the headers of the message."""
        return {
            SENDER: self.sender,
            TIME: str(self.sent_at),
            DIGEST: self.digest,
            SIGNATURE: base64.b64encode(key.sign(self.to_bytes())).decode(),
        }

    def is_signed_by(self, public_key: str, signature: str) -> bool:
        """Return whether `signature` is that of this message under a public key, both in base64."""
        try:
            key = Ed25519PublicKey.from_public_bytes(base64.b64decode(public_key, validate=True))
            key.verify(base64.b64decode(signature, validate=True), self.to_bytes())
        except (InvalidSignature, ValueError):
            return False
        return True


def envelope_of(headers: Mapping[str, str], *, kind: Kind, study: str, item: str) -> Envelope:
    """Read the headers of a message."""
    sender, sent_at, digest = (headers.get(name, "") for name in (SENDER, TIME, DIGEST))
    if not SENDER_NAME.fullmatch(sender):
        raise MessageError(f"{SENDER} must match {SENDER_NAME.pattern}")
    if not (sent_at.isascii() and sent_at.isdigit() and len(sent_at) <= 12):
        raise MessageError(f"{TIME} must be whole seconds since 1970")
    if not HEX_DIGEST.fullmatch(digest):
        raise MessageError(f"{DIGEST} must be a SHA-256 of 64 hexadecimal digits")
    return Envelope(kind=kind, sender=sender, study=study, item=item, sent_at=int(sent_at), digest=digest)


def digest_of(body: bytes) -> str:
    """SHA-256, hexadecimal."""
    return hashlib.sha256(body).hexdigest()


def checked_public_key(text: str) -> str:
    """A public key as it is kept: 32 bytes in base64."""
    try:
        key = base64.b64decode(text.strip(), validate=True)
    except binascii.Error:
        key = b""
    if len(key) != KEY_BYTES:
        raise MessageError(
            f"public key must be {KEY_BYTES} bytes in base64, as `manage.py sender_key` prints it"
        )
    return base64.b64encode(key).decode()


# --- bodies -----------------------------------------------------------------------------------


def to_body(content: Mapping[str, Any]) -> bytes:
    """JSON, the same bytes for the same content."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def from_body(body: bytes, *, keys: frozenset[str], optional: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Read what `to_body` wrote."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        raise MessageError("the message must be JSON") from None
    if not isinstance(content, dict) or not keys <= content.keys() <= keys | optional:
        raise MessageError(f"the message must be an object with the keys {', '.join(sorted(keys))}")
    return content


STUDY_KEYS: Final = frozenset({"approval", "area", "definition", "is_demo", "plan_hash", "plan_version"})
APPROVAL_KEYS: Final = frozenset({"review", "by", "at"})


def study_body(
    definition: StudyDefinition, *, plan_version: int, plan_hash: str, approval: Approval, is_demo: bool
) -> bytes:
    """Body of a message that creates a study: what analysts see of it, and nothing of cells or columns."""
    fields = None
    if definition.area is not None:
        fields = area_fields(definition.area, location=definition.location)
        for name in BINARY:
            if name in fields:
                fields[name] = base64.b64encode(fields[name]).decode()
    return to_body(
        {
            "definition": public_part(definition).to_json(),
            "area": fields,
            "plan_version": plan_version,
            "plan_hash": plan_hash,
            "approval": {
                "review": approval.review,
                "by": approval.by,
                "at": None if approval.at is None else approval.at.isoformat(),
            },
            "is_demo": is_demo,
        }
    )


def public_part(definition: StudyDefinition) -> StudyDefinition:
    """The definition without what only the operator zone needs: cells, columns, how many are expected."""
    location = definition.location
    return replace(
        definition,
        area=None,
        location=None if location is None else replace(location, places=()),
        extract=ExtractProfile(subscriber="", timestamp="", cell=None, max_bad_share=Decimal(0)),
        subscribers=None,
        expected_subscribers=None,
        indicators=tuple(_public_indicator(each) for each in definition.indicators),
    )


def _public_indicator(indicator: IndicatorDefinition) -> IndicatorDefinition:
    """Without columns and codes; of a lookup the hash, which is part of the plan."""
    lookup = indicator.lookup and Lookup(file="", sha256=indicator.lookup.sha256)
    return replace(indicator, column=None, origin=None, lookup=lookup)


def area_of(content: Any) -> dict[str, Any] | None:
    """Fields of `Area` in the body of a study."""
    if content is None:
        return None
    fields = dict(content)
    if not AREA_KEYS <= fields.keys() <= AREA_KEYS | OPTIONAL_AREA_KEYS:
        raise MessageError(f"area must have the keys {', '.join(sorted(AREA_KEYS))}")
    zones = fields["zones"]
    if not isinstance(zones, list) or not all(map(is_name, zones)):
        raise MessageError("zones must be a list of texts")
    check_french(fields.get("zones_fr"), key="zones_fr", of=zones)
    try:
        return fields | {
            name: base64.b64decode(fields[name], validate=True) for name in BINARY if name in fields
        }
    except (binascii.Error, TypeError):
        raise MessageError(f"{', '.join(BINARY)} must be base64") from None


def check_french_names(content: Mapping[str, Any]) -> None:
    """Raise MessageError where French names in the definition of a study are not of its form."""
    for each in (content, *content["indicators"]):
        if (name := each.get("name_fr")) is not None and not is_name(name):
            raise MessageError("name_fr must be a text")
    for each in content["indicators"]:
        if not isinstance(each["categories"], list):
            raise MessageError("categories must be a list of texts")
        check_french(each.get("categories_fr"), key="categories_fr", of=each["categories"])
        _check_groups(each.get("groups", []), of=each["categories"])


def _check_groups(groups: object, *, of: Collection[object]) -> None:
    """Raise MessageError unless each group has a name and categories of the indicator, none of them twice."""
    try:
        pairs = [(name, list(members)) for name, members in groups]  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        raise MessageError("groups must be a list of names and lists of categories") from None
    members = [member for _, found in pairs for member in found]
    if not all(is_name(name) and found for name, found in pairs) or len(dict(pairs)) < len(pairs):
        raise MessageError("groups must have names that differ, and categories")
    if not all(is_name(member) and member in of for member in members) or len(set(members)) < len(members):
        raise MessageError("groups must have categories of the indicator, each once")


def check_french(names: object, *, key: str, of: Collection[object]) -> None:
    """Raise MessageError unless there is no French name, or another one for each."""
    if names is None:
        return
    if not isinstance(names, list) or not all(is_name(name) and name for name in names):
        raise MessageError(f"{key} must be a list of texts")
    if len(names) != len(of):
        raise MessageError(f"{key} must have a name for each, {len(of)}, got {len(names)}")
    if len({with_plain_spaces(name) for name in names}) < len(names):
        raise MessageError(f"{key} must differ from each other by more than the kind of spaces")


def is_name(text: object) -> bool:
    """Return whether it is a text of one line that can be printed, as a study file has it."""
    return isinstance(text, str) and is_one_line(text)


def approval_of(content: Any) -> Approval:
    """Approval of the plan, in the body of a study."""
    if not isinstance(content, dict) or content.keys() != APPROVAL_KEYS:
        raise MessageError(f"approval must have the keys {', '.join(sorted(APPROVAL_KEYS))}")
    by, at = content["by"], content["at"]
    if content["review"] not in Plan.Review.values or not isinstance(by, str) or not by.isprintable():
        raise MessageError("approval must say how the plan was reviewed, and by whom")
    return Approval(review=content["review"], by=by, at=None if at is None else time_of(at))


def time_of(text: object) -> datetime:
    """A time as messages write it: ISO 8601 with its offset."""
    try:
        at = datetime.fromisoformat(text if isinstance(text, str) else "")
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise MessageError("a time must have its offset, such as 2017-06-08T00:00:00+00:00")
    return at


EVENT: Final = re.compile(r"[a-z][a-z.]{0,39}/[0-9a-f-]{36}")
RECEIPTS_MAX: Final = 200  # in one message


def receipts_body(receipts: Iterable[Mapping[str, Any]]) -> bytes:
    """Body of receipts of batches for the ledger: objects with `event` (an id) and `facts`."""
    return to_body({"receipts": list(receipts)})


def receipts_of(body: bytes) -> list[tuple[str, dict[str, Any]]]:
    """Event and facts of each receipt."""
    listed = from_body(body, keys=frozenset({"receipts"}))["receipts"]
    if not isinstance(listed, list) or len(listed) > RECEIPTS_MAX:
        raise MessageError(f"receipts must be a list of at most {RECEIPTS_MAX}")
    for each in listed:
        if not isinstance(each, dict) or each.keys() != {"event", "facts"}:
            raise MessageError("a receipt must have the keys event, facts")
        if not isinstance(each["event"], str) or not EVENT.fullmatch(each["event"]):
            raise MessageError(f"event must match {EVENT.pattern}")
        if not isinstance(each["facts"], dict):
            raise MessageError("facts must be an object")
    return [(each["event"], each["facts"]) for each in listed]


PUBLICATION_KEYS: Final = frozenset({"number", "plan_hash", "voided_days"})
SLOTS: Final = "slots_bytes"


def publication_body(
    packed: bytes, *, number: int, plan_hash: str, voided_days: int, slots: bytes | None = None
) -> bytes:
    """Body of a publication: a line of JSON, packed counts of slots if it brings any, the packed delta."""
    content = {"number": number, "plan_hash": plan_hash, "voided_days": voided_days}
    if slots is None:
        return to_body(content) + b"\n" + packed
    return to_body(content | {SLOTS: len(slots)}) + b"\n" + slots + packed


def publication_of(body: bytes) -> tuple[dict[str, Any], bytes, bytes | None]:
    """The line, the packed delta, and the packed counts of slots of a publication, if it has any."""
    line, _, packed = body.partition(b"\n")
    content = from_body(line, keys=PUBLICATION_KEYS, optional=frozenset({SLOTS}))
    for name in ("number", "voided_days", SLOTS):
        value = content.get(name, 0)
        if type(value) is not int or not 0 <= value < 2**31:
            raise MessageError(f"{name} must be a whole number")
    if not isinstance(content["plan_hash"], str):
        raise MessageError("plan_hash must be text")
    if SLOTS not in content:
        return content, packed, None
    return content, packed[content[SLOTS] :], packed[: content[SLOTS]]
