from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("operations", "0002_worker_sign_once")]
    operations = [
        migrations.CreateModel(
            name="AlertWatch",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("zone", models.CharField(help_text="MOBILITY_ZONE", max_length=8, unique=True)),
                ("looked_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="AlertChannel",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("zone", models.CharField(help_text="MOBILITY_ZONE", max_length=8)),
                ("name", models.CharField(help_text="email or webhook", max_length=16)),
                (
                    "busy_until",
                    models.DateTimeField(blank=True, help_text="somebody sends by it until then", null=True),
                ),
                ("told_at", models.DateTimeField(blank=True, null=True)),
                ("failing_since", models.DateTimeField(blank=True, null=True)),
                (
                    "failures",
                    models.PositiveSmallIntegerField(default=0, help_text="since it last took something"),
                ),
                (
                    "error",
                    models.CharField(
                        blank=True, help_text="kind of the error, never its words", max_length=64
                    ),
                ),
                ("next_try_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "ordering": ["zone", "name"],
                "constraints": [models.UniqueConstraint(fields=("zone", "name"), name="alert_channel_once")],
            },
        ),
    ]
