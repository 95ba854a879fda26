"""The vault after a restore: closed studies stay closed, batches end, and totals are compared.

A backup brings back what was erased since: a study that was closed, batches whose files and one-time keys are
gone. Nothing of that may continue. Every step can be repeated.
"""

import logging
from collections.abc import Collection
from typing import Any

from django.conf import settings
from django.db.models import Q
from django.utils.translation import gettext_noop as _

from mobility.base.errors import MobilityError, StudyStoppedError
from mobility.batches import finalisation, staging
from mobility.batches.publication import certificate
from mobility.batches.publication.analyst_server import AnalystServer, HandoverError, HandoverWaitsError
from mobility.batches.publication.publishing import send_missing
from mobility.batches.publication.receipts import closed_event, record_missing
from mobility.plans.closing import Leave, close_study
from mobility.vault import consistency
from mobility.vault.keystore import keystore
from mobility.vault.models.batch import Batch
from mobility.vault.models.subscribers import VaultStudy
from reports.ledger.actions import recorded_events
from reports.ledger.models import LedgerKind
from reports.transfer.slots import PublicationError

log = logging.getLogger(__name__)

KEY_IS_GONE = _(
    "its staged file is missing, because the databases were restored from a backup made during "
    "the batch. Send the same file again; no row counts twice"
)


def recover(*, by: str, closed: Collection[str]) -> dict[str, Any]:
    """Settle what a restored vault leaves open.

    Parameters
    ----------
    closed : slugs of studies that are known elsewhere to have been closed

    Returns
    -------
    studies_closed_again, batches_ended, keys_missing, keys_unused, studies_stopped, not_handed_over
    """
    told: dict[str, Any] = {
        "studies_closed_again": _close_again(by=by, closed=closed),
        "batches_ended": _end_batches(),
    }
    stopped, waiting = _compare()
    told |= {"studies_stopped": stopped, "not_handed_over": waiting}
    record_missing()
    return told | {"keys_missing": keys_missing(), "keys_unused": _keys_unused()}


def bury(closed: Collection[str]) -> None:
    """Destroy the keys of studies that were closed, and leave tombstones."""
    for key_id in VaultStudy.objects.filter(slug__in=closed).values_list("key_id", flat=True):
        keystore().destroy(key_id)


def keys_missing() -> list[str]:
    """Ids of keys of open studies that are not in the keystore."""
    keys = keystore()
    going_on = VaultStudy.objects.filter(certificate__isnull=True).order_by("key_id")
    wanted = going_on.values_list("key_id", flat=True)
    return [key_id for key_id in wanted if keys.is_destroyed(key_id) or not keys.exists(key_id)]


def _close_again(*, by: str, closed: Collection[str]) -> list[str]:
    """End studies whose key was destroyed after the backup, or that were being closed when it was made."""
    keys, recorded = keystore(), recorded_events(LedgerKind.STUDY_CLOSED)
    ended = []
    for study in VaultStudy.objects.order_by("pk"):
        if certificate.is_complete(study.certificate):
            keystore().destroy(study.key_id)  # an older copy of it may have come back
            continue
        is_closed = (
            study.certificate is not None
            or study.slug in closed
            or keys.is_destroyed(study.key_id)
            or closed_event(study) in recorded
        )
        if is_closed:
            close_study(study, by=by, leave=Leave(came_back=True))
            ended.append(study.slug)
    return ended


def closed_there(slugs: Collection[str]) -> tuple[set[str], set[str]]:
    """Return studies that a separate analyst server calls closed, and of which it did not answer.

    It is not trusted: its word may keep a key away until people decide, and destroys nothing.
    """
    left = sorted(slugs) if settings.HANDS_OVER else []
    closed, unanswered = set[str](), set[str]()
    while left:
        try:
            answer = AnalystServer().state(left[0])
        except HandoverWaitsError:
            return closed, unanswered | set(left)  # nor will it answer for the others
        except HandoverError:
            answer = {}
        slug = left.pop(0)
        if answer.get("is_closed"):
            closed.add(slug)
        elif "is_known" not in answer:
            unanswered.add(slug)
    return closed, unanswered


def _end_batches() -> dict[str, int]:
    """End batches whose file can no longer be read; those that need none continue. {slug: batches}"""
    needs_file = Q(kind__in=Batch.FILES) & ~Q(state=Batch.State.PUBLISHING)
    under_way = Batch.objects.exclude(state__in=Batch.FINAL).filter(needs_file, failure="")
    staged, ended = staging.staged_batches(), dict[str, int]()
    for batch in under_way.select_related("study").order_by("created_at"):
        if not keystore().exists(batch.key_id) or batch.pk not in staged:
            finalisation.fail(batch, KEY_IS_GONE)
            ended[batch.study.slug] = ended.get(batch.study.slug, 0) + 1
    return ended


def _compare() -> tuple[dict[str, str], dict[str, str]]:
    """Hand over what analysts lack; {slug: why it is stopped}, {slug: why it waits}."""
    stopped, waiting = {}, {}
    for study in VaultStudy.objects.filter(certificate__isnull=True).order_by("pk"):
        try:
            send_missing(study)
        except StudyStoppedError as error:
            stopped[study.slug] = str(error)
        except (MobilityError, PublicationError) as error:
            waiting[study.slug] = str(error)
        else:
            if study.stopped:  # it fits, and people have to decide
                stopped[study.slug] = consistency.why(study.stopped)
    return stopped, waiting


def _keys_unused() -> list[str]:
    """Keys of studies that the backup does not know: they were created after it."""
    wanted = set(VaultStudy.objects.values_list("key_id", flat=True))
    found = (f"study-{name}" for name in keystore().names(prefix="study-"))
    return sorted(key_id for key_id in found if key_id not in wanted)
