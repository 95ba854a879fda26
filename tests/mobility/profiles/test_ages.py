"""Ages at a reference date, by what a calendar says."""

from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mobility.profiles.ages import (
    BIRTH_YEAR,
    FIRST_YEAR,
    PATTERN_RULE,
    BirthRule,
    bands_problem,
    pattern_problem,
)

BANDS = {"young": (0, 17), "grown": (18, 64), "old": (65, None)}


def age_on(born: date, day: date) -> int:
    """Birthdays that have passed, counted one by one."""
    age = 0
    while True:
        try:
            birthday = date(born.year + age + 1, born.month, born.day)
        except ValueError:  # 29 February
            birthday = date(born.year + age + 1, 3, 1)
        if birthday > day:
            return age
        age += 1


def band_of(age: int) -> str:
    return "young" if age < 18 else "grown" if age < 65 else "old"


@settings(max_examples=4)  # each writes 50,000 dates
@given(st.dates(date(2016, 1, 1), date(2024, 12, 31)), st.data())
def test_a_birth_date_gives_the_exact_age(reference: date, data: st.DataObject) -> None:
    found = dict(BirthRule(reference=reference, bands=BANDS, pattern="%d/%m/%Y").texts())
    born = data.draw(st.dates(date(FIRST_YEAR, 1, 1), reference))
    assert found[born.strftime("%d/%m/%Y")] == band_of(age_on(born, reference))


@pytest.mark.parametrize(
    ("born", "reference", "band"),
    [
        ("1999-05-31", date(2017, 5, 31), "grown"),
        ("1999-06-01", date(2017, 5, 31), "young"),
        ("2000-02-29", date(2018, 2, 28), "young"),
        ("2000-02-29", date(2018, 3, 1), "grown"),
        ("2017-05-31", date(2017, 5, 31), "young"),
    ],
)
def test_on_the_birthday_itself(born: str, reference: date, band: str) -> None:
    assert dict(BirthRule(reference=reference, bands=BANDS, pattern="%Y-%m-%d").texts())[born] == band


def test_nobody_is_born_after_the_reference_date() -> None:
    found = dict(BirthRule(reference=date(2017, 5, 31), bands=BANDS, pattern="%Y%m%d").texts())
    assert (min(found), max(found)) == ("18800101", "20170531")
    assert len(found) == (date(2017, 5, 31) - date(1880, 1, 1)).days + 1


def test_a_birth_year_gives_the_age_of_that_year() -> None:
    found = dict(BirthRule(reference=date(2017, 1, 1), bands=BANDS, pattern=BIRTH_YEAR).texts())
    assert {year: found[year] for year in ("1880", "1952", "1953", "1999", "2000", "2017")} == {
        "1880": "old", "1952": "old", "1953": "grown", "1999": "grown", "2000": "young", "2017": "young",
    }  # fmt: skip
    assert len(found) == 138


def test_who_is_in_no_band_has_no_text() -> None:
    found = dict(BirthRule(reference=date(2017, 1, 1), bands={"all": (0, 120)}).texts())
    assert min(found) == "1897"


@pytest.mark.parametrize(
    ("bands", "problem"),
    [
        ({"a": (0, 17), "b": (18, None)}, None),
        ({"b": (18, 120), "a": (0, 17)}, None),
        ({"a": (0, 17), "b": (19, None)}, "must cover every age from 0 to 120: no band holds age 18"),
        ({"b": (18, None)}, "must cover every age from 0 to 120: no band holds ages 0 to 17"),
        ({"a": (0, 17), "b": (18, 99)}, "must cover every age from 0 to 120: no band holds ages 100 to 120"),
        ({"a": (0, 18), "b": (18, None)}, 'must not overlap: "a" and "b" both hold age 18'),
        ({"a": (0, None), "b": (18, 24)}, 'must not overlap: "a" and "b" both hold ages 18 to 24'),
        ({"a": (0, 50), "b": (40, None)}, 'must not overlap: "a" and "b" both hold ages 40 to 50'),
        ({}, "must cover every age from 0 to 120: no band holds ages 0 to 120"),
    ],
)  # fmt: skip
def test_every_age_has_one_band(bands: dict[str, tuple[int, int | None]], problem: str | None) -> None:
    assert bands_problem(bands) == problem


@pytest.mark.parametrize("pattern", ["%Y-%m-%d", "%d/%m/%Y", "%Y%m%d", "%d.%m.%Y", "%d%m%Y"])
def test_patterns_of_dates(pattern: str) -> None:
    assert pattern_problem(pattern) is None


@pytest.mark.parametrize(
    "pattern", ["", "%Y", "%d/%m", "%d/%d/%Y", "%d %m %Y", "%d/%m/%Y%H", "%d--%m-%Y", "{}%d%m%Y"]
)
def test_other_patterns_are_refused(pattern: str) -> None:
    assert pattern_problem(pattern) == PATTERN_RULE
