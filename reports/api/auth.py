"""Reader of the API: a program with a token, or a person who is signed in on this site."""

from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import Http404, HttpRequest
from django.utils.translation import gettext
from ninja.errors import AuthenticationError
from ninja.security import APIKeyCookie, HttpBearer

from reports.base.problems import ProblemError
from reports.sharing import actions as access
from reports.studies.models import Study
from reports.studies.policies import EXPORTERS, OPENERS, Role, fetch_rights, may_export, studies_for


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Rights of a request: account, roles, and the one study that a token opens; None = all of them.

    token_id : of a program; None: the person asks in a browser
    """

    user: User
    roles: frozenset[Role] = EXPORTERS
    study_id: int | None = None
    token_id: int | None = None

    def studies(self, *units: Study.Units) -> QuerySet[Study]:
        """Return the studies of some units that may be read now."""
        found = studies_for(self.user, *self.roles).filter(units__in=units)
        return found if self.study_id is None else found.filter(pk=self.study_id)


class Token(HttpBearer):
    """A token of the API in the header Authorization; a wrong one is refused, also with a session."""

    def __call__(self, request: HttpRequest) -> Reader | None:
        header = request.headers.get("Authorization", "")
        if not header:
            return None
        scheme, _, text = header.partition(" ")
        return self.authenticate(request, text.strip() if scheme.lower() == "bearer" else "")

    def authenticate(self, _request: HttpRequest, token: str) -> Reader:
        found = access.token_of(token)
        if found is None:
            raise AuthenticationError
        return Reader(user=found.owner, roles=OPENERS, study_id=found.study_id, token_id=found.pk)


class Session(APIKeyCookie):
    """The session of a person who is signed in, for trying the API in a browser."""

    param_name = settings.SESSION_COOKIE_NAME

    def authenticate(self, request: HttpRequest, _key: str | None) -> Reader | None:
        user = request.user
        if not isinstance(user, User):
            return None
        fetch_rights(user)
        if not may_export(user):
            raise Http404  # as on every page: strangers do not learn which studies exist
        return Reader(user=user)


def reader_of(request: HttpRequest) -> Reader:
    """The reader whom the checks above let in."""
    reader: Reader = request.auth  # type: ignore[attr-defined]
    return reader


def study_of(request: HttpRequest, slug: str) -> Study:
    """The study of visitors, if the reader may read it; otherwise ProblemError (404)."""
    found = any_study_of(request, slug)
    if found.of_events:
        raise ProblemError(404, gettext("This study counts events, not visitors."))
    return found


def any_study_of(request: HttpRequest, slug: str) -> Study:
    """The study of an answer that makes sense for events, too; otherwise ProblemError (404)."""
    found = reader_of(request).studies(*Study.Units).filter(slug=slug).first()
    if found is None:
        raise ProblemError(404, gettext("No study has this name, or you do not have access to it."))
    return found
