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
        "Sends the extracts of granted studies, closes and undoes their days, and keeps their notes."
    ),
    Role.ANALYST: _(
        "Reads granted studies, takes files of them, and opens them to others by tokens and share links."
    ),
    Role.VIEWER: _("Reads the report pages of granted studies; no files, no tokens, no links."),
    Role.ADMINISTRATOR: _("Creates and closes studies, reads all of them, and gives rights to others."),
    Role.PRIVACY_OFFICER: _("Reads all studies, plans, statements and rights, and changes none of them."),
}


def role_words(roles: Collection[str]) -> list[str]:
    """Roles in words, always in the same order."""
    return [str(words) for role, words in ROLE_WORDS.items() if role in roles]
