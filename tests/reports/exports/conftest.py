"""A study with reported places and hexagons, and its density: computed once for all tests that read it."""

from dataclasses import replace

import pytest

from reports import tasks
from reports.estimates.queries import Window
from reports.maps import actions as densities
from reports.models import DensityMap, Study
from tests.reports import map_factory

WHOLE = Window(1, 4)
_KEPT: dict[str, dict] = {}  # by fingerprint of the density's input


def located_study(**changes) -> Study:
    return map_factory.create_located(location=replace(map_factory.LOCATION, h3_resolution=8), **changes)


def with_density(study: Study) -> Study:
    densities.ask_for_maps(study, [WHOLE])
    row = DensityMap.objects.get()
    if row.fingerprint not in _KEPT:
        tasks.compute_density(row.pk)
        names = ("state", "stage", "layers", "figures")
        _KEPT[row.fingerprint] = DensityMap.objects.values(*names).get()
    DensityMap.objects.update(**_KEPT[row.fingerprint])
    return study


@pytest.fixture
def located(db):
    return located_study()


@pytest.fixture
def computed(located):
    return with_density(located)
