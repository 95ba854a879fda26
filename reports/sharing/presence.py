"""Presence by slot behind share links: the view is in the query of the link."""

from typing import Any, Final

from django.http import QueryDict
from django.urls import reverse

from reports.accounts.access_models import ShareLink
from reports.estimates.queries import Window
from reports.pages.presence import page_context
from reports.slots.queries import presence
from reports.slots.query import view_of
from reports.studies.models import Study

PRESENCE: Final = "presence"  # parameter of the query of such a link: "all"


def is_presence(query: QueryDict) -> bool:
    """Return whether a query names presence by slot instead of a report."""
    return PRESENCE in query


def asked_presence(query: QueryDict, study: Study) -> tuple[Window, str]:
    """Day of the view that a query asks, and the query of its link; WindowError if there is none."""
    view = view_of(query, presence(study))
    return Window(view.day, view.day), ShareLink.OF_SLOTS + view.query()


def presence_address(query: str, study: Study) -> str:
    """Address of the page that a link with this query shows, for readers of the study."""
    return f"{reverse('reports:presence', args=[study.slug])}?{query.removeprefix(ShareLink.OF_SLOTS)}"


def shared_presence(link: ShareLink) -> dict[str, Any]:
    """Return the context of a shared view."""
    study = link.indicator.study
    context = page_context(view_of(QueryDict(link.query), presence(study)), is_shared=True)
    return context | {"study": study, "link": link, "is_shared": True}
