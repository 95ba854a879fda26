"""Who reads reports, and how a page finds what its address names."""

from django.contrib.auth.models import User
from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404

from reports.models import Indicator, Study
from reports.policies import Role, require_role

readers_only = require_role(Role.ANALYST, Role.ADMINISTRATOR)


def account(request: HttpRequest) -> User:
    """The account that asks; strangers get 404."""
    if not isinstance(request.user, User):
        raise Http404
    return request.user


def study_or_404(slug: str) -> Study:
    return get_object_or_404(Study, slug=slug)


def indicator_or_404(slug: str, *, among: list[Indicator]) -> Indicator:
    for indicator in among:
        if indicator.slug == slug:
            return indicator
    raise Http404
