"""Names of accounts: how they are compared, and which ones are refused.

Two names are the same when they fold to the same text (NFKC, then case folding), so that no one passes for
another account with capitals, fullwidth letters or characters that cannot be seen.
"""

import unicodedata
from typing import Final

from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.utils.translation import gettext

NAME_MAX: Final = 150
DEMO_ACTOR: Final = "demo"
SIGN_IN: Final = "sign-in"  # the actor of what a first sign-in does
# Actors without an account have these names in the ledger. Others that act so have a blank in theirs,
# which no account has.
RESERVED: Final = frozenset({DEMO_ACTOR, SIGN_IN})
FILLERS: Final = frozenset("\u115f\u1160")  # letters, by their category, that are not drawn
# Their letters look alike: a name takes them from one alphabet only.
ALIKE: Final = frozenset({"LATIN", "GREEK", "CYRILLIC", "ARMENIAN", "CHEROKEE"})


def normalised(name: str) -> str:
    """Return a name as it is kept: fullwidth and other compatible forms become the plain ones."""
    return unicodedata.normalize("NFKC", name)


def folded(name: str) -> str:
    """Return the text by which names are compared."""
    return normalised(normalised(name).casefold())


def name_problem(name: str) -> str:
    """Say why no account can have a name, taken or not; empty if one can."""
    kept = normalised(name)
    try:  # letters, digits and @ . + - _: no character that is not drawn, but for fillers
        UnicodeUsernameValidator()(kept)
    except ValidationError as error:
        return str(error.messages[0])
    if len(kept) > NAME_MAX:
        return gettext("A name can have at most %(n)d characters.") % {"n": NAME_MAX}
    if FILLERS & set(kept) or len(_alphabets(kept)) > 1:
        return gettext("A name must use visible letters from a single alphabet. Choose another name.")
    if folded(kept) in RESERVED:
        text = gettext("The name %(name)s is reserved by the system. Choose another name.")
        return text % {"name": kept}
    return ""


def _alphabets(name: str) -> frozenset[str]:
    return ALIKE & {unicodedata.name(letter, "").partition(" ")[0] for letter in name}
