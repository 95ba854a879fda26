"""The watched folder: what is complete is taken in once and deleted; what is refused stays, and why."""

import fcntl
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mobility.keystore import keystore
from mobility.models import Batch
from mobility.services import dispatching, outcomes, staging, watching
from mobility.services.staging import UploadReader
from reports.studyfile import StudyDefinition
from tests.mobility.services.conftest import Pipeline

pytestmark = pytest.mark.django_db(databases=["default", "vault"], transaction=True)
FILE = b"msisdn,timestamp\n" + b"1,2017-05-31T10:00:00\n" * 50


@pytest.fixture
def watched(pipeline: Pipeline, tmp_path: Path, settings: Any) -> Path:
    """The folder of the study; what lies in it is ready at once."""
    settings.MOBILITY_WATCH_DIR = str(tmp_path / "watched")
    settings.MOBILITY_WATCH_SETTLE_S = 0
    folder = tmp_path / "watched" / pipeline.study.slug
    folder.mkdir(parents=True)
    return folder


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def take_in() -> None:
    watching.take_in_watched()


def test_without_a_folder_nothing_happens(pipeline: Pipeline, settings: Any) -> None:
    settings.MOBILITY_WATCH_DIR = ""
    assert list(watching.ready_files()) == []


def test_a_file_is_taken_in_and_deleted(watched: Path) -> None:
    (watched / "day.csv").write_bytes(FILE)
    take_in()
    batch = Batch.objects.get()
    assert (batch.state, batch.filename, batch.created_by) == ("queued", "day.csv", "watched folder")
    assert (batch.profile, batch.kind, batch.bytes_total) == ("default", "extract", len(FILE))
    assert UploadReader(batch).readall() == FILE
    assert names(watched) == []
    take_in()
    assert Batch.objects.count() == 1


def test_a_folder_names_the_profile(watched: Path) -> None:
    for profile in ("subscribers", "opt-out"):
        (watched / profile).mkdir()
        (watched / profile / "people.csv").write_bytes(b"msisdn\n1\n")
    take_in()
    assert {batch.profile: batch.kind for batch in Batch.objects.all()} == {
        "subscribers": "subscribers", "opt-out": "opt_out",
    }  # fmt: skip
    assert names(watched) == []


def test_the_oldest_file_comes_first(watched: Path) -> None:
    for name in ("b.csv", "c.csv", "a.csv"):
        (watched / name).write_bytes(FILE)
    take_in()
    assert [batch.filename for batch in Batch.objects.order_by("created_at")] == ["b.csv", "c.csv", "a.csv"]


def test_after_its_turn_the_rest_waits_for_the_next_one(
    watched: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker of one process goes on with batches in between."""
    monkeypatch.setattr(watching, "TURN_S", 0.0)
    for name in ("a.csv", "b.csv"):
        (watched / name).write_bytes(FILE)
    take_in()
    assert names(watched) == ["b.csv"]
    take_in()
    assert names(watched) == []


@pytest.mark.parametrize(
    "name", [".hidden.csv", "day.csv.part", "day.tmp", "day.csv.filepart", "day.csv.error.txt"]
)
def test_what_is_still_being_written_is_left_alone(watched: Path, name: str) -> None:
    (watched / name).write_bytes(FILE)
    take_in()
    assert Batch.objects.count() == 0
    assert names(watched) == [name]


def test_a_file_must_have_rested(watched: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.MOBILITY_WATCH_SETTLE_S = 10
    file = watched / "day.csv"
    file.write_bytes(FILE)
    os.utime(file, (0, 0))  # a copy that keeps the time of its source is still new here
    changed = file.stat().st_ctime
    for passed, is_ready in ((9.9, False), (10.1, True)):
        monkeypatch.setattr("time.time", lambda passed=passed: changed + passed)
        assert [found.path for found in watching.ready_files()] == ([file] if is_ready else [])


def test_links_are_not_followed(watched: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "day.csv").write_bytes(FILE)
    (watched / "link.csv").symlink_to(outside / "day.csv")
    (watched / "opt-out").symlink_to(outside)
    take_in()
    assert Batch.objects.count() == 0
    assert (outside / "day.csv").exists()


def test_a_refused_file_stays_with_its_reason(watched: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (watched / "nonsense").mkdir()
    file = watched / "nonsense" / "day.csv"
    file.write_bytes(FILE)
    take_in()
    note = file.with_name("day.csv.error.txt")
    assert note.read_text().startswith("not taken in: study 'fimu-2017' has no profile 'nonsense'")
    assert stat.S_IMODE(note.stat().st_mode) == 0o600
    assert b"2017" not in note.read_bytes().replace(b"fimu-2017", b"")
    assert file.read_bytes() == FILE
    assert Batch.objects.count() == 0
    assert list(watching.ready_files()) == []
    later = note.stat().st_mtime + watching.RETRY_S + 1
    monkeypatch.setattr("time.time", lambda: later)
    assert [found.path for found in watching.ready_files()] == [file]


def test_a_refused_file_that_was_corrected_is_taken(watched: Path) -> None:
    file = watched / "day.csv"
    file.write_bytes(FILE)
    note = watched / "day.csv.error.txt"
    note.write_text("not taken in\n")
    os.utime(note, (1, 1))
    assert list(watching.ready_files()) == []  # its inode changed after the file's
    file.write_bytes(FILE + FILE)
    os.utime(file)
    take_in()
    assert Batch.objects.get().bytes_total == 2 * len(FILE)
    assert names(watched) == []


def test_an_unknown_study_and_a_closed_one_are_refused(watched: Path, pipeline: Pipeline) -> None:
    other = watched.parent / "nothing"
    other.mkdir()
    (other / "day.csv").write_bytes(FILE)
    keystore().destroy(pipeline.study.key_id)
    (watched / "day.csv").write_bytes(FILE)
    take_in()
    assert "there is no study 'nothing'" in (other / "day.csv.error.txt").read_text()
    assert "was destroyed, and stays so for ever" in (watched / "day.csv.error.txt").read_text()


def test_a_file_that_another_worker_holds_is_left_to_it(watched: Path) -> None:
    file = watched / "day.csv"
    file.write_bytes(FILE)
    with file.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        take_in()
        assert Batch.objects.count() == 0
        assert names(watched) == ["day.csv"]
    take_in()
    assert Batch.objects.count() == 1


def test_a_file_that_another_worker_has_just_finished_is_not_taken_again(
    watched: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = watched / "day.csv"
    file.write_bytes(FILE)
    real = fcntl.flock

    def finish_first(descriptor: Any, operation: int) -> None:
        file.unlink()
        real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", finish_first)
    take_in()
    assert Batch.objects.count() == 0
    assert names(watched) == []


def test_a_file_that_changes_meanwhile_is_not_taken(watched: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = watched / "day.csv"
    file.write_bytes(FILE)
    real_read = watching._Unchanged.readinto

    def read(self: Any, buffer: memoryview) -> int:
        with file.open("ab") as more:
            more.write(b"x")
        return real_read(self, buffer)

    monkeypatch.setattr(watching._Unchanged, "readinto", read)
    take_in()
    assert Batch.objects.get().state == Batch.State.FAILED
    assert "changed while it was read" in (watched / "day.csv.error.txt").read_text()
    assert staging.staged_batches() == set()
    assert file.exists()


def test_a_delivery_that_takes_the_name_meanwhile_survives(
    watched: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = watched / "day.csv"
    file.write_bytes(FILE)
    second = FILE.replace(b"05-31", b"06-01")
    real_read = watching._Unchanged.readinto

    def deliver_again(self: Any, buffer: memoryview) -> int:
        part = watched / "day.csv.part"
        if not Batch.objects.exclude(bytes_received=0).exists() and not part.exists():
            part.write_bytes(second)
            part.rename(file)
            monkeypatch.setattr(watching._Unchanged, "readinto", real_read)
        return real_read(self, buffer)

    monkeypatch.setattr(watching._Unchanged, "readinto", deliver_again)
    take_in()
    assert [UploadReader(batch).readall() for batch in Batch.objects.all()] == [FILE]
    assert file.read_bytes() == second
    take_in()
    assert [UploadReader(batch).readall() for batch in Batch.objects.order_by("created_at")] == [FILE, second]
    assert names(watched) == []


def test_a_name_that_is_no_text_is_taken_in(watched: Path) -> None:
    Path(os.fsdecode(os.fsencode(watched) + b"/a-\xe9.csv")).write_bytes(FILE)
    (watched / "b.csv").write_bytes(FILE)
    take_in()
    assert {batch.filename for batch in Batch.objects.all()} == {"a-.csv", "b.csv"}
    assert names(watched) == []


def test_an_error_that_nobody_foresaw_concerns_one_file(
    watched: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.csv", "b.csv"):
        (watched / name).write_bytes(FILE)
    real = watching.uploads.receive

    def fail_once(*given: Any, **options: Any) -> Batch:
        if options["filename"] == "a.csv":
            raise ValueError("33612345678")
        return real(*given, **options)

    monkeypatch.setattr(watching.uploads, "receive", fail_once)
    take_in()
    assert [batch.filename for batch in Batch.objects.all()] == ["b.csv"]
    assert names(watched) == ["a.csv", "a.csv.error.txt"]
    note = (watched / "a.csv.error.txt").read_text()
    assert note == "not taken in: unforeseen ValueError; it is tried again later\n"


def test_the_longest_name_has_a_note_too(watched: Path) -> None:
    longest = "é" * 127 + "x"
    (watched / "nonsense").mkdir()
    for place in (watched, watched / "nonsense"):
        (place / longest).write_bytes(FILE)
    take_in()
    assert [batch.filename for batch in Batch.objects.all()] == [longest]
    refused, note = sorted((watched / "nonsense").iterdir(), key=lambda path: path.name.endswith(".txt"))
    assert refused.name == longest
    assert "has no profile 'nonsense'" in note.read_text()
    assert list(watching.ready_files()) == []


def test_folders_whose_name_is_no_text_are_refused(watched: Path) -> None:
    for parent in (watched, watched.parent):
        folder = Path(os.fsdecode(os.fsencode(parent) + b"/\xe9"))
        folder.mkdir()
        (folder / "day.csv").write_bytes(FILE)
    (watched / "day.csv").write_bytes(FILE)
    take_in()
    assert [batch.filename for batch in Batch.objects.all()] == ["day.csv"]


def test_a_file_that_vanishes_before_its_turn_stops_nothing(
    watched: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.csv", "b.csv"):
        (watched / name).write_bytes(FILE)
    found = list(watching.ready_files())
    (watched / "a.csv").unlink()
    monkeypatch.setattr(watching, "ready_files", lambda: iter(found))
    take_in()
    assert [batch.filename for batch in Batch.objects.all()] == ["b.csv"]
    assert names(watched) == []


def test_more_to_come_is_a_folder_and_no_profile(watched: Path) -> None:
    for place in (".", "more-to-come", "opt-out", "opt-out/more-to-come"):
        (watched / place).mkdir(exist_ok=True)
        (watched / place / "day.csv").write_bytes(FILE)
    take_in()
    taken = Batch.objects.values_list("profile", "more_to_come")
    assert set(taken) == {("default", False), ("default", True), ("opt-out", False), ("opt-out", True)}
    assert names(watched) == []


def hour(pipeline: Pipeline, at: int) -> bytes:
    """Extract of one hour, in which everybody of a hundred people is seen."""
    definition = StudyDefinition.from_json(pipeline.study.definition)
    assert definition.area is not None
    cell = definition.area.cells[0].cell_id
    statics = [indicator.column for indicator in definition.static_indicators]
    header = [definition.extract.subscriber, definition.extract.timestamp, definition.extract.cell, *statics]
    rows = [f"{who},2017-05-31T{at:02}:{minute}:00,{cell}" for who in range(100) for minute in ("00", "59")]
    lines = [",".join(map(str, header)), *(row + "," * len(statics) for row in rows)]
    return ("\n".join(lines) + "\n").encode()


@pytest.mark.parametrize("folder", [".", "more-to-come"])
def test_days_in_hourly_files(watched: Path, make_pipeline: Callable[..., Pipeline], folder: str) -> None:
    """Published hour by hour, answers are those of the first hours; and the batch says so."""
    pipeline = make_pipeline(slug="hourly", min_publication=10)
    place = watched.parent / "hourly" / folder
    place.mkdir(parents=True)
    for at in range(8, 14):
        (place / f"{at}.csv").write_bytes(hour(pipeline, at))
        take_in()
        batch = pipeline.finished(Batch.objects.get(filename=f"{at}.csv"))
        assert batch.state == Batch.State.DONE
    notes = " ".join(outcomes.notes_for_reader(batch))
    if folder == "more-to-come":
        assert pipeline.visitors(1, 1) == 0
        pipeline.close_days(through=1)
        assert batch.notes["late_change"] == 0
        assert "would have changed" not in notes
    else:
        assert batch.notes["late_change"] > 0
        assert "daily answers would have changed (100 subscriber-days in the file)" in notes
        assert "with more_to_come" in notes
    assert pipeline.visitors(1, 1) == 100


def test_a_folder_that_cannot_be_written_to_is_left_alone(
    watched: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be deleted would be taken in again and again."""
    (watched / "day.csv").write_bytes(FILE)
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert list(watching.ready_files()) == []


def test_a_scan_asks_for_a_worker_only_when_there_is_something(
    watched: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr(dispatching, "send", lambda *words: asked.append(words))
    watching.scan()
    assert asked == []
    (watched / "day.csv").write_bytes(FILE)
    watching.scan()
    assert asked == [("take_in_watched",)]


def test_a_watched_extract_brings_its_rows(watched: Path, pipeline: Pipeline, extract: list[Path]) -> None:
    (watched / extract[0].name).write_bytes(extract[0].read_bytes())
    take_in()
    batch = pipeline.finished(Batch.objects.get())
    assert batch.state == Batch.State.DONE
    assert batch.rows_read == extract[0].read_bytes().count(b"\n") - 1
