from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("reports", "0010_area_hexagons")]
    operations = []
