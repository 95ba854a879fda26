"""Do the shares of all values differ between two windows? One chi-square test of a whole table.

Where it is known which reports two windows share, their difference is a sum of independent parts of visitors
(`ldp.estimation.windows.pieces_of`): of one window only, of both, of the other only. With factors c_s that
add up to 0, estimates f_s of the parts and orthonormal contrasts U of the k values

    z = U sum_s c_s f_s,   Var(z) = U (sum_s c_s^2 (Cov(f_s) + (f_s - f) (f_s - f)' / n_s)) U',

and z' Var(z)^-1 z is chi-square with k - 1 degrees of freedom if both windows have the same shares f. All
covariances are exact, of the noise and of who was asked, at the frequencies of each part made consistent. So
people who came in both windows, and repeat their report, are counted as they are. The visitors are taken as
a sample of people like them, as in the test of association: two sets of people never agree to the last one.
So the sizes n_s of the parts vary, too, which matters where people of both windows differ from the others.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp.errors import FewReportsError
from ldp.estimation.estimators import ENDLESS, pure_frequencies
from ldp.estimation.joint.association import Association, chi_square_tail, contrasts
from ldp.estimation.joint.linear import LinearChannel, frequency_covariances
from ldp.estimation.windows import Part

LEAST_SUPPORT: Final = 5  # reports that support a value which no one has, on average: then sums are normal


def table_change(
    classes: Sequence[tuple[Sequence[tuple[float, Part]], LinearChannel]], *, common: NDArray[np.float64]
) -> Association:
    """Test whether two windows have the same shares of all values.

    Parameters
    ----------
    classes : of each class of people the independent parts of the difference of frequencies, as `pieces_of`
        returns them, and the channel of its reports; where there are no classes, one
    common : ndarray of float64, shape (domain_size,); shares if both windows have the same

    Raises
    ------
    FewReportsError : a part has so few reports that its estimates are not nearly normal
    """
    k = common.size
    of_values, z, variance = contrasts(k), np.zeros(k - 1), np.zeros((k - 1, k - 1))
    for scale, part, channel in ((*piece, channel) for pieces, channel in classes for piece in pieces):
        if part.n_reports * float(channel.q) < LEAST_SUPPORT:
            needed = int(np.ceil(LEAST_SUPPORT / float(channel.q)))
            raise FewReportsError(f"reports of a part must be at least {needed}, got {part.n_reports}")
        factor = scale * part.n_visitors
        sizes = {"n_reports": part.n_reports, "n_population": ENDLESS}
        found = pure_frequencies(part.counts, channel=channel, **sizes)
        z += factor * (of_values @ found.frequency)
        covariance = (
            of_values @ frequency_covariances(found.consistent, channel=channel, **sizes) @ of_values.T
        )
        apart = scale * (of_values @ (found.consistent - common))
        variance += factor**2 * covariance + part.n_visitors * np.outer(apart, apart)
    try:
        statistic = float(z @ np.linalg.solve(variance, z))
    except np.linalg.LinAlgError:  # answers so sure that values without anyone have no error
        raise FewReportsError("a value has no reports at all, and no error that a test could use") from None
    return Association(statistic=statistic, degrees=k - 1, p_value=chi_square_tail(statistic, k - 1))
