"""Limits for the joint loss of people in several studies: caps, and who decided on them.

A row is never edited: a cap that changes is another row, and a decision about it one more.
"""

from django.db import models
from django.db.models import Q


class BudgetPopulation(models.Model):
    """Name of the people of studies; its row is locked while their budget is spent or changed."""

    name = models.SlugField(primary_key=True, max_length=64)

    def __str__(self) -> str:
        return self.name


class BudgetCap(models.Model):
    """Limit of a person's joint loss in all studies of a population in a period, since some day.

    A smaller cap is in force at once; a larger one, or none, once a second person confirmed it, where the
    installation asks for one.
    """

    class Unit(models.TextChoices):
        PROFILE = "profile"
        ATTRIBUTE = "attribute"
        PRESENCE = "presence"
        SLOTS = "slots"  # counts by slot and zone, at a delta
        LOCATION = "location"  # epsilon per kilometre between two places

    class Period(models.TextChoices):
        YEAR = "year"  # of the calendar
        MONTH = "month"
        EVER = "ever"

    population = models.ForeignKey(BudgetPopulation, on_delete=models.PROTECT, related_name="caps")
    unit = models.CharField(max_length=16, choices=Unit)
    period = models.CharField(max_length=8, choices=Period)
    epsilon = models.DecimalField(
        max_digits=12, decimal_places=8, null=True, blank=True, help_text="empty: no cap"
    )
    replaces = models.ForeignKey(
        "self",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        help_text="the cap in force when this one was asked for",
    )
    needs_second = models.BooleanField(help_text="nothing changes before a second person confirms it")
    set_by = models.CharField(max_length=150)
    set_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.CheckConstraint(
                name="budget_cap_epsilon_positive", condition=Q(epsilon__isnull=True) | Q(epsilon__gt=0)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.population_id}: {self.epsilon} per {self.unit} and {self.period}"


class DeletedStudy(models.Model):
    """Spending of a deleted study: deleting it gives nothing back."""

    population = models.SlugField(max_length=64)
    slug = models.SlugField(max_length=64)
    name = models.CharField(max_length=200)
    name_fr = models.CharField(max_length=200, null=True, blank=True)  # noqa: DJ001 - as of Study
    first_day = models.DateField()
    days = models.PositiveSmallIntegerField()
    spec = models.JSONField(help_text="ldp.PlanSpec of its last plan")
    spec_hash = models.CharField(max_length=64)
    voided_days = models.PositiveSmallIntegerField()
    deleted_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.slug}, deleted on {self.deleted_at:%Y-%m-%d}"


class CapDecision(models.Model):
    """Decision of a second person on a cap that needs one; refused also by the person who asked for it."""

    cap = models.OneToOneField(BudgetCap, on_delete=models.PROTECT, related_name="decision")
    is_confirmed = models.BooleanField()
    decided_by = models.CharField(max_length=150)
    decided_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.cap}: {'confirmed' if self.is_confirmed else 'refused'}"
