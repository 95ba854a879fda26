"""Automatic uploads: named ways of reading files, and tokens of feeds."""

from django.db import models
from django.utils import timezone

from mobility.vault.models.subscribers import VaultStudy


class ExtractProfile(models.Model):
    """A named way of reading the files of one source; those built in are in no table."""

    study = models.ForeignKey(VaultStudy, on_delete=models.CASCADE, related_name="profiles")
    name = models.SlugField(max_length=64)
    definition = models.JSONField(help_text="mobility.profiles.Profile")
    created_by = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["study", "name"]
        constraints = [models.UniqueConstraint(fields=["study", "name"], name="extract_profile_once")]

    def __str__(self) -> str:
        return f"{self.study} profile {self.name}"


class FeedToken(models.Model):
    """Token for a program that sends files of one study; only a digest of it is kept."""

    study = models.ForeignKey(VaultStudy, on_delete=models.CASCADE, related_name="feed_tokens")
    name = models.CharField(max_length=80)
    digest = models.CharField(max_length=64, unique=True, help_text="SHA-256 of the token")
    created_by = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["study", "-created_at"]

    def __str__(self) -> str:
        return f"{self.study} feed {self.name}"

    @property
    def is_valid(self) -> bool:
        """Return whether it opens the door now."""
        return self.revoked_at is None and self.expires_at > timezone.now()

    @property
    def state(self) -> str:
        """ "valid", or why not: "revoked", "expired"."""
        if self.revoked_at is not None:
            return "revoked"
        return "valid" if self.is_valid else "expired"
