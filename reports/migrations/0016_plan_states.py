from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps
from django.db.models import Q

# What a published plan, and a question that was asked under one, never change. What is added to a plan later
# (that it was superseded, or a day undone) is not among them.
LOCKED = {
    "reports_plan": (
        "study_id",
        "version",
        "mechanism",
        "unit",
        "epsilon",
        "epsilon_profile",
        "spec",
        "spec_hash",
        "published_at",
        "published_by",
        "review",
        "reviewed_by",
        "reviewed_at",
    ),
    "reports_planindicator": ("plan_id", "indicator_id", "epsilon"),
    "reports_indicator": ("study_id", "slug", "kind", "categories", "max_values"),
}


def lock(_: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Let the database itself refuse a change, whoever asks for it."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(
            "CREATE FUNCTION reports_is_locked() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION '%% is locked once published', TG_TABLE_NAME "
            "USING ERRCODE = 'integrity_constraint_violation'; END $$"
        )
    for table, columns in LOCKED.items():
        of = ", ".join(f'"{column}"' for column in columns)
        if schema_editor.connection.vendor == "postgresql":
            changed = " OR ".join(f'OLD."{c}" IS DISTINCT FROM NEW."{c}"' for c in columns)
            then = "EXECUTE FUNCTION reports_is_locked()"
        else:
            changed = " OR ".join(f'OLD."{c}" IS NOT NEW."{c}"' for c in columns)
            then = f"BEGIN SELECT RAISE(ABORT, '{table} is locked once published'); END"
        schema_editor.execute(
            f'CREATE TRIGGER "{table}_locked" BEFORE UPDATE OF {of} ON "{table}" '
            f"FOR EACH ROW WHEN ({changed}) {then}"
        )


def unlock(_: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Take the locks off."""
    is_postgresql = schema_editor.connection.vendor == "postgresql"
    for table in LOCKED:
        schema_editor.execute(f'DROP TRIGGER "{table}_locked"' + (f' ON "{table}"' if is_postgresql else ""))
    if is_postgresql:
        schema_editor.execute("DROP FUNCTION reports_is_locked()")


class Migration(migrations.Migration):
    dependencies = [("reports", "0015_intake")]
    operations = [
        migrations.AddField(
            model_name="plan",
            name="review",
            field=models.CharField(
                choices=[
                    ("approved", "Approved"),
                    ("lowers_only", "Lowers Only"),
                    ("switched_off", "Switched Off"),
                    ("on_server", "On Server"),
                ],
                default="on_server",
                max_length=12,
            ),
        ),
        migrations.AddField(
            model_name="plan",
            name="reviewed_by",
            field=models.CharField(blank=True, max_length=150),
        ),
        migrations.AddField(
            model_name="plan", name="reviewed_at", field=models.DateTimeField(blank=True, null=True)
        ),
        migrations.AddField(
            model_name="plan",
            name="superseded_at",
            field=models.DateTimeField(
                blank=True,
                help_text="a later version took its place before anything was counted",
                null=True,
            ),
        ),
        migrations.AddConstraint(
            model_name="plan",
            constraint=models.UniqueConstraint(
                condition=Q(superseded_at__isnull=True), fields=("study",), name="plan_in_force_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="plan",
            constraint=models.CheckConstraint(
                condition=Q(review="approved", reviewed_at__isnull=False) & ~Q(reviewed_by="")
                | ~Q(review="approved") & Q(reviewed_at__isnull=True, reviewed_by=""),
                name="plan_reviewed_by_another",
            ),
        ),
        migrations.RunPython(lock, unlock, elidable=False),
    ]
