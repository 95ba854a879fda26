"""Closed studies, by a ledger that is kept elsewhere: it may destroy keys, so it is checked."""

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.db import DatabaseError

from mobility.base.errors import OperationsError
from reports.ledger.check import check_lines, read_head
from reports.ledger.key import LedgerKeyError, own_public_key, read_public_pem
from reports.ledger.models import LedgerHead, LedgerKind

if settings.HAS_VAULT:  # the models of a vault exist there only
    from mobility.vault.models.subscribers import VaultStudy

STUDY: Final = "study-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Closings:
    """Closed studies of a ledger.

    keys : ids of the study keys that it says were destroyed
    slugs : {slug: when it was closed} of studies whose key it does not name
    """

    keys: frozenset[str] = frozenset()
    slugs: Mapping[str, datetime] = field(default_factory=dict)

    def studies(self) -> set[str]:
        """Slugs of the studies that it is about, never of another one that has the slug now.

        Raises
        ------
        OperationsError : the vault does not say which studies it has
        """
        if not (settings.HAS_VAULT and (self.keys or self.slugs)):
            return set()
        try:
            here = list(VaultStudy.objects.values_list("slug", "key_id", "created_at"))
        except DatabaseError as error:
            raise OperationsError(
                f"the vault cannot list its studies ({type(error).__name__}): restore it first"
            ) from None
        closed = {
            slug
            for slug, key_id, created_at in here
            if key_id in self.keys or (slug in self.slugs and created_at < self.slugs[slug])
        }
        named = {key_id.removeprefix(STUDY).rpartition("-")[0] for key_id in self.keys}
        return closed | ({*named, *self.slugs} - {slug for slug, _, _ in here})


NONE: Final = Closings()


def known_keys(*, head: Mapping[str, Any] | None, pem: Path | None) -> set[str]:
    """Public keys of ledgers that are believed: of this installation, of a backup, and one that is named.

    Parameters
    ----------
    head : the signed head in the manifest of a backup
    pem : a file with the public key of another installation, as of the analysts' server

    Raises
    ------
    OperationsError : a key cannot be read
    """
    found = {head["public_key"]} if head else set()
    with suppress(DatabaseError):  # a new one, without tables
        found |= set(LedgerHead.objects.filter(number__gt=0).values_list("public_key", flat=True))
    try:
        if pem is not None:
            found.add(read_public_pem(pem.read_bytes()))
        found.add(own_public_key() or "")
    except (OSError, LedgerKeyError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise OperationsError(f"the public key of the ledger cannot be read: {why}") from None
    return found - {""}


def closed_in(export: Path, *, known: Collection[str]) -> Closings:
    """Return the studies closed by an export of a ledger.

    Parameters
    ----------
    known : public keys that are believed, hexadecimal

    Raises
    ------
    OperationsError : the export cannot be read, is not whole, or is signed by someone who is not known
    """
    try:
        text = export.read_bytes()
        public_key = read_head(text).public_key
        report = check_lines(text.splitlines(), public_key=public_key)
        entries = [json.loads(line) for line in text.splitlines()]
    except (OSError, ValueError) as error:
        raise OperationsError(f"the ledger cannot be read ({type(error).__name__}): {export.name}") from None
    if public_key not in known:
        raise OperationsError(
            f"the ledger in {export.name} is signed with a key that neither this installation nor the "
            "backup knows. If the ledger is the right one, for example the analyst server's, give "
            "its public key with --ledger-key"
        )
    if report.problem is not None:
        raise OperationsError(
            f"the ledger in {export.name} failed its integrity check: {report.problem.what}"
        )
    if report.left_out:
        raise OperationsError(
            f"the ledger in {export.name} leaves out {report.left_out} entries, like an export of a "
            "single study, so it may not list all destroyed keys. Use a complete export "
            "(export_ledger)"
        )
    return _closings(entries)


def _closings(entries: Collection[Mapping[str, Any]]) -> Closings:
    keys, slugs, named = set[str](), dict[str, datetime](), set[str]()
    for entry in entries:
        facts, slug = entry.get("facts") or {}, str(entry.get("study"))
        key_id = str(facts.get("key"))
        if entry.get("kind") == LedgerKind.KEY_CREATED:
            keys.discard(key_id)
        elif entry.get("kind") == LedgerKind.KEY_DESTROYED and key_id.startswith(STUDY):
            keys.add(key_id)
            named.add(slug)  # until the entry of the closing, which follows
        elif entry.get("kind") == LedgerKind.STUDY_CLOSED:
            if slug not in named:
                slugs[slug] = datetime.fromisoformat(str(facts.get("at") or entry["at"]))
            named.discard(slug)
    return Closings(keys=frozenset(keys), slugs=slugs)
