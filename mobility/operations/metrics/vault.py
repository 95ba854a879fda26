"""Samples of the vault for Prometheus: counts by state and by study. Only where there is a vault."""

from collections.abc import Iterator

from django.conf import settings
from django.db.models import Count, Min, Sum
from django.utils import timezone
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from mobility.batches.quality.deliveries import calendar_of
from mobility.operations.probes.batches import end_of
from mobility.vault.models.batch import Batch
from mobility.vault.models.outbox import VaultPublication
from mobility.vault.models.subscribers import VaultDay, VaultStudy


def batches() -> Iterator[Metric]:
    """Batches by state, and the rows that they read."""
    found = Batch.objects.order_by().values_list("state").annotate(n=Count("pk"), rows=Sum("rows_read"))
    by_state = {state: (n, rows or 0) for state, n, rows in found}
    family = GaugeMetricFamily("mobility_batches", "Batches by state.", labels=("state",))
    for state in Batch.State.values:
        family.add_metric((state,), by_state.get(state, (0, 0))[0])
    yield family
    rows = sum(rows for _, rows in by_state.values())
    yield CounterMetricFamily("mobility_rows_read", "Rows read by batches.", value=rows)
    n_open = VaultStudy.objects.filter(closed_at=None).count()
    yield GaugeMetricFamily("mobility_studies_open", "Open studies.", value=n_open)


def open_days() -> Iterator[Metric]:
    """Return the age of the oldest open day of each study since its end."""
    text = "Seconds since the end of the oldest day that is over but still open."
    family = GaugeMetricFamily("mobility_day_over_seconds", text, labels=("study",))
    now = timezone.now()
    still = VaultDay.objects.filter(state=VaultDay.State.OPEN, study__closed_at=None)
    for study_id, slug, day in still.order_by().values_list("study", "study__slug").annotate(day=Min("day")):
        over_s = (now - end_of(calendar_of(study_id), day)).total_seconds()
        if over_s > 0:
            family.add_metric((slug,), over_s)
    yield family


def publications() -> Iterator[Metric]:
    """Samples of publications that a separate analyst server lacks."""
    n = VaultPublication.objects.filter(handed_over_at=None).count() if settings.HANDS_OVER else 0
    text = "Publications waiting to be handed over."
    yield GaugeMetricFamily("mobility_publications_waiting", text, value=n)
