"""Mean of a number in each category of another indicator, from reports on both together.

A person reports the category and whether the number reaches a cut of hers, drawn in proportion to the spacing
of the cuts. Of the people of a category, the share above their cuts has the mean

    (mean of the numbers, rounded down to the minimum and the cuts, - minimum) / (last cut - minimum),

so the mean is a ratio of two answers about the same reports: of people above, and of all in the category.
Source: Gu, Li, Cheng, Xiong, USENIX Security 2020 (key and value in one report); Fieller, JRSS B 1954.
"""

from dataclasses import replace
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from ldp.estimation.estimators import ENDLESS, pure_variance
from ldp.estimation.joint.crosstab import Reports, Shares, shares_of
from ldp.protocols.numbers.threshold import Scale


def means_by(reports: Reports, *, codes: NDArray[np.int64], scale: Scale) -> Shares:
    """Mean of a number in each category, with its error, in the unit of the number.

    Parameters
    ----------
    codes : ndarray of int64, shape (n_categories, 2); combinations of each category with numbers below the
        cut, and with those that reach it

    Returns
    -------
    Shares, shape (n_categories,); nan where a category may have no one, and the interval is the whole range

    Notes
    -----
    Who is above depends on the draw of the cuts, too: so the visitors are taken as a sample of people like
    them, and the errors are at most too large.
    """
    drawn = replace(reports, n_population=ENDLESS)
    found = [shares_of(drawn, parts=sides[:, np.newaxis])[1] for sides in codes]
    reach = scale.cuts[-1] - scale.minimum
    return Shares(
        value=np.array([scale.minimum + reach * each.value for each in found]),
        std_error=np.array([reach * each.std_error for each in found]),
        ci_low=np.array([scale.minimum + reach * each.ci_low for each in found]),
        ci_high=np.array([scale.minimum + reach * each.ci_high for each in found]),
    )


def expected_widths(reports: Reports, *, shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Expected width of the interval of a mean, as a share of the range of the number.

    Of these reports only their number and channel are used. So a rule on the width does not choose among
    estimates by their noise, if the shares come from elsewhere.

    Parameters
    ----------
    shares : ndarray of float64; of visitors in a category who have a number; the width is inf for 0 or less

    Notes
    -----
    For a mean at an end of the range, where one of both answers of the ratio is all of it, and the width is
    largest; up to the square of the error. Where it is half the range or less, the share is 5.5 standard
    errors or more above 0. Then all but 1 in 5,000 ratios have an interval.
    """
    size = reports.channel.domain_size
    noise = pure_variance(
        1 / size, n_reports=reports.n_reports, n_population=ENDLESS, channel=reports.channel
    )
    z = NormalDist().inv_cdf((1 + reports.level) / 2)
    with np.errstate(divide="ignore"):
        return np.where(shares > 0, 2 * z * np.sqrt(noise) / np.maximum(shares, 0), np.inf)
