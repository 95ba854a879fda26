"""Removing the demo: its study in both zones, its keys, its staged files, its extract, and what leads to it.

A study that people set up is closed, never removed: its reports stay. The demo's people are made up, so
nothing is lost, and demo figures do not stay among real ones. Every step can be repeated.
The accounts stay, since who removes the demo has one of them; the file with their passwords goes.
"""

import logging
import shutil

from django.db import transaction

from mobility.base.errors import MobilityError
from mobility.batches.publication.receipts import record_missing
from mobility.demo import files
from mobility.plans.closing import OF_BATCH, OF_STUDY, Leave, close_study
from mobility.vault.compaction import compact
from mobility.vault.models.batch import Batch
from mobility.vault.models.subscribers import VaultStudy
from reports.ledger.actions import record
from reports.ledger.models import LedgerKind
from reports.sharing.actions import forget_views_of_study
from reports.sharing.revoking import record_reads
from reports.studies.models import Study
from reports.transfer.studies import delete_study_rows

log = logging.getLogger(__name__)


class NoDemoError(MobilityError):
    """There is no demo to remove; a study that a person created under its name is none."""


def demo_study() -> Study:
    """The demo's study.

    Raises
    ------
    NoDemoError
    """
    found = Study.objects.filter(is_demo=True).first()
    if found is None:
        raise NoDemoError("there is no demo study to remove (`make demo` creates it)")
    return found


def remove_demo(*, by: str) -> None:
    """Remove the demo permanently.

    Raises
    ------
    NoDemoError : nothing was removed
    StudyNotClosedError : a batch is being merged; nothing was removed
    """
    study = demo_study()
    row = VaultStudy.objects.filter(slug=study.slug).first()
    if row is not None:
        # Closing destroys the keys before anything else, so that nothing readable outlives an interruption.
        close_study(row, by=by, leave=Leave(cancel_batches=True, drop_unpublished=True, lost_key=True))
        record_missing()  # receipts of its batches, which go with it
        row.delete()
        compact(*OF_STUDY, *OF_BATCH, Batch, VaultStudy)
    files.accounts_file().unlink(missing_ok=True)
    shutil.rmtree(files.folder(), ignore_errors=True)
    forget_views_of_study(study)
    record_reads(study=study)
    # Last: without the study there is no demo whose removal could be repeated.
    with transaction.atomic():
        delete_study_rows(study)
        record(LedgerKind.STUDY_DELETED, actor=by, study=study.slug)
    log.info("demo_removed")
