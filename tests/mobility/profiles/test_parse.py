"""Profiles' files: what is accepted, and that everything else is refused with file, key, rule and value."""
# ruff: noqa: E501  (a table reads best with one rule a line)

import json
import re
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from mobility.profiles.ages import BirthRule
from mobility.profiles.errors import ProfileFileError
from mobility.profiles.parse import parse_profile
from mobility.profiles.rules import ValueRule
from mobility.profiles.typed import TypedProfile
from tests.mobility.profiles.made_profiles import PROFILE, STUDY, definition, edited

SUBSCRIBERS = """
[profile]
name = "people"
kind = "subscribers"
[columns]
subscriber = "id"
[indicator.gender]
column = "sex"
"""


def parse(text: str, *, study: str = STUDY) -> TypedProfile:
    return parse_profile(text.encode(), filename="p.toml", definition=definition(study))


def problems(text: str) -> list[str]:
    with pytest.raises(ProfileFileError) as caught:
        parse(text)
    return str(caught.value).split("\n")


def test_a_profile_says_what_it_says() -> None:
    found = parse(PROFILE)
    assert (found.name, found.kind, found.delimiter) == ("operator-x", "events", "semicolon")
    assert (found.subscriber, found.timestamp, found.cell) == (
        "ServedMSISDN",
        "recordOpeningTime",
        "CellIdentifier",
    )
    assert (found.timestamp_format, found.max_bad_share) == ("%d/%m/%Y %H:%M:%S", Decimal("0.02"))
    assert found.columns == {"gender": "Sexe", "age": "Année de naissance", "region": "Code postal"}
    assert found.rules["gender"] == ValueRule(values={"H": "M", "inconnu": ""}, ignore_case=True)
    assert found.rules["age"].birth == BirthRule(
        reference=date(2024, 5, 1),
        bands={"<18": (0, 17), "18-24": (18, 24), "25-64": (25, 64), "65+": (65, None)},
    )
    assert (found.rules["region"].prefix, found.rules["region"].otherwise) == (2, "Elsewhere")


@pytest.mark.parametrize("text", [PROFILE, SUBSCRIBERS])
def test_what_is_stored_is_what_was_typed(text: str) -> None:
    found = parse(text)
    assert TypedProfile.from_json(json.loads(json.dumps(found.to_json()))) == found


def test_compiled_tables_know_every_text() -> None:
    tables = parse(PROFILE).compiled(definition()).tables
    assert [tables["gender"].code_of(text) for text in (b"h", b"H ", b"f", b"INCONNU", b"", b"x")] == [
        1,
        1,
        0,
        0xFFFF,
        0xFFFF,
        None,
    ]
    assert [tables["age"].code_of(text) for text in (b"2007", b"2006", b"1959", b"?")] == [0, 1, 3, 4]
    assert [tables["region"].code_of(text) for text in (b"25000", b"75001", b"9")] == [0, 1, 2]


def test_a_birth_date_has_its_pattern() -> None:
    text = edited("[indicator.age.birth_year]", '[indicator.age.birth_date]\npattern = "%d/%m/%Y"')
    birth = parse(text).rules["age"].birth
    assert birth is not None
    assert birth.pattern == "%d/%m/%Y"
    assert parse(text).compiled(definition()).tables["age"].code_of(b"02/05/2006") == 0


def test_what_is_left_out_comes_from_the_study_file() -> None:
    found = parse(edited("max_bad_share = 0.02\n", ""))
    assert found.max_bad_share == Decimal("0.5")
    people = parse(SUBSCRIBERS, study=STUDY + '[subscribers]\nsubscriber = "who"\nmax_bad_share = 0.25\n')
    assert people.max_bad_share == Decimal("0.25")


def test_an_extract_of_subscribers_has_neither_time_nor_place() -> None:
    found = parse(SUBSCRIBERS)
    assert (found.timestamp, found.cell, found.columns) == (None, None, {"gender": "sex"})
    assert problems(SUBSCRIBERS.replace('subscriber = "id"', 'subscriber = "id"\ntimestamp = "t"')) == [
        'p.toml: columns.timestamp: must be absent: an extract of subscribers has a person a row, and no events, got "t"'
    ]
    assert problems(SUBSCRIBERS.replace('[indicator.gender]\ncolumn = "sex"\n', "")) == [
        "p.toml: indicator: must name a column of at least one indicator: there is nothing else to learn"
    ]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('name = "operator-x"', 'name = "Operator X"', "profile.name: must be 1 to 64 lower-case letters"),
        ('name = "operator-x"', 'name = "opt-out"', 'profile.name: is a built-in profile, choose another, got "opt-out"'),
        ('name = "operator-x"', 'name = "new"', "profile.name: is an address of this site, choose another"),
        ('name = "operator-x"', 'name = "more-to-come"', "profile.name: is a folder with a meaning in the watched folder"),
        ('name = "operator-x"', "", "profile.name: is missing"),
        ('kind = "events"', 'kind = "opt_out"', 'profile.kind: must be one of events, subscribers, got "opt_out"'),
        ('"semicolon"', '";"', "profile.delimiter: must be one of comma, semicolon, tab, pipe"),
        ('"%d/%m/%Y %H:%M:%S"', '"%d/%m/%Y"', "profile.timestamp_format: must be"),
        ("0.02", "2", "profile.max_bad_share: must be a number from 0 to 1, got 2"),
        ('cell = "CellIdentifier"\n', "", "columns.cell: is missing"),
        ('"CellIdentifier"', '"ServedMSISDN"', "columns.cell: must be a column of its own, but columns.subscriber has it"),
        ('"Sexe"', '"ServedMSISDN"', "indicator.gender.column: must be a column of its own, but columns.subscriber has it"),
        ("[indicator.gender]", "[indicator.sex]", "indicator.sex: unknown static indicator"),
        ('H = "M"', 'H = "Man"', 'indicator.gender.values."H": unknown category, known here: F, M, got "Man"'),
        ('H = "M"', "H = 1", 'indicator.gender.values."H": must be a text in quotes: a category, or empty for no answer, got 1'),
        ('"inconnu" = ""', '"" = "F"', 'indicator.gender.values."": must not be listed: an empty text is always no answer'),
        ('"inconnu" = ""', '" x" = "F"', 'indicator.gender.values." x": must have no blanks around it'),
        ('"inconnu" = ""', 'h = "F"', 'indicator.gender.ignore_case: must be false: "H" and "h" differ in nothing else'),
        ("ignore_case = true", 'ignore_case = "yes"', "indicator.gender.ignore_case: must be true or false"),
        ('otherwise = "NR"', 'otherwise = "nr"', "indicator.age.otherwise: unknown category"),
        ("reference = 2024-05-01", 'reference = "2024"', "indicator.age.birth_year.reference: must be a date written without quotes"),
        ("reference = 2024-05-01", 'pattern = "%Y"', 'indicator.age.birth_year.pattern: unknown key'),
        ('"65+" = [65]', '"65+" = [66]', "indicator.age.birth_year.bands: must cover every age from 0 to 120: no band holds age 65"),
        ('"65+" = [65]', '"65+" = [64]', 'indicator.age.birth_year.bands: must not overlap: "25-64" and "65+" both hold age 64'),
        ('"65+" = [65]', '"66+" = [65]', 'indicator.age.birth_year.bands."66+": unknown category'),
        ('"65+" = [65]', '"65+" = [65, 64]', 'indicator.age.birth_year.bands."65+": must be two ages from 0 to 150'),
        ('"65+" = [65]', '"65+" = 65', 'indicator.age.birth_year.bands."65+": must be two ages from 0 to 150'),
        ("[indicator.region]", '[indicator.age.birth_date]\n[indicator.region]', "indicator.age.birth_date: must be absent: birth_year says already what the column holds"),
        ('otherwise = "NR"', 'otherwise = "NR"\nprefix = 2', "indicator.age.prefix: must be absent: the column says when somebody was born, got 2"),
        ("prefix = 2", "prefix = 3", 'indicator.region.values."25": must have 3 characters of ASCII: prefix says how many count'),
        ("prefix = 2", "prefix = 0", "indicator.region.prefix: must be a whole number from 1 to 16, got 0"),
        ('values = { "25" = "Bourgogne-Franche-Comté", "75" = "Île-de-France" }', "", "indicator.region.values: must say what each beginning of 2 characters means"),
        ("[columns]", "[column]", "columns: is missing"),
        ("[columns]", "[columns]\nuser = 1", 'columns.user: unknown key'),
        ('name = "operator-x"', "name = ", "line 3, column 8: must be valid TOML"),
    ],
)  # fmt: skip
def test_a_broken_rule_is_named_with_file_key_and_value(old: str, new: str, expected: str) -> None:
    found = problems(edited(old, new))
    assert any(line.startswith(f"p.toml: {expected}") for line in found), found


def test_all_problems_are_reported_together() -> None:
    text = edited('H = "M"', 'H = "Man"', text=edited('"semicolon"', '";"'))
    assert len(problems(text)) == 2


def test_the_documented_profile_is_one() -> None:
    text = (Path(__file__).parents[3] / "docs" / "profiles.md").read_text(encoding="utf-8")
    (documented,) = re.findall("```toml\n(.*?)```", text, re.S)
    study = STUDY.replace('["F", "M"]', '["F", "M", "NR"]').replace('"18-24", "25-64"', '"18-64"')
    study = study.replace("Bourgogne-Franche-Comté", "Franche-Comté")
    found = parse(documented, study=study)
    assert set(found.columns) == {"gender", "age", "region"}
    assert found.compiled(definition(study)).tables["age"].code_of(b"1999") == 1
