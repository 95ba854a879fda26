"""The vault: keys that open what they sealed, shards that are complete, keys that should be gone.

Opened are a few blobs of each kind and study; with --deep all of them.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from django.db.models import Model, QuerySet
from django.utils import timezone

from mobility.base.errors import KeyMissingError, SealBrokenError
from mobility.operations.doctor.diagnosis import Diagnoses, error, error_if, fine, warning
from mobility.operations.forgetting import PARTS_KEPT
from mobility.vault.keystore import keystore
from mobility.vault.models.batch import KEY_PREFIX, Applied, Batch
from mobility.vault.models.outbox import OutboxDelta, OutboxSlots
from mobility.vault.models.subscribers import AnswerShard, DayState, OptOutShard, PresenceShard, VaultStudy
from mobility.vault.studies import OpenStudy, open_study

SAMPLE: Final = 3
Opener = Callable[[Any], object]


def open_studies() -> Iterator[OpenStudy]:
    """Studies whose key is there, each as it is when its turn comes; a missing key is a probe's business."""
    for pk in VaultStudy.objects.filter(closed_at=None).order_by("slug").values_list("pk", flat=True):
        row = VaultStudy.objects.filter(pk=pk, closed_at=None).first()
        if row is None:
            continue
        try:
            yield open_study(row)
        except KeyMissingError:
            continue


def seals(*, deep: bool) -> Diagnoses:
    """Return whether the key of each study opens what it sealed."""
    for study in open_studies():
        broken = total = 0
        for rows, opens in _sealed(study):
            chosen = rows if deep else rows[:SAMPLE]
            for row in chosen.iterator(chunk_size=16):
                total += 1
                try:
                    opens(row)
                except (SealBrokenError, ValueError):
                    broken += 1
        what = f"{broken} of {total} sealed parts cannot be opened: they were altered, or sealed "
        what += "with another key"
        todo = "mount the right keystore; if parts are damaged, restore the vault (docs/backup.md)"
        yield error_if(broken, "seal_broken", what, todo, subject=study.row.slug)


def _sealed(study: OpenStudy) -> list[tuple[QuerySet[Any, Any], Opener]]:
    """Rows of each kind, the most recently written ones first, and what opens them."""
    of_study: dict[type[Model], Opener] = {
        PresenceShard: study.unseal_presence,
        DayState: study.unseal_events if study.plan.events else study.unseal_day,
        AnswerShard: study.unseal_answered_events if study.plan.events else study.unseal_answers,
        OptOutShard: study.unseal_opt_outs,
    }
    kinds: list[tuple[QuerySet[Any, Any], Opener]] = [
        (model._default_manager.filter(study=study.row).order_by("-version"), opens)
        for model, opens in of_study.items()
    ]
    waiting = OutboxDelta.objects.filter(batch__study=study.row).order_by("-pk")
    slots = OutboxSlots.objects.filter(batch__study=study.row).order_by("-pk")
    return [*kinds, (waiting, study.unseal_delta), (slots, study.unseal_slots)]


def shards() -> Diagnoses:
    """Return whether all shards of their studies have each recent batch, and no others."""
    lately = timezone.now() - PARTS_KEPT / 2
    for study in VaultStudy.objects.filter(closed_at=None).order_by("slug"):
        # First, as a whole: a batch is in its shards before it is done.
        ended = Batch.objects.filter(study=study, state=Batch.State.DONE, finished_at__gte=lately)
        done = list(ended.values_list("pk", "shards"))
        taken: dict[Any, set[int]] = {}
        for batch, shard in Applied.objects.filter(batch__study=study).values_list("batch", "shard"):
            taken.setdefault(batch, set()).add(shard)
        lacking = sum(1 for batch, wanted in done if not taken.get(batch, set()).issuperset(wanted))
        strange = PresenceShard.objects.filter(study=study, shard__gte=study.n_shards).count()
        what = f"{lacking} finished batches are missing from some of their shards; {strange} shards "
        what += "are unusable: the vault was changed by hand, or partly restored"
        todo = "restore the whole vault from one backup (docs/backup.md)"
        yield error_if(lacking or strange, "shard_unfinished", what, todo, subject=study.slug)


def keys_that_outlived() -> Diagnoses:
    """Keys that should have been destroyed."""
    keys = keystore()
    found = False
    for study in VaultStudy.objects.exclude(closed_at=None):
        if keys.exists(study.key_id):
            found = True
            what = "the study is closed, but its key still exists"
            todo = f"close the study again: manage.py close_study {study.slug}"
            yield error("key_outlived", what, todo, subject=study.slug)
    names = keys.names(prefix=KEY_PREFIX)  # before the batches: one of those that came since is no news
    at_work = {str(pk) for pk in Batch.objects.exclude(state__in=Batch.FINAL).values_list("pk", flat=True)}
    left = [name for name in names if name not in at_work and keys.exists(f"{KEY_PREFIX}{name}")]
    if left:
        found = True
        what = f"{len(left)} keys of ended batches still exist"
        yield warning("key_outlived", what, "start a worker, which removes them", subject="batches")
    if not found:
        yield fine("key_outlived")
