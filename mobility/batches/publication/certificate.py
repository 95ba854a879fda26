"""The erasure certificate of a study: what was destroyed and when, what stays, what no one here can reach.

It is drafted, with its counts, in the transaction that closes the study, and completed during the erasure
on. It counts, and names days and keys, never a person; its schema is docs/certificate.schema.json.
"""

from dataclasses import asdict, dataclass, replace
from datetime import date, datetime
from typing import Any

from django.db import connections
from django.utils.translation import gettext, ngettext

from mobility.vault.models.subscribers import VaultStudy
from reports.base.version import software
from reports.privacy.statement.document import utc_text

SCHEMA_VERSION = 1
Certificate = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Holdings:
    """Contents of the vault for a study when it was closed.

    pseudonyms : subscribers with presence; None when the key was gone, and they could not be counted
    presence_shards, pseudonyms, day_states, answer_shards, opt_out_shards, waiting_deltas : None with
        presence noise: how many there are depends on who was there, and the certificate leaves the zone
    damaged_shards : presence shards that the key did not open, whose pseudonyms are not counted
    waiting_deltas, publications : sanitised changes that waited for others, and that crossed
    staged_uploads : batches of which staged bytes were left
    batches : {state: batches}
    feed_tokens : tokens that were valid until then
    """

    presence_shards: int | None
    pseudonyms: int | None
    damaged_shards: int
    day_states: int | None
    answer_shards: int | None
    opt_out_shards: int | None
    waiting_deltas: int | None
    publications: int
    staged_uploads: int
    batches: dict[str, int]
    feed_tokens: int

    def without_presence(self) -> "Holdings":
        """Return the counts that do not depend on who was there."""
        return replace(
            self,
            presence_shards=None,
            pseudonyms=None,
            day_states=None,
            answer_shards=None,
            opt_out_shards=None,
            waiting_deltas=None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """Data that never reached the reports, and are lost.

    waiting_subscribers : subscribers whose last changes were too few to be published; None with noise
    opted_out_in_totals : those of them who opted out, and whom the totals count for good; None with noise
    unpublished_days : days with rows that no one published
    """

    waiting_subscribers: int | None
    opted_out_in_totals: int | None
    unpublished_days: tuple[date, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Copies:
    """Copies that this erasure cannot reach, in addition to those it never can.

    in_escrow : days on which the study's key was put into an escrow
    came_back : the study had been closed, and a restored backup brought it back
    """

    in_escrow: tuple[date, ...] = ()
    came_back: bool = False


def draft(
    study: VaultStudy,
    *,
    by: str,
    at: datetime,
    key_ids: list[str],
    destroyed_before: str | None,
    holdings: Holdings,
    dropped: Dropped,
    copies: Copies,
) -> Certificate:
    """Certificate of an erasure that has been decided on, and in which nothing is destroyed yet.

    Parameters
    ----------
    key_ids : keys that are there
    destroyed_before : when the study's key was destroyed, if that was before: a restored backup brings back a
        study, never its key
    """
    counts = asdict(holdings)
    is_there = study.key_id in key_ids
    was_lost = not is_there and destroyed_before is None
    keys = [{"id": key_id, "destroyed_at": None} for key_id in key_ids]
    if not is_there and not was_lost:
        keys.insert(0, {"id": study.key_id, "destroyed_at": destroyed_before})
    return {
        "schema_version": SCHEMA_VERSION,
        "software": software(),
        "study": _study(study),
        "closed_at": utc_text(at),
        "closed_by": by,
        "erased_at": None,
        "database": connections["vault"].vendor,
        "key_was_lost": was_lost,
        "keys": keys,
        "batches": counts.pop("batches"),
        "revoked": {"feed_tokens": counts.pop("feed_tokens")},
        "erased": counts,
        "dropped": {
            "waiting_subscribers": dropped.waiting_subscribers,
            "unpublished_days": [day.isoformat() for day in dropped.unpublished_days],
        },
        "opted_out_in_totals": dropped.opted_out_in_totals,
        "kept": kept(opted_out=dropped.opted_out_in_totals, of_events=study.of_events),
        "not_reached": not_reached(connections["vault"].vendor, key_was_lost=was_lost, copies=copies),
    }


def _study(study: VaultStudy) -> dict[str, Any]:
    told = {name: study.definition[name] for name in ("name", "first_day", "days")}
    return {"slug": study.slug, **told, "plan_sha256": study.plan_hash}


def key_ids(certificate: Certificate) -> list[str]:
    """Keys to destroy, in this order."""
    return [key["id"] for key in certificate["keys"]]


def keys_destroyed(certificate: Certificate, *, at: datetime) -> Certificate:
    """Return the certificate with the time at which the last of the keys was gone."""
    keys = [{**key, "destroyed_at": key["destroyed_at"] or utc_text(at)} for key in certificate["keys"]]
    return {**certificate, "keys": keys}


def completed(certificate: Certificate, *, at: datetime) -> Certificate:
    """Return the certificate of an erasure that has come to its end."""
    return {**certificate, "erased_at": utc_text(at)}


def is_complete(certificate: Certificate | None) -> bool:
    """Return whether everything that it lists is gone."""
    return certificate is not None and certificate["erased_at"] is not None


def kept(*, opted_out: int | None, of_events: bool = False) -> list[dict[str, str]]:
    """Things that an erasure leaves in place, each with a fixed name and a text.

    Parameters
    ----------
    opted_out : as `Dropped.opted_out_in_totals`; None with noise
    """
    totals = gettext("Exact visitor counts, and totals of randomised answers, in the analyst zone.")
    if of_events:
        totals = gettext("Exact event counts, and totals of randomised answers, in the analyst zone.")
    elif opted_out is None:
        totals = gettext(
            "Visitor counts and totals of randomised answers, both with presence noise, in the analyst zone."
        )
    return _named(
        totals=totals,
        **_still_counted(opted_out),
        study=gettext("The study's definition and plan, and the status of each of its days."),
        batches=gettext(
            "The batch log: file names, times, senders, row counts, and cells outside the area. It "
            "contains no identifiers and no individual person's values."
        ),
        certificate=gettext("This certificate."),
    )


def _still_counted(opted_out: int | None) -> dict[str, str]:
    """People who have opted out and remain in the totals, in words; nothing if there are none."""
    if opted_out is None:
        text = gettext(
            "Totals with presence noise never change, so people who opted out after a day was closed "
            "remain in its totals. This certificate must not reveal how many such people there are."
        )
        return {"opted_out": text}
    if not opted_out:
        return {}
    text = ngettext(
        "%(n)d subscriber who opted out remains in the published totals. The subscriber's presence and "
        "answers have been erased, but the latest changes covered too few subscribers to be published.",
        "%(n)d subscribers who opted out remain in the published totals. Their presence and answers have "
        "been erased, but the latest changes covered too few subscribers to be published.",
        opted_out,
    )
    return {"opted_out": text % {"n": opted_out}}


def not_reached(database: str, *, key_was_lost: bool, copies: Copies) -> list[dict[str, str]]:
    """Things that an erasure cannot reach; their makers are responsible for them."""
    texts = {
        "backups": gettext(
            "Earlier backups of the vault. They are encrypted and cannot be read without the key."
        ),
        "key_copies": gettext(
            "Copies of the keystore in disk snapshots, and copies made contrary to instructions. "
            "This installation has no record of such copies. Anyone who has one must destroy it."
        ),
        "disk": gettext(
            "Some disks do not overwrite data in place (flash memory, copy-on-write file systems). "
            "On these disks, blocks of the key file may remain until they are reused. The same "
            "applies to memory swapped to disk."
        ),
        "database_log": _database_log(database),
        "source_files": gettext("The operator's own files from which the extracts were made."),
    }
    if copies.in_escrow:
        texts["escrow"] = gettext(
            "Escrow copies of the study key, made on %(days)s. Anyone who holds such a copy must destroy "
            "it. This installation will not restore the key from a copy."
        ) % {"days": ", ".join(day.isoformat() for day in copies.in_escrow)}
    if copies.came_back:
        texts["came_back"] = gettext(
            "A restored backup brought the closed study back, or returned it to an earlier state than its "
            "totals reflect. This closing has erased what the backup restored. The ledger records each "
            "time that the study was closed."
        )
    if key_was_lost:
        texts["lost_key"] = gettext(
            "The study key could not be destroyed, because it was not in the keystore when the study "
            "was closed. Anyone who finds the key can use it to decrypt backups of the vault."
        )
    return _named(**texts)


def _database_log(database: str) -> str:
    if database == "postgresql":
        return gettext(
            "PostgreSQL's write-ahead log, archived segments and replicas. They contain encrypted "
            "data until the server recycles them, but not the key to decrypt it."
        )
    return gettext(
        "Disk blocks freed by the database file. They contain encrypted data until the file system "
        "reuses them, but not the key to decrypt it."
    )


def _named(**texts: str) -> list[dict[str, str]]:
    return [{"name": name, "text": text} for name, text in texts.items()]
