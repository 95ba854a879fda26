"""Senders of totals: separate operator zones, each known by its public key."""

from django.db import models
from django.db.models import Q

from reports.studies.models import Study


class Sender(models.Model):
    """An operator zone that may create studies here and add to them; it signs all that it sends."""

    name = models.SlugField(unique=True, max_length=40)
    public_key = models.CharField(max_length=44, unique=True, help_text="Ed25519, 32 bytes in base64")
    registered_at = models.DateTimeField(auto_now_add=True)
    registered_by = models.CharField(max_length=150)
    revoked_at = models.DateTimeField(null=True, blank=True, help_text="since then nothing of it is taken")

    class Meta:
        ordering = ["name"]
        constraints = [models.CheckConstraint(name="sender_has_name", condition=~Q(name=""))]

    def __str__(self) -> str:
        return self.name


class SentStudy(models.Model):
    """A study that a sender has created: no one else may add to it."""

    study = models.OneToOneField(Study, on_delete=models.CASCADE, related_name="sent")
    sender = models.ForeignKey(Sender, on_delete=models.PROTECT, related_name="studies")
    digest = models.CharField(max_length=64, help_text="SHA-256 of the message that created it")
    certificate = models.JSONField(null=True, blank=True, help_text="of the erasure, when it was closed")

    def __str__(self) -> str:
        return f"{self.study} of {self.sender}"
