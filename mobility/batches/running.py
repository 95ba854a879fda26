"""Running a batch: its steps, in the order in which they happen.

Each step can be repeated, and only one worker gets to take the next: see the table of `states`.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from billiard.exceptions import SoftTimeLimitExceeded
from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from mobility.base.errors import BatchFormatError, MobilityError, SupersededError
from mobility.batches import fairness, finalisation, reading, staging
from mobility.batches.dispatching import ask, ask_next
from mobility.batches.fairness import MAX_ATTEMPTS
from mobility.batches.publication import day_transitions, merging
from mobility.batches.publication.publishing import publish
from mobility.batches.states import activate, goes_on, move, next_sign, show_life, sign_of_waiting
from mobility.vault.models.batch import Applied, Batch, Chunk, ShardRun
from mobility.vault.studies import OpenStudy, open_study

log = logging.getLogger(__name__)
State = Batch.State


def advance(batch_id: str) -> None:
    """Take a batch as far as it can go without waiting for chunks or shards, and ask for those.

    Raises
    ------
    PASSING_ERRORS : try again later; nothing is lost
    """
    steps: dict[str, Callable[[Batch], None]] = {
        State.QUEUED: _start,
        State.READING: _read,
        State.MERGING: _merge,
        State.PUBLISHING: _publish,
    }
    batch = Batch.objects.get(pk=batch_id)
    if batch.is_final:  # a database failed while it ended
        finalisation.settle(batch)
    elif batch.state in steps:
        with finalisation.failing_with_a_reason(batch):
            if batch.failure:  # its worker died while ending it
                finalisation.end_failed(batch)
                return
            steps[batch.state](batch)


def _start(batch: Batch) -> None:
    if _is_overtaking(batch):
        ask_next(batch.study_id)
        return
    if not activate(batch):
        open_study(batch.study)  # of a closed study no batch ever gets its turn: this one ends here
        return  # the batch that is active now asks for this one at its end
    batch = Batch.objects.select_related("study").get(pk=batch.pk)
    if batch.state != State.QUEUED:
        return
    with _attempt(batch, batch):
        _begin(batch, open_study(batch.study))


def _is_overtaking(batch: Batch) -> bool:
    """Return whether one that came before could start now: no one heard who asked for it."""
    queued = Batch.objects.filter(study_id=batch.study_id, study__active_batch=None, state=State.QUEUED)
    return queued.filter(created_at__lt=batch.created_at).exists()


def _begin(batch: Batch, study: OpenStudy) -> None:
    """First step of a batch whose turn it is."""
    if batch.kind not in Batch.FILES:
        _begin_merging(batch, study)
        return
    earlier = reading.same_content(batch)
    if earlier is not None:
        move(batch, "repeat", duplicate_of=earlier)
        advance(str(batch.pk))
    elif reading.begin(batch, study):
        advance(str(batch.pk))


def _read(batch: Batch) -> None:
    """Ask for some of the chunks that are not done; when all are, judge the file."""
    if fairness.ask_for_chunks(batch):
        return
    batch = Batch.objects.select_related("study").get(pk=batch.pk)
    study = open_study(batch.study)
    if reading.judge(batch, study):
        _begin_merging(batch, study)


def read_chunk(batch_id: str, index: int) -> None:
    """Read one chunk; the last to be done takes the batch on.

    Raises
    ------
    PASSING_ERRORS : try again, also when advancing the batch failed
    """
    chunks = Chunk.objects.select_related("batch__study")
    chunk = chunks.filter(batch__pk=batch_id, batch__state=State.READING, index=index).first()
    if chunk is None:
        advance(batch_id)
        return
    batch = chunk.batch
    was_long = fairness.is_long(batch, chunk.plan)
    with finalisation.failing_with_a_reason(batch):
        if not chunk.is_done:
            try:
                with _attempt(batch, chunk):
                    reading.read_chunk(batch, chunk, open_study(batch.study))
            except BatchFormatError:
                if batch.reads_whole or reading.is_whole(chunk):
                    raise
                reading.read_as_a_whole(batch)
                return
    if was_long:  # however it ended
        fairness.let_long_go_on(batch)
    if not fairness.ask_for_chunks(batch):
        advance(batch_id)


def _begin_merging(batch: Batch, study: OpenStudy) -> None:
    """Begin merging: from here on the batch only resumes."""
    batch.refresh_from_db()  # reading has noted what days it touches
    moved = day_transitions.of_batch(batch, study)
    shards = merging.shards_of(batch, study, moved)
    with transaction.atomic(using="vault"):
        is_mine = move(batch, "merge", shards=shards)
        if is_mine and not batch.validate_only:
            day_transitions.announce(study, moved)
    if is_mine:
        if batch.kind in Batch.FILES:
            staging.discard_frames(batch)
        advance(str(batch.pk))


def _merge(batch: Batch) -> None:
    """Ask for some of the shards that have not taken the batch; when all have, its days move."""
    if fairness.ask_for_shards(batch):
        return
    batch = Batch.objects.select_related("study").get(pk=batch.pk)
    if batch.state == State.MERGING:
        merging.finish(batch, open_study(batch.study))
    advance(str(batch.pk))


def apply_shard(batch_id: str, shard: int) -> None:
    """Bring the batch into one shard; the last to be done takes the batch on.

    Raises
    ------
    PASSING_ERRORS : try again, also when advancing the batch failed
    """
    batch = Batch.objects.select_related("study").get(pk=batch_id)
    if batch.state != State.MERGING:
        advance(batch_id)
        return
    with finalisation.failing_with_a_reason(batch):
        if not Applied.objects.filter(batch=batch, shard=shard).exists():
            run, _ = ShardRun.objects.get_or_create(batch=batch, shard=shard)
            with _attempt(batch, run):
                study = open_study(batch.study)
                merging.apply_shard(batch, study, shard, day_transitions.of_batch(batch, study))
    if not fairness.ask_for_shards(batch):
        advance(batch_id)


def _publish(batch: Batch) -> None:
    batch = Batch.objects.select_related("study").get(pk=batch.pk)
    show_life(batch, state=State.PUBLISHING)
    if not batch.validate_only:
        publish(open_study(batch.study), batch=batch)
    finalisation.done(batch)
    if settings.HANDS_OVER:
        ask("hand_over")  # the receipt of this batch


@contextmanager
def _attempt(batch: Batch, work: Batch | Chunk | ShardRun) -> Iterator[None]:
    """Count work that begins and never ends; having to wait for a database, a storage or room does not count.

    Raises
    ------
    MobilityError : it has begun too often, or met its time limit in the last try
    SupersededError : another task works on it, or died unnoticed; or it has to wait, and another
        task has begun the same since, and will try again
    """
    if work.attempts >= MAX_ATTEMPTS:
        if work is not batch and work.alive_until and work.alive_until > timezone.now():
            raise SupersededError("other tasks are processing it")
        raise MobilityError(finalisation.stopped(batch, finalisation.death_problem(tries=work.attempts)))
    table: Any = type(work).objects
    row = table.filter(pk=work.pk)
    work.alive_until = next_sign()
    row.update(attempts=F("attempts") + 1, alive_until=work.alive_until)
    try:
        with finalisation.waiting_for_storage():
            yield
        goes_on(batch)
    except SoftTimeLimitExceeded:
        if work.attempts + 1 >= MAX_ATTEMPTS:
            problem = finalisation.time_problem(tries=MAX_ATTEMPTS)
            raise MobilityError(finalisation.stopped(batch, problem)) from None
        raise
    except finalisation.PASSING_ERRORS:
        with suppress(*finalisation.PASSING_ERRORS):
            row.update(attempts=F("attempts") - 1)
            # Of several that wait for the same, one tries again: the one that began last.
            mine = row.filter(alive_until=work.alive_until).update(alive_until=sign_of_waiting())
            if not mine and work is not batch:
                raise SupersededError("another task is processing it") from None
        raise
