"""Plans on their way to being published: what is proposed, who wrote it, who approved which exact text."""

from django.db import models
from django.db.models import Q

from reports.studies.names import in_language


class PlanDraft(models.Model):
    """A proposed plan of a new study, or of one without data; published ones stay as a record.

    `definition` is valid whenever a row is: what breaks a rule never leaves the form.
    """

    class State(models.TextChoices):
        DRAFT = "draft"
        REVIEWED = "reviewed"
        PUBLISHED = "published"
        SUPERSEDED = "superseded"
        WITHDRAWN = "withdrawn"

    OPEN = (State.DRAFT, State.REVIEWED)

    slug = models.SlugField(max_length=64, help_text="of the study")
    state = models.CharField(max_length=12, choices=State, default=State.DRAFT)
    revision = models.PositiveIntegerField(default=1, help_text="rises with every edit: compare-and-swap")
    definition = models.JSONField(help_text="reports.studyfile.StudyDefinition")
    definition_hash = models.CharField(max_length=64)
    plan_hash = models.CharField(max_length=64, help_text="of the plan at `version`")
    version = models.PositiveSmallIntegerField(help_text="of the plan that publishing makes")

    base = models.JSONField(
        null=True, blank=True, help_text="definition that it is compared with, without area; None = a new one"
    )
    base_slug = models.SlugField(max_length=64, blank=True, help_text="study of `base`")
    base_plan_hash = models.CharField(
        max_length=64, blank=True, help_text="plan that it replaces; empty = a new study"
    )

    created_by = models.CharField(max_length=150)
    created_at = models.DateTimeField(auto_now_add=True)
    edited_by = models.CharField(max_length=150)
    edited_at = models.DateTimeField()
    editors = models.JSONField(
        default=list, help_text="accounts that wrote any of it: none of them reviews it"
    )
    submitted_by = models.CharField(max_length=150, blank=True)
    submitted_at = models.DateTimeField(null=True, blank=True, help_text="waits for a review since then")
    reviewed_by = models.CharField(max_length=150, blank=True)
    reviewed_at = models.DateTimeField(null=True, blank=True)
    reviewed_hash = models.CharField(max_length=64, blank=True, help_text="definition_hash that was approved")
    remark = models.TextField(blank=True, help_text="of the reviewer who approved it, or sent it back")
    remark_by = models.CharField(max_length=150, blank=True)
    review = models.CharField(
        max_length=12, blank=True, help_text="reports.models.Plan.Review, once published"
    )
    published_by = models.CharField(max_length=150, blank=True)
    published_at = models.DateTimeField(null=True, blank=True)
    announced_at = models.DateTimeField(
        null=True, blank=True, help_text="since then analysts' rows have it too; empty after a crash between"
    )
    ended_by = models.CharField(max_length=150, blank=True, help_text="who withdrew or superseded it")
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-edited_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["slug"], condition=Q(state="published"), name="plan_draft_published_once"
            ),
            models.UniqueConstraint(
                fields=["slug"], condition=Q(state__in=["draft", "reviewed"]), name="plan_draft_open_once"
            ),
            models.CheckConstraint(
                name="plan_draft_approved_as_it_is",
                condition=Q(reviewed_at__isnull=True, reviewed_by="", reviewed_hash="")
                | Q(reviewed_at__isnull=False, reviewed_hash=models.F("definition_hash"))
                & ~Q(reviewed_by="")
                & ~Q(reviewed_by=models.F("created_by"))
                & ~Q(reviewed_by=models.F("edited_by")),
            ),
            models.CheckConstraint(
                name="plan_draft_reviewed_has_reviewer",
                condition=~Q(state="reviewed") | Q(reviewed_at__isnull=False),
            ),
            models.CheckConstraint(
                name="plan_draft_published_has_time",
                condition=Q(state__in=["draft", "reviewed", "withdrawn"], published_at__isnull=True)
                | Q(state__in=["published", "superseded"], published_at__isnull=False),
            ),
            models.CheckConstraint(
                name="plan_draft_ended_has_time",
                condition=Q(state__in=["withdrawn", "superseded"], ended_at__isnull=False)
                | Q(state__in=["draft", "reviewed", "published"], ended_at__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.slug} v{self.version} ({self.state})"

    @property
    def shown_name(self) -> str:
        """Name of the study in the active language."""
        return str(in_language(self.definition["name"], self.definition.get("name_fr")))

    @property
    def is_open(self) -> bool:
        """Return whether it can still be changed."""
        return self.state in self.OPEN

    @property
    def is_new_study(self) -> bool:
        """Return whether publishing makes a study, instead of replacing the plan of one."""
        return not self.base_plan_hash

    @property
    def is_unfinished(self) -> bool:
        """Return whether publishing was interrupted between the two databases: it can only continue."""
        return self.state == self.State.PUBLISHED and self.announced_at is None
