"""Who may do what. Three roles are Django groups; an account without a group gets nothing."""

from collections.abc import Callable
from enum import StrEnum
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, User
from django.http import Http404, HttpRequest, HttpResponseBase

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponseBase]


class Role(StrEnum):
    OPERATOR = "operator"
    ANALYST = "analyst"
    ADMINISTRATOR = "administrator"


READERS = frozenset({Role.ANALYST, Role.ADMINISTRATOR})


def roles_of(user: AbstractBaseUser | AnonymousUser) -> frozenset[str]:
    """Names of the roles of `user`; empty for strangers."""
    if not isinstance(user, User) or not user.is_active:
        return frozenset()
    return frozenset(user.groups.filter(name__in=list(Role)).values_list("name", flat=True))


def may_read(user: AbstractBaseUser | AnonymousUser) -> bool:
    """Whether `user` may read reports."""
    return bool(roles_of(user) & READERS)


def require_role(*roles: Role) -> Callable[[View[P]], View[P]]:
    """Let only people with one of `roles` in; anonymous visitors sign in, others see 404.

    404 and not 403: who has no business with a page does not learn that it exists.
    """

    def decorate(view: View[P]) -> View[P]:
        @wraps(view)
        def guarded(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            if not roles_of(request.user) & set(roles):
                raise Http404
            return view(request, *args, **kwargs)

        checked: Any = login_required(guarded)
        return checked  # type: ignore[no-any-return]

    return decorate
