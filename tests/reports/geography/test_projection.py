"""Degrees to metres: against the ellipsoid's own distances, and the bound that is stated."""

import numpy as np
import pytest
from pyproj import Geod

from reports.geography.areas import projection_of
from reports.geography.projection import LocalProjection, distance_error, projection_around
from tests.reports.geography.places import parse

WGS84 = Geod(ellps="WGS84")


def test_an_area_has_its_projection_around_the_middle_of_cells_and_zones() -> None:
    area = parse("", {}).area
    assert area.projection == "+proj=laea +lat_0=47.65 +lon_0=7.18 +datum=WGS84 +units=m +no_defs"
    assert projection_of(area).text == area.projection


def test_a_study_from_before_has_the_projection_that_it_would_get_now() -> None:
    from dataclasses import replace

    area = parse("", {}).area
    assert projection_of(replace(area, projection=None)).text == area.projection


@pytest.mark.parametrize("latitude", [0.0, 20.0, 35.0, 47.65, 60.0, -80.0])
@pytest.mark.parametrize("radius_m", [2_000, 20_000, 150_000, 500_000])
def test_short_distances_are_right_within_the_stated_bound(latitude: float, radius_m: int) -> None:
    projection = LocalProjection(projection_around(np.array([6.85]), np.array([latitude])))
    lon_0, lat_0 = (float(each) for each in projection.to_degrees(0.0, 0.0))
    bearings = np.arange(0, 360, 15.0)
    n = len(bearings)
    lon, lat, _ = WGS84.fwd(np.full(n, lon_0), np.full(n, lat_0), bearings, np.full(n, radius_m))
    worst = 0.0
    for towards in (0.0, 45.0, 90.0):
        there = WGS84.fwd(lon, lat, bearings + towards, np.full(n, 1000.0))
        x, y = projection.to_metres(lon, lat)
        to_x, to_y = projection.to_metres(there[0], there[1])
        worst = max(worst, float(np.abs(np.hypot(to_x - x, to_y - y) / 1000 - 1).max()))
    assert worst <= distance_error(radius_m + 1000)
    if latitude == 47.65:
        assert worst >= distance_error(radius_m) / 2  # the bound says something


def test_areas_are_exact() -> None:
    projection = LocalProjection(projection_around(np.array([6.85]), np.array([47.65])))
    lon = np.concatenate(
        [np.linspace(9, 10, 100), np.full(100, 10.0), np.linspace(10, 9, 100), np.full(100, 9.0)]
    )
    lat = np.concatenate(
        [np.full(100, 45.0), np.linspace(45, 46, 100), np.full(100, 46.0), np.linspace(46, 45, 100)]
    )
    truth_m2, _ = WGS84.polygon_area_perimeter(lon, lat)
    x, y = projection.to_metres(lon, lat)
    found_m2 = (np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1))) / 2
    assert found_m2 == pytest.approx(truth_m2, rel=1e-4)  # straight edges instead of parallels


def test_the_way_back_ends_where_it_began() -> None:
    projection = LocalProjection(projection_around(np.array([6.85]), np.array([47.65])))
    lon, lat = np.array([6.0, 7.3, 9.0]), np.array([46.0, 47.0, 49.5])
    again = projection.to_degrees(*projection.to_metres(lon, lat))
    assert np.abs(np.array(again) - [lon, lat]).max() < 1e-8  # a millimetre


def test_across_the_date_line_the_middle_is_there() -> None:
    text = projection_around(np.array([179.5, -179.9]), np.array([-17.0, -16.0]))
    assert text.startswith("+proj=laea +lat_0=-16.50 +lon_0=179.80 ")
    text = projection_around(np.array([178.0, -176.0]), np.array([-17.0, -16.0]))
    assert text.startswith("+proj=laea +lat_0=-16.50 +lon_0=-179.00 ")
