"""Columns that hold the place are found by their names and by their values; others stay."""

import numpy as np
import pyarrow as pa
import pytest

from ldp import KeyedStream
from mobility.tables.holding import MIN_ROWS, holding_place, is_named_as_place

N = 4_000
STREAM = KeyedStream(b"columns of tests")


def uniform(n=N):
    return (STREAM.words(n) >> np.uint64(11)) * 2.0**-53


def found(columns, *, x_m, y_m, one_each=None):
    rows = np.arange(len(x_m)) if one_each is None else one_each
    return holding_place(pa.table(columns), x_m=x_m, y_m=y_m, one_each=rows)


@pytest.fixture(scope="module")
def city():
    """Places at random in 10 km by 10 km; no two are the same."""
    return {"x_m": 10_000 * uniform(), "y_m": 10_000 * uniform()}


@pytest.mark.parametrize(
    "name",
    ["lat", "LON", "homeCity", "code_insee", "Adresse", "x", "y_l93", "distance_km", "Département", "zones",
     "postcode2", "CODE POSTAL", "h3", "geo-hash geohash", "nearest_station"],
)  # fmt: skip
def test_names_of_places_are_known(name):
    assert is_named_as_place(name)


@pytest.mark.parametrize(
    "name",
    ["id", "age", "response_time_s", "severity", "replaced", "relation", "platform", "", "latency", "42"],
)
def test_other_names_are_not(name):
    assert not is_named_as_place(name)


def test_what_follows_from_the_place_is_found_and_what_does_not_stays(city):
    x_m, y_m = city["x_m"], city["y_m"]
    tract = (x_m // 2_000).astype(int) * 10 + (y_m // 2_000).astype(int)
    away_km = np.hypot(x_m - 3_000, y_m - 4_000) / 1_000
    noise = uniform()
    told = found(
        {
            "tract": [f"T{each}" for each in tract],
            "code": tract,
            "away": np.round(away_km, 3),
            "northwards": [f"{each:.1f}".replace(".", ",") for each in y_m],
            # like an ambulance's response time in the thesis: a correlation of about .4 with the distance
            "minutes": np.round(away_km + 12 * noise, 1),
            "severity": np.array(["low", "high"])[(noise > 0.3).astype(int)],
            "crew": ["one"] * N,
            "day": [f"2024-05-{1 + int(31 * each):02d}" for each in uniform()],
            "note": [f"call {n}" for n in range(N)],
        },
        **city,
    )
    assert (told.by_name, set(told.by_data)) == ((), {"tract", "code", "away", "northwards"})
    assert (told.unjudged, told.by_order) == (("note",), False)


def test_a_text_of_a_place_is_found_where_places_come_again(city):
    again = np.tile(np.arange(N // 4), 4)
    x_m, y_m = city["x_m"][again], city["y_m"][again]
    text = [f"{each:.3f} high street" for each in x_m]
    assert found({"note": text}, x_m=x_m, y_m=y_m).by_data == ("note",)


def test_rows_of_one_id_are_one_row(city):
    """Each id has four rows with one place and one colour: that alone says nothing of the place."""
    again = np.repeat(np.arange(N // 4), 4)
    colours = np.array(["red", "green", "blue"])[(3 * uniform(N // 4)).astype(int)][again]
    places = {"x_m": city["x_m"][again], "y_m": city["y_m"][again]}
    assert found({"colour": colours}, **places, one_each=np.arange(0, N, 4)).by_data == ()
    assert found({"colour": colours}, **places).by_data == ("colour",)  # were they different ids, it would


def test_the_order_of_rows_can_hold_the_place(city):
    order = np.argsort(city["x_m"] // 500)
    assert found({"n": uniform()}, x_m=city["x_m"][order], y_m=city["y_m"][order]).by_order


def test_with_few_neighbours_nothing_is_judged():
    far = 1e6 * np.arange(MIN_ROWS * 2)
    told = found({"colour": ["red", "blue"] * MIN_ROWS}, x_m=far, y_m=far)
    assert (told.by_data, told.unjudged) == ((), ("colour",))
