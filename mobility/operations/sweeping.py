"""The sweep: batches that were left behind are taken up again or ended, and what no one owns is removed.

Any number of workers may sweep at once: each step happens under a condition that only one of them meets.
"""

import logging
from uuid import UUID

from mobility.batches import staging
from mobility.batches.dispatching import ask
from mobility.batches.recovery import recover
from mobility.batches.requests import close_due_slots
from mobility.plans.publishing import finish_interrupted
from mobility.uploads import watched_folder
from mobility.uploads.feeds import actions as feeds
from mobility.vault.keystore import keystore
from mobility.vault.models.batch import KEY_PREFIX, Batch

log = logging.getLogger(__name__)


def sweep() -> None:
    """Take up what was left behind."""
    recover()
    close_due_slots()
    _remove_orphans()
    finish_interrupted()
    watched_folder.scan()
    feeds.end_without_maker()


def _remove_orphans() -> None:
    """Finish batches whose process died while ending them, or that a restored database forgot."""
    # Of what the database does not know, only what is ours by its key: others may share the storage.
    keys = {UUID(name) for name in keystore().names(prefix=KEY_PREFIX)}
    known = Batch.objects.filter(pk__in=staging.staged_batches() | keys)
    ended = set(known.filter(state__in=Batch.FINAL).values_list("pk", flat=True))
    for batch_id in ended | keys - set(known.values_list("pk", flat=True)):
        log.warning("remains_removed batch=%s", batch_id)
        staging.destroy(Batch(pk=batch_id))
        if batch_id in ended:
            ask("advance", str(batch_id))  # its receipt waited for this
