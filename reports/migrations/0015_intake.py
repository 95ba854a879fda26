import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reports", "0014_budget")]
    operations = [
        migrations.CreateModel(
            name="Sender",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.SlugField(max_length=40, unique=True)),
                (
                    "public_key",
                    models.CharField(help_text="Ed25519, 32 bytes in base64", max_length=44, unique=True),
                ),
                ("registered_at", models.DateTimeField(auto_now_add=True)),
                ("registered_by", models.CharField(max_length=150)),
                (
                    "revoked_at",
                    models.DateTimeField(
                        blank=True, help_text="since then nothing of it is taken", null=True
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("name", ""), _negated=True), name="sender_has_name"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="SentStudy",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "digest",
                    models.CharField(help_text="SHA-256 of the message that created it", max_length=64),
                ),
                (
                    "certificate",
                    models.JSONField(blank=True, help_text="of the erasure, when it was closed", null=True),
                ),
                (
                    "sender",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="studies",
                        to="reports.sender",
                    ),
                ),
                (
                    "study",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="sent", to="reports.study"
                    ),
                ),
            ],
        ),
    ]
