"""What every page knows."""

from django.http import HttpRequest


def site(request: HttpRequest) -> dict[str, object]:
    """Roles of the visitor, for the navigation."""
    from reports import policies

    return {"roles": policies.roles_of(request.user)}
