"""Formats of an extract: the delimiter of its columns, and the pattern of its timestamps."""

from typing import Final, Literal, get_args

from django.utils.translation import gettext_noop as _

from reports.base.reasons import Reason

Delimiter = Literal["comma", "semicolon", "tab", "pipe"]
DELIMITERS: Final[tuple[Delimiter, ...]] = get_args(Delimiter)

ISO: Final = "iso"
EPOCH_S: Final = "epoch_s"
EPOCH_MS: Final = "epoch_ms"
NEEDED: Final = ("%Y", "%m", "%d", "%H", "%M")
OPTIONAL: Final = ("%S", "%f", "%z")
TIMESTAMP_RULE: Final = Reason(
    _(
        'must be "%(iso)s", "%(epoch_s)s", "%(epoch_ms)s", or a pattern such as "%(pattern)s": %(needed)s '
        "once each, and %(optional)s if they are there"
    ),
    iso=ISO,
    epoch_s=EPOCH_S,
    epoch_ms=EPOCH_MS,
    pattern="%d/%m/%Y %H:%M:%S",
    needed=" ".join(NEEDED),
    optional=" ".join(OPTIONAL),
)


def pattern_parts(pattern: str) -> list[str]:
    """Directives (`%d`) and the single characters between them."""
    parts, at = [], 0
    while at < len(pattern):
        length = 2 if pattern[at] == "%" else 1
        parts.append(pattern[at : at + length])
        at += length
    return parts


def timestamp_problem(text: str) -> str | None:
    """Return the rule that a timestamp format breaks, or None.

    Directives mean what they mean to `datetime.strptime`. Years have four digits; other numbers may have one
    where another character follows, as in 1/6/2017. A fraction (%f) follows the seconds, and an offset
    (%z: Z, +HH, +HHMM or +HH:MM) comes last; without it the time is local time of the study.
    """
    if text in (ISO, EPOCH_S, EPOCH_MS):
        return None
    parts = pattern_parts(text)
    if sorted(part for part in parts if part in NEEDED) != sorted(NEEDED):
        return TIMESTAMP_RULE
    if not all(part in NEEDED or part in OPTIONAL or _is_between(part) for part in parts):
        return TIMESTAMP_RULE
    if any(parts.count(part) > 1 for part in OPTIONAL):
        return TIMESTAMP_RULE
    if "%z" in parts[:-1]:
        return Reason(_("must end with %(part)s"), part="%z")
    if "%f" in parts and parts[max(parts.index("%f") - 2, 0)] != "%S":
        return Reason(
            _("must have %(fraction)s after %(seconds)s and a point, as in %(both)s"),
            fraction="%f",
            seconds="%S",
            both="%S.%f",
        )
    return None


def _is_between(part: str) -> bool:
    """Return whether a character may separate directives: a digit could be one of theirs."""
    return len(part) == 1 and part.isascii() and part.isprintable() and not part.isdigit() and part != "%"
