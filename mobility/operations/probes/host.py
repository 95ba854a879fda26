"""Checks of this host: disks. Each host sees its own."""

import shutil
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from django.conf import settings

from mobility.operations.findings import Finding, Level, finding

GB: Final = 1_000_000_000
ERROR_SHARE: Final = 5  # a fifth of what warns
ANSWER_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class _Space:
    device: int
    total: int
    free: int


@dataclass(frozen=True, slots=True)
class _Question:
    """One thread per folder: a network disk whose server is down never answers."""

    answer: Future[_Space] = field(default_factory=Future)
    asked_at: float = field(default_factory=time.monotonic)


_unanswered: dict[Path, _Question] = {}  # asked again, each would hold a thread


def disks() -> Iterator[Finding]:
    """Free space, once for each disk: the first of several folders on it reports it."""
    seen: set[int] = set()
    for subject, question in [(subject, _ask(folder)) for subject, folder in _folders().items()]:
        try:
            space = question.answer.result(max(question.asked_at + ANSWER_S - time.monotonic(), 0))
        except TimeoutError:
            silent_s = round(time.monotonic() - question.asked_at)
            yield finding("disk_low", Level.ERROR, subject, why="silent", silent_s=silent_s)
            continue
        if space.device not in seen:
            seen.add(space.device)
            yield _disk(subject, space)


def is_silent(folder: Path) -> bool:
    """Return whether a folder was asked, and has not answered: anyone who touches it then hangs with it."""
    waiting = _unanswered.get(folder)
    return waiting is not None and not waiting.answer.done()


def _ask(folder: Path) -> _Question:
    """The question that a folder has not answered yet, or else a new one."""
    if is_silent(folder):
        return _unanswered[folder]
    question = _unanswered[folder] = _Question()
    threading.Thread(target=_answer, args=(folder, question.answer), name="disk", daemon=True).start()
    return question


def _answer(folder: Path, answer: Future[_Space]) -> None:
    try:
        answer.set_result(_space(folder))
    except Exception as error:  # noqa: BLE001 - raised to anyone who waits
        answer.set_exception(error)


def _space(folder: Path) -> _Space:
    existing = _nearest(folder)
    usage = shutil.disk_usage(existing)
    return _Space(device=existing.stat().st_dev, total=usage.total, free=usage.free)


def _folders() -> dict[str, Path]:
    """Folders that a run writes. A bucket has no end that could be seen from here."""
    folders = {"data": Path(settings.MOBILITY_DATA_DIR)}
    if settings.HAS_VAULT:
        if "StagingFolder" in str(settings.STORAGES["staging"]):
            folders["staging"] = Path(settings.MOBILITY_STAGING_DIR)
        folders["keystore"] = Path(settings.MOBILITY_KEYSTORE_DIR)
    folders["backups"] = Path(settings.MOBILITY_BACKUP_DIR)
    return folders


def _nearest(folder: Path) -> Path:
    """The folder, or what is nearest above it: it may not be made yet, or be another account's."""
    for each in (folder, *folder.parents):
        with suppress(OSError):
            each.stat()
            return each
    return Path(folder.anchor)


def _disk(subject: str, space: _Space) -> Finding:
    wanted = settings.MOBILITY_DISK_FREE_GB * GB
    level = Level.OK
    if space.free < wanted:
        level = Level.ERROR if space.free < wanted / ERROR_SHARE else Level.WARNING
    percent = round(100 * space.free / space.total, 1)
    facts = {"free_bytes": space.free, "total_bytes": space.total, "free_percent": percent}
    return finding("disk_low", level, subject, **facts)
