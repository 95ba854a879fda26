"""Results that a worker computes once on request of a page, and keeps until the tally changes."""

from datetime import timedelta
from typing import ClassVar

from django.db import models
from django.utils import timezone


class Computation(models.Model):
    """A result that follows from the tally alone: deleting one loses nothing.

    One with another fingerprint than what it would be computed from now is out of date.
    """

    class State(models.TextChoices):
        WAITING = "waiting"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"

    # Without a sign of life for so long, anyone who computed it is gone.
    PATIENCE: ClassVar[timedelta] = timedelta(minutes=15)

    fingerprint = models.CharField(max_length=64, help_text="SHA-256 of all that it is computed from")
    state = models.CharField(max_length=8, choices=State, default=State.WAITING)
    stage = models.PositiveSmallIntegerField(default=0, help_text="steps of the computation that are done")
    changed_at = models.DateTimeField(auto_now=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        abstract = True

    @property
    def is_on_its_way(self) -> bool:
        """Return whether a worker is at it, or soon will be."""
        is_asked_for = self.state in (self.State.WAITING, self.State.RUNNING)
        return is_asked_for and self.changed_at >= timezone.now() - self.PATIENCE

    def is_to_be_computed(self, fingerprint: str) -> bool:
        """Return whether it has to be asked for (again), where it should have this fingerprint."""
        if self.fingerprint != fingerprint:
            return True
        return self.state != self.State.DONE and not self.is_on_its_way
