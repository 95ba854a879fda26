"""Data that wait to cross to the analyst zone, and that have crossed (kept for replay after a restore)."""

import uuid

from django.db import models

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
    created_at = models.DateTimeField(auto_now_add=True)
    handed_over_at = models.DateTimeField(
        null=True, blank=True, help_text="when an analyst server that runs apart took it; empty: not yet"
    )

    class Meta:
        ordering = ["study", "number"]
        constraints = [models.UniqueConstraint(fields=["study", "number"], name="publication_number_once")]

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
