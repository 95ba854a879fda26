from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reports", "0021_french_names")]

    operations = [
        migrations.AddField(
            model_name="visitortally",
            name="stays",
            field=models.BinaryField(default=b""),
        ),
    ]
