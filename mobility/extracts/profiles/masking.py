"""Masking of a file's sample: identifiers are recognised by form, and only their shape is shown."""

import re
from collections.abc import Sequence
from typing import Final

from django.utils.translation import ngettext

DIGITS_OF_IDENTIFIER: Final = 6
FEW: Final = 30  # distinct values of a column that is a classification
LONGEST_SHOWN: Final = 60
SEVERAL: Final = 3  # subscribers that share a text which is about none of them
DOT = "•"
_DIGIT = re.compile(r"\d")
_NAME = re.compile(r"[^\W\d_][\s,.]+[^\W\d_]")  # two words, or an initial and a word
_DATE = re.compile(r"\d{4}([-/.])\d\d?\1\d\d?|\d\d?([-/.])\d\d?\2\d{4}")


def shape(text: str) -> str:
    """Dots instead of characters, and how many there are; an empty text stays empty."""
    if not text:
        return ""
    n = len(text)
    if text.isdigit():
        what = ngettext("%(n)s digit", "%(n)s digits", n)
    elif text.isalpha():
        what = ngettext("%(n)s letter", "%(n)s letters", n)
    else:
        what = ngettext("%(n)s character", "%(n)s characters", n)
    return f"{DOT * min(n, 12)} ({what % {'n': n}})"


def is_identifier(text: str) -> bool:
    """Return whether one text looks like an identifier: an address, very long, or many digits but no date."""
    if len(text) > LONGEST_SHOWN or "@" in text:
        return True
    return len(_DIGIT.findall(text)) >= DIGITS_OF_IDENTIFIER and _DATE.fullmatch(text) is None


def shows_people(texts: Sequence[str], subscribers: Sequence[str]) -> bool:
    """Return whether the texts of a column look like identifiers or names, or otherwise distinguish people.

    Parameters
    ----------
    subscribers : of the same rows; none until their column is known, and then every text
        could be a person's

    Notes
    -----
    These are looks: a surname that many subscribers share passes for a classification.
    """
    people: dict[str, set[str]] = {text: set() for text in texts if text}
    if len(people) > FEW or any(is_identifier(text) or _NAME.search(text) for text in people):
        return True
    for text, subscriber in zip(texts, subscribers, strict=False):
        if text and subscriber:
            people[text].add(subscriber)
    return any(len(those) < SEVERAL for those in people.values())
