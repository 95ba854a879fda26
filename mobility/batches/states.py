"""The life of a batch: its states, what takes it from one to the next, and who is at work on it.

    event    from                      to          by      if
    queue    receiving                 queued      sender  all that it needs is there
    read     queued                    reading     worker  it brings a file, which is now cut into chunks
    repeat   queued                    publishing  worker  it brings a file that was published before
    merge    queued                    merging     worker  it brings no file: days are closed or undone
    merge    reading                   merging     worker  all chunks are read, and the file is accepted
    publish  merging                   publishing  worker  every shard has taken it
    finish   publishing                done        worker  what may be published is handed over
    fail     receiving queued reading  failed      anyone  its failure is noted
    fail     merging publishing        failed      anyone  its failure is noted
    cancel   receiving queued reading  cancelled   person  no failure is noted
    cancel   merging publishing        cancelled   person  no failure is noted, and the file is only checked

`TRANSITIONS` is this table, `move` the only way to take a batch from one state to the next, and the modules
next to this one are its steps: `requests` (queue), `running` (read to finish), `finalisation` (fail, cancel),
`recovery` (when a worker died). Until `merge` nothing of a batch is in any shard; from then on it only
resumes.

No lock guards the work itself. Chunks and shards may be worked on twice; what counts is written under a
condition that only one of them meets. A sign of life only tells the sweep whom to leave alone.
"""

from datetime import datetime, timedelta
from functools import reduce
from operator import or_
from typing import Final, Literal, NamedTuple

from django.conf import settings
from django.db.models import Q
from django.db.models.functions import Coalesce
from django.utils import timezone

from mobility.base.errors import SupersededError
from mobility.vault.models.batch import Batch
from mobility.vault.models.subscribers import VaultStudy

State = Batch.State
Event = Literal["queue", "read", "repeat", "merge", "publish", "finish", "fail", "cancel"]
AT_WORK: Final = (State.READING, State.MERGING, State.PUBLISHING)
LONGEST_WAIT_S = 60  # between two tries of work that a storage or a database blocks


class Transition(NamedTuple):
    """One line of the table; `guard` is what else must be true of the batch."""

    event: Event
    sources: tuple[State, ...]
    to: State
    guard: Q = Q()


_HAS_FILE, _HAS_FAILED = Q(kind__in=Batch.FILES), ~Q(failure="")
TRANSITIONS: Final = (
    Transition("queue", (State.RECEIVING,), State.QUEUED),
    Transition("read", (State.QUEUED,), State.READING, _HAS_FILE),
    Transition("repeat", (State.QUEUED,), State.PUBLISHING, _HAS_FILE),
    Transition("merge", (State.QUEUED,), State.MERGING, ~_HAS_FILE),
    Transition("merge", (State.READING,), State.MERGING, _HAS_FILE),
    Transition("publish", (State.MERGING,), State.PUBLISHING),
    Transition("finish", (State.PUBLISHING,), State.DONE),
    Transition("fail", Batch.CANCELLABLE, State.FAILED, _HAS_FAILED),
    Transition("fail", Batch.RESUME_ONLY, State.FAILED, _HAS_FAILED),
    Transition("cancel", Batch.CANCELLABLE, State.CANCELLED, ~_HAS_FAILED),
    Transition("cancel", Batch.RESUME_ONLY, State.CANCELLED, ~_HAS_FAILED & Q(validate_only=True)),
)


def move(batch: Batch, event: Event, **changes: object) -> State | None:
    """Take a batch to its next state, which is returned, and write what changes with it.

    It is one conditional update: None if the table has no such line, or another task was first.
    """
    lines = [line for line in TRANSITIONS if line.event == event]
    to, now = lines[0].to, timezone.now()
    with_it: dict[str, object] = {"state": to, "alive_until": next_sign() if to in AT_WORK else None}
    if to in AT_WORK:
        with_it["started_at"] = Coalesce("started_at", now)
    elif to in Batch.FINAL:
        with_it["finished_at"] = now
    allowed = reduce(or_, (Q(line.guard, state__in=line.sources) for line in lines))
    return to if Batch.objects.filter(allowed, pk=batch.pk).update(**with_it | changes) else None


def next_sign() -> datetime:
    """Return when a batch without further signs of life counts as abandoned."""
    return timezone.now() + timedelta(seconds=settings.MOBILITY_BATCH_LEASE_S)


def sign_of_waiting() -> datetime:
    """Return when retried work counts as abandoned: not while it waits for its next try."""
    return next_sign() + timedelta(seconds=LONGEST_WAIT_S)


def show_waiting(batch: Batch, *, waits_for: str = "") -> None:
    """Note that a task of the batch will be tried again: until then the sweep asks for nothing of it.

    Parameters
    ----------
    waits_for : a key or a storage, in words; empty for transient problems
    """
    # An upload has separate signs of life.
    at_work = Batch.objects.exclude(state__in=(*Batch.FINAL, Batch.State.RECEIVING)).filter(pk=batch.pk)
    at_work.update(alive_until=sign_of_waiting())
    if waits_for:
        at_work.update(waits_since=Coalesce("waits_since", timezone.now()), waits_for=waits_for)


def goes_on(batch: Batch) -> None:
    """Note that what the batch waited for was there."""
    if batch.waits_since is not None:
        Batch.objects.filter(pk=batch.pk).update(waits_since=None, waits_for="")


def has_ended(batch: Batch) -> bool:
    """Return whether a batch has ended, or is about to: until then, a missing key is elsewhere."""
    unended = Batch.objects.exclude(state__in=Batch.FINAL).filter(pk=batch.pk, failure="")
    return not unended.exists()


def show_life(batch: Batch, *, state: str, **progress: object) -> None:
    """Note that someone works on the batch, and how far it is; call it every few seconds.

    Raises
    ------
    SupersededError : the batch has left `state`: it was cancelled, or has failed
    """
    kept = Batch.objects.filter(pk=batch.pk, state=state).update(alive_until=next_sign(), **progress)
    if not kept:
        raise SupersededError(f"batch {batch.pk} is no longer {state}")


def activate(batch: Batch) -> bool:
    """Make `batch` the one that changes its study; False while another one does, or the study is closed."""
    is_free = Q(active_batch__isnull=True) | Q(active_batch=batch)
    study = VaultStudy.objects.filter(is_free, pk=batch.study_id, closed_at__isnull=True)
    return bool(study.update(active_batch=batch))


def deactivate(batch: Batch) -> None:
    """Let the next batch of the study have its turn."""
    VaultStudy.objects.filter(pk=batch.study_id, active_batch=batch).update(active_batch=None)
