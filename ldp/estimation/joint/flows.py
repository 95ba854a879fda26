"""Visitors or visitor-days with some combinations, added up over days.

A visitor-day is a visitor on one day. Someone with the same value on several days repeats one answer, so the
errors of days are not independent, and how far they are not is unknown. A sum of intervals, each of which
holds on its day, is wide enough for nearly normal errors, however they depend; on one day it is exact.
"""

from collections.abc import Sequence

import numpy as np

from ldp.estimation.joint.crosstab import Codes, Floats, Reports, Shares
from ldp.estimation.joint.linear import NUMBERS


def sums_of_values(days: Sequence[Reports]) -> Shares:
    """Visitor-days of each value, shape (domain_size,); `days` is one or more."""
    found = [day.estimates for day in days]
    return _summed(days, [np.stack([f.frequency, f.std_error, f.ci_low, f.ci_high]) for f in found])


def sums_of_sets(days: Sequence[Reports], sets: Sequence[Codes]) -> Shares:
    """Visitor-days with any value of each set, shape (len(sets),); linear questions with exact variances."""
    answers = [[NUMBERS(day.answer(codes)) for codes in sets] for day in days]
    return _summed(days, [np.array(each, np.float64).reshape(-1, 4).T for each in answers])


def _summed(days: Sequence[Reports], columns: Sequence[Floats]) -> Shares:
    """Shares of each day with their errors, shape (4, n), times its visitors, as one sum."""
    total = sum(day.n_population * each for day, each in zip(days, columns, strict=True))
    return Shares(**dict(zip(Shares.__slots__, np.asarray(total), strict=True)))
