"""Contents of the status page: all findings, in words, and the tables."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final

from django.conf import settings
from django.db import DatabaseError, InterfaceError
from django.db.models import Count, Min
from django.utils import timezone
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from mobility.operations import texts
from mobility.operations.alerts.channels import channels
from mobility.operations.alerts.sending import runbook_of
from mobility.operations.findings import CODES, Finding, Level
from mobility.operations.jobs import NOT_PLANNED, jobs
from mobility.operations.models import Alert, Backup, JobRun
from mobility.operations.probes.looking import UNREACHABLE, look_lately, worst
from mobility.operations.probes.workers import signs
from mobility.workers.models import WorkerSign
from mobility.workers.signs import SILENT_S
from reports.base.formats import MISSING, number

if settings.HAS_VAULT:  # the models of a vault exist there only
    from mobility.batches.texts import BATCH_STATES
    from mobility.vault.models.batch import Batch

# Sign and class of the badge, next to a word.
SIGNS: Final = {
    Level.OK: ("✓", "badge--ok"),
    Level.NOTE: ("i", "badge--accent"),
    Level.WARNING: ("!", "badge--warn"),
    Level.ERROR: ("✕", "badge--bad"),
}
BACKUPS_SHOWN: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Badge:
    """A level as a sign, a word and a colour."""

    sign: str
    word: str
    style: str

    @classmethod
    def of(cls, level: Level) -> "Badge":
        sign, style = SIGNS[level]
        return cls(sign=sign, word=str(texts.LEVEL_WORDS[level]), style=style)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A row of one of the smaller tables: what, a badge, and some words; `code`: its name in commands."""

    name: str
    badge: Badge
    what: str
    more: str = ""
    code: str = ""


def status() -> dict[str, Any]:
    """The state of this installation, as it was found some seconds ago at most: contents of the page.

    `next_step` is empty if no action is needed; `batches` None if the vault does not answer.
    """
    looked, now = look_lately(), timezone.now()
    found = looked.findings
    trouble = sorted((each for each in found if each.level > Level.OK), key=lambda each: -each.level)
    return {
        "at": looked.at,
        "badge": Badge.of(worst(found)),
        "verdict": _verdict(trouble),
        "next_step": _("%(title)s. %(todo)s") % asdict(texts.words(trouble[0])) if trouble else "",
        "trouble": [_row(each) for each in trouble if each.level > Level.NOTE],
        "notes": [_row(each) for each in trouble if each.level == Level.NOTE],
        "fine": [_row(each) for each in found if each.level == Level.OK and each.code not in _IN_TABLES],
        "workers": [_worker(sign, now) for sign in signs(now)],
        "queues": [_queue(each) for each in found if each.code == "queue_long"],
        "has_vault": settings.HAS_VAULT,
        "batches": _batches_if_known(found, now) if settings.HAS_VAULT else (),
        "jobs": list(_jobs(found, now)),
        "backups": list(_backups(found, now)),
        "alerts": list(_alerts(now)),
    }


_IN_TABLES: Final = frozenset({"queue_long", "job_failed"})


def _verdict(trouble: list[Finding]) -> str:
    n_errors, n_warnings = (
        sum(each.level == level for each in trouble) for level in (Level.ERROR, Level.WARNING)
    )
    if n_errors:
        text = ngettext("%(n)d problem needs attention now.", "%(n)d problems need attention now.", n_errors)
        return text % {"n": n_errors}
    if n_warnings:
        text = ngettext(
            "The service is running. %(n)d problem needs attention today.",
            "The service is running. %(n)d problems need attention today.",
            n_warnings,
        )
        return text % {"n": n_warnings}
    return _("Everything is working. See the notes below.") if trouble else _("Everything is working.")


def _row(finding: Finding) -> dict[str, Any]:
    return {
        "component": texts.component(finding),
        "badge": Badge.of(finding.level),
        "words": texts.words(finding),
        "chapter": runbook_of(finding.code).removeprefix("docs/"),
    }


def _worker(sign: WorkerSign, now: datetime) -> dict[str, Any]:
    is_silent = (now - sign.seen_at).total_seconds() > SILENT_S
    return {
        "sign": sign,
        "badge": Badge.of(Level.WARNING if is_silent else Level.OK),
        "queues": ", ".join(sign.queues),
        "up": texts.duration((sign.seen_at - sign.started_at).total_seconds()),
        "seen": _ago(sign.seen_at, now),
    }


def _queue(finding: Finding) -> Line:
    age_s = finding.facts.get("oldest_s")
    more = (
        ""
        if age_s is None
        else _("the oldest task has been waiting for %(time)s") % {"time": texts.duration(float(age_s))}
    )
    what = _("Waiting tasks: %(n)s") % {"n": number(int(finding.facts["tasks"]))}
    return Line(name=finding.subject, badge=Badge.of(finding.level), what=what, more=more)


def _batches_if_known(found: Iterable[Finding], now: datetime) -> tuple[Line, ...] | None:
    """Return None where the vault does not answer: the page is needed most during outages."""
    for each in found:
        if (each.code, each.subject) == (UNREACHABLE, "vault") and each.level > Level.OK:
            return None  # a server that hangs would hold the page up
    try:
        return _batches(now)
    except (DatabaseError, InterfaceError):  # it failed since the check
        return None


def _batches(now: datetime) -> tuple[Line, ...]:
    """Unfinished batches by study and state: how many, and since when the oldest."""
    unfinished = Batch.objects.exclude(state__in=Batch.FINAL).order_by()
    rows = unfinished.values_list("study__slug", "state").annotate(n=Count("pk"), since=Min("created_at"))
    return tuple(
        Line(
            name=slug,
            badge=Badge(sign=number(n), word=str(BATCH_STATES[state]), style=""),
            what=_("the oldest batch arrived %(time)s") % {"time": _ago(since, now)},
        )
        for slug, state, n, since in rows.order_by("study__slug", "state")
    )


def _jobs(found: Iterable[Finding], now: datetime) -> Iterable[Line]:
    levels = {each.subject: each.level for each in found if each.code == "job_failed"}
    runs = {run.name: run for run in JobRun.objects.filter(zone=settings.MOBILITY_ZONE)}
    for job, every_s in jobs().items():
        badge, last = Badge.of(levels.get(job, Level.OK)), _last_run(runs.get(job), now)
        if job not in runs and levels.get(job, Level.OK) == Level.OK:  # nothing to call fine yet
            badge, last = Badge(sign=MISSING, word=last, style=""), ""
        more = _("each time a worker starts") if every_s == NOT_PLANNED else texts.every(every_s)
        yield Line(name=capfirst(texts.subject_words(job)), badge=badge, what=last, more=more, code=job)


def _last_run(run: JobRun | None, now: datetime) -> str:
    if run is None:
        return _("has not run yet")
    if run.finished_at is None or (run.failed_at and run.failed_at > run.finished_at):
        return _("failed %(time)s") % {"time": _ago(run.failed_at or run.started_at, now)}
    return _("last succeeded %(time)s") % {"time": _ago(run.finished_at, now)}


def _backups(found: Iterable[Finding], now: datetime) -> Iterable[Line]:
    """The last ones; the newest backup is as old as the look at it says."""
    kinds = {
        Backup.Kind.BACKUP: _("backup"),
        Backup.Kind.ESCROW: _("key escrow"),
        Backup.Kind.RESTORE: _("restore"),
    }
    newest = worst([each for each in found if each.code == "backup_old"])
    for made in Backup.objects.filter(zone=settings.MOBILITY_ZONE)[:BACKUPS_SHOWN]:
        kind = Backup.Kind(made.kind)
        more = texts.size(made.bytes) if made.bytes else ""
        level = Level.OK
        if kind == Backup.Kind.BACKUP:  # newest first: those before it need not be young
            level, newest = newest, Level.OK
        yield Line(name=capfirst(kinds[kind]), badge=Badge.of(level), what=_ago(made.made_at, now), more=more)


def _alerts(now: datetime) -> Iterable[Line]:
    nobody = _("not sent yet") if channels() else _("not sent: no alert channel is configured")
    for alert in Alert.objects.filter(zone=settings.MOBILITY_ZONE, ended_at=None, code__in=CODES):
        level = Level[alert.level.upper()]
        finding = Finding(code=alert.code, level=level, subject=alert.subject, facts=alert.facts)
        names = ", ".join(texts.subject_words(channel) for channel in sorted(alert.told))
        told = _("sent by %(channels)s") % {"channels": names} if names else nobody
        since = _("opened %(time)s ago") % {"time": texts.duration((now - alert.since).total_seconds())}
        yield Line(name=texts.words(finding).title, badge=Badge.of(level), what=since, more=told)


def _ago(moment: datetime, now: datetime) -> str:
    return texts.ago((now - moment).total_seconds())
