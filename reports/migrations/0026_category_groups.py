"""Groups of categories that reports add up."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reports", "0025_budget_of_slots")]

    operations = [
        migrations.AddField(
            model_name="indicator",
            name="groups",
            field=models.JSONField(
                null=True,
                blank=True,
                help_text="names of categories that reports add up, by name of their group",
            ),
        ),
    ]
