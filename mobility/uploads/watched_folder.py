"""The watched folder: transferred files are accepted, and deleted once staged as ciphertext.

MOBILITY_WATCH_DIR / slug of a study / [profile /] [more-to-come /] file. Files in more-to-come leave their
days open until close_days. A file is taken when it has not changed for a while.
A transfer that may pause longer writes to a hidden name, or one that ends in .part, and renames it then.
Refused files stay, with the reason next to them, and are tried again later or when they change.
"""

import fcntl
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from django.conf import settings

from mobility.base.errors import MobilityError
from mobility.base.runtime import write_private
from mobility.batches.dispatching import ask
from mobility.extracts.profiles.definition import DEFAULT
from mobility.extracts.profiles.parse import MORE_TO_COME
from mobility.uploads import actions as uploads
from mobility.vault.models.subscribers import VaultStudy
from reports.base.outages import is_outage

log = logging.getLogger(__name__)

ACTOR = "watched folder"
NOTE = ".error.txt"
NOTED_BYTES = 230  # of a name: a file system takes 255, the note and its fresh copy add theirs
UNFINISHED = (".part", ".partial", ".tmp", ".filepart", ".crdownload", NOTE)
RETRY_S = 600.0
TURN_S = 60.0  # then the process is there for others


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A file that is ready, and where it belongs."""

    path: Path
    slug: str
    profile: str
    more_to_come: bool

    @property
    def note(self) -> Path:
        """Return the file with the reason of a refusal."""
        name = os.fsencode(self.path.name)[:NOTED_BYTES]
        return self.path.with_name(os.fsdecode(name) + NOTE)


def scan() -> None:
    """Request a worker if there is a file to read."""
    if any(True for _ in ready_files()):
        ask("take_in_watched")


def take_in_watched() -> None:
    """Read the files that are ready, oldest first, for about TURN_S; nothing if another worker does.

    Files that come by the dozen must occupy neither every process of every worker nor the only one for hours.
    The next sweep requests the rest, behind the chunks that wait by then.
    """
    with _alone() as is_alone:
        if not is_alone:
            return
        began = time.monotonic()
        for found in sorted(ready_files(), key=lambda found: (_age_rank(found.path), found.path)):
            try:
                _take_in(found)
            except Exception as error:  # noqa: BLE001 - one file must not keep the others out
                if is_outage(error):  # no fault of the file: the next sweep asks again
                    log.warning("watched_folder_interrupted error=%s", type(error).__name__)
                    return
                _refuse(found, error)
            if time.monotonic() - began >= TURN_S:
                return


@contextmanager
def _alone() -> Iterator[bool]:
    """Return whether no other worker reads files; while this lasts, none will."""
    if not settings.MOBILITY_WATCH_DIR:
        yield False
        return
    folder = os.open(settings.MOBILITY_WATCH_DIR, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)  # dies with its worker
            is_alone = True
        except BlockingIOError:
            is_alone = False
        yield is_alone
    finally:
        os.close(folder)


def ready_files() -> Iterator[Found]:
    """Files of the watched folder that have not changed for MOBILITY_WATCH_SETTLE_S."""
    if not settings.MOBILITY_WATCH_DIR:
        return
    for study in _folders(Path(settings.MOBILITY_WATCH_DIR)):
        for found in _files_of(study):
            if _is_ready(found):
                yield found


def _files_of(study: Path) -> Iterator[Found]:
    """Files in the folder of a study, and in those of its profiles."""
    profiles = ((folder, folder.name) for folder in _folders(study) if folder.name != MORE_TO_COME)
    for folder, profile in [(study, DEFAULT), *profiles]:
        of_open_days = [inner for inner in _folders(folder) if inner.name == MORE_TO_COME]
        for place in [folder, *of_open_days]:
            for path in _entries(place, Path.is_file):
                yield Found(path=path, slug=study.name, profile=profile, more_to_come=place != folder)


def _take_in(found: Found) -> None:
    with _taken(found.path) as file:
        if file is None:
            return
        study = VaultStudy.objects.filter(slug=found.slug).first()
        if study is None:
            raise MobilityError(f"there is no study {found.slug!r}: name the folder after a study")
        stream = _Unchanged(file)
        batch = uploads.receive(
            stream, study=study, filename=found.path.name, by=ACTOR, profile=found.profile,
            more_to_come=found.more_to_come, bytes_total=stream.size,
        )  # fmt: skip
        # From here on it exists as ciphertext; the folder must not keep what the vault forgets.
        if _is_at(found.path, file):
            found.path.unlink()
        found.note.unlink(missing_ok=True)
    log.info("watched_file_taken batch=%s", batch.pk)


@contextmanager
def _taken(path: Path) -> Iterator[BinaryIO | None]:
    """The file, open and locked against other workers; None if one of them has it, or had it."""
    try:
        # Not through a link, even one that has come since the folder was listed.
        file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb")
    except FileNotFoundError:
        yield None
        return
    with file:
        try:
            # The lock dies with its worker, so that another one can continue.
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_mine = _is_at(path, file)
        except BlockingIOError:
            is_mine = False
        yield file if is_mine else None


def _is_at(path: Path, file: BinaryIO) -> bool:
    """Return whether the open file still has that name: the next delivery may have been renamed onto it."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


class _Unchanged:
    """A file that must be the same at its end as it was at its beginning."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._before = os.fstat(file.fileno())
        self.size = self._before.st_size
        self._left = self.size

    def read(self, size: int, /) -> bytes:
        data = self._file.read(size)
        self._note(len(data))
        return data

    def readinto(self, buffer: memoryview, /) -> int:
        count: int = self._file.readinto(buffer)  # type: ignore[attr-defined]
        self._note(count)
        return count

    def _note(self, count: int) -> None:
        self._left -= count
        now = os.fstat(self._file.fileno())
        if self._left <= 0 and (now.st_size, now.st_mtime_ns) != (self.size, self._before.st_mtime_ns):
            raise MobilityError(
                "the file changed while it was being read: write it under another name, then rename it"
            )


def _refuse(found: Found, error: Exception) -> None:
    # Names of folders are a stranger's: %r keeps what is not printable out of the log.
    log.warning("watched_file_refused study=%r error=%s", found.slug, type(error).__name__)
    try:
        write_private(found.note, f"not processed: {_reason(error)}\n")
    except OSError as problem:
        log.error("watched_folder_not_writable study=%r errno=%s", found.slug, problem.errno)


def _reason(error: Exception) -> str:
    """Return the text of the note; nothing of an unexpected error, whose words may quote anything."""
    if isinstance(error, MobilityError):
        return str(error)
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return "an unexpected error (see the worker log); the file will be tried again"


def _is_ready(found: Found) -> bool:
    if found.path.name.startswith(".") or found.path.name.endswith(UNFINISHED):
        return False
    try:
        changed = _changed_at(found.path)
        noted = _changed_at(found.note) if found.note.exists() else 0.0
    except OSError:
        return False
    now = time.time()
    is_refused = noted >= changed and now - noted < RETRY_S
    # A file that cannot be deleted would be read again and again.
    return now - changed >= settings.MOBILITY_WATCH_SETTLE_S and not is_refused and _can_delete(found.path)


def _can_delete(path: Path) -> bool:
    if os.access(path.parent, os.W_OK | os.X_OK):
        return True
    log.error("watched_folder_not_writable folder=%r", path.parent.name)
    return False


def _changed_at(path: Path) -> float:
    """Return when its content or name last changed: a copy that keeps the time of its source is new here."""
    found = path.stat()
    return max(found.st_mtime, found.st_ctime)


def _age_rank(path: Path) -> float:
    """Older is less; a file that has vanished may come first, since nothing is done with it."""
    try:
        return _changed_at(path)
    except OSError:
        return 0.0


def _folders(path: Path) -> list[Path]:
    return _entries(path, Path.is_dir)


def _entries(path: Path, is_wanted: Callable[[Path], bool]) -> list[Path]:
    """Return the usable entries of a folder: nothing hidden, no links."""
    try:
        shown = (entry for entry in path.iterdir() if not entry.name.startswith("."))
        return sorted(entry for entry in shown if is_wanted(entry) and not entry.is_symlink())
    except OSError as error:
        log.error("watched_folder_unreadable errno=%s", error.errno)
        return []
