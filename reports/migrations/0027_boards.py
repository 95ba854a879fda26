import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


def key(to, related_name):
    return models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name=related_name, to=to)


def number():
    return models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")


class Migration(migrations.Migration):
    dependencies = [
        ("reports", "0026_category_groups"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Board",
            fields=[
                ("id", number()),
                ("name", models.CharField(max_length=80)),
                (
                    "is_shared",
                    models.BooleanField(default=False, help_text="with everyone who may read the study"),
                ),
                (
                    "tiles",
                    models.JSONField(
                        default=list, help_text="in their order; reports.boards.tiles reads them"
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("owner", key(settings.AUTH_USER_MODEL, "boards")),
                ("study", key("reports.study", "boards")),
            ],
            options={"ordering": ["name", "pk"]},
        ),
        migrations.CreateModel(
            name="BoardUse",
            fields=[
                ("id", number()),
                ("at", models.DateTimeField()),
                ("account", key(settings.AUTH_USER_MODEL, "+")),
                ("board", key("reports.board", "uses")),
            ],
        ),
        migrations.AddConstraint(
            model_name="board",
            constraint=models.UniqueConstraint(fields=("study", "owner", "name"), name="board_name_once"),
        ),
        migrations.AddIndex(
            model_name="boarduse",
            index=models.Index(fields=["account", "-at"], name="board_use_latest"),
        ),
        migrations.AddConstraint(
            model_name="boarduse",
            constraint=models.UniqueConstraint(fields=("board", "account"), name="board_use_once"),
        ),
    ]
