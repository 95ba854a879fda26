"""Grants: the studies in which an account may use its roles, and until when."""

from datetime import UTC, date, datetime

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from reports.studies.models import Study


class StudyGrant(models.Model):
    """Opens one study, or all of them, to an account; what it may do there its roles say."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="study_grants")
    # Not SET_NULL: a grant for a study that is deleted must not open all the others.
    study = models.ForeignKey(
        Study,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="grants",
        help_text="empty: all, also those to come",
    )
    granted_by = models.CharField(max_length=150, help_text="name of an account, or of a command")
    granted_at = models.DateTimeField(auto_now=True)
    until = models.DateField(null=True, blank=True, help_text="last day, in UTC; empty: no end")

    class Meta:
        ordering = ["user", "study__slug"]
        constraints = [
            models.UniqueConstraint(fields=["user", "study"], name="study_grant_once"),
            models.UniqueConstraint(fields=["user"], condition=Q(study=None), name="study_grant_of_all_once"),
        ]

    def __str__(self) -> str:
        return f"{self.user} in {self.study or 'all studies'}"

    @property
    def is_in_force(self) -> bool:
        """Return whether it opens anything now."""
        return self.until is None or self.until >= today()


def today() -> date:
    """The day that decides about grants, in UTC: one account may read studies of several time zones."""
    return timezone.now().astimezone(UTC).date()


def last_moment(until: date) -> datetime:
    """Return the end of a grant with this last day."""
    return datetime.combine(until, datetime.max.time(), tzinfo=UTC)
