from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("operations", "0004_alert_delivery")]
    operations = [
        migrations.CreateModel(
            name="Installation",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "code",
                    models.CharField(
                        help_text="random, hexadecimal; made with the first backup", max_length=32
                    ),
                ),
            ],
        ),
    ]
