"""New studies recognise files by the AES-GMAC of their frames; those that exist go on as they began."""

from django.db import migrations, models

CHOICES = [("hmac-sha256", "Hmac Sha256"), ("blake3", "Blake3"), ("gmac", "Gmac")]
HELP = "by which its files are recognised; the same for all of them, or none would be found again"


class Migration(migrations.Migration):
    dependencies = [("mobility", "0017_slots")]
    operations = [
        migrations.AlterField(
            "vaultstudy",
            "content_digest",
            models.CharField(max_length=16, choices=CHOICES, default="gmac", help_text=HELP),
        ),
    ]
