"""Opening studies to accounts, and closing them again. The ledger records every change."""

from datetime import date
from typing import Final

from django.contrib.auth.models import User
from django.db import transaction
from django.dispatch import Signal
from django.utils.translation import gettext

from reports.accounts.actions import COMMAND_LINE, AccessChangeError, check_may_change, lock_access
from reports.ledger.actions import record
from reports.ledger.models import LedgerKind
from reports.studies.grant_models import StudyGrant, today
from reports.studies.models import Study

ALL_STUDIES = "all studies"  # in the ledger, in the place of a slug; no slug has a blank
grant_withdrawn: Final = Signal()  # with `account` and `actor`; in the transaction that withdraws


@transaction.atomic
def give_grant(
    account: User, *, study: Study | None, until: date | None = None, by: User | None = None
) -> StudyGrant:
    """Open a study to an account; a grant that it has for it already is replaced.

    Parameters
    ----------
    study : None = all studies, also those to come
    until : last day in UTC; None = no end
    by : who changes it; None = anyone who has the shell of the server

    Raises
    ------
    AccessChangeError : the last day is over, or `by` may not change this account
    """
    lock_access()
    check_may_change(account, by=by)
    if until is not None and until < today():
        text = gettext(
            "The last day of access cannot be in the past. The date entered is %(day)s, but today is "
            "%(today)s (UTC)."
        )
        raise AccessChangeError(text % {"day": until, "today": today()})
    actor = COMMAND_LINE if by is None else by.get_username()
    grant, _ = StudyGrant.objects.update_or_create(
        user=account, study=study, defaults={"granted_by": actor, "until": until}
    )
    _record(grant, account, actor=actor, change="granted")
    return grant


@transaction.atomic
def withdraw_grant(grant: StudyGrant, *, by: User | None = None) -> None:
    """Close what a grant opened; nothing happens when it is gone already."""
    lock_access()
    account = grant.user
    check_may_change(account, by=by)
    actor = COMMAND_LINE if by is None else by.get_username()
    deleted, _ = StudyGrant.objects.filter(pk=grant.pk).delete()
    if deleted:
        _record(grant, account, actor=actor, change="withdrawn")
        grant_withdrawn.send(StudyGrant, account=account, actor=actor)


def _record(grant: StudyGrant, account: User, *, actor: str, change: str) -> None:
    record(
        LedgerKind.ACCESS_CHANGED,
        actor=actor,
        study="" if grant.study is None else grant.study.slug,
        facts={
            "account": account.get_username(),
            "change": change,
            "studies": ALL_STUDIES if grant.study is None else grant.study.slug,
            "until": None if grant.until is None else grant.until.isoformat(),
        },
    )
