import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("mobility", "0004_plan_drafts")]
    operations = [
        migrations.AddField(
            model_name="vaultpublication",
            name="handed_over_at",
            field=models.DateTimeField(
                blank=True,
                help_text="when an analyst server that runs apart took it; empty: not yet",
                null=True,
            ),
        ),
        migrations.CreateModel(
            name="Handover",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "plan_hash",
                    models.CharField(blank=True, help_text="of the plan that the server has", max_length=64),
                ),
                (
                    "is_closed",
                    models.BooleanField(default=False, help_text="the server knows that the study is closed"),
                ),
                ("tried_at", models.DateTimeField(blank=True, null=True)),
                (
                    "problem",
                    models.CharField(
                        blank=True, help_text="why the last try failed; empty: it did not", max_length=500
                    ),
                ),
                (
                    "study",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="handover",
                        to="mobility.vaultstudy",
                    ),
                ),
            ],
        ),
    ]
