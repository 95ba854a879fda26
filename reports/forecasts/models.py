"""Forecasts, computed by a worker and kept until newer figures are published; limits of zones."""

from django.db import models
from django.db.models import Q

from reports.base.computation import Computation
from reports.studies.models import Indicator, Study
from reports.studies.slot_models import StudySlots


class KeptForecast(Computation):
    """A forecast with its backtest; the result of earlier figures stays until the new one is there."""

    class Kind(models.TextChoices):
        SLOTS = "slots"
        DAYS = "days"

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="forecasts")
    kind = models.CharField(max_length=8, choices=Kind)
    indicator = models.ForeignKey(
        Indicator, null=True, blank=True, on_delete=models.CASCADE, help_text="of days; null = all visitors"
    )
    n_known = models.PositiveIntegerField(default=0, help_text="published slots or days that it rests on")
    computed_at = models.DateTimeField(null=True, blank=True, help_text="null = there is no result yet")
    result = models.JSONField(default=dict, help_text="reports.forecasts.computing")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["study", "kind"], condition=Q(indicator=None), name="forecast_once"
            ),
            models.UniqueConstraint(fields=["study", "kind", "indicator"], name="forecast_of_indicator_once"),
        ]

    def __str__(self) -> str:
        return f"forecast of {self.kind} of {self.study_id}"


class CrowdLimit(models.Model):
    """Limit on the people of a zone, and whether it is exceeded now or in a forecast."""

    class State(models.TextChoices):
        BELOW = "below"
        MAY_EXCEED = "may_exceed"
        EXCEEDS = "exceeds"

    slots = models.ForeignKey(StudySlots, on_delete=models.CASCADE, related_name="crowd_limits")
    zone = models.PositiveSmallIntegerField(help_text="place of the zone in the counts, from 0")
    capacity = models.PositiveIntegerField(help_text="people, as pages show them")
    ahead = models.PositiveSmallIntegerField(default=0, help_text="slots after the last published one")
    set_by = models.CharField(max_length=150, blank=True)
    state = models.CharField(max_length=10, choices=State, default=State.BELOW)
    slot = models.PositiveIntegerField(null=True, blank=True, help_text="that the state is about")
    low = models.FloatField(null=True, blank=True, help_text="end of the 95% interval; null = none")
    high = models.FloatField(null=True, blank=True)
    judged_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["slots", "zone", "ahead"]
        constraints = [
            models.UniqueConstraint(fields=["slots", "zone", "ahead"], name="crowd_limit_once"),
            models.CheckConstraint(name="crowd_limit_holds_someone", condition=Q(capacity__gte=1)),
        ]

    def __str__(self) -> str:
        return f"limit of zone {self.zone} of {self.slots}"
