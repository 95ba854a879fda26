"""Inner loop of the square wave. Callers check their arguments, as in `codes`."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ldp.codes import NO_ANSWER
from ldp.kernels.codes import remainder


@njit(cache=True, nogil=True)
def wave_codes(
    levels: NDArray[np.int32], words: NDArray[np.uint64], limits: NDArray[np.uint64], out: NDArray[np.uint16]
) -> int:
    """Uniform code of the level's window if the first word is below the threshold, else one outside of it.

    limits : threshold; the largest word that draws without bias from both kinds; number of codes of each
    kind and its reciprocal, those of the window first. Returns the number of rows to draw again, which
    depends on no level; they become NO_ANSWER.
    """
    redraws = 0
    for i in range(levels.shape[0]):
        if levels[i] < 0 or words[i, 1] > limits[1]:
            redraws += levels[i] >= 0
            out[i] = NO_ANSWER
            continue
        level = np.uint64(levels[i])
        if words[i, 0] < limits[0]:
            out[i] = np.uint16(level + remainder(words[i, 1], limits[2], limits[3]))
        else:
            code = remainder(words[i, 1], limits[4], limits[5])
            out[i] = np.uint16(code if code < level else code + limits[2])
    return redraws
