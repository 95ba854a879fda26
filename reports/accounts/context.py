"""Context of every page."""

from django.conf import settings
from django.http import HttpRequest

from reports.help.chapters import chapter_of
from reports.studies import policies


def site(request: HttpRequest) -> dict[str, object]:
    """Roles of the visitor, and what pages may offer to them."""
    roles = policies.roles_of(request.user)
    has_reports = settings.HAS_REPORTS
    match = request.resolver_match
    return {
        "roles": roles,
        "help_chapter": chapter_of(match.view_name if match else ""),
        "has_reports": has_reports,
        "analyst_url": settings.MOBILITY_ANALYST_URL,
        "is_reader": has_reports and bool(roles & policies.READERS),
        "is_overseer": bool(roles & policies.OVERSEERS),
        "may_export": has_reports and bool(roles & policies.EXPORTERS),
        "may_open": has_reports and bool(roles & policies.OPENERS),
    }
