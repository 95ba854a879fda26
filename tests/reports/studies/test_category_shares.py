"""Market shares by category in study files: what is accepted, and what is refused."""
# ruff: noqa: E501  (a table reads best with one rule a line)

import json
import tomllib
from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest

from mobility.plans.new_study.text import merged, text_of, typed_of_text
from mobility.plans.pages.draft_typed import Typed
from reports.privacy.plan_changes import plan_changes
from reports.studies.studyfile import StudyDefinition, StudyFileError, parse_study
from reports.studies.studyfile.problems import Problems
from reports.studies.studyfile.redraft import read_tables, tables_of
from reports.studies.studyfile.toml import parse_toml
from reports.transfer.messages import public_part
from reports.transfer.studies import plan_hash
from tests.study_text import columns, daily, static, study_text

PLAIN = study_text(
    static("origin", "resident", "abroad"), daily("visit_duration"), slug="fair-2024", name="Fair",
    first_day="2024-03-30", extract=columns(),
)  # fmt: skip
SPRING = """
[[study.category_shares]]
name = "Survey, spring"
name_fr = "Enquête, printemps"
indicator = "origin"
valid_from = 2024-03-01
valid_to = 2024-06-30
shares = { resident = 0.38, abroad = { share = 0.2, low = 0.17, high = 0.23 } }
"""
SUMMER = (
    SPRING.replace("spring", "summer").replace("2024-03-01", "2024-07-01").replace("2024-06-30", "2024-08-31")
)
TEXT = PLAIN + SPRING + SUMMER


def parse(text: str) -> StudyDefinition:
    return parse_study(text.encode(), filename="study.toml", read=lambda _: b"")


def test_made_up_reports_may_have_them_too() -> None:
    assert parse(TEXT.replace("smp-grr", "rsfd-grr")).category_shares == parse(TEXT).category_shares


def test_shares_are_read_exactly_and_change_neither_plan_nor_other_studies() -> None:
    study, plain = parse(TEXT), parse(PLAIN)
    spring, summer = study.category_shares
    assert (spring.name, spring.shown_name, spring.indicator) == (
        "Survey, spring",
        "Survey, spring",
        "origin",
    )
    assert (spring.valid_from, spring.valid_to) == (date(2024, 3, 1), date(2024, 6, 30))
    assert [each.share for each in spring.shares] == [Decimal("0.38"), Decimal("0.2")]
    assert [(each.low, each.high) for each in spring.shares] == [
        (None, None),
        (Decimal("0.17"), Decimal("0.23")),
    ]
    assert spring.is_valid(date(2024, 3, 1), date(2024, 6, 30))
    assert not spring.is_valid(date(2024, 6, 30), date(2024, 7, 1))
    assert replace(summer, valid_to=None).is_valid(date(2024, 7, 1), date(2099, 1, 1))
    assert plan_hash(study.plan_spec()) == plan_hash(plain.plan_spec())
    assert plain.category_shares == ()
    assert "category_shares" not in plain.to_json()
    assert StudyDefinition.from_json(json.loads(json.dumps(study.to_json()))) == study
    assert public_part(study).category_shares == study.category_shares
    (change,) = plan_changes(plain, study)
    assert (change.text, change.needs_second_person) == ("category_shares has changed.", False)


def test_forms_and_copies_keep_them() -> None:
    study = parse(TEXT)
    assert read_tables(tables_of(study), like=study) == study
    typed = Typed.of(study)
    typed.values["study.name"] = "Other"
    assert read_tables(typed.tables(study), like=study) == replace(study, name="Other")
    copy = text_of(tables_of(study))
    assert tomllib.loads(copy)["study"]["category_shares"] == tomllib.loads(TEXT)["study"]["category_shares"]
    assert parse(copy) == study
    tables = parse_toml(TEXT.encode(), Problems(""))
    form = typed_of_text(tables)
    form.values["study.days"] = "2"
    assert merged(TEXT, form, base=tables, filename="") == TEXT.replace("days = 3", "days = 2")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("resident = 0.38", "resident = 0", "study.category_shares[1].shares.resident: must be a number > 0 and <= 1, got 0"),
        ("resident = 0.38", "resident = 1.2", "shares.resident: must be a number > 0 and <= 1, got 1.2"),
        ("resident = 0.38, ", "", "study.category_shares[1].shares: must have a share for each category of origin, missing: resident"),
        ("resident = 0.38", "resident = 0.38, other = 0.1", "must be categories of origin, which does not have: other"),
        ("low = 0.17, ", "", "study.category_shares[1].shares.abroad.low: is missing"),
        ("low = 0.17", "low = 0.21", "shares.abroad.share: must be from low to high, 0.21 to 0.23, got 0.2"),
        ("low = 0.17", "least = 0.17, low = 0.17", "shares.abroad.least: unknown key"),
        ("valid_to = 2024-06-30", "valid_to = 2024-07-01", 'study.category_shares[2].valid_from: must not overlap with "Survey, spring", which is valid from 2024-03-01 to 2024-07-01, got 2024-07-01'),
        ("valid_to = 2024-06-30\n", "", 'must not overlap with "Survey, spring", which is valid from 2024-03-01 to an open end'),
        ("valid_to = 2024-06-30", "valid_to = 2024-02-01", "study.category_shares[1].valid_to: must be from 2024-03-01"),
        ("valid_from = 2024-03-01\n", "", "study.category_shares[1].valid_from: is missing"),
        ('name = "Survey, spring"\n', "", "study.category_shares[1].name: is missing"),
        ('indicator = "origin"', 'indicator = "visit_duration"', 'study.category_shares[1].indicator: must name a static indicator with categories, got "visit_duration"'),
        ('indicator = "origin"', 'indicator = "age"', 'must name a static indicator with categories, got "age"'),
        ("epsilon = 1.0", "epsilon = 1.0\npresence_epsilon = 0.5\npresence_days = 2", "study.category_shares: must be absent with presence_epsilon"),
        ("days = 3\n", "days = 3\ncategory_shares = 0.3\n", "must be tables, each headed [[study.category_shares]]"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_with_its_place(old, new, expected) -> None:
    text = PLAIN + ("" if "category_shares = 0.3" in new else SPRING + SUMMER)
    assert old in text
    with pytest.raises(StudyFileError) as refused:
        parse(text.replace(old, new, 1))
    assert expected in str(refused.value)
