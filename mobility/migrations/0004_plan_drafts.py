from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("mobility", "0003_ingest")]
    operations = []
