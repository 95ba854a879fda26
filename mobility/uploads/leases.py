"""One sender at a time: who may add bytes to an upload.

No column says who holds it. The time up to which a receiving batch is taken for alive is its last sign of
life plus what the upload may rest. Every sign is a compare-and-swap on it: of two senders, one continues.
"""

from datetime import datetime, timedelta

from django.utils import timezone

from mobility.base.errors import SupersededError, UploadBusyError
from mobility.vault.models.batch import Batch

HOLD_S = 10.0  # without a byte: after it another connection may continue with the upload


def free_until(rest_s: float) -> datetime:
    """Value of `alive_until` of a paused upload without a holder."""
    return timezone.now() + timedelta(seconds=rest_s) - _hold(rest_s)


def _hold(rest_s: float) -> timedelta:
    return timedelta(seconds=min(HOLD_S, rest_s / 2))


class Hold:
    """The right to add to an upload; it runs out soon after its holder falls silent."""

    def __init__(self, batch: Batch, *, rest_s: float) -> None:
        """Take it.

        Parameters
        ----------
        rest_s : seconds that the upload may rest before the sweep ends it

        Raises
        ------
        UploadBusyError : someone else holds it
        SupersededError : nothing can be added: it is complete, or has ended
        """
        self._batch = batch
        self._rest_s = rest_s
        row = Batch.objects.filter(pk=batch.pk, state=Batch.State.RECEIVING)
        found = row.values_list("alive_until", flat=True).first()
        if found is None:
            raise self._superseded()
        if found > free_until(rest_s):
            raise UploadBusyError(
                f"another connection is sending this file: try again in {HOLD_S:.0f} seconds"
            )
        self._until = found
        try:
            self.renew()
        except SupersededError:
            raise UploadBusyError("another connection has just resumed this upload") from None

    def renew(self, **progress: object) -> None:
        """Keep it, and note how far the upload is; call it every second while bytes flow.

        Raises
        ------
        SupersededError : another connection continues, or the batch has ended
        """
        self._swap(timezone.now() + timedelta(seconds=self._rest_s), progress)

    def release(self, **progress: object) -> None:
        """Let someone else continue at once."""
        self._swap(free_until(self._rest_s), progress)

    def _swap(self, until: datetime, progress: dict[str, object]) -> None:
        mine = Batch.objects.filter(pk=self._batch.pk, state=Batch.State.RECEIVING, alive_until=self._until)
        if not mine.update(alive_until=until, heard_at=timezone.now(), **progress):
            raise self._superseded()
        self._until = until

    def _superseded(self) -> SupersededError:
        return SupersededError(f"this connection can no longer add data to upload {self._batch.pk}")
