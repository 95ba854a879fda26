"""The ledger: what was done, by whom, in the order in which it happened. Entries are only ever added.

Each entry carries a hash of itself and of the one before it, and the head is signed with a key that is in no
database (reports/ledger/chain.py). Triggers refuse changes and removals; anyone who removes the triggers
first is found out by the chain.
"""

from enum import StrEnum
from typing import Any, NoReturn

from django.db import models
from django.db.models import Q

from reports.ledger.chain import Content, SignedHead, canonical, moment


class LedgerKind(StrEnum):
    PLAN_DRAFTED = "plan.drafted"
    PLAN_REVIEWED = "plan.reviewed"
    PLAN_PUBLISHED = "plan.published"
    PLAN_SUPERSEDED = "plan.superseded"
    PLAN_WITHDRAWN = "plan.withdrawn"
    STUDY_CREATED = "study.created"
    STUDY_CLOSED = "study.closed"
    STUDY_DELETED = "study.deleted"
    BATCH_ENDED = "batch.ended"
    DAY_UNDO = "day.undo"
    TABLE_SANITISED = "table.sanitised"
    PUBLICATION_APPLIED = "publication.applied"
    KEY_CREATED = "key.created"
    KEY_DESTROYED = "key.destroyed"
    EXPORT_MADE = "export.made"
    SHARE_CREATED = "share.created"
    SHARE_OPENED = "share.opened"
    SHARE_REVOKED = "share.revoked"
    BOARD_CHANGED = "board.changed"
    DIGEST = "board.digest"
    LAYERS_CHANGED = "map.layers"
    TOKEN_CREATED = "token.created"  # noqa: S105 - a kind, not a token
    TOKEN_REVOKED = "token.revoked"  # noqa: S105
    SIGN_IN_SUCCEEDED = "sign_in.succeeded"
    SIGN_IN_FAILED = "sign_in.failed"
    SIGNED_OUT = "signed_out"
    ACCESS_CHANGED = "access.changed"
    BUDGET_CHANGED = "budget.changed"
    SENDER_REGISTERED = "sender.registered"
    DELTA_RECEIVED = "delta.received"
    BACKUP_MADE = "backup.made"
    BACKUP_RESTORED = "backup.restored"
    KEYS_ESCROWED = "keys.escrowed"
    KEYS_RESTORED = "keys.restored"


class AppendOnlyError(TypeError):
    """An entry of the ledger can neither be changed nor removed."""


def _refuse(*_: Any, **__: Any) -> NoReturn:
    raise AppendOnlyError("the ledger is append-only: an entry can neither be changed nor removed")


class AppendOnlyQuerySet(models.QuerySet["LedgerEntry"]):
    update = delete = bulk_update = bulk_create = update_or_create = _refuse


class LedgerEntry(models.Model):
    """One thing that happened. Only `reports.ledger.actions` writes it."""

    number = models.PositiveBigIntegerField(primary_key=True, help_text="from 1, without gaps")
    at = models.DateTimeField()
    kind = models.CharField(max_length=32)
    actor = models.CharField(max_length=150, blank=True, help_text="name of an account, or what acted")
    # The slug and no reference: what was done to a study outlives it.
    study = models.CharField(max_length=64, blank=True)
    facts = models.JSONField(default=dict)
    event_id = models.CharField(max_length=120, blank=True, help_text="of what may be recorded only once")
    salt = models.CharField(max_length=32)
    previous_hash = models.CharField(max_length=64)
    hash = models.CharField(max_length=64)

    objects = AppendOnlyQuerySet.as_manager()

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(fields=["event_id"], condition=~Q(event_id=""), name="ledger_event_once")
        ]
        indexes = [
            models.Index(fields=["study", "-number"], name="ledger_by_study"),
            models.Index(fields=["kind", "-number"], name="ledger_by_kind"),
            models.Index(fields=["actor", "-number"], name="ledger_by_actor"),
            models.Index(fields=["at"], name="ledger_by_time"),
        ]

    def __str__(self) -> str:
        return f"{self.number} {self.kind}"

    def save(self, **options: Any) -> None:
        if not self._state.adding:
            _refuse()
        super().save(**(options | {"force_insert": True}))

    def delete(self, *_: Any, **__: Any) -> NoReturn:
        _refuse()

    @property
    def content(self) -> Content:
        """Return the content of the entry, as it is hashed."""
        return Content(
            at=moment(self.at),
            kind=self.kind,
            actor=self.actor,
            study=self.study,
            facts=self.facts,
            event_id=self.event_id,
            salt=self.salt,
        )


class LedgerWaiting(models.Model):
    """An entry that did not wait for the head: the next transaction that holds it adds this to the chain."""

    at = models.DateTimeField()
    kind = models.CharField(max_length=32)
    actor = models.CharField(max_length=150, blank=True)
    study = models.CharField(max_length=64, blank=True)
    facts = models.JSONField(default=dict)
    event_id = models.CharField(max_length=120, blank=True)
    signature = models.CharField(max_length=128, help_text="by the key that signs the head")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["event_id"], condition=~Q(event_id=""), name="ledger_waiting_once"
            )
        ]

    def __str__(self) -> str:
        return f"waiting {self.kind}"

    @property
    def signed_bytes(self) -> bytes:
        """Return what the signature covers."""
        names = ("kind", "actor", "study", "facts", "event_id")
        return canonical({name: getattr(self, name) for name in names} | {"at": moment(self.at)})


class LedgerHead(models.Model):
    """The end of the chain: one row, which anyone who adds an entry locks; and how the last check ended."""

    ONLY = 1  # its primary key

    number = models.PositiveBigIntegerField(default=0)
    hash = models.CharField(max_length=64, blank=True)
    at = models.DateTimeField(null=True, blank=True)
    public_key = models.CharField(max_length=64, blank=True)
    signature = models.CharField(max_length=128, blank=True)

    checked_at = models.DateTimeField(null=True, blank=True)
    checked_number = models.PositiveBigIntegerField(default=0)
    problem = models.JSONField(null=True, blank=True, help_text="what the last check found")

    class Meta:
        constraints = [models.CheckConstraint(name="ledger_head_is_one", condition=Q(id=1))]

    def __str__(self) -> str:
        return f"ledger of {self.number}"

    @property
    def signed(self) -> SignedHead:
        """The signed head; of an empty ledger it is signed by no one."""
        return SignedHead(
            number=self.number,
            hash=self.hash,
            at=moment(self.at) if self.at else "",
            public_key=self.public_key,
            signature=self.signature,
        )
