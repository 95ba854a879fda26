"""Metrics of /metrics for Prometheus: read on request. docs/metrics.md lists every one.

Labels are names of studies, queues, workers, folders, tasks and views; never an address, a token or a file.
Each sample has the zone as well: one Prometheus may ask both.
"""

import hmac
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import redis
from django.conf import settings
from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, HttpResponse, HttpResponseNotFound
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from mobility.base.middleware import Middleware
from mobility.operations.findings import Finding
from mobility.operations.metrics.folder import FOLDER
from mobility.operations.metrics.requests import own_registry
from mobility.operations.metrics.tasks import totals
from mobility.operations.models import Alert, AlertWatch
from mobility.operations.probes.looking import look_lately
from mobility.workers.models import WorkerSign
from reports.base.version import software
from reports.ledger.models import LedgerHead

if settings.HAS_VAULT:  # the models of a vault exist there only
    from mobility.operations.metrics import vault as metrics_vault

PATH: Final = "/metrics"
Families = Iterator[Metric]
UNKNOWN_AGE_S: Final = -1.0
# A fact of a finding as a gauge: code, fact, metric, label of the subject, what it is.
FACTS: Final = (
    ("queue_long", "tasks", "mobility_queue_tasks", "queue", "Tasks not yet fetched by a worker."),
    ("queue_long", "oldest_s", "mobility_queue_oldest_seconds", "queue", "Age of the oldest such task."),
    ("workers_missing", "workers", "mobility_workers", "queue", "Workers that respond."),
    ("workers_missing", "processes", "mobility_worker_processes", "queue", "Processes of these workers."),
    ("job_failed", "age_s", "mobility_job_age_seconds", "job",
     "Seconds since a job last ended, whether or not it succeeded."),
    ("disk_low", "free_bytes", "mobility_disk_free_bytes", "folder", "Free bytes by disk."),
    ("disk_low", "total_bytes", "mobility_disk_total_bytes", "folder", "Size of the disk."),
    ("database_unreachable", "ms", "mobility_database_answer_ms", "database",
     "Milliseconds until the database responds."),
    ("database_unreachable", "bytes", "mobility_database_bytes", "database", "Size of a database in bytes."),
    ("broker_unreachable", "ms", "mobility_broker_answer_ms", "", "Milliseconds until the broker responds."),
    ("backup_old", "age_s", "mobility_backup_age_seconds", "",
     "Seconds since the last backup; absent if there is none."),
    ("escrow_old", "keys", "mobility_keys_in_no_escrow", "", "Keys of open studies without an escrow copy."),
    ("ledger_broken", "entries", "mobility_ledger_entries", "", "Entries of the ledger."),
    ("feed_late", "days", "mobility_feed_late_days", "study",
     "Overdue days of a feed; absent if there are none."),
)  # fmt: skip


class MetricsMiddleware(Middleware):
    """Answers before everything else: Prometheus asks a web server by any host name, and without TLS."""

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return metrics(request) if request.path_info == PATH else self.get_response(request)


@never_cache
@require_GET
def metrics(request: HttpRequest) -> HttpResponse:
    """The exposition, for who has the token. Without MOBILITY_METRICS_TOKEN there is no such page."""
    if not settings.MOBILITY_METRICS_TOKEN:
        return HttpResponseNotFound()
    given = request.headers.get("Authorization", "").encode()
    if not hmac.compare_digest(given, f"Bearer {settings.MOBILITY_METRICS_TOKEN}".encode()):
        return HttpResponse(status=401, headers={"WWW-Authenticate": "Bearer"})
    return HttpResponse(exposition(), content_type=CONTENT_TYPE_LATEST)


def exposition() -> bytes:
    """Return all metrics in the text format of Prometheus."""
    registry = CollectorRegistry()
    registry.register(InZone(Installation(), _requests()))
    return generate_latest(registry)


def _requests() -> Collector:
    if os.environ.get(FOLDER):
        return MultiProcessCollector(None)  # type: ignore[no-untyped-call]
    return own_registry()


class InZone(Collector):
    """Samples of others, each with its zone."""

    def __init__(self, *parts: Collector) -> None:
        self._parts = parts

    def collect(self) -> Iterable[Metric]:
        zone = {"zone": str(settings.MOBILITY_ZONE)}
        for part in self._parts:
            for family in part.collect():
                family.samples = [each._replace(labels={**each.labels, **zone}) for each in family.samples]
                yield family


class Installation(Collector):
    """Samples of the databases, the broker and the host now."""

    def collect(self) -> Iterable[Metric]:
        findings = look_lately().findings
        yield from _findings(findings)
        yield from _facts(findings)
        yield _info()
        for part in self._parts(findings):
            try:
                yield from list(part())
            except (DatabaseError, InterfaceError, redis.RedisError, OSError):
                continue  # mobility_finding tells it

    @staticmethod
    def _parts(findings: tuple[Finding, ...]) -> Iterator[Callable[[], Families]]:
        """Databases that do not answer are not asked again: each would delay the scrape."""
        away = {each.subject for each in findings if each.code == "database_unreachable" and each.level}
        if "default" not in away:
            yield from (_alerts, _workers, _ledger)
        if settings.HAS_VAULT and "vault" not in away:
            yield from (metrics_vault.batches, metrics_vault.open_days, metrics_vault.publications)
        if not any(each.code == "broker_unreachable" and each.level for each in findings):
            yield _tasks


def _workers() -> Families:
    now = timezone.now()
    text = "Seconds since a worker last responded."
    family = GaugeMetricFamily("mobility_worker_sign_age_seconds", text, labels=("worker",))
    signs = WorkerSign.objects.filter(zone=settings.MOBILITY_ZONE)
    for name, seen_at in signs.values_list("name", "seen_at"):
        family.add_metric((name,), (now - seen_at).total_seconds())
    yield family


def _ledger() -> Families:
    """Yield the state of the ledger; nothing where it has no entry yet."""
    head = LedgerHead.objects.filter(pk=LedgerHead.ONLY).first()
    if head is not None:
        text = "1 if the last check verified the ledger's integrity."
        yield GaugeMetricFamily("mobility_ledger_whole", text, value=0 if head.problem else 1)


def _findings(findings: tuple[Finding, ...]) -> Families:
    family = GaugeMetricFamily(
        "mobility_finding", "Result of each check: 0 OK, 1 note, 2 act today, 3 act now.",
        labels=("code", "subject"),
    )  # fmt: skip
    for each in findings:
        family.add_metric((each.code, each.subject), int(each.level))
    yield family


def _facts(findings: tuple[Finding, ...]) -> Families:
    for code, fact, name, label, text in FACTS:
        family = GaugeMetricFamily(name, text, labels=(label,) if label else ())
        for each in findings:
            value = each.facts.get(fact)
            if each.code == code and isinstance(value, int | float):
                family.add_metric((each.subject,) if label else (), value)
        yield family


def _info() -> Metric:
    family = GaugeMetricFamily("mobility_info", "Version and zone.", labels=("version",))
    family.add_metric((str(software()["version"]),), 1)
    return family


def _alerts() -> Families:
    zone = settings.MOBILITY_ZONE
    family = GaugeMetricFamily("mobility_alerts_open", "Open alerts by level.", labels=("level",))
    levels = list(Alert.objects.filter(zone=zone, ended_at=None).values_list("level", flat=True))
    for level in ("note", "warning", "error"):
        family.add_metric((level,), levels.count(level))
    yield family
    looked_at = AlertWatch.objects.filter(zone=zone).values_list("looked_at", flat=True).first()
    age_s = (timezone.now() - looked_at).total_seconds() if looked_at else UNKNOWN_AGE_S
    text = "Seconds since the last check for alerts; -1 if never."
    yield GaugeMetricFamily("mobility_alerts_look_age_seconds", text, value=age_s)


def _tasks() -> Families:
    text = "Duration of worker tasks, by outcome."
    family = HistogramMetricFamily("mobility_task_seconds", text, labels=("task", "outcome"))
    for task, outcome, buckets, sum_s in totals():
        family.add_metric((task, outcome), buckets, sum_s)
    yield family
