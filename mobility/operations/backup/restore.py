"""Restore of a backup: always both databases of the same backup.

The vault alone would not know what analysts have already, and would count it twice. So there is no way to
restore one of two; where the zones run apart, each checks the other before it adds anything.
"""

import logging
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from django.apps import apps
from django.conf import settings
from django.core.management import call_command
from django.db import DatabaseError, connections
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.utils import timezone
from kombu.exceptions import OperationalError

from mobility import startup
from mobility.base import locks
from mobility.base.errors import OperationsError
from mobility.embedded.service import Service
from mobility.embedded.shared import in_use
from mobility.operations.backup.closings import NONE, Closings
from mobility.operations.backup.dumps import check_programs, count_rows, load
from mobility.operations.backup.folder import Manifest, Part, digest_of
from mobility.operations.backup.making import verify_backup
from mobility.operations.backup.reconcile import reconcile, revoke_openings
from mobility.operations.installation import known_code, settle_code
from mobility.operations.models import Backup
from mobility.workers.app import app
from mobility.workers.models import WorkerSign

if settings.HAS_VAULT:  # the models of a vault exist there only
    from mobility.plans.recovery import bury
    from mobility.vault.consistency import stop_noisy

log = logging.getLogger(__name__)

PING_S: Final = 2.0
STOP_FIRST: Final = "stop the web server and all workers first"
# A database with a row in one of these holds something to lose.
HOLDING: Final = (
    "auth_user", "reports_study", "reports_ledgerentry", "mobility_vaultstudy", "mobility_batch",
)  # fmt: skip


def restore(
    folder: Path,
    *,
    by: str,
    replaces: bool = False,
    stays_other: bool = False,
    revokes: bool = False,
    closed: Closings = NONE,
    no_day_closed: bool = False,
) -> dict[str, Any]:
    """Restore a backup and make what it brings fit the time since; what was found and done.

    Parameters
    ----------
    replaces : the databases hold something, which is lost
    stays_other : the installation that made the backup continues elsewhere, and this one is another
    revokes : tokens of programs, of feeds, and share links are ended, too
    closed : studies that another ledger knows as closed
    no_day_closed : no day of a study with presence noise was closed since the backup: such studies continue

    Raises
    ------
    OperationsError : nothing was changed, or, if it says so, one database was replaced and it has to be
        repeated
    """
    manifest = verify_backup(folder)
    _check_fits(manifest)
    with _alone():
        _check_may_replace(manifest, replaces=replaces, stays_other=stays_other)
        _replace(folder, manifest, stays_other=stays_other)
        if revokes:
            revoke_openings()
        slugs = closed.studies()  # of what was restored
        _stop_and_bury(slugs, no_day_closed=no_day_closed)
        log.info("backup_restored bytes=%s", manifest.size)
        return {
            "restored": str(folder),
            "backup_of": manifest.made_at.isoformat(),
            "parts": {part.alias: part.bytes for part in manifest.parts},
            "opt_outs_missing_since": manifest.made_at.isoformat() if settings.HAS_VAULT else None,
            **reconcile(by=by, closed=slugs),
        }


@contextmanager
def _alone() -> Iterator[None]:
    """No one works when this begins; a web server or worker that starts meanwhile on SQLite's files waits.

    Raises
    ------
    OperationsError : someone works
    """
    _check_nobody_works()
    with ExitStack() as stack:
        if startup.has_files():
            try:
                stack.enter_context(locks.exclusive(startup.files_lock(), waits=False))
            except BlockingIOError:
                raise OperationsError(f"{STOP_FIRST} (one of them has the database files open)") from None
        yield


def _stop_and_bury(closed: Collection[str], *, no_day_closed: bool) -> None:
    if not settings.HAS_VAULT:
        return
    if not no_day_closed:
        stop_noisy()
    bury(closed)  # at once: restore_keys may come before anything can be settled


def _check_fits(manifest: Manifest) -> None:
    if manifest.zone != settings.MOBILITY_ZONE:
        raise OperationsError(
            f"the backup belongs to zone {manifest.zone}, but this is zone {settings.MOBILITY_ZONE}: "
            "restore each zone from its own backup"
        )
    here = {alias: connections[alias].vendor for alias in settings.DATABASES}
    there = {part.alias: part.vendor for part in manifest.parts}
    if here != there:
        raise OperationsError(f"the backup contains the databases {there}, but this zone has {here}")
    for part in manifest.parts:
        check_programs(part.alias)
        _check_known(part, version=manifest.software.get("version", ""))


def _check_known(part: Part, *, version: str) -> None:
    known = MigrationLoader(None, ignore_no_migrations=True).disk_migrations
    labels = {config.label for config in apps.get_app_configs()}
    later = [f"{app}.{name}" for app, name in part.migrations if app in labels and (app, name) not in known]
    if later:
        raise OperationsError(
            f"the backup was made by a newer version ({version}), which this version does not know "
            f"({later[0]}): install that version, then restore"
        )


def _check_nobody_works() -> None:
    """Raise OperationsError while workers or a web server of this installation are seen."""
    seen = []
    if _worker_answers():
        seen.append("a worker is responding")
    if in_use():
        seen.append("a command is using the embedded services")
    if Service("web").is_alive():
        seen.append("the web server is running")
    for alias in settings.DATABASES:
        if n := _others(alias):
            seen.append(f"{n} other connections to the {alias} database")
    if seen:
        raise OperationsError(f"{STOP_FIRST} ({'; '.join(seen)})")


def _worker_answers() -> bool:
    try:
        return bool(app.control.ping(timeout=PING_S, limit=1))
    except (OperationalError, OSError):  # no broker: no one who could be asked for work
        return False


def _others(alias: str) -> int:
    """Return other connections to a database of PostgreSQL, of every role, as zones may share it."""
    connection = connections[alias]
    if connection.vendor != "postgresql":
        return 0
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() "
            # Of other roles one may not see the kind; background processes have no role.
            "AND pid <> pg_backend_pid() AND usename IS NOT NULL "
            "AND COALESCE(backend_type, 'client backend') = 'client backend'"
        )
        return int(cursor.fetchone()[0])


def _check_may_replace(manifest: Manifest, *, replaces: bool, stays_other: bool) -> None:
    rows = {part.alias: count_rows(part.alias) for part in manifest.parts}
    held = [(alias, table) for alias in rows for table in HOLDING if rows[alias].get(table)]
    if held and not replaces:
        alias, table = held[0]
        raise OperationsError(
            f"the {alias} database is not empty ({table}: {rows[alias][table]} rows): with --replace, "
            "the backup replaces its contents"
        )
    code, brought = known_code(), manifest.installation
    if held and code and brought not in ("", code) and not stays_other:
        raise OperationsError(
            f"the backup belongs to installation {brought}, but this is installation {code}: to make "
            "this installation a copy, use --other-installation"
        )


def _replace(folder: Path, manifest: Manifest, *, stays_other: bool) -> None:
    before = known_code()
    _load_all(folder, manifest)
    settle_code(before=before, brought=manifest.installation, stays_other=stays_other)
    WorkerSign.objects.all().delete()  # of before; who works now tells so soon
    _note(manifest, digest_of(folder))


def _load_all(folder: Path, manifest: Manifest) -> None:
    """Main first: should it break off then, a main database older than its vault does no harm."""
    left = "the databases have not changed"
    for part in sorted(manifest.parts, key=lambda part: part.alias):
        try:
            load(folder / part.file, alias=part.alias)
        except (OperationsError, DatabaseError) as error:
            why = str(error) if isinstance(error, OperationsError) else type(error).__name__
            raise OperationsError(f"{part.alias}: {why}; {left}") from None
        left = (
            f"{part.alias} already has the contents of the backup: start no service until restore "
            "has succeeded"
        )
        if count_rows(part.alias) != dict(part.rows):
            raise OperationsError(f"{part.alias}: the rows do not match the backup: restore again")
    for part in manifest.parts:
        executor = MigrationExecutor(connections[part.alias])
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):  # it is of an earlier version
            call_command("migrate", database=part.alias, interactive=False, verbosity=0)


def _note(manifest: Manifest, digest: str) -> None:
    """The backup itself was made after what it holds; and that it was restored."""
    facts = {
        "zone": manifest.zone,
        "bytes": manifest.size,
        "digest": digest,
        "contents": {part.alias: part.bytes for part in manifest.parts},
    }
    Backup.objects.get_or_create(
        kind=Backup.Kind.BACKUP, digest=digest, defaults={**facts, "made_at": manifest.made_at}
    )
    # The row with the same digest has the time of the backup.
    Backup.objects.create(kind=Backup.Kind.RESTORE, made_at=timezone.now(), **facts)
