from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("reports", "0013_presence")]
    operations = []
