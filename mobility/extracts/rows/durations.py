"""Duration of a visit to its band: the daily indicator `visit_duration`."""

import numpy as np
from numpy.typing import NDArray

from mobility.extracts.rows.events import NO_VALUE
from reports.studies.studyfile import VISIT_DURATION_BANDS

HOUR_S = 3600
LONGEST_S = 18 * HOUR_S


def duration_codes(stay_s: NDArray[np.uint32]) -> NDArray[np.uint16]:
    """Code of the band of each stay in seconds: [1, 2) h is 0 ... [9, 10) h is 8, [10, 18] h is the last.

    Stays under an hour or over 18 hours belong to no band: they are visitors without this answer.
    """
    last = len(VISIT_DURATION_BANDS) - 1
    codes = np.minimum(stay_s // HOUR_S - 1, last).astype(np.uint16)
    codes[(stay_s < HOUR_S) | (stay_s > LONGEST_S)] = NO_VALUE
    return codes
