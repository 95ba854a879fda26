from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("mobility", "0008_why_stopped")]
    operations = [
        migrations.AddField(
            "batch",
            "heard_at",
            models.DateTimeField(
                blank=True, help_text="of an upload: when its sender last showed life", null=True
            ),
        ),
    ]
