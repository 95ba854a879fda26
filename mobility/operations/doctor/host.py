"""This machine: what others on it could read, what its limits are, what was not built."""

import os
import resource
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.contrib.staticfiles.storage import staticfiles_storage
from django.contrib.staticfiles.utils import get_files

from mobility.operations.doctor.diagnosis import Diagnoses, error, error_if, fine, note, warning_if

OPEN_FILES: Final = 1024
OTHERS: Final = 0o077


def key_files() -> Diagnoses:
    """Keys are files of this account alone."""
    folder = Path(settings.MOBILITY_KEYSTORE_DIR)
    if not folder.is_dir():
        return  # a probe checks whether it can be used
    if folder.stat().st_mode & OTHERS:
        yield error("keystore_open", "other accounts may list the keystore", "chmod 700 the keystore")
    mine = os.geteuid()
    entries = []
    for path in folder.iterdir():
        with suppress(FileNotFoundError):  # a key that was destroyed meanwhile
            entries.append(path.lstat())
    loose = sum(1 for entry in entries if stat.S_ISREG(entry.st_mode) and entry.st_mode & OTHERS)
    foreign = sum(1 for entry in entries if entry.st_uid != mine)
    if loose:
        what = f"other accounts may read {loose} keys"
        yield error("keystore_open", what, "chmod 600 every key in the keystore")
    if foreign:
        what = f"{foreign} files in the keystore belong to another account"
        todo = "run all processes under one account, and make it the owner of the keys"
        yield error("keystore_open", what, todo)
    if not (loose or foreign or folder.stat().st_mode & OTHERS):
        yield fine("keystore_open")


def core_dumps() -> Diagnoses:
    """A process that crashes must not write its memory, which holds raw rows, to a disk."""
    soft, _ = resource.getrlimit(resource.RLIMIT_CORE)
    todo = "start commands with manage.py, and workers with `celery -A mobility`"
    yield error_if(soft != 0, "core_dumps", "a process that crashes writes its memory to a file", todo)


def open_files() -> Diagnoses:
    """Connections, uploads and segments need file descriptors."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    what = f"a process may open {soft} files, fewer than {OPEN_FILES}"
    todo = f"raise the limit (LimitNOFILE in systemd, ulimit -n); hard limit: {hard}"
    yield warning_if(soft != resource.RLIM_INFINITY and soft < OPEN_FILES, "open_files", what, todo)


def temporary_folder() -> Diagnoses:
    """Libraries put sockets and build results there; one that all may write to protects names by its bit."""
    mode = Path(tempfile.gettempdir()).stat().st_mode
    what = "any account may replace files of other accounts in the temporary folder"
    todo = "chmod 1777, or set TMPDIR to a folder of this account"
    yield error_if(mode & stat.S_IWOTH and not mode & stat.S_ISVTX, "temporary_folder", what, todo)


def time_zones() -> Diagnoses:
    """Local days need the rules of time zones."""
    for name in ("Europe/Paris", "America/New_York", "Asia/Kolkata"):
        try:
            ZoneInfo(name)
        except ZoneInfoNotFoundError:
            todo = "install the system package tzdata"
            yield error("time_zones", f"the time zone {name} is not installed", todo, subject=name)
            return
    yield fine("time_zones")


def static_files() -> Diagnoses:
    """Every page needs files that `collectstatic` writes; without one it answers with an error."""
    if not hasattr(staticfiles_storage, "stored_name"):  # without a manifest nothing can lack in it
        yield fine("static_missing")
        return
    names = {name for finder in get_finders() for name, _ in finder.list([])}
    known = set(getattr(staticfiles_storage, "hashed_files", {}))
    there = set(get_files(staticfiles_storage)) if known and Path(settings.STATIC_ROOT).is_dir() else set()
    missing = len(names - known) if there else len(names)
    if not missing:
        yield fine("static_missing")
    elif settings.EMBEDDED_REDIS:
        todo = "no action needed: manage.py run collects them"
        yield note("static_missing", "static files are not collected", todo)
    else:
        what = f"{missing} static files are not collected: pages that need them fail"
        todo = "manage.py collectstatic --no-input, then restart the web servers"
        yield error("static_missing", what, todo)


def translations() -> Diagnoses:
    """Compiled catalogues come with the code."""
    sources = [path for folder in settings.LOCALE_PATHS for path in Path(folder).rglob("*.po")]
    missing = sorted({path.parts[-3] for path in sources if not path.with_suffix(".mo").exists()})
    what = f"translations are not compiled: {', '.join(missing)}"
    todo = "run make messages, or install a complete release"
    yield warning_if(missing, "translations_missing", what, todo)


def kernels() -> Diagnoses:
    """Compiled kernels are kept; where they cannot be, each process compiles them again."""
    own = os.environ.get("NUMBA_CACHE_DIR")
    folders = [Path(own)] if own else [settings.BASE_DIR / "ldp", settings.BASE_DIR / "mobility"]
    folders = [folder if own else folder / "__pycache__" for folder in folders]
    what = "compiled kernels cannot be cached, so every worker start takes half a minute longer"
    todo = "set NUMBA_CACHE_DIR to a folder that this account can write to"
    yield warning_if(not all(map(_is_writable, folders)), "kernels_uncached", what, todo)


def _is_writable(folder: Path) -> bool:
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    return os.access(existing, os.W_OK | os.X_OK)
