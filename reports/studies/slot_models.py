"""Models of presence by slot of time and zone: what is counted, and what was published of each day."""

import numpy as np
from django.db import models
from numpy.typing import NDArray

from ldp.privacy.slots import SlotSpec
from reports.studies.models import Study
from reports.studies.slots import SlotClock


class StudySlots(models.Model):
    """Slots of a study that has them; `closed`: how many of its slots are published."""

    study = models.OneToOneField(Study, on_delete=models.CASCADE, related_name="slots")
    spec = models.JSONField(help_text="ldp SlotSpec of the plan")
    hold_minutes = models.PositiveSmallIntegerField(help_text="people count so long where last seen")
    close_after_minutes = models.PositiveIntegerField(
        null=True, blank=True, help_text="slots are published so long after their end; null = on request"
    )
    zones = models.JSONField(help_text="names, in the order of the counts: of the area, then of each level")
    levels = models.JSONField(
        default=list, help_text="of larger zones: {name, zones, within: place of the one that holds a zone}"
    )
    closed = models.PositiveIntegerField(default=0)

    def __str__(self) -> str:
        return f"slots of {self.study}"

    @property
    def plan(self) -> SlotSpec:
        """Counts and their noise, as the plan has them."""
        return SlotSpec.from_json(self.spec)

    @property
    def clock(self) -> SlotClock:
        """Times of all slots of the study."""
        study = self.study
        return SlotClock.of(
            study.timezone, first_day=study.first_day, days=study.days, minutes=self.spec["minutes"]
        )


class SlotDay(models.Model):
    """Published counts of the slots of one local day, with their noise; a slot is written once."""

    slots = models.ForeignKey(StudySlots, on_delete=models.CASCADE, related_name="days")
    day = models.PositiveSmallIntegerField()
    counts = models.BinaryField(help_text="int64, little-endian, (published slots of the day, zones)")

    class Meta:
        ordering = ["slots", "day"]
        constraints = [models.UniqueConstraint(fields=["slots", "day"], name="slot_day_once")]

    def __str__(self) -> str:
        return f"{self.slots} day {self.day}"

    def array(self, *, zones: int) -> NDArray[np.int64]:
        """Counts, shape (published slots of the day, zones)."""
        return np.frombuffer(self.counts, "<i8").reshape(-1, zones)
