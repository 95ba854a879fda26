from django.db import migrations, models

ALIVE_UNTIL = models.DateTimeField(
    null=True, blank=True, help_text="asked for, or worked on, until then; after it anybody may ask again"
)


class Migration(migrations.Migration):
    dependencies = [("mobility", "0005_handover")]
    operations = [
        migrations.AddField("chunk", "alive_until", ALIVE_UNTIL),
        migrations.AddField("shardrun", "alive_until", ALIVE_UNTIL),
    ]
