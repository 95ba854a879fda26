"""The vault's own copy of a study, and the sealed state that turns rows into presence."""

from django.db import models
from django.db.models import Q


class VaultStudy(models.Model):
    """The operator zone's approved plan: it sanitises by this copy only, never by the main database."""

    class Stopped(models.TextChoices):
        """Reason for a stop; `mobility.vault.consistency` has the words."""

        PRESENCE = "presence"  # a day may have crossed that is open here: only people can end that
        AHEAD = "ahead"  # analysts have more than the vault knows
        CLOSED = "closed"  # analysts know it as closed

    class ContentDigest(models.TextChoices):
        """The keyed hash that names the content of a file."""

        HMAC_SHA256 = "hmac-sha256"  # of studies of earlier releases, like the next one
        BLAKE3 = "blake3"
        GMAC = "gmac"  # twice as fast: of each frame its AES-GMAC, of all of these BLAKE3

    slug = models.SlugField(unique=True, max_length=64)
    definition = models.JSONField(help_text="reports.studyfile.StudyDefinition")
    plan = models.JSONField(help_text="ldp.PlanSpec")
    plan_hash = models.CharField(max_length=64)
    key_id = models.CharField(max_length=80, unique=True, help_text="name of the study key in the keystore")
    n_shards = models.PositiveIntegerField()
    publication_number = models.PositiveIntegerField(default=1, help_text="number of the next publication")
    voided_days = models.PositiveSmallIntegerField(default=0, help_text="published days that were undone")
    slots_closed = models.PositiveIntegerField(
        default=0, help_text="number of slots with final counts: the first ones of the study"
    )
    content_digest = models.CharField(
        max_length=16, choices=ContentDigest, default=ContentDigest.GMAC,
        help_text="by which its files are recognised; the same for all of them, or none would be found again",
    )  # fmt: skip
    undone_before = models.PositiveIntegerField(
        default=0,
        help_text="number of the next publication when a published day was last undone; 0: none was",
    )
    active_batch = models.ForeignKey(
        "Batch", null=True, blank=True, on_delete=models.SET_NULL, related_name="+",
        help_text="the batch that may change presence now: one at a time",
    )  # fmt: skip
    stopped = models.CharField(
        max_length=16, blank=True, choices=Stopped,
        help_text="why nothing can be added since a restore; empty: it can",
    )  # fmt: skip
    created_at = models.DateTimeField(auto_now_add=True)
    closed_at = models.DateTimeField(null=True, blank=True)
    certificate = models.JSONField(null=True, blank=True, help_text="what was erased when the study closed")

    class Meta:
        constraints = [models.CheckConstraint(name="vault_study_shards", condition=Q(n_shards__gte=1))]

    def __str__(self) -> str:
        return self.slug

    @property
    def of_events(self) -> bool:
        """Return whether it counts events; plans of people do not name the unit."""
        return bool(self.plan.get("events"))


class VaultDay(models.Model):
    """A day that has been touched: open (collecting), published (may still grow) or closed (final)."""

    class State(models.TextChoices):
        OPEN = "open"
        PUBLISHED = "published"
        CLOSED = "closed"

    study = models.ForeignKey(VaultStudy, on_delete=models.CASCADE, related_name="days")
    day = models.PositiveSmallIntegerField()
    state = models.CharField(max_length=10, choices=State, default=State.OPEN)
    pending = models.BooleanField(
        default=True, help_text="its state holds rows that presence does not show yet"
    )

    class Meta:
        ordering = ["study", "day"]
        constraints = [models.UniqueConstraint(fields=["study", "day"], name="vault_day_once")]

    def __str__(self) -> str:
        return f"{self.study} day {self.day}"


class DayState(models.Model):
    """First and last event, static answers and places of every pseudonym seen on one day, sealed.

    In a study of events: the key, answer and publication of each event of the day.
    """

    study = models.ForeignKey(VaultStudy, on_delete=models.CASCADE, related_name="+")
    day = models.PositiveSmallIntegerField()
    shard = models.PositiveIntegerField()
    version = models.PositiveIntegerField(default=0)
    blob = models.BinaryField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["study", "day", "shard"], name="day_state_once")]

    def __str__(self) -> str:
        return f"{self.study} day {self.day} shard {self.shard}"


class SealedShard(models.Model):
    """Sealed state of the pseudonyms of one shard; one row per study and shard."""

    study = models.ForeignKey(VaultStudy, on_delete=models.CASCADE, related_name="+")
    shard = models.PositiveIntegerField()
    version = models.PositiveIntegerField(default=0, help_text="compare-and-swap")
    blob = models.BinaryField()

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.study} {self._meta.verbose_name} {self.shard}"


class PresenceShard(SealedShard):
    """Day bitmap and sanitised answers."""

    study = models.ForeignKey(VaultStudy, on_delete=models.CASCADE, related_name="shards")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["study", "shard"], name="presence_shard_once")]


class AnswerShard(SealedShard):
    """Sanitised static reports, from subscriber extracts.

    In a study of events that limits those of a person: the keys of the answered events of each.
    """

    class Meta:
        constraints = [models.UniqueConstraint(fields=["study", "shard"], name="answer_shard_once")]


class OptOutShard(SealedShard):
    """Pseudonyms that must not count."""

    class Meta:
        constraints = [models.UniqueConstraint(fields=["study", "shard"], name="opt_out_shard_once")]
