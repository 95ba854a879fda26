"""Names in the language of the reader: French on pages in French, where a study has such names."""

from typing import TypeVar

from django.utils.translation import get_language

T = TypeVar("T")


def in_language(name: T, name_fr: T | None) -> T:
    """Return the French name (or list of names) if the active language is French and there is one."""
    return name_fr if name_fr and (get_language() or "").startswith("fr") else name
