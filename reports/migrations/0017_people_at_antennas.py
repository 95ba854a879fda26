from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reports", "0016_plan_states")]
    operations = [
        migrations.AddField(
            model_name="area",
            name="grid_at_antennas",
            field=models.BooleanField(
                default=False, help_text="whether these are the squares of antennas, and not all land"
            ),
        ),
    ]
