"""Data that wait to cross to the analyst zone, and that have crossed (kept for replay after a restore)."""

import uuid

from django.db import models
from django.db.models import Q

from mobility.vault.models.batch import Batch
from mobility.vault.models.subscribers import VaultStudy


class VaultPublication(models.Model):
    """One merged delta, kept until the study closes: the analyst zone takes each once."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    study = models.ForeignKey(VaultStudy, on_delete=models.CASCADE, related_name="publications")
    number = models.PositiveIntegerField()
    subscribers = models.PositiveIntegerField(
        help_text="subscribers who count otherwise than in the publications before"
    )
    voided_days = models.PositiveSmallIntegerField(default=0)
    delta = models.BinaryField()
    slots = models.BinaryField(
        null=True, blank=True, help_text="SlotCounts with their noise; the delta is zero then"
    )
    slots_through = models.PositiveIntegerField(
        null=True, blank=True, help_text="slots of the study that are published with this one"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    handed_over_at = models.DateTimeField(
        null=True, blank=True, help_text="when an analyst server that runs apart took it; empty: not yet"
    )

    class Meta:
        ordering = ["study", "number", "slots_through"]
        constraints = [
            # Slots have the number of the next publication of totals, and take it from no one.
            models.UniqueConstraint(
                fields=["study", "number"], condition=Q(slots_through=None), name="publication_number_once"
            ),
            models.UniqueConstraint(fields=["study", "slots_through"], name="publication_slots_once"),
            models.CheckConstraint(
                condition=Q(slots=None, slots_through=None)
                | Q(slots__isnull=False, slots_through__isnull=False),
                name="publication_slots_have_end",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.study} publication {self.number}"


class OutboxDelta(models.Model):
    """Changes that wait to be published: of one shard, or merged, with the number of no shard."""

    batch = models.ForeignKey(Batch, on_delete=models.CASCADE, related_name="outbox")
    shard = models.PositiveIntegerField()
    number = models.PositiveIntegerField(help_text="publication that it belongs to")
    subscribers = models.IntegerField(
        help_text="by how many more the state differs from what is published; negative for fewer"
    )
    opted_out = models.PositiveIntegerField(
        default=0, help_text="subscribers who have opted out, and whom the totals count until this crosses"
    )
    delta = models.BinaryField(help_text="sealed")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["batch", "shard"], name="outbox_delta_once")]

    def __str__(self) -> str:
        return f"{self.batch} shard {self.shard}"


class OutboxSlots(models.Model):
    """Counts by slot and zone that wait to be published, of one shard, without noise.

    With the number of no shard: zeros, written when all shards have taken the batch. Without them the counts
    of a batch are never published.
    """

    batch = models.ForeignKey(Batch, on_delete=models.CASCADE, related_name="outbox_slots")
    shard = models.PositiveIntegerField()
    counts = models.BinaryField(help_text="SlotCounts, sealed")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["batch", "shard"], name="outbox_slots_once")]

    def __str__(self) -> str:
        return f"slots of {self.batch} shard {self.shard}"
