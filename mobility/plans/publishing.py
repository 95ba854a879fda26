"""Publishing a draft: a new study, or another plan of a study that holds no data. In both databases.

The vault's copy and the state of the draft change in one transaction; the main rows are written before it and
committed after it. A draft that is published but not announced is what a crash between the two leaves: it can
only continue, and the next sweep lets it.
"""

import logging
from collections.abc import Callable
from datetime import timedelta

from django.conf import settings
from django.db import DatabaseError, transaction
from django.utils import timezone
from django.utils.translation import gettext_noop as _

from mobility.base.errors import MobilityError
from mobility.plans.drafts import (
    DraftConflictError,
    DraftError,
    approval_obstacle,
    check_seen,
    discloses_values,
    reasons_of,
    record_draft,
    record_review,
)
from mobility.plans.models import PlanDraft
from mobility.plans.studies import create_study
from mobility.vault.models.batch import Batch
from mobility.vault.models.outbox import VaultPublication
from mobility.vault.models.profiles import ExtractProfile
from mobility.vault.models.subscribers import AnswerShard, DayState, PresenceShard, VaultDay, VaultStudy
from mobility.vault.queries import closed_error
from reports.base.reasons import Reason
from reports.ledger.models import LedgerKind
from reports.studies.models import Study
from reports.studies.plan_models import Plan
from reports.studies.studyfile import IndicatorDefinition, StudyDefinition
from reports.studies.studyfile.origins import ORIGIN_KEYS
from reports.transfer.plans import replace_plan_rows
from reports.transfer.studies import Approval, StudyExistsError

State = PlanDraft.State
Review = Plan.Review
log = logging.getLogger(__name__)

DATA = (VaultDay, DayState, PresenceShard, AnswerShard, VaultPublication)


class StudyHasDataError(DraftError):
    """The study holds rows, or a batch waits: its plan is final."""


class NotReviewedError(DraftError):
    """The draft needs a second person first."""


def publish_draft(draft: PlanDraft, *, revision: int, by: str) -> None:
    """Put a draft in force; one whose publishing was interrupted continues.

    Raises
    ------
    NotReviewedError : no one else approved what needs it
    StudyHasDataError : the study holds data, or a batch waits
    DraftError : it is not open, or a batch or another draft came in between
    StudyExistsError, StudyVaultError, PlanInUseError, BudgetExceededError
    """
    draft.refresh_from_db()
    if draft.is_unfinished:
        finish_draft(draft)
        return
    if not draft.is_open:
        raise DraftError(f"the draft must be open to be published, but it is {draft.state}")
    check_seen(draft, revision=revision)
    before, review = draft.state, review_of(draft)
    record_review(draft)
    draft.review, draft.published_by = review, by
    try:
        _put_in_force(draft, with_copy=lambda: _claim(draft, review=review, by=by))
    except Exception as error:
        _take_back(draft, to=before)
        if PlanDraft.objects.filter(pk=draft.pk, state=before, revision=revision).exists():
            raise
        text = f"another person changed the draft first: it is no longer {before}"
        raise DraftConflictError(text) from error
    _announce(draft)


def finish_draft(draft: PlanDraft) -> None:
    """Continue with publishing that was interrupted; nothing happens where it was not.

    Raises
    ------
    StudyExistsError, PlanInUseError, BudgetExceededError : the main database changed since
    """
    if draft.is_unfinished:
        _put_in_force(draft, with_copy=lambda: None)
        _announce(draft)


def finish_interrupted(*, older_than_s: int = 60) -> None:
    """Let all publishing continue that was interrupted; what cannot continue is logged, and tried again."""
    since = timezone.now() - timedelta(seconds=older_than_s)
    for draft in PlanDraft.objects.filter(state=State.PUBLISHED, announced_at=None, published_at__lte=since):
        try:
            finish_draft(draft)
        except (MobilityError, ValueError, DatabaseError) as error:
            log.warning("plan_waits draft=%s error=%s", draft.pk, type(error).__name__)


def review_of(draft: PlanDraft) -> str:
    """Why a draft may be published now, as `Plan.Review`.

    Raises
    ------
    NotReviewedError
    """
    if draft.state == State.REVIEWED:
        reason = approval_obstacle(draft, by=draft.reviewed_by, at=draft.reviewed_at)
        if reason:  # of a time before this rule
            raise NotReviewedError(reason)
        return str(Review.APPROVED)
    if discloses_values(draft):
        raise NotReviewedError(
            "a plan that discloses values (plan.discloses_values) must be approved by a person who did not "
            "edit it, also on sites without a second person"
        )
    if not reasons_of(draft):
        return str(Review.LOWERS_ONLY)
    if not settings.MOBILITY_SECOND_PERSON:
        return str(Review.SWITCHED_OFF)
    raise NotReviewedError(
        "the draft must be approved by a person who did not edit it: ask another administrator or a "
        "privacy officer"
    )


def obstacle(slug: str) -> str:
    """Return why the plan of a study can no longer be replaced, as a message; empty if it can."""
    row = VaultStudy.objects.filter(slug=slug).first()
    if row is None:
        return Reason(_("The study “%(slug)s” is no longer in the vault"), slug=slug).words
    try:
        _check_without_data(row)
    except MobilityError as error:
        return error.reason.words
    return ""


def _put_in_force(draft: PlanDraft, *, with_copy: Callable[[], None]) -> None:
    definition = StudyDefinition.from_json(draft.definition)
    approval = Approval(review=draft.review, by=draft.reviewed_by, at=draft.reviewed_at)
    if not draft.is_new_study:
        _replace(draft, definition, approval=approval, with_copy=with_copy)
        return
    try:
        create_study(definition, by=draft.published_by, approval=approval, with_copy=with_copy)
    except StudyExistsError:
        # Unless the main rows of this very draft were committed before a crash.
        mine = Plan.objects.filter(study__slug=draft.slug, spec_hash=draft.plan_hash)
        if not draft.is_unfinished or not mine.exists():
            raise


def _replace(
    draft: PlanDraft, definition: StudyDefinition, *, approval: Approval, with_copy: Callable[[], None]
) -> None:
    with transaction.atomic(using="default"):
        Study.objects.select_for_update().get(slug=draft.slug)  # one replaces at a time
        with transaction.atomic(using="vault"):
            with_copy()
            row = VaultStudy.objects.select_for_update(of=("self",)).get(slug=draft.slug)
            if row.plan_hash != draft.plan_hash:
                _check_copy(row, draft)
                _write_copy(row, definition, draft)
            replace_plan_rows(
                definition,
                version=draft.version,
                replaces=draft.base_plan_hash,
                by=draft.published_by,
                approval=approval,
            )


def _check_copy(row: VaultStudy, draft: PlanDraft) -> None:
    if row.plan_hash != draft.base_plan_hash:
        raise DraftError(
            _(
                "The plan of study “%(slug)s” has changed since the draft was started: withdraw this draft, "
                "and start a new one from the plan in force"
            ),
            slug=row.slug,
        )
    _check_without_data(row)
    old = StudyDefinition.from_json(row.definition)
    new = StudyDefinition.from_json(draft.definition)
    profiles = ExtractProfile.objects.filter(study=row).order_by("name").values_list("name", flat=True)
    changed = _changed_sources(old.static_indicators, new.static_indicators)
    if profiles and changed:
        raise DraftError(
            _(
                "extract profiles say how columns become the static indicators of the plan in force, and "
                "this draft changes %(changed)s. Profiles of this study: %(profiles)s: ask an operator to "
                "remove these profiles, publish the draft, then ask for new profiles"
            ),
            changed=", ".join(changed),
            profiles=", ".join(profiles),
        )


def _changed_sources(old: tuple[IndicatorDefinition, ...], new: tuple[IndicatorDefinition, ...]) -> list[str]:
    """Name the indicators that profiles of the old ones do not fit, each with the keys that differ."""
    was, now = ({each.slug: _source(each) for each in of} for of in (old, new))
    both = [slug for slug in was if slug in now]
    keys = {slug: [key for key, of in was[slug].items() if now[slug].get(key) != of] for slug in both}
    found = [f"{slug} ({', '.join(of)})" for slug, of in keys.items() if of]
    found += [slug for slug in (*was, *now) if slug not in both]
    return found or (["the order of indicators"] if list(was) != list(now) else [])


def _source(indicator: IndicatorDefinition) -> dict[str, object]:
    """Return what a profile must fit, by key of the study file."""
    return {
        "categories": indicator.categories,
        "lookup": indicator.lookup,
        "derive": indicator.derive,
        **{key: getattr(indicator.origin, key, None) for key in ORIGIN_KEYS},
    }


def _check_without_data(row: VaultStudy) -> None:
    """Raise unless the plan of a study can still be replaced."""
    if row.closed_at is not None:
        raise closed_error(row.closed_at)
    if settings.HANDS_OVER:
        raise StudyHasDataError(
            _(
                "The plan of study “%(slug)s” is final: it was handed over to the analyst server. Copy it to "
                "a new study instead"
            ),
            slug=row.slug,
        )
    if row.batches.exclude(state__in=Batch.FINAL).exists():
        raise StudyHasDataError(
            _(
                "The plan of study “%(slug)s” is final while a batch is waiting or running: wait until it "
                "ends, or copy the plan to a new study"
            ),
            slug=row.slug,
        )
    if any(model.objects.filter(study=row).exists() for model in DATA):
        raise StudyHasDataError(
            _(
                "The plan of study “%(slug)s” is final, because rows were processed under it and their "
                "answers cannot be asked again. Copy it to a new study instead"
            ),
            slug=row.slug,
        )


def _write_copy(row: VaultStudy, definition: StudyDefinition, draft: PlanDraft) -> None:
    row.definition = definition.to_json()
    row.plan = definition.plan_spec(version=draft.version).to_json()
    row.plan_hash = draft.plan_hash
    row.save(update_fields=["definition", "plan", "plan_hash"])


def _claim(draft: PlanDraft, *, review: str, by: str) -> None:
    """Mark a draft as published, if no one changed it; in the transaction that writes the vault's copy."""
    now = timezone.now()
    earlier = PlanDraft.objects.filter(slug=draft.slug, state=State.PUBLISHED)
    earlier.update(state=State.SUPERSEDED, ended_by=by, ended_at=now)
    as_seen = PlanDraft.objects.filter(pk=draft.pk, revision=draft.revision, state=draft.state)
    if not as_seen.update(state=State.PUBLISHED, review=review, published_by=by, published_at=now):
        raise DraftConflictError("another person changed or published the draft: reload it first")


def _take_back(draft: PlanDraft, *, to: str) -> None:
    """A study could not be created after all, and its copy in the vault was taken back: the draft is open."""
    if draft.is_new_study and not VaultStudy.objects.filter(slug=draft.slug).exists():
        PlanDraft.objects.filter(pk=draft.pk, state=State.PUBLISHED, announced_at=None).update(
            state=to, review="", published_by="", published_at=None
        )


def _announce(draft: PlanDraft) -> None:
    """Note that both databases have it, and that in the ledger."""
    with transaction.atomic(using="default"):
        draft.refresh_from_db()
        record_draft(draft, LedgerKind.PLAN_PUBLISHED, by=draft.published_by)
    PlanDraft.objects.filter(pk=draft.pk, announced_at=None).update(announced_at=timezone.now())
    draft.refresh_from_db()
