"""State of an installation: workers, jobs, backups, problems.

All of it lies in the main database; rows from before a change of MOBILITY_ZONE have another `zone`. No row
names a person, a file or a value: names of workers, slugs of studies and counts only.
"""

from django.db import models
from django.db.models import Q

from mobility.workers.models import WorkerSign

__all__ = ["WorkerSign"]


class JobRun(models.Model):
    """A job that workers run now and then, and how its last run went."""

    name = models.CharField(max_length=64)
    zone = models.CharField(max_length=8, help_text="MOBILITY_ZONE")
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True, help_text="of the last run that ended well")
    failed_at = models.DateTimeField(null=True, blank=True, help_text="of the last run that did not")
    failure = models.CharField(max_length=64, blank=True, help_text="kind of the error, never its words")

    class Meta:
        ordering = ["zone", "name"]
        constraints = [models.UniqueConstraint(fields=["zone", "name"], name="job_run_once")]

    def __str__(self) -> str:
        return self.name


class Installation(models.Model):
    """Identity of this installation; one row."""

    code = models.CharField(max_length=32, help_text="random, hexadecimal; made with the first backup")

    def __str__(self) -> str:
        return self.code


class Backup(models.Model):
    """A backup, an escrow of keys, or a restore: when, of what, how large."""

    class Kind(models.TextChoices):
        BACKUP = "backup"
        ESCROW = "escrow"
        RESTORE = "restore"

    kind = models.CharField(max_length=8, choices=Kind)
    zone = models.CharField(max_length=8, help_text="MOBILITY_ZONE")
    made_at = models.DateTimeField()
    bytes = models.PositiveBigIntegerField(default=0)
    digest = models.CharField(max_length=64, blank=True, help_text="SHA-256 of its manifest")
    contents = models.JSONField(default=dict, help_text="{part: bytes}")

    class Meta:
        ordering = ["-made_at"]

    def __str__(self) -> str:
        return f"{self.kind} {self.made_at:%Y-%m-%d %H:%M}"


class Alert(models.Model):
    """A finding that people were notified of, from its first to its last sighting."""

    code = models.CharField(max_length=64, help_text="of mobility.operations.findings.CODES")
    subject = models.CharField(max_length=200, blank=True)
    zone = models.CharField(max_length=8, help_text="MOBILITY_ZONE")
    level = models.CharField(max_length=8)
    facts = models.JSONField(default=dict)
    since = models.DateTimeField()
    seen_at = models.DateTimeField()
    told = models.JSONField(default=dict, help_text="{channel: when it was sent there}")
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-since"]
        constraints = [
            models.UniqueConstraint(
                fields=["zone", "code", "subject"], condition=Q(ended_at=None), name="alert_open_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.code} {self.subject}".strip()


class AlertWatch(models.Model):
    """Time of the last comparison of findings and open alerts: the process that advances it does the next."""

    zone = models.CharField(max_length=8, unique=True, help_text="MOBILITY_ZONE")
    looked_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.zone} {self.looked_at:%Y-%m-%d %H:%M}"


class AlertChannel(models.Model):
    """A channel of alerts, and whether it accepts messages."""

    zone = models.CharField(max_length=8, help_text="MOBILITY_ZONE")
    name = models.CharField(max_length=16, help_text="email or webhook")
    busy_until = models.DateTimeField(null=True, blank=True, help_text="a process sends by it until then")
    told_at = models.DateTimeField(null=True, blank=True)
    failing_since = models.DateTimeField(null=True, blank=True)
    failures = models.PositiveSmallIntegerField(default=0, help_text="since it last took something")
    error = models.CharField(max_length=64, blank=True, help_text="kind of the error, never its words")
    next_try_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["zone", "name"]
        constraints = [models.UniqueConstraint(fields=["zone", "name"], name="alert_channel_once")]

    def __str__(self) -> str:
        return self.name
