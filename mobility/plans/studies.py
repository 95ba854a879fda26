"""Creating a study in both zones: rows for analysts, and the vault's own copy and key."""

import secrets
from collections.abc import Callable
from typing import NotRequired, TypedDict

from django.db import transaction
from django.utils.translation import gettext_noop as _

from ldp import certify
from mobility.base.errors import MobilityError
from mobility.batches.publication import handover
from mobility.vault.keystore import keystore
from mobility.vault.models.subscribers import VaultStudy
from reports.ledger.actions import record
from reports.ledger.models import LedgerKind
from reports.privacy.budget.actions import check_budget
from reports.privacy.retention import closed_on
from reports.studies.models import Study
from reports.studies.plan_models import Plan
from reports.studies.studyfile import StudyDefinition
from reports.transfer.studies import (
    FIRST_VERSION,
    ON_SERVER,
    Approval,
    StudyExistsError,
    create_study_rows,
    plan_hash,
)

SUBSCRIBERS_PER_SHARD = 100_000
MIN_SHARDS, DEFAULT_SHARDS, MAX_SHARDS = 4, 16, 1024


class StudyVaultError(MobilityError):
    """The vault holds another study of that slug, with data or with a certificate."""


class NotApprovedError(MobilityError):
    """The plan discloses values, and no second person approved that."""


class Created(TypedDict):
    """Output of `create_study`; studies of events have periods, not windows."""

    study: str
    indicators: int
    windows: NotRequired[int]


def shard_count(expected_subscribers: int | None) -> int:
    """Power of two with at most about 100,000 subscribers a shard; fixed for the life of a study."""
    if expected_subscribers is None:
        return DEFAULT_SHARDS
    shards = MIN_SHARDS
    while shards < MAX_SHARDS and shards * SUBSCRIBERS_PER_SHARD < expected_subscribers:
        shards *= 2
    return shards


def create_study(
    definition: StudyDefinition,
    *,
    by: str,
    approval: Approval = ON_SERVER,
    version: int = FIRST_VERSION,
    with_copy: Callable[[], None] = lambda: None,
    is_demo: bool = False,
) -> Created:
    """Create a study in both zones, or nothing; after a crash the same file again completes it.

    The main rows are written first and committed last: until then the study is invisible, and a second
    attempt at the same slug waits for this one to end.

    Parameters
    ----------
    approval : who approved the plan, or why no one had to
    version : of the plan: above the first where earlier ones were replaced on another installation
    with_copy : called in the transaction that writes the vault's copy; what it raises ends everything

    Raises
    ------
    StudyExistsError : the slug is taken
    StudyVaultError : the vault holds data of another study of that slug, or one that was closed
    HandoverRefusedError : an analyst server that runs apart refuses the study
    BudgetExceededError : a cap of its population forbids it
    NotApprovedError : the plan discloses values, and no second person approved it
    """
    if definition.plan.discloses_values and approval.review != Plan.Review.APPROVED:
        raise NotApprovedError(
            _(
                "plan.discloses_values must be approved by a second person: draft the study in the browser, "
                "as an administrator"
            )
        )
    copy: VaultStudy | None = None
    try:
        with transaction.atomic(using="default"):
            if Study.objects.filter(slug=definition.slug).exists():  # its budget is spent already
                raise StudyExistsError(definition.slug)
            check_budget(definition, by=by)
            create_study_rows(definition, by=by, approval=approval, version=version, is_demo=is_demo)
            copy = _keep_in_vault(definition, version=version, with_copy=with_copy)
            handover.announce(copy)
            _record(copy, definition, by=by)
    except BaseException:
        if copy is not None:
            _withdraw(copy)
        raise
    created: Created = {"study": definition.slug, "indicators": len(definition.indicators)}
    return created if definition.of_events else {**created, "windows": definition.n_windows}


def _keep_in_vault(definition: StudyDefinition, *, version: int, with_copy: Callable[[], None]) -> VaultStudy:
    """Write the vault's copy and its key; a leftover of a crash gives way unless it holds data."""
    # Never the name of an earlier key: the demo is made again, and a destroyed key stays destroyed.
    keys, key_id = keystore(), f"study-{definition.slug}-{secrets.token_hex(4)}"
    made_key = False
    try:
        with transaction.atomic(using="vault"):
            with_copy()
            left = VaultStudy.objects.select_for_update().filter(slug=definition.slug).first()
            if left is not None and left.closed_at is not None:
                raise StudyVaultError(
                    f'study.slug must be new, got "{left.slug}": a study with this name was closed on '
                    f"{closed_on(left.closed_at)}, and the vault keeps its certificate"
                )
            if left is not None and left.batches.exists():
                return _check_same(left, definition)
            if left is not None:
                left.delete()
                keys.destroy(left.key_id)
            keys.create(key_id)
            made_key = True
            return _create_copy(definition, version=version, key_id=key_id)
    except BaseException:
        if made_key:
            keys.destroy(key_id)
        raise


def _record(copy: VaultStudy, definition: StudyDefinition, *, by: str) -> None:
    plan, certificate = definition.plan, certify(definition.plan_spec())
    record(
        LedgerKind.STUDY_CREATED,
        actor=by,
        study=copy.slug,
        facts={
            "plan_version": copy.plan["version"],
            "plan_sha256": copy.plan_hash,
            "mechanism": plan.mechanism,
            "unit": plan.unit,
            "epsilon": str(plan.epsilon),
            "epsilon_profile": str(certificate.epsilon_profile),
            "epsilon_attribute": str(certificate.epsilon_attribute),
            "population": definition.population,
            **({"slots": copy.plan["slots"]} if "slots" in copy.plan else {}),
        },
    )
    if not copy.batches.exists():  # otherwise the main database was lost, and the key is an old one
        record(LedgerKind.KEY_CREATED, actor=by, study=copy.slug, facts={"key": copy.key_id})


def _create_copy(definition: StudyDefinition, *, version: int, key_id: str) -> VaultStudy:
    spec = definition.plan_spec(version=version)
    return VaultStudy.objects.create(
        slug=definition.slug,
        definition=definition.to_json(),
        plan=spec.to_json(),
        plan_hash=plan_hash(spec),
        key_id=key_id,
        n_shards=MIN_SHARDS if definition.of_events else shard_count(definition.expected_subscribers),
    )


def _check_same(left: VaultStudy, definition: StudyDefinition) -> VaultStudy:
    """The main database was lost or restored from before this study: the vault's data stay in use."""
    if StudyDefinition.from_json(left.definition) != definition:
        raise StudyVaultError(
            f'study "{left.slug}" has data in the vault under a different definition: use the study '
            "file that it was created from, or another slug"
        )
    keystore().read(left.key_id)
    return left


def _withdraw(copy: VaultStudy) -> None:
    """The main rows could not be committed: take back what the vault got, unless someone uses it now."""
    with transaction.atomic(using="vault"):
        mine = VaultStudy.objects.select_for_update(of=("self",)).filter(pk=copy.pk, batches=None).first()
        if mine is not None:
            mine.delete()
            keystore().destroy(copy.key_id)
