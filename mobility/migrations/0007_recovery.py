from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("mobility", "0006_scale")]
    operations = [
        migrations.AddField(
            model_name="vaultstudy",
            name="stopped",
            field=models.CharField(
                blank=True,
                default="",
                help_text="why nothing can be added since a restore; empty: it can",
                max_length=500,
            ),
            preserve_default=False,
        ),
    ]
