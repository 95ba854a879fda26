"""Bounds of what the arithmetic of `ldp.geo.kernels` adds to the ideal noise; it says where they come from.

Apart from the kernels, so that reading a plan needs no compiler.
"""

from typing import Final

RADIUS_ERROR: Final = 2.6e-10  # in units of 1 / epsilon
ANGLE_ERROR: Final = 7.4e-10  # in radians
PLACE_ERROR: Final = 1e-11  # in squares
