"""Attributes in their own file, and people who opt out: tallies as if the files had been other ones."""

import csv
import json
from contextlib import nullcontext
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from django.core.management import CommandError

from mobility.batches import outcomes
from mobility.extracts.profiles.definition import DEFAULT, OPT_OUT, SUBSCRIBERS
from mobility.management import batch_command
from mobility.models import AnswerShard, Batch, DayState, OptOutShard, PresenceShard
from mobility.vault.studies import OpenStudy, open_study
from reports.models import Tally
from reports.studies.studyfile import IndicatorDefinition
from reports.studies.studyfile.lookups import Lookup
from reports.studies.studyfile.origins import VISITOR_CATEGORIES, VISITOR_CATEGORY, OriginRule
from tests.mobility.pipeline import Pipeline

pytestmark = pytest.mark.django_db(databases=["default", "vault"])

EVENT_COLUMNS = ("msisdn", "timestamp", "cell_id")


def without_people(path: Path, folder: Path, people=frozenset(), *, columns=None) -> Path:
    folder.mkdir(exist_ok=True)
    rows = [row for row in rows_of(path) if row["msisdn"] not in people and is_valid(row)]
    return write_rows(folder / path.name, columns or rows[0], rows)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return [*csv.DictReader(file)]


def write_rows(path: Path, columns, rows) -> Path:
    with path.open("w") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return path


def is_valid(row: dict[str, str]) -> bool:
    """The demo plants rows that are misshapen, or have an unknown value."""
    texts = row.values()
    return None not in row and None not in texts and all(texts) and "?" not in "".join(texts)


@pytest.fixture(scope="module")
def clean(extract, tmp_path_factory):
    folder = tmp_path_factory.mktemp("clean")
    return [without_people(path, folder) for path in extract[:2]]


@pytest.fixture(scope="module")
def subscribers(clean):
    people = {row["msisdn"].strip(): row for path in reversed(clean) for row in reversed(rows_of(path))}
    columns = [name for name in next(iter(people.values())) if name not in EVENT_COLUMNS[1:]]
    return write_rows(clean[0].with_name("subscribers.csv"), columns, people.values())


@pytest.fixture
def apart(make_pipeline, definition):
    extract = replace(definition.extract, attributes="subscribers")
    return make_pipeline(slug="apart", extract=extract)


def list_of(people: frozenset[str], folder: Path) -> Path:
    listed = folder / "opt-outs.txt"
    listed.write_text("\n".join(["msisdn", *sorted(people), ""]))
    return listed


@pytest.mark.parametrize(
    ("mechanism", "ways"), [("smp-grr", (0, 1, 2)), ("smp-allomfree", (0, 1, 2)), ("rsfd-ouez", (1,))]
)
def test_attributes_may_come_apart(make_pipeline, definition, clean, subscribers, tmp_path, mechanism, ways):
    """The subscriber extract comes before, between or after the events."""
    plan = {"plan": replace(definition.plan, mechanism=mechanism)}
    inline = make_pipeline(slug="inline", n_shards=1, **plan)
    inline.upload(*clean)
    extract = replace(definition.extract, attributes="subscribers")
    files = [without_people(path, tmp_path / "bare", columns=EVENT_COLUMNS) for path in clean]
    for when in ways:
        pipeline = make_pipeline(slug=f"apart-{when}", extract=extract, **plan)
        pipeline.upload(*files[:when])
        (batch,) = pipeline.upload(subscribers, profile=SUBSCRIBERS)
        pipeline.upload(*files[when:])
        assert batch.state == Batch.State.DONE
        assert batch.rows_read == batch.rows_accepted == batch.checks["subscribers"] > 300
        assert pipeline.tallies() == inline.tallies()


@pytest.mark.database
def test_subscriber_extract_is_kept_as_sanitised_reports_only(subscribers, apart):
    (batch,) = apart.upload(subscribers, profile=SUBSCRIBERS)
    assert batch.state == Batch.State.DONE
    assert sum(map(len, answers(apart))) == batch.checks["subscribers"]
    assert not PresenceShard.objects.exists()
    (again,) = apart.upload(subscribers, profile=SUBSCRIBERS)
    assert again.duplicate_of == batch


def answers(pipeline: Pipeline) -> list[list[int]]:
    study, rows = open_study(pipeline.study), AnswerShard.objects.filter(study=pipeline.study)
    return [study.unseal_answers(row).static.tolist() for row in rows.order_by("shard")]


def test_a_second_text_is_noted_and_the_first_answer_is_final(subscribers, apart, tmp_path):
    rows = rows_of(subscribers)
    swapped = [b | {"msisdn": a["msisdn"]} for a, b in zip(rows, rows[1:] + rows[:1], strict=True)]
    path = tmp_path / "swapped.csv"
    (batch,) = apart.upload(write_rows(path, rows[0], [*rows, *swapped]), profile=SUBSCRIBERS)
    assert 0 < batch.notes["conflicting_value"] < len(rows)
    first = answers(apart)
    (later,) = apart.upload(write_rows(path, rows[0], swapped), profile=SUBSCRIBERS)
    assert (later.notes["conflicting_value"], answers(apart)) == (batch.notes["conflicting_value"], first)


def test_a_list_of_opt_outs_with_a_bad_line_is_refused_whole(pipeline, clean, tmp_path):
    listed = list_of(opted_out(clean[0], n=50), tmp_path)
    people = listed.read_text().splitlines(keepends=True)
    listed.write_text("".join([*people[:30], "x,y\n", *people[30:]]))
    (batch,) = pipeline.upload(listed, profile=OPT_OUT)
    assert (batch.state, "first lines 31" in batch.failure) == (Batch.State.FAILED, True)
    assert not OptOutShard.objects.exists()


def test_tallies_are_those_without_the_people_who_opted_out(make_pipeline, clean, tmp_path, monkeypatch):
    """Also if their rows were read before they did, and are merged later."""
    people = opted_out(clean[0], n=150)
    expected = make_pipeline(slug="never-there", n_shards=1)
    expected.upload(*(without_people(path, tmp_path / "without", people) for path in clean))
    listed = list_of(people, tmp_path)
    for when in ("before", "between", "in-an-open-day", "while-read"):
        pipeline = make_pipeline(slug=when)
        if when in ("between", "in-an-open-day"):
            pipeline.upload(clean[0], more_to_come=when == "in-an-open-day")
        before = pipeline.visitors(1, 1)
        (batch,) = pipeline.upload(listed, profile=OPT_OUT)
        if when == "between":
            assert pipeline.visitors(1, 1) < before
        elif when == "in-an-open-day":
            pipeline.close_days(through=1)
        else:
            with monkeypatch.context() as patch:
                if when == "while-read":
                    patch.setattr(
                        OpenStudy, "opted_out", lambda _, **__: np.empty(0, np.uint64)
                    )  # of readers
                (read,) = pipeline.upload(clean[0])
            assert bool(read.rows_ignored.get("opted_out", 0)) == (when == "before")
        (last,) = pipeline.upload(clean[1])
        assert (batch.state, batch.checks["subscribers"]) == (Batch.State.DONE, len(people))
        assert pipeline.tallies() == expected.tallies(), when
        assert last.rows_ignored["opted_out"] > 0
        assert_gone(pipeline, people)


def test_an_empty_list_of_opt_outs_is_called_so(pipeline, tmp_path):
    (batch,) = pipeline.upload(list_of(frozenset(), tmp_path), profile=OPT_OUT)
    assert batch.failure == "the opt-out list is empty: no subscriber was opted out"


@pytest.mark.parametrize(
    ("profile", "year", "told"),
    [(SUBSCRIBERS, "2017", "a subscriber who already has a row"),
     (DEFAULT, "2018", "outside the study period"), (DEFAULT, "2017", "")],
)  # fmt: skip
def test_ingest_succeeds_only_for_what_was_meant(pipeline, clean, tmp_path, monkeypatch, profile, year, told):
    sent = tmp_path / "sent.csv"
    sent.write_text(clean[0].read_text().replace("2017-", f"{year}-"))
    (batch,) = pipeline.upload(sent, profile=profile)
    monkeypatch.setattr(batch_command, "workers", lambda: nullcontext(lambda: None))  # it has run above
    printed = StringIO()
    command = batch_command.BatchCommand(stdout=printed)
    with pytest.raises(CommandError, match=told) if told else nullcontext():
        command.run_batch(lambda _: batch, refuse=outcomes.misfit)
    command.run_batch(lambda _: batch)  # --allow-empty
    both = printed.getvalue().splitlines()
    assert [json.loads(line)["batch"] for line in both] == [str(batch.pk)] * 2


def opted_out(path: Path, *, n: int) -> frozenset[str]:
    names, counts = np.unique([row["msisdn"].strip() for row in rows_of(path)], return_counts=True)
    return frozenset(names[np.argsort(-counts, kind="stable")][:n].tolist())


def assert_gone(pipeline: Pipeline, people: frozenset[str]) -> None:
    """No state of the study holds a pseudonym of theirs but the list itself."""
    study = open_study(pipeline.study)
    listed = study.opted_out()
    assert len(listed) == len(people)
    for row in PresenceShard.objects.filter(study=pipeline.study):
        assert not np.isin(study.unseal_presence(row).pseudonym, listed).any()
    for state in DayState.objects.filter(study=pipeline.study):
        assert not np.isin(study.unseal_day(state).pseudonym, listed).any()
    assert OptOutShard.objects.filter(study=pipeline.study).exists()


# Texts of the columns that hold what is asked, and its category; some codes are of no category.
HOMES = {("25000", "20801"): "Resident", ("75001", "208"): "National tourist", ("", "20820"): "",
         ("25000", "262"): "Foreign tourist"}  # fmt: skip
URBAN_RURAL = ("Urban", "Rural")
CODES = tuple(
    (name, tuple(f"{code:05}" for code in range(half, 40_000, 2))) for half, name in enumerate(URBAN_RURAL)
)
DERIVED = {
    "origin": {
        "derive": VISITOR_CATEGORY, "categories": VISITOR_CATEGORIES,
        "origin": OriginRule(operator_column="mcc", home=("250",), countries=("FR",)),
    },
    "lookup": {
        "derive": None, "categories": URBAN_RURAL,
        "lookup": Lookup(file="life.csv", sha256="0" * 64, prefix=5, otherwise="", codes=CODES),
    },
}  # fmt: skip


def raw_and_category(name: str, msisdn: str) -> tuple[dict[str, str], str]:
    """Columns of a person in a file, and the category that they mean."""
    if name == "origin":
        (home, mcc), category = [*HOMES.items()][int(msisdn[-2:]) % 4]
        return {"home": home, "mcc": mcc}, category
    code = int(msisdn[-5:]) % 41_000
    return {"home": f" {code:05} Montbéliard"}, URBAN_RURAL[code % 2] if code < 40_000 else ""


@pytest.mark.parametrize("name", DERIVED)
def test_derived_categories_are_counted_as_if_files_had_held_them(
    make_pipeline, definition, clean, tmp_path, name
):
    """From a home code and an operator, or one of 40,000 codes: totals as with a column of categories."""
    derived = IndicatorDefinition(
        slug="who", name="Who", kind="static", column="home", epsilon=None, max_values=None, **DERIVED[name]
    )
    plain, found = replace(derived, derive=None, origin=None, lookup=None), []
    for slug, asked in {"derived": derived, "plain": plain}.items():
        folder = tmp_path / slug
        folder.mkdir()
        files = []
        for path in clean:
            rows = rows_of(path)
            for row in rows:
                raw, category = raw_and_category(name, row["msisdn"])
                row.update(raw if asked is derived else raw | {"home": category})
            files.append(write_rows(folder / path.name, rows[0], rows))
        pipeline = make_pipeline(slug=slug, n_shards=1, indicators=(*definition.indicators, asked))
        batches = pipeline.upload(*files)
        assert {each.state for each in batches} == {Batch.State.DONE}
        assert ("mcc" in batches[0].checks["empty"]) == (asked is derived and name == "origin")
        found.append(pipeline.tallies())
    assert found[0] == found[1]
    assert any(Tally.objects.get(plan__study__slug="derived", indicator__slug="who").n_reports)
