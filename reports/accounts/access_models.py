"""Sharing of reports: tokens of programs, links for people without an account, saved views.

Of a token and of a link only a digest is kept: anyone who reads the database can open nothing with it.
"""

from datetime import date

from django.conf import settings
from django.db import models
from django.utils import timezone

from reports.studies.models import Indicator, Study


class Opening(models.Model):
    """Common parts of tokens and links: a digest, an end, and a way to end it at once."""

    digest = models.CharField(max_length=64, unique=True, help_text="SHA-256 of the token")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        abstract = True
        ordering = ["-created_at", "-pk"]

    @property
    def is_valid(self) -> bool:
        """Return whether it opens anything now, if its maker may still read."""
        return self.revoked_at is None and self.expires_at > timezone.now()


class ApiToken(Opening):
    """Token for a program that reads what its owner reads: one study, or all of them."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=80)
    # Not SET_NULL: a token of a study that is deleted must not open all the others.
    study = models.ForeignKey(
        Study, null=True, blank=True, on_delete=models.CASCADE, related_name="+", help_text="empty: all"
    )
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta(Opening.Meta):
        pass

    def __str__(self) -> str:
        return f"{self.owner} token {self.name}"


class ShareLink(Opening):
    """Shows one report to anyone who has its address.

    Scenarios and forecasts of all people, presence by slot, and boards have no indicator: `query` says so,
    and `indicator` is any one of the study.
    """

    OF_ALL = "scenario=all&"  # start of the query of a scenario of all people
    OF_SLOTS = "presence=all&"  # start of the query of presence by slot
    BOARD = "board"  # parameter of the query of a board: its number
    FORECAST = "forecast"  # parameter of the query of a forecast: one of FORECASTS
    FORECASTS = SLOTS, DAYS, CATEGORY = ("slots", "days", "category")

    indicator = models.ForeignKey(Indicator, on_delete=models.CASCADE, related_name="+")
    query = models.CharField(max_length=500, help_text="the query of the report's address, after the ?")
    first_day = models.DateField()
    last_day = models.DateField()
    note = models.CharField(max_length=80, blank=True, help_text="for whom")
    password = models.CharField(max_length=128, blank=True, help_text="hashed; empty: none is asked for")
    origins = models.CharField(max_length=500, blank=True, help_text="sites that may embed it, by blanks")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="share_links"
    )

    reads = models.PositiveBigIntegerField(default=0, help_text="times that the report was shown")
    reads_recorded = models.PositiveBigIntegerField(default=0, help_text="of them, those in the ledger")

    class Meta(Opening.Meta):
        constraints = [
            models.CheckConstraint(
                name="share_link_days_ordered", condition=models.Q(first_day__lte=models.F("last_day"))
            )
        ]

    def __str__(self) -> str:
        return f"{self.created_by} shares {self.indicator}"

    @property
    def report(self) -> Indicator | None:
        """The indicator that is shown; None: all people."""
        forecasts = tuple(f"{self.FORECAST}={each}" for each in (self.SLOTS, self.DAYS))
        of_none = (self.OF_ALL, self.OF_SLOTS, f"{self.BOARD}=", *forecasts)
        return None if self.query.startswith(of_none) else self.indicator

    @property
    def is_of_slots(self) -> bool:
        """Return whether it shows presence by slot."""
        return self.query.startswith(self.OF_SLOTS)

    @property
    def is_of_forecast(self) -> bool:
        """Return whether it shows a forecast."""
        return self.query.startswith(f"{self.FORECAST}=")

    @property
    def is_of_board(self) -> bool:
        """Return whether it shows a board."""
        return self.query.startswith(f"{self.BOARD}=")

    @property
    def days(self) -> tuple[date, date]:
        """First and last day of the shared window."""
        return self.first_day, self.last_day


class ShareView(models.Model):
    """An hour in which a shared report was shown, or a wrong password. Nothing of the visitor is kept."""

    link = models.ForeignKey(ShareLink, on_delete=models.CASCADE, related_name="views")
    at = models.DateTimeField(auto_now_add=True)
    is_granted = models.BooleanField(help_text="false: the password was wrong")

    class Meta:
        ordering = ["-at", "-pk"]
        indexes = [models.Index(fields=["link", "at"], name="share_view_link_at")]

    def __str__(self) -> str:
        return f"view of {self.link_id}"


class SavedView(models.Model):
    """A report page that a person comes back to."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_views")
    name = models.CharField(max_length=80)
    address = models.CharField(max_length=1000, help_text="path and query of a page of this site")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="saved_view_name_once")]

    def __str__(self) -> str:
        return f"{self.owner} view {self.name}"
