"""Looking at an installation: every probe is quick, and none can stop the others."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.conf import settings
from django.db import DatabaseError, InterfaceError
from django.utils import timezone

from mobility.operations.alerts.channels import channels as set_up
from mobility.operations.findings import Finding, Level, finding
from mobility.operations.probes import backups, broker, channels, databases, host, ledger, safety, workers

if settings.HAS_REPORTS:
    from mobility.operations.probes import crowds
if settings.HAS_VAULT:  # the models of a vault exist there only
    from mobility.operations.probes import batches, consistency, crossing, feeds, keys

log = logging.getLogger(__name__)
Findings = Iterator[Finding]


@dataclass(frozen=True, slots=True)
class Probe:
    """A look at one thing.

    Parameters
    ----------
    codes : what it can find, of CODES
    needs : aliases of databases without which there is nothing to look at; it is then left out
    """

    name: str
    codes: tuple[str, ...]
    look: Callable[[], Findings]
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """Findings, and their time."""

    findings: tuple[Finding, ...]
    at: datetime


def look() -> list[Finding]:
    """Everything that can be known now, also of what is fine.

    Notes
    -----
    A code of which nothing is returned could not be looked at: a database that it needs does not answer,
    or lacks tables. So what was wrong with it before may still be.
    """
    found: list[Finding] = []
    for probe in _probes():
        lacking = {each.subject for each in found if each.code in STOPPING and each.level > Level.OK}
        if not lacking.intersection(probe.needs):
            found += _safely(probe)
    if not any(each.code == BROKEN for each in found):
        found.append(finding(BROKEN))
    return found


def looked_for() -> frozenset[str]:
    """Codes that can be found with these settings: what is wrong by any other code is no longer looked at."""
    return frozenset({BROKEN}.union(*(probe.codes for probe in _probes())))


def look_lately(*, max_age_s: float = 5.0) -> Looked:
    """Return `look`, at most every `max_age_s` in this process: many may ask at once."""
    global _last  # noqa: PLW0603 - a process has one
    with _lock:
        if _last is None or time.monotonic() - _last[0] > max_age_s:
            at = timezone.now()
            _last = (time.monotonic(), Looked(findings=tuple(look()), at=at))
        return _last[1]


def worst(findings: list[Finding] | tuple[Finding, ...]) -> Level:
    """The level of the worst of them."""
    return max((finding.level for finding in findings), default=Level.OK)


UNREACHABLE: Final = "database_unreachable"
UNMIGRATED: Final = "migrations_pending"
STOPPING: Final = frozenset({UNREACHABLE, UNMIGRATED})  # nothing else to see there
BROKEN: Final = "look_failed"
_lock = threading.Lock()
_last: tuple[float, Looked] | None = None


def _safely(probe: Probe) -> list[Finding]:
    try:
        return list(probe.look())
    except Exception as error:  # noqa: BLE001 - what is broken must not hide the rest
        # Its kind only: an error's words may quote anything.
        log.warning("look_failed probe=%s error=%s", probe.name, type(error).__name__)
        level = Level.WARNING if isinstance(error, DatabaseError | InterfaceError) else Level.ERROR
        return [finding(BROKEN, level, probe.name, error=type(error).__name__)]


def _probes() -> Iterator[Probe]:
    """Return the probes in the order in which pages show them."""
    main, every = ("default",), tuple(settings.DATABASES)
    yield Probe("databases", (UNREACHABLE,), databases.reached)
    yield Probe("migrations", (UNMIGRATED,), databases.migrated, needs=every)
    yield Probe("own main", ("main_shared",), safety.own_main, needs=every)
    yield Probe("broker", ("broker_unreachable", "queue_long"), broker.reached)
    yield Probe("workers", ("workers_missing", "worker_silent"), workers.living, needs=main)
    yield Probe("jobs", ("job_failed",), workers.jobs_run, needs=main)
    yield Probe("disks", ("disk_low",), host.disks)
    if settings.HAS_VAULT:
        yield from _of_vault()
    if settings.HAS_REPORTS:
        yield Probe("crowds", ("zone_crowded",), crowds.full, needs=main)
    yield Probe("ledger", ("ledger_broken",), ledger.checked, needs=main)
    yield Probe("backups", ("backup_old",), backups.backed_up, needs=main)
    if settings.HAS_VAULT:
        yield Probe("escrow", ("escrow_old",), keys.escrowed, needs=("default", "vault"))
    yield Probe("settings", ("settings_unsafe",), safety.checked)
    if set_up():
        yield Probe("channels", ("alert_untold",), channels.telling, needs=main)


def _of_vault() -> Iterator[Probe]:
    vault = ("vault",)
    yield Probe("keystore", ("keystore_unusable", "key_missing"), keys.usable, needs=vault)
    yield Probe("keys", ("key_due",), keys.due, needs=vault)
    yield Probe("failures", ("batch_failed",), batches.failed, needs=vault)
    yield Probe("waiting", ("batch_waiting",), batches.waiting, needs=vault)
    yield Probe("days", ("day_open",), batches.days, needs=vault)
    yield Probe("feeds", ("feed_late",), feeds.late, needs=vault)
    yield Probe("fitting", ("study_stopped",), consistency.stopped, needs=vault)
    if settings.HANDS_OVER:
        yield Probe("handover", ("handover_waiting",), crossing.waiting, needs=vault)
