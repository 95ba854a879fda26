"""Studies that limit the events of a person: further ones are counted, and give no answer."""

import json
import random
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from jsonschema import Draft202012Validator

import ldp
from mobility.extracts.profiles.errors import ProfileFileError
from mobility.extracts.profiles.parse import parse_profile
from mobility.extracts.profiles.preview import preview
from mobility.extracts.profiles.sample import Sample
from mobility.extracts.profiles.typed import TypedProfile
from mobility.models import AnswerShard, Batch
from mobility.operations.doctor import tallies as doctor
from mobility.operations.doctor.sealed import seals
from mobility.operations.findings import Level
from mobility.plans.closing import Leave, close_study
from mobility.vault.state.answered import AnsweredEvents
from mobility.vault.studies import open_study
from reports.events.queries import events_by_day, known_periods, period_reports
from reports.models import BudgetCap, Study
from reports.privacy.budget.actions import PopulationUnitsError, check_budget, outlook_of, propose_cap
from reports.privacy.composition import studies_of
from reports.privacy.statement.document import privacy_statement
from reports.studies.policies import Role
from reports.studies.studyfile import StudyDefinition, StudyFileError
from scripts.check_statement import check
from tests.mobility.event_study import SLUG, TEXT, TEXT_OF_PEOPLE, as_changes, event_definition, write_people

pytestmark = pytest.mark.django_db(databases=["default", "vault"], transaction=True)
MOST = 2
SCHEMA = Path(__file__).parents[3] / "docs/statement.schema.json"
PROFILE = """
[profile]
name = "other"
kind = "events"

[columns]
subscriber = "id"
person = "who"
timestamp = "at"
cell = "cell_id"

[indicator.reason]
column = "reason"
"""


@pytest.fixture
def pipeline(make_pipeline):
    return make_pipeline(**as_changes(event_definition(TEXT_OF_PEOPLE)))


@pytest.fixture
def send(pipeline, tmp_path):
    def sent(rows, name="rows.csv") -> Batch:
        (batch,) = pipeline.upload(write_people(tmp_path / name, rows))
        assert batch.state == Batch.State.DONE, batch.failure
        return batch

    return sent


def row(person: str, day: int, minute: int = 0, reason: str = "fire", cell: str = "C1") -> str:
    return f"2023-12-{19 + day:02d}T10:{minute:02d}:00,{cell},{reason},{person}"


def of_people(n: int, *, days=(1, 2, 3)) -> list[str]:
    """One event a day of each of n people."""
    return [row(f"P{person}", day, person % 60) for day in days for person in range(n)]


def answers() -> dict[int, int]:
    """Answers on one indicator, by day; under spl each answered event gives one."""
    indicator = Study.objects.get(slug=SLUG).indicators.get(slug="reason")
    found = period_reports(indicator, known_periods(indicator.study, "day"))
    return {each.report.window.last_day: each.report.n_reports or 0 for each in found if each.n_events}


def events() -> dict[int, int]:
    return {day: n for day, n in enumerate(events_by_day(Study.objects.get(slug=SLUG)), start=1) if n}


def answered_of(pipeline) -> Counter:
    study = open_study(pipeline.study)
    rows = AnswerShard.objects.filter(study=pipeline.study)
    return Counter(np.concatenate([study.unseal_answered_events(each).person for each in rows]).tolist())


def test_only_the_first_events_of_a_person_are_answered_and_all_are_counted(pipeline, send):
    batch = send(of_people(30))
    assert batch.rows_accepted == 90
    assert (events(), answers()) == ({1: 30, 2: 30, 3: 30}, {1: 30, 2: 30, 3: 0})
    assert sorted(answered_of(pipeline).values()) == [MOST] * 30


def test_the_order_of_rows_and_the_cuts_of_a_file_do_not_matter(pipeline, send, settings, monkeypatch):
    rows = of_people(40)
    send(rows)
    before = pipeline.tallies()
    pipeline.study.refresh_from_db()
    kept = answered_of(pipeline)
    AnswerShard.objects.all().delete()  # as if nothing had been answered
    for day in (1, 2, 3):
        pipeline.void_day(day)
    monkeypatch.setattr("mobility.extracts.readers.chunks.GRAIN_BYTES", 500)
    settings.MOBILITY_CHUNK_BYTES = 500
    monkeypatch.setattr("mobility.batches.reading.MIN_CHUNK_BYTES", 500)
    batch = send(random.Random(5).sample(rows, len(rows)), "shuffled.csv")
    assert batch.chunks.count() > 3
    assert (pipeline.tallies(), answered_of(pipeline)) == (before, kept)


def test_an_earlier_event_in_a_later_file_takes_no_place(pipeline, send):
    send(of_people(30, days=(2, 3)))
    before = answers()
    assert before == {2: 30, 3: 30}
    send(of_people(30, days=(1,)), "late.csv")
    assert (events(), answers()) == ({1: 30, 2: 30, 3: 30}, {1: 0, **before})


def test_an_undone_day_comes_back_with_its_answers_and_frees_no_place(pipeline, send):
    rows = of_people(30)
    send(rows)
    before, kept = pipeline.tallies(), answered_of(pipeline)
    pipeline.void_day(1)
    assert answers() == {2: 30, 3: 0}
    changed = [each.replace("fire", "illness") for each in of_people(30, days=(1,))]
    send(changed + of_people(30, days=(4,)), "changed.csv")
    # Their first events were answered once, and with other values they would be further ones.
    assert answers() == {1: 0, 2: 30, 3: 0, 4: 0}
    pipeline.void_day(1)
    pipeline.void_day(4)
    send(rows, "again.csv")
    assert (pipeline.tallies(), answered_of(pipeline)) == (before, kept)


def test_rows_without_a_person_are_counted_and_not_answered(pipeline, send):
    batch = send([row("", 1, minute) for minute in range(40)] + of_people(20, days=(1,)))
    assert (events(), answers()) == ({1: 60}, {1: 20})
    assert batch.checks["empty"]["patient"] == 40


def test_equal_rows_of_two_people_are_two_events(pipeline, send):
    send([row(f"P{person}", 1) for person in range(30)] + [row("P1", 1)] * 3)
    assert (events(), answers()) == ({1: 33}, {1: 31})


def test_no_identifier_is_kept_and_closing_erases_the_limits(pipeline, send):
    send(of_people(30))
    assert not set(answered_of(pipeline)) & {int.from_bytes(f"P{n}".encode()) for n in range(30)}
    assert {found.level for found in seals(deep=True)} == {Level.OK}
    assert {found.level for found in doctor.recomputed()} == {Level.OK}
    certificate = close_study(pipeline.study, by="test", leave=Leave())
    assert certificate["erased"]["answer_shards"]
    assert not AnswerShard.objects.exists()


def test_a_check_of_a_file_keeps_nothing(pipeline, tmp_path):
    pipeline.upload(write_people(tmp_path / "rows.csv", of_people(30)), validate_only=True)
    assert not AnswerShard.objects.exists()


def test_first_are_those_of_the_earliest_time_then_of_the_smallest_key():
    rng = np.random.default_rng(3)
    known = AnsweredEvents.empty()
    for _ in range(3):
        key = rng.integers(1, 2**63, 400).astype(np.uint64)
        key[100:150] = key[:50]  # sent twice
        person, second = rng.integers(0, 30, 400).astype(np.uint64), rng.integers(0, 5, 400).astype(np.uint32)
        person[100:150], second[100:150] = person[:50], second[:50]
        found = known.admit(key, person=person, second=second, most=6)
        expected = set(zip(known.person.tolist(), known.key.tolist(), strict=True))
        for one in range(1, 30):
            mine = {int(k) for p, k in expected if p == one}
            rows = sorted({(int(s), int(k)) for k, p, s in zip(key, person, second, strict=True) if p == one})
            new = [k for _, k in rows if k not in mine]
            expected |= {(one, k) for k in new[: max(6 - len(mine), 0)]}
        assert set(zip(found.person.tolist(), found.key.tolist(), strict=True)) == expected
        assert len(found) == len(expected)
        assert (np.diff(found.person.astype(np.int64)) >= 0).all()
        known = AnsweredEvents.unpack(found.pack())


def test_the_statement_names_the_person_with_the_loss_of_all_answers_and_the_script_agrees(pipeline):
    statement = statement_of()
    assert check(statement).texts == []
    Draft202012Validator(json.loads(SCHEMA.read_text())).validate(statement)
    person = statement["guarantee"]["person"]
    assert (person["max_events"], person["nominal"]) == (MOST, "2/1")
    assert float(person["epsilon"]) == pytest.approx(2 * float(statement["guarantee"]["epsilon_profile"]))
    assert "unanswered_events" in {each["name"] for each in statement["not_protected"]}
    assert "persons" in {each["name"] for each in statement["retention"]}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda said: said["guarantee"].pop("person"), "guarantee.person"),
        (lambda said: said["guarantee"]["person"].update(epsilon="1.0"), "guarantee.person.epsilon"),
        (lambda said: said["guarantee"]["person"].update(nominal="1/1"), "guarantee.person.nominal"),
        (lambda said: said["guarantee"]["person"].update(max_events=1), "guarantee.person.max_events"),
        (lambda said: said["plan"]["spec"].update(max_events=0), "plan.spec, events"),
        (lambda said: said["plan"]["spec"].pop("max_events"), "guarantee.person"),
        (lambda said: said["retention"].pop(), "retention, persons, date"),
        (lambda said: said["not_protected"].pop(2), "not_protected, unanswered_events"),
    ],
)
def test_the_script_finds_what_was_changed(pipeline, change, expected):
    statement = statement_of()
    change(statement)
    assert any(expected in text for text in check(statement).texts)


def statement_of() -> dict:
    return json.loads(json.dumps(privacy_statement(Study.objects.get(slug=SLUG), with_names=True)))


@pytest.mark.parametrize(
    ("language", "said"),
    [
        (
            "en",
            (
                "Only the first 2 events of each",
                "second privacy unit: person",
                "At most 2 events of",
            ),
        ),
        (
            "fr",
            ("Seuls les 2 premiers événements", "deuxième unité", "Au plus 2 événements"),
        ),
    ],
)
def test_pages_say_which_events_are_answered(pipeline, send, client, person, language, said):
    send(of_people(30))
    client.force_login(person("ada", Role.ADMINISTRATOR))
    client.cookies["django_language"] = language
    pages = [
        unescape(client.get(f"/studies/{SLUG}/{page}").content.decode())
        for page in ("reason/?period=day", "statement/", "reason/?period=day")
    ]
    assert [text in " ".join(page.split()) for text, page in zip(said, pages, strict=True)] == [True] * 3
    found = json.loads(client.get(f"/studies/{SLUG}/reason/periods.json?period=day").content)
    assert found["max_events"] == MOST


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("max_events = 2\n", ""), "plan.max_events: must be present"),
        (('person = "patient"\n', ""), "extract.person: must name the column of people"),
        (("max_events = 2", "max_events = 0"), "plan.max_events: must be"),
        (('"patient"', '"reason"'), "must be its own column"),
        (
            ('kind = "events"\n', ""),
            "extract.person: must be absent: only a study with kind",
        ),
    ],
)
def test_the_study_file_needs_both_and_events(change, message):
    with pytest.raises(StudyFileError) as found:
        event_definition(TEXT_OF_PEOPLE.replace(*change))
    assert any(message in str(each) for each in found.value.problems)


def test_definitions_and_hashes_of_other_studies_stay_what_they_were():
    plain = event_definition().to_json()
    assert "person" not in plain["extract"]
    assert "max_events" not in plain["plan"]
    limited = event_definition(TEXT_OF_PEOPLE)
    assert StudyDefinition.from_json(json.loads(json.dumps(limited.to_json()))) == limited
    assert limited.plan_spec().max_events == MOST


def test_a_profile_of_other_columns_names_the_person(pipeline, tmp_path):
    study = open_study(pipeline.study)
    text = PROFILE.replace('person = "who"\n', "")
    with pytest.raises(ProfileFileError, match=r"columns\.person"):
        parse_profile(text.encode(), filename="p.toml", definition=study.definition)
    found = parse_profile(PROFILE.encode(), filename="p.toml", definition=study.definition)
    assert TypedProfile.from_json(json.loads(json.dumps(found.to_json()))) == found
    assert found.compiled(study.definition).all_columns[:2] == ("id", "who")
    with pytest.raises(ProfileFileError, match="only a study with max_events"):
        parse_profile(PROFILE.encode(), filename="p.toml", definition=event_definition())


def test_a_preview_hides_the_people_and_says_that_they_may_be_absent(pipeline):
    definition = open_study(pipeline.study).definition
    sample = Sample(
        names=("at", "who"), rows=(("2023-12-20T10:00:00", "P17"), ("x", "")), misshapen=0, format="csv"
    )
    draft = {"profile": {"kind": "events"}, "columns": {"timestamp": "at", "person": "who"}}
    column = next(each for each in preview(sample, draft, definition=definition) if each.role == "person")
    assert "P17" not in {value.text for value in column.values}
    assert [value.meaning for value in column.values] == ["", "empty value: counted, but not answered"]
    assert not column.reasons


def test_the_budget_of_the_population_counts_what_a_person_spends(pipeline) -> None:
    certificate = ldp.certify(Study.objects.get(slug=SLUG).plans.get().parsed)
    losses = studies_of("events")[0].losses
    assert losses.profile == certificate.epsilon_person
    # Each of two events is answered on two indicators at 0.5 each; 64-bit thresholds lose a little less.
    assert losses.profile == Decimal("1.99999999999999999987776041535")
    assert losses.attribute == Decimal("0.999999999999999999974271119482")
    row = privacy_statement(Study.objects.get(slug=SLUG), with_names=True)["composition"]["studies"][0]
    assert Decimal(row["epsilon_profile"]) == losses.profile
    for cap, is_exceeded in (("3.999", True), ("4", False)):
        BudgetCap.objects.all().delete()
        propose_cap(population="events", unit="profile", period="ever", epsilon=Decimal(cap), by="adam")
        other = replace(event_definition(TEXT_OF_PEOPLE), slug="other")
        assert bool(outlook_of(other).exceeded) == is_exceeded, cap


def test_a_population_has_one_unit(pipeline) -> None:
    for text, unit in (
        (TEXT, "this study are of single events, those of the other one are of all events of a person"),
        (TEXT_OF_PEOPLE, ""),
    ):
        other = replace(event_definition(text), slug="other")
        if not unit:
            check_budget(other, by="adam")
            continue
        with pytest.raises(PopulationUnitsError, match=unit):
            check_budget(other, by="adam")
        check_budget(replace(other, population="calls"), by="adam")
