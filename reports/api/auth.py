"""Who asks: a program with a token, or a person who is signed in on this site."""

from dataclasses import dataclass

from django.conf import settings
from django.http import Http404, HttpRequest
from ninja.errors import AuthenticationError
from ninja.security import APIKeyCookie, HttpBearer

from reports.models import Study
from reports.policies import may_read
from reports.services import access


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """What may be read: one study, or all of them."""

    study_id: int | None = None

    def sees(self, study: Study) -> bool:
        return self.study_id is None or study.pk == self.study_id


class Token(HttpBearer):
    """A token of the API in the header Authorization; a wrong one is refused even beside a session."""

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
        return Reader(study_id=found.study_id)


class Session(APIKeyCookie):
    """The session of a person who is signed in, for trying the API in a browser."""

    param_name = settings.SESSION_COOKIE_NAME

    def authenticate(self, request: HttpRequest, _key: str | None) -> Reader | None:
        if not request.user.is_authenticated:
            return None
        if not may_read(request.user):
            raise Http404  # as on every page: who has no business here does not learn what there is
        return Reader()


def reader_of(request: HttpRequest) -> Reader:
    """The reader whom the checks above let in."""
    reader: Reader = request.auth  # type: ignore[attr-defined]
    return reader
