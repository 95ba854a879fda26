"""Caps on what the studies of the same people reveal together; when the key of a study is to be destroyed."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reports", "0013_presence")]
    operations = [
        migrations.AddField(
            model_name="study",
            name="population",
            field=models.SlugField(
                default="subscribers",
                help_text="the people: what studies of the same population reveal of a person adds up",
                max_length=64,
            ),
        ),
        migrations.AddField(
            model_name="study",
            name="key_until",
            field=models.DateField(
                blank=True,
                help_text="day by which the study is to be closed and its key destroyed",
                null=True,
            ),
        ),
        migrations.CreateModel(
            name="BudgetPopulation",
            fields=[("name", models.SlugField(max_length=64, primary_key=True, serialize=False))],
        ),
        migrations.CreateModel(
            name="BudgetCap",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "unit",
                    models.CharField(
                        choices=[
                            ("profile", "Profile"),
                            ("attribute", "Attribute"),
                            ("presence", "Presence"),
                            ("location", "Location"),
                        ],
                        max_length=16,
                    ),
                ),
                (
                    "period",
                    models.CharField(
                        choices=[("year", "Year"), ("month", "Month"), ("ever", "Ever")], max_length=8
                    ),
                ),
                (
                    "epsilon",
                    models.DecimalField(
                        blank=True, decimal_places=8, help_text="empty: no cap", max_digits=12, null=True
                    ),
                ),
                (
                    "needs_second",
                    models.BooleanField(help_text="nothing changes before a second person confirms it"),
                ),
                ("set_by", models.CharField(max_length=150)),
                ("set_at", models.DateTimeField(auto_now_add=True)),
                (
                    "population",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="caps",
                        to="reports.budgetpopulation",
                    ),
                ),
                (
                    "replaces",
                    models.ForeignKey(
                        blank=True,
                        help_text="the cap in force when this one was asked for",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="reports.budgetcap",
                    ),
                ),
            ],
            options={"ordering": ["pk"]},
        ),
        migrations.CreateModel(
            name="CapDecision",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("is_confirmed", models.BooleanField()),
                ("decided_by", models.CharField(max_length=150)),
                ("decided_at", models.DateTimeField(auto_now_add=True)),
                (
                    "cap",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="decision",
                        to="reports.budgetcap",
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="budgetcap",
            constraint=models.CheckConstraint(
                condition=models.Q(("epsilon__isnull", True), ("epsilon__gt", 0), _connector="OR"),
                name="budget_cap_epsilon_positive",
            ),
        ),
    ]
