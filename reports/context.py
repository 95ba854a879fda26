"""What every page knows."""

from django.http import HttpRequest


def site(request: HttpRequest) -> dict[str, object]:
    """Roles of the visitor, and what pages may offer to them."""
    from reports import policies

    roles = policies.roles_of(request.user)
    return {
        "roles": roles,
        "is_reader": bool(roles & policies.READERS),
        "is_overseer": bool(roles & policies.OVERSEERS),
        "may_export": bool(roles & policies.EXPORTERS),
        "may_open": bool(roles & policies.OPENERS),
    }
