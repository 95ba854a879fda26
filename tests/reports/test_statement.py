"""The privacy statement: complete, by its schema, and with the numbers that the sanitiser uses."""

import io
import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

import ldp
from reports.models import Plan, Study
from reports.statement import protections
from tests.reports import report_factory as factory

pytestmark = pytest.mark.django_db

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "docs/statement.schema.json").read_text())


def statement(slug: str = "fair-2024") -> dict[str, Any]:
    out = io.StringIO()
    call_command("statement", slug, stdout=out)
    printed: dict[str, Any] = json.loads(out.getvalue())
    jsonschema.Draft202012Validator(SCHEMA).validate(printed)
    return printed


def names(rows: list[dict[str, str]]) -> list[str]:
    return [row["name"] for row in rows]


@pytest.mark.parametrize("mechanism", ["smp-grr", "spl-grr"])
@pytest.mark.parametrize("unit", ["profile", "attribute"])
def test_statement_follows_its_schema(mechanism: str, unit: str) -> None:
    factory.create(mechanism=mechanism, unit=unit)
    printed = statement()
    assert printed["guarantee"]["unit"] == printed["plan"]["unit"] == unit
    assert printed["guarantee"]["epsilon"] == printed["guarantee"][f"epsilon_{unit}"]


def test_schema_is_a_schema_and_refuses_what_is_missing() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    factory.create()
    for key in SCHEMA["required"]:
        broken = statement()
        del broken[key]
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(broken, SCHEMA)


def test_exact_numbers_belong_together_and_are_those_of_the_channel() -> None:
    factory.create(epsilon="0.7")
    for entry in statement()["indicators"]:
        k = len(entry["categories"])
        channel = ldp.grr_channel(epsilon=Fraction(7, 10), domain_size=k)
        p, q, ratio = (Fraction(entry[name]) for name in ("p", "q", "ratio"))
        assert int(entry["threshold"]) == channel.threshold
        assert p == Fraction(int(entry["threshold"]), int(entry["threshold_out_of"]))
        assert p + (k - 1) * q == 1
        assert ratio == p / q == channel.ratio
        # rounded up, and never above what was asked for
        assert Decimal(entry["epsilon"]).exp() >= Decimal(ratio.numerator) / Decimal(ratio.denominator)
        assert Decimal(entry["epsilon"]) <= Decimal("0.7")
        assert Fraction(entry["nominal_epsilon"]) == Fraction(7, 10)


def test_known_threshold() -> None:
    """Eight categories at epsilon 1, from the reference vectors."""
    factory.create(factory.indicator("band", *"abcdefgh"))
    entry = statement()["indicators"][0]
    assert entry["threshold"] == "5159703134247355513"
    assert entry["ratio"] == "36117921939731488591/13287040939462196103"


@pytest.mark.parametrize(("voided_days", "profile"), [(0, 4), (2, 6)])
def test_daily_values_and_voided_days_add_up_per_profile(voided_days: int, profile: int) -> None:
    study = factory.create()
    factory.publish(study, factory.crowd(study, n=10), voided_days=voided_days)
    guarantee = statement()["guarantee"]
    assert guarantee["voided_days"] == voided_days
    assert 0 <= profile - Decimal(guarantee["epsilon_profile"]) < Decimal("1e-15")
    assert 0 <= 1 - Decimal(guarantee["epsilon_attribute"]) < Decimal("1e-15")
    assert Fraction(guarantee["nominal_profile"]) == profile
    assert [entry["values_per_person"] for entry in statement()["indicators"]] == [1, 1, profile]


def test_changes_are_named_as_a_limit_only_where_values_are_daily() -> None:
    factory.create(slug="daily")
    factory.create(factory.GENDER, slug="static")
    assert names(statement("daily")["not_protected"]) == [
        "presence",
        "missing_values",
        "changes",
        "key_holder",
    ]
    assert names(statement("static")["not_protected"]) == ["presence", "missing_values", "key_holder"]


def test_statement_names_study_plan_and_software() -> None:
    study = factory.create(market_share=Decimal("0.35"), min_publication=120)
    printed = statement()
    assert printed["study"]["last_day"] == "2024-06-02"
    assert printed["study"]["market_share"] == "0.35"
    assert printed["study"]["min_publication"] == 120
    assert printed["study"]["visitor"] == {"min_minutes": 60, "from": "06:00", "to": "23:59"}
    assert printed["plan"]["spec_sha256"] == Plan.objects.get(study=study).spec_hash
    assert f'version = "{printed["software"]["version"]}"' in (ROOT / "pyproject.toml").read_text()


def test_pages_certify_what_the_statement_certifies(fair: Study) -> None:
    plan = Plan.objects.get(study=fair)
    printed = statement()
    for indicator, entry in zip(fair.indicators.all(), printed["indicators"], strict=True):
        shown = protections(plan)[indicator.slug]
        assert str(shown.epsilon_answer) == entry["epsilon"]
        assert str(shown.epsilon_profile) == printed["guarantee"]["epsilon_profile"]
        assert shown.thresholds == (int(entry["threshold"]),)


def test_page_and_file(reader: Client, fair: Study) -> None:
    page = reader.get(reverse("reports:statement", args=["fair-2024"])).content.decode()
    printed = statement()
    for row in (*printed["not_protected"], *printed["retention"]):
        assert row["text"] in page
    for entry in printed["indicators"]:
        assert entry["threshold"] in page
    file = reader.get(reverse("reports:statement_file", args=["fair-2024"]))
    assert json.loads(file.content) == printed
    assert "attachment" in file["Content-Disposition"]


def test_unknown_study_is_named() -> None:
    with pytest.raises(CommandError, match=r"STUDY must be the slug of a study \(none\), got nope"):
        call_command("statement", "nope")
