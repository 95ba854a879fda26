from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("operations", "0001_initial")]
    operations = [
        migrations.AlterField(
            model_name="workersign",
            name="name",
            field=models.CharField(help_text="as Celery names it: celery@host", max_length=200),
        ),
        migrations.AddConstraint(
            model_name="workersign",
            constraint=models.UniqueConstraint(fields=("zone", "name"), name="worker_sign_once"),
        ),
    ]
