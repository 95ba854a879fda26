"""Presence noise in the vault: what of a study crosses when its days are closed, and only then.

The plan caps the days of a subscriber and adds noise to every gap cell [previous day][day]. A cell may cross
once: published again after a change, with the same noise, the difference would show what the noise hides. So
nothing crosses while a day can change. When days are closed, all up to the last of them are final, and so are
the cells of these days: each shard brings what its capped bitmaps count in them, and the batch, in the
transaction that ends its merging, the noise of all of them, empty ones too. The deltas of a batch without its
noise are never published; its days stay as they were, and the next closing brings them again, whole.

Whether a publication happens must not depend on who was there either: `min_publication` is not asked.
"""

from dataclasses import replace

from django.db import transaction
from django.db.models import QuerySet

from ldp.estimation.tallies import Delta
from ldp.keyed.noise.presence import noise_delta
from mobility.batches.queries import is_noisy
from mobility.vault.models.batch import Batch
from mobility.vault.models.outbox import OutboxDelta, VaultPublication
from mobility.vault.models.subscribers import VaultDay, VaultStudy
from mobility.vault.state.changes import Change, capped_tallies
from mobility.vault.studies import OpenStudy
from reports.transfer.publications import noisy_through


def crossing_days(study: OpenStudy, *, through: int) -> tuple[int, int] | None:
    """First and last day whose cells cross when days 1..through are closed; None if none do.

    The analyst zone is asked, too, which days it has: of a vault that was restored from an older dump no day
    may cross a second time.
    """
    if study.plan.presence is None:
        return None
    closed = VaultDay.objects.filter(study=study.row, state=VaultDay.State.CLOSED)
    crossed = max(0, noisy_through(study.row.slug), *closed.values_list("day", flat=True))
    return (crossed + 1, through) if crossed < through else None


def held_back(change: Change, study: OpenStudy, *, days: tuple[int, int] | None) -> Change:
    """Change presence, and return its part that crosses: exact counts of cells of `days`, or nothing."""
    if days is None:
        return replace(change, delta=Delta.zero(study.plan), subscribers=0)
    delta = capped_tallies(change.presence, study.sanitiser)
    first, last = days
    for counts in (delta.visitors, *delta.counts, *delta.n_reports):
        counts[..., :first] = 0
        counts[..., last + 1 :] = 0
    return replace(change, delta=delta, subscribers=0)


def add_noise(batch: Batch, study: OpenStudy) -> None:
    """Store the noise of the cells with their counts, in the transaction that closes their days.

    It has the number of a shard that no study has. Publishing uses it as the sign that the
    batch's counts are complete.
    """
    days = crossing_days(study, through=batch.day or 0)
    if days is None:
        return
    noise = noise_delta(study.plan, prf=study.prf, first_day=days[0], last_day=days[1])
    OutboxDelta.objects.create(
        batch=batch,
        shard=study.row.n_shards,
        number=study.row.publication_number,
        subscribers=0,
        delta=study.seal_delta(noise, batch=batch.pk, shard=study.row.n_shards),
    )


def waits(study: VaultStudy) -> bool:
    """Return whether counts wait with their noise."""
    return is_noisy(study) and _complete(study).exists()


def cut(study: OpenStudy) -> None:
    """Make a publication of each closing whose counts and noise are complete, in the order of its days."""
    for noise in _complete(study.row).select_related("batch").order_by("batch__day"):
        parts = OutboxDelta.objects.filter(batch=noise.batch)  # complete: no later additions
        delta = Delta.zero(study.plan)
        for part in parts.iterator(chunk_size=16):
            delta.add(study.unseal_delta(part))
        through = noise.batch.day or 0
        packed = replace(delta, noisy_through=through).pack()
        with transaction.atomic(using="vault"):
            row = VaultStudy.objects.select_for_update().get(pk=study.row.pk)
            if not OutboxDelta.objects.filter(pk=noise.pk).exists():
                continue  # another call has published it
            _publish(row, packed, through=through)


def _complete(study: VaultStudy) -> QuerySet[OutboxDelta]:
    """Noise that waits: one delta for each closing whose counts are all there."""
    return OutboxDelta.objects.filter(batch__study=study, shard=study.n_shards)


def _publish(row: VaultStudy, packed: bytes, *, through: int) -> None:
    VaultPublication.objects.create(
        study=row, number=row.publication_number, subscribers=0, voided_days=0, delta=packed
    )
    # Those of closings that failed half way go with them: their days have been closed by now.
    OutboxDelta.objects.filter(batch__study=row, batch__day__lte=through).delete()
    row.publication_number += 1
    row.save(update_fields=["publication_number"])
