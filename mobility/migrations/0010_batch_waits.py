from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("mobility", "0009_upload_heard_at")]
    operations = [
        migrations.AddField(
            "batch",
            "waits_since",
            models.DateTimeField(blank=True, help_text="for a key or a storage", null=True),
        ),
        migrations.AddField(
            "batch",
            "waits_for",
            models.CharField(blank=True, default="", help_text="which one, in words", max_length=200),
            preserve_default=False,
        ),
    ]
