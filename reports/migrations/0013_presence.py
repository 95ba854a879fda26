from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reports", "0012_grants")]
    operations = [
        migrations.AddField(
            model_name="study",
            name="presence",
            field=models.JSONField(
                null=True,
                blank=True,
                help_text="ldp.PresenceSpec of the plan: totals are noisy; null = they are exact",
            ),
        ),
        migrations.AddField(
            model_name="study",
            name="noisy_through",
            field=models.PositiveSmallIntegerField(
                default=0, help_text="with presence noise: the last day whose totals are here"
            ),
        ),
    ]
