from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("reports", "0011_ledger")]
    operations = []
