"""Who gets how many of the workers' processes: every batch at work its share, however large it is.

A batch never has more chunks or shards asked for than its share, and asks for the next one when one is done.
Messages of equal priority are taken in their order, so batches take turns: none starves, and none floods the
broker. Beside what was asked for stands until when it is taken for alive; after that it is asked for again.
"""

import logging
from datetime import timedelta

from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.db.models import Q, Sum
from django.utils import timezone

from mobility.models import Batch, Chunk, ShardRun
from mobility.operations.models import WorkerSign
from mobility.operations.signs import SILENT_S
from mobility.readers.chunks import WHOLE
from mobility.services.dispatching import ask
from mobility.services.liveness import next_sign
from mobility.services.merging import shards_left

log = logging.getLogger(__name__)

# A file of this size that one task reads from end to end keeps a process busy for long.
LONG_BYTES = 256 << 20
AT_WORK = (Batch.State.READING, Batch.State.MERGING)


def ask_for_chunks(batch: Batch) -> bool:
    """Ask for chunks up to the share of the batch; False if all of them are read."""
    unread = Chunk.objects.filter(batch=batch, is_done=False)
    if not unread.exists():
        return False
    if _is_long(batch) and _long_at_work(batch) >= max(processes() - 1, 1):
        return True  # it waits until another one ends: a process stays free for all that is short
    room = share() - unread.filter(alive_until__gt=timezone.now()).count()
    free = unread.filter(_is_free()).order_by("index").values_list("pk", "index")
    for pk, index in free[: max(room, 0)]:
        if Chunk.objects.filter(_is_free(), pk=pk, is_done=False).update(alive_until=next_sign()):
            ask("read_chunk", str(batch.pk), index)
    return True


def ask_for_shards(batch: Batch) -> bool:
    """Ask for shards up to the share of the batch; False if all of them have taken it."""
    left = shards_left(batch)
    asked = ShardRun.objects.filter(batch=batch, alive_until__gt=timezone.now())
    taken = set(asked.values_list("shard", flat=True))
    room = share() - len(taken.intersection(left))
    for shard in [shard for shard in left if shard not in taken][: max(room, 0)]:
        if _claim_shard(batch, shard):
            ask("apply_shard", str(batch.pk), shard)
    return bool(left)


def forget_asked(batch: Batch) -> None:
    """Take everything that was asked for as lost: nobody has worked on the batch for long."""
    batch.chunks.filter(is_done=False).update(alive_until=None)
    batch.shard_runs.update(alive_until=None)


def forget_unbegun(batch: Batch) -> None:
    """Take what was asked for and has not begun as lost. What has begun needs no message to go on.

    Were that asked for again, a broker that dies again and again would use up the attempts of a long task.
    """
    batch.chunks.filter(is_done=False, attempts=0).update(alive_until=None)
    batch.shard_runs.filter(attempts=0).update(alive_until=None)


def let_long_go_on(batch: Batch) -> None:
    """After a long task of `batch`: the long one that has waited longest may have its turn."""
    if not _is_long(batch):
        return
    waiting = Batch.objects.filter(_long(), chunks__in=Chunk.objects.filter(_is_free(), is_done=False))
    following = waiting.exclude(pk=batch.pk).order_by("started_at").first()
    if following is not None:
        ask("advance", str(following.pk))


def share() -> int:
    """How many chunks or shards a batch may have asked for; one at least.

    A batch alone asks for twice as many as there are processes, so that none of them waits for a message.
    """
    at_work = Batch.objects.filter(state__in=AT_WORK).count()
    return 2 * processes() if at_work <= 1 else max(-(-processes() // at_work), 1)


def processes() -> int:
    """Processes of all workers of this zone that live; if none has shown itself, what one worker has here.

    Reading and merging need the vault alone: while the main database is away, they go on.
    """
    since = timezone.now() - timedelta(seconds=SILENT_S)
    alive = WorkerSign.objects.filter(zone=settings.MOBILITY_ZONE, seen_at__gte=since)
    try:
        found = alive.aggregate(all=Sum("processes"))["all"]
    except (OperationalError, InterfaceError) as error:
        log.warning("workers_uncounted error=%s", type(error).__name__)
        found = None
    return int(found or settings.MOBILITY_WORKER_PROCESSES)


def _long() -> Q:
    return Q(state=Batch.State.READING, bytes_total__gte=LONG_BYTES, chunks__plan__kind=WHOLE)


def _is_long(batch: Batch) -> bool:
    return Batch.objects.filter(_long(), pk=batch.pk).exists()


def _long_at_work(batch: Batch) -> int:
    """Other batches that are read by one long task now."""
    now_read = Chunk.objects.filter(is_done=False, alive_until__gt=timezone.now())
    return Batch.objects.filter(_long(), chunks__in=now_read).exclude(pk=batch.pk).count()


def _is_free() -> Q:
    """Not asked for, or so long ago that the message is taken for lost."""
    return Q(alive_until=None) | Q(alive_until__lte=timezone.now())


def _claim_shard(batch: Batch, shard: int) -> bool:
    until = next_sign()
    run, is_new = ShardRun.objects.get_or_create(batch=batch, shard=shard, defaults={"alive_until": until})
    return is_new or bool(ShardRun.objects.filter(_is_free(), pk=run.pk).update(alive_until=until))
