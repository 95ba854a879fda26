"""TOML text to plain values: every number exact, a syntax error with its place."""

import re
import tomllib
from decimal import Decimal, InvalidOperation
from typing import Any

from reports.studies.studyfile.problems import Problems, StudyFileError
from reports.studies.studyfile.toml_bounds import MAX_BYTES, bound_of


def parse_toml(text: bytes, problems: Problems) -> dict[str, Any]:
    """Return the document; a syntax error ends everything, since nothing is left to check.

    Work and memory are bounded, for any text (`reports.studies.studyfile.toml_bounds`). StudyFileError for a
    syntax error, or more than any study file needs.
    """
    if len(text) > MAX_BYTES:
        problems.add("size", f"must be at most {MAX_BYTES // 1_000_000} MB", len(text))
        raise StudyFileError(problems.all())
    try:
        decoded = text.decode("utf-8-sig")
        if broken := bound_of(decoded):
            problems.add(*broken)
            raise StudyFileError(problems.all())
        return tomllib.loads(decoded, parse_float=_exact)
    except StudyFileError:  # a ValueError, too
        raise
    except UnicodeDecodeError as error:
        place = _place_of(text[: error.start].decode("utf-8", "replace"))
        problems.add(place, "must be UTF-8 text", f"byte 0x{text[error.start]:02x}")
    except tomllib.TOMLDecodeError as error:
        message, _, where = str(error).rpartition(" (at ")
        place = where.rstrip(")") if re.match(r"line \d+", where) else _place_of(decoded)
        problems.add(place, f"must be valid TOML: {message}")
    except (ValueError, RecursionError) as error:
        problems.add("text", f"must be valid TOML: {error}")
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
