"""Data of an account in the main database beyond Django's row of it."""

from typing import Any

from django.contrib.auth.models import User
from django.db import models
from django.db.models import Q
from django.db.models.signals import post_save
from django.dispatch import receiver

from reports.accounts.names import RESERVED, folded


class AccountName(models.Model):
    """The folded name of an account: the database refuses a second account of it, however that is made."""

    folded = models.TextField(primary_key=True, help_text="reports.names.folded of the user name")
    account = models.OneToOneField(User, on_delete=models.CASCADE, related_name="name_row")
    ended_at = models.DateTimeField(
        null=True, blank=True, help_text="when it was last deactivated: what it was given before has ended"
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="account_name_not_reserved", condition=~Q(folded__in=sorted(RESERVED))
            ),
        ]

    def __str__(self) -> str:
        return self.folded


@receiver(post_save, sender=User, dispatch_uid="account_name")
def _keep_name(instance: User, update_fields: frozenset[str] | None = None, **_: Any) -> None:
    """Write the folded name with every account, however it was made or renamed."""
    if update_fields is not None and "username" not in update_fields:
        return
    name = folded(instance.username)
    row = AccountName.objects.filter(account=instance).first()
    if row is None:
        AccountName.objects.create(folded=name, account=instance)
    elif row.folded != name:
        AccountName.objects.filter(account=instance).update(folded=name)


def find_account(name: str) -> User | None:
    """Return the account whose name folds to the same text, if there is one."""
    row = AccountName.objects.select_related("account").filter(folded=folded(name)).first()
    return None if row is None else row.account
