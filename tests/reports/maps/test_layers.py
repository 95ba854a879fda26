"""Base layers: their names, their looks, and what of them is filled."""

import pytest
from django.utils import translation

from reports.maps.layer_looks import look_of, shown_name
from reports.maps.shapes import area_shapes
from reports.models import Area
from tests.reports import map_factory
from tests.reports.map_factory import ZONES
from tests.reports.page_texts import data_of, page

pytestmark = pytest.mark.django_db
RING = [[-500, -500], [500, -500], [500, 500], [-500, 500], [-500, -500]]
LAYERS = [
    {"name": "water", "kind": "polygons", "paths": [RING]},
    {"name": "parks", "kind": "polygons", "paths": [RING]},
    {"name": "rivers", "kind": "lines", "paths": [[[0, 0], [100, 100]]]},
    {"name": "Main_roads-2024", "kind": "lines", "paths": [[[0, 0], [100, 0]]]},
]


@pytest.mark.parametrize(
    ("name", "look"),
    [
        ("water", "water"), ("RIVERS", "water"), ("main_roads", "road"), ("roads and borders", "road"),
        ("state-borders2", "border"), ("Savoureuse", "other"), ("crossroads", "other"), ("", "other"),
    ],
)  # fmt: skip
def test_a_layer_has_the_look_of_the_first_known_word_of_its_name(name, look):
    assert look_of(name) == look


def test_common_names_are_in_the_language_of_the_reader_and_others_as_their_files():
    assert [shown_name(name) for name in ("roads", "Borders", "Savoureuse")] == [
        "Roads",
        "Borders",
        "Savoureuse",
    ]
    with translation.override("fr"):
        assert [shown_name(name) for name in ("roads", "Savoureuse")] == ["Routes", "Savoureuse"]


def test_pages_fill_water_and_draw_everything_else_as_lines(reader):
    map_factory.create()
    Area.objects.update(layers=LAYERS)
    html = page(reader, "indicator", "home", view="map")
    layers = data_of(html, "map-data")["shapes"]["layers"]
    assert [(each["look"], each["is_filled"]) for each in layers] == [
        ("water", True), ("other", False), ("water", False), ("road", False),
    ]  # fmt: skip
    assert layers[0]["paths"] == [[value for point in RING for value in point]]
    assert html.count("legend__water") == 1 and html.count("legend__line--road") == 1
    assert "Main_roads-2024" in html and "Rivers" in html
    assert area_shapes(Area.objects.get()).names == list(ZONES)
