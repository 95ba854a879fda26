"""One account for each folded name; the demo is marked by a column; what a deleted study spent stays."""

from collections import defaultdict

import django.db.models.deletion
from django.conf import settings
from django.core.management.base import CommandError
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

from reports.accounts.names import RESERVED, folded

RENAME = (
    'manage.py shell -c "from django.contrib.auth.models import User; '
    "User.objects.filter(pk=NUMBER).update(username='NEW-NAME')\""
)


def check_names(apps: StateApps, _: BaseDatabaseSchemaEditor) -> None:
    """Stop if two accounts have one name, or one has the software's: only people can say who is renamed."""
    accounts = defaultdict(list)
    for pk, name in apps.get_model("auth", "User").objects.order_by("pk").values_list("pk", "username"):
        accounts[folded(name)].append(f"{name!a} (number {pk})")
    same = [" and ".join(found) for name, found in sorted(accounts.items()) if len(found) > 1]
    taken = [found[0] for name, found in sorted(accounts.items()) if name in RESERVED and len(found) == 1]
    if same or taken:
        lines = [f"  same name: {each}" for each in same]
        lines += [f"  name of the software itself: {each}" for each in taken]
        raise CommandError(
            "accounts must differ in more than capitals, width or invisible characters, got:\n"
            + "\n".join(lines)
            + "\nNothing was changed. Publish or withdraw open drafts of these accounts, which name their authors. "
            f"Then rename all but one of each line, tell their owners, and migrate again:\n  {RENAME}"
        )


def fill(apps: StateApps, _: BaseDatabaseSchemaEditor) -> None:
    """Write the folded names, and mark the study that `manage.py demo` made, as its actor and way tell."""
    names = apps.get_model("reports", "AccountName").objects
    users = apps.get_model("auth", "User").objects.values_list("pk", "username")
    names.bulk_create([names.model(folded=folded(name), account_id=pk) for pk, name in users])
    # No account has the name "demo": check_names would have stopped. Drafts of people are not "on_server".
    by_command = apps.get_model("reports", "Plan").objects.filter(version=1, review="on_server")
    studies = apps.get_model("reports", "Study").objects.filter(slug="fimu-2017", created_by="demo")
    studies.filter(pk__in=by_command.values("study")).update(is_demo=True)


class Migration(migrations.Migration):
    dependencies = [
        ("reports", "0017_people_at_antennas"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]
    operations = [
        migrations.RunPython(check_names, migrations.RunPython.noop),
        migrations.CreateModel(
            name="DeletedStudy",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("population", models.SlugField(max_length=64)),
                ("slug", models.SlugField(max_length=64)),
                ("name", models.CharField(max_length=200)),
                ("first_day", models.DateField()),
                ("days", models.PositiveSmallIntegerField()),
                ("spec", models.JSONField(help_text="ldp.PlanSpec of its last plan")),
                ("spec_hash", models.CharField(max_length=64)),
                ("voided_days", models.PositiveSmallIntegerField()),
                ("deleted_at", models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.AddField(
            model_name="study",
            name="is_demo",
            field=models.BooleanField(
                default=False,
                help_text="made-up people, written by `manage.py demo` alone: it can be removed",
            ),
        ),
        migrations.CreateModel(
            name="AccountName",
            fields=[
                (
                    "folded",
                    models.TextField(
                        help_text="reports.names.folded of the user name", primary_key=True, serialize=False
                    ),
                ),
                (
                    "account",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="name_row",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("folded__in", ["demo", "sign-in"]), _negated=True),
                        name="account_name_not_reserved",
                    )
                ]
            },
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
