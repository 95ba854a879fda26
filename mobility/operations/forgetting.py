"""Deletion of temporary data in one job that every worker requests, once an hour.

docs/retention.md lists it all, also what is not here: staged uploads, day states, keys, backups.
"""

import logging
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import Model, Q
from django.utils import timezone

from mobility.operations.models import Alert, JobRun
from mobility.signin.models import CacheEntry
from mobility.signin.sessions import forget_ended
from mobility.workers.signs import forget_old
from reports.sharing.actions import forget_old_views
from reports.sharing.revoking import record_reads

if settings.HAS_VAULT:  # the models of a vault exist there only
    from mobility.plans.closing import Leave, close_study
    from mobility.plans.models import PlanDraft
    from mobility.plans.queries import unerased
    from mobility.vault.models.batch import Applied, Batch, Chunk, ShardRun
    from mobility.vault.models.subscribers import VaultStudy

JOBS_FORGOTTEN_AFTER: Final = timedelta(days=30)  # that no worker runs now
BATCHES_AT_ONCE: Final = 500
PARTS_KEPT: Final = timedelta(days=1)  # after the end of a batch: then its shards no longer matter
ACTOR: Final = "data retention"
log = logging.getLogger(__name__)


def forget() -> dict[str, int]:
    """Remove what is over; how many rows of each kind. Twice does no harm, and workers may do it at once."""
    now = timezone.now()
    history = now - timedelta(days=settings.MOBILITY_KEEP_HISTORY_DAYS)
    record_reads()
    of_another_zone = ~Q(zone=settings.MOBILITY_ZONE)  # of before: no check sees them, so none would end
    forgotten = {
        "share_views": forget_old_views(),
        "sessions": forget_ended(),
        "alerts": Alert.objects.filter(Q(ended_at__lt=history) | of_another_zone).delete()[0],
        "jobs": JobRun.objects.filter(started_at__lt=now - JOBS_FORGOTTEN_AFTER).delete()[0],
        "sign_in_counts": CacheEntry.objects.filter(expires__lt=now).delete()[0],
    }
    forget_old()
    if settings.HAS_VAULT:
        forgotten |= _of_vault(
            history=history,
            detail=now - timedelta(days=settings.MOBILITY_KEEP_DETAIL_DAYS),
            parts=now - PARTS_KEPT,
        )
        forgotten["closings"] = finish_closings()
        if settings.MOBILITY_CLOSE_AT_KEY_UNTIL:
            forgotten["studies"] = close_due_studies()
    gone = {name: n for name, n in forgotten.items() if n}
    if gone:
        log.info("forgotten %s", " ".join(f"{name}={n}" for name, n in gone.items()))
    return forgotten


def finish_closings() -> int:
    """Erase what closings left that were interrupted or failed; how many came to their end.

    Anyone who closed a study has decided: from then on it only goes forward.
    """
    return sum(_closes(study.slug, Leave(), failure="study_not_erased") for study in unerased())


def close_due_studies() -> int:
    """Close studies whose key must be destroyed by today, and destroy their keys; returns how many.

    On the day itself a study is closed if all its batches have ended and all its days are published. From the
    day after, the promised date counts more: batches that have changed nothing are cancelled, and days that
    were never published are lost. Changes of fewer subscribers than `min_publication` are lost on either day.
    """
    today = timezone.now().date().isoformat()
    closed = 0
    # Compared here: for PostgreSQL the null of JSON comes before every date.
    promised = VaultStudy.objects.filter(closed_at=None).values_list("slug", "definition__key_until")
    for slug, until in promised.order_by("slug"):
        if until is None or until > today:
            continue
        is_overdue = until < today
        leave = Leave(cancel_batches=is_overdue, drop_unpublished=is_overdue)
        closed += _closes(slug, leave, failure="study_not_closed")
    return closed


def _closes(slug: str, leave: "Leave", *, failure: str) -> bool:
    """Close a study and return whether that succeeded; a failure delays no other study."""
    try:
        close_study(VaultStudy.objects.get(slug=slug), by=ACTOR, leave=leave)
    except Exception as error:  # noqa: BLE001 - the alert stays
        log.warning("%s study=%s error=%s", failure, slug, type(error).__name__)
        return False
    return True


def _of_vault(*, history: datetime, detail: datetime, parts: datetime) -> dict[str, int]:
    ended = Batch.objects.filter(state__in=Batch.FINAL)
    withdrawn = PlanDraft.objects.filter(state=PlanDraft.State.WITHDRAWN, ended_at__lt=history)
    detailed = ended.filter(finished_at__lt=detail).exclude(rejected_lines={})
    # A row for each chunk and shard of each batch, which only batches at work need: what is published is in
    # publications, and a task that comes late finds that the batch has ended.
    over = ended.filter(finished_at__lt=parts)
    kinds: dict[str, type[Model]] = {"chunks": Chunk, "shard_runs": ShardRun, "shards_taken": Applied}
    # Each on its own: closing or voiding a day has shards and no chunks.
    batches = {
        name: list(
            model._default_manager.filter(batch__in=over)
            .values_list("batch", flat=True)
            .distinct()[:BATCHES_AT_ONCE]
        )
        for name, model in kinds.items()
    }
    with transaction.atomic(using="vault"):
        return {
            "drafts": withdrawn.delete()[0],
            "line_numbers": detailed.update(rejected_lines={}),
            **{
                name: kinds[name]._default_manager.filter(batch__in=found).delete()[0]
                for name, found in batches.items()
            },
        }
