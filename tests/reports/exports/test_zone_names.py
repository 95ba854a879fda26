"""Names on drawn maps: inside of their zones, the largest zones first, none over another."""

import numpy as np
import pytest

from reports.exports.drawing.zone_names import placed_names
from reports.maps.shapes import ZoneShape, wound


def box(name, west, south, width, height, *, hole=None):
    corners = np.array([(0, 0), (1, 0), (1, 1), (0, 1), (0, 0)], float)
    rings = [corners * (width, height) + (west, south)]
    if hole is not None:
        rings.append(corners * hole[2:] + (west + hole[0], south + hole[1]))
    return ZoneShape(name=name, shown_name=name, rings=wound(rings))


def names(*zones, metres_per_point=1.0, darkest=()):
    return placed_names(zones, metres_per_point=metres_per_point, darkest=darkest)


def test_a_name_stands_in_its_zone_or_nowhere() -> None:
    (name,) = names(box("Belfort", 100, 200, 60, 40))
    width, height = name.size_m
    assert (name.x_m, name.y_m) == pytest.approx((130, 220)) and 20 < width < 60 and 5 < height < 20
    assert names(box("Belfort", 0, 0, width - 0.1, 40)) == []
    assert names(box("Belfort", 0, 0, 60, height - 0.1)) == []
    assert names(box("Belfort", 0, 0, 60, 40), metres_per_point=3) == []


def test_a_long_name_takes_two_lines_where_one_has_no_room() -> None:
    zone = box("Saint Louis Sud", 0, 0, 45, 60)
    assert [each.text for each in names(zone)] == ["Saint\nLouis Sud"]
    assert [each.text for each in names(box("Saint Louis Sud", 0, 0, 90, 60))] == ["Saint Louis Sud"]


def test_a_name_stays_out_of_a_hole_and_of_a_narrow_part() -> None:
    (name,) = names(box("Lac", 0, 0, 100, 60, hole=(10, 5, 40, 50)))
    assert name.x_m - name.size_m[0] / 2 >= 50
    cup = np.array(
        [(0, 0), (60, 0), (60, 60), (50, 60), (50, 20), (10, 20), (10, 60), (0, 60), (0, 0)], float
    )
    (name,) = names(ZoneShape(name="Bourg", shown_name="Bourg", rings=(cup,)))
    assert name.y_m + name.size_m[1] / 2 <= 20


def test_of_zones_that_overlap_the_larger_has_its_name() -> None:
    small, large = box("Small", 30, 20, 40, 20), box("Large", 0, 0, 100, 60)
    assert [each.text for each in names(small, large)] == ["Large"]
    aside = box("Aside", 200, 0, 60, 60)
    assert [each.text for each in names(small, aside, large)] == ["Large", "Aside"]


def test_the_darkest_zones_have_names_beyond_their_borders_but_over_no_other() -> None:
    town, suburb, around = (
        box("Belfort", 40, 20, 8, 8),
        box("Offemont", 40, 30, 8, 8),
        box("Land", 0, 0, 100, 60),
    )
    apart = box("Delle", 200, 20, 8, 8)
    assert [each.text for each in names(town, suburb, apart)] == []
    found = names(town, suburb, apart, darkest=[town, apart])
    assert {each.text for each in found} == {"Belfort", "Delle"}
    assert next((each.x_m, each.y_m) for each in found if each.text == "Delle") == pytest.approx((204, 24))
    assert [each.text for each in names(around, town, darkest=[town])] == ["Land"]
    assert [each.text for each in names(around, darkest=[around])] == ["Land"]
