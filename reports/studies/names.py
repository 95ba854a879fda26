"""Names in the language of the reader: French on pages in French, where a study has such names."""

from collections.abc import Sequence
from itertools import repeat
from typing import Final, TypeVar

from django.utils.translation import get_language, gettext

T = TypeVar("T")
# Categories of `visit_duration` as files have them: hours from and to; only the last has its end, too.
HOURS_OF_BAND: Final = {f"Duration {h}h": (h - 1, h) for h in range(2, 11)} | {"Duration 10h-18h": (10, 18)}
COMBINED: Final = " / "  # between the names of the parts of a combination


def in_language(name: T, name_fr: T | None) -> T:
    """Return the French name (or list of names) if the active language is French and there is one."""
    return name_fr if name_fr and (get_language() or "").startswith("fr") else name


def category_name(name: str, name_fr: str | None) -> str:
    """Return the name of a category in the active language: bands of durations in words."""
    shown = in_language(name, name_fr)
    parts = shown.split(COMBINED)
    if HOURS_OF_BAND.keys().isdisjoint(parts):
        return shown
    return COMBINED.join(map(_in_words, parts))


def category_names(names: Sequence[str], names_fr: Sequence[str] | None) -> list[str]:
    """Return names as of `category_name`."""
    return list(map(category_name, names, names_fr or repeat(None)))


def _in_words(name: str) -> str:
    if name not in HOURS_OF_BAND:
        return name
    start, end = HOURS_OF_BAND[name]
    return gettext("%(start)d to %(end)d hours") % {"start": start, "end": end}
