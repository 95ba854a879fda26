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
        "Uploads extracts to granted studies, closes and undoes their days, and maintains their notes."
    ),
    Role.ANALYST: _(
        "Reads granted studies, downloads their data, and shares them through tokens and share links."
    ),
    Role.VIEWER: _("Reads the report pages of granted studies. No downloads, tokens or share links."),
    Role.ADMINISTRATOR: _(
        "Creates and closes studies, reads all studies, and manages accounts and their access."
    ),
    Role.PRIVACY_OFFICER: _(
        "Reads all studies, plans, statements and access rights. Cannot change any of them."
    ),
}


def role_words(roles: Collection[str]) -> list[str]:
    """Roles in words, always in the same order."""
    return [str(words) for role, words in ROLE_WORDS.items() if role in roles]
