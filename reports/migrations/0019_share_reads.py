from django.db import migrations, models
from django.db.models import Count, Q


def fill(apps, schema_editor):
    """Count the readings that the log still has: each of them is in the ledger."""
    links = apps.get_model("reports", "ShareLink").objects.using(schema_editor.connection.alias)
    for link in links.annotate(n=Count("views", filter=Q(views__is_granted=True))).filter(n__gt=0):
        links.filter(pk=link.pk).update(reads=link.n, reads_recorded=link.n)


class Migration(migrations.Migration):
    dependencies = [("reports", "0018_names_and_demo")]

    operations = [
        migrations.AddField(
            model_name="sharelink",
            name="reads",
            field=models.PositiveBigIntegerField(default=0, help_text="times that the report was shown"),
        ),
        migrations.AddField(
            model_name="sharelink",
            name="reads_recorded",
            field=models.PositiveBigIntegerField(default=0, help_text="of them, those in the ledger"),
        ),
        migrations.AddField(
            model_name="accountname",
            name="ended_at",
            field=models.DateTimeField(
                blank=True,
                help_text="when it was last deactivated: what it was given before has ended",
                null=True,
            ),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
