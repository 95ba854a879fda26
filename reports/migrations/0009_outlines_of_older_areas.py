"""Zones of studies from before maps get what maps are drawn from; their shapes were never simplified."""

from django.db import migrations

from reports.studies.studyfile import AreaDefinition


def draw(apps, schema_editor):
    areas = apps.get_model("reports", "Area").objects.using(schema_editor.connection.alias)
    older = areas.filter(projection="", geojson__isnull=False)
    if not older.exists():
        return  # a new installation: loads no library of geography

    from reports.studies.geography import display  # noqa: PLC0415 - GeoPandas: 1 s

    for area in older.iterator():
        definition = AreaDefinition(cells=(), zones=tuple(area.zones), geojson=area.geojson)
        area.projection = display.projection_of(definition).text
        area.geojson, area.outlines = display.shown_zones(definition)
        area.save(update_fields=["projection", "geojson", "outlines"])


class Migration(migrations.Migration):
    dependencies = [("reports", "0008_density_maps")]
    operations = [migrations.RunPython(draw, migrations.RunPython.noop)]
