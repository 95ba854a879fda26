"""Both SQLite databases are there and migrated before a command needs them."""

import importlib.util
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import django
from django.conf import settings
from django.core.management import call_command

from mobility.base.locks import exclusive
from mobility.base.messages import say
from mobility.base.runtime import private_folder

# Commands that work without databases, or that make them.
NO_DATABASES = frozenset(
    {
        "check", "collectstatic", "compilemessages", "diffsettings", "doctor", "findstatic", "help",
        "make_extract", "makemessages", "makemigrations", "migrate", "optimizemigration", "showmigrations",
        "sqlmigrate", "squashmigrations", "startapp", "test", "testserver", "verify_backup", "version",
    }
)  # fmt: skip


def prepare(argv: list[str]) -> None:
    """Create secrets and migrate the embedded databases, where the command in `argv` needs them."""
    command = argv[1] if len(argv) > 1 else "help"
    if command.startswith("-") or command in NO_DATABASES or {"-h", "--help"} & set(argv[2:]):
        return
    private_folder(settings.MOBILITY_DATA_DIR)
    files = embedded_files()
    if all(is_migrated(file) for file in files.values()):
        return
    with exclusive(settings.PATHS.run / "migrate.lock"):
        # Another command may have done it while this one waited.
        behind = [alias for alias, file in files.items() if not is_migrated(file)]
        if behind:
            say(f"preparing the databases in {settings.MOBILITY_DATA_DIR}")
            migrate(behind)


def embedded_files() -> dict[str, Path]:
    """Files of the SQLite databases that are ours, by alias; those named by a URL are left alone."""
    ours = {"default": settings.PATHS.main_database, "vault": settings.PATHS.vault_database}
    names = {alias: database["NAME"] for alias, database in settings.DATABASES.items()}
    return {alias: ours[alias] for alias, name in names.items() if name == str(ours[alias])}


def is_migrated(file: Path) -> bool:
    """Return whether `file` holds every migration of this code, read from the file itself."""
    if not file.exists():
        return False
    with closing(sqlite3.connect(file, timeout=30)) as database:
        try:
            applied = set(database.execute("SELECT app, name FROM django_migrations"))
        except sqlite3.OperationalError:  # no such table: an empty file
            return False
    return applied.issuperset(_known_migrations())


def migrate(aliases: list[str]) -> None:
    django.setup()
    for alias in aliases:
        call_command("migrate", database=alias, interactive=False, verbosity=0)


def _known_migrations() -> Iterator[tuple[str, str]]:
    for app in settings.INSTALLED_APPS:
        spec = importlib.util.find_spec(app)
        for folder in (spec.submodule_search_locations if spec else None) or ():
            for file in Path(folder, "migrations").glob("[0-9]*.py"):
                yield app.rpartition(".")[2], file.stem
