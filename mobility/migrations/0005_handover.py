from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("mobility", "0004_plan_drafts")]
    operations = []
