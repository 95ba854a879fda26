"""The three roles are groups: an installation has them before it has people."""

from django.db import migrations

ROLES = ["operator", "analyst", "administrator"]


def create_groups(apps, schema_editor):
    groups = apps.get_model("auth", "Group").objects.using(schema_editor.connection.alias)
    for name in ROLES:
        groups.get_or_create(name=name)


class Migration(migrations.Migration):
    dependencies = [
        ("reports", "0001_initial"),
        ("auth", "0012_alter_user_first_name_max_length"),
    ]

    # Going back keeps the groups: people belong to them.
    operations = [migrations.RunPython(create_groups, migrations.RunPython.noop)]
