"""A second person must approve undoing a published day that raises epsilon above what was approved.

The approved loss covers the plan and each undone day approved since. Plans, caps and days
share one second-person rule: reports/accounts/second_person.py.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext

from ldp import PlanSpec
from mobility.base.errors import DayStateError
from mobility.batches.queries import study_head
from mobility.vault.models.batch import Batch
from mobility.vault.models.subscribers import VaultStudy
from mobility.vault.models.undo import DayUndo
from reports.accounts import second_person
from reports.base import formats
from reports.ledger.actions import record
from reports.ledger.models import LedgerKind
from reports.privacy.budget.spending import Unit
from reports.privacy.budget.texts import unit_words
from reports.privacy.composition import Losses, losses_of
from reports.studies.texts import undone_day_words


class UndoWaitsError(DayStateError):
    """The day is not undone yet: a second person has to approve that first."""


class UndoDecisionError(DayStateError):
    """A request to undo a day cannot be decided like that; nothing was undone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rise:
    """A person's losses now, and after one more published day is undone."""

    before: Losses
    after: Losses
    has_new_noise: bool

    @property
    def units(self) -> list[str]:
        """Units in which more is lost."""
        found = ((unit, self.before.of(unit), self.after.of(unit)) for unit in Unit)
        return [unit for unit, old, new in found if old is not None and new is not None and new > old]

    @property
    def words(self) -> str:
        """One sentence for each unit, and that the two versions of a day show changes, if only they do."""
        text = gettext(
            "Undoing the uploads for a published day raises epsilon, the privacy loss limit. For "
            "%(unit)s, epsilon rises from %(old)s to %(new)s."
        )
        shown = [(unit, self.before.of(unit) or 0, self.after.of(unit) or 0) for unit in self.units]
        values = [
            {"unit": unit_words(unit), "old": formats.epsilon(old), "new": formats.epsilon(new)}
            for unit, old, new in shown
        ]
        sentences = [text % each for each in values]
        if sentences and self.has_new_noise:
            sentences.append(undone_day_words())
        return " ".join(sentences)


def rise_of(study: VaultStudy) -> Rise:
    """Compare what a person loses with the published days undone so far, and with one more."""
    plan = PlanSpec.from_json(study.plan)
    before, after = (losses_of(plan, voided_days=study.voided_days + n) for n in (0, 1))
    return Rise(before=before, after=after, has_new_noise=any(map(plan.has_new_noise, range(plan.d))))


def needs_second_person(study: VaultStudy) -> bool:
    """Return whether undoing one more published day of a study needs an approval."""
    return settings.MOBILITY_SECOND_PERSON and bool(rise_of(study).units)


def ask(study: VaultStudy, *, day: int, by: str) -> UndoWaitsError:
    """Ask a second person to let a day be undone; the same day again changes nothing.

    Returns
    -------
    what to tell anyone who asked
    """
    with transaction.atomic(using="default"), transaction.atomic(using="vault"):
        found, is_new = DayUndo.objects.get_or_create(
            study=study,
            day=day,
            is_approved=None,
            defaults={"asked_by": by, "voided_days": study.voided_days + 1},
        )
        if is_new:
            _record(found, what="asked", by=by)
    text = gettext(
        "The uploads for %(date)s have not been undone yet. %(rise)s A second person (an "
        "administrator or a privacy officer) must first approve the request on the study's page, under "
        "Administration. The uploads are then undone automatically."
    )
    date = formats.day_title(study_head(study.pk).date_of(day))
    return UndoWaitsError(text % {"date": date, "rise": rise_of(study).words})


def waiting(study: VaultStudy | None = None) -> list[DayUndo]:
    """Requests that wait for a second person, of a study or of all that are open, oldest first."""
    found = DayUndo.objects.filter(is_approved=None, study__closed_at=None).select_related("study")
    return list(found if study is None else found.filter(study=study))


def obstacle(undo: DayUndo, *, by: str) -> str:
    """Say why an account cannot approve a request; empty if it can."""
    own = gettext("%(name)s made this request, so another person must approve it.") % {"name": undo.asked_by}
    return second_person.obstacle(by, authors=[undo.asked_by], of_author=own)


@contextmanager
def approving(undo: DayUndo, *, voided_days: int, by: str) -> Iterator[DayUndo]:
    """Approve a request; the caller gives it its batch inside of the block.

    Parameters
    ----------
    voided_days : the number whose epsilon the person saw

    Raises
    ------
    UndoDecisionError : `by` is no second person, it does not wait, or another day was undone meanwhile
    """
    with _locked(undo) as locked:
        reason = obstacle(locked, by=by)
        if reason:
            raise UndoDecisionError(reason)
        if voided_days != locked.study.voided_days + 1:
            raise UndoDecisionError(
                gettext(
                    "The uploads for another day have been undone in the meantime, so undoing this "
                    "day's uploads would raise epsilon further. Read the request again before you "
                    "decide."
                )
            )
        locked.voided_days = voided_days
        yield locked
        _decide(locked, is_approved=True, by=by, what="approved")


def refuse(undo: DayUndo, *, by: str) -> None:
    """Decide that a day stays as it is; anyone who asked for it withdraws it with this.

    Raises
    ------
    UndoDecisionError : it does not wait
    """
    with _locked(undo) as locked:
        _decide(locked, is_approved=False, by=by, what="withdrawn" if by == locked.asked_by else "refused")


def check_approved(batch: Batch, study: VaultStudy) -> None:
    """Raise DayStateError unless a second person approved what a batch is about to make of epsilon."""
    if not needs_second_person(study):
        return
    approved = DayUndo.objects.filter(batch=batch, is_approved=True).first()
    if approved is None or study.voided_days + 1 > approved.voided_days:
        raise DayStateError(
            f"day {batch.day} cannot be undone: epsilon would rise above the approved value, because "
            "the day was published or another day was undone after the request. Request the undo "
            "again"
        )


@contextmanager
def _locked(undo: DayUndo) -> Iterator[DayUndo]:
    """Lock a request that waits, in both databases or in none: the ledger is written and committed last."""
    with transaction.atomic(using="default"), transaction.atomic(using="vault"):
        VaultStudy.objects.select_for_update().get(pk=undo.study_id)
        locked = DayUndo.objects.select_for_update(of=("self",)).select_related("study").get(pk=undo.pk)
        if locked.is_approved is not None:
            raise UndoDecisionError(
                gettext("%(name)s has already approved or refused this request.")
                % {"name": locked.decided_by}
            )
        yield locked
    undo.refresh_from_db()


def _decide(undo: DayUndo, *, is_approved: bool, by: str, what: str) -> None:
    undo.is_approved, undo.decided_by, undo.decided_at = is_approved, by, timezone.now()
    undo.save()
    _record(undo, what=what, by=by)


def _record(undo: DayUndo, *, what: str, by: str) -> None:
    rise = rise_of(undo.study)
    epsilons = {f"epsilon_{unit}": _rounded_up(rise.after.of(unit) or Decimal(0)) for unit in rise.units}
    record(
        LedgerKind.DAY_UNDO,
        actor=by,
        study=undo.study.slug,
        facts={
            "what": what,
            "request": undo.pk,
            "day": study_head(undo.study_id).date_of(undo.day).isoformat(),
            "voided_days": undo.voided_days,
            **epsilons,
        },
    )


def _rounded_up(epsilon: Decimal) -> str:
    return f"{epsilon.quantize(Decimal('0.000001'), rounding=ROUND_CEILING).normalize():f}"
