"""Accounts that need a second factor, and those that have one."""

from allauth.mfa.models import Authenticator
from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User

from reports.studies.policies import Role, fetch_rights, roles_of

# Accounts that can change promises, or see all of them.
STRONG_ROLES = frozenset({Role.ADMINISTRATOR, Role.PRIVACY_OFFICER})
FACTORS = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)  # recovery codes only replace one


def factors_of(user: User) -> list[Authenticator]:
    """Second factors of `user`, oldest first."""
    return list(Authenticator.objects.filter(user=user, type__in=FACTORS).order_by("pk"))


def is_required(user: User | AnonymousUser) -> bool:
    """Return whether a role of `user` needs a second factor here."""
    if settings.MOBILITY_SECOND_FACTOR != "required":
        return False
    fetch_rights(user)  # a page asks for them again
    return bool(roles_of(user) & STRONG_ROLES)


def is_missing(user: User | AnonymousUser) -> bool:
    """Return whether `user` has to add a second factor before anything else."""
    return is_required(user) and not Authenticator.objects.filter(user_id=user.pk, type__in=FACTORS).exists()


def is_last_of_required(authenticator: Authenticator) -> bool:
    """Return whether `authenticator` is the only second factor of someone who needs one."""
    others = Authenticator.objects.filter(user_id=authenticator.user_id, type__in=FACTORS)
    return is_required(authenticator.user) and not others.exclude(pk=authenticator.pk).exists()
