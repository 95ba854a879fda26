"""Two more roles, and grants: what an account may do, it may do in granted studies only.

Whoever could read or upload keeps that: such accounts are granted all studies.
"""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

ROLES = ["privacy_officer", "viewer"]
GRANTED = ["operator", "analyst"]  # administrators see all studies without a grant


def create_groups(apps, schema_editor):
    groups = apps.get_model("auth", "Group").objects.using(schema_editor.connection.alias)
    for name in ROLES:
        groups.get_or_create(name=name)


def grant_what_was_open(apps, schema_editor):
    alias = schema_editor.connection.alias
    grants = apps.get_model("reports", "StudyGrant").objects.using(alias)
    users = apps.get_model(settings.AUTH_USER_MODEL).objects.using(alias)
    known = users.filter(groups__name__in=GRANTED).distinct().values_list("pk", flat=True)
    grants.bulk_create([grants.model(user_id=pk, granted_by="upgrade") for pk in known])


class Migration(migrations.Migration):
    dependencies = [
        ("reports", "0011_ledger"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]
    operations = [
        migrations.CreateModel(
            name="StudyGrant",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "granted_by",
                    models.CharField(help_text="name of an account, or of a command", max_length=150),
                ),
                ("granted_at", models.DateTimeField(auto_now=True)),
                (
                    "until",
                    models.DateField(blank=True, help_text="last day, in UTC; empty: no end", null=True),
                ),
                (
                    "study",
                    models.ForeignKey(
                        blank=True,
                        help_text="empty: all, also those to come",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="grants",
                        to="reports.study",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="study_grants",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["user", "study__slug"],
                "constraints": [
                    models.UniqueConstraint(fields=("user", "study"), name="study_grant_once"),
                    models.UniqueConstraint(
                        condition=models.Q(("study", None)), fields=("user",), name="study_grant_of_all_once"
                    ),
                ],
            },
        ),
        # Going back keeps the groups: people belong to them.
        migrations.RunPython(create_groups, migrations.RunPython.noop),
        migrations.RunPython(grant_what_was_open, migrations.RunPython.noop),
    ]
