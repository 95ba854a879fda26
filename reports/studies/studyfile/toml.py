"""TOML text to plain values: every number exact, a syntax error with its place.

Text has bounds, checked first: the parser's time and memory grow with the square of a depth.
"""

import re
import tomllib
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from django.utils.translation import gettext_noop as _

from reports.base.reasons import Reason
from reports.studies.studyfile.problems import Problems, StudyFileError

MAX_BYTES: Final = 2_000_000
MAX_DEPTH: Final = 16  # parts of a dotted key, and brackets inside of brackets
MAX_KEYS: Final = 100_000  # with every part of a dotted one, every table and every list
# Parts with any signs: comments and the four kinds of strings, also unfinished ones.
_OPAQUE: Final = re.compile(
    r'#[^\n]*|"""(?:[^\\]|\\.)*?(?:"""|\Z)|\'\'\'.*?(?:\'\'\'|\Z)|"(?:[^"\\\n]|\\.)*"?|\'[^\'\n]*\'?',
    re.DOTALL,
)
# Those in hexadecimal digits are read at any length, and then cannot be written in a message.
_LONG_NUMBER: Final = re.compile(r"(?<![\w-])[0-9][0-9A-Za-z_]{64}")
_SIGNS: Final = re.compile(r"[\[\]{}.=\n,]")
_OPENING: Final = frozenset("[{")
_COUNTED: Final = frozenset("=.[{")
_CLOSING: Final = frozenset("]}")


def parse_toml(text: bytes, problems: Problems) -> dict[str, Any]:
    """Return the document; a syntax error ends everything, since nothing is left to check.

    Work and memory are bounded, for any text. StudyFileError for a syntax error, or more than any study file
    needs.
    """
    if len(text) > MAX_BYTES:
        problems.add("size", Reason(_("must be at most %(most)s MB"), most=MAX_BYTES // 1_000_000), len(text))
        raise StudyFileError(problems.all())
    try:
        decoded = text.decode("utf-8-sig")
        if broken := _bound_of(decoded):
            problems.add(*broken)
            raise StudyFileError(problems.all())
        return tomllib.loads(decoded, parse_float=_exact)
    except StudyFileError:  # a ValueError, too
        raise
    except UnicodeDecodeError as error:
        place = _place_of(text[: error.start].decode("utf-8", "replace"))
        problems.add(place, _("must be UTF-8 text"), f"byte 0x{text[error.start]:02x}")
    except tomllib.TOMLDecodeError as error:
        message, _at, where = str(error).rpartition(" (at ")
        place = where.rstrip(")") if re.match(r"line \d+", where) else _place_of(decoded)
        problems.add(place, Reason(_("must be valid TOML: %(problem)s"), problem=str(message)))
    except (ValueError, RecursionError) as error:
        problems.add("text", Reason(_("must be valid TOML: %(problem)s"), problem=str(error)))
    raise StudyFileError(problems.all())


def _place_of(text_before: str) -> str:
    lines = text_before.split("\n")
    return f"line {len(lines)}, column {len(lines[-1]) + 1}"


def _exact(text: str) -> Decimal:
    """Return a TOML float digit by digit; what no Decimal can hold is refused as not a number."""
    try:
        return Decimal(text)
    except InvalidOperation:
        return Decimal("NaN")


def _bound_of(text: str) -> tuple[str, str, object] | None:
    """Find the first bound that a text breaks, in time that grows with its length only.

    Its place, the rule and what was found; None if the text keeps all bounds.
    """
    bare = _OPAQUE.sub(lambda found: "\n" * found.group().count("\n"), text)
    if number := _LONG_NUMBER.search(bare):
        line = 1 + bare.count("\n", 0, number.start())
        return f"line {line}", _("must have numbers of at most 64 digits"), None
    depth, parts, keys, line = 0, 1, 0, 1
    for found in _SIGNS.finditer(bare):
        sign = found.group()
        if sign in _OPENING:
            depth += 1
        elif sign in _CLOSING:
            depth -= 1
        parts = parts + 1 if sign == "." else 1
        keys += sign in _COUNTED
        line += sign == "\n"
        if max(depth, parts) > MAX_DEPTH:
            return (
                f"line {line}",
                Reason(_("must be nested at most %(most)s deep"), most=MAX_DEPTH),
                max(depth, parts),
            )
        if keys > MAX_KEYS:
            return (
                f"line {line}",
                Reason(_("must have at most %(most)s keys, tables and lists"), most=str(MAX_KEYS)),
                keys,
            )
    return None
