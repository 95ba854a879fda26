"""The population counts exactly as the facts do."""

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from mobility.demo.population import (
    ABROAD,
    ABSENT,
    Population,
    build_population,
    load_facts,
    load_study,
    present_on,
)

FACTS = load_facts()
WINDOWS = [(first, last) for first in range(1, 8) for last in range(first, 8)]


@pytest.fixture(scope="module")
def population() -> Population:
    return build_population(seed=1)


def names(population: Population, slug: str) -> list[str]:
    return [population.categories[slug][code] for code in population.static[slug].tolist()]


def patterns(population: Population) -> Iterator[str]:
    for bitmap in population.presence.tolist():
        yield "".join("1" if bitmap >> day & 1 else "0" for day in range(7))


def test_presence_patterns_are_those_of_the_facts(population: Population) -> None:
    assert Counter(patterns(population)) == FACTS["presence_patterns"]


@pytest.mark.parametrize("slug", sorted(FACTS["marginals"]))
def test_marginals_are_those_of_the_facts(population: Population, slug: str) -> None:
    assert Counter(names(population, slug)) == FACTS["marginals"][slug]


@pytest.mark.parametrize("day", range(1, 8))
def test_durations_of_a_day_are_those_of_the_facts(population: Population, day: int) -> None:
    codes = population.durations[:, day - 1]
    bands = population.categories["visit_duration"]
    assert (
        Counter(bands[code] for code in codes.tolist() if code != ABSENT)
        == (FACTS["visit_duration_by_day"][str(day)])
    )
    assert np.array_equal(codes != ABSENT, population.is_present(day))


@pytest.mark.parametrize(("first", "last"), WINDOWS)
def test_window_totals_are_those_of_the_facts(population: Population, first: int, last: int) -> None:
    expected = sum(n for key, n in FACTS["presence_patterns"].items() if "1" in key[first - 1 : last])
    seen = np.zeros(population.n_subscribers, np.bool_)
    for day in range(first, last + 1):
        seen |= population.is_present(day)
    assert int(seen.sum()) == expected


def test_known_totals(population: Population) -> None:
    week = population.presence != 0
    middle = population.is_present(3) | population.is_present(4) | population.is_present(5)
    assert (int(week.sum()), int(population.is_present(5).sum()), int(middle.sum())) == (
        88_935,
        38_983,
        62_440,
    )
    assert population.subscriber_days == 190_345


def test_foreign_tourists_live_abroad_and_give_neither_gender_nor_age(population: Population) -> None:
    foreign = np.array(names(population, "visitor_category")) == "Foreign tourist"
    for slug in ("gender", "age"):
        assert np.array_equal(np.array(names(population, slug)) == "NR", foreign)
    assert np.array_equal(np.isin(names(population, "region"), ABROAD), foreign)


def test_residents_live_near_sleep_in_a_zone_and_come_on_more_days(population: Population) -> None:
    resident = np.array(names(population, "visitor_category")) == "Resident"
    assert set(np.array(names(population, "region"))[resident]) == {"Franche-Comté"}
    assert "NR" not in np.array(names(population, "sleeping_area"))[resident]
    days = np.bitwise_count(population.presence)
    assert days[resident].mean() > 1.2 * days[~resident].mean()


def test_same_seed_same_population_and_another_seed_another(population: Population) -> None:
    again, other = build_population(seed=1), build_population(seed=2)
    assert np.array_equal(again.presence, population.presence)
    assert np.array_equal(again.durations, population.durations)
    assert all(np.array_equal(again.static[slug], population.static[slug]) for slug in again.static)
    assert not np.array_equal(other.presence, population.presence)


def test_a_part_is_a_random_part_of_the_whole(population: Population) -> None:
    part = build_population(seed=1, n_subscribers=20_000)
    assert part.n_subscribers == 20_000
    for day in range(1, 8):
        share = population.is_present(day).mean()
        std_error = np.sqrt(share * (1 - share) / 20_000)
        assert abs(part.is_present(day).mean() - share) < 5 * std_error
        assert np.array_equal(part.durations[:, day - 1] != ABSENT, part.is_present(day))


@pytest.mark.parametrize("n_subscribers", [0, -1, 88_936])
def test_a_part_must_fit_the_facts(n_subscribers: int) -> None:
    with pytest.raises(ValueError, match=rf"n_subscribers must be in \[1, 88935\], got {n_subscribers}"):
        build_population(seed=1, n_subscribers=n_subscribers)


def test_bit_of_a_day() -> None:
    presence = np.array([0b0000001, 0b1000000, 0b1000001], np.uint64)
    assert present_on(presence, day=1).tolist() == [True, False, True]
    assert present_on(presence, day=7).tolist() == [False, True, True]


def test_order_of_categories_is_natural() -> None:
    categories = {indicator.slug: indicator.categories for indicator in load_study().indicators}
    assert categories["age"] == ("<18", "18-24", "25-34", "35-44", "45-54", "55-64", ">65", "NR")
    assert categories["visit_duration"][0] == "Duration 2h"
    assert categories["visit_duration"][-2:] == ("Duration 10h", "Duration 10h-18h")
    assert all("NR" not in names[:-1] for names in categories.values())
