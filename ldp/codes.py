"""Codes with their own meaning; apart from the kernels, so that reading tallies needs no compiler."""

from typing import Final

NO_ANSWER: Final = 65535
NO_COUNT: Final = -(2**15)  # in each place of a histogram report that does not exist
WORD_BITS: Final = 15  # of a report in a word of 16, so that no word with bits equals NO_ANSWER
