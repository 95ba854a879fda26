"""The privacy statement, by its schema and computed again by a script; and the data protection pack."""
# ruff: noqa: E501  (a table reads best with one row a line)

import json
import re
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from html import unescape
from pathlib import Path
from typing import Any, get_args
from uuid import uuid4

import jsonschema
import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError
from django.db import IntegrityError
from django.test import override_settings

from ldp.geo.grid import Grid
from ldp.privacy.attacker import guess_success, known_day_success
from ldp.privacy.plans import Mechanism
from reports.base import formats
from reports.dpia import dpia_pack
from reports.dpia.markdown import to_markdown
from reports.dpia.parts import Section
from reports.models import Plan, Study, Tally
from reports.privacy.retention import retention
from reports.privacy.statement.document import certified, not_protected, protections
from reports.studies.policies import Role
from reports.studies.studyfile.definition import LocationDefinition, PlanDefinition
from reports.studies.studyfile.slots_definition import SlotsDefinition
from reports.transfer.studies import mark_closed
from scripts.check_statement import check
from tests.reports import map_factory
from tests.reports import report_factory as factory
from tests.reports.page_texts import get, page, pdf_text, printed

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).parents[3]
CLOSED_AT = datetime(2024, 6, 1, 12, 30, tzinfo=UTC)
SCHEMA = json.loads((ROOT / "docs/statement.schema.json").read_text())
TWO = (factory.GENDER, factory.AGE)
GRID = Grid(x0_m=0, y0_m=0, step_m=100, n_x=20, n_y=10)
PLACE_LIMITS = {"squares", "places_and_answers", "far_places", "moves"}


def location(max_values: int | None = None) -> LocationDefinition:
    level = Decimal("1.38629436")
    return LocationDefinition(level=level, radius_m=400, max_values=max_values, grid=GRID, places=())


def statement(study: Study | str = "fair-2024") -> dict[str, Any]:
    """Output of the command: valid by its schema, and right by the script that computes it again."""
    found: dict[str, Any] = json.loads(printed("statement", getattr(study, "slug", study)))
    jsonschema.Draft202012Validator(SCHEMA).validate(found)
    assert check(found).texts == []
    return found


def told(rows: list[dict[str, str]], what: str = "text") -> dict[str, str]:
    return {row["name"]: row[what] for row in rows}


@pytest.mark.parametrize("mechanism", get_args(Mechanism))
@pytest.mark.parametrize("unit", ["profile", "attribute"])
def test_statement_follows_its_schema_and_never_promises_more_than_was_typed(mechanism, unit) -> None:
    factory.create(*TWO, mechanism=mechanism, unit=unit, epsilon="0.7")
    found = statement()
    plan, guarantee = found["plan"], found["guarantee"]
    assert guarantee["unit"] == plan["unit"] == unit
    assert guarantee["epsilon"] == guarantee[f"epsilon_{unit}"]
    nominal = Fraction(7, 20 if (mechanism, unit) == ("spl-grr", "attribute") else 10)
    assert Decimal(guarantee["epsilon"]) <= Fraction(guarantee[f"nominal_{unit}"]) == nominal
    assert plan["has_fake_data"] == mechanism.startswith("rsfd")
    assert plan["indicators_per_person"] == (2 if mechanism == "spl-grr" else 1)
    if mechanism.startswith("rsfd"):
        assert ("profile" in told(found["not_protected"])) == (unit == "attribute")
        assert [entry["fake_data"]["share"] for entry in found["indicators"]] == ["1/2"] * 2
    if mechanism in ("rsfd-grr", "rsfd-ouez") and unit == "attribute":
        # Arcolezi et al., CIKM 2021, for d = 2: with equal domains it holds for GRR and for OUE-z.
        expected = (2 * (Decimal("0.7").exp() - 1) + 1).ln()
        assert abs(Decimal(guarantee["epsilon_profile"]) - expected) < Decimal("1e-8")


def test_joint_indicators_are_stated_with_their_space_and_in_words(reader) -> None:
    factory.published(*TWO, factory.BOTH, n=900)
    joint = statement()["indicators"][2]
    assert (joint["protocol"], len(joint["categories"])) == ("projective", 16)
    assert (joint["prime"] ** joint["dimension"] - 1) // (joint["prime"] - 1) == joint["codes"] >= 16
    for changed in (joint | {"codes": 1}, {key: joint[key] for key in joint if key != "prime"}):
        found = statement()
        found["indicators"][2] = changed
        assert not jsonschema.Draft202012Validator(SCHEMA).is_valid(found)
    missing = "In a joint indicator, a missing value is part of the combination of values"
    assert missing in told(statement()["not_protected"])["missing_values"]
    assert "This indicator combines Gender, Age." in page(reader, "indicator", "both")
    assert "This indicator combines" not in page(reader, "indicator", "age")


def test_schema_refuses_what_is_missing_and_tells_the_oracles_apart() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    factory.create(factory.GENDER, factory.MANY, mechanism="smp-adp")
    found = statement()
    assert [entry["protocol"] for entry in found["indicators"]] == ["grr", "oue"]
    broken = [{name: value for name, value in found.items() if name != key} for key in SCHEMA["required"]]
    for change in ({"protocol": "grr"}, {"threshold": "5"}, {"threshold_q": None}, {"protocol": "sue"}):
        entry = {k: v for k, v in (found["indicators"][1] | change).items() if v is not None}
        broken.append(found | {"indicators": [entry]})
    assert not any(map(jsonschema.Draft202012Validator(SCHEMA).is_valid, broken))


@pytest.mark.parametrize(("voided_days", "profile"), [(0, 4), (2, 6)])
def test_daily_values_and_voided_days_add_up_per_profile(voided_days, profile) -> None:
    study = factory.create()
    factory.publish(study, factory.crowd(study, n=10), voided_days=voided_days)
    found = statement()
    guarantee = found["guarantee"]
    assert guarantee["voided_days"] == voided_days
    assert 0 <= profile - Decimal(guarantee["epsilon_profile"]) < Decimal("1e-15")
    assert 0 <= 1 - Decimal(guarantee["epsilon_attribute"]) < Decimal("1e-15")
    assert Fraction(guarantee["nominal_profile"]) == profile
    assert [entry["values_per_person"] for entry in found["indicators"]] == [1, 1, profile]


@pytest.mark.parametrize(
    ("mechanism", "sums"), [("smp-grr", 1), ("smp-oue", 1), ("spl-grr", 2), ("rsfd-grr", 1)]
)
def test_sums_of_one_day_reveal_less_than_single_reports_at_a_stated_delta(reader, mechanism, sums) -> None:
    found = statement(factory.published(*TWO, mechanism=mechanism, days=1, n=9000))
    said, guarantee = found["sums"], found["guarantee"]
    for name in ("epsilon_profile", "epsilon_attribute"):
        assert 0 < Decimal(said[name]) < Decimal(guarantee[name])
    assert Fraction(said["delta"]) == min(Fraction(1, 10**6), Fraction(1, 90_000))
    assert Fraction(said["delta_profile"]) == Fraction(sums, 10**6)
    reports = [row["n_reports"] for row in said["indicators"]]
    assert sum(reports) == 9000 * (1 if mechanism.startswith("smp") else 2)
    text = page(reader, "statement")
    assert f"except with a probability of one in {formats.number(10**6 // sums)} (delta)" in text
    assert "The privacy limits for the sums hold because the study has only one day" in text


def test_no_bound_of_sums_is_stated_where_it_does_not_hold(reader) -> None:
    def has_sums(study: Study) -> bool:
        found = "sums" in statement(study)
        shown = reader.get(f"/studies/{study.slug}/statement/").content.decode()
        assert ("Privacy of published totals" in shown) == found
        return found

    one_day = {"days": 1, "n": 9000}
    for slug, changes in (("days", {"days": 4}), ("few", {"n": 100}), ("hidden", {"small_cell": 9001})):
        assert not has_sums(factory.published(*TWO, **one_day | changes, slug=slug)), slug
    study = factory.published(*TWO, **one_day, slug="twice")
    assert has_sums(study)
    # Earlier readers of the totals can subtract them: only the people of the second file hide each other.
    factory.publish(study, factory.crowd(study, n=1, seed=2))
    assert not has_sums(study)
    # Totals that changed before the ledger began.
    study = factory.published(*TWO, **one_day, slug="older")
    study.publications.create(publication_id=uuid4())
    assert not has_sums(study)
    study = factory.published(*TWO, **one_day, slug="undone")
    study.plans.update(voided_days=1)
    assert "sums" not in json.loads(printed("statement", "undone"))
    study = factory.published(*TWO, **one_day, slug="gaps", mechanism="rsfd-grr")
    tally = Tally.objects.filter(plan__study=study, indicator__slug="age")
    assert tally.update(n_reports=bytes(32)) and not has_sums(study)


def test_limits_are_named_where_they_hold() -> None:
    limits = {}
    plans = {"static": ([factory.GENDER], "smp-grr"), "daily": ([], "smp-grr"), "fakes": ([], "rsfd-grr")}
    for slug, (indicators, mechanism) in plans.items():
        factory.create(*indicators, slug=slug, mechanism=mechanism)
        limits[slug] = told(statement(slug)["not_protected"])
    assert list(limits["static"]) == ["presence", "missing_values", "times", "key_holder"]
    assert list(limits["daily"]) == ["presence", "missing_values", "changes", "times", "key_holder"]
    said = [
        "A made-up report stays the same every day" in limits[slug]["changes"] for slug in ("daily", "fakes")
    ]
    assert said == [False, True]


def test_statement_says_what_one_known_day_tells_of_another_and_where_epsilon_is_empty() -> None:
    coin = factory.indicator("night", "in", "out", kind="daily", column=None, derive="visit_duration")
    seven = factory.indicator("seven", *"abcdefg", kind="daily", column=None, derive="visit_duration")
    factory.create(coin, seven, slug="days", epsilon="0.1")
    (changes,) = [row["text"] for row in statement("days")["not_protected"] if row["name"] == "changes"]
    figures = "50.0% without any report, 52.5% with one day's report"
    assert f"Night: {figures}" in changes
    assert "(Night): the epsilon per attribute gives no guarantee for a day" in changes
    assert "knows one of the values learns the other" in changes
    factory.create(replace(coin, max_values=1), slug="once", epsilon="0.1")
    changes = told(statement("once")["not_protected"])["changes"]
    assert ("Correct guesses" in changes, "with two categories" in changes) == (False, False)


def test_statement_says_what_reports_on_hashed_values_tell(reader) -> None:
    asked = factory.indicator("place", *"abcd", kind="daily", column=None, derive="visit_duration")
    plan = PlanDefinition(
        mechanism="smp-loloha",
        unit="attribute",
        epsilon=Decimal(2),
        epsilon_profile=None,
        epsilon_first=Decimal("0.5"),
        hash_cells="optimal",
    )
    study = factory.published(asked, plan=plan, n=300)
    (shown,) = protections(Plan.objects.get(study=study)).values()
    changes = told(statement(study)["not_protected"])["changes"]
    assert changes.startswith(
        "Hashed values (Place): for each person, the list of categories is divided into sets in a different way"
    )
    assert "same answer" not in changes and "The epsilon per attribute does not limit this loss" in changes
    assert shown.epsilon_odds == shown.epsilon_answer < shown.epsilon_value
    html = page(reader, "statement")
    assert f" {formats.odds(shown.epsilon_answer)}</td>" in html
    assert f" {formats.odds(shown.epsilon_value)}</td>" not in html
    text = " ".join(section(study, "Risk: an attacker learns a person's value").paragraphs)
    assert "Two daily reports do not show for certain" in text and "No epsilon limits" not in text


def test_pages_and_statement_name_the_change_that_undone_days_show_in_one_wording(reader) -> None:
    plan = replace(factory.definition(mechanism="smp-stream").plan, window_days=3)
    factory.published(factory.STAY, plan=plan, n=300, days=4)
    factory.published(factory.STAY, n=300, slug="kept")
    trips = factory.moves("trips", *map_factory.ZONES)
    factory.published(map_factory.HOME, trips, n=300, area=map_factory.area(), slug="moves")
    said = "whether a person's value has changed between them. The guarantee does not cover this."

    def places(slug: str, address: str) -> list[int]:
        found = reader.get(f"/studies/{slug}/{address}/")
        assert found.status_code == 200
        texts = (statement(slug)["guarantee"]["definition"], unescape(found.content.decode()))
        return [text.count(said) for text in texts]

    studies = (("fair-2024", "stay/days"), ("moves", "flows"), ("kept", "stay/days"))
    assert [places(*each) for each in studies] == [[0, 0]] * 3
    Plan.objects.update(voided_days=1)
    assert [places(*each) for each in studies] == [[1, 1], [1, 1], [0, 0]]
    french = reader.get("/studies/moves/flows/", HTTP_ACCEPT_LANGUAGE="fr").content.decode()
    assert "a changé entre elles." in unescape(french)


@pytest.mark.parametrize(("mechanism", "is_said"), [("smp-grr", 0), ("smp-question", 1), ("smp-loloha", 1)])
def test_statement_says_which_people_with_other_lasting_values_are_not_compared(mechanism, is_said) -> None:
    both = factory.joint("both", factory.GENDER, factory.STAY, kind="daily")
    factory.create(factory.GENDER, factory.STAY, both, mechanism=mechanism)
    changes = told(statement()["not_protected"])["changes"]
    assert changes.count("Joint indicators (Both): even if two people differ only") == is_said


def test_statement_says_what_renewed_reports_tell(reader) -> None:
    study = factory.published(factory.GENDER, factory.MANY, n=300, mechanism="smp-allomfree", epsilon="2")
    plan = Plan.objects.get(study=study)
    shown = protections(plan)
    assert [shown[slug].method for slug in ("gender", "region")] == ["L-GRR", "L-OSUE"]
    for each in shown.values():
        assert each.epsilon_odds == each.epsilon_answer <= 1 < each.epsilon_value <= 2
    assert "covers the reports of all days together" in statement(study)["guarantee"]["definition"]
    html = reader.get("/studies/fair-2024/gender/").content.decode()
    assert "Each day of presence has its own answer" in html
    assert f"by a factor of at most {formats.odds(shown['gender'].epsilon_value)}, however many days" in html
    french = reader.get("/studies/fair-2024/gender/", HTTP_ACCEPT_LANGUAGE="fr").content.decode()
    assert "Chaque jour de présence a sa propre réponse" in unescape(french)


@pytest.mark.parametrize(
    ("asked", "mechanism", "needed"),
    [
        (factory.STAY, "smp-question", {"threshold", "prime", "dimension", "codes"}),
        (
            factory.STAY, "smp-loloha",
            {"threshold", "prime", "dimension", "codes", "threshold_second", "nominal_first"},
        ),
        (factory.GENDER, "smp-allomfree", {"threshold", "threshold_second", "nominal_first"}),
        (
            factory.MANY, "smp-allomfree",
            {"threshold_p", "threshold_q", "threshold_second", "nominal_first"},
        ),
    ],
)  # fmt: skip
def test_schema_knows_questions_hashed_values_and_renewed_reports(asked, mechanism, needed) -> None:
    factory.create(asked, mechanism=mechanism)
    found = statement()
    (entry,) = found["indicators"]
    for key in needed:
        changed = {name: value for name, value in entry.items() if name != key}
        assert not jsonschema.Draft202012Validator(SCHEMA).is_valid(found | {"indicators": [changed]}), key


def test_statement_names_study_plan_and_software() -> None:
    study = factory.create(market_share=Decimal("0.35"), min_publication=120, small_cell=30)
    found = statement()
    asked = {"last_day": "2024-06-02", "market_share": "0.35", "min_publication": 120, "small_cell": 30}
    assert asked.items() <= found["study"].items()
    assert found["study"]["visitor"] == {"min_minutes": 60, "from": "06:00", "to": "23:59"}
    assert found["plan"]["spec_sha256"] == Plan.objects.get(study=study).spec_hash
    assert f'version = "{found["software"]["version"]}"' in (ROOT / "pyproject.toml").read_text()
    with pytest.raises(CommandError, match=r"STUDY must be the slug of a study \(fair-2024\), got nope"):
        printed("statement", "nope")


def test_pages_certify_what_the_statement_certifies(reader, fair) -> None:
    found, html = statement(), page(reader, "statement")
    shown = protections(Plan.objects.get(study=fair))
    for entry in found["indicators"]:
        certified = shown[entry["slug"]]
        assert str(certified.epsilon_answer) == entry["epsilon"]
        assert str(certified.epsilon_profile) == found["guarantee"]["epsilon_profile"]
        assert certified.thresholds == (int(entry["threshold"]),)
        assert entry["threshold"] in html
    for row in (*found["not_protected"], *found["retention"]):
        assert row["text"] in unescape(html)
    file = get(reader, "statement_file")
    assert json.loads(file.content) == found
    assert "attachment" in file["Content-Disposition"]


def test_closed_study_says_when_its_key_was_destroyed(reader, fair) -> None:
    before = statement()
    assert before["study"]["closed_at"] is None
    mark_closed(study_slug=fair.slug, closed_at=CLOSED_AT)
    mark_closed(study_slug=fair.slug, closed_at=CLOSED_AT + timedelta(days=1))  # the first time counts
    closed = statement()
    assert (closed["study"]["state"], closed["study"]["closed_at"]) == ("closed", "2024-06-01T12:30:00Z")
    old, new = (told(each["retention"], "until") for each in (before, closed))
    assert new["key"] == new["presence"] == "destroyed on 2024-06-01"
    assert {name for name in new if new[name] != old[name]} == {"key", "presence"}
    for name in ("statement", "study"):
        assert "was closed on Sat 1 Jun 2024" in page(reader, name)
    fair.closed_at = CLOSED_AT  # of a study that is open
    with pytest.raises(IntegrityError, match="study_closed_has_time"):
        fair.save()


def test_the_day_of_the_key_s_end_is_stated_and_its_passing_is_noticed(reader) -> None:
    factory.create(key_until=date(2024, 9, 30))
    found = statement()
    assert found["study"]["key_until"] == "2024-09-30"
    rows = {row["name"]: (row["until"], row["date"]) for row in found["retention"]}
    assert rows["key"] == ("the key is destroyed no later than 2024-09-30", "2024-09-30")
    assert (rows["presence"][1], rows["totals"]) == ("2024-09-30", ("no date set", None))
    words = "The key of this study was due to be destroyed by Mon 30 Sep 2024, but the study is still open."
    assert words in page(reader, "study")
    Study.objects.update(key_until=date(2999, 1, 1))
    assert words not in page(reader, "study")


def test_other_studies_are_named_for_who_sees_all_of_them(reader, administrator, client) -> None:
    factory.create()
    factory.create(factory.GENDER, slug="autumn-2024", name="Autumn 2024")
    client.force_login(administrator)
    hidden, named = page(reader, "statement"), page(client, "statement")
    assert ["autumn-2024" in html for html in (hidden, named)] == [False, True]
    assert ["another study" in html for html in (hidden, named)] == [True, False]
    hidden, named = (json.loads(get(who, "statement_file").content) for who in (reader, client))
    hidden, named = (each["composition"]["studies"] for each in (hidden, named))
    assert [row["study"] for row in hidden] == [None, "fair-2024"]
    assert [row["study"] for row in named] == ["autumn-2024", "fair-2024"]
    assert [row | {"study": None} for row in named] == [row | {"study": None} for row in hidden]


def test_places_have_a_promise_of_their_own_per_metre(reader) -> None:
    study = factory.create(location=location())
    Plan.objects.update(voided_days=1)
    found = statement()["location"]
    asked = Fraction(found["level"]) / Fraction(found["radius_m"])
    # the drawn epsilon is smaller than the certified one, which is at most the requested one
    assert Fraction(found["sampled_epsilon_per_m"]) < Decimal(found["epsilon_per_m"]) <= asked
    assert Fraction(found["nominal_epsilon_per_m"]) == asked
    assert found["places_per_person"] == study.days + 1  # a published day was undone
    assert "up to the stated number per person" in found["who_reports"]
    radius = Fraction(found["epsilon_at_radius"])
    assert 0 <= radius - 400 * Fraction(found["epsilon_per_m"]) < Fraction(1, 10**28)
    assert 0 <= Fraction(found["epsilon_at_radius_all_places"]) - 5 * radius < Fraction(1, 10**27)
    assert (found["mean_shift_m"], found["radius_95_m"]) == pytest.approx((577.1, 1368.8), abs=0.1)
    shown = page(reader, "statement")
    assert "rather than the other by a factor of at most 4.00." in shown
    assert "relative to the other by a factor of at most 1,024." in shown  # of 5 places
    limits = told(statement()["not_protected"])
    assert limits.keys() >= PLACE_LIMITS
    # two squares that meet at a corner: their middles may be 400 m and a diagonal of 141.4 m apart
    assert "up to 542 m apart" in limits["squares"]
    assert "by a factor of at most 6.55" in limits["squares"]  # 4 ** (542 / 400) = 6.543
    plain = statement(factory.create(slug="plain"))
    assert plain["location"] is None
    assert not PLACE_LIMITS & told(plain["not_protected"]).keys()


def test_noise_hides_presence_and_how_many_cross(reader) -> None:
    exact, noisy = factory.create(slug="exact"), factory.create_noisy()
    factory.close(noisy, factory.crowd(noisy, n=100), first=1, last=4)
    shown, hidden = statement(exact), statement(noisy)
    assert shown["presence"] is None
    assert hidden["presence"]["noisy_through"] == 4
    limits = [told(each["not_protected"]) for each in (shown, hidden)]
    assert limits[0].keys() ^ limits[1].keys() == {"presence", "missing_values", "closings"}
    assert "closings" in limits[1]
    more = told(statement(factory.create(slug="more", tallies=("visits", "runs")))["not_protected"])
    assert more.keys() - limits[0].keys() == {"tallies"}
    assert "exact counts for: number of days present, length of stay" in more["tallies"]
    assert ["at least" in each["times"] for each in limits] == [True, False]
    packs = [to_markdown(dpia_pack(each)) for each in (exact, noisy)]
    assert ["Each publication changes the net contribution of at least" in each for each in packs] == [
        True,
        False,
    ]
    assert "s presence is protected with epsilon 2. Anything computed" in page(reader, "statement")


# --- the data protection pack: facts are filled in, and questions for people are left open -----------------
@pytest.fixture
def study() -> Study:
    return factory.create(factory.GENDER)


def section(study: Study, title: str) -> Section:
    (found,) = [each for each in dpia_pack(study).sections if each.title == title]
    return found


def rows(study: Study, title: str) -> dict[str, tuple[str, ...]]:
    return {row[0]: row[1:] for row in section(study, title).table.rows}


ONLY_SLOTS = "The epsilon for time slots covers only the counts by time slot."
NOT_AT_ALL = "Presence by time slot is not protected: the counts by slot and zone are exact"
HIDDEN = {"presence_epsilon": Decimal(1), "presence_days": 2}


@pytest.mark.parametrize(("noise", "hidden", "limit"), [(1, {}, ONLY_SLOTS), (1, HIDDEN, ""), (None, {}, NOT_AT_ALL)])  # fmt: skip
def test_slots_have_a_promise_of_their_own_and_pages_say_what_it_leaves_out(
    reader, noise, hidden, limit
) -> None:
    plan = PlanDefinition(
        mechanism="smp-grr", unit="profile", epsilon=Decimal(1), epsilon_profile=None, **hidden
    )
    epsilon, delta = (Decimal(noise), Decimal("0.000001")) if noise else (None, None)
    slots = SlotsDefinition(minutes=30, hold_minutes=45, slots_per_day=48, epsilon_day=epsilon, delta=delta)
    study = factory.create(factory.GENDER, plan=plan, slots=slots)
    found, text = statement(), page(reader, "statement")
    assert limit in told(found["not_protected"]).get("slots", "") and limit in text
    assert ("slots" in told(found["not_protected"])) == bool(limit)
    assert "or at most 45 minutes before its end" in text
    assert ("Together, the noise on time slots and the presence noise" in text) == bool(hidden)
    pack = to_markdown(dpia_pack(study))
    assert limit in pack and "Risk: an attacker learns when and where a person was" in pack
    row = found["composition"]["studies"][0]
    assert (row["delta"], row["epsilon_slots"] is None) == ("0.000001" if noise else "0", noise is None)
    day = [each["absent"]["epsilon"] for each in found["slots"]["losses"] if each["unit"] == "day"]
    assert [formats.epsilon(Decimal(each)) for each in day] == ["1"] * bool(noise)
    total = found["slots"]["with_presence"]
    assert row["epsilon_presence"] == (total and total["epsilon"])


class TestDataProtectionPack:
    def test_every_letter_of_both_articles_has_its_section(self, study) -> None:
        articles = " ".join(each.article for each in dpia_pack(study).sections)
        expected = [f"30 (1) {letter}" for letter in "abcdef"] + [f"35 (7) {letter}" for letter in "abcd"]
        assert [each for each in (*expected, "35 (9)") if each not in articles] == []
        points = section(study, "Necessity and proportionality").points
        assert "Data minimisation: only the columns needed for one indicator are read." in points

    def test_recipients_are_the_accounts_that_reach_the_study_now(self, study, person) -> None:
        assert set(rows(study, "Recipients").values()) == {("0",)}
        person("vera", Role.VIEWER)
        person("adam", Role.ADMINISTRATOR)
        person("olga", Role.OPERATOR, Role.ANALYST)
        person("anna", Role.ANALYST)
        User.objects.filter(username="anna").update(is_active=False)
        there = {"operator": "1", "analyst": "1", "administrator": "1", "privacy officer": "0", "viewer": "1"}
        assert {name: n for name, (n,) in rows(study, "Recipients").items()} == there

    def test_time_limits_are_those_of_the_statement_and_of_uploads_in_force(self, study) -> None:
        title = "Time limits for erasure"
        assert rows(study, title) == {row["text"]: (row["until"],) for row in retention(study)}
        assert section(study, title).to_fill
        study.key_until = date(2030, 1, 1)
        assert not section(study, title).to_fill
        assert "2030-01-01" in " ".join(until for (until,) in rows(study, title).values())
        for expires_s, told in (
            (86_400, "after 24 hours."),
            (5400, "after 2 hours."),
            (600, "after an hour."),
        ):
            with override_settings(MOBILITY_UPLOAD_EXPIRES_S=expires_s):
                (staged,) = section(study, title).paragraphs
            assert staged.endswith(told)

    def test_the_risk_of_a_value_is_computed_from_the_probabilities_in_use(self, study) -> None:
        spec, certificate = certified(study.plans.get())
        k, ratio = spec.indicators[0].domain_size, float(certificate.indicators[0].ratio)
        guessed = guess_success(spec.channel(0), prior=[1 / k] * k)
        found = rows(study, "Risk: an attacker learns a person's value")[study.indicators.get().name]
        assert found == tuple(formats.percent(share) for share in (1 / k, guessed, ratio / (1 + ratio)))

    def test_the_risk_of_a_daily_value_has_a_column_for_one_known_day(self) -> None:
        study = factory.create(factory.GENDER, factory.STAY, slug="both")
        spec, _ = certified(study.plans.get())
        title = "Risk: an attacker learns a person's value"
        figures = [formats.MISSING, formats.percent(known_day_success(spec.channel(1)))]
        assert [row[-1] for row in rows(study, title).values()] == figures
        assert "except for other reports from the same person" in section(study, title).paragraphs[0]
        assert "No epsilon limits this success rate" in section(study, title).paragraphs[1]

    def test_what_is_not_protected_is_a_risk(self, study) -> None:
        located = map_factory.create_located(slug="places-2024", n=300)
        risks = [section(each, "Risks not covered by the guarantee").points for each in (study, located)]
        assert risks[0] == tuple(limit["text"] for limit in not_protected(study.plans.get()))
        assert len(risks[1]) > len(risks[0])
        data = [rows(each, "Data subjects and data") for each in (study, located)]
        assert ["Main place on each day, with noise" in each for each in data] == [False, True]

    @pytest.mark.parametrize(
        ("changed", "label", "answers"),
        [
            ({"MOBILITY_ZONE": "analyst"}, "Operator zone and analyst zone run separately", ("no", "yes")),
            ({"HTTPS": True}, "Encrypted connections only (HTTPS)", ("no", "yes")),
            ({"MOBILITY_SECOND_FACTOR": "required"}, "Second factor required for administrators and privacy officers", ("no", "yes")),
            ({"MOBILITY_SECOND_PERSON": False}, "Second person required for changes that weaken a plan", ("yes", "no")),
        ],
    )  # fmt: skip
    def test_measures_are_those_in_force(self, study, changed, label, answers) -> None:
        before = rows(study, "Measures")[label]
        with override_settings(**changed):
            assert (*before, *rows(study, "Measures")[label]) == answers

    def test_markdown_has_everything_and_a_box_for_each_open_point(self, study) -> None:
        Study.objects.update(name="Fair *2024* | <b>")
        pack = dpia_pack(Study.objects.get())
        text = to_markdown(pack)
        assert text.count("- [ ] **") == pack.n_open > 10
        assert "# Data protection pack: Fair \\*2024\\* | \\<b\\>" in text
        for each in pack.sections:
            assert f". {each.title}".replace("*", "\\*") in text
            if each.table is not None:
                assert len(re.findall(r"^\| ", text, re.MULTILINE)) >= len(each.table.rows) + 2

    def test_the_document_can_be_read_and_printed(self, study, client, administrator, tmp_path) -> None:
        client.force_login(administrator)
        pack = dpia_pack(study)
        pdf = client.get(f"/studies/{study.slug}/dpia.pdf").content
        assert pdf.startswith(b"%PDF-")
        text = pdf_text(pdf)
        assert [each.title for each in pack.sections if each.title not in text] == []
        html = client.get(f"/studies/{study.slug}/dpia/").content.decode()
        assert text.count("Still to be completed:") == html.count("Still to be completed:") == pack.n_open
        written = client.get(f"/studies/{study.slug}/dpia.md")
        assert written["Content-Disposition"] == f'attachment; filename="{study.slug}_dpia.md"'
        assert written.content.decode() == to_markdown(pack)
        assert client.get(f"/studies/{study.slug}/dpia.html").status_code == 404
        assert printed("dpia", study.slug).strip() == to_markdown(pack).strip()
        printed("dpia", study.slug, out=tmp_path / "pack.pdf")
        assert (tmp_path / "pack.pdf").read_bytes() == pdf
        with pytest.raises(CommandError, match=r"--out must end in .md or .pdf, got pack.doc"):
            printed("dpia", study.slug, out=tmp_path / "pack.doc")
        with pytest.raises(CommandError, match=r"STUDY must be the slug of a study \(.+\), got nowhere"):
            printed("dpia", "nowhere")
