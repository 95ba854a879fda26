"""Why a study is stopped becomes a code: told by its words, a release that edits them would let it go on."""

from typing import Any

from django.db import migrations, models

AHEAD = "the study is stopped, so that nobody is counted twice"
CLOSED = "says that it was closed"
# As the release before compares it, word by word.
PRESENCE = (
    "the study is stopped: it has presence noise and days that are open in the backup. If one of them was "
    "closed since, closing it again would publish it with the same noise and other counts, and the "
    "difference would show who opted out. End the study with close_study --after-restore; or, if no day of "
    "it was closed since the backup, restore again with --no-day-closed-since"
)


def code_of(words: str) -> str:
    """What the words say; of words that nobody knows, what only people can end."""
    if words.startswith(AHEAD):
        return "ahead"
    return "closed" if CLOSED in words else "presence"


def to_codes(apps: Any, schema_editor: Any) -> None:
    _replace(apps, schema_editor, code_of)


def to_words(apps: Any, schema_editor: Any) -> None:
    words = {"ahead": AHEAD, "closed": f"the study is stopped: the main database {CLOSED}"}
    _replace(apps, schema_editor, lambda code: words.get(code, PRESENCE))


def _replace(apps: Any, schema_editor: Any, change: Any) -> None:
    studies = apps.get_model("mobility", "VaultStudy").objects.using(schema_editor.connection.alias)
    for study in studies.exclude(stopped=""):
        studies.filter(pk=study.pk).update(stopped=change(study.stopped))


class Migration(migrations.Migration):
    dependencies = [("mobility", "0007_recovery")]
    operations = [
        migrations.RunPython(to_codes, to_words),
        migrations.AlterField(
            "vaultstudy",
            "stopped",
            models.CharField(
                blank=True,
                choices=[("presence", "Presence"), ("ahead", "Ahead"), ("closed", "Closed")],
                help_text="why nothing can be added since a restore; empty: it can",
                max_length=16,
            ),
        ),
    ]
