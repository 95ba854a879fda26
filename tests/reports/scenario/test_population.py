"""Synthetic people of a study: counted from the files, they have the published numbers and nothing else."""

import csv
import io
import json
from collections import defaultdict
from datetime import date
from zipfile import ZipFile

import pyarrow.parquet as pq
import pytest
from django.core.management import CommandError, call_command

from reports import tasks
from reports.estimates.queries import study_reports
from reports.exports import actions, file_views
from reports.models import LedgerEntry, Study
from reports.scenario.population import PopulationError, synthesise
from reports.scenario.population_errors import error_rates
from reports.scenario.population_files import population_files
from tests.reports import report_factory as factory

pytestmark = pytest.mark.django_db
# Day 2 has 5 people, day 3 has 4: hidden by a limit of 10.
HIDDEN = {0b1001: 60, 0b0001: 100, 0b1000: 80, 0b0101: 2, 0b1010: 3, 0b0110: 2}
FILES = ["persons.csv", "persons.parquet", "presence.csv", "presence.parquet", "errors.csv", "errors.parquet"]


def with_hidden_windows() -> Study:
    study = factory.create(factory.GENDER, factory.STAY, small_cell=10, epsilon="2")
    factory.publish(study, factory.of_days(study, HIDDEN))
    return study


def rows_of(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode())))


def counted(files: dict[str, bytes], study: Study) -> dict[tuple[str, str, date, date], int]:
    persons = {row["person_id"]: row for row in rows_of(files["persons.csv"])}
    days: dict[str, dict[date, dict[str, str]]] = defaultdict(dict)
    for row in rows_of(files["presence.csv"]):
        days[row["person_id"]][date.fromisoformat(row["date"])] = row
    assert days.keys() == persons.keys()
    found: dict[tuple[str, str, date, date], int] = defaultdict(int)
    dates = [study.date_of(day) for day in range(1, study.days + 1)]
    for person, there in days.items():
        for first in dates:
            for last in dates:
                if within := sorted(day for day in there if first <= day <= last):
                    values = persons[person] | there[within[0]]
                    found["", "", first, last] += 1
                    for slug in values.keys() - {"person_id", "date"}:
                        found[slug, values[slug], first, last] += 1
    return found


def check_errors(files: dict[str, bytes], study: Study, *, scale: float = 1) -> None:
    """The file of errors says what people counted from the other files are, next to what is published."""
    found = counted(files, study)
    published = {
        (report.indicator.slug, each.category, report.first_date, report.last_date): (report, each)
        for report in study_reports(list(study.indicators.all()), None)
        for each in report.estimates
    }
    rows = rows_of(files["errors.csv"])
    assert len(rows) == len(published) + study.days * (study.days + 1) // 2
    for row in rows:
        window = date.fromisoformat(row["first_day"]), date.fromisoformat(row["last_day"])
        key = (row["indicator"], row["category"], *window)
        if row["indicator"]:
            report, estimate = published[key]
            assert row["status"] == estimate.status
            if estimate.consistent is None:
                assert row["published"] == ""
            else:
                wanted = estimate.consistent * max(report.n_visitors, 0)
                assert float(row["scaled"]) == pytest.approx(wanted * scale, abs=1e-2)
                assert float(row["published"]) == pytest.approx(wanted, abs=1e-3)
        if row["published"]:
            assert int(row["synthetic"]) == found[key]
            difference = abs(found[key] - float(row["scaled"]))
            assert float(row["absolute"]) == pytest.approx(difference, abs=2e-3)
        else:
            assert row["scaled"] == row["synthetic"] == row["absolute"] == row["percent"] == ""


def test_each_published_number_of_visitors_is_that_of_the_rows(fair) -> None:
    files = population_files(synthesise(fair))
    found = counted(files, fair)
    for report in study_reports(list(fair.indicators.all()), None):
        assert found["", "", report.first_date, report.last_date] == report.n_visitors
    check_errors(files, fair)
    manifest = json.loads(files["manifest.json"])
    assert manifest["error_rates"]["visitors"] == 0
    assert 0 < manifest["error_rates"]["gender"] < 0.1
    assert "no row is a person" in manifest["notice"]
    assert manifest["plan"]["sha256"] == fair.plans.get().spec_hash
    assert (manifest["further_epsilon"], manifest["plan"]["epsilon_presence"]) == ("0", None)
    assert manifest["inputs"]["left_out"] == {}


def test_hidden_windows_are_filled_and_not_told(reader) -> None:
    study = with_hidden_windows()
    files = population_files(synthesise(study))
    found = counted(files, study)
    hidden = set()
    for report in study_reports(list(study.indicators.all()), None):
        number = found["", "", report.first_date, report.last_date]
        if report.n_visitors is None:
            hidden.add(report.window)
            assert 0 < number < 10
        else:
            assert number == report.n_visitors
    assert len(hidden) == 3
    check_errors(files, study)
    assert json.loads(files["manifest.json"])["inputs"]["hidden_windows"] == 3
    blank = [row for row in rows_of(files["errors.csv"]) if row["status"] == "suppressed"]
    assert len(blank) == 3 * (1 + 3 + 2)


def test_noisy_numbers_become_people_who_are_near_them() -> None:
    for n, most in ((6000, 0.01), (20, 3)):  # of few people some numbers are below none
        study = factory.create_noisy(slug=f"of-{n}")
        factory.close(study, factory.crowd(study, n=n), first=1, last=3)
        files = population_files(synthesise(study))
        check_errors(files, study)
        assert json.loads(files["manifest.json"])["error_rates"]["visitors"] < most


def test_files_are_the_same_for_a_seed_and_in_both_formats(fair) -> None:
    files, again, other = (population_files(synthesise(fair, seed=seed)) for seed in (1, 1, 2))
    assert list(files) == ["manifest.json", *FILES]
    assert files == again
    assert all(files[name] != other[name] for name in FILES[:4])
    for name in ("persons", "presence", "errors"):
        table = pq.read_table(io.BytesIO(files[f"{name}.parquet"])).to_pylist()
        texts = [{key: "" if value is None else str(value) for key, value in row.items()} for row in table]
        assert texts == rows_of(files[f"{name}.csv"])
    assert rows_of(files["persons.csv"])[0]["person_id"] == "P000001"


@pytest.mark.parametrize("people", [1, 5000])
def test_as_many_people_as_asked_for_have_the_shares_of_the_study(fair, people) -> None:
    made = synthesise(fair, people=people)
    files, scale = population_files(made), people / synthesise(fair).presence.size
    assert (made.presence.size, made.scale) == (people, scale)
    check_errors(files, fair, scale=scale)
    rates = json.loads(files["manifest.json"])["error_rates"]
    assert rates["visitors"] < 20 / people
    assert rates["gender"] < 0.02 + 60 / people
    of_all = [row for row in rows_of(files["errors.csv"]) if not row["indicator"]]
    assert max(float(row["absolute"]) for row in of_all) < fair.days


def test_indicators_that_cannot_be_dealt_out_are_named() -> None:
    study = factory.create(factory.GENDER, factory.AGE, factory.HALF_STAY, factory.BOTH)
    people = factory.crowd(study, n=500)
    people.static["age"][:] = -1
    factory.publish(study, people)
    population = synthesise(study)
    assert [each.indicator.slug for each in population.attributes] == ["gender"]
    assert population.left_out == {
        "age": "no reports", "stay": "answered on some days only", "both": "combines other indicators",
    }  # fmt: skip
    assert {row.indicator for row in population.errors} == {"", "gender"}


def test_there_are_no_people_where_there_is_no_number_of_them() -> None:
    empty = factory.create()
    with pytest.raises(PopulationError, match="no visitors yet"):
        synthesise(empty)
    few = factory.published(n=9, small_cell=10, slug="few")
    with pytest.raises(PopulationError, match="fewer than 10 visitors"):
        synthesise(few)
    assert error_rates(()) == {}


def test_command_writes_what_the_ledger_has(fair, tmp_path, capsys) -> None:
    call_command("synthesise", fair.slug, "--out", str(tmp_path / "people"), "--seed", "5")
    printed = json.loads(capsys.readouterr().out)
    files = population_files(synthesise(fair, seed=5))
    assert {path.name: path.read_bytes() for path in (tmp_path / "people").iterdir()} == files
    assert printed["people"] == len(rows_of(files["persons.csv"]))
    assert printed["person_days"] == len(rows_of(files["presence.csv"]))
    facts = {"way": "command", "format": "population", "seed": "5"}
    for asked in ({}, {"people": "40"}):
        if asked:
            out = ("--out", str(tmp_path / "40"))
            call_command("synthesise", fair.slug, *out, "--seed", "5", "--people", "40")
            assert json.loads(capsys.readouterr().out)["people"] == 40
        entry = LedgerEntry.objects.latest("number")
        assert (entry.kind, entry.study, entry.facts) == ("export.made", fair.slug, facts | asked)
    out = str(tmp_path / "other")
    for message, words in {
        r"STUDY must be the slug of a study \(fair-2024\), got nope": ("nope", "--out", out),
        "--seed must be at least 0, got -1": (fair.slug, "--out", out, "--seed", "-1"),
        "must be from 1 to 5000000, not 0": (fair.slug, "--out", out, "--people", "0"),
        "must be from 1 to 5000000, not 5000001": (fair.slug, "--out", out, "--people", "5000001"),
        "--out must be a folder": (fair.slug, "--out", str(tmp_path / "people" / "errors.csv")),
    }.items():
        with pytest.raises(CommandError, match=message):
            call_command("synthesise", *words)


def test_a_worker_makes_the_download_for_those_who_may_export(fair, reader, viewer, monkeypatch) -> None:
    sent: list[int] = []
    monkeypatch.setattr(actions, "_send", lambda row: sent.append(row.pk))
    monkeypatch.setattr(file_views, "WAIT_S", {"browser": 0.0, "script": 0.0})
    address = f"/studies/{fair.slug}/population.zip"
    assert f'href="{address}"' in reader.get(f"/studies/{fair.slug}/").content.decode()
    assert reader.get(address).status_code == 302
    assert not LedgerEntry.objects.filter(kind="export.made").exists()
    tasks.make_export(sent[0])
    answer = reader.get(address)
    assert answer["Content-Disposition"] == 'attachment; filename="fair-2024_population.zip"'
    with ZipFile(io.BytesIO(answer.getvalue())) as packed:
        files = {name: packed.read(name) for name in packed.namelist()}
    assert files == population_files(synthesise(fair))
    assert LedgerEntry.objects.latest("number").facts == {"way": "page", "file": "fair-2024_population.zip"}
    Study.objects.update(small_cell=10**6)
    reader.get(address)
    tasks.make_export(sent[1])
    answer = reader.get(address)
    assert (answer.status_code, "fewer than 1000000 visitors" in answer.content.decode()) == (400, True)
    reader.force_login(viewer)
    assert reader.get(address).status_code == 404
