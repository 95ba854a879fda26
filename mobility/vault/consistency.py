"""Consistency of the vault and the main database of its zone: after a restore one may be older.

A vault that is newer applies again what is missing. One that is older does not know which rows are in the
totals already: its additions might count twice, and totals have no history to check that. So its study
stops until databases that fit are there.
"""

import logging
from collections.abc import Collection
from typing import Final
from uuid import UUID

from django.utils.translation import gettext_noop as _

from mobility.base.errors import StudyStoppedError
from mobility.vault.models.outbox import VaultPublication
from mobility.vault.models.subscribers import VaultDay, VaultStudy
from mobility.vault.queries import clock_of

log = logging.getLogger(__name__)

# Stops that end automatically with databases that fit. Whether a day has crossed, nothing that can be
# compared shows: that ends by a decision of people only, and so does what this release does not know.
PASSING: Final = (VaultStudy.Stopped.AHEAD, VaultStudy.Stopped.CLOSED)
_AHEAD_WORDS: Final = _(
    "the study is stopped, so that no one is counted twice: the vault was restored from an older "
    "backup, and the main database has publications of the study that the vault does not know. "
    "Restore both from matching backups (docs/backup.md)"
)
_PRESENCE_WORDS: Final = _(
    "the study is stopped: its totals or slots have noise, and some days or slots are open in the backup. "
    "If one of them was closed after the backup, closing it again would publish it with the same "
    "noise and other counts, and the difference would show who opted out. If no day or slot of the study "
    "was closed after the backup, restore again with --no-day-closed-since; otherwise the "
    "reports stay as they are, and you cannot add data (docs/backup.md)"
)


def why(stopped: str) -> str:
    """Why a study is stopped, in words, and what to do; `stopped` is what its row says, and not empty."""
    return _AHEAD_WORDS if stopped in PASSING else _PRESENCE_WORDS


def check(study: VaultStudy, known: Collection[UUID]) -> None:
    """Stop the study if its vault is older than the main database of this zone.

    An analyst server that runs apart stops nothing: see `handover`.

    Parameters
    ----------
    known : publications that the main database has; they were read before this is called

    Raises
    ------
    StudyStoppedError : nothing may be added to the study now
    """
    unknown = set(known) - set(VaultPublication.objects.filter(study=study).values_list("pk", flat=True))
    # Closing decides first and then forgets publications: of a closed study there is nothing to compare.
    if not unknown or not VaultStudy.objects.filter(pk=study.pk, certificate__isnull=True).exists():
        return
    _stop(study, VaultStudy.Stopped.AHEAD)
    log.error("study_stopped study=%s unknown=%s", study.slug, len(unknown))
    raise StudyStoppedError(why(VaultStudy.Stopped.AHEAD))


def let_go_on(study: VaultStudy) -> None:
    """Everything fits: a study that was stopped continues, unless people have to decide."""
    if VaultStudy.objects.filter(pk=study.pk).filter(stopped__in=PASSING).update(stopped=""):
        log.info("study_goes_on study=%s", study.slug)
    study.refresh_from_db(fields=["stopped"])


def stop_noisy() -> list[str]:
    """Stop open studies with noise that could publish a day or a slot again after a restore; their slugs.

    The noise of a day or slot depends on the key and the place alone. Restored databases may have forgotten
    that it has crossed: it would cross again with the same noise, and after opt-outs with other counts.
    """
    stopped = []
    for study in VaultStudy.objects.filter(closed_at=None).order_by("slug"):
        if _has_open_days(study) or _has_open_slots(study):
            _stop(study, VaultStudy.Stopped.PRESENCE)
            stopped.append(study.slug)
            log.warning("study_stopped study=%s presence=True", study.slug)
    return stopped


def _has_open_days(study: VaultStudy) -> bool:
    closed = VaultDay.objects.filter(study=study, state=VaultDay.State.CLOSED)
    last = max([0, *closed.values_list("day", flat=True)])
    return study.plan.get("presence") is not None and last < study.definition["days"]


def _has_open_slots(study: VaultStudy) -> bool:
    slots = study.plan.get("slots")
    return slots is not None and "variance" in slots and study.slots_closed < len(clock_of(study))


def _stop(study: VaultStudy, reason: VaultStudy.Stopped) -> None:
    """Note why a study is stopped; nothing takes the place of what only people can end."""
    VaultStudy.objects.filter(pk=study.pk, stopped__in=["", *PASSING]).update(stopped=reason)
    study.refresh_from_db(fields=["stopped"])
