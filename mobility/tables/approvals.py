"""Asking a second person for a sanitised table, and their decision.

Plans, undone days and tables share one second-person rule: reports/accounts/second_person.py.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext

from mobility.tables.models import TableRequest
from mobility.tables.options import TableError
from mobility.vault.models.subscribers import VaultStudy
from reports.accounts import second_person
from reports.ledger.actions import record
from reports.ledger.models import LedgerKind


class TableWaitsError(TableError):
    """The table is not written yet: a second person has to approve that first."""


def approved(exactly: TableRequest) -> TableRequest | None:
    """Return the request that allows to write this file with these options, if it was not used yet."""
    return _same(exactly).filter(is_approved=True, written_at=None).first()


def ask(exactly: TableRequest) -> TableWaitsError:
    """Ask a second person; the same again changes nothing. In a transaction of both databases.

    Parameters
    ----------
    exactly : a request that is not saved

    Returns
    -------
    what to tell anyone who asked
    """
    asked = _same(exactly).filter(is_approved=None).first()
    if asked is None:
        asked = exactly
        asked.save()
        tell(asked, what="asked", by=asked.asked_by)
    words = gettext(
        "The table has not been written. Request %(n)s needs approval from a second person. An "
        "administrator or a privacy officer can approve it on the study's page, under Administration. "
        "Then run the same command again."
    )
    return TableWaitsError(words % {"n": asked.pk})


def waiting(study: VaultStudy | None = None) -> list[TableRequest]:
    """Requests that wait for a second person, of a study or of all that are open, oldest first."""
    found = TableRequest.objects.filter(is_approved=None, study__closed_at=None).select_related("study")
    return list(found if study is None else found.filter(study=study))


def obstacle(asked: TableRequest, *, by: str) -> str:
    """Say why an account cannot approve a request; empty if it can."""
    own = gettext("%(name)s made this request, so another person must approve it.") % {"name": asked.asked_by}
    return second_person.obstacle(by, authors=[asked.asked_by], of_author=own)


def approve(asked: TableRequest, *, by: str) -> None:
    """Allow that the table is written once.

    TableError if `by` is no second person, or it does not wait.
    """
    with _locked(asked) as locked:
        reason = obstacle(locked, by=by)
        if reason:
            raise TableError(reason)
        _decide(locked, is_approved=True, by=by)


def refuse(asked: TableRequest, *, by: str) -> None:
    """Decide that the table is not written; TableError if it does not wait."""
    with _locked(asked) as locked:
        _decide(locked, is_approved=False, by=by)


def tell(asked: TableRequest, *, what: str, by: str) -> None:
    """Add to the ledger: no name or hash of the file, which could tell what is in it."""
    facts, options = asked.facts, asked.options
    told: dict[str, Any] = {
        "what": what,
        "rows": facts["rows"],
        "columns": facts["columns"],
        "dropped": list(options["dropped"]),
        "level": options["level"],
        "radius_m": options["radius_m"],
        "epsilon_per_m": facts["epsilon_per_m"],
    }
    if asked.pk is not None:  # it was asked for, where two people work
        told["request"] = asked.pk
    record(LedgerKind.TABLE_SANITISED, actor=by, study=asked.study.slug, facts=told)


def _same(exactly: TableRequest) -> QuerySet[TableRequest]:
    return TableRequest.objects.filter(
        study=exactly.study, file_sha256=exactly.file_sha256, options=exactly.options
    )


@contextmanager
def _locked(asked: TableRequest) -> Iterator[TableRequest]:
    """Lock a request that waits, in both databases or in none: the ledger is written and committed last."""
    with transaction.atomic(using="default"), transaction.atomic(using="vault"):
        VaultStudy.objects.select_for_update().get(pk=asked.study_id)
        locked = TableRequest.objects.select_related("study").get(pk=asked.pk)
        if locked.is_approved is not None:
            raise TableError(
                gettext("%(name)s has already approved or refused this request.")
                % {"name": locked.decided_by}
            )
        yield locked
    asked.refresh_from_db()


def _decide(asked: TableRequest, *, is_approved: bool, by: str) -> None:
    asked.is_approved, asked.decided_by, asked.decided_at = is_approved, by, timezone.now()
    asked.save()
    tell(asked, what="approved" if is_approved else "refused", by=by)
