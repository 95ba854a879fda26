"""One worker at a time holds a batch, and one batch at a time changes a study."""

import uuid
from datetime import timedelta

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from mobility.errors import LeaseLostError
from mobility.models import Batch, VaultStudy


class Lease:
    """The right to work on a batch; it runs out when its holder dies."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.owner = uuid.uuid4()

    def acquire(self) -> bool:
        """Take the batch if nobody holds it."""
        now = timezone.now()
        free = Q(lease_until__isnull=True) | Q(lease_until__lte=now)
        return bool(
            Batch.objects.filter(free, pk=self.batch.pk)
            .exclude(state__in=Batch.FINAL)
            .update(lease_owner=self.owner, lease_until=now + self._length())
        )

    def renew(self, **progress: object) -> None:
        """Keep the batch and note progress; call it every few seconds.

        Raises
        ------
        LeaseLostError : another worker took over
        """
        until = timezone.now() + self._length()
        kept = Batch.objects.filter(pk=self.batch.pk, lease_owner=self.owner).update(
            lease_until=until, **progress
        )
        if not kept:
            raise LeaseLostError(f"batch {self.batch.pk} was taken over by another worker")

    def confirm(self) -> None:
        """Check, inside a transaction that is about to write, that the batch is still held."""
        self.renew()

    def release(self) -> None:
        Batch.objects.filter(pk=self.batch.pk, lease_owner=self.owner).update(lease_until=None)

    @staticmethod
    def _length() -> timedelta:
        return timedelta(seconds=settings.MOBILITY_BATCH_LEASE_S)


def activate(batch: Batch) -> bool:
    """Make `batch` the one that changes its study; False while another one does."""
    return bool(
        VaultStudy.objects.filter(
            Q(active_batch__isnull=True) | Q(active_batch=batch), pk=batch.study_id
        ).update(active_batch=batch)
    )


def deactivate(batch: Batch) -> None:
    VaultStudy.objects.filter(pk=batch.study_id, active_batch=batch).update(active_batch=None)
