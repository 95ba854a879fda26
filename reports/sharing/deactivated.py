"""End access of a deactivated account for good, and what a person opened of a study that is closed to them.

Enabling the account again, or a new grant, brings no session, token or link back.
So they end a second time then: a sign-in or a token may have been under way while the account was inactive.
"""

from typing import Any, Final

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.signals import post_save, pre_save
from django.dispatch import receiver
from django.utils import timezone

from reports.accounts.grants import grant_withdrawn
from reports.accounts.models import AccountName
from reports.accounts.sessions import end_sessions
from reports.sharing.revoking import revoke_all
from reports.studies.policies import OPENERS, fetch_rights, is_open_to

ACTOR: Final = "account disabled"  # no account has a name with a blank


@receiver(post_save, sender=User, dispatch_uid="deactivated")
def _saved(instance: User, update_fields: frozenset[str] | None = None, **_: Any) -> None:
    if not instance.is_active and (update_fields is None or "is_active" in update_fields):
        end_everything(instance)


@receiver(pre_save, sender=User, dispatch_uid="reactivated")
def _comes_back(instance: User, update_fields: frozenset[str] | None = None, **_: Any) -> None:
    if instance.is_active and (update_fields is None or "is_active" in update_fields):
        before = User.objects.filter(pk=instance.pk, is_active=False).first()
        if before is not None:
            end_everything(before)


@receiver(grant_withdrawn, dispatch_uid="grant withdrawn")
def _grant_withdrawn(account: User, actor: str, **_: Any) -> None:
    fetch_rights(account)
    revoke_all(account, actor=actor, unless=lambda study_id: is_open_to(account, study_id, *OPENERS))


@transaction.atomic
def end_everything(account: User) -> None:
    """End the sessions, tokens and share links of an account permanently."""
    revoke_all(account, actor=ACTOR)
    end_sessions(account)
    AccountName.objects.filter(account=account).update(ended_at=timezone.now())
