from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("reports", "0033_digest_retries"),
    ]

    operations = [
        migrations.AddField(
            model_name="study",
            name="category_shares",
            field=models.JSONField(
                blank=True,
                help_text="list of market shares by category; null = none",
                null=True,
            ),
        ),
    ]
