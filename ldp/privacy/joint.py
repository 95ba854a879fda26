"""Values of joint indicators: one code for the values of two or three parts, or for that one has none.

The code counts in a mixed base: a part of k values has k + 1 digits, the last for "no value", and the first
part is the most significant. So everyone who is asked has a value, and the number of reports tells nothing
about who has values of the parts.

A part may be a number: its value is the side of the person's cut on which it lies, 0 below and 1 from it on.
With cuts drawn in proportion to their spacings, the share of people above is the mean, as a share of the
range of the number; so a combination with zones has the mean of each zone.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

SIDES = 2  # values of a number as a part


def joint_size(sizes: Sequence[int]) -> int:
    """Number of values of a joint indicator whose parts have `sizes` values."""
    return int(np.prod([size + 1 for size in sizes], dtype=np.int64))


def part_codes(codes: NDArray[np.int32], *, sizes: Sequence[int]) -> list[NDArray[np.int32]]:
    """Values of each part, shape (n,), from codes of combinations; `size` of a part without one."""
    found = np.unravel_index(codes, [size + 1 for size in sizes])
    return [part.astype(np.int32) for part in found]


def joint_codes(values: Sequence[NDArray[np.int32]], *, sizes: Sequence[int]) -> NDArray[np.int32]:
    """Code of each combination.

    Parameters
    ----------
    values : sequence of ndarray of int32, shape (n,); by part, in [0, size); anything else = no value
    sizes : sequence of int; number of values of each part

    Returns
    -------
    ndarray of int32, shape (n,); in [0, joint_size(sizes))
    """
    codes = np.zeros(values[0].shape, np.int32)
    for part, size in zip(values, sizes, strict=True):
        codes *= size + 1
        codes += np.where((part >= 0) & (part < size), part, size)
    return codes
