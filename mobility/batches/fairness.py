"""Share of the workers' processes for each batch at work, independent of its size.

A batch never has more chunks or shards asked for than its share, and asks for the next one when one is done.
Messages of equal priority are processed in order, so batches take turns: none starves, and none floods the
broker. Each request has a time until which it counts as alive; after that it is repeated.
"""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import InterfaceError, OperationalError, transaction
from django.db.models import Case, DateTimeField, Q, QuerySet, Sum, Value, When
from django.utils import timezone

from mobility.batches.dispatching import ask
from mobility.batches.queries import shards_left
from mobility.batches.states import next_sign
from mobility.extracts.chunk_plans import WHOLE
from mobility.vault.models.batch import Batch, Chunk, ShardRun
from mobility.workers.models import WorkerSign
from mobility.workers.signs import SILENT_S
from reports.base.later import later

log = logging.getLogger(__name__)

# A file of this size that one task reads from end to end keeps a process busy for long.
LONG_BYTES = 256 << 20
MAX_ATTEMPTS = 5  # that begin and never end
CLOCKS_DIFFER = timedelta(seconds=60)  # between hosts, and between asking and the message itself
AWAY_S = 10.0  # a database that did not answer is not asked again for this long
SHARED = (Batch.State.READING, Batch.State.MERGING)  # states in which many tasks work on a batch
_away = {"until": 0.0}  # the main database, by the clock of this process


def ask_for_chunks(batch: Batch) -> bool:
    """Ask for chunks up to the share of the batch; False if all of them are read."""
    unread = Chunk.objects.filter(batch=batch, is_done=False)
    if not unread.exists():
        return False
    with _asking("read_chunk", batch) as claimed:
        if is_long(batch):
            _claim_long(batch, unread, claimed)
        else:
            _claim_chunks(unread, claimed)
    return True


def ask_for_shards(batch: Batch) -> bool:
    """Ask for shards up to the share of the batch; False if all of them have taken it."""
    left = shards_left(batch)
    runs = ShardRun.objects.filter(batch=batch)
    free = _free(runs)
    taken = set(runs.filter(~free).values_list("shard", flat=True))
    room = share() - len(taken.intersection(left))
    with _asking("apply_shard", batch) as claimed:
        for shard in [shard for shard in left if shard not in taken][: max(room, 0)]:
            claimed.append(shard)
            if not _claim_shard(batch, shard, free):
                claimed.pop()
    return bool(left)


@contextmanager
def _asking(task: str, batch: Batch) -> Iterator[list[int]]:
    """Ask for what the block adds to a list, each before it is claimed.

    A database may claim and be gone before it says so: who comes next would find it claimed, and asked for by
    no one, until a lease runs out. Asking twice does no harm.
    """
    claimed: list[int] = []
    try:
        yield claimed
    finally:
        for number in claimed:
            ask(task, str(batch.pk), number)


def forget_asked(batch: Batch) -> None:
    """Take what was asked for as lost, unless it may wait still: no one has worked on the batch for long."""
    until = _unfetched_after()
    lost = Q() if until is None else Q(attempts__gt=0) | Q(alive_until__lte=until)
    batch.chunks.filter(lost, is_done=False).update(alive_until=None)
    batch.shard_runs.filter(lost).update(alive_until=None)


def forget_unbegun(batch: Batch) -> None:
    """Treat requested work that has not begun as lost. Work that has begun needs no message to continue.

    Were that asked for again, a broker that dies again and again would use up the attempts of a long task.
    """
    batch.chunks.filter(is_done=False, attempts=0).update(alive_until=None)
    batch.shard_runs.filter(attempts=0).update(alive_until=None)


def let_long_go_on(batch: Batch) -> None:
    """After a long task of `batch`, however it ended: the one that has waited longest may have its turn."""
    unread = Chunk.objects.filter(is_done=False)
    waiting = Batch.objects.filter(_long(), chunks__in=unread.filter(_free(unread)))
    following = waiting.exclude(pk=batch.pk).order_by("started_at").first()
    if following is not None:
        ask("advance", str(following.pk))


def share() -> int:
    """Return how many chunks or shards a batch may have requested; at least one.

    A batch alone asks for twice as many as there are processes, so that none of them waits for a message.
    """
    at_work = Batch.objects.filter(state__in=SHARED).count()
    return 2 * processes() if at_work <= 1 else max(-(-processes() // at_work), 1)


def processes() -> int:
    """Processes of all workers of this zone that live; if none has shown itself, what one worker has here.

    Reading and merging need the vault alone: during an outage of the main database they do not wait
    for it each time.
    """
    if time.monotonic() < _away["until"]:
        return int(settings.MOBILITY_WORKER_PROCESSES)
    since = timezone.now() - timedelta(seconds=SILENT_S)
    alive = WorkerSign.objects.filter(zone=settings.MOBILITY_ZONE, seen_at__gte=since)
    try:
        found = alive.aggregate(all=Sum("processes"))["all"]
    except (OperationalError, InterfaceError) as error:
        log.warning("workers_uncounted error=%s", type(error).__name__)
        _away["until"] = time.monotonic() + AWAY_S
        found = None
    return int(found or settings.MOBILITY_WORKER_PROCESSES)


def _long() -> Q:
    return Q(state=Batch.State.READING, bytes_total__gte=LONG_BYTES, chunks__plan__kind=WHOLE)


def is_long(batch: Batch) -> bool:
    """Return whether one task keeps a process busy for long with its file, now or at its turn."""
    return Batch.objects.filter(_long(), pk=batch.pk).exists()


def _claim_chunks(unread: QuerySet[Chunk], claimed: list[int]) -> None:
    """Add the indices of a batch's chunks that this task must request."""
    free = _free(unread)
    room = share() - unread.filter(~free).count()
    chosen = unread.filter(free).order_by("index").values_list("pk", "index")[: max(room, 0)]
    for pk, index in chosen:
        claimed.append(index)
        if not unread.filter(free, pk=pk).update(alive_until=_next_claim()):
            claimed.pop()


def _claim_long(batch: Batch, unread: QuerySet[Chunk], claimed: list[int]) -> None:
    """Reserve a process for a long task, unless it has to wait: one stays free for all short ones."""
    most = max(processes() - 1, 1)
    with transaction.atomic(using="vault"):
        # One counts at a time; SQLite lets one in anyway.
        long = Chunk.objects.filter(is_done=False, batch__in=Batch.objects.filter(_long()))
        list(long.select_for_update(of=("self",)).order_by("pk").values_list("pk"))
        if _long_at_work(batch) < most:
            _claim_chunks(unread, claimed)


def _long_at_work(batch: Batch) -> int:
    """Other batches that are read by one long task now, or will be by a task that was asked for."""
    unread = Chunk.objects.filter(is_done=False)
    asked = unread.filter(~_free(unread))
    busy = Batch.objects.filter(_long(), chunks__in=asked, waits_since=None)  # waiting ones keep no process
    return busy.exclude(pk=batch.pk).count()


def _free(rows: QuerySet[Any]) -> Q:
    """Return chunks or shards that were not requested, or so long ago that the message is taken for lost."""
    now = until = timezone.now()
    if rows.filter(attempts=0, alive_until__lte=now).exists():
        until = min(now, _unfetched_after() or now)
    begun = Q(attempts__gt=0, alive_until__lte=now)
    return Q(alive_until=None) | begun | Q(attempts=0, alive_until__lte=until)


def _unfetched_after() -> datetime | None:
    """Return when requests may begin to count as waiting in the broker; None: nothing waits."""
    since: datetime | None = later("mobility.batches.broker.waits_since")()
    lease = timedelta(seconds=settings.MOBILITY_BATCH_LEASE_S)
    return None if since is None else since + lease - CLOCKS_DIFFER


def _next_claim() -> Case:
    """A new sign; none of what began too often and rests: so its next task sees that no one is at it."""
    is_dead = When(attempts__gte=MAX_ATTEMPTS, then=Value(None))
    return Case(is_dead, default=Value(next_sign()), output_field=DateTimeField())


def _claim_shard(batch: Batch, shard: int, free: Q) -> bool:
    run, is_new = ShardRun.objects.get_or_create(
        batch=batch, shard=shard, defaults={"alive_until": next_sign()}
    )
    return is_new or bool(ShardRun.objects.filter(free, pk=run.pk).update(alive_until=_next_claim()))
