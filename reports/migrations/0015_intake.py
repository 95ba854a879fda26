from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("reports", "0014_budget")]
    operations = []
