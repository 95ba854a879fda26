from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("reports", "0024_forecasts"),
    ]

    operations = [
        migrations.AlterField(
            model_name="budgetcap",
            name="unit",
            field=models.CharField(
                choices=[
                    ("profile", "Profile"),
                    ("attribute", "Attribute"),
                    ("presence", "Presence"),
                    ("slots", "Slots"),
                    ("location", "Location"),
                ],
                max_length=16,
            ),
        ),
    ]
