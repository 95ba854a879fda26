import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("reports", "0034_category_shares"),
    ]

    operations = [
        migrations.AddField(
            model_name="study",
            name="units",
            field=models.CharField(
                choices=[("visitors", "Visitors"), ("events", "Events")],
                default="visitors",
                help_text="what is counted",
                max_length=8,
            ),
        ),
        migrations.AlterField(
            model_name="study",
            name="days",
            field=models.PositiveSmallIntegerField(
                validators=[
                    django.core.validators.MinValueValidator(1),
                    django.core.validators.MaxValueValidator(7320),
                ]
            ),
        ),
        migrations.RemoveConstraint(model_name="study", name="study_days"),
        migrations.AddConstraint(
            model_name="study",
            constraint=models.CheckConstraint(
                condition=models.Q(("days__gte", 1), ("days__lte", 62))
                | models.Q(("days__gte", 1), ("days__lte", 7320), ("units", "events")),
                name="study_days",
            ),
        ),
    ]
