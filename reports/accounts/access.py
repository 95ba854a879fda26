"""Readers of reports, and how a page finds the study in its address."""

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import Http404, HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from reports.accounts.access_models import SavedView
from reports.base.problems import ExplainedHttp404
from reports.studies.models import Indicator, Study
from reports.studies.policies import (
    EXPORTERS,
    OPENERS,
    OVERSEERS,
    READERS,
    SEES_ALL,
    Role,
    Somebody,
    require_role,
    roles_of,
    studies_for,
    study_for,
)

readers_only = require_role(*READERS)
exporters_only = require_role(*EXPORTERS)
openers_only = require_role(*OPENERS)
overseers_only = require_role(*OVERSEERS)
administrators_only = require_role(Role.ADMINISTRATOR)


def sees_all(user: Somebody) -> bool:
    """Return whether every study is open to an account, so that each may be named."""
    return bool(roles_of(user) & SEES_ALL)


def account(request: HttpRequest) -> User:
    """The account that asks; strangers get 404."""
    if not isinstance(request.user, User):
        raise Http404
    return request.user


def study_or_404(request: HttpRequest, slug: str) -> Study:
    """The study of visitors of a report page, if it is open to the account that asks."""
    return study_of_visitors(any_study_or_404(request, slug))


def any_study_or_404(request: HttpRequest, slug: str) -> Study:
    """The study of a page that makes sense for events, too."""
    return study_for(request.user, slug, *READERS)


def study_of_visitors(found: Study) -> Study:
    """The study; ExplainedHttp404 if it counts events, which have none of the figures of people."""
    if found.of_events:
        text = gettext(
            "This page is not available for “%(name)s”, because that study counts events, not people. Open "
            "the study for its figures by day, week, month, quarter and year."
        )
        way = reverse("reports:study", args=[found.slug])
        raise ExplainedHttp404(text % {"name": found.shown_name}, way=way)
    return found


def readable(request: HttpRequest) -> QuerySet[Study]:
    """Studies of visitors whose report pages are open to the account that asks."""
    return studies_for(request.user, *READERS).filter(units=Study.Units.VISITORS)


def readable_events(request: HttpRequest) -> QuerySet[Study]:
    """Studies of events whose report pages are open to the account that asks."""
    return studies_for(request.user, *READERS).filter(units=Study.Units.EVENTS)


def indicator_or_404(slug: str, *, among: list[Indicator]) -> Indicator:
    for indicator in among:
        if indicator.slug == slug:
            return indicator
    raise Http404


def saved_views_of(user: User) -> QuerySet[SavedView]:
    """Views that a person has kept, by name."""
    return SavedView.objects.filter(owner=user)
