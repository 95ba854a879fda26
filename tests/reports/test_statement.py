"""The privacy statement: complete, by its schema, and with the numbers that the sanitiser uses."""

import io
import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import IntegrityError
from django.test import Client
from django.urls import reverse

import ldp
from ldp.geo.grid import Grid
from ldp.params import Mechanism
from reports.models import Plan, Study
from reports.services.studies import mark_closed
from reports.statement import protections
from reports.studyfile.definition import LocationDefinition
from tests.reports import report_factory as factory

pytestmark = pytest.mark.django_db

ROOT = Path(__file__).parents[2]
CLOSED_AT = datetime(2024, 6, 1, 12, 30, tzinfo=UTC)
SCHEMA = json.loads((ROOT / "docs/statement.schema.json").read_text())


def statement(slug: str = "fair-2024") -> dict[str, Any]:
    out = io.StringIO()
    call_command("statement", slug, stdout=out)
    printed: dict[str, Any] = json.loads(out.getvalue())
    jsonschema.Draft202012Validator(SCHEMA).validate(printed)
    return printed


def names(rows: list[dict[str, str]]) -> list[str]:
    return [row["name"] for row in rows]


@pytest.mark.parametrize("mechanism", get_args(Mechanism))
@pytest.mark.parametrize("unit", ["profile", "attribute"])
def test_statement_follows_its_schema(mechanism: str, unit: str) -> None:
    factory.create(factory.GENDER, factory.AGE, mechanism=mechanism, unit=unit)
    printed = statement()
    guarantee = printed["guarantee"]
    assert guarantee["unit"] == printed["plan"]["unit"] == unit
    assert guarantee["epsilon"] == guarantee[f"epsilon_{unit}"]
    assert Fraction(guarantee["nominal_attribute"]) >= Decimal(guarantee["epsilon_attribute"])
    assert Fraction(guarantee["nominal_profile"]) >= Decimal(guarantee["epsilon_profile"])
    assert Decimal(guarantee["epsilon"]) <= 1
    assert printed["plan"]["has_fake_data"] == mechanism.startswith("rsfd")
    assert printed["plan"]["indicators_per_person"] == (2 if mechanism == "spl-grr" else 1)


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


@pytest.mark.parametrize("mechanism", ["smp-oue", "rsfd-ouez"])
def test_exact_numbers_of_unary_answers_are_those_of_the_channel(mechanism: str) -> None:
    factory.create(factory.GENDER, factory.AGE, mechanism=mechanism, epsilon="0.7")
    for entry in statement()["indicators"]:
        channel = ldp.oue_channel(epsilon=Fraction(7, 10), domain_size=3)
        assert entry["protocol"] == "oue"
        assert "threshold" not in entry
        assert (int(entry["threshold_p"]), int(entry["threshold_q"])) == (2**63, channel.threshold_q)
        p, q, ratio = (Fraction(entry[name]) for name in ("p", "q", "ratio"))
        assert (p, q) == (Fraction(1, 2), Fraction(channel.threshold_q, 2**64))
        assert ratio == p * (1 - q) / ((1 - p) * q) == channel.ratio
        assert Decimal(entry["epsilon"]) <= Decimal("0.7")


def test_adaptive_statement_says_which_oracle_each_indicator_has() -> None:
    many = factory.indicator("region", *(f"r{i}" for i in range(12)))
    factory.create(factory.GENDER, many, mechanism="smp-adp")
    assert [entry["protocol"] for entry in statement()["indicators"]] == ["grr", "oue"]


@pytest.mark.parametrize(
    ("mechanism", "fake", "support"), [("rsfd-grr", "code", "1/3"), ("rsfd-ouez", "no value", "q")]
)
@pytest.mark.parametrize("unit", ["profile", "attribute"])
def test_fake_data_are_stated_with_their_shares(mechanism: str, fake: str, support: str, unit: str) -> None:
    factory.create(factory.GENDER, factory.AGE, mechanism=mechanism, unit=unit, epsilon="0.7")
    printed = statement()
    answers = Fraction(7, 10) if unit == "profile" else None
    for entry in printed["indicators"]:
        expected = {"share": "1/2", "fake": fake, "support": entry["q"] if support == "q" else support}
        assert entry["fake_data"] == expected
        assert Decimal(entry["epsilon_attribute"]) < Decimal(entry["epsilon"])
        assert Fraction(entry["nominal_epsilon"]) == answers or answers is None
    assert Fraction(printed["guarantee"][f"nominal_{unit}"]) == Fraction(7, 10)
    assert ("profile" in names(printed["not_protected"])) == (unit == "attribute")
    if unit == "attribute":
        # Arcolezi et al., CIKM 2021, for d = 2: with equal domains it holds for GRR and for OUE-z.
        expected_profile = (2 * (Decimal("0.7").exp() - 1) + 1).ln()
        assert abs(Decimal(printed["guarantee"]["epsilon_profile"]) - expected_profile) < Decimal("1e-8")


def test_schema_tells_the_oracles_apart() -> None:
    factory.create(factory.GENDER, mechanism="smp-oue")
    printed = statement()
    for change in ({"protocol": "grr"}, {"threshold": "5"}, {"threshold_q": None}, {"protocol": "sue"}):
        entry = {k: v for k, v in (printed["indicators"][0] | change).items() if v is not None}
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(printed | {"indicators": [entry]}, SCHEMA)


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
        "times",
        "key_holder",
    ]
    assert names(statement("static")["not_protected"]) == [
        "presence",
        "missing_values",
        "times",
        "key_holder",
    ]


def test_a_daily_report_that_changes_is_said_to_be_the_answer() -> None:
    factory.create(slug="fakes", mechanism="rsfd-grr")
    factory.create(slug="plain")
    words = "A made-up report never changes: one that does is the answer."
    for slug, is_said in (("fakes", True), ("plain", False)):
        changes = {row["name"]: row["text"] for row in statement(slug)["not_protected"]}["changes"]
        assert (words in changes) == is_said


def test_statement_names_study_plan_and_software() -> None:
    study = factory.create(market_share=Decimal("0.35"), min_publication=120, small_cell=30)
    printed = statement()
    assert printed["study"]["last_day"] == "2024-06-02"
    assert printed["study"]["market_share"] == "0.35"
    assert printed["study"]["min_publication"] == 120
    assert printed["study"]["small_cell"] == 30
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


def test_closed_study_says_when_its_key_was_destroyed(reader: Client, fair: Study) -> None:
    open_rows = {row["name"]: row["until"] for row in statement()["retention"]}
    assert statement()["study"]["closed_at"] is None
    mark_closed(study_slug=fair.slug, closed_at=CLOSED_AT)
    mark_closed(study_slug=fair.slug, closed_at=CLOSED_AT + timedelta(days=1))  # the first time counts
    closed = statement()
    assert (closed["study"]["state"], closed["study"]["closed_at"]) == ("closed", "2024-06-01T12:30:00Z")
    rows = {row["name"]: row["until"] for row in closed["retention"]}
    assert rows["key"] == rows["presence"] == "destroyed on 2024-06-01"
    assert {name for name in rows if rows[name] != open_rows[name]} == {"key", "presence"}
    for name in ("statement", "study"):
        page = reader.get(reverse(f"reports:{name}", args=["fair-2024"])).content.decode()
        assert "was closed on Sat 1 Jun 2024" in page


def test_the_day_of_the_key_s_end_is_stated_and_its_passing_is_noticed(reader: Client) -> None:
    factory.create(key_until=date(2024, 9, 30))
    printed = statement()
    assert printed["study"]["key_until"] == "2024-09-30"
    rows = {row["name"]: (row["until"], row["date"]) for row in printed["retention"]}
    assert rows["key"] == ("its destruction, at the latest on 2024-09-30", "2024-09-30")
    assert rows["presence"][1] == "2024-09-30"
    assert rows["totals"] == ("no date set", None)
    words = "The key of this study was to be destroyed by Mon 30 Sep 2024, and the study is still open."
    assert words in reader.get(reverse("reports:study", args=["fair-2024"])).content.decode()
    Study.objects.update(key_until=date(2999, 1, 1))
    assert words not in reader.get(reverse("reports:study", args=["fair-2024"])).content.decode()


def test_other_studies_are_named_for_who_sees_all_of_them(
    reader: Client, administrator: User, client: Client
) -> None:
    factory.create()
    factory.create(factory.GENDER, slug="autumn-2024", name="Autumn 2024")
    page, file = (reverse(f"reports:{name}", args=["fair-2024"]) for name in ("statement", "statement_file"))
    assert "autumn-2024" not in reader.get(page).content.decode()
    assert "another study" in reader.get(page).content.decode()
    hidden = json.loads(reader.get(file).content)["composition"]["studies"]
    client.force_login(administrator)
    assert "autumn-2024" in client.get(page).content.decode()
    named = json.loads(client.get(file).content)["composition"]["studies"]
    assert [row["study"] for row in hidden] == [None, "fair-2024"]
    assert [row["study"] for row in named] == ["autumn-2024", "fair-2024"]
    assert [row | {"study": None} for row in named] == [row | {"study": None} for row in hidden]


def test_open_study_has_no_time_of_closing(fair: Study) -> None:
    fair.closed_at = CLOSED_AT
    with pytest.raises(IntegrityError, match="study_closed_has_time"):
        fair.save()


def test_unknown_study_is_named() -> None:
    with pytest.raises(CommandError, match=r"STUDY must be the slug of a study \(none\), got nope"):
        call_command("statement", "nope")


def test_places_have_a_promise_of_their_own_per_metre() -> None:
    grid = Grid(x0_m=0, y0_m=0, step_m=100, n_x=20, n_y=10)
    location = LocationDefinition(
        level=Decimal("1.38629436"), radius_m=400, max_values=None, grid=grid, places=()
    )
    study = factory.create(location=location)
    Plan.objects.update(voided_days=1)
    printed = statement()
    found = printed["location"]
    asked = Fraction(found["level"]) / Fraction(found["radius_m"])
    assert asked == Fraction(found["nominal_epsilon_per_m"])
    # what is drawn is smaller than what is kept, which is no more than what was asked for
    assert Fraction(found["sampled_epsilon_per_m"]) < Decimal(found["epsilon_per_m"]) <= asked
    one, radius, everything = (
        Fraction(found[name])
        for name in ("epsilon_per_m", "epsilon_at_radius", "epsilon_at_radius_all_places")
    )
    assert 0 <= radius - 400 * one < Fraction(1, 10**28)
    assert found["places_per_person"] == study.days + 1  # a published day was undone
    assert 0 <= everything - 5 * radius < Fraction(1, 10**27)
    # 2 / epsilon, and the 95 % quantile of epsilon times the radius, 4.7438645
    assert found["mean_shift_m"] == pytest.approx(577.1, abs=0.1)
    assert found["radius_95_m"] == pytest.approx(1368.8, abs=0.1)
    assert found["grid"] == grid.to_json()
    limits = {each["name"]: each["text"] for each in printed["not_protected"]}
    assert {"squares", "places_and_answers", "far_places", "moves"} <= set(limits)
    # two squares that meet at a corner: their middles may be 400 m and a diagonal of 141.4 m apart
    assert "up to 542 m apart" in limits["squares"]
    assert "by at most 6.55 times" in limits["squares"]  # 4 ** (542 / 400) = 6.543


def test_without_places_there_is_no_promise_of_them() -> None:
    factory.create()
    printed = statement()
    assert printed["location"] is None
    assert not {"squares", "places_and_answers", "far_places", "moves"} & set(names(printed["not_protected"]))


def test_page_says_what_the_noise_of_places_means(client: Client, analyst: User) -> None:
    grid = Grid(x0_m=0, y0_m=0, step_m=100, n_x=20, n_y=10)
    location = LocationDefinition(
        level=Decimal("1.38629436"), radius_m=400, max_values=2, grid=grid, places=()
    )
    factory.create(location=location)
    client.force_login(analyst)
    shown = client.get("/studies/fair-2024/statement/").content.decode()
    assert "577 m from the true one on average, and 95 of 100 lie within 1\u202f369 m" in shown
    assert "400 m apart by at most 4.00 times" in shown
    assert "middles are up to 542 m apart" in shown
    assert "at most 2 different places" in shown
    assert "Every visitor also reports a noisy place a day, on 2 days of the study, drawn at random." in shown
    # one who stays and one who moves have no such bound: of the one the report never changes
    assert "places on the same days, and whose places are 400 m apart, by at most 16.00 times" in shown
