"""Moves of a day that keep their full weight, of indicators that ask for one of them."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reports", "0028_sharelink_origins")]

    operations = [
        migrations.AddField(
            model_name="indicator",
            name="max_moves",
            field=models.PositiveSmallIntegerField(
                null=True,
                blank=True,
                help_text="moves: of a day, with their full weight; null = something else",
            ),
        ),
    ]
