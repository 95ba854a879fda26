"""Codes with a meaning of their own; apart from the kernels, so that reading tallies needs no compiler."""

from typing import Final

NO_ANSWER: Final = 65535
