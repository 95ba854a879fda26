"""A batch is one change to a study: a file, closed days or slots, or an undone day."""

import uuid

from django.db import models
from django.db.models import Q
from django.utils import timezone

from mobility.vault.keystore import ONE_TIME_PREFIX
from mobility.vault.models.subscribers import VaultStudy
from reports.base.reasons import ReasonField

KEY_PREFIX = ONE_TIME_PREFIX
BY_FEED = "feed "  # how the sender of a batch by a token is named; no account has a name with a space


class Batch(models.Model):
    """Always ends in done, failed or cancelled; `failure` says why and what to do."""

    class Kind(models.TextChoices):
        EXTRACT = "extract"
        SUBSCRIBERS = "subscribers"
        OPT_OUT = "opt_out"
        CLOSE_DAYS = "close_days"
        VOID_DAY = "void_day"
        CLOSE_SLOTS = "close_slots"

    class State(models.TextChoices):
        RECEIVING = "receiving"
        QUEUED = "queued"
        READING = "reading"
        MERGING = "merging"
        PUBLISHING = "publishing"
        DONE = "done"
        FAILED = "failed"
        CANCELLED = "cancelled"

    FILES = (Kind.EXTRACT, Kind.SUBSCRIBERS, Kind.OPT_OUT)
    CLOSINGS = (Kind.CLOSE_DAYS, Kind.CLOSE_SLOTS)
    FINAL = (State.DONE, State.FAILED, State.CANCELLED)
    # Until MERGING nothing of a batch is in any shard.
    CANCELLABLE = (State.RECEIVING, State.QUEUED, State.READING)
    # From MERGING on a batch only resumes: some shards may already hold it.
    RESUME_ONLY = (State.MERGING, State.PUBLISHING)

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    study = models.ForeignKey(VaultStudy, on_delete=models.CASCADE, related_name="batches")
    kind = models.CharField(max_length=12, choices=Kind, default=Kind.EXTRACT)
    state = models.CharField(max_length=12, choices=State, default=State.RECEIVING)
    created_by = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    filename = models.CharField(max_length=255, blank=True)
    profile = models.CharField(max_length=64, default="default", help_text="how the file is read")
    validate_only = models.BooleanField(default=False, help_text="everything is counted, nothing is kept")
    content_hash = models.CharField(
        max_length=64, blank=True,
        help_text="keyed: tells nothing without the study key; of what has arrived while receiving",
    )  # fmt: skip
    bytes_total = models.PositiveBigIntegerField(null=True, blank=True)
    bytes_received = models.PositiveBigIntegerField(default=0)
    bytes_read = models.PositiveBigIntegerField(default=0)
    more_to_come = models.BooleanField(default=False)
    duplicate_of = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    day = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text="close_days: through; void_day: which"
    )
    slots_through = models.PositiveIntegerField(
        null=True, blank=True, help_text="close_slots: how many slots of the study are closed after it"
    )

    source = models.JSONField(default=dict, help_text="{format, compression, delimiter, encoding} as found")
    rows_read = models.PositiveBigIntegerField(default=0)
    rows_accepted = models.PositiveBigIntegerField(default=0)
    rows_ignored = models.JSONField(default=dict, help_text="{reason: rows}")
    rows_rejected = models.JSONField(default=dict, help_text="{reason: rows}")
    rejected_lines = models.JSONField(default=dict, help_text="{reason: first line numbers}")
    notes = models.JSONField(default=dict, help_text="{conflicting_value, late_change, slot_closed: n}")
    checks = models.JSONField(default=dict, help_text="findings of mobility.batches.quality about the rows")
    days_touched = models.JSONField(default=list)
    reads_whole = models.BooleanField(default=False, help_text="one task reads the file from end to end")
    shards = models.JSONField(default=list, help_text="those that have to take the batch")
    pieces = models.PositiveSmallIntegerField(
        default=1, help_text="parts of a shard's rows that fit into memory; a power of two"
    )
    subscriber_days = models.BigIntegerField(default=0, help_text="added; negative when a day is undone")
    subscribers_new = models.BigIntegerField(default=0, help_text="added")
    reports = models.BigIntegerField(default=0, help_text="answers added")
    shards_done = models.PositiveIntegerField(default=0)
    waiting_subscribers = models.PositiveIntegerField(
        default=0, help_text="subscribers who waited for min_publication at its end; 0 once that is published"
    )
    seconds = models.FloatField(null=True, blank=True)
    peak_rss_mb = models.FloatField(null=True, blank=True)
    failure = ReasonField(blank=True)

    alive_until = models.DateTimeField(
        null=True, blank=True, help_text="a worker has it until then; after that the sweep looks"
    )
    heard_at = models.DateTimeField(
        null=True, blank=True, help_text="of an upload: when its sender last showed life"
    )
    attempts = models.PositiveSmallIntegerField(default=0, help_text="times that the sweep took it up again")
    waits_since = models.DateTimeField(null=True, blank=True, help_text="for a key or a storage")
    waits_for = ReasonField(blank=True, help_text="which one, in words")

    class Meta:
        ordering = ["-created_at"]
        indexes = [models.Index(fields=["study", "content_hash"], name="batch_by_content")]
        constraints = [
            models.CheckConstraint(
                name="batch_failure_has_reason", condition=~Q(state="failed") | ~Q(failure="")
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"

    @property
    def is_final(self) -> bool:
        return self.state in self.FINAL

    @property
    def counts_nothing(self) -> bool:
        """Return whether a file was read whole, and no row of it could be used."""
        is_read = self.state == self.State.DONE and self.kind in (self.Kind.EXTRACT, self.Kind.SUBSCRIBERS)
        return is_read and bool(self.rows_read) and not self.rows_accepted and self.duplicate_of_id is None

    @property
    def places(self) -> str:
        """Unit of the numbers of rejected rows: a Parquet file has no lines."""
        return "rows" if self.source.get("format") == "parquet" else "lines"

    @property
    def key_id(self) -> str:
        """Name of the one-time key of everything staged for this batch."""
        return f"{KEY_PREFIX}{self.id}"

    @property
    def is_of_feed(self) -> bool:
        """Return whether a program sent it by a token."""
        return self.created_by.startswith(BY_FEED)

    @property
    def is_read_blindly(self) -> bool:
        """Return whether its rows are counted without regard to the people that the vault knows.

        The sender of a feed, and anyone who only checks a file, must not learn who was there or opted out.
        """
        return self.validate_only or self.is_of_feed

    @property
    def is_alive(self) -> bool:
        """Return whether someone has worked on it lately."""
        return self.alive_until is not None and self.alive_until > timezone.now()


class Chunk(models.Model):
    """A part of the file, read by one task: its counts, and where its sealed segments lie."""

    batch = models.ForeignKey(Batch, on_delete=models.CASCADE, related_name="chunks")
    index = models.PositiveIntegerField()
    plan = models.JSONField(default=dict, help_text="mobility.readers.chunks.ChunkPlan")
    attempts = models.PositiveSmallIntegerField(default=0)
    alive_until = models.DateTimeField(
        null=True,
        blank=True,
        help_text="asked for, or worked on, until then; after that any worker may ask again",
    )
    is_done = models.BooleanField(default=False)
    counts = models.JSONField(default=dict, help_text="mobility.ingest.counts.RowCounts")
    staged = models.CharField(
        max_length=80, blank=True, help_text="how the names of its staged objects begin"
    )
    segments = models.JSONField(
        default=list, help_text="of each staged object {shard: [[offset, length] of each piece]}"
    )
    peak_rss_mb = models.FloatField(null=True, blank=True)

    class Meta:
        ordering = ["batch", "index"]
        constraints = [models.UniqueConstraint(fields=["batch", "index"], name="chunk_once")]

    def __str__(self) -> str:
        return f"{self.batch} chunk {self.index}"


class ShardRun(models.Model):
    """A shard that was asked for, and how often a task has begun it: what kills every worker must end."""

    batch = models.ForeignKey(Batch, on_delete=models.CASCADE, related_name="shard_runs")
    shard = models.PositiveIntegerField()
    attempts = models.PositiveSmallIntegerField(default=0)
    alive_until = models.DateTimeField(
        null=True,
        blank=True,
        help_text="asked for, or worked on, until then; after that any worker may ask again",
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["batch", "shard"], name="shard_run_once")]

    def __str__(self) -> str:
        return f"{self.batch} shard {self.shard}: {self.attempts}"


class Applied(models.Model):
    """Exactly once: a batch changes a shard in the transaction that writes this row."""

    batch = models.ForeignKey(Batch, on_delete=models.CASCADE, related_name="applied")
    shard = models.PositiveIntegerField()
    counts = models.JSONField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["batch", "shard"], name="applied_once")]

    def __str__(self) -> str:
        return f"{self.batch} shard {self.shard}"
