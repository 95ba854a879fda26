"""Studies of earlier releases go on with the content hash under which their files were taken in."""

from django.db import migrations, models

CHOICES = [("hmac-sha256", "Hmac Sha256"), ("blake3", "Blake3")]
HELP = "by which its files are recognised; the same for all of them, or none would be found again"


class Migration(migrations.Migration):
    dependencies = [("mobility", "0014_undone_before")]
    operations = [
        migrations.AddField(
            "vaultstudy",
            "content_digest",
            models.CharField(max_length=16, choices=CHOICES, default="hmac-sha256", help_text=HELP),
        ),
        migrations.AlterField(
            "vaultstudy",
            "content_digest",
            models.CharField(max_length=16, choices=CHOICES, default="blake3", help_text=HELP),
        ),
    ]
