"""Effect of a batch on the days of its study: which are published, forgotten or undone."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from django.db.models import F
from django.db.models.expressions import Combinable

from mobility.batches import requests
from mobility.batches.publication import presence_noise, slots
from mobility.vault.models.batch import Batch
from mobility.vault.models.subscribers import VaultDay, VaultStudy
from mobility.vault.studies import OpenStudy


@dataclass(frozen=True, slots=True, kw_only=True)
class DayMoves:
    """Effect of a batch on the days of its study; the same for every shard and every retry."""

    publish_all: frozenset[int] = frozenset()  # everyone in the day state arrives
    publish_touched: frozenset[int] = frozenset()  # the others have arrived before
    forget: frozenset[int] = frozenset()  # the day state dies
    undo: int | None = None
    nights: frozenset[int] = frozenset()  # published days whose night is over: it may be answered
    end_night: frozenset[int] = frozenset()  # those of which everyone answers now; the others did before
    closed: frozenset[int] = frozenset()  # the batch's rows of their nights come too late
    crossing: tuple[int, int] | None = None  # with presence noise: first and last day whose cells cross now
    slots: tuple[int, int] | None = None  # first slot that is closed, and the first that stays open
    slot_days: frozenset[int] = frozenset()  # days whose state of slots is needed
    carry_to: int | None = None  # the first day that stays open: people are still where they were before it

    @property
    def published(self) -> frozenset[int]:
        """Days whose visitors arrive."""
        return self.publish_all | self.publish_touched

    @property
    def of_everyone(self) -> frozenset[int]:
        """Days whose state is used or dropped in every shard that has any."""
        return self.publish_all | self.forget | self.end_night | self.slot_days


def of_batch(batch: Batch, study: OpenStudy) -> DayMoves:
    """Moves of a batch whose file, if it has one, has been read.

    Raises
    ------
    DayStateError : the day can no longer be undone
    """
    if batch.kind in (Batch.Kind.SUBSCRIBERS, Batch.Kind.OPT_OUT):
        return DayMoves()
    if batch.kind == Batch.Kind.VOID_DAY:
        day = batch.day or 0
        if batch.state == Batch.State.QUEUED:  # from then on it only resumes
            requests.check_voidable(study, day=day)
            requests.check_approved(batch, study, day=day)
            requests.spend_voided_day(study, day=day)
        if study.daily.slots is None and not study.plan.events:
            return DayMoves(undo=day, forget=frozenset([day]))
        # The state keeps the slots in which people were counted, and their places before the day; or what is
        # published of the day's events.
        return DayMoves(undo=day, slot_days=frozenset([day]))
    if batch.kind == Batch.Kind.CLOSE_SLOTS:
        return _with_slots(DayMoves(), batch, study)
    states = {row.day: row for row in VaultDay.objects.filter(study=study.row)}
    if batch.kind == Batch.Kind.CLOSE_DAYS:
        through = frozenset(range(1, (batch.day or 0) + 1))
        pending = frozenset(day for day in through if day in states and states[day].pending)
        nights = through if study.definition.night else frozenset[int]()
        moves = DayMoves(
            publish_all=pending,
            forget=through,
            nights=nights,
            end_night=nights,
            crossing=presence_noise.crossing_days(study, through=batch.day or 0),
        )
        return _with_slots(moves, batch, study)
    closed = frozenset(day for day, row in states.items() if row.state == VaultDay.State.CLOSED)
    if batch.more_to_come:
        return DayMoves(closed=closed)
    touched = frozenset(batch.days_touched)
    everyone = frozenset(day for day in touched if day not in states or states[day].pending)
    moves = DayMoves(publish_all=everyone, publish_touched=touched - everyone, closed=closed)
    if study.definition.night is None:
        return moves
    last, complete = study.definition.days, frozenset(day for day, row in states.items() if not row.pending)
    nights = _over(complete | touched, last=last) - closed
    return replace(moves, nights=nights, end_night=nights - _over(complete, last=last))


def _with_slots(moves: DayMoves, batch: Batch, study: OpenStudy) -> DayMoves:
    """Let a batch close slots, too, and carry people over the midnight after the last day that it closes."""
    counter = study.daily.slots
    if counter is None:
        return moves
    closed = slots.closing(batch, study)
    days = frozenset[int]() if closed is None else counter.days_of(*closed)
    next_day = (batch.day or study.definition.days) + 1
    if next_day > study.definition.days:
        return replace(moves, slots=closed, slot_days=days)
    days |= counter.days_before(next_day) | {next_day}
    return replace(moves, slots=closed, slot_days=days, carry_to=next_day)


def _over(days: frozenset[int], *, last: int) -> frozenset[int]:
    """Days whose night is over because the next date has come in too; the last day has no next one."""
    return frozenset(day for day in days if day == last or day + 1 in days)


def waiting_nights(study: VaultStudy) -> frozenset[int]:
    """Published days that can still change, whose night waits for the next date to come in."""
    if not any(indicator.get("night_from") for indicator in study.definition["indicators"]):
        return frozenset()
    rows = list(VaultDay.objects.filter(study=study, pending=False))
    published = frozenset(row.day for row in rows if row.state == VaultDay.State.PUBLISHED)
    return published - _over(frozenset(row.day for row in rows), last=study.definition["days"])


def announce(study: OpenStudy, moves: DayMoves) -> None:
    """Note, in the transaction that begins the merging, what parts of it may soon have been published.

    Should the batch fail half way, undoing such a day has to count as undoing a published one.
    """
    day = moves.undo or 0
    undone = VaultDay.objects.filter(study=study.row, day=day, state=VaultDay.State.PUBLISHED).first()
    if undone is not None:
        changed: dict[str, Combinable] = {"undone_before": F("publication_number")}
        if requests.adds_a_value(study, undone):
            changed["voided_days"] = F("voided_days") + 1
        VaultStudy.objects.filter(pk=study.row.pk).update(**changed)
    _mark(study.row, moves.publish_all, state=VaultDay.State.PUBLISHED, pending=True)


def make(batch: Batch, study: OpenStudy) -> None:
    """Write what the batch has made of its days, in the transaction that ends its merging."""
    moved: dict[str, Callable[[Batch, OpenStudy], None]] = {
        Batch.Kind.EXTRACT: _received,
        Batch.Kind.CLOSE_DAYS: _closed,
        Batch.Kind.VOID_DAY: _voided,
        Batch.Kind.CLOSE_SLOTS: slots.finish,
    }
    if batch.kind in moved:
        moved[batch.kind](batch, study)


def _received(batch: Batch, study: OpenStudy) -> None:
    if not batch.more_to_come:
        _mark(study.row, batch.days_touched, state=VaultDay.State.PUBLISHED, pending=False)
        return
    touched = [VaultDay(study=study.row, day=day) for day in batch.days_touched]
    VaultDay.objects.bulk_create(
        touched, update_conflicts=True, unique_fields=["study", "day"], update_fields=["pending"]
    )


def _closed(batch: Batch, study: OpenStudy) -> None:
    presence_noise.add_noise(batch, study)
    slots.finish(batch, study)
    _mark(study.row, range(1, (batch.day or 0) + 1), state=VaultDay.State.CLOSED, pending=False)


def _voided(batch: Batch, study: OpenStudy) -> None:
    VaultDay.objects.filter(study=study.row, day=batch.day or 0).delete()
    # A file with rows of this day, or of its night, may come again: it is no longer the same file.
    day = batch.day or 0
    voided = {day, day + 1} if study.definition.night else {day}
    after_the_last = study.definition.days + 1  # which a file that touches no day may be of
    for earlier in Batch.objects.filter(study=study.row, kind=Batch.Kind.EXTRACT).exclude(content_hash=""):
        if voided & set(earlier.days_touched or [after_the_last]):
            earlier.content_hash = ""
            earlier.save(update_fields=["content_hash"])


def _mark(study: VaultStudy, days: Iterable[int], *, state: str, pending: bool) -> None:
    marked = [VaultDay(study=study, day=day, state=state, pending=pending) for day in days]
    VaultDay.objects.bulk_create(
        marked, update_conflicts=True, unique_fields=["study", "day"], update_fields=["state", "pending"]
    )
