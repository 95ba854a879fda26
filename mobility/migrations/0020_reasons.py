"""Stored reasons keep their template and values, for the language of their reader; earlier texts stay."""

from django.db import migrations

from reports.base.reasons import ReasonField

WHICH, LAST = "which one, in words", "why the last try failed; empty: it did not"


class Migration(migrations.Migration):
    dependencies = [("mobility", "0019_table_requests")]
    operations = [
        migrations.AlterField("batch", "failure", ReasonField(blank=True)),
        migrations.AlterField("batch", "waits_for", ReasonField(blank=True, help_text=WHICH)),
        migrations.AlterField("handover", "problem", ReasonField(blank=True, help_text=LAST)),
    ]
