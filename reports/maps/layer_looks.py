"""Looks and names of base layers: water, roads and borders are known by the names of their files."""

import re
from collections.abc import Mapping
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

OTHER: Final = "other"
# A layer has the look of the first word of its name that is here.
_LOOKS: Final[Mapping[str, str]] = {
    word: look
    for look, words in {
        "water": ("water", "waters", "sea", "lakes", "rivers", "river", "coast", "waterways"),
        "road": ("roads", "road", "motorways", "streets", "railways", "rails"),
        "border": ("borders", "border", "boundaries", "frontiers"),
    }.items()
    for word in words
}
_NAMES: Final[Mapping[str, str | Promise]] = {
    "water": gettext_lazy("Water"),
    "lakes": gettext_lazy("Lakes"),
    "rivers": gettext_lazy("Rivers"),
    "coast": gettext_lazy("Coast"),
    "roads": gettext_lazy("Roads"),
    "railways": gettext_lazy("Railways"),
    "borders": gettext_lazy("Borders"),
}


def look_of(name: str) -> str:
    """Return "water", "road", "border" or "other"."""
    words = re.findall(r"[^\W\d_]+", name.casefold())
    return next((_LOOKS[word] for word in words if word in _LOOKS), OTHER)


def shown_name(name: str) -> str:
    """Name of a layer for readers: in their language where it is a common one, else that of its file."""
    return str(_NAMES.get(name.casefold(), name))
