"""Published days that someone asks to undo, where that raises epsilon above what was approved."""

from django.db import models
from django.db.models import F, Q

from mobility.vault.models.batch import Batch
from mobility.vault.models.subscribers import VaultStudy


class DayUndo(models.Model):
    """A day that waits for a second person, or about which one has decided; rows stay as a record."""

    study = models.ForeignKey(VaultStudy, on_delete=models.CASCADE, related_name="undos")
    day = models.PositiveSmallIntegerField()
    voided_days = models.PositiveSmallIntegerField(
        help_text="published days undone, with this one: the epsilon of that number was shown and approved"
    )
    asked_by = models.CharField(max_length=150)
    asked_at = models.DateTimeField(auto_now_add=True)
    is_approved = models.BooleanField(null=True, blank=True, help_text="empty: it waits")
    decided_by = models.CharField(max_length=150, blank=True, help_text="or who withdrew it")
    decided_at = models.DateTimeField(null=True, blank=True)
    batch = models.OneToOneField(
        Batch, null=True, blank=True, on_delete=models.SET_NULL, related_name="approval", help_text="does it"
    )

    class Meta:
        ordering = ["asked_at", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["study", "day"], condition=Q(is_approved=None), name="day_undo_waits_once"
            ),
            models.CheckConstraint(
                name="day_undo_approved_by_another",
                condition=Q(is_approved__isnull=True, decided_at__isnull=True, decided_by="")
                | Q(is_approved=False, decided_at__isnull=False) & ~Q(decided_by="")
                | Q(is_approved=True, decided_at__isnull=False)
                & ~Q(decided_by="")
                & ~Q(decided_by=F("asked_by")),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.study} day {self.day}, asked by {self.asked_by}"
