"""Studies that were created before there were maps."""

import json
from importlib import import_module
from pathlib import Path

import pytest
from django.apps import apps
from django.db import connection

from reports.models import Area, Study
from tests.reports import report_factory as factory

migration = import_module("reports.migrations.0009_outlines_of_older_areas")
DEMO = Path(__file__).parents[3] / "mobility" / "demo"


@pytest.mark.django_db
def test_their_zones_get_outlines_and_others_are_left_alone() -> None:
    geojson = json.loads((DEMO / "zones.geojson").read_text())
    names = [feature["properties"]["zone"] for feature in geojson["features"]]
    study = factory.create()
    Area.objects.filter(study=study).delete()
    area = Area.objects.create(study=study, n_cells=62, zones=names, geojson=geojson)
    migration.draw(apps, connection.schema_editor())
    area.refresh_from_db()
    assert area.projection.startswith("+proj=laea +lat_0=47.68 +lon_0=6.88 ")
    assert [len(rings) for rings in area.outlines] == [1] * len(names)
    assert [feature["properties"] for feature in area.geojson["features"]] == [
        {"zone": name} for name in names
    ]
    Area.objects.update(outlines=[], projection="kept")
    migration.draw(apps, connection.schema_editor())
    area.refresh_from_db()
    assert (area.projection, area.outlines) == ("kept", [])
    assert Study.objects.count() == 1
