"""Data from the operator zone: totals of sanitised answers, and no history of them.

Tallies are int64 little endian in C order; the shapes are those of `ldp.estimation.tallies`.
"""

from django.db import models

from reports.studies.models import Indicator, Study
from reports.studies.plan_models import Plan


class Publication(models.Model):
    """A delta that was added to the totals; it can be sent again without harm."""

    publication_id = models.UUIDField(unique=True)
    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="publications")
    received_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return str(self.publication_id)


class VisitorTally(models.Model):
    """All visitors of a study by (previous present day, day), exact; `stays`: the plan's further tallies."""

    study = models.OneToOneField(Study, on_delete=models.CASCADE, related_name="visitor_tally")
    counts = models.BinaryField()
    stays = models.BinaryField(default=b"")

    def __str__(self) -> str:
        return f"visitors of {self.study}"


class Tally(models.Model):
    """Answers to one indicator under one plan by (category, previous present day, day)."""

    plan = models.ForeignKey(Plan, on_delete=models.CASCADE, related_name="tallies")
    indicator = models.ForeignKey(Indicator, on_delete=models.CASCADE, related_name="tallies")
    counts = models.BinaryField()
    n_reports = models.BinaryField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["plan", "indicator"], name="tally_once")]

    def __str__(self) -> str:
        return f"{self.plan}: {self.indicator}"
