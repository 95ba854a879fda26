from django.db import migrations, models

TABLE = "reports_ledgerentry"
REFUSAL = "the ledger is append-only"
# A later migration that changes a column makes SQLite write the table anew: it must make these again.
SQLITE = [
    f"CREATE TRIGGER ledger_no_update BEFORE UPDATE ON {TABLE} BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END",
    f"CREATE TRIGGER ledger_no_delete BEFORE DELETE ON {TABLE} BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END",
    # INSERT OR REPLACE removes rows without a trigger of DELETE: an entry may only come at the end, and once.
    f"""CREATE TRIGGER ledger_at_the_end BEFORE INSERT ON {TABLE}
        WHEN NEW.number <> (SELECT COALESCE(MAX(number), 0) + 1 FROM {TABLE})
          OR (NEW.event_id <> '' AND EXISTS (SELECT 1 FROM {TABLE} WHERE event_id = NEW.event_id))
        BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END""",  # noqa: S608 - nothing comes from outside
]
SQLITE_BACK = [
    f"DROP TRIGGER {name}" for name in ("ledger_no_update", "ledger_no_delete", "ledger_at_the_end")
]
POSTGRESQL = [
    f"""CREATE FUNCTION ledger_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION '{REFUSAL}'; END $$""",
    f"""CREATE FUNCTION ledger_at_the_end() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          IF NEW.number <> (SELECT COALESCE(MAX(number), 0) + 1 FROM {TABLE}) THEN
            RAISE EXCEPTION '{REFUSAL}';
          END IF;
          RETURN NEW;
        END $$""",  # noqa: S608
    f"CREATE TRIGGER ledger_no_change BEFORE UPDATE OR DELETE ON {TABLE} FOR EACH ROW EXECUTE FUNCTION ledger_refuse()",
    f"CREATE TRIGGER ledger_no_truncate BEFORE TRUNCATE ON {TABLE} FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse()",
    f"CREATE TRIGGER ledger_at_the_end BEFORE INSERT ON {TABLE} FOR EACH ROW EXECUTE FUNCTION ledger_at_the_end()",
]
POSTGRESQL_BACK = [
    *(
        f"DROP TRIGGER {name} ON {TABLE}"
        for name in ("ledger_no_change", "ledger_no_truncate", "ledger_at_the_end")
    ),
    "DROP FUNCTION ledger_refuse()",
    "DROP FUNCTION ledger_at_the_end()",
]


def protect(_, schema_editor):
    for statement in {"sqlite": SQLITE, "postgresql": POSTGRESQL}[schema_editor.connection.vendor]:
        schema_editor.execute(statement, params=None)


def release(_, schema_editor):
    for statement in {"sqlite": SQLITE_BACK, "postgresql": POSTGRESQL_BACK}[schema_editor.connection.vendor]:
        schema_editor.execute(statement, params=None)


class Migration(migrations.Migration):
    dependencies = [("reports", "0010_area_hexagons")]

    operations = [
        migrations.CreateModel(
            name="LedgerEntry",
            fields=[
                (
                    "number",
                    models.PositiveBigIntegerField(
                        help_text="from 1, without gaps", primary_key=True, serialize=False
                    ),
                ),
                ("at", models.DateTimeField()),
                ("kind", models.CharField(max_length=32)),
                (
                    "actor",
                    models.CharField(
                        blank=True, help_text="name of an account, or what acted", max_length=150
                    ),
                ),
                ("study", models.CharField(blank=True, max_length=64)),
                ("facts", models.JSONField(default=dict)),
                (
                    "event_id",
                    models.CharField(
                        blank=True, help_text="of what may be recorded only once", max_length=120
                    ),
                ),
                ("salt", models.CharField(max_length=32)),
                ("previous_hash", models.CharField(max_length=64)),
                ("hash", models.CharField(max_length=64)),
            ],
            options={
                "ordering": ["-number"],
                "indexes": [
                    models.Index(fields=["study", "-number"], name="ledger_by_study"),
                    models.Index(fields=["kind", "-number"], name="ledger_by_kind"),
                    models.Index(fields=["actor", "-number"], name="ledger_by_actor"),
                    models.Index(fields=["at"], name="ledger_by_time"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("event_id", ""), _negated=True),
                        fields=("event_id",),
                        name="ledger_event_once",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="LedgerHead",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveBigIntegerField(default=0)),
                ("hash", models.CharField(blank=True, max_length=64)),
                ("at", models.DateTimeField(blank=True, null=True)),
                ("public_key", models.CharField(blank=True, max_length=64)),
                ("signature", models.CharField(blank=True, max_length=128)),
                ("checked_at", models.DateTimeField(blank=True, null=True)),
                ("checked_number", models.PositiveBigIntegerField(default=0)),
                (
                    "problem",
                    models.JSONField(blank=True, help_text="what the last check found", null=True),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("id", 1)), name="ledger_head_is_one")
                ],
            },
        ),
        migrations.RunPython(protect, release),
    ]
