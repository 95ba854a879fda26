"""Columns that hold the place are found by their names and by their values; others stay."""

import numpy as np
import pyarrow as pa
import pytest

from ldp import KeyedStream
from mobility.tables.holding import MIN_IDS, holding_place, is_named_as_place

N = 4_000
STREAM = KeyedStream(b"columns of tests")


def uniform(n=N):
    return (STREAM.words(n) >> np.uint64(11)) * 2.0**-53


def found(columns, *, x_m, y_m, id_of=None):
    ids = np.arange(len(x_m)) if id_of is None else id_of
    return holding_place(pa.table(columns), x_m=x_m, y_m=y_m, id_of=ids)


@pytest.fixture(scope="module")
def city():
    """Places at random in 10 km by 10 km; no two are the same."""
    return {"x_m": 10_000 * uniform(), "y_m": 10_000 * uniform()}


def test_names_of_places_are_known_and_others_are_not():
    places = (
        "lat", "LON", "homeCity", "code_insee", "Adresse", "x", "y_l93", "distance_km", "Département",
        "zones", "postcode2", "CODE POSTAL", "h3", "geo-hash geohash", "nearest_station", "latlon", "latlng",
        "geopoint", "home_geohash6", "quadkey", "MGRS", "plz", "codePostal", "pos_1", "latdeg", "lonWgs",
        "geolocalisation",
    )  # fmt: skip
    others = (
        "id", "age", "response_time_s", "severity", "replaced", "relation", "platform", "", "latency", "42",
        "late", "longueur", "lonely", "composition",
    )  # fmt: skip
    assert [name for name in places if not is_named_as_place(name)] == []
    assert [name for name in others if is_named_as_place(name)] == []


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
    assert found({"colour": colours}, **places, id_of=again).by_data == ()
    assert found({"colour": colours}, **places).by_data == ("colour",)  # were they different ids, it would


def test_the_order_of_rows_can_hold_the_place(city):
    order = np.argsort(city["x_m"] // 500)
    assert found({"n": uniform()}, x_m=city["x_m"][order], y_m=city["y_m"][order]).by_order


def test_with_few_neighbours_nothing_is_judged():
    far = 1e6 * np.arange(MIN_IDS * 2)
    told = found({"colour": ["red", "blue"] * MIN_IDS}, x_m=far, y_m=far)
    assert (told.by_data, told.unjudged) == ((), ("colour",))


@pytest.mark.parametrize("empty", ["", "NA", None])
@pytest.mark.parametrize("kind", ["number", "text"])
def test_values_of_later_rows_of_an_id_are_judged(city, empty, kind):
    """The first row of each id has no value; the second has the place, or its district."""
    again = np.repeat(np.arange(N // 2), 2)
    x_m, y_m = city["x_m"][again], city["y_m"][again]
    told = y_m if kind == "number" else [f"T{each}" for each in (y_m // 2_000).astype(int)]
    node = [f"{each}" if n % 2 else empty for n, each in enumerate(told)]
    assert found({"node": node}, x_m=x_m, y_m=y_m, id_of=again).by_data == ("node",)


def test_other_values_in_later_rows_hide_no_place(city):
    again = np.repeat(np.arange(N // 2), 2)
    x_m, y_m = city["x_m"][again], city["y_m"][again]
    node = [f"{each:.0f}" if n % 2 == 0 else "-1" for n, each in enumerate(y_m)]
    assert found({"node": node}, x_m=x_m, y_m=y_m, id_of=again).by_data == ("node",)
    assert found({"node": node[::-1]}, x_m=x_m[::-1], y_m=y_m[::-1], id_of=again).by_data == ("node",)


def test_an_id_with_many_rows_counts_as_one(city):
    """One id has as many rows as all others: what they have in common says nothing about other ids."""
    id_of = np.r_[np.zeros(N, int), np.arange(1, N)]
    x_m, y_m = (np.r_[np.full(N, each[0]), each[1:]] for each in (city["x_m"], city["y_m"]))
    colours = np.array(["red", "green", "blue"])[(3 * uniform(2 * N - 1)).astype(int)]
    colours[:N] = "black"
    told = found(
        {"colour": colours, "size": np.r_[np.full(N, 5.0), uniform(N - 1)]}, x_m=x_m, y_m=y_m, id_of=id_of
    )
    assert (told.by_data, told.unjudged) == ((), ())
    # Two towns; first and last rows have no value, and that id has others: the middle rows decide.
    town = (uniform() > 0.5).astype(int)
    again = np.r_[np.zeros(N + 1, int), np.repeat(np.arange(N), 3)]
    others = [f"other {each:.1f}" for each in uniform()]
    node = ["", *others, *(text for each in town for text in ("", f"town {each}", ""))]
    places = 9_000.0 * town[again]
    assert found({"node": node}, x_m=places, y_m=places, id_of=again).by_data == ("node",)


def test_what_follows_from_the_place_in_part_is_not_passed_silently(city):
    district = (city["x_m"] // 2_500).astype(int)
    mixed = np.where(uniform() < 0.75, district, (4 * uniform()).astype(int))
    told = found({"mixed": [f"T{each}" for each in mixed]}, **city)
    assert (told.by_data, told.unjudged) == ((), ("mixed",))
