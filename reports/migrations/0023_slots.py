import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("reports", "0022_presence_tallies"),
    ]

    operations = [
        migrations.CreateModel(
            name="StudySlots",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("spec", models.JSONField(help_text="ldp SlotSpec of the plan")),
                (
                    "hold_minutes",
                    models.PositiveSmallIntegerField(help_text="people count so long where last seen"),
                ),
                (
                    "close_after_minutes",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="slots are published so long after their end; null = on request",
                        null=True,
                    ),
                ),
                (
                    "zones",
                    models.JSONField(
                        help_text="names, in the order of the counts: of the area, then of each level"
                    ),
                ),
                (
                    "levels",
                    models.JSONField(
                        default=list,
                        help_text="of larger zones: {name, zones, within: place of the one that holds a zone}",
                    ),
                ),
                ("closed", models.PositiveIntegerField(default=0)),
                (
                    "study",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="slots", to="reports.study"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="SlotDay",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.PositiveSmallIntegerField()),
                (
                    "counts",
                    models.BinaryField(help_text="int64, little-endian, (published slots of the day, zones)"),
                ),
                (
                    "slots",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="days",
                        to="reports.studyslots",
                    ),
                ),
            ],
            options={
                "ordering": ["slots", "day"],
                "constraints": [models.UniqueConstraint(fields=("slots", "day"), name="slot_day_once")],
            },
        ),
    ]
