"""The small-category rule, in the one place where it hides estimates: a policy for readers.

An estimate of fewer visitors than the study's limit is hidden, and so is every number that would give it:

- Shares of all categories add up to 1. Where the small ones could be worked out, the smallest of the others
  is hidden, too.
- Consistent shares are computed from what is shown.
- Combinations with a hidden category are hidden (`parts`). People without a value are no category: they are
  shown where their number cannot be distinguished from zero, since every table has them.

Sums and differences are made of shown estimates only (`is_hidden`). Estimates have noise in any case: a
hidden one may be of many visitors. Leaving out small estimates makes those that stay larger on average.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, prod

import numpy as np
from numpy.typing import NDArray

from ldp import project_simplex
from reports.base.status import Status
from reports.studies.models import Study

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Hidden:
    """Categories that the rule hides in one window, by code.

    small : fewer visitors than the limit
    others : hidden so that no small one can be worked out
    consistent : consistent shares, from what is shown
    """

    small: Mask
    others: Mask
    consistent: NDArray[np.float64]

    @property
    def all(self) -> Mask:
        return self.small | self.others

    def status(self, code: int) -> Status | None:
        """Return why a category is hidden; None if it is shown."""
        if self.small[code]:
            return Status.SMALL
        return Status.SUPPRESSED if self.others[code] else None


def hidden_categories(
    frequency: Sequence[float],
    consistent: Sequence[float],
    *,
    ci_low: Sequence[float],
    n_visitors: int,
    least: int,
    parts: Sequence[tuple[int, "Hidden | None"]] = (),
) -> Hidden:
    """Apply the rule to the estimates of a window.

    Parameters
    ----------
    frequency, consistent, ci_low : shares by code, and the lower ends of their intervals
    n_visitors : of the window, not scaled
    least : limit of the study; at least 1
    parts : of a joint indicator: number of values of each part, the last of which is none, and what is hidden
    """
    shares, adjusted = np.array(frequency), np.array(consistent)
    small, others = _of_parts(parts, size=shares.size)
    may_be_small = ~(_without_value(parts, size=shares.size) & (np.array(ci_low) <= 0))
    small |= may_be_small & (shares * n_visitors < least)
    while True:
        small |= may_be_small & ~others & (adjusted * n_visitors < least)
        others &= ~small
        while _can_be_worked_out(shares * n_visitors, small, others, least=least):
            others[np.argmin(np.where(small | others, np.inf, shares))] = True
        hidden = small | others
        if not hidden.any():
            return Hidden(small=small, others=others, consistent=adjusted)
        adjusted = _consistent(shares, hidden)
        if not (may_be_small & ~hidden & (adjusted * n_visitors < least)).any():
            return Hidden(small=small, others=others, consistent=adjusted)


def below(study: Study) -> int:
    """Limit of the study in visitors of the population, as pages show them; rounded up."""
    return ceil(study.small_category / study.market_share)


def _can_be_worked_out(visitors: NDArray[np.float64], small: Mask, others: Mask, *, least: int) -> bool:
    """Return whether the sum of all that is hidden gives a small number, or that it is near the limit."""
    n_small, n_others = int(small.sum()), int(others.sum())
    if n_small + n_others in (0, small.size):
        return False
    if n_small + n_others == 1:
        return True
    return n_others == 0 and float(visitors[small].sum()) > (n_small - 1) * least


def _consistent(shares: NDArray[np.float64], hidden: Mask) -> NDArray[np.float64]:
    """Nearest distribution to the shown shares and their rest, which is a single value here."""
    shown = shares[~hidden]
    found = np.full(shares.size, np.nan)
    found[~hidden] = project_simplex(np.append(shown, 1 - shown.sum()))[:-1]
    return found


def _without_value(parts: Sequence[tuple[int, Hidden | None]], *, size: int) -> Mask:
    """Combinations that lack a value of some part."""
    found, sizes = np.zeros(size, np.bool_), [n for n, _ in parts]
    for place, n in enumerate(sizes):
        found.reshape(prod(sizes[:place]), n, -1)[:, -1] = True
    return found


def _of_parts(parts: Sequence[tuple[int, Hidden | None]], *, size: int) -> tuple[Mask, Mask]:
    """Combinations of hidden categories of the parts."""
    small, others = np.zeros(size, np.bool_), np.zeros(size, np.bool_)
    sizes = [n for n, _ in parts]
    for place, (n, hidden) in enumerate(parts):
        if hidden is None:
            continue
        shape = (prod(sizes[:place]), n, prod(sizes[place + 1 :]))
        small.reshape(shape)[:, :-1] |= hidden.small[:, np.newaxis]
        others.reshape(shape)[:, :-1] |= hidden.others[:, np.newaxis]
    return small, others
