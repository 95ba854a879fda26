"""Tables that someone asked to sanitise: each waits for a second person, and may then be written once."""

from django.db import models
from django.db.models import F, Q

from mobility.vault.models.subscribers import VaultStudy


class TableRequest(models.Model):
    """One file with exact options; rows stay as a record."""

    study = models.ForeignKey(VaultStudy, on_delete=models.CASCADE, related_name="tables")
    file_name = models.CharField(max_length=255)
    file_sha256 = models.CharField(max_length=64)
    options = models.JSONField()
    facts = models.JSONField(help_text="what the second person sees: rows, columns that stay, warnings")
    asked_by = models.CharField(max_length=150)
    asked_at = models.DateTimeField(auto_now_add=True)
    is_approved = models.BooleanField(null=True, blank=True, help_text="empty: it waits")
    decided_by = models.CharField(max_length=150, blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)
    written_at = models.DateTimeField(
        null=True, blank=True, help_text="after that it cannot be written again"
    )

    class Meta:
        ordering = ["asked_at", "pk"]
        constraints = [
            models.CheckConstraint(
                name="table_approved_by_another",
                condition=Q(is_approved__isnull=True, decided_at__isnull=True, decided_by="")
                | Q(is_approved=False, decided_at__isnull=False) & ~Q(decided_by="")
                | Q(is_approved=True, decided_at__isnull=False)
                & ~Q(decided_by="")
                & ~Q(decided_by=F("asked_by")),
            ),
            models.CheckConstraint(
                name="table_written_if_approved",
                condition=Q(written_at__isnull=True) | Q(is_approved=True, is_approved__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.study} table {self.pk}, asked by {self.asked_by}"
