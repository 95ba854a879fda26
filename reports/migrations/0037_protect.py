from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("reports", "0036_classes"),
    ]

    operations = [
        migrations.AddField(
            model_name="indicator",
            name="protect",
            field=models.CharField(
                blank=True,
                help_text="in_groups: answers tell the group; null = nothing",
                max_length=16,
                null=True,
            ),
        ),
    ]
