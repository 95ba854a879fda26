"""Roles in words."""

from collections.abc import Collection

from django.utils.translation import gettext_lazy as _

from reports.studies.policies import Role

ROLE_WORDS = {
    Role.OPERATOR: _("operator"),
    Role.ANALYST: _("analyst"),
    Role.VIEWER: _("viewer"),
    Role.ADMINISTRATOR: _("administrator"),
    Role.PRIVACY_OFFICER: _("privacy officer"),
}
ROLE_MEANINGS = {
    Role.OPERATOR: _(
        "Can upload extracts, close days, undo a day's uploads and edit notes on days, in the "
        "studies they have access to."
    ),
    Role.ANALYST: _(
        "Can read the studies they have access to, download the data, and share the studies through "
        "tokens and share links."
    ),
    Role.VIEWER: _(
        "Can read the report pages of the studies they have access to. Cannot download data or create "
        "tokens or share links."
    ),
    Role.ADMINISTRATOR: _(
        "Can create and close studies, read all studies, and manage accounts and their access."
    ),
    Role.PRIVACY_OFFICER: _(
        "Can read all studies, plans, statements and access rights, and can decide on the requests of "
        "others (plans, caps and days to undo), but cannot change anything else."
    ),
}


def role_words(roles: Collection[str]) -> list[str]:
    """Roles in words, always in the same order."""
    return [str(words) for role, words in ROLE_WORDS.items() if role in roles]
