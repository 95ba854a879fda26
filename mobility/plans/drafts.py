"""Drafts of plans: written by one, approved unchanged by another. `plan_publishing` publishes them."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

from mobility.base.errors import MobilityError
from mobility.plans.models import PlanDraft
from mobility.vault.models.subscribers import VaultStudy
from mobility.vault.queries import closed_error, find_study
from reports.accounts import second_person
from reports.base.reasons import Reason
from reports.ledger.actions import record
from reports.ledger.models import LedgerKind
from reports.privacy.plan_changes import second_person_reasons
from reports.studies.models import Study
from reports.studies.studyfile import StudyDefinition
from reports.studies.studyfile.redraft import read_tables, tables_of
from reports.transfer.studies import FIRST_VERSION, StudyExistsError, plan_hash

State = PlanDraft.State
REMARK_MAX = 2000


class DraftError(MobilityError):
    """A draft cannot take this step; nothing was changed."""


class DraftConflictError(DraftError):
    """Someone else changed the draft in the meantime; nothing was saved."""


class DraftOpenError(DraftError):
    """A study has one open draft at a time; `draft_id` is it."""

    def __init__(self, draft: PlanDraft) -> None:
        self.draft_id = draft.pk
        super().__init__(
            _(
                'study "%(slug)s" already has an open draft, edited by %(by)s: change or withdraw that one '
                "first"
            ),
            slug=draft.slug,
            by=draft.edited_by,
        )


def definition_hash(definition: StudyDefinition) -> str:
    """SHA-256 of the canonical JSON of a definition: what a reviewer approves, to the last cell."""
    text = json.dumps(definition.to_json(), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def draft_new_study(
    definition: StudyDefinition, *, by: str, like: StudyDefinition | None = None
) -> PlanDraft:
    """Draft a study that is not there yet.

    Parameters
    ----------
    like : study that it was copied from, for the comparison

    Raises
    ------
    StudyExistsError : the slug is taken
    DraftOpenError : someone drafts a study of that slug already
    """
    _check_free(definition.slug)
    return _create(definition, by=by, base=like, version=FIRST_VERSION, replaces="")


def draft_of_study(slug: str, *, by: str) -> PlanDraft:
    """Draft the next version of a study's plan; it starts as what is in force.

    Raises
    ------
    StudyMissingError, StudyClosedError
    DraftOpenError : there is an open draft of this study
    """
    row = find_study(slug)
    if row.closed_at is not None:
        raise closed_error(row.closed_at)
    definition = StudyDefinition.from_json(row.definition)
    version = int(row.plan["version"]) + 1
    return _create(definition, by=by, base=definition, version=version, replaces=row.plan_hash)


def copy_of_study(slug: str, *, to: str, by: str) -> PlanDraft:
    """Draft a new study that starts as a copy of another, whether that one has data or is closed.

    Raises
    ------
    StudyMissingError, StudyExistsError, DraftOpenError
    StudyFileError : `to` is not a slug
    """
    like = StudyDefinition.from_json(find_study(slug).definition)
    tables = tables_of(like)
    tables["study"]["slug"] = to
    return draft_new_study(read_tables(tables, like=like), by=by, like=like)


def save_draft(draft: PlanDraft, definition: StudyDefinition, *, revision: int, by: str) -> bool:
    """Write what was edited, and take back any approval; False when nothing is new.

    Parameters
    ----------
    revision : of the draft that was edited

    Raises
    ------
    DraftConflictError : someone saved another revision first
    DraftError : it is no longer open, or the study would change its name in addresses
    StudyExistsError : the new slug is taken
    """
    if not draft.is_new_study and definition.slug != draft.slug:
        raise DraftError(
            _('study.slug must stay "%(slug)s", got "%(typed)s"'), slug=draft.slug, typed=definition.slug
        )
    if definition.slug != draft.slug:
        _check_free(definition.slug)
    with _step(draft) as locked:
        if locked.revision != revision:
            raise DraftConflictError(
                _("the draft was saved by %(by)s while you were editing it, so your changes were not saved"),
                by=locked.edited_by,
            )
        if definition_hash(definition) == locked.definition_hash:
            return False
        locked.slug = definition.slug
        _write(locked, definition, by=by)
        try:
            with transaction.atomic(using="vault"):
                locked.save()
        except IntegrityError:
            there = PlanDraft.objects.get(slug=definition.slug, state__in=PlanDraft.OPEN)
            raise DraftOpenError(there) from None
        record_draft(locked, LedgerKind.PLAN_DRAFTED, by=by)
    return True


def submit_draft(draft: PlanDraft, *, revision: int, by: str) -> None:
    """Ask for a review."""
    with _step(draft, revision=revision) as locked:
        if locked.state != State.DRAFT or locked.submitted_at is not None:
            raise DraftError(
                _("the draft must be in editing to be sent for review, but it is already in review")
            )
        locked.submitted_by, locked.submitted_at = by, timezone.now()
        locked.save()


def approve_draft(draft: PlanDraft, *, revision: int, by: str, remark: str = "") -> None:
    """Approve the exact text of a draft.

    Raises
    ------
    DraftError : anyone who wrote any of it cannot approve it, nor an account that an author could act through
        (reports/accounts/second_person.py); or it does not wait for a review
    DraftConflictError : it was changed since the reviewer looked at it
    """
    with _step(draft, revision=revision) as locked:
        _check_waits(locked)
        reason = approval_obstacle(locked, by=by)
        if reason:
            raise DraftError(reason)
        locked.state = State.REVIEWED
        locked.reviewed_by, locked.reviewed_at = by, timezone.now()
        locked.reviewed_hash = locked.definition_hash
        locked.remark, locked.remark_by = remark[:REMARK_MAX], by if remark else ""
        locked.save()
        record_review(locked)


def send_back(draft: PlanDraft, *, revision: int, by: str, remark: str) -> None:
    """Do not approve: the author continues, and reads why.

    Raises
    ------
    DraftError : no reason is given; or as in `approve_draft`
    """
    if not remark.strip():
        raise DraftError(gettext("Describe what the author should change."))
    with _step(draft, revision=revision) as locked:
        _check_waits(locked)
        if not may_review(locked, by=by):
            raise DraftError(_of_author(by))
        locked.submitted_at, locked.submitted_by = None, ""
        locked.remark, locked.remark_by = remark[:REMARK_MAX], by
        locked.save()


def withdraw_draft(draft: PlanDraft, *, revision: int, by: str) -> None:
    """End a draft without publishing it; it stays as a record."""
    with _step(draft, revision=revision) as locked:
        locked.state = State.WITHDRAWN
        locked.ended_by, locked.ended_at = by, timezone.now()
        locked.save()
        record_draft(locked, LedgerKind.PLAN_WITHDRAWN, by=by)


def reasons_of(draft: PlanDraft) -> list[str]:
    """Why a draft needs a second person, as sentences; whether the site asks for one is another question."""
    return second_person_reasons(
        base_of(draft), StudyDefinition.from_json(draft.definition), is_new_study=draft.is_new_study
    )


def discloses_values(draft: PlanDraft) -> bool:
    """Return whether a second person has to approve a draft on every site: its answers disclose values."""
    return draft.definition["plan"].get("discloses_values") is True


def base_of(draft: PlanDraft) -> StudyDefinition | None:
    """Return the base of comparison of a draft, without area."""
    return None if draft.base is None else StudyDefinition.from_json(draft.base)


def may_review(draft: PlanDraft, *, by: str) -> bool:
    """Return whether an account has written nothing of a draft."""
    return not second_person.is_author(by, authors=draft.editors)


def approval_obstacle(draft: PlanDraft, *, by: str, at: datetime | None = None) -> str:
    """Say why an approval of a draft by an account does not count; empty if it does.

    Parameters
    ----------
    at : when it was approved; None = now
    """
    return second_person.obstacle(by, authors=draft.editors, of_author=_of_author(by), at=at)


def record_review(draft: PlanDraft) -> None:
    """Note an approval in the ledger, once; publishing calls it again in case a crash came between."""
    if draft.reviewed_at is not None:
        record_draft(draft, LedgerKind.PLAN_REVIEWED, by=draft.reviewed_by)


def _check_free(slug: str) -> None:
    closed = VaultStudy.objects.filter(slug=slug, closed_at__isnull=False)
    if Study.objects.filter(slug=slug).exists() or closed.exists():
        raise StudyExistsError(slug)


def _create(
    definition: StudyDefinition, *, by: str, base: StudyDefinition | None, version: int, replaces: str
) -> PlanDraft:
    draft = PlanDraft(
        slug=definition.slug,
        version=version,
        base=None if base is None else replace(base, area=None).to_json(),
        base_slug="" if base is None else base.slug,
        base_plan_hash=replaces,
        created_by=by,
        revision=0,
    )
    _write(draft, definition, by=by)
    with transaction.atomic(using="default"), transaction.atomic(using="vault"):
        there = PlanDraft.objects.filter(slug=definition.slug, state__in=PlanDraft.OPEN).first()
        if there is not None:
            raise DraftOpenError(there)
        draft.save()
        record_draft(draft, LedgerKind.PLAN_DRAFTED, by=by)
    return draft


def _write(draft: PlanDraft, definition: StudyDefinition, *, by: str) -> None:
    """Put a definition into a draft: what was approved or asked before counts no more."""
    if definition.of_events:
        raise DraftError(
            _(
                'study.kind must be "visitors" in a draft: create a study of events with manage.py '
                "create_study (docs/events.md)"
            )
        )
    draft.definition = definition.to_json()
    draft.definition_hash = definition_hash(definition)
    draft.plan_hash = plan_hash(definition.plan_spec(version=draft.version))
    draft.revision += 1
    draft.edited_by, draft.edited_at = by, timezone.now()
    draft.editors = sorted({*draft.editors, by})
    draft.state = State.DRAFT
    draft.submitted_by, draft.submitted_at = "", None
    draft.reviewed_by, draft.reviewed_at, draft.reviewed_hash = "", None, ""


def _check_waits(draft: PlanDraft) -> None:
    if draft.state != State.DRAFT or draft.submitted_at is None:
        raise DraftError(_("the draft must be in review for this step, but it is not"))


def _of_author(by: str) -> Reason:
    text = _(
        "a draft must be reviewed by a person who did not edit it, got %(by)s: ask another administrator "
        "or a privacy officer"
    )
    return Reason(text, by=by)


@contextmanager
def _step(draft: PlanDraft, *, revision: int | None = None) -> Iterator[PlanDraft]:
    """Lock an open draft, in both databases or in none: the ledger is written last and committed last."""
    with transaction.atomic(using="default"), transaction.atomic(using="vault"):
        locked = PlanDraft.objects.select_for_update().get(pk=draft.pk)
        if not locked.is_open:
            raise DraftError(f"the draft must be open to be changed, but it is {locked.state}")
        if revision is not None:
            check_seen(locked, revision=revision)
        yield locked
    draft.refresh_from_db()


def check_seen(draft: PlanDraft, *, revision: int) -> None:
    """Raise DraftConflictError if a draft was changed since someone looked at that revision of it."""
    if draft.revision != revision:
        raise DraftConflictError(
            _("the draft was changed by %(by)s since you opened it: review the changes first"),
            by=draft.edited_by,
        )


def record_draft(draft: PlanDraft, kind: LedgerKind, *, by: str) -> None:
    """Note a step of a draft in the ledger; publishing with the noise of its counts by slot."""
    definition = StudyDefinition.from_json(draft.definition) if kind == LedgerKind.PLAN_PUBLISHED else None
    by_slot = None if definition is None else definition.plan_spec(version=draft.version).slots
    slots = {} if by_slot is None else {"slots": by_slot.to_json()}
    record(
        kind,
        actor=by,
        study=draft.slug,
        facts={
            "draft": draft.pk,
            "revision": draft.revision,
            "version": draft.version,
            "plan_sha256": draft.plan_hash,
            "definition_sha256": draft.definition_hash,
            **({"review": draft.review} if draft.review else {}),
            **slots,
        },
        event_id=f"{kind}:{draft.pk}:{draft.revision}",
    )
