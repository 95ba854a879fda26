from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reports", "0027_boards")]

    operations = [
        migrations.AddField(
            model_name="sharelink",
            name="origins",
            field=models.CharField(
                blank=True, help_text="sites that may embed it, by blanks", max_length=500
            ),
        ),
    ]
