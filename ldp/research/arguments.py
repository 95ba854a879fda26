"""Values of the command line, from their texts."""

import argparse
from decimal import Decimal, InvalidOperation
from typing import Final

MAX_REPORTS: Final = 64  # numbers that two rounds have for their reports


def number(text: str) -> Decimal:
    """Return a finite number, exact."""
    try:
        found = Decimal(text)
    except InvalidOperation:
        found = Decimal("nan")
    if not found.is_finite():
        raise argparse.ArgumentTypeError(f"must be a finite number, got {text!r}")
    return found


def count(text: str) -> int:
    """Return a number of reports."""
    found = int(text)
    if not 1 <= found <= MAX_REPORTS:
        raise argparse.ArgumentTypeError(f"must be in [1, {MAX_REPORTS}], got {text}")
    return found


def key(text: str) -> bytes:
    """Return a key of 128 bits from its hexadecimal digits."""
    found = bytes.fromhex(text)
    if len(found) != 16:
        raise argparse.ArgumentTypeError(f"key must have 16 bytes, got {len(found)}")
    return found
