"""The population counts exactly as the facts do, and zones have their names."""

import json
from collections import Counter

import numpy as np
import pytest

from mobility.demo.population import ABSENT, FOLDER, build_population, load_facts

FACTS = load_facts()


@pytest.fixture(scope="module")
def population():
    return build_population(seed=1)


def names(population, slug: str) -> list[str]:
    return [population.categories[slug][code] for code in population.static[slug].tolist()]


def test_patterns_marginals_and_durations_are_those_of_the_facts(population) -> None:
    bitmaps = population.presence.tolist()
    patterns = Counter("".join("1" if bitmap >> day & 1 else "0" for day in range(7)) for bitmap in bitmaps)
    assert patterns == FACTS["presence_patterns"]
    for slug, counts in FACTS["marginals"].items():
        assert Counter(names(population, slug)) == counts, slug
    bands = population.categories["visit_duration"]
    for day in range(1, 8):
        codes = population.durations[:, day - 1]
        found = Counter(bands[code] for code in codes.tolist() if code != ABSENT)
        assert found == FACTS["visit_duration_by_day"][str(day)], day
        assert np.array_equal(codes != ABSENT, population.is_present(day))
    middle = population.is_present(3) | population.is_present(4) | population.is_present(5)
    totals = int((population.presence != 0).sum()), int(population.is_present(5).sum()), int(middle.sum())
    assert (*totals, population.subscriber_days) == (88_935, 38_983, 62_440, 190_345)


def test_a_part_is_a_random_part_of_the_whole(population) -> None:
    part = build_population(seed=1, n_subscribers=20_000)
    assert part.n_subscribers == 20_000
    for day in range(1, 8):
        share = population.is_present(day).mean()
        assert abs(part.is_present(day).mean() - share) < 5 * np.sqrt(share * (1 - share) / 20_000)
        assert np.array_equal(part.durations[:, day - 1] != ABSENT, part.is_present(day))


def test_zones_are_named_synthetic_sleeping_areas() -> None:
    features = json.loads((FOLDER / "zones.geojson").read_text(encoding="utf-8"))["features"]
    names = {each["properties"]["zone"] for each in features}
    assert names == set(FACTS["marginals"]["sleeping_area"]) - {"NR"}
    assert all(feature["properties"]["synthetic"] is True for feature in features)
