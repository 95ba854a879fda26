"""Share of the workers' processes for each batch at work, independent of its size.

A batch never has more chunks or shards asked for than its share, and asks for the next one when one is done.
Messages of equal priority are processed in order, so batches take turns: none starves, and none floods the
broker. Each request has a time until which it counts as alive; after that it is repeated.
"""

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any, NamedTuple

from django.conf import settings
from django.db import InterfaceError, OperationalError, transaction
from django.db.models import F, Q, QuerySet, Sum
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
KNOWN_S = 2.0  # nor one that did
SHARED = (Batch.State.READING, Batch.State.MERGING)  # states in which many tasks work on a batch
# Processes of workers that have shown themselves, and when to ask the main database again.
_known: dict[str, Any] = {"processes": None, "until": 0.0}


class Work(NamedTuple):
    """A chunk or shard that is not done, as it was read; `number` is its index in the file, or the shard."""

    pk: int
    number: int
    attempts: int
    alive_until: datetime | None


def ask_for_chunks(batch: Batch) -> bool:
    """Ask for chunks up to the share of the batch; False if all are read, and no one has judged them."""
    most = share()
    unread = Chunk.objects.filter(batch=batch, is_done=False)
    found = _first(unread, "batch__state", "plan", most=most)
    if not found:
        return not Batch.objects.filter(pk=batch.pk, state=Batch.State.READING).exists()
    *_, state, plan = found[0]
    if state == Batch.State.READING:
        with _asking("read_chunk", batch) as claimed:
            if is_long(batch, plan):
                _claim_long(batch, unread, claimed)
            else:
                _claim(unread, [Work(*row[:-2]) for row in found], most, claimed)
    return True


def ask_for_shards(batch: Batch) -> bool:
    """Ask for shards up to the share of the batch; False if all have taken it, and no one has noted that."""
    left = shards_left(batch)
    if left is None:
        return True
    runs = ShardRun.objects.filter(batch=batch)
    known = _by_number(runs)
    if fresh := [ShardRun(batch=batch, shard=shard) for shard in left if shard not in known]:
        ShardRun.objects.bulk_create(fresh, ignore_conflicts=True)
        known = _by_number(runs)
    with _asking("apply_shard", batch) as claimed:
        _claim(runs, [known[shard] for shard in left], share(), claimed)
    return bool(left)


def _first(unread: QuerySet[Chunk], *facts: str, most: int | None = None) -> list[tuple[Any, ...]]:
    """Return `Work`, and further facts, of what counts to ask for `most` at a time: those asked for first."""
    in_turn = unread.order_by(F("alive_until").desc(nulls_last=True), "index")
    return list(in_turn.values_list("pk", "index", "attempts", "alive_until", *facts)[: most and 2 * most])


def _by_number(runs: QuerySet[ShardRun]) -> dict[int, Work]:
    found = map(Work._make, runs.values_list("pk", "shard", "attempts", "alive_until"))
    return {run.number: run for run in found}


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
    others = Batch.objects.filter(_long()).exclude(pk=batch.pk)
    unread = _first(Chunk.objects.filter(is_done=False, batch__in=others), "batch__started_at", "batch_id")
    waiting = [row for row in unread if _free([Work(*row[:4])])]
    if waiting:
        *_, following = min(waiting, key=itemgetter(4))
        ask("advance", str(following))


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
    if time.monotonic() >= _known["until"]:
        _known.update(processes=None, until=time.monotonic() + AWAY_S)
        since = timezone.now() - timedelta(seconds=SILENT_S)
        alive = WorkerSign.objects.filter(zone=settings.MOBILITY_ZONE, seen_at__gte=since)
        try:
            found = alive.aggregate(all=Sum("processes"))["all"]
            _known.update(processes=found, until=time.monotonic() + KNOWN_S)
        except (OperationalError, InterfaceError) as error:
            log.warning("workers_uncounted error=%s", type(error).__name__)
    return int(_known["processes"] or settings.MOBILITY_WORKER_PROCESSES)


def _long() -> Q:
    return Q(state=Batch.State.READING, bytes_total__gte=LONG_BYTES, chunks__plan__kind=WHOLE)


def is_long(batch: Batch, plan: dict[str, Any]) -> bool:
    """Return whether one task keeps a process busy for long with the file, of which a chunk has this plan."""
    return (batch.bytes_total or 0) >= LONG_BYTES and plan["kind"] == WHOLE


def _claim(rows: QuerySet[Any], work: Sequence[Work], most: int, claimed: list[int]) -> None:
    """Add the numbers of the work that this task must request, so that `most` are requested in all."""
    free = _free(work)
    room = most - (len(work) - len(free))
    for each in free[: max(room, 0)]:
        claimed.append(each.number)
        as_seen = rows.filter(pk=each.pk, attempts=each.attempts, alive_until=each.alive_until)
        # Work that began too often has no sign of life: its next task must see that no one is at it.
        if not as_seen.update(alive_until=None if each.attempts >= MAX_ATTEMPTS else next_sign()):
            claimed.pop()


def _claim_long(batch: Batch, unread: QuerySet[Chunk], claimed: list[int]) -> None:
    """Reserve a process for a long task, unless it has to wait: one stays free for all short ones."""
    most = max(processes() - 1, 1)
    with transaction.atomic(using="vault"):
        # One counts at a time; SQLite lets one in anyway.
        long = Chunk.objects.filter(is_done=False, batch__in=Batch.objects.filter(_long()))
        list(long.select_for_update(of=("self",)).order_by("pk").values_list("pk"))
        if _long_at_work(batch) < most:
            _claim(unread, [Work(*row) for row in _first(unread, most=1)], 1, claimed)


def _long_at_work(batch: Batch) -> int:
    """Other batches that are read by one long task now, or will be by a task that was asked for."""
    # Waiting ones keep no process.
    others = Batch.objects.filter(_long(), waits_since=None).exclude(pk=batch.pk)
    unread = _first(Chunk.objects.filter(is_done=False, batch__in=others))
    return len(unread) - len(_free([Work(*row) for row in unread]))


def _free(work: Sequence[Work]) -> list[Work]:
    """Return what was not requested, or so long ago that the message is taken for lost."""
    now = until = timezone.now()
    if any(each.attempts == 0 and each.alive_until and each.alive_until <= now for each in work):
        until = min(now, _unfetched_after() or now)
    return [
        each
        for each in work
        if each.alive_until is None or each.alive_until <= (now if each.attempts else until)
    ]


def _unfetched_after() -> datetime | None:
    """Return when requests may begin to count as waiting in the broker; None: nothing waits."""
    since: datetime | None = later("mobility.batches.broker.waits_since")()
    lease = timedelta(seconds=settings.MOBILITY_BATCH_LEASE_S)
    return None if since is None else since + lease - CLOCKS_DIFFER
