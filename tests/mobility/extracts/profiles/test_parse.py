"""Profiles: what their files may say, profiles by their name, what a text means, ages at a reference date."""
# ruff: noqa: E501  (a table reads best with one rule a line)

import json
import re
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mobility.extracts.profiles import ages
from mobility.extracts.profiles.ages import BIRTH_YEAR, PATTERN_RULE, BirthRule
from mobility.extracts.profiles.definition import NO_ANSWER
from mobility.extracts.profiles.errors import ProfileFileError, ProfileMissingError
from mobility.extracts.profiles.parse import parse_profile
from mobility.extracts.profiles.rules import ValueRule, case_problem
from mobility.extracts.profiles.typed import TypedProfile
from mobility.uploads.profiles import create_profile
from mobility.vault.profiles import find_profile, profile_names
from tests.mobility.extracts.profiles.made_profiles import PROFILE, STUDY, definition, edited, stored

SUBSCRIBERS = """
[profile]
name = "people"
kind = "subscribers"
[columns]
subscriber = "id"
[indicator.gender]
column = "sex"
"""
SEPARATE = STUDY.replace('cell = "cell_id"', 'cell = "cell_id"\nattributes = "subscribers"')
WITH_SECTION = SEPARATE + '[subscribers]\nsubscriber = "who"\ndelimiter = "pipe"\nmax_bad_share = 0.25\n'


def parse(text, *, study=STUDY):
    return parse_profile(text.encode(), filename="p.toml", definition=definition(study))


def problems(text):
    with pytest.raises(ProfileFileError) as caught:
        parse(text)
    return str(caught.value).split("\n")


class TestFile:
    def test_a_profile_says_what_it_says(self):
        found = parse(PROFILE)
        assert (found.name, found.kind, found.delimiter) == ("operator-x", "events", "semicolon")
        columns = (found.subscriber, found.timestamp, found.cell)
        assert columns == ("ServedMSISDN", "recordOpeningTime", "CellIdentifier")
        assert (found.timestamp_format, found.max_bad_share) == ("%d/%m/%Y %H:%M:%S", Decimal("0.02"))
        assert found.columns == {"gender": "Sexe", "age": "Année de naissance", "region": "Code postal"}
        assert found.rules["gender"] == ValueRule(values={"H": "M", "inconnu": ""}, ignore_case=True)
        bands = {"<18": (0, 17), "18-24": (18, 24), "25-64": (25, 64), "65+": (65, None)}
        assert found.rules["age"].birth == BirthRule(reference=date(2024, 5, 1), bands=bands)
        assert (found.rules["region"].prefix, found.rules["region"].otherwise) == (2, "Elsewhere")

    def test_what_is_stored_is_what_was_typed_and_compiled_tables_know_every_text(self):
        for found in (parse(PROFILE), parse(SUBSCRIBERS)):
            assert TypedProfile.from_json(json.loads(json.dumps(found.to_json()))) == found
        tables = parse(PROFILE).compiled(definition()).tables
        for slug, codes in {
            "gender": {"h": 1, "H ": 1, "f": 0, "INCONNU": NO_ANSWER, "": NO_ANSWER, "x": None},
            "age": {"2007": 0, "2006": 1, "1959": 3, "?": 4},
            "region": {"25000": 0, "75001": 1, "9": 2},
        }.items():
            assert {text: tables[slug].code_of(text.encode()) for text in codes} == codes

    def test_a_birth_date_has_its_pattern_and_what_is_left_out_comes_from_the_study_file(self):
        text = edited("[indicator.age.birth_year]", '[indicator.age.birth_date]\npattern = "%d/%m/%Y"')
        assert parse(text).rules["age"].birth.pattern == "%d/%m/%Y"
        assert parse(text).compiled(definition()).tables["age"].code_of(b"02/05/2006") == 0
        assert parse(edited("max_bad_share = 0.02\n", "")).max_bad_share == Decimal("0.5")
        assert parse(SUBSCRIBERS, study=WITH_SECTION).max_bad_share == Decimal("0.25")

    def test_an_extract_of_subscribers_has_neither_time_nor_place(self):
        found = parse(SUBSCRIBERS)
        assert (found.timestamp, found.cell, found.columns) == (None, None, {"gender": "sex"})
        assert problems(SUBSCRIBERS.replace('subscriber = "id"', 'subscriber = "id"\ntimestamp = "t"')) == [
            'p.toml: columns.timestamp: must be absent: a subscriber extract has one row per person and no events, got "t"'
        ]
        (nothing,) = problems(SUBSCRIBERS.replace('[indicator.gender]\ncolumn = "sex"\n', ""))
        assert nothing.startswith("p.toml: indicator: must name a column for at least one indicator, because")

    @pytest.mark.parametrize(
        ("old", "new", "expected"),
        [('name = "operator-x"', 'name = "Operator X"', "profile.name: must be 1 to 64 lower-case letters"),
         ('name = "operator-x"', 'name = "opt-out"', 'profile.name: is the name of a built-in profile: choose another name, got "opt-out"'),
         ('name = "operator-x"', 'name = "new"', "profile.name: is a reserved address of this site: choose another"),
         ('name = "operator-x"', 'name = "more-to-come"', "profile.name: is a reserved folder name in the watched folder"),
         ('name = "operator-x"', "", "profile.name: is missing"),
         ('kind = "events"', 'kind = "opt_out"', 'profile.kind: must be one of events, subscribers, got "opt_out"'),
         ('"semicolon"', '";"', "profile.delimiter: must be one of comma, semicolon, tab, pipe"),
         ('"%d/%m/%Y %H:%M:%S"', '"%d/%m/%Y"', "profile.timestamp_format: must be"),
         ("0.02", "2", "profile.max_bad_share: must be a number from 0 to 1, got 2"),
         ('cell = "CellIdentifier"\n', "", "columns.cell: is missing"),
         ('"CellIdentifier"', '"ServedMSISDN"', "columns.cell: must be its own column, but columns.subscriber uses it"),
         ('"Sexe"', '"ServedMSISDN"', "indicator.gender.column: must be its own column, but columns.subscriber uses it"),
         ("[indicator.gender]", "[indicator.sex]", "indicator.sex: unknown static indicator"),
         ('H = "M"', 'H = "Man"', 'indicator.gender.values."H": unknown category, known here: F, M, got "Man"'),
         ('H = "M"', "H = 1", 'indicator.gender.values."H": must be a quoted string: a category, or empty for no answer, got 1'),
         ('"inconnu" = ""', '"" = "F"', 'indicator.gender.values."": must not be listed: an empty value always means no answer'),
         ('"inconnu" = ""', '" x" = "F"', 'indicator.gender.values." x": must not start or end with spaces'),
         ('"inconnu" = ""', 'h = "F"', 'indicator.gender.ignore_case: must be false: "H" and "h" differ only in case'),
         ("ignore_case = true", 'ignore_case = "yes"', "indicator.gender.ignore_case: must be true or false"),
         ('otherwise = "NR"', 'otherwise = "nr"', "indicator.age.otherwise: unknown category"),
         ("reference = 2024-05-01", 'reference = "2024"', "indicator.age.birth_year.reference: must be a date without quotes"),
         ("reference = 2024-05-01", 'pattern = "%Y"', 'indicator.age.birth_year.pattern: unknown key'),
         ('"65+" = [65]', '"65+" = [66]', "indicator.age.birth_year.bands: must cover every age from 0 to 120: no age range contains age 65"),
         ('"65+" = [65]', '"65+" = [64]', 'indicator.age.birth_year.bands: must not overlap: "25-64" and "65+" both contain age 64'),
         ('"65+" = [65]', '"66+" = [65]', 'indicator.age.birth_year.bands."66+": unknown category'),
         ('"65+" = [65]', '"65+" = [65, 64]', 'indicator.age.birth_year.bands."65+": must be two ages from 0 to 150'),
         ('"65+" = [65]', '"65+" = 65', 'indicator.age.birth_year.bands."65+": must be two ages from 0 to 150'),
         ("[indicator.region]", '[indicator.age.birth_date]\n[indicator.region]', "indicator.age.birth_date: must be absent, because birth_year already describes the column"),
         ('otherwise = "NR"', 'otherwise = "NR"\nprefix = 2', "indicator.age.prefix: must be absent, because the column contains the birth year or date, got 2"),
         ("prefix = 2", "prefix = 3", 'indicator.region.values."25": must have 3 ASCII characters, as set by prefix'),
         ("prefix = 2", "prefix = 0", "indicator.region.prefix: must be a whole number from 1 to 16, got 0"),
         ('values = { "25" = "Bourgogne-Franche-Comté", "75" = "Île-de-France" }', "", "indicator.region.values: must give a meaning for each prefix of 2 characters"),
         ("[columns]", "[column]", "columns: is missing"),
         ("[columns]", "[columns]\nuser = 1", 'columns.user: unknown key'),
         ('name = "operator-x"', "name = ", "line 3, column 8: must be valid TOML")],
    )  # fmt: skip
    def test_a_broken_rule_is_named_with_file_key_and_value(self, old, new, expected):
        found = problems(edited(old, new))
        assert any(line.startswith(f"p.toml: {expected}") for line in found), found
        if old != '"semicolon"' and "valid TOML" not in expected:  # all problems are reported together
            assert len(problems(edited('"semicolon"', '";"', text=edited(old, new)))) == len(found) + 1

    def test_the_documented_profile_is_one(self):
        text = (Path(__file__).parents[4] / "docs" / "profiles.md").read_text(encoding="utf-8")
        (documented,) = re.findall("```toml\n(.*?)```", text, re.S)
        study = STUDY.replace('["F", "M"]', '["F", "M", "NR"]').replace('"18-24", "25-64"', '"18-64"')
        study = study.replace("Bourgogne-Franche-Comté", "Franche-Comté")
        found = parse(documented, study=study)
        assert set(found.columns) == {"gender", "age", "region"}
        assert found.compiled(definition(study)).tables["age"].code_of(b"1999") == 1


@pytest.mark.django_db(databases=["default", "vault"])
class TestByName:
    COLUMNS = {"gender": "gender", "age": "age", "region": "region"}

    def test_attributes_may_come_in_their_own_file_with_or_without_a_section(self):
        study = stored(WITH_SECTION)
        assert find_profile(study, "default").columns == {}
        people = find_profile(study, "subscribers")
        assert (people.kind, people.subscriber) == ("subscribers", "who")
        assert (people.timestamp, people.cell, people.columns) == (None, None, self.COLUMNS)
        assert (people.delimiter, str(people.max_bad_share)) == ("pipe", "0.25")
        study.delete()
        study = stored(SEPARATE)
        assert find_profile(study, "subscribers").subscriber == "msisdn"
        found = find_profile(study, "opt-out")
        assert (found.kind, found.subscriber, found.columns) == ("opt_out", "msisdn", {})

    def test_a_study_without_static_indicators_has_nothing_to_learn_of_subscribers(self):
        daily = '[[indicator]]\nslug = "stay"\nkind = "daily"\nderive = "visit_duration"\n'
        head, tail = STUDY.split("[[indicator]]", 1)[0], STUDY[STUDY.index("[area]") :]
        study = stored(head + daily + tail)
        assert profile_names(study) == ["default", "opt-out"]
        with pytest.raises(ProfileMissingError):
            find_profile(study, "subscribers")

    def test_a_made_profile_is_compiled_and_of_its_study_alone(self):
        study = stored()
        other = stored(STUDY.replace('slug = "fair"', 'slug = "other"', 1), key_id="k2")
        typed = parse(PROFILE)
        create_profile(typed, study=study, by="olga")
        found = find_profile(study, "operator-x")
        assert found == typed.compiled(definition()) == find_profile(study, "operator-x", definition())
        assert profile_names(study) == ["default", "subscribers", "opt-out", "operator-x"]
        words = "study 'other' has no profile 'operator-x'; profiles: default, subscribers, opt-out"
        with pytest.raises(ProfileMissingError, match=words):
            find_profile(other, "operator-x")


# --- meanings of texts
CATEGORIES = ("F", "M", "été", "<18", "18+")
TEXTS = [
    "H", "h", "F", "f", "m", "25", "2500", "25000", "x", "", " H ", "ß", "SS", "ÉTÉ", "Été", "été", "été\t",
]  # fmt: skip
PREFIXED = ["25000", "25", "2", "H1x", "h1", "H2", "éé", "2é5", "", " 25 1"]
BANDS = {"young": (0, 17), "grown": (18, 64), "old": (65, None)}

categories = st.sampled_from([*CATEGORIES, ""])
otherwise = st.sampled_from([None, "", "M"])


def meaning(text, rule):
    """Category, "" for no answer, None for a rejected row: by the words of the rule, one text at a time."""
    text = text.strip()
    if not text:
        return ""
    if rule.prefix:
        text = text[: rule.prefix]
    for key, category in rule.values.items():
        if same(text, key, rule):
            return category
    if not rule.prefix:
        for category in CATEGORIES:
            if same(text, category, rule):
                return category
    return rule.otherwise


def same(text, key, rule):
    if not rule.ignore_case or text == key or len(text) != len(key):
        return text == key
    return all(a in (b, b.lower(), b.upper()) for a, b in zip(text, key, strict=True))


def looked_up(text, rule):
    code = rule.compiled(CATEGORIES).code_of(text.encode())
    return None if code is None else "" if code == NO_ANSWER else CATEGORIES[code]


def ages_of(reference, pattern=BIRTH_YEAR, bands=BANDS):
    return dict(BirthRule(reference=reference, bands=bands, pattern=pattern).texts())


class TestTexts:
    @example({"m": "F"}, True, None, "M")
    @given(
        st.dictionaries(st.sampled_from(["H", "25", "Été", "m", "ß", "2019"]), categories, max_size=4),
        st.booleans(), otherwise, st.sampled_from(TEXTS),
    )  # fmt: skip
    def test_whole_ones(self, values, ignore_case, otherwise, text):
        rule = ValueRule(values=values, ignore_case=ignore_case, otherwise=otherwise)
        if case_problem(rule, CATEGORIES) is None:
            assert looked_up(text, rule) == meaning(text, rule)

    @given(
        st.dictionaries(st.sampled_from(["25", "H1", "h2", "75"]), categories), st.booleans(), otherwise,
        st.sampled_from(PREFIXED),
    )  # fmt: skip
    def test_prefixes(self, values, ignore_case, otherwise, text):
        rule = ValueRule(values=values, ignore_case=ignore_case, otherwise=otherwise, prefix=2)
        assert looked_up(text, rule) == meaning(text, rule)

    @pytest.mark.parametrize(
        ("rule", "categories", "problem"),
        [(ValueRule(ignore_case=True), ["F", "M"], None),
         (ValueRule(ignore_case=True), ["twelveletter"], None),
         (ValueRule(ignore_case=True), ["thirteenletter"], 'must be false: "thirteenletter" has more than 12 letters; list its spellings under values'),
         (ValueRule(ignore_case=True, prefix=2, values={"25": "thirteenletter"}), ["thirteenletter"], None),
         (ValueRule(ignore_case=True, values={"h": "M", "H": "F"}), ["F", "M"], 'must be false: "h" and "H" differ only in case'),
         (ValueRule(ignore_case=True), ["f", "F"], 'must be false: "f" and "F" differ only in case'),
         (ValueRule(), ["f", "F", "thirteenletter"], None),
         (ValueRule(ignore_case=True), [f"{i}twelveletter" for i in range(50)], "must be false: the values have more than 200,000 possible spellings")],
    )  # fmt: skip
    def test_case_can_be_ignored_where_it_is_exact(self, rule, categories, problem):
        assert case_problem(rule, categories) == problem


class TestAges:
    @pytest.mark.parametrize(
        ("born", "reference", "band"),
        [("1999-05-31", date(2017, 5, 31), "grown"), ("1999-06-01", date(2017, 5, 31), "young"),
         ("2000-02-29", date(2018, 2, 28), "young"), ("2000-02-29", date(2018, 3, 1), "grown"),
         ("1952-05-31", date(2017, 5, 31), "old"), ("1952-06-01", date(2017, 5, 31), "grown")],
    )  # fmt: skip
    def test_on_the_birthday_itself(self, born, reference, band):
        assert ages_of(reference, "%Y-%m-%d")[born] == band

    def test_nobody_is_born_after_the_reference_date(self):
        found = ages_of(date(2017, 5, 31), "%Y%m%d")
        assert (min(found), max(found)) == ("18800101", "20170531")
        assert len(found) == (date(2017, 5, 31) - date(1880, 1, 1)).days + 1

    def test_a_birth_year_gives_the_age_of_that_year(self):
        found = ages_of(date(2017, 1, 1))
        years = ["1880", "1952", "1953", "1999", "2000", "2017"]
        assert [found[year] for year in years] == ["old", "old", "grown", "grown", "young", "young"]
        assert len(found) == 138
        within = ages_of(date(2017, 1, 1), bands={"all": (0, 120)})
        assert min(within) == "1897"  # ages without a band have no text

    @pytest.mark.parametrize(
        ("bands", "problem"),
        [({"a": (0, 17), "b": (18, None)}, None),
         ({"b": (18, 120), "a": (0, 17)}, None),
         ({"a": (0, 17), "b": (19, None)}, "must cover every age from 0 to 120: no age range contains age 18"),
         ({"b": (18, None)}, "must cover every age from 0 to 120: no age range contains ages 0 to 17"),
         ({"a": (0, 17), "b": (18, 99)}, "must cover every age from 0 to 120: no age range contains ages 100 to 120"),
         ({"a": (0, 18), "b": (18, None)}, 'must not overlap: "a" and "b" both contain age 18'),
         ({"a": (0, None), "b": (18, 24)}, 'must not overlap: "a" and "b" both contain ages 18 to 24'),
         ({"a": (0, 50), "b": (40, None)}, 'must not overlap: "a" and "b" both contain ages 40 to 50'),
         ({}, "must cover every age from 0 to 120: no age range contains ages 0 to 120")],
    )  # fmt: skip
    def test_every_age_has_one_band(self, bands, problem):
        assert ages.bands_problem(bands) == problem

    @pytest.mark.parametrize(
        ("patterns", "problem"),
        [(["%Y-%m-%d", "%d/%m/%Y", "%Y%m%d", "%d.%m.%Y", "%d%m%Y"], None),
         (["", "%Y", "%d/%m", "%d/%d/%Y", "%d %m %Y", "%d/%m/%Y%H", "%d--%m-%Y", "{}%d%m%Y"], PATTERN_RULE)],
    )  # fmt: skip
    def test_patterns_of_dates(self, patterns, problem):
        found = {pattern: ages.pattern_problem(pattern) for pattern in patterns}
        assert found == dict.fromkeys(patterns, problem)
