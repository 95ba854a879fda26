"""Attributes in a file of their own, and people who opt out: tallies as if the files had been other ones."""

import csv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mobility.models import AnswerShard, Batch, DayState, OptOutShard, PresenceShard
from mobility.profiles import OPT_OUT, SUBSCRIBERS
from mobility.services.vault import OpenStudy, open_study
from reports.studyfile import StudyDefinition
from tests.mobility.services.conftest import Pipeline

pytestmark = [pytest.mark.database, pytest.mark.django_db(databases=["default", "vault"])]

EVENT_COLUMNS = ("msisdn", "timestamp", "cell_id")


def without_attributes(path: Path, folder: Path, *, leave_out: frozenset[str] = frozenset()) -> Path:
    """The same events, without the columns of attributes, and without some people."""
    return _rewritten(path, folder / path.name, columns=EVENT_COLUMNS, leave_out=leave_out)


def without_people(path: Path, folder: Path, people: frozenset[str]) -> Path:
    with path.open() as file:
        columns = next(csv.reader(file))
    return _rewritten(path, folder / path.name, columns=columns, leave_out=people)


def _rewritten(
    path: Path, out: Path, *, columns: tuple[str, ...] | list[str], leave_out: frozenset[str]
) -> Path:
    out.parent.mkdir(exist_ok=True)
    with path.open() as file, out.open("w") as target:
        writer = csv.DictWriter(target, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        for row in csv.DictReader(file):
            if row["msisdn"] not in leave_out and _is_valid(row):
                writer.writerow(row)
    return out


def _is_valid(row: dict[str, str]) -> bool:
    """The demo plants rows that are misshapen, or have a value that nobody knows."""
    return (
        None not in row
        and None not in row.values()
        and all(row.values())
        and "?" not in "".join(row.values())
    )


@pytest.fixture
def clean(extract: list[Path], tmp_path: Path) -> list[Path]:
    """Three days without bad rows."""
    return [without_people(path, tmp_path / "clean", frozenset()) for path in extract[:3]]


@pytest.fixture
def subscribers(clean: list[Path], tmp_path: Path) -> Path:
    """One row for each person: what the events say of them first."""
    people: dict[str, dict[str, str]] = {}
    for path in clean:
        with path.open() as file:
            for row in csv.DictReader(file):
                people.setdefault(row["msisdn"].strip(), row)
    out = tmp_path / "subscribers.csv"
    columns = [name for name in next(iter(people.values())) if name not in EVENT_COLUMNS[1:]]
    with out.open("w") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(people.values())
    return out


@pytest.fixture
def apart(definition: StudyDefinition) -> dict[str, object]:
    """What a study says whose events have no attributes."""
    return {"extract": replace(definition.extract, attributes="subscribers")}


@pytest.mark.parametrize("mechanism", ["smp-grr", "spl-grr", "rsfd-ouez"])
@pytest.mark.parametrize("when", [0, 1, 3])
def test_attributes_apart_give_the_same_tallies(
    make_pipeline: Callable[..., Pipeline],
    definition: StudyDefinition,
    clean: list[Path],
    subscribers: Path,
    apart: dict[str, object],
    tmp_path: Path,
    mechanism: str,
    when: int,
) -> None:
    """The subscriber extract comes before, between or after the events."""
    plan = {"plan": replace(definition.plan, mechanism=mechanism)}
    inline = make_pipeline(slug="inline", **plan)
    inline.upload(*clean)
    pipeline = make_pipeline(slug="apart", **plan, **apart)
    files = [without_attributes(path, tmp_path / "bare") for path in clean]
    pipeline.upload(*files[:when])
    (batch,) = pipeline.upload(subscribers, profile=SUBSCRIBERS)
    pipeline.upload(*files[when:])
    assert batch.state == Batch.State.DONE
    assert batch.rows_read == batch.rows_accepted == batch.checks["subscribers"] > 500
    assert pipeline.tallies() == inline.tallies()


def test_attributes_that_come_while_a_day_is_open_are_published_with_it(
    make_pipeline: Callable[..., Pipeline],
    clean: list[Path],
    subscribers: Path,
    apart: dict[str, object],
    tmp_path: Path,
) -> None:
    inline = make_pipeline(slug="inline")
    inline.upload(clean[0])
    pipeline = make_pipeline(slug="apart", **apart)
    pipeline.upload(without_attributes(clean[0], tmp_path / "bare"), more_to_come=True)
    pipeline.upload(subscribers, profile=SUBSCRIBERS)
    pipeline.close_days(through=1)
    assert pipeline.tallies() == inline.tallies()


def test_subscriber_extract_is_kept_as_sanitised_reports_only(
    make_pipeline: Callable[..., Pipeline], subscribers: Path, apart: dict[str, object]
) -> None:
    pipeline = make_pipeline(slug="apart", **apart)
    (batch,) = pipeline.upload(subscribers, profile=SUBSCRIBERS)
    assert batch.state == Batch.State.DONE
    study = open_study(pipeline.study)
    known = [study.unseal_answers(row) for row in AnswerShard.objects.filter(study=pipeline.study)]
    assert sum(len(each) for each in known) == batch.checks["subscribers"]
    assert not PresenceShard.objects.exists()
    (again,) = pipeline.upload(subscribers, profile=SUBSCRIBERS)
    assert again.duplicate_of == batch


def test_first_row_of_a_subscriber_counts(
    make_pipeline: Callable[..., Pipeline], subscribers: Path, apart: dict[str, object], tmp_path: Path
) -> None:
    pipeline = make_pipeline(slug="apart", **apart)
    header, *rows = subscribers.read_text().splitlines(keepends=True)
    twice = tmp_path / "twice.csv"
    twice.write_text("".join([header, *rows, *rows[:40]]))
    (batch,) = pipeline.upload(twice, profile=SUBSCRIBERS)
    assert batch.rows_ignored == {"duplicate": 40}
    assert batch.rows_accepted == len(rows)


def test_first_text_of_a_subscriber_counts_and_others_are_counted(
    make_pipeline: Callable[..., Pipeline], subscribers: Path, apart: dict[str, object], tmp_path: Path
) -> None:
    """Of every attribute, whether the texts come in one file or in two."""
    header, *rows = subscribers.read_text().splitlines(keepends=True)
    who = header.strip().split(",").index("msisdn")
    blank = ["," * who + row.strip().split(",")[who] + "," * (header.count(",") - who) + "\n" for row in rows]
    files = [tmp_path / name for name in ("blank.csv", "full.csv", "both.csv")]
    for path, lines in zip(files, (blank, rows, [*blank, *rows]), strict=True):
        path.write_text("".join([header, *lines]))
    known = []
    for slug, paths in {"two": files[:2], "one": files[2:]}.items():
        pipeline = make_pipeline(slug=slug, **apart)
        last = pipeline.upload(*paths, profile=SUBSCRIBERS)[-1]
        assert last.notes["conflicting_value"] == 0
        study = open_study(pipeline.study)
        found = AnswerShard.objects.filter(study=pipeline.study).order_by("shard")
        known.append([study.unseal_answers(row).static.tolist() for row in found])
    assert known[0] == known[1]
    assert last.rows_ignored == {"duplicate": len(rows)}


def test_a_second_text_is_noted(
    make_pipeline: Callable[..., Pipeline], subscribers: Path, apart: dict[str, object], tmp_path: Path
) -> None:
    pipeline = make_pipeline(slug="apart", **apart)
    header, *rows = subscribers.read_text().splitlines(keepends=True)
    who = header.strip().split(",").index("msisdn")
    swapped = []
    for row, other in zip(rows, rows[1:] + rows[:1], strict=True):
        fields = other.strip().split(",")
        fields[who] = row.strip().split(",")[who]
        swapped.append(",".join(fields) + "\n")
    path = tmp_path / "swapped.csv"
    path.write_text("".join([header, *rows, *swapped]))
    (batch,) = pipeline.upload(path, profile=SUBSCRIBERS)
    assert 0 < batch.notes["conflicting_value"] < len(rows)


def test_a_list_of_opt_outs_with_a_bad_line_is_refused_whole(
    make_pipeline: Callable[..., Pipeline], clean: list[Path], tmp_path: Path
) -> None:
    pipeline = make_pipeline(slug="opted-out")
    listed = tmp_path / "opt-outs.txt"
    people = sorted(opted_out(clean[0], n=200))
    listed.write_text("".join(f"{person}\n" for person in people[:150]) + "x,y\n" + "\n".join(people[150:]))
    (batch,) = pipeline.upload(listed, profile=OPT_OUT)
    assert batch.state == Batch.State.FAILED
    assert "first lines 151" in batch.failure
    assert not OptOutShard.objects.exists()


@pytest.mark.parametrize("late", [False, True])
def test_tallies_are_those_without_the_people_who_opted_out(
    make_pipeline: Callable[..., Pipeline], clean: list[Path], tmp_path: Path, late: bool
) -> None:
    people = opted_out(clean[0], n=200)
    expected = make_pipeline(slug="never-there")
    expected.upload(*(without_people(path, tmp_path / "without", people) for path in clean))
    pipeline = make_pipeline(slug="opted-out")
    listed = tmp_path / "opt-outs.txt"
    listed.write_text("".join(f"{person}\n" for person in sorted(people)))
    if late:
        pipeline.upload(*clean[:2])
        before = pipeline.visitors(1, 2)
        (batch,) = pipeline.upload(listed, profile=OPT_OUT)
        assert pipeline.visitors(1, 2) < before
        (last,) = pipeline.upload(clean[2])
    else:
        (batch,) = pipeline.upload(listed, profile=OPT_OUT)
        (*_, last) = pipeline.upload(*clean)
    assert batch.state == Batch.State.DONE
    assert batch.checks["subscribers"] == len(people)
    assert pipeline.tallies() == expected.tallies()
    assert last.rows_ignored["opted_out"] > 0
    assert_gone(pipeline, people)


def test_rows_that_were_read_before_their_subscriber_opted_out_are_not_merged(
    make_pipeline: Callable[..., Pipeline], clean: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = opted_out(clean[0], n=200)
    expected = make_pipeline(slug="never-there")
    expected.upload(without_people(clean[0], tmp_path / "without", people))
    pipeline = make_pipeline(slug="opted-out")
    listed = tmp_path / "opt-outs.txt"
    listed.write_text("".join(f"{person}\n" for person in sorted(people)))
    pipeline.upload(listed, profile=OPT_OUT)
    with monkeypatch.context() as patch:
        patch.setattr(OpenStudy, "opted_out", lambda _: np.empty(0, np.uint64))  # of readers
        (batch,) = pipeline.upload(clean[0])
    assert batch.rows_ignored.get("opted_out", 0) == 0
    assert pipeline.tallies() == expected.tallies()
    assert_gone(pipeline, people)


def test_people_who_opted_out_leave_days_that_are_open(
    make_pipeline: Callable[..., Pipeline], clean: list[Path], tmp_path: Path
) -> None:
    people = opted_out(clean[0], n=200)
    expected = make_pipeline(slug="never-there")
    expected.upload(without_people(clean[0], tmp_path / "without", people))
    pipeline = make_pipeline(slug="opted-out")
    pipeline.upload(clean[0], more_to_come=True)
    listed = tmp_path / "opt-outs.txt"
    listed.write_text("msisdn\n" + "".join(f"{person}\n" for person in sorted(people)))
    pipeline.upload(listed, profile=OPT_OUT)
    pipeline.close_days(through=1)
    assert pipeline.tallies() == expected.tallies()


def test_few_opt_outs_wait_for_a_publication_that_covers_enough(
    make_pipeline: Callable[..., Pipeline], clean: list[Path], tmp_path: Path
) -> None:
    pipeline = make_pipeline(slug="few")
    pipeline.upload(clean[0])
    before = pipeline.visitors(1, 1)
    (person,) = opted_out(clean[0], n=1)
    listed = tmp_path / "opt-outs.txt"
    listed.write_text(f"{person}\n")
    (batch,) = pipeline.upload(listed, profile=OPT_OUT)
    assert batch.waiting_subscribers == 1
    assert pipeline.visitors(1, 1) == before
    pipeline.upload(clean[1])
    assert pipeline.visitors(1, 1) == before - 1


def opted_out(path: Path, *, n: int) -> frozenset[str]:
    """Some people who have many events on the day."""
    with path.open() as file:
        people = [row["msisdn"] for row in csv.DictReader(file)]
    names, counts = np.unique(np.array([person.strip() for person in people]), return_counts=True)
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
