"""Identity of this installation: a random code in the main database; a restored one has its backup's.

It distinguishes backups that several installations put into one folder. It is no secret.
"""

import secrets
from contextlib import suppress
from typing import Final

from django.db import DatabaseError

from mobility.operations.models import Installation

ONLY: Final = 1  # the row, of which there is no other
CODE_BYTES: Final = 16


def own_code() -> str:
    """The code of this installation, made when it is first asked for."""
    made, _ = Installation.objects.get_or_create(pk=ONLY, defaults={"code": _new()})
    return made.code


def known_code() -> str:
    """The code of this installation; empty: it has none yet."""
    with suppress(DatabaseError):  # a new one, without tables
        return Installation.objects.filter(pk=ONLY).values_list("code", flat=True).first() or ""
    return ""


def settle_code(*, before: str, brought: str, stays_other: bool) -> None:
    """After a restore: the main database has the code of the backup, unless this one keeps its own.

    Parameters
    ----------
    before : what it was before; empty: there was none
    brought : that of the backup; empty: it was made before there were codes
    stays_other : that which made the backup continues elsewhere, and this is another one
    """
    kept = "" if before == brought else before
    if stays_other:
        _keep(kept or _new())
    elif kept and not brought:
        _keep(kept)


def _keep(code: str) -> None:
    Installation.objects.update_or_create(pk=ONLY, defaults={"code": code})


def _new() -> str:
    return secrets.token_hex(CODE_BYTES)
