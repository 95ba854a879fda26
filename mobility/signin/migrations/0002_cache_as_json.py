from django.db import migrations, models


class Migration(migrations.Migration):
    """Counts of guesses from before are forgotten: they were pickles, which nothing reads any more."""

    dependencies = [("signin", "0001_cache")]
    operations = [
        migrations.RunSQL("DELETE FROM signin_cache", migrations.RunSQL.noop),
        migrations.AlterField("cacheentry", "value", models.JSONField()),
    ]
