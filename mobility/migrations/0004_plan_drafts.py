from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("mobility", "0003_ingest"),
    ]

    operations = [
        migrations.CreateModel(
            name="PlanDraft",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("slug", models.SlugField(help_text="of the study", max_length=64)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("draft", "Draft"),
                            ("reviewed", "Reviewed"),
                            ("published", "Published"),
                            ("superseded", "Superseded"),
                            ("withdrawn", "Withdrawn"),
                        ],
                        default="draft",
                        max_length=12,
                    ),
                ),
                (
                    "revision",
                    models.PositiveIntegerField(
                        default=1, help_text="rises with every edit: compare-and-swap"
                    ),
                ),
                ("definition", models.JSONField(help_text="reports.studyfile.StudyDefinition")),
                ("definition_hash", models.CharField(max_length=64)),
                ("plan_hash", models.CharField(help_text="of the plan at `version`", max_length=64)),
                ("version", models.PositiveSmallIntegerField(help_text="of the plan that publishing makes")),
                (
                    "base",
                    models.JSONField(
                        blank=True,
                        help_text="definition that it is compared with, without area; None = a new one",
                        null=True,
                    ),
                ),
                ("base_slug", models.SlugField(blank=True, help_text="study of `base`", max_length=64)),
                (
                    "base_plan_hash",
                    models.CharField(
                        blank=True, help_text="plan that it replaces; empty = a new study", max_length=64
                    ),
                ),
                ("created_by", models.CharField(max_length=150)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("edited_by", models.CharField(max_length=150)),
                ("edited_at", models.DateTimeField()),
                (
                    "editors",
                    models.JSONField(
                        default=list, help_text="accounts that wrote any of it: none of them reviews it"
                    ),
                ),
                ("submitted_by", models.CharField(blank=True, max_length=150)),
                (
                    "submitted_at",
                    models.DateTimeField(blank=True, help_text="waits for a review since then", null=True),
                ),
                ("reviewed_by", models.CharField(blank=True, max_length=150)),
                ("reviewed_at", models.DateTimeField(blank=True, null=True)),
                (
                    "reviewed_hash",
                    models.CharField(
                        blank=True, help_text="definition_hash that was approved", max_length=64
                    ),
                ),
                ("remark", models.TextField(blank=True, help_text="of whoever approved it, or sent it back")),
                ("remark_by", models.CharField(blank=True, max_length=150)),
                (
                    "review",
                    models.CharField(
                        blank=True, help_text="reports.models.Plan.Review, once published", max_length=12
                    ),
                ),
                ("published_by", models.CharField(blank=True, max_length=150)),
                ("published_at", models.DateTimeField(blank=True, null=True)),
                (
                    "announced_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="since then analysts' rows have it too; empty after a crash between",
                        null=True,
                    ),
                ),
                (
                    "ended_by",
                    models.CharField(blank=True, help_text="who withdrew or superseded it", max_length=150),
                ),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "ordering": ["-edited_at"],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("state", "published")),
                        fields=("slug",),
                        name="plan_draft_published_once",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("state__in", ["draft", "reviewed"])),
                        fields=("slug",),
                        name="plan_draft_open_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("reviewed_at__isnull", True), ("reviewed_by", ""), ("reviewed_hash", "")
                            ),
                            models.Q(
                                ("reviewed_at__isnull", False),
                                ("reviewed_hash", models.F("definition_hash")),
                                models.Q(("reviewed_by", ""), _negated=True),
                                models.Q(("reviewed_by", models.F("created_by")), _negated=True),
                                models.Q(("reviewed_by", models.F("edited_by")), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="plan_draft_approved_as_it_is",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "reviewed"), _negated=True),
                            ("reviewed_at__isnull", False),
                            _connector="OR",
                        ),
                        name="plan_draft_reviewed_has_reviewer",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("published_at__isnull", True),
                                ("state__in", ["draft", "reviewed", "withdrawn"]),
                            ),
                            models.Q(
                                ("published_at__isnull", False), ("state__in", ["published", "superseded"])
                            ),
                            _connector="OR",
                        ),
                        name="plan_draft_published_has_time",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("ended_at__isnull", False), ("state__in", ["withdrawn", "superseded"])),
                            models.Q(
                                ("ended_at__isnull", True), ("state__in", ["draft", "reviewed", "published"])
                            ),
                            _connector="OR",
                        ),
                        name="plan_draft_ended_has_time",
                    ),
                ],
                "indexes": [],
            },
        ),
    ]
