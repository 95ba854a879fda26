"""Notes of people on a day."""

from datetime import date

from django.db import models
from django.db.models import Q

from reports.studies.models import Study


class DayNote(models.Model):
    """A word on one day of a study: an outage of the source, or an event that explains its visitors."""

    class Kind(models.TextChoices):
        OUTAGE = "outage"
        EVENT = "event"

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="day_notes")
    day = models.PositiveSmallIntegerField(help_text="number of the study day, from 1")
    kind = models.CharField(max_length=8, choices=Kind)
    text = models.CharField(max_length=200)
    by = models.CharField(max_length=150)
    at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["study", "day", "kind"]
        constraints = [
            models.UniqueConstraint(fields=["study", "day", "kind"], name="day_note_once"),
            models.CheckConstraint(name="day_note_day", condition=Q(day__gte=1) & Q(day__lte=62)),
            models.CheckConstraint(name="day_note_kind", condition=Q(kind__in=["outage", "event"])),
        ]

    def __str__(self) -> str:
        return f"{self.kind} on day {self.day} of {self.study}"

    @property
    def calendar_day(self) -> date:
        """Calendar date of the day."""
        return self.study.date_of(self.day)
