"""Models of protection: an immutable, versioned plan with an epsilon for each indicator."""

from django.db import models
from django.db.models import Q
from django.utils.functional import cached_property

from ldp import PlanSpec
from reports.studies.models import Indicator, Study


class Plan(models.Model):
    """A published plan is never changed: its reports must stay explainable."""

    class Unit(models.TextChoices):
        PROFILE = "profile"
        ATTRIBUTE = "attribute"

    class Review(models.TextChoices):
        """Approval by a second person, or why none was needed."""

        APPROVED = "approved"
        LOWERS_ONLY = "lowers_only"
        SWITCHED_OFF = "switched_off"
        ON_SERVER = "on_server"  # made by a command: anyone who has a shell there is trusted

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="plans")
    version = models.PositiveSmallIntegerField()
    mechanism = models.CharField(max_length=16)
    unit = models.CharField(max_length=16, choices=Unit)
    epsilon = models.DecimalField(max_digits=12, decimal_places=8)
    epsilon_profile = models.DecimalField(max_digits=12, decimal_places=8, null=True, blank=True)
    spec = models.JSONField(help_text="ldp.PlanSpec, exactly what the vault sanitises by")
    spec_hash = models.CharField(max_length=64)
    voided_days = models.PositiveSmallIntegerField(
        default=0, help_text="published days that were undone: each may add one value per subscriber"
    )
    published_at = models.DateTimeField(auto_now_add=True)
    published_by = models.CharField(max_length=150, blank=True)
    review = models.CharField(max_length=12, choices=Review, default=Review.ON_SERVER)
    reviewed_by = models.CharField(max_length=150, blank=True)
    reviewed_at = models.DateTimeField(null=True, blank=True)
    superseded_at = models.DateTimeField(
        null=True, blank=True, help_text="a later version took its place before anything was counted"
    )

    class Meta:
        ordering = ["study", "version"]
        constraints = [
            models.UniqueConstraint(
                fields=["study"], condition=Q(superseded_at__isnull=True), name="plan_in_force_once"
            ),
            models.CheckConstraint(
                name="plan_reviewed_by_another",
                condition=Q(review="approved", reviewed_at__isnull=False) & ~Q(reviewed_by="")
                | ~Q(review="approved") & Q(reviewed_at__isnull=True, reviewed_by=""),
            ),
            models.UniqueConstraint(fields=["study", "version"], name="plan_version_once"),
            models.CheckConstraint(name="plan_epsilon_positive", condition=Q(epsilon__gt=0)),
        ]

    def __str__(self) -> str:
        return f"{self.study} v{self.version}"

    @cached_property
    def parsed(self) -> PlanSpec:
        """The plan as the library reads it."""
        return PlanSpec.from_json(self.spec)


class PlanIndicator(models.Model):
    """Typed settings of one indicator in a plan."""

    plan = models.ForeignKey(Plan, on_delete=models.CASCADE, related_name="indicators")
    indicator = models.ForeignKey(Indicator, on_delete=models.PROTECT, related_name="+")
    epsilon = models.DecimalField(max_digits=12, decimal_places=8, null=True, blank=True)

    class Meta:
        ordering = ["plan", "indicator__position"]
        constraints = [
            models.UniqueConstraint(fields=["plan", "indicator"], name="plan_indicator_once"),
            models.CheckConstraint(
                name="plan_indicator_epsilon_positive",
                condition=Q(epsilon__isnull=True) | Q(epsilon__gt=0),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.plan}: {self.indicator}"
