"""The watched folder: complete files are read once and deleted; refused ones stay, with the reason."""

import fcntl
import os
import stat
from pathlib import Path

import pytest
from django.db import OperationalError

from mobility.batches import staging
from mobility.batches.staging import UploadReader
from mobility.uploads import watched_folder
from mobility.vault.keystore import keystore
from mobility.vault.models.batch import Batch
from tests.mobility.pipeline import raising

pytestmark = pytest.mark.django_db(databases=["default", "vault"], transaction=True)
FILE = b"msisdn,timestamp\n" + b"1,2017-05-31T10:00:00\n" * 50


@pytest.fixture
def watched(pipeline, tmp_path, settings):
    settings.MOBILITY_WATCH_DIR = str(tmp_path / "watched")
    settings.MOBILITY_WATCH_SETTLE_S = 0
    folder = tmp_path / "watched" / pipeline.study.slug
    folder.mkdir(parents=True)
    return folder


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def put(folder: Path, *names: str, data: bytes = FILE) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def taken() -> list[str]:
    return list(Batch.objects.order_by("created_at").values_list("filename", flat=True))


def test_a_file_is_taken_in_and_deleted(watched, settings):
    put(watched, "day.csv")
    watched_folder.take_in_watched()
    batch = Batch.objects.get()
    assert (batch.state, batch.filename, batch.created_by) == ("queued", "day.csv", "watched folder")
    assert (batch.profile, batch.kind, batch.bytes_total) == ("default", "extract", len(FILE))
    assert (UploadReader(batch).readall(), names(watched)) == (FILE, [])
    watched_folder.take_in_watched()
    assert Batch.objects.count() == 1
    put(watched, "day.csv")
    settings.MOBILITY_WATCH_DIR = ""
    assert list(watched_folder.ready_files()) == []


def test_a_folder_names_the_profile_and_more_to_come(watched):
    places = ("", "more-to-come/", "subscribers/", "opt-out/", "opt-out/more-to-come/")
    put(watched, *(f"{place}people.csv" for place in places))
    watched_folder.take_in_watched()
    assert set(Batch.objects.values_list("profile", "kind", "more_to_come")) == {
        ("default", "extract", False), ("default", "extract", True), ("opt-out", "opt_out", False),
        ("opt-out", "opt_out", True), ("subscribers", "subscribers", False),
    }  # fmt: skip
    assert names(watched) == []


def test_the_oldest_file_comes_first_and_after_its_turn_the_rest_waits_for_the_next_one(watched, monkeypatch):
    put(watched, "b.csv", "c.csv", "a.csv")
    monkeypatch.setattr(watched_folder, "TURN_S", 0.0)
    for left in (["a.csv", "c.csv"], ["a.csv"], []):
        watched_folder.take_in_watched()
        assert names(watched) == left
    assert taken() == ["b.csv", "c.csv", "a.csv"]


def test_what_is_still_being_written_and_links_are_left_alone(watched, tmp_path):
    unfinished = [".hidden.csv", "day.csv.error.txt", "day.csv.filepart", "day.csv.part", "day.tmp"]
    put(watched, *unfinished)
    put(tmp_path / "outside", "day.csv")
    (watched / "link.csv").symlink_to(tmp_path / "outside" / "day.csv")
    (watched / "opt-out").symlink_to(tmp_path / "outside")
    watched_folder.take_in_watched()
    assert (Batch.objects.count(), names(watched)) == (0, [*unfinished, "link.csv"])
    assert (tmp_path / "outside" / "day.csv").exists()


def test_a_file_must_have_rested_in_a_folder_that_can_be_written_to(watched, settings, monkeypatch):
    settings.MOBILITY_WATCH_SETTLE_S = 10
    put(watched, "day.csv")
    file = watched / "day.csv"
    os.utime(file, (0, 0))  # a copy that keeps the time of its source is still new here
    changed = file.stat().st_ctime
    for passed, is_ready in ((9.9, False), (10.1, True)):
        monkeypatch.setattr("time.time", lambda passed=passed: changed + passed)
        assert [found.path for found in watched_folder.ready_files()] == ([file] if is_ready else [])
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert list(watched_folder.ready_files()) == []


def test_a_refused_file_stays_with_its_reason(watched, pipeline, monkeypatch):
    file = watched / "nonsense" / "day.csv"
    put(watched, "nonsense/day.csv")
    put(watched.parent, "nothing/day.csv")
    watched_folder.take_in_watched()
    keystore().destroy(pipeline.study.key_id)
    put(watched, "day.csv")
    watched_folder.take_in_watched()
    assert "there is no study 'nothing'" in (watched.parent / "nothing/day.csv.error.txt").read_text()
    assert "was destroyed and cannot be restored" in (watched / "day.csv.error.txt").read_text()
    note = file.with_name("day.csv.error.txt")
    assert note.read_text().startswith("not processed: study 'fimu-2017' has no profile 'nonsense'")
    assert stat.S_IMODE(note.stat().st_mode) == 0o600
    assert b"2017" not in note.read_bytes().replace(b"fimu-2017", b"")
    assert (file.read_bytes(), Batch.objects.count(), list(watched_folder.ready_files())) == (FILE, 0, [])
    later = note.stat().st_mtime + watched_folder.RETRY_S + 1
    monkeypatch.setattr("time.time", lambda: later)
    assert file in [found.path for found in watched_folder.ready_files()]


def test_a_refused_file_that_was_corrected_is_taken(watched):
    file, note = watched / "day.csv", watched / "day.csv.error.txt"
    put(watched, "day.csv")
    note.write_text("not processed\n")
    os.utime(note, (1, 1))
    assert list(watched_folder.ready_files()) == []  # its inode changed after the file's
    file.write_bytes(FILE + FILE)
    os.utime(file)
    watched_folder.take_in_watched()
    assert (Batch.objects.get().bytes_total, names(watched)) == (2 * len(FILE), [])


def test_a_file_that_another_worker_holds_or_has_just_finished_is_left_to_it(watched, monkeypatch):
    put(watched, "day.csv")
    real = fcntl.flock
    with (watched / "day.csv").open("rb") as held:
        real(held, fcntl.LOCK_EX)
        watched_folder.take_in_watched()
        assert names(watched) == ["day.csv"]

    def finish_first(descriptor, operation):
        (watched / "day.csv").unlink()
        real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", finish_first)
    watched_folder.take_in_watched()
    assert (Batch.objects.count(), names(watched)) == (0, [])


def test_a_file_that_changes_meanwhile_is_not_taken(watched, monkeypatch):
    put(watched, "day.csv")
    real_read = watched_folder._Unchanged.readinto

    def read(self, buffer):
        with (watched / "day.csv").open("ab") as more:
            more.write(b"x")
        return real_read(self, buffer)

    monkeypatch.setattr(watched_folder._Unchanged, "readinto", read)
    watched_folder.take_in_watched()
    assert (Batch.objects.get().state, staging.staged_batches()) == (Batch.State.FAILED, set())
    assert "the file changed while it was being read" in (watched / "day.csv.error.txt").read_text()
    assert (watched / "day.csv").exists()


def test_a_delivery_that_takes_the_name_meanwhile_survives(watched, monkeypatch):
    put(watched, "day.csv")
    second = FILE.replace(b"05-31", b"06-01")
    real_read = watched_folder._Unchanged.readinto

    def deliver_again(self, buffer):
        part = watched / "day.csv.part"
        if not Batch.objects.exclude(bytes_received=0).exists() and not part.exists():
            part.write_bytes(second)
            part.rename(watched / "day.csv")
            monkeypatch.setattr(watched_folder._Unchanged, "readinto", real_read)
        return real_read(self, buffer)

    monkeypatch.setattr(watched_folder._Unchanged, "readinto", deliver_again)
    watched_folder.take_in_watched()
    assert [UploadReader(batch).readall() for batch in Batch.objects.all()] == [FILE]
    assert (watched / "day.csv").read_bytes() == second
    watched_folder.take_in_watched()
    assert [UploadReader(batch).readall() for batch in Batch.objects.order_by("created_at")] == [FILE, second]
    assert names(watched) == []


def test_a_name_that_is_no_text_is_taken_in_but_not_in_such_a_folder_and_the_longest_has_a_note(watched):
    longest = "é" * 127 + "x"
    put(watched, "b.csv", longest, f"nonsense/{longest}")
    for place in (watched, watched.parent):
        folder = Path(os.fsdecode(os.fsencode(place) + b"/\xe9"))
        put(folder, "day.csv")
    Path(os.fsdecode(os.fsencode(watched) + b"/a-\xe9.csv")).write_bytes(FILE)
    watched_folder.take_in_watched()
    assert set(taken()) == {"a-.csv", "b.csv", longest}
    refused, note = sorted((watched / "nonsense").iterdir(), key=lambda path: path.name.endswith(".txt"))
    assert (refused.name, "has no profile 'nonsense'" in note.read_text()) == (longest, True)
    assert list(watched_folder.ready_files()) == []


def test_an_error_that_nobody_foresaw_and_a_file_that_vanishes_stop_no_other(watched, monkeypatch):
    put(watched, "a.csv", "b.csv", "gone.csv")
    found, real = list(watched_folder.ready_files()), watched_folder.uploads.receive
    (watched / "gone.csv").unlink()
    monkeypatch.setattr(watched_folder, "ready_files", lambda: iter(found))

    def fail_once(*given, **options):
        if options["filename"] == "a.csv":
            raise ValueError("33612345678")
        return real(*given, **options)

    monkeypatch.setattr(watched_folder.uploads, "receive", fail_once)
    watched_folder.take_in_watched()
    assert (taken(), names(watched)) == (["b.csv"], ["a.csv", "a.csv.error.txt"])
    told = "an unexpected error (see the worker log); the file will be tried again"
    assert (watched / "a.csv.error.txt").read_text() == f"not processed: {told}\n"


@pytest.mark.parametrize("place", ["begin", "_append"])
def test_a_database_that_is_away_for_a_moment_is_no_fault_of_a_file(watched, monkeypatch, place):
    put(watched, "a.csv", "b.csv")
    with monkeypatch.context() as patch:
        patch.setattr(watched_folder.uploads, place, raising(OperationalError))
        watched_folder.take_in_watched()
    assert names(watched) == ["a.csv", "b.csv"]
    watched_folder.take_in_watched()  # as the next sweep asks, and not in ten minutes
    assert (set(taken()), names(watched)) == ({"a.csv", "b.csv"}, [])


def test_a_scan_asks_for_a_worker_only_when_there_is_something(watched, pipeline):
    watched_folder.scan()
    assert list(pipeline.queue) == []
    put(watched, "day.csv")
    watched_folder.scan()
    assert list(pipeline.queue) == [("take_in_watched",)]
