"""Requests: every change to a study starts here as a batch, from any caller and in any way."""

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from uuid import UUID, uuid4
from zoneinfo import ZoneInfo

from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

from ldp.errors import PlanError
from ldp.privacy.accounting import check_cap
from mobility.base.errors import DayStateError, MobilityError
from mobility.batches.dispatching import ask
from mobility.batches.publication import undoing
from mobility.batches.states import move
from mobility.vault.models.batch import Batch
from mobility.vault.models.subscribers import VaultDay, VaultStudy
from mobility.vault.models.undo import DayUndo
from mobility.vault.queries import clock_of
from mobility.vault.unlocking import UnlockedStudy, unlock
from reports.privacy.budget.actions import BudgetExceededError, check_voided_day, reserve_voided_day

_NO_DAY = _("day must be a day of the study, 1 to %(days)s, got %(day)s")
CLOCK = "slot clock"  # the name of the sweep in batches; no account has a name with a space


def request_close_days(study: VaultStudy, *, through: int, by: str, batch_id: UUID | None = None) -> Batch:
    """Make days 1..through final: what is open is published, day state dies, later rows are ignored.

    Raises
    ------
    DayStateError : `through` is not a day of the study
    """
    days = unlock(study).definition.days
    if not 1 <= through <= days:
        raise DayStateError(_NO_DAY, days=days, day=str(through))
    return _requested(study, kind=Batch.Kind.CLOSE_DAYS, day=through, by=by, batch_id=batch_id)


def request_void_day(study: VaultStudy, *, day: int, by: str, batch_id: UUID | None = None) -> Batch:
    """Undo everything uploaded for a day that is not closed.

    Raises
    ------
    DayStateError : nothing was uploaded for the day, it is closed, or a cap forbids another value
    UndoWaitsError : it raises epsilon above what was approved: a second person is asked, nothing is undone
    """
    opened = unlock(study)
    check_voidable(opened, day=day)
    if _adds_a_value(opened, day=day) and undoing.needs_second_person(opened.row):
        raise undoing.ask(opened.row, day=day, by=by)
    return _requested(study, kind=Batch.Kind.VOID_DAY, day=day, by=by, batch_id=batch_id)


def approve_undo(undo: DayUndo, *, voided_days: int, by: str) -> Batch:
    """Let a day be undone that waits for a second person.

    Parameters
    ----------
    voided_days : published days undone with this one, whose epsilon the person saw

    Raises
    ------
    UndoDecisionError : `by` is no second person, it was decided already, or another day was undone meanwhile
    DayStateError : as in `request_void_day`
    """
    check_voidable(unlock(undo.study), day=undo.day)
    with undoing.approving(undo, voided_days=voided_days, by=by) as locked:
        kind = Batch.Kind.VOID_DAY
        batch = Batch.objects.create(study=undo.study, kind=kind, day=undo.day, created_by=undo.asked_by)
        locked.batch = batch
    queue(batch)
    return batch


def check_approved(batch: Batch, study: UnlockedStudy, *, day: int) -> None:
    """Raise DayStateError if undoing a day takes an approval that this batch has not."""
    if _adds_a_value(study, day=day):
        undoing.check_approved(batch, study.row)


def check_voidable(study: UnlockedStudy, *, day: int) -> None:
    """Raise DayStateError unless `day` can be undone now."""
    days = study.definition.days
    if not 1 <= day <= days:
        raise DayStateError(_NO_DAY, days=days, day=str(day))
    row = VaultDay.objects.filter(study=study.row, day=day).first()
    if row is None:
        raise DayStateError(
            _("day %(day)s cannot be undone, because nothing was uploaded for it"), day=str(day)
        )
    if row.state == VaultDay.State.CLOSED:
        raise DayStateError(
            _("day %(day)s cannot be undone, because it is closed, and closed days are final"), day=str(day)
        )
    if not adds_a_value(study, row):
        return
    cap, voided_days = study.definition.plan.epsilon_profile, study.row.voided_days + 1
    try:
        if cap is not None:
            check_cap(study.plan, cap, extra_daily_values=voided_days)
        check_voided_day(study.row.slug, voided_days=voided_days)
    except (PlanError, BudgetExceededError) as error:
        raise _too_much(day, error) from None


def spend_voided_day(study: UnlockedStudy, *, day: int) -> None:
    """Spend what undoing a day costs of the budget of its population, before anything is undone.

    Raises
    ------
    DayStateError : no such budget is left
    """
    if not _adds_a_value(study, day=day):
        return
    try:
        reserve_voided_day(study.row.slug, voided_days=study.row.voided_days + 1)
    except BudgetExceededError as error:
        raise _too_much(day, error) from None


def _too_much(day: int, error: Exception) -> DayStateError:
    return DayStateError(
        f"day {day} cannot be undone: uploading it again would add a daily value per subscriber; {error}"
    )


def adds_a_value(study: UnlockedStudy, day: VaultDay) -> bool:
    """Return whether undoing `day` lets people report a daily value, or a place, once more."""
    if study.plan.presence is not None:  # nothing of a day crosses before it is closed, and then it is final
        return False
    has_daily = any(spec.kind == "daily" for spec in study.plan.indicators)
    return (has_daily or study.plan.location is not None) and day.state == VaultDay.State.PUBLISHED


def _adds_a_value(study: UnlockedStudy, *, day: int) -> bool:
    row = VaultDay.objects.filter(study=study.row, day=day).first()
    return row is not None and adds_a_value(study, row)


def request_close_slots(
    study: VaultStudy, *, through: datetime, by: str, batch_id: UUID | None = None
) -> Batch:
    """Publish the counts of all slots that end by `through`; what comes later changes them no more.

    Parameters
    ----------
    through : without an offset it is local time of the study

    Raises
    ------
    DayStateError : the study has no slots, or there is nothing to close by then, or not yet
    """
    definition = unlock(study).definition
    if definition.slots is None:
        raise DayStateError(
            gettext("this study does not count people by time slot: its study file has no [slots] section")
        )
    at = through if through.tzinfo else through.replace(tzinfo=ZoneInfo(definition.timezone))
    if at > timezone.now():
        text = gettext("time slots can be closed only after they have ended, but %(time)s is in the future")
        raise DayStateError(text % {"time": _minute(at)})
    clock = clock_of(study)
    wanted, closed = clock.closed_by(int(at.timestamp())), study.slots_closed
    if not wanted:
        raise DayStateError(
            gettext("no time slot of this study had ended by %(time)s") % {"time": _minute(at)}
        )
    if wanted <= closed:
        end = datetime.fromtimestamp(int(clock.end[closed - 1]), at.tzinfo)
        text = gettext("all time slots up to %(end)s are already closed; the requested time was %(time)s")
        raise DayStateError(text % {"end": _minute(end), "time": _minute(at)})
    return _requested(study, kind=Batch.Kind.CLOSE_SLOTS, slots_through=wanted, by=by, batch_id=batch_id)


def close_due_slots() -> None:
    """Close slots that ended longer ago than `close_after_minutes`, in each study that has it."""
    going_on = VaultStudy.objects.filter(closed_at=None, stopped="")
    # Compared here: databases differ in how they compare the null of JSON.
    after_minutes = going_on.values_list("pk", "definition__slots__close_after_minutes")
    for pk, minutes in after_minutes.order_by("pk"):
        if minutes is None:
            continue
        study = VaultStudy.objects.get(pk=pk)
        due = clock_of(study).closed_by(int((timezone.now() - timedelta(minutes=minutes)).timestamp()))
        # One that failed is tried again with the next slot.
        asked = Batch.objects.filter(study=study, kind=Batch.Kind.CLOSE_SLOTS, slots_through__gte=due)
        if due > study.slots_closed and not asked.exists():
            _requested(study, kind=Batch.Kind.CLOSE_SLOTS, slots_through=due, by=CLOCK)


def _minute(at: datetime) -> str:
    return at.isoformat(sep=" ", timespec="minutes")[:16]


def _requested(
    study: VaultStudy,
    *,
    kind: str,
    by: str,
    day: int | None = None,
    slots_through: int | None = None,
    batch_id: UUID | None = None,
) -> Batch:
    batch = Batch.objects.create(
        pk=batch_id or uuid4(),
        study=study,
        kind=kind,
        day=day,
        slots_through=slots_through,
        created_by=by,
    )
    queue(batch)
    return batch


def queue(batch: Batch) -> None:
    """Let the batch wait for its turn; without a broker it waits for the next sweep."""
    move(batch, "queue")
    ask("advance", str(batch.pk))
    batch.refresh_from_db(fields=["state", "alive_until"])


def wait_for(batch: Batch, *, progress: Callable[[Batch], None], poll_s: float = 0.1) -> Batch:
    """Wait until a worker has ended the batch.

    Raises
    ------
    MobilityError : the batch failed or was cancelled; the text is the reason
    """
    while True:
        batch.refresh_from_db()
        progress(batch)
        if batch.state == Batch.State.DONE:
            return batch
        if batch.is_final:
            raise MobilityError(batch.failure)
        time.sleep(poll_s)
