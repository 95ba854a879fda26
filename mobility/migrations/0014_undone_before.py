"""Which publications have shown a day that was undone later: the next ones are compared with them."""

from typing import Any

from django.db import migrations, models
from django.db.models import F


def compare_with_all(apps: Any, schema_editor: Any) -> None:
    """Let studies whose days were undone by an earlier release compare with all that they have published."""
    alias = schema_editor.connection.alias
    undone = apps.get_model("mobility", "Batch").objects.using(alias).filter(kind="void_day")
    studies = apps.get_model("mobility", "VaultStudy").objects.using(alias)
    studies.filter(pk__in=undone.values("study")).update(undone_before=F("publication_number"))


class Migration(migrations.Migration):
    dependencies = [("mobility", "0013_day_undo")]
    operations = [
        migrations.AddField(
            "vaultstudy",
            "undone_before",
            models.PositiveIntegerField(
                default=0,
                help_text="number of the next publication when a published day was last undone; 0: none was",
            ),
        ),
        migrations.RunPython(compare_with_all, migrations.RunPython.noop),
    ]
