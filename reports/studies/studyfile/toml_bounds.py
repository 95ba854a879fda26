"""Bounds of TOML text, checked first: its parser's time and memory grow with the square of a depth."""

import re
from typing import Final

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


def bound_of(text: str) -> tuple[str, str, object] | None:
    """Find the first bound that a text breaks, in time that grows with its length only.

    Its place, the rule and what was found; None if the text keeps all bounds.
    """
    bare = _OPAQUE.sub(lambda found: "\n" * found.group().count("\n"), text)
    if number := _LONG_NUMBER.search(bare):
        line = 1 + bare.count("\n", 0, number.start())
        return f"line {line}", "must have numbers of at most 64 digits", None
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
            return f"line {line}", f"must be nested at most {MAX_DEPTH} deep", max(depth, parts)
        if keys > MAX_KEYS:
            return f"line {line}", f"must have at most {MAX_KEYS} keys, tables and lists", keys
    return None
