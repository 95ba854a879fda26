"""Running all checks of the doctor.

A check that needs what another has found missing is left out: a database that does not answer is found once.
"""

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from django.conf import settings
from django.core.checks import WARNING, CheckMessage, run_checks

from mobility.embedded.shared import in_use
from mobility.operations.doctor import broker, databases, host, workers
from mobility.operations.doctor.diagnosis import Check, Diagnoses, Diagnosis, error, fine, warning
from mobility.operations.findings import Finding, Level
from mobility.operations.probes.looking import STOPPING
from mobility.operations.probes.looking import look as probe
from mobility.operations.texts import words
from reports.ledger.checks import check_ledger

if settings.HAS_VAULT:  # the models of a vault exist there only
    from mobility.operations.doctor import sealed, storage, tallies, zones

log = logging.getLogger(__name__)

# Of `check --deploy`: what a service behind a proxy with HTTPS=true has, and one on the loopback need not.
ONLY_WITH_HTTPS: Final = frozenset({"security.W004", "security.W008", "security.W012", "security.W016"})
AGAIN_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Look:
    """A check and the databases without which it cannot look.

    Parameters
    ----------
    is_long : takes minutes, and takes care that concurrent work is no fault
    """

    name: str
    check: Check
    needs: tuple[str, ...] = ()
    is_long: bool = False


def examine(*, deep: bool) -> list[Diagnosis]:
    """All that is found, also what is fine.

    Parameters
    ----------
    deep : also what takes minutes on a large installation: every seal, every total, every page of a file
    """
    findings = probe()
    found = [_diagnosis(each) for each in findings if not (_rests(each) or _is_told_here(each))]
    broken = {each.subject for each in findings if each.code in STOPPING and each.level > Level.OK}
    for look in _looks(deep=deep):
        if not broken.intersection(look.needs):
            found += _safely(look)
    return found


def _rests(finding: Finding) -> bool:
    """Return whether a finding is only that the embedded default starts broker and worker on demand."""
    codes = ("broker_unreachable", "workers_missing", "job_failed")
    return finding.code in codes and settings.EMBEDDED_REDIS and not in_use()


def _is_told_here(finding: Finding) -> bool:
    """Findings of system checks keep their words; the probe adds its own reason."""
    return finding.code == "settings_unsafe" and "why" not in finding.facts


def _diagnosis(finding: Finding) -> Diagnosis:
    said = words(finding)
    return Diagnosis(
        code=finding.code,
        level=finding.level,
        subject=finding.subject,
        what="" if finding.level == Level.OK else f"{said.title}. {said.what}",
        todo=said.todo,
        page=f"docs/runbook/{finding.code.replace('_', '-')}.md",
    )


def _safely(look: Look) -> list[Diagnosis]:
    try:
        found = list(look.check())
        if look.is_long or all(each.level < Level.WARNING for each in found):
            return found
        # Two databases and a folder cannot be read at one moment: only lasting differences are faults.
        time.sleep(AGAIN_S)
        wrong = {(each.code, each.subject) for each in found if each.level >= Level.WARNING}
        return [
            each for each in look.check() if each.level < Level.WARNING or (each.code, each.subject) in wrong
        ]
    except Exception as failure:  # noqa: BLE001 - what is broken must not hide the rest
        # Its kind only: an error's words may quote anything.
        log.warning("check_failed check=%s error=%s", look.name, type(failure).__name__)
        what = f"the check failed to run ({type(failure).__name__})"
        todo = "see the other findings first, then run doctor again"
        return [error("check_failed", what, todo, subject=look.name)]


def _looks(*, deep: bool) -> Iterator[Look]:
    every = tuple(settings.DATABASES)
    yield Look("settings", system_checks)
    for name in (
        "core_dumps",
        "open_files",
        "temporary_folder",
        "time_zones",
        "static_files",
        "translations",
    ):
        yield Look(name, getattr(host, name))
    yield Look("promises", databases.promises, needs=every)
    yield Look("clocks", databases.clocks, needs=every)
    yield Look("broker", broker.forgets_nothing)
    yield Look("broker clock", broker.clock)
    yield Look("workers", workers.same_installation, needs=every)
    if deep:
        yield Look("files", databases.whole, needs=every, is_long=True)
        yield Look("ledger", ledger, needs=("default",), is_long=True)
    if settings.HAS_VAULT:
        yield from _looks_of_vault(deep=deep)


def _looks_of_vault(*, deep: bool) -> Iterator[Look]:
    every = tuple(settings.DATABASES)
    yield Look("kernels", host.kernels)
    yield Look("key files", host.key_files)
    yield Look("storage", storage.usable)
    yield Look("orphans", storage.orphans, needs=("vault",))
    yield Look("seals", partial(sealed.seals, deep=deep), needs=("vault",), is_long=deep)
    yield Look("shards", sealed.shards, needs=("vault",))
    yield Look("keys", sealed.keys_that_outlived, needs=("vault",))
    yield Look("studies", tallies.studies, needs=every)
    yield Look("publications", tallies.publications, needs=every)
    yield Look("slots", tallies.slots, needs=every)
    yield Look("negative", tallies.negative, needs=every)
    if deep:
        yield Look("totals", tallies.recomputed, needs=every, is_long=True)
    if settings.MOBILITY_ANALYST_URL:
        yield Look("analyst server", zones.analyst_server)


def system_checks() -> Diagnoses:
    """Django's and our own, with those of a deployment."""
    messages = [
        each
        for each in run_checks(include_deployment_checks=True)
        if not (each.is_silenced() or each.level < WARNING or _is_local(each))
    ]
    for each in messages:
        make = error if each.is_serious() else warning
        yield make("settings_unsafe", str(each.msg), each.hint or "see the finding", subject=str(each.id))
    if not messages:
        yield fine("settings_unsafe")


def _is_local(message: CheckMessage) -> bool:
    return not settings.HTTPS and message.id in ONLY_WITH_HTTPS


def ledger() -> Diagnoses:
    """Every hash of the ledger computed again."""
    problem = check_ledger().problem
    if problem is None:
        yield fine("ledger_broken")
    else:
        where = "" if problem.number is None else f"entry {problem.number}: "
        todo = "compare the ledger with a saved head (docs/ledger.md), and restore the main database"
        yield error("ledger_broken", f"{where}{problem.what}", todo)
