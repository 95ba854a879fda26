"""Rules of access: who may do what, and in which studies.

A role is a Django group; an account without one gets nothing. A role says what an account may do, a grant in
which study. Administrators and privacy officers see all studies and need none.
"""

from collections.abc import Callable
from enum import StrEnum
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, User
from django.db.models import Prefetch, QuerySet, prefetch_related_objects
from django.http import Http404, HttpRequest, HttpResponseBase

from reports.studies.grant_models import StudyGrant
from reports.studies.models import Study

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponseBase]
Somebody = AbstractBaseUser | AnonymousUser


class Role(StrEnum):
    OPERATOR = "operator"
    ANALYST = "analyst"
    ADMINISTRATOR = "administrator"
    PRIVACY_OFFICER = "privacy_officer"
    VIEWER = "viewer"


# Of every study; all others need a grant.
SEES_ALL = frozenset({Role.ADMINISTRATOR, Role.PRIVACY_OFFICER})
# Report pages.
READERS = SEES_ALL | {Role.ANALYST, Role.VIEWER}
# Numbers that leave the pages: files, and the API.
EXPORTERS = SEES_ALL | {Role.ANALYST}
# Ways to let others read: tokens and share links. A privacy officer reads, but opens nothing.
OPENERS = frozenset({Role.ADMINISTRATOR, Role.ANALYST})
# Read-only pages of administrators.
OVERSEERS = SEES_ALL


def fetch_rights(user: Somebody) -> None:
    """Read groups and grants of an account; later questions about this `user` read nothing again.

    Later changes are not seen: long tasks must read the account again. For lists of
    people: `prefetch_related("groups", "study_grants")`.
    """
    if isinstance(user, User):
        prefetch_related_objects([user], "groups", Prefetch("study_grants", StudyGrant.objects.order_by()))


def roles_of(user: Somebody) -> frozenset[str]:
    """Names of the roles of `user`; empty for strangers."""
    if not isinstance(user, User) or not user.is_active:
        return frozenset()
    return frozenset(group.name for group in user.groups.all()) & frozenset(Role)


def may_export(user: Somebody) -> bool:
    """Return whether `user` may download figures of the studies that are open to the account."""
    return bool(roles_of(user) & EXPORTERS)


def may_open(user: Somebody) -> bool:
    """Return whether `user` may let programs and people without an account read."""
    return bool(roles_of(user) & OPENERS)


def studies_for(user: Somebody, *roles: Role) -> QuerySet[Study]:
    """Studies that are open to `user` now, in which the account acts in one of these roles, by default any.

    An administrator who is an operator, too, uploads to granted studies only: `studies_for(user,
    Role.OPERATOR)`. Rights are read before the studies, not in one statement with them: that one takes longer
    to put together than a page has for all its statements.
    """
    acting = roles_of(user) & frozenset(roles or Role)
    if not acting or not isinstance(user, User):
        return Study.objects.none()
    granted = {grant.study_id for grant in user.study_grants.all() if grant.is_in_force}
    if acting & SEES_ALL or None in granted:
        return Study.objects.all()
    return Study.objects.filter(pk__in=[key for key in granted if key is not None])


def is_open_to(person: User, study_id: int, *roles: Role) -> bool:
    """Return `studies_for`, of one study: for lists."""
    acting = roles_of(person) & frozenset(roles or Role)
    if not acting or acting & SEES_ALL:
        return bool(acting)
    grants = person.study_grants.all()
    return any(grant.study_id in (None, study_id) and grant.is_in_force for grant in grants)


def study_for(user: Somebody, slug: str, *roles: Role) -> Study:
    """A study that is open to `user`, by `roles` as in `studies_for`.

    Http404 if there is none of that name, or it is not open: no one learns which.
    """
    found = studies_for(user, *roles).filter(slug=slug).first()
    if found is None:
        raise Http404
    return found


def require_role(*roles: Role) -> Callable[[View[P]], View[P]]:
    """Let only people with one of `roles` in; anonymous visitors sign in, others see 404.

    404 and not 403: who has no business with a page does not learn that it exists.
    """

    def decorate(view: View[P]) -> View[P]:
        @wraps(view)
        def guarded(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            fetch_rights(request.user)
            if not roles_of(request.user) & set(roles):
                raise Http404
            return view(request, *args, **kwargs)

        checked: Any = login_required(guarded)
        return checked  # type: ignore[no-any-return]

    return decorate
