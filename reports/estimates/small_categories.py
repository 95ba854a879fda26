"""The small-category rule, in the one place where it hides estimates: a policy for readers.

An estimate of fewer visitors than the study's limit is hidden, and so is every number that would give it:

- Shares of all categories add up to 1. Where the small ones could be worked out, the smallest of the others
  is hidden, too. In joint indicators the same holds for combinations with each value of a part, whose sum is
  what the part shows (`_groups`).
- Windows without what they share give others. Where a hidden category could be worked out from a longer
  window, it is hidden there, too (`windows_inside`).
- Consistent shares are computed from what is shown.
- Combinations with a hidden category are hidden (`parts`). People without a value are no category: they are
  shown where their number cannot be distinguished from zero, since every table has them.

Sums and differences are made of shown estimates only (`is_hidden`). Estimates have noise in any case: a
hidden one may be of many visitors. Leaving out small estimates makes those that stay larger on average.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, prod

import numpy as np
from numpy.typing import NDArray

from ldp import project_simplex
from ldp.estimation.windows import Window
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
    inside: Sequence["Hidden"] = (),
) -> Hidden:
    """Apply the rule to the estimates of a window.

    Parameters
    ----------
    frequency, consistent, ci_low : shares by code, and the lower ends of their intervals
    n_visitors : of the window, not scaled
    least : limit of the study; at least 1
    parts : of a joint indicator: number of values of each part, the last of which is none, and what is hidden
    inside : what is hidden in windows that could be worked out from this one
    """
    shares, adjusted = np.array(frequency), np.array(consistent)
    small, others = _of_parts(parts, size=shares.size)
    for each in inside:
        others |= each.all
    groups = _groups(parts, size=shares.size)
    may_be_small = ~(_without_value(parts, size=shares.size) & (np.array(ci_low) <= 0))
    small |= may_be_small & (shares * n_visitors < least)
    while True:
        small |= may_be_small & ~others & (adjusted * n_visitors < least)
        others &= ~small
        _hide_others(shares * n_visitors, small, others, groups=groups, least=least)
        hidden = small | others
        if not hidden.any():
            return Hidden(small=small, others=others, consistent=adjusted)
        adjusted = _consistent(shares, hidden)
        if not (may_be_small & ~hidden & (adjusted * n_visitors < least)).any():
            return Hidden(small=small, others=others, consistent=adjusted)


def below(study: Study) -> int:
    """Limit of the study in visitors of the population, as pages show them; rounded up."""
    return ceil(study.small_category / study.market_share)


def windows_inside(window: Window, *, visitors: NDArray[np.int64], least: int) -> Iterator[Window]:
    """Windows inside another one that differences give, but for fewer people than the limit.

    People of a part are those of the whole without those before and after, but for people who are in two of
    the three; and those of both longer parts without those of the whole, but for people who skip the part.
    Windows of fewer visitors than the limit are left to the small-cell rule.

    visitors : of each window, [first day, last day]
    """
    first, last = window
    starts, ends = (each + first for each in np.triu_indices(last - first + 1))
    part, whole = visitors[starts, ends], visitors[first, last]
    after = np.append(visitors[:, last], 0)[ends + 1]  # 0 where there are no days, as before
    in_two = visitors[first, starts - 1] + part + after - whole
    skipping = visitors[first, ends] + visitors[starts, last] - whole - part
    is_amid = (first < starts) & (ends < last)
    is_told = (in_two < least) | is_amid & (skipping < least)
    is_other = (first < starts) | (ends < last)
    for place in np.flatnonzero(is_told & is_other & (part >= least)).tolist():
        yield Window(int(starts[place]), int(ends[place]))


def _groups(parts: Sequence[tuple[int, Hidden | None]], *, size: int) -> list[NDArray[np.int64]]:
    """Codes whose sum is known: all of them, and of a joint indicator those with each value of a part."""
    sizes = [n for n, _ in parts]
    found = [np.arange(size)]
    for place, n in enumerate(sizes):
        by_value = found[0].reshape(prod(sizes[:place]), n, -1)
        found += [by_value[:, value].ravel() for value in range(n)]
    return found


def _hide_others(
    visitors: NDArray[np.float64], small: Mask, others: Mask, *, groups: list[NDArray[np.int64]], least: int
) -> None:
    """Hide others until no group gives a small one.

    Of a group the first to be hidden are combinations whose other groups have hidden ones already: another
    one would be worked out there.
    """
    if not (small | others).any():
        return
    is_done = False
    while not is_done:
        is_done = True
        for group in groups:
            while _can_be_worked_out(visitors[group], small[group], others[group], least=least):
                is_done = False
                hidden = small | others
                bare = np.zeros(visitors.size, np.int64)
                for other in groups:
                    bare[other] += not hidden[other].any()
                candidates = group[~hidden[group]]
                others[candidates[np.lexsort((visitors[candidates], bare[candidates]))[0]]] = True


def _can_be_worked_out(visitors: NDArray[np.float64], small: Mask, others: Mask, *, least: int) -> bool:
    """Return whether the sum of all that is hidden gives a small number, or that it is near the limit."""
    n_small, n_others = int(small.sum()), int(others.sum())
    if n_small + n_others in (0, small.size):
        return False
    if n_small + n_others == 1:
        return True
    if not n_small:
        return False
    # Readers know that a small one is below the limit, and another one at most the smallest that is shown.
    most = float(visitors[~(small | others)].min())
    if n_others and visitors[others].max() > most:
        return False
    return float(visitors[small | others].sum()) > (n_small - 1) * least + n_others * most


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
