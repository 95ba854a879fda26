"""Study files: what is accepted, and that everything else is refused with file, key, rule and value."""
# ruff: noqa: E501  (a table reads best with one rule a line)

import hashlib
import json
import re
from dataclasses import replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import get_args

import pytest
from django.utils import translation

from ldp import GrrChannel, PlanSpec, code_channel
from ldp.privacy.moves import MoveSpec
from ldp.privacy.plans import Mechanism
from ldp.privacy.presence import PresenceSpec
from ldp.protocols.numbers.threshold import Scale
from reports.studies.studyfile import VISIT_DURATION_BANDS, Cell, StudyDefinition, StudyFileError, parse_study
from reports.studies.studyfile.formats import DELIMITERS, TIMESTAMP_RULE, pattern_parts, timestamp_problem
from reports.studies.studyfile.origins import COUNTRY_CODES, NO_COUNTRY
from reports.studies.studyfile.redraft import read_tables, tables_of
from reports.transfer.messages import public_part
from reports.transfer.studies import plan_hash
from tests.study_text import columns, daily, joint, origin, static, study_text

STUDY = study_text(
    static("age_band", "young", "old", column="age"), daily("visit_duration"),
    slug="fair-2024", name="Fair 2024", first_day="2024-03-30", extract=columns(),
)  # fmt: skip
AREA = '[area]\ncells = "cells.csv"\n'
CELLS_ALONE = STUDY.replace('timestamp = "time"', 'timestamp = "time"\ncell = "cell"') + AREA
WITH_AREA = CELLS_ALONE + 'zones = "zones.geojson"\n'
OWN = ('column = "age"', 'column = "age"\nepsilon = 0.5')
WEIGHT = ('column = "age"', 'column = "age"\nweight = 2')
PRESENCE = ("epsilon = 1.0", "epsilon = 1.0\npresence_epsilon = 0.5\npresence_days = 2")
CELLS = "cell_id,lon,lat,zone,valid_from,valid_to\nA,6.8,47.6,Centre,,\nB,6.9,47.7,,2024-03-31,2024-04-01\n"
SQUARE = [[[0, 0], [0, 1], [1, 1], [0, 0]]]


def zone(name: object, **geometry: object) -> dict[str, object]:
    shape = {"type": "Polygon", "coordinates": SQUARE, **geometry}
    return {"type": "Feature", "properties": {"zone": name}, "geometry": shape}


def zones(*features: object) -> str:
    return json.dumps({"type": "FeatureCollection", "features": list(features)})


def parse(text: str | bytes, **files: str | bytes) -> StudyDefinition:
    given = {name.replace("_", "."): data for name, data in files.items()}

    def read(name: str) -> bytes:
        if name not in given:
            raise FileNotFoundError(name)
        data = given[name]
        return data if isinstance(data, bytes) else data.encode()

    return parse_study(text if isinstance(text, bytes) else text.encode(), filename="study.toml", read=read)


def problems(text: str | bytes, **files: str | bytes) -> list[str]:
    with pytest.raises(StudyFileError) as caught:
        parse(text, **files)
    assert str(caught.value) == "\n".join(str(problem) for problem in caught.value.problems)
    return str(caught.value).split("\n")


def edited(*pairs: str, text: str = STUDY) -> str:
    for old, new in zip(pairs[::2], pairs[1::2], strict=True):
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in the study file"
        text = text.replace(old, new)
    return text


def through_json(study: StudyDefinition) -> StudyDefinition:
    return StudyDefinition.from_json(json.loads(json.dumps(study.to_json())))


def test_a_valid_file_says_what_it_says() -> None:
    study = parse(STUDY)
    assert (study.slug, study.name, study.timezone) == ("fair-2024", "Fair 2024", "Europe/Paris")
    assert (study.first_day, study.days, study.n_windows) == (date(2024, 3, 30), 3, 6)
    assert (study.visitor.min_minutes, study.visitor.from_minute, study.visitor.to_minute) == (60, 360, 1439)
    assert (study.extract.subscriber, study.extract.timestamp, study.extract.cell) == ("msisdn", "time", None)
    age, duration = study.indicators
    assert (age.name, age.column, age.categories) == ("Age band", "age", ("young", "old"))
    assert (duration.column, duration.derive, duration.max_values) == (None, "visit_duration", None)
    assert duration.categories == VISIT_DURATION_BANDS


def test_what_is_optional_has_its_documented_default() -> None:
    study = parse(STUDY)
    assert (study.expected_subscribers, study.market_share) == (None, Decimal(1))
    assert (study.min_publication, study.small_cell, study.extract.max_bad_share) == (100, 0, Decimal("0.05"))
    assert (study.extract.delimiter, study.extract.timestamp_format) == (None, "iso")
    assert (study.extract.attributes, study.subscribers) == ("inline", None)
    assert (study.plan.epsilon_profile, study.area) == (None, None)
    assert (study.population, study.key_until) == ("subscribers", None)
    other = parse_study(STUDY.encode(), filename="study.toml", read=lambda _: b"", default_min_publication=7)
    assert other.min_publication == 7
    stored = study.to_json()  # a definition of an earlier version
    for name in ("population", "key_until", "subscribers", "location"):
        del stored[name]
    for name in ("delimiter", "timestamp_format", "attributes"):
        del stored["extract"][name]
    for indicator in stored["indicators"]:
        del indicator["night_from"], indicator["night_to"]
    assert StudyDefinition.from_json(stored) == study
    # Which leaves hashes of earlier definitions as they are.
    assert not {"tallies", "epsilon_first", "hash_cells"} & set(stored["plan"])


def test_optional_values_are_taken_exactly() -> None:
    more = "market_share = 0.1\nmin_publication = 40\nsmall_cell = 20\nexpected_subscribers = 9"
    text = edited(
        "days = 3", f"days = 3\n{more}",
        'timestamp = "time"', 'timestamp = "time"\nmax_bad_share = 0.0',
        'derive = "visit_duration"', 'derive = "visit_duration"\nmax_values = 2',
        'column = "age"', 'column = "age"\nepsilon = 0.00000001\nname = "Âge"',
        "epsilon = 1.0", 'epsilon = 1.0\nepsilon_profile = 2\ntallies = ["runs", "visits"]',
    )  # fmt: skip
    with pytest.raises(StudyFileError, match="epsilon of one answer"):
        parse(text)  # the library's own limit is reported too
    study = parse(text.replace("0.00000001", "0.3"))
    assert (study.market_share, study.min_publication, study.expected_subscribers) == (Decimal("0.1"), 40, 9)
    assert (study.small_cell, study.extract.max_bad_share) == (20, 0)
    age, duration = study.indicators
    assert (age.epsilon, age.name, duration.max_values) == (Decimal("0.3"), "Âge", 2)
    assert (study.plan.epsilon_profile, study.plan.tallies) == (2, ("visits", "runs"))
    assert through_json(study) == study


def test_keys_of_hashed_values_are_taken_exactly() -> None:
    study = parse(edited('smp-grr"', 'smp-loloha"\nepsilon_first = 0.3\nhash_cells = "optimal"'))
    assert study.plan_spec().to_json()["first"] == {"epsilon": "3/10", "cells": "optimal"}
    assert through_json(study) == study
    assert read_tables(tables_of(study), like=study) == study
    plain = parse(edited('smp-grr"', 'smp-loloha"'))
    assert plain.plan_spec().to_json()["first"] == {"epsilon": None, "cells": "two"}


def test_a_stream_has_a_window_from_which_the_days_of_answers_follow() -> None:
    study = parse(edited('smp-grr"', 'smp-stream"\nwindow_days = 2'))
    assert study.plan_spec().to_json()["window_days"] == 2
    assert study.answered_days() == {"age_band": None, "visit_duration": 2}
    assert through_json(study) == study
    assert read_tables(tables_of(study), like=study) == study
    plain = parse(edited('smp-grr"', 'smp-stream"'))
    assert (plain.plan.window_days, plain.plan_spec().window_days) == (None, 3)
    assert "window_days" not in parse(STUDY).to_json()["plan"]


def test_what_keeps_answers_to_daily_values_is_no_stream() -> None:
    daily = 'derive = "visit_duration"'
    for new, expected in (
        (
            f"{daily}\nmax_values = 2",
            "max_values: must be absent under smp-stream: it follows from window_days",
        ),
        (f'{daily}\nunit = "min"\ncuts = [60, 120]', "kind: must not be number with derive under smp-stream"),
    ):
        pairs = [daily, new, 'smp-grr"', 'smp-stream"']
        if "cuts" in new:
            pairs += ['kind = "daily"', 'kind = "number"']
        found = problems(edited(*pairs))
        assert any(expected in line for line in found), found


def test_a_population_and_the_day_of_the_key_s_end() -> None:
    text = edited("days = 3", 'days = 3\npopulation = "roamers-be"\nkey_until = 2024-04-01')
    study = parse(text)
    assert (study.population, study.key_until) == ("roamers-be", date(2024, 4, 1))
    assert (study.last_day, through_json(study)) == (date(2024, 4, 1), study)
    early = problems(edited("2024-04-01", "2024-03-31", text=text))
    assert early == ["study.toml: study.key_until: must be from 2024-04-01 to 2299-12-31, got 2024-03-31"]
    assert "study.population: must be 1 to 64" in problems(edited("roamers-be", "All people", text=text))[0]


def test_the_plan_is_the_library_s_with_exact_epsilons() -> None:
    plan = parse(edited("epsilon = 1.0", "epsilon = 0.1")).plan_spec()
    assert [spec.epsilon for spec in plan.indicators] == [Fraction(1, 10)] * 2
    assert [spec.domain_size for spec in plan.indicators] == [2, 10]
    assert (plan.mechanism, plan.unit, plan.version, plan.days) == ("smp-grr", "profile", 1, 3)
    split = parse(edited("smp-grr", "spl-grr")).plan_spec(version=4)
    assert [spec.epsilon for spec in split.indicators] == [Fraction(1, 2)] * 2
    assert (split.version, split.presence) == (4, None)
    noisy = parse(edited(*PRESENCE))
    assert noisy.plan_spec().presence == PresenceSpec(epsilon=Fraction(1, 2), max_days=2)
    assert through_json(noisy) == noisy
    weighted = parse(edited(*WEIGHT)).plan_spec()
    assert weighted.asked_share(weighted.index("age_band")) == pytest.approx(2 / (weighted.d + 1))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('slug = "fair-2024"', 'slug = "Fair 2024"', 'study.slug: must be 1 to 64 lower-case letters, digits, - and _, with a letter or digit at both ends, got "Fair 2024"'),
        ('slug = "fair-2024"', f'slug = "{"a" * 65}"', "study.slug: must be 1 to 64"),
        ('slug = "fair-2024"', 'slug = "create"', 'study.slug: is a reserved address of this site: choose another, got "create"'),
        ('name = "Fair 2024"', "", "study.name: is missing"),
        ('name = "Fair 2024"', 'name = " "', 'study.name: must not be empty, got " "'),
        ('name = "Fair 2024"', 'name = "a\\nb"', 'study.name: must be one line of printable characters, got "a\\nb"'),
        ("Europe/Paris", "Europe/Pari", 'study.timezone: must be a name of the IANA time zone database, such as Europe/Paris, did you mean "Europe/Paris"?, got "Europe/Pari"'),
        ("Europe/Paris", "UTC+2", 'got "UTC+2"'),
        ("2024-03-30", '"2024-03-30"', 'study.first_day: must be a date without quotes, such as 2017-05-31, got "2024-03-30"'),
        ("2024-03-30", "2024-03-30T10:00:00", "study.first_day: must be a date without quotes"),
        ("2024-03-30", "1789-07-14", "study.first_day: must be from 1990-01-01 to 2199-12-31, got 1789-07-14"),
        ("days = 3", "days = 0", "study.days: must be a whole number from 1 to 62, got 0"),
        ("days = 3", "days = 63", "study.days: must be a whole number from 1 to 62, got 63"),
        ("days = 3", "days = true", "study.days: must be a whole number from 1 to 62, got true"),
        ("days = 3", "days = 3\nmarket_share = 0", "study.market_share: must be a number > 0 and <= 1, got 0"),
        ("days = 3", "days = 3\nmarket_share = 1.01", "study.market_share: must be a number > 0 and <= 1, got 1.01"),
        ("days = 3", "days = 3\nmin_publication = 0", "study.min_publication: must be a whole number from 1 to"),
        ("days = 3", "days = 3\nexpected_subscribers = 0", "study.expected_subscribers: must be a whole number from 1 to"),
        ("days = 3", "days = 3\nmarket_shares = 1", 'study.market_shares: unknown key, did you mean "market_share"?'),
        ("days = 3", "days = 3\nzzz = 1", "study.zzz: unknown key, known here: kind, visitor, slug"),
        ("min_minutes = 60", "min_minutes = 1080", "study.visitor.min_minutes: must be a whole number from 0 to 1079, got 1080"),
        ('from = "06:00"', 'from = "6:00"', 'study.visitor.from: must be a time such as "06:00", from "00:00" to "23:59", got "6:00"'),
        ('to = "23:59"', 'to = "24:00"', 'study.visitor.to: must be a time such as "06:00", from "00:00" to "23:59", got "24:00"'),
        ('to = "23:59"', 'to = "06:00"', 'study.visitor.to: must be later than study.visitor.from, got "06:00"'),
        ('subscriber = "msisdn"', 'subscriber = "time"', 'extract.timestamp: must be its own column, but extract.subscriber uses it, got "time"'),
        ('column = "age"', 'column = "msisdn"', 'indicator[age_band].column: must be its own column, but extract.subscriber uses it, got "msisdn"'),
        ('timestamp = "time"', 'timestamp = "time"\nmax_bad_share = 2', "extract.max_bad_share: must be a number from 0 to 1, got 2"),
        ("smp-grr", "grr", 'plan.mechanism: must be one of smp-grr, spl-grr, smp-oue, smp-adp, smp-question, smp-loloha, smp-allomfree, smp-stream, rsfd-grr, rsfd-ouez, rsfd-adp, got "grr"'),
        ('unit = "profile"', 'unit = "person"', 'plan.unit: must be one of profile, attribute, got "person"'),
        ("epsilon = 1.0", "epsilon = 0", "plan.epsilon: must be a number > 0 and <= 20 (above 20 an answer is as good as the raw value), got 0"),
        ("epsilon = 1.0", "epsilon = 20.1", "plan.epsilon: must be a number > 0 and <= 20"),
        ("epsilon = 1.0", "epsilon = inf", "plan.epsilon: must be a number > 0 and <= 20"),
        ("epsilon = 1.0", "epsilon = 1e99999999999999999999", "plan.epsilon: must be a number > 0 and <= 20"),
        ("epsilon = 1.0", "epsilon = 0.123456789", "plan.epsilon: must have at most 8 decimals, got 0.123456789"),
        ("epsilon = 1.0", "epsilon = 1e-999999999", "plan.epsilon: must have at most 8 decimals, got 1E-999999999"),
        ("epsilon = 1.0", "epsilon = 1.0\nepsilon_profile = 2.9", "plan.epsilon_profile: epsilon_profile must be >= the certified loss per profile 3, got 2.9"),
        ('smp-grr"', 'smp-loloha"\nepsilon_first = 1', "plan: epsilon_first must be below the epsilon of visit_duration, 1, got 1"),
        ('smp-grr"', 'smp-loloha"\nepsilon_first = 0', "plan.epsilon_first: must be a number > 0 and <= 20"),
        ('smp-grr"', 'smp-loloha"\nhash_cells = 3', "plan.hash_cells: must be one of two, optimal, got 3"),
        ('smp-grr"', 'smp-grr"\nhash_cells = "two"', "plan: epsilon_first and hash_cells must be absent under smp-grr: use smp-loloha"),
        ('smp-grr"', 'smp-grr"\nwindow_days = 3', "plan: window_days must be absent under smp-grr: use smp-stream"),
        ('smp-grr"', 'smp-stream"\nwindow_days = 4', "plan: window_days must be in [1, 3], got 4"),
        ('smp-grr"', 'smp-stream"\nwindow_days = 0', "plan.window_days: must be a whole number from 1 to 62, got 0"),
        ("epsilon = 1.0", 'epsilon = 1.0\ntallies = "visits"', 'plan.tallies: must be a list of some of visits, runs, got "visits"'),
        ("epsilon = 1.0", 'epsilon = 1.0\ntallies = ["weeks"]', "plan.tallies: must be a list of some of visits, runs, got"),
        (PRESENCE[0], PRESENCE[1] + '\ntallies = ["visits"]', "plan: tallies must be absent with presence_epsilon: they are exact"),
        ("epsilon = 1.0", "epsilon = 1.0\npresence_epsilon = 1", "plan.presence_days: is missing"),
        ("epsilon = 1.0", "epsilon = 1.0\npresence_days = 2", "plan.presence_epsilon: is missing"),
        ("epsilon = 1.0", "epsilon = 1.0\npresence_epsilon = 0\npresence_days = 2", "plan.presence_epsilon: must be a number from 0.001 to 20, got 0"),
        ("epsilon = 1.0", "epsilon = 1.0\npresence_epsilon = 1\npresence_days = 4", "plan: presence_days must be in [1, 3], got 4"),
        ('smp-grr"', 'smp-oue"\npresence_epsilon = 1\npresence_days = 2', "plan: presence_epsilon must be absent under smp-oue: a report on"),
        ('smp-grr"', 'rsfd-grr"\npresence_epsilon = 1\npresence_days = 2', "plan: presence_epsilon must be absent under rsfd-grr: a person sends a report on each indicator"),
        ('slug = "age_band"', 'slug = "visit_duration"', 'indicator[2].slug: must be unique in the study, got "visit_duration"'),
        ('slug = "age_band"', 'slug = "statement"', 'indicator[statement].slug: is a reserved address of this site: choose another, got "statement"'),
        ('slug = "age_band"', "", "indicator[1].slug: is missing"),
        ('kind = "static"', 'kind = "weekly"', 'indicator[age_band].kind: must be one of static, daily, number, got "weekly"'),
        ('column = "age"', "", "indicator[age_band].column: is missing"),
        ('column = "age"', 'column = "age"\nmax_values = 1', "indicator[age_band].max_values: must be absent: only a daily indicator has several values, got 1"),
        ('column = "age"', 'column = "age"\nderive = "x"', 'indicator[age_band].derive: must be absent, or visitor_category: a static indicator reads a column, got "x"'),
        ('column = "age"', 'column = "age"\nhome = ["93"]', "indicator[age_band].home: must be absent: only visitor_category has it"),
        ('column = "age"', 'column = "age"\nepsilon = -1', "indicator[age_band].epsilon: must be a number > 0 and <= 20"),
        ('["young", "old"]', '["young"]', "indicator[age_band].categories: must be a list of 2 to 65534 texts in a study of 3 days, got 1"),
        ('["young", "old"]', '"young"', 'indicator[age_band].categories: must be a list of 2 to 65534 texts in a study of 3 days, got "young"'),
        ('["young", "old"]', '["young", "young"]', 'indicator[age_band].categories[2]: must be unique in the indicator, got "young"'),
        ('["young", "old"]', '["so young", "so\u00a0young"]', 'indicator[age_band].categories[2]: must differ from the others by more than the kind of its spaces, got "so\u00a0young"'),
        ('["young", "old"]', '["young", "two\u2028lines"]', 'indicator[age_band].categories[2]: must be one line of printable characters'),
        ('["young", "old"]', '["young", " old"]', 'indicator[age_band].categories[2]: must not start or end with spaces, got " old"'),
        ('["young", "old"]', '["young", ""]', 'indicator[age_band].categories[2]: must not be empty, got ""'),
        ('["young", "old"]', '["young", 5]', "indicator[age_band].categories[2]: must be a text in quotes, got 5"),
        ('name = "Fair 2024"', 'name = "Fair"\nname_fr = " "', 'study.name_fr: must not be empty, got " "'),
        ('column = "age"', 'column = "age"\nname_fr = 5', "indicator[age_band].name_fr: must be a text in quotes, got 5"),
        ('column = "age"', 'column = "age"\ncategories_fr = "jeunes"', 'indicator[age_band].categories_fr: must be a list of 2 texts: a French name for each category, in their order, got "jeunes"'),
        ('column = "age"', 'column = "age"\ncategories_fr = ["jeunes"]', "indicator[age_band].categories_fr: must be a list of 2 texts: a French name for each category, in their order, got 1"),
        ('column = "age"', 'column = "age"\ncategories_fr = ["jeunes", "jeunes"]', 'indicator[age_band].categories_fr[2]: must be unique in the indicator, got "jeunes"'),
        ('column = "age"', f'column = "age"\ncategories_fr = ["jeunes", "{"x" * 201}"]', "indicator[age_band].categories_fr[2]: must have at most 200 characters"),
        ('derive = "visit_duration"', 'derive = "main_zone"\ncategories_fr = ["a", "b"]', "indicator[visit_duration].categories_fr: must be absent: zones have French names as name_fr in their file"),
        ('column = "age"', 'column = "age"\ngroups = ["young"]', "indicator[age_band].groups: must be a table, got a list"),
        ('column = "age"', 'column = "age"\ngroups = {all = "young"}', 'indicator[age_band].groups.all: must be a list of categories of this indicator, got "young"'),
        ('column = "age"', 'column = "age"\ngroups = {all = ["yong"]}', 'indicator[age_band].groups.all: unknown key, did you mean "young"?'),
        ('column = "age"', 'column = "age"\ngroups = {all = ["young", "old"], some = ["old"]}', 'indicator[age_band].groups.some: must not have a category of the group all again, got "old"'),
        ('column = "age"', 'column = "age"\ngroups = {old = ["young"]}', "indicator[age_band].groups.old: must differ from the categories"),
        ('column = "age"', 'column = "age"\ngroups = {all = []}', "indicator[age_band].groups.all: must have at least one category, got a list"),
        ('derive = "visit_duration"', "", 'indicator[visit_duration].derive: is missing, must be one of visit_duration, main_zone, night_zone, moves, visited_zones, visited_pairs'),
        ('derive = "visit_duration"', 'derive = "work_zone"', 'indicator[visit_duration].derive: must be one of visit_duration, main_zone, night_zone, moves, visited_zones, visited_pairs, first_hour, last_hour, busiest_hour, got "work_zone"'),
        ('derive = "visit_duration"', 'derive = "visit_duration"\nmax_values = 4', "indicator[visit_duration].max_values: must be a whole number from 1 to 3, got 4"),
        ('derive = "visit_duration"', 'derive = "visit_duration"\nmax_values = 0', "indicator[visit_duration].max_values: must be a whole number from 1 to 3, got 0"),
        ('derive = "visit_duration"', 'derive = "visit_duration"\ncolumn = "x"', 'indicator[visit_duration].column: must be absent: a daily indicator is derived from the events of the day, got "x"'),
        ('derive = "visit_duration"', 'derive = "visit_duration"\ncategories = ["a", "b"]', "indicator[visit_duration].categories: must be absent: the bands of a derived indicator are fixed, got a list"),
        ("[study.visitor]", "[study.visitors]", 'study.visitors: unknown key, did you mean "visitor"?'),
        ('timestamp = "time"', 'timestamp = "time"\ndelimiter = ";"', 'extract.delimiter: must be one of comma, semicolon, tab, pipe, got ";"'),
        ('timestamp = "time"', 'timestamp = "time"\ntimestamp_format = "%d/%m/%Y"', f'extract.timestamp_format: {TIMESTAMP_RULE}, got "%d/%m/%Y"'),
        ('timestamp = "time"', 'timestamp = "time"\ntimestamp_format = 5', "extract.timestamp_format: must be a text in quotes, got 5"),
        ("[extract]", "[extracts]", "extract: is missing"),
    ],
)  # fmt: skip
def test_a_broken_rule_is_named_with_file_key_and_value(old, new, expected) -> None:
    found = problems(edited(old, new))
    assert any(expected in line for line in found), found
    assert all(line.startswith("study.toml: ") for line in found)


def test_names_may_have_the_hard_spaces_of_french_typography() -> None:
    text = edited(
        '["young", "old"]', '["18\u202f\u00e0\u202f24\u00a0ans", "\u00ab\u00a0vieux\u00a0\u00bb"]',
        'slug = "age_band"', 'slug = "age_band"\nname = "\u00c2ge\u00a0: en ann\u00e9es"',
    )  # fmt: skip
    age = parse(text).indicators[0]
    assert age.name == "\u00c2ge\u00a0: en ann\u00e9es"
    assert age.categories == ("18\u202f\u00e0\u202f24\u00a0ans", "\u00ab\u00a0vieux\u00a0\u00bb")


def test_french_names_and_groups_change_no_plan_and_names_are_shown_in_french() -> None:
    text = edited(
        'name = "Fair 2024"', 'name = "Fair 2024"\nname_fr = "Foire 2024"',
        'column = "age"', 'column = "age"\nname_fr = "Tranche d\'âge"\ncategories_fr = ["jeunes", "vieux"]'
        '\ngroups = {all = ["young", "old"]}',
    )  # fmt: skip
    study, plain = parse(text), parse(STUDY)
    assert (study.plan_spec(), through_json(study)) == (plain.plan_spec(), study)
    assert study.indicators[0].groups == (("all", ("young", "old")),)
    assert read_tables(tables_of(study), like=study) == study
    assert not re.search(
        '_fr"|groups', json.dumps(plain.to_json())
    )  # so that hashes of definitions stay what they were
    names = {"en": ["Fair 2024", "Age band", "young", "old"]}
    for language, expected in (names | {"fr": ["Foire 2024", "Tranche d'âge", "jeunes", "vieux"]}).items():
        with translation.override(language):
            age, duration = study.indicators
            assert [study.shown_name, age.shown_name, *age.shown_categories] == expected
            assert (plain.shown_name, duration.shown_name) == ("Fair 2024", "Visit duration")
            assert duration.shown_categories[0] == {"en": "1 to 2 hours", "fr": "1 à 2 heures"}[language]


TWO_PARTS = '["age_band", "home"]\n'
WITH_JOINT = STUDY + static("home", "near", "far") + joint("both", "age_band", "home")


def test_a_joint_indicator_has_all_combinations_as_categories_in_both_languages() -> None:
    french = 'column = "age"\ncategories_fr = ["jeunes", "vieux"]'
    study = parse(edited('column = "age"', french, text=WITH_JOINT))
    both = study.indicators[-1]
    assert both.categories == (
        "young / near", "young / far", "young / no value", "old / near", "old / far", "old / no value",
        "no value / near", "no value / far", "no value / no value",
    )  # fmt: skip
    assert both.categories_fr[:3] == ("jeunes / near", "jeunes / far", "jeunes / sans valeur")
    assert study.plan_spec().indicators[-1].parts == both.parts == ("age_band", "home")
    assert through_json(study) == study == read_tables(tables_of(study), like=study)
    assert "parts" not in json.dumps(parse(STUDY).to_json())  # so that hashes stay what they were


def test_a_joint_indicator_with_a_daily_part_is_daily() -> None:
    text = WITH_JOINT.replace('"age_band", "home"', '"home", "visit_duration"')
    both, apart = text.rsplit('kind = "static"', 1), 'timestamp = "time"\nattributes = "subscribers"\n'
    daily = 'kind = "daily"\nmax_values = 2'.join(both)
    study = parse(daily)
    assert (study.indicators[-1].max_values, len(study.indicators[-1].categories)) == (2, 3 * 11)
    assert read_tables(tables_of(study), like=study) == study
    assert problems(daily.replace('timestamp = "time"\n', apart)) == [
        'study.toml: indicator[both].parts: needs extract.attributes = "inline" to combine static indicators '
        "with daily ones, got a list"
    ]


MANY_OF_BOTH = "[" + ", ".join(f'"c{i}"' for i in range(22_000)) + "]"


NUMBER = (
    STUDY.replace(daily("visit_duration"), "")
    + '[[indicator]]\nslug = "spent"\nkind = "number"\ncolumn = "spent"\nunit = "EUR"\ncuts = [10, 20, 50]\n'
    '[[indicator]]\nslug = "stay"\nkind = "number"\nderive = "visit_duration"\nmax_values = 2\nunit = "min"\n'
    "cuts = [60, 90]\nminimum = 30\n"
)


def test_numbers_have_a_category_for_each_cut_in_both_languages() -> None:
    study = parse(NUMBER)
    spent, stay = study.indicators[-2:]
    assert (spent.kind, spent.column) == ("static", "spent")
    assert (stay.kind, stay.derive) == ("daily", "visit_duration")
    assert spent.categories == ("10 EUR or more", "20 EUR or more", "50 EUR or more")
    assert stay.categories_fr == ("60 min ou plus", "90 min ou plus")
    scale = Scale(cuts=(60, 90), minimum=30, unit="min")
    assert study.plan_spec().indicators[-1].scale == stay.scale == scale
    assert (stay.max_values, spent.scale.minimum) == (2, 0)
    assert through_json(study) == study == read_tables(tables_of(study), like=study)
    assert "scale" not in json.dumps(parse(STUDY).to_json())  # so that hashes stay what they were


def test_a_unit_is_not_called_wrong_because_the_cuts_are() -> None:
    (found,) = problems(edited("[60, 90]", "[60, 90.5]", text=NUMBER))
    assert "stay].cuts: must be a list" in found


def test_numbers_that_are_given_once_can_be_reported_by_the_square_wave() -> None:
    plain = parse(NUMBER)
    for old in ('column = "spent"\n', 'derive = "visit_duration"\nmax_values = 1\n'):
        once = NUMBER.replace("max_values = 2", "max_values = 1")
        study = parse(once.replace(old, f'{old}report = "wave"\n'))
        assert [each.is_wave for each in study.plan_spec().indicators].count(True) == 1
        assert through_json(study) == study == read_tables(tables_of(study), like=study)
    named = parse(NUMBER.replace('column = "spent"\n', 'column = "spent"\nreport = "threshold"\n'))
    assert named == plain
    assert "report" not in json.dumps(plain.plan_spec().to_json())


def test_waves_are_refused_where_a_person_answers_on_several_days_or_as_parts() -> None:
    found = problems(edited("max_values = 2", 'max_values = 2\nreport = "wave"', text=NUMBER))
    (line,) = [each for each in found if "stay].report" in each]
    assert 'must be "threshold" where a person may answer on 2 days' in line
    assert "set max_values = 1" in line
    found = problems(edited('column = "spent"\n', 'column = "spent"\nreport = "waves"\n', text=NUMBER))
    assert [each for each in found if "spent].report: must be one of threshold, wave" in each]
    found = problems(edited('column = "spent"\n', 'column = "spent"\nreport = "wave"\n', text=BY_AGE))
    assert [each for each in found if 'parts: must not name a number with report = "wave"' in each]


BY_AGE = (
    NUMBER
    + joint("spent_by_age", "age_band", "spent")
    + joint("stay_by_age", "stay", "age_band").replace("static", "daily")
)


def test_a_number_is_combined_as_the_sides_of_a_cut() -> None:
    study = parse(BY_AGE)
    spent, stay = study.indicators[-2:]
    ages = study.indicators[0].categories
    assert spent.categories[:3] == tuple(f"{ages[0]} / {side}" for side in ("below", "reached", "no value"))
    assert stay.categories[: len(ages) + 1] == (*(f"below / {age}" for age in ages), "below / no value")
    assert stay.categories_fr[0] == f"en dessous / {ages[0]}"
    spec = study.plan_spec()
    assert [spec.number_part(spec.index(each.slug)) for each in (spent, stay)] == [
        spec.index("spent"), spec.index("stay"),
    ]  # fmt: skip
    assert through_json(study) == study == read_tables(tables_of(study), like=study)


@pytest.mark.parametrize("derive", ["first_hour", "last_hour", "busiest_hour"])
def test_hours_of_the_day_are_reported_by_the_best_code(derive) -> None:
    text = STUDY.replace('derive = "visit_duration"', f'derive = "{derive}"')
    study = parse(text)
    (hours,) = [each for each in study.indicators if each.derive == derive]
    assert (len(hours.categories), hours.categories[6]) == (24, "06:00 to 06:59")
    assert hours.categories_fr[6] == "6 h 00 à 6 h 59"
    spec = study.plan_spec()
    index = spec.index(hours.slug)
    assert spec.answer_channel(index) == code_channel(epsilon=spec.indicators[index].epsilon, domain_size=24)
    assert through_json(study) == study == read_tables(tables_of(study), like=study)
    assert PlanSpec.from_json(spec.to_json()) == spec
    plain = replace(study, plan=replace(study.plan, mechanism="spl-grr")).plan_spec()
    assert "by_code" not in json.dumps([plain.to_json(), parse(STUDY).plan_spec().to_json()])
    assert isinstance(plain.answer_channel(index), GrrChannel)


ORIGIN = STUDY + origin("who", column="home", home=("93048", "93100"), countries=("FR", "RE", "YT"))


def test_visitor_categories_are_a_static_indicator_of_three_fixed_categories() -> None:
    study = parse(ORIGIN)
    who = study.indicators[-1]
    assert (who.kind, who.column, who.origin.operator_column) == ("static", "home", "mcc")
    assert who.categories == ("Resident", "National tourist", "Foreign tourist")
    assert who.categories_fr == ("Résident", "Touriste national", "Touriste étranger")
    assert who.origin.operators["208"] == who.origin.operators["647"] == 1
    assert (who.origin.operators["262"], who.origin.operators["901"]) == (2, None)
    assert through_json(study) == study == read_tables(tables_of(study), like=study)
    plain = parse(STUDY + static("who", *who.categories, column="home"))
    assert plan_hash(study.plan_spec()) == plan_hash(plain.plan_spec())
    assert "origin" not in json.dumps(plain.to_json())  # so that hashes stay what they were
    crossing = public_part(study)
    assert not {"home", "mcc", "93048"} & {*re.findall(r"\w+", json.dumps(crossing.to_json()))}
    assert crossing.plan_spec() == study.plan_spec()


def test_country_codes_are_three_digits_of_geographic_areas() -> None:
    codes = [code for codes in COUNTRY_CODES.values() for code in codes]
    assert all(re.fullmatch("[2-7][0-9]{2}", code) for code in codes)
    assert not {*codes} & {*NO_COUNTRY}
    assert (len(COUNTRY_CODES), len({*codes})) == (236, 239)
    assert (COUNTRY_CODES["GU"][-1], COUNTRY_CODES["MP"][-1]) == ("535", "534")
    assert COUNTRY_CODES["US"] == ("310", "311", "312", "313", "314", "315", "316")


LOOKUP = STUDY.replace('column = "age"', 'column = "age"\nlookup = "life.csv"\nprefix = 5\notherwise = ""')
LIFE = "code,category\n25000,old\n75001,young\n25200,old\n99999,\n"


def test_a_lookup_file_says_what_codes_mean_and_its_hash_is_in_the_plan() -> None:
    study = parse(LOOKUP, life_csv=LIFE)
    (found,) = [each.lookup for each in study.indicators if each.lookup]
    assert found.codes == (("young", ("75001",)), ("old", ("25000", "25200")), ("", ("99999",)))
    assert (found.file, found.prefix, found.otherwise) == ("life.csv", 5, "")
    sha256 = hashlib.sha256(LIFE.encode()).hexdigest()
    spec, plain = study.plan_spec(), parse(STUDY)
    assert spec.indicators[0].lookup == found.sha256 == sha256
    assert PlanSpec.from_json(spec.to_json()) == spec
    assert through_json(study) == study == read_tables(tables_of(study), like=study)
    other = parse(LOOKUP, life_csv=LIFE.replace("25200,old", "25200,young"))
    assert len({plan_hash(each.plan_spec()) for each in (study, other, plain)}) == 3
    assert "lookup" not in json.dumps(
        [plain.to_json(), plain.plan_spec().to_json()]
    )  # as before there were any
    crossing = public_part(study)
    assert not {"25000", "life.csv"} & {*re.findall(r"[\w.]+", json.dumps(crossing.to_json()))}
    assert crossing.plan_spec() == spec


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("code,category", "category,code", "life.csv: line 1: must be code,category"),
        ("25200,old", "25000,old", 'life.csv: line 4, code: must be unique, got "25000"'),
        ("25200,old", "2520,old", 'life.csv: line 4, code: must have 5 ASCII characters, as set by prefix, got "2520"'),
        ("25200,old", "25200,ancient", "life.csv: line 4, category: unknown category"),
        ("25200,old", "25200", "life.csv: line 4: must have 2 columns, got 1"),
        (LIFE, "code,category\n", "life.csv: line 2: must list at least one code"),
        (LIFE, "code,category\n" + "".join(f"{n:05},old\n" for n in range(40_001)), "life.csv: line 40002: must be at most 40,000 codes"),
    ],
    ids=range(7),
)  # fmt: skip
def test_lookup_files_that_break_a_rule_are_refused(old, new, expected) -> None:
    found = problems(LOOKUP, life_csv=edited(old, new, text=LIFE))
    assert [line for line in found if expected in line], found


MOVES = WITH_AREA.replace('derive = "visit_duration"', 'derive = "moves"')
TWO_ZONES = {"cells_csv": CELLS, "zones_geojson": zones(zone("Centre"), zone("Nord"))}


def test_moves_have_pairs_of_zones_and_outside_as_categories() -> None:
    study = parse(MOVES, **TWO_ZONES)
    trips = study.indicators[-1]
    assert trips.categories == (
        "Centre / Centre", "Centre / Nord", "Centre / outside", "Nord / Centre", "Nord / Nord", "Nord / outside",
        "outside / Centre", "outside / Nord", "outside / outside",
    )  # fmt: skip
    assert trips.categories_fr[2] == "Centre / hors zones"
    asked = study.plan_spec().indicators[-1]
    assert (asked.moves, asked.domain_size) == (MoveSpec(places=2, per_day=6), 9)
    few = parse(
        MOVES.replace('derive = "moves"', 'derive = "moves"\nmax_moves = 3\nmax_values = 2'), **TWO_ZONES
    )
    assert (few.indicators[-1].max_moves, few.indicators[-1].max_values) == (3, 2)
    assert few.plan_spec().indicators[-1].moves == MoveSpec(places=2, per_day=3)
    for each in (study, few):
        assert through_json(each) == each == read_tables(tables_of(each), like=each)
    assert "max_moves" not in json.dumps(parse(STUDY).to_json())  # so that hashes stay what they were


def visits_of(derive: str, *zone_names: str, most: int | None = None) -> StudyDefinition:
    more = "" if most is None else f"\nmax_visits = {most}"
    text = WITH_AREA.replace('derive = "visit_duration"', f'derive = "{derive}"{more}')
    return parse(text, cells_csv=CELLS, zones_geojson=zones(*map(zone, zone_names)))


def test_visits_have_zones_or_pairs_of_them_as_categories_and_no_more_weights_than_these() -> None:
    study = visits_of("visited_zones", "Centre", "Nord", "Sud")
    visited = study.indicators[-1]
    assert visited.categories == ("Centre", "Nord", "Sud", "no zone")
    assert visited.categories_fr == ("Centre", "Nord", "Sud", "aucune zone")
    assert study.plan_spec().indicators[-1].moves == MoveSpec(places=3, per_day=3, items="places")
    pairs = visits_of("visited_pairs", "Centre", "Nord", "Sud", most=2)
    assert pairs.indicators[-1].categories == ("Centre / Nord", "Centre / Sud", "Nord / Sud", "no zone")
    assert pairs.plan_spec().indicators[-1].moves == MoveSpec(places=3, per_day=2, items="pairs")
    for each in (study, pairs):
        assert through_json(each) == each == read_tables(tables_of(each), like=each)
        assert PlanSpec.from_json(each.plan_spec().to_json()) == each.plan_spec()


VISITS = WITH_AREA.replace('derive = "visit_duration"', 'derive = "visited_pairs"\nmax_visits = 2')


def refusals(text: str, files: dict[str, str], rows: list[tuple[str, str, str]]) -> list[tuple[object, ...]]:
    return [(text, files, *row) for row in rows]


@pytest.mark.parametrize(("text", "files", "old", "new", "expected"), [
    *refusals(WITH_JOINT, {}, [
        ('["age_band", "home"]', '"age_band"', 'parts: must be the short names (slugs) of 2 to 3 indicators, in brackets, got "age_band"'),
        ('["age_band", "home"]', "[]", "parts: is missing"),
        ('["age_band", "home"]', '["age_band"]', "parts: must be the short names (slugs) of 2 to 3 indicators, in brackets, got a list"),
        ('["age_band", "home"]', '["age_band", 5]', "parts: must be the short names (slugs) of 2 to 3 indicators, in brackets, got a list"),
        ('["age_band", "home"]', '["home", "home"]', 'parts: must name each indicator once, got "home"'),
        ('["age_band", "home"]', '["home", "work"]', 'parts: must name indicators of this study that have categories or cuts, no parts, no moves and no visited zones, got "work"'),
        ('["age_band", "home"]', '["home", "both"]', 'parts: must name indicators of this study that have categories or cuts, no parts, no moves and no visited zones, got "both"'),
        ('["age_band", "home"]', '["home", "visit_duration"]', "kind: must be daily: a joint indicator is daily if one of its parts is"),
        ('["age_band", "home"]', '["age_band", "home"]\nmax_values = 2', "max_values: must be absent: only a daily indicator has several values"),
        (TWO_PARTS, TWO_PARTS + joint("again", "home", "age_band"), "parts: must not be those of both again"),
        ('["age_band", "home"]', '["age_band", "home"]\ncolumn = "x"', "column: must be absent: an indicator with parts combines their values"),
        ('["age_band", "home"]', '["age_band", "home"]\nnight_from = "22:00"', "night_from: must be absent: only night_zone and distance_from_home have a night"),
        ('["near", "far"]', '["near", "no value"]', 'parts: must not have two combinations of one name: rename categories with " / " or "no value", got "young / no value"'),
        ('["near", "far"]', '["near", "sans valeur"]', 'rename categories with " / " or "sans valeur"'),
        ('["near", "far"]', MANY_OF_BOTH, "parts: must have at most 65534 combinations in a study of 3 days"),
        ("smp-grr", "spl-grr", "parts: must be absent under spl-grr: only smp plans have joint indicators"),
    ]),
    *refusals(NUMBER, {}, [
        ("[10, 20, 50]", "[10]", "cuts: must be a list of 2 to 127 whole numbers, got 1"),
        ("[10, 20, 50]", "[10, 2.5]", "cuts: must be a list of 2 to 127 whole numbers, got 2.5"),
        ("[10, 20, 50]", "[10, 10]", "cuts: must rise, from above the minimum 0 to at most 1000000000"),
        ("[60, 90]", "[30, 90]", "cuts: must rise, from above the minimum 30"),
        ('unit = "EUR"\n', "", "spent].unit: is missing"),
        ('unit = "min"', 'unit = "h"', 'unit: must be "min", that of visit_duration, got "h"'),
        ('column = "spent"\n', "", "spent].column: is missing"),
        ('column = "spent"\n', 'column = "spent"\nmax_values = 2\n', "max_values: must be absent: a number of a column has one value"),
        ('derive = "visit_duration"\nmax', 'derive = "main_zone"\nmax', 'derive: must be one of visit_duration, event_count, distance_from_home, got "main_zone"'),
        ("minimum = 30", 'minimum = 30\ncategories = ["a", "b"]', "categories: must be absent: a number has cuts instead"),
        ("smp-grr", "spl-grr", "kind: must not be number under spl-grr: only smp plans have numbers"),
    ]),
    *refusals(ORIGIN, {}, [
        ('["93048", "93100"]', '["93048", "93"]', "who].home: must be of one length"),
        ('["93048", "93100"]', '["93048", "é1000"]', 'who].home[2]: must have 1 to 16 ASCII characters, got "é1000"'),
        ('["93048", "93100"]', r'["93\u00000"]', "who].home[1]: must be one line of printable characters"),
        ('["93048", "93100"]', "[]", "who].home: must be a list of 1 to 1000 different texts"),
        ('["93048", "93100"]', '["93048", "93048"]', "who].home: must be a list of 1 to 1000 different texts"),
        ('home = ["93048", "93100"]', "", "who].home: is missing"),
        ('["FR", "RE", "YT"]', '["FR", "FX"]', "who].countries[2]: unknown ISO country code"),
        ('["FR", "RE", "YT"]', '["FR", "GP"]', "who].countries: must also list BL, GF, MF, MQ: their operators may have mobile country code 340, too"),
        ('["FR", "RE", "YT"]', '["FR", "YT"]', "who].countries: must also list RE"),
        ('operator_column = "mcc"', "", "who].operator_column: is missing"),
        ('operator_column = "mcc"', 'operator_column = "age"', 'who].operator_column: must be its own column, but indicator[age_band].column uses it, got "age"'),
        ('operator_column = "mcc"', 'operator_column = "mcc"\ncategories = ["a", "b"]', "who].categories: must be absent: the categories of a derived indicator are fixed"),
    ]),
    *refusals(LOOKUP, {"life_csv": LIFE}, [
        ('lookup = "life.csv"', "", "age_band].prefix: must be absent without lookup, got 5"),
        ('lookup = "life.csv"', 'lookup = "../life.csv"', "age_band].lookup: must name a file in the folder of the study file"),
        ('lookup = "life.csv"', 'lookup = "no.csv"', "age_band].lookup: must name a file that is given together with the study file"),
        ('otherwise = ""', 'otherwise = "ancient"', "age_band].otherwise: must be one of the categories"),
    ]),
    *refusals(MOVES, TWO_ZONES, [
        ('derive = "moves"', 'derive = "moves"\nmax_moves = 0', "max_moves: must be a whole number from 1 to 100, got 0"),
        ('derive = "moves"', 'derive = "moves"\ncategories = ["a", "b"]', "categories: must be absent: they are the zones of [area]"),
        ('derive = "moves"', 'derive = "moves"\ngroups = {a = ["b"]}', "groups: must be absent"),
        ('derive = "moves"', 'derive = "main_zone"\nmax_moves = 2', "max_moves: must be absent: only moves have it"),
        ('column = "age"', 'column = "age"\nmax_moves = 2', "max_moves: must be absent: only moves have it"),
        (AREA + 'zones = "zones.geojson"\n', "", "derive: needs [area] with zones"),
        ("smp-grr", "spl-grr", "derive: must not be moves under spl-grr: only smp plans have moves"),
        ("epsilon = 1.0", "epsilon = 1.0\npresence_epsilon = 0.5\npresence_days = 2", "absent with the moves visit_duration"),
        ("[area]", joint("both", "age_band", "visit_duration") + "[area]", "have categories or cuts, no parts, no moves and no visited zones"),
    ]),
    *refusals(VISITS, TWO_ZONES, [
        ("max_visits = 2", "max_visits = 0", "max_visits: must be a whole number from 1 to 100, got 0"),
        ("max_visits = 2", "max_moves = 2", "max_moves: must be absent: only moves have it"),
        ("visited_pairs", "moves", "max_visits: must be absent: only visited_zones and visited_pairs have it"),
        ("smp-grr", "rsfd-grr", "derive: must not be visited_pairs under rsfd-grr: only smp plans have visited"),
        ("[area]", joint("both", "age_band", "visit_duration") + "[area]", "no moves and no visited zones"),
        ("days = 3", "days = 3\nsmall_category = 5", 'derive = "visited_pairs" must be absent'),
    ]),
    *refusals(BY_AGE.replace('"spent_by_age"\nkind = "static"', '"spent_by_age"\nkind = "daily"'), {}, [
        ('["age_band", "spent"]', '["stay", "spent"]', "parts: must be two where one is a number"),
        ('["stay", "age_band"]', '["spent", "stay"]', "parts: must be two where one is a number"),
        ('["age_band", "spent"]', '["age_band", "spent", "stay"]', "parts: must be two where one is a number"),
    ]),
])  # fmt: skip
def test_a_rule_of_an_indicator_that_is_broken_is_named(text, files, old, new, expected) -> None:
    found = problems(edited(old, new, text=text), **files)
    assert [line for line in found if expected in line], found


def test_visited_zones_need_names_that_differ_from_no_zone() -> None:
    for derive, names, expected in (
        ("visited_zones", ("Centre", "no zone"), 'rename zones with " / " or "no zone", got "no zone"'),
        ("visited_pairs", ("Centre", "a", "b / c", "a / b", "c"), "two visits of one name"),
    ):
        with pytest.raises(StudyFileError, match=expected):
            visits_of(derive, *names)


def test_moves_need_zones_that_fit_and_differ_from_outside() -> None:
    many = zones(zone("Centre"), *(zone(f"z{i}") for i in range(44)))
    found = problems(MOVES.replace("days = 3", "days = 62"), cells_csv=CELLS, zones_geojson=many)
    assert any(
        "derive: needs an area of 2 to 43 zones in a study of 62 days, got 45" in each for each in found
    )
    same = {"cells_csv": CELLS, "zones_geojson": zones(zone("Centre"), zone("outside"))}
    assert any("rename categories" in each for each in problems(MOVES, **same))


def test_zones_have_french_names_in_their_file() -> None:
    by_zone = edited('derive = "visit_duration"', 'derive = "main_zone"', text=WITH_AREA)
    centre, nord = zone("Centre"), zone("Nord")
    centre["properties"] |= {"name_fr": "Le centre"}
    nord["properties"] |= {"name_fr": ""}
    files = {"cells_csv": CELLS, "zones_geojson": zones(centre, nord)}
    study = parse(by_zone, **files)
    assert study.area.zones_fr == study.indicators[1].categories_fr == ("Le centre", "Nord")
    assert (through_json(study), study.indicators[1].categories) == (study, ("Centre", "Nord"))
    for name, expected in (
        ("Le\u00a0centre", "must differ from the French name of features[1]"),
        (7, "must be a text"),
    ):
        nord["properties"] |= {"name_fr": name}
        found = problems(by_zone, **files | {"zones_geojson": zones(centre, nord)})
        assert found[0].startswith(f"zones.geojson: features[2].properties.name_fr: {expected}")


ONE_FOR_ALL = "has one for all, since every report may be the answer, got 0.5"
CHANGES = "a made-up report does not change with the value, so one that changes would be the answer"


def test_every_problem_is_named_and_nothing_else() -> None:
    for pairs, expected in (
        # a valid key next to a broken one is not blamed
        (("days = 3", "days = 63"), ["study.days"]),
        (('kind = "static"', 'kind = "weekly"'), ["indicator[age_band].kind"]),
        (("smp-grr", "smp-olh"), ["plan.mechanism"]),
        # all problems are reported together
        (("days = 3", "days = 0", "epsilon = 1.0", "epsilon = 0", '["young", "old"]', "[]"), ["indicator[age_band].categories", "plan.epsilon", "study.days"]),
        # rules of two keys
        (("smp-grr", "spl-grr", *OWN), ["indicator[age_band].epsilon: must be absent: spl-grr shares the epsilon of the plan equally, got 0.5"]),
        (("smp-grr", "rsfd-grr", *OWN), [f"indicator[age_band].epsilon: must be absent: rsfd-grr {ONE_FOR_ALL}"]),
        (("smp-grr", "rsfd-ouez", *OWN), [f"indicator[age_band].epsilon: must be absent: rsfd-ouez {ONE_FOR_ALL}"]),
        (("smp-grr", "rsfd-adp", *OWN), [f"indicator[age_band].epsilon: must be absent: rsfd-adp {ONE_FOR_ALL}"]),
        (("smp-grr", "spl-grr", *WEIGHT), ["indicator[age_band].weight: must be absent: under spl-grr every indicator is asked equally often, got 2"]),
        ((WEIGHT[0], WEIGHT[1].replace("2", "0")), ["indicator[age_band].weight: must be a number from 0.001 to 1000, got 0"]),
        (("days = 3", "days = 3\nsmall_cell = 20", *PRESENCE), ["plan: presence_epsilon must be absent with study.small_cell"]),
        *(
            (("smp-grr", name, 'unit = "profile"', 'unit = "attribute"'), [f'indicator[visit_duration].kind: must be static under {name} with the unit attribute: {CHANGES} (choose the unit profile, or smp), got "daily"'])
            for name in ("rsfd-grr", "rsfd-ouez", "rsfd-adp")
        ),
    ):  # fmt: skip
        found = sorted(problems(edited(*pairs)))
        assert len(found) == len(expected), found
        for line, start in zip(found, expected, strict=True):
            assert line.startswith(f"study.toml: {start}")


def test_every_mechanism_of_the_library_and_every_delimiter_can_be_chosen() -> None:
    mechanisms = {name: edited("smp-grr", name) for name in get_args(Mechanism)}
    delimiters = {name: with_extract(f'delimiter = "{name}"') for name in DELIMITERS}
    for name, text in (mechanisms | delimiters).items():
        found = parse(text)
        assert name in (found.plan_spec().mechanism, found.extract.delimiter)
        assert through_json(found) == found


TOO_MANY = "must have at most 100000 keys, tables and lists, got 100001"


def with_categories(n: int, *pairs: str) -> str:
    return edited('"young", "old"', ", ".join(f'"c{i}"' for i in range(n)), *pairs)


@pytest.mark.parametrize("mechanism", ["smp-oue", "rsfd-ouez"])
def test_a_bit_per_category_has_its_limit_and_so_has_a_tally(mechanism) -> None:
    assert len(parse(with_categories(3840, "smp-grr", mechanism)).indicators[0].categories) == 3840
    assert problems(with_categories(3841, "smp-grr", mechanism)) == [
        "study.toml: plan: reports of a person on static indicators must fit into 256 words, got 257: "
        f"{mechanism} needs a bit per category, and GRR one word per indicator"
    ]
    assert parse(with_categories(3841))
    (found,) = problems(with_categories(2016, "days = 3", "days = 62"))  # a tally stays small
    assert "must be a list of 2 to 2015 texts in a study of 62 days, got 2016" in found


def test_a_problem_is_worded_in_the_language_of_the_reader_and_stays_english_in_its_text() -> None:
    with translation.override("fr"), pytest.raises(StudyFileError) as caught:
        parse(edited("days = 3", "days = 99"))
    (problem,) = caught.value.problems
    assert str(problem).endswith("study.days: must be a whole number from 1 to 62, got 99")
    with translation.override("fr"):
        assert problem.words == "doit être un nombre entier de 1 à 62, trouvé\u00a0: 99"


@pytest.mark.parametrize(
    ("old", "new", "french"),
    [
        ("days = 3", "days = 3\ndais = 3", "clé inconnue, vouliez-vous dire «\u00a0days\u00a0»\u202f?"),
        ('"Europe/Paris"', '"Europe/Pariss"', "IANA, comme Europe/Paris, vouliez-vous dire"),
        ('kind = "daily"', 'kind = "daily"\ncolumn = "age"', "est dérivé des événements du jour, trouvé\u00a0: "),
        ('kind = "daily"', 'kind = "daily"\nmax_moves = 2', "doit être absent\u00a0: réservé à moves, trouvé"),
        ('timestamp = "time"', 'timestamp = "time"\ntimestamp_format = "%z%d"', "%H %M une fois chacun, et %S"),
    ],
)  # fmt: skip
def test_rules_are_worded_in_french_with_their_values(old, new, french) -> None:
    with pytest.raises(StudyFileError) as caught:
        parse(STUDY.replace(old, new, 1))
    with translation.override("fr"):
        assert [each.words for each in caught.value.problems if french in each.words and not each.is_english]


def test_a_syntax_error_has_its_place() -> None:
    for text, expected in (
        (b"[study]\nslug = \n", "study.toml: line 2, column 8: must be valid TOML: Invalid value"),
        (b"[study]\nslug = [1,\n", "study.toml: line 3, column 1: must be valid TOML"),
        (b'[study]\nname = "caf\xe9"\n', "study.toml: line 2, column 12: must be UTF-8 text"),
        (b"a = " + b"[" * 20_000, "study.toml: line 1: must be nested at most 16 deep, got 17"),
        (b"\na = " + b"{b=" * 17, "study.toml: line 2: must be nested at most 16 deep, got 17"),
        (b"a" + b".a" * 1_000 + b" = 1", "study.toml: line 1: must be nested at most 16 deep, got 17"),
        (b"[" + b" a ." * 1_000 + b"a]", "study.toml: line 1: must be nested at most 16 deep, got 17"),
        (b"a = " + b"1" * 5_000, "study.toml: line 1: must have numbers of at most 64 digits"),
        (b"[study]\ndays = 0x" + b"f" * 5_000, "study.toml: line 2: must have numbers of at most 64 digits"),
        (b"a=1\n" * 100_001, f"study.toml: line 100001: {TOO_MANY}"),
        (b"[[a]]\n" * 50_001, f"study.toml: line 50001: {TOO_MANY}"),
        (b"#" * 2_000_001, "study.toml: size: must be at most 2 MB, got 2000001"),
    ):
        (only,) = problems(text)
        assert only.startswith(expected)


def test_an_empty_file_lists_what_it_needs_and_a_byte_order_mark_is_harmless() -> None:
    needed = ("study", "extract", "plan", "indicator")
    assert problems("") == [f"study.toml: {key}: is missing" for key in needed]
    assert parse(b"\xef\xbb\xbf" + STUDY.encode()) == parse(STUDY)


def test_what_belongs_to_an_area_must_be_given_with_it() -> None:
    assert problems(STUDY + AREA, cells_csv=CELLS) == ["study.toml: extract.cell: is missing"]
    found = problems(edited("days = 3", "days = 0", text=STUDY + AREA), cells_csv="cell_id,lon\n")
    assert [line.split(": ")[1] for line in found] == ["study.days", "extract.cell", "line 1"]
    rule = "must name a file that is given together with the study file"
    assert problems(WITH_AREA, cells_csv=CELLS) == [f'study.toml: area.zones: {rule}, got "zones.geojson"']


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "zones/../../x", "C:/x.csv"])
def test_a_file_elsewhere_is_refused_by_its_path_and_never_read(name) -> None:
    (found, *_) = problems(edited('"cells.csv"', f'"{name}"', text=WITH_AREA))
    rule = "must name a file in the folder of the study file, or below it"
    assert found == f'study.toml: area.cells: {rule}, got "{name}"'


def test_the_area_is_read_from_the_files_beside_the_study_file() -> None:
    area = parse(WITH_AREA, cells_csv=CELLS, zones_geojson=zones(zone("Centre"), zone("North"))).area
    assert area.zones == ("Centre", "North")
    assert area.cells == (
        Cell(cell_id="A", lon=6.8, lat=47.6, zone="Centre", valid_from=None, valid_to=None),
        Cell(cell_id="B", lon=6.9, lat=47.7, zone=None, valid_from=date(2024, 3, 31), valid_to=date(2024, 4, 1)),
    )  # fmt: skip
    alone = parse(CELLS_ALONE, cells_csv=CELLS).area
    assert (alone.zones, alone.geojson) == (("Centre",), None)


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_cells_may_be_as_a_spreadsheet_in_french_writes_them(delimiter: str) -> None:
    rows = ("Cellule Longitude LAT Zone", "A 6,8 47,6 Centre", "B 6.9 47.7 ")
    cells = "\n".join(row.replace(" ", delimiter) for row in rows)
    found = parse(CELLS_ALONE, cells_csv=cells).area.cells
    assert [(each.cell_id, each.lon, each.lat, each.zone) for each in found] == [
        ("A", 6.8, 47.6, "Centre"), ("B", 6.9, 47.7, None),
    ]  # fmt: skip


def test_a_broken_line_of_cells_is_named() -> None:
    for old, new, expected in (
        ("cell_id,lon", "antenna,x", "line 1: must name the columns cell_id, lon and lat, as in cell_id,lon,lat,zone; missing: cell_id, lon, got"),
        ("valid_to\n", "valid_too\n", 'line 1: unknown column, did you mean "valid_to"?, got "valid_too"'),
        ("valid_to\n", "zone\n", 'line 1: must name each column once, got "zone"'),
        ("A,6.8", "A,east", 'line 2, lon: must be a number of degrees from -180 to 180, got "east"'),
        ("A,6.8", "A,nan", 'line 2, lon: must be a number of degrees from -180 to 180, got "nan"'),
        ("47.7", "147.7", 'line 3, lat: must be a number of degrees from -90 to 90, got "147.7"'),
        ("A,6.8", ",6.8", 'line 2, cell_id: must not be empty, got ""'),
        ("B,6.9", "A,6.9", 'line 3, cell_id: must be unique, but line 2 has it, got "A"'),
        ("2024-03-31,", "31/03/2024,", 'line 3, valid_from: must be a date such as 2017-05-31, or empty, got "31/03/2024"'),
        ("2024-04-01", "2024-03-01", "line 3, valid_to: must not be before valid_from, got 2024-03-01"),
        ("Centre", "Center", 'line 2, zone: must be a zone of the zones file, got "Center"'),
        ("Centre,,", "Centre,", "line 2: must have 6 values, got 5"),
        ("A,6.8,47.6,Centre,,\nB,6.9,47.7,,2024-03-31,2024-04-01\n", "", "line 2: must list at least one cell"),
        ("B,6.9", '"B,6.9', "line 3: must be valid CSV"),
        ("zone,valid_from", "azimuth,valid_from", 'line 2, azimuth: must be a number of degrees from 0 to 360, or empty, got "Centre"'),
    ):  # fmt: skip
        cells = edited(old, new, text=CELLS)
        found = problems(WITH_AREA, cells_csv=cells, zones_geojson=zones(zone("Centre")))
        assert any(line.startswith(f"cells.csv: {expected}") for line in found), (expected, found)


MEET = "must be unique on each day: valid_from to valid_to must not meet those of line 2"


def test_a_mast_that_moved_is_listed_once_for_each_place() -> None:
    for rows, expected in (
        ("A,1,1,,2024-03-30\nA,2,2,2024-03-31,\n", None),
        ("A,2,2,2024-03-31,\nA,1,1,,2024-03-30\n", None),
        ("A,1,1,,2024-03-31\nA,2,2,2024-03-31,\n", MEET),
        ("A,1,1,,\nA,2,2,2024-03-31,\n", "must be unique, but line 2 has it"),
        ("A,1,1,,2024-03-29\nA,2,2,2024-03-31,\nA,3,3,2024-03-29,2024-03-30\n", MEET),
    ):
        cells = f"cell_id,lon,lat,valid_from,valid_to\n{rows}"
        if expected:
            place = f"cells.csv: line {cells.count(chr(10))}, cell_id"
            assert problems(CELLS_ALONE, cells_csv=cells) == [f'{place}: {expected}, got "A"']
        else:
            area = parse(CELLS_ALONE, cells_csv=cells).area
            assert (area.n_cells, len(area.cells)) == (1, 2), rows


def test_the_azimuth_of_a_cell_is_kept() -> None:
    def cells(text: str) -> str:
        return f"cell_id,lon,lat,azimuth\nA,1,1,{text}\n"

    for text, azimuth in (("", None), ("0", 0.0), ("359.5", 359.5), ("360", 360.0)):
        assert parse(CELLS_ALONE, cells_csv=cells(text)).area.cells[0].azimuth == azimuth
    rule = "cells.csv: line 2, azimuth: must be a number of degrees from 0 to 360, or empty"
    for wrong in ("-1", "360.5", "nan", "north"):
        (found,) = problems(CELLS_ALONE, cells_csv=cells(wrong))
        assert found.startswith(rule)


def test_cells_that_are_not_text_are_refused_with_their_line_and_long_lists_are_cut() -> None:
    centre = zones(zone("Centre"))
    found = problems(WITH_AREA, cells_csv=b"cell_id,lon,lat\n\xff,1,1\n", zones_geojson=centre)
    assert found == ['cells.csv: line 2: must be UTF-8 text, got "byte 0xff"']
    rows = "".join(f"C{i},0,200,\n" for i in range(1000))
    found = problems(WITH_AREA, cells_csv=f"cell_id,lon,lat,zone\n{rows}", zones_geojson=centre)
    assert (len(found), found[-1]) == (51, "cells.csv: and so on: 950 more problems are not listed")


def test_a_broken_zones_file_is_refused_with_its_place() -> None:
    for document, expected in (
        ("{", "line 1, column 2: must be valid JSON"),
        ('{"a": NaN}', "text: must be valid JSON: NaN is not a JSON number"),
        ('{"type": "Feature"}', 'type: must be "FeatureCollection"'),
        (zones(), "features: must be a list of at least one zone"),
        (zones(5), 'features[1]: must be of type "Feature"'),
        (zones(zone("Centre"), zone("Centre")), 'features[2].properties.zone: must be unique, got "Centre"'),
        (zones(zone(None)), "features[1].properties.zone: is missing"),
        (zones(zone(7)), "features[1].properties.zone: must be a text in quotes, got 7"),
        (zones(zone("Centre", type="Point")), 'features[1].geometry.type: must be Polygon or MultiPolygon, got "Point"'),
        (zones(zone("Centre", coordinates=[[[0, 0], [1, 1]]])), "features[1].geometry.coordinates: must hold rings of at least 4 positions that end where they start"),
        (zones(zone("Centre", coordinates=[[[0, 0], [0, 1], [1, 1], [1, 0]]])), "features[1].geometry.coordinates: must hold rings of at least 4 positions that end where they start"),
        (zones(zone("\ud800")), r'features[1].properties.zone: must be one line of printable characters, got "\ud800"'),
        (zones(zone("Centre", coordinates=[[[0, 0], [0, 10**400], [1, 1], [0, 0]]])), "features[1].geometry.coordinates: must be a number of degrees from -90 to 90, in [lon, lat]"),
        (zones(zone("Centre", coordinates=[[[0, 0], [0, 91], [1, 1], [0, 0]]])), "features[1].geometry.coordinates: must be a number of degrees from -90 to 90, in [lon, lat]"),
        (zones(zone("Centre", coordinates=[[0, 0, 0, 0]])), "features[1].geometry.coordinates: must hold positions [lon, lat]"),
        (zones(zone("Centre", coordinates=5)), "features[1].geometry.coordinates: must hold rings"),
    ):  # fmt: skip
        found = problems(WITH_AREA, cells_csv=CELLS, zones_geojson=document)
        assert any(line.startswith(f"zones.geojson: {expected}") for line in found), (expected, found)


def test_a_multipolygon_is_a_zone_and_other_members_of_a_zones_file_are_left_out() -> None:
    document = json.loads(zones(zone("Centre", type="MultiPolygon", coordinates=[SQUARE, SQUARE])))
    document["name"] = document["features"][0]["properties"]["note"] = "\u0000"
    area = parse(WITH_AREA, cells_csv=CELLS, zones_geojson=json.dumps(document)).area
    assert area.zones == ("Centre",)
    assert "\\u0000" not in json.dumps(area.geojson)


# --- how extracts are written ---------------------------------------------------------------------------
def with_extract(line: str, *pairs: str) -> str:
    return edited('timestamp = "time"', f'timestamp = "time"\n{line}', *pairs)


@pytest.mark.parametrize(
    ("rule", "texts"),
    [
        (None, ["iso", "epoch_s", "epoch_ms", "%d/%m/%Y %H:%M:%S", "%d.%m.%Y %H:%M", "%Y%m%d%H%M%S", "%Y%m%d%H%M"]),
        (None, ["%d-%m-%Y_%H.%M.%S.%f", "%Y-%m-%dT%H:%M:%S,%f%z", "%H:%M %d/%m/%Y", "%m/%d/%Y %H:%M %z"]),
        (TIMESTAMP_RULE, ["", "ISO", "epoch", "%d/%m/%Y", "%d/%m/%Y %H", "%d/%m/%y %H:%M", "%d/%d/%m/%Y %H:%M"]),
        (TIMESTAMP_RULE, ["%d/%m/%Y %H:%M:%S:%S", "%d/%m/%Y %I:%M %p", "%d/%m/%Y %H:%M%", "%d/%m/%Y 1%H:%M"]),
        (TIMESTAMP_RULE, ["%d/%m/%Y é%H:%M", "%%%d/%m/%Y %H:%M"]),
        ("must end with %z", ["%z %d/%m/%Y %H:%M"]),
        ("must have %f after %S and a point, as in %S.%f", ["%d/%m/%Y %H:%M.%f", "%d/%m/%Y %H:%M:%S%f", "%f%d/%m/%Y %H:%M:%S"]),
    ],
)  # fmt: skip
def test_timestamp_formats_are_taken_or_refused_with_their_rule(rule, texts) -> None:
    for text in texts:
        assert timestamp_problem(text) == rule, text
        if rule is None:
            assert parse(with_extract(f'timestamp_format = "{text}"')).extract.timestamp_format == text
    assert pattern_parts("%d/%m %H") == ["%d", "/", "%m", " ", "%H"]
    assert pattern_parts("a%") == ["a", "%"]


WHO = '[subscribers]\nsubscriber = "who"\n'


def test_attributes_may_stand_in_a_file_of_their_own() -> None:
    text = with_extract('attributes = "subscribers"') + f'{WHO}delimiter = "tab"\nmax_bad_share = 0.1\n'
    study = parse(text)
    assert study.extract.attributes == "subscribers"
    assert (study.subscribers.subscriber, study.subscribers.delimiter) == ("who", "tab")
    assert (str(study.subscribers.max_bad_share), through_json(study)) == ("0.1", study)
    same_name = ('column = "age"', 'column = "time"')
    assert "extract.timestamp uses it" in problems(edited(*same_name))[0]
    assert parse(with_extract('attributes = "subscribers"', *same_name))


def test_what_is_wrong_with_the_file_of_subscribers_is_named() -> None:
    for line, section, expected in (
        ('attributes = "elsewhere"', "", 'extract.attributes: must be one of inline, subscribers, got "elsewhere"'),
        ("", "[subscribers]\n", "subscribers.subscriber: is missing"),
        ("", f'{WHO}cell = "c"\n', "subscribers.cell: unknown key"),
        ("", f'{WHO}delimiter = ","\n', "subscribers.delimiter: must be one of"),
        ("", '[subscribers]\nsubscriber = "age"\n', "indicator[age_band].column: must be its own column, but subscribers.subscriber uses it"),
    ):  # fmt: skip
        (found,) = problems(with_extract(line) + section)
        assert found.startswith(f"study.toml: {expected}")
