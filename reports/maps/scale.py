"""Classes of a map: few, with short bounds, and the same for every window of an indicator."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, isnan, log10, nan
from typing import Final, Protocol

import numpy as np
from django.utils.translation import gettext
from numpy.typing import NDArray

from reports.base import formats

MAX_CLASSES: Final = 5
# Instead of a class: no category is this zone; its number is unreliable; a policy hides it.
NOT_ASKED, NOT_READ, HIDDEN = -1, -2, -3

_ROUND_STEPS: Final = (1.0, 2.0, 2.5, 5.0, 10.0)
_LADDER: Final = (1.0, 2.0, 5.0)
_SKEWED: Final = 8.0  # from here on, largest value by median, equal steps would put most zones in one class
_MAX_DECIMALS: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Ascending bounds between classes, at most MAX_CLASSES - 1, and the values that they were made for.

    Class i holds values in [breaks[i - 1], breaks[i]). A value outside those of all windows, low to high,
    falls into the nearest class. Without values, `low` and `high` are NaN, and there are no classes to show.
    """

    breaks: tuple[float, ...]
    low: float
    high: float

    @property
    def is_empty(self) -> bool:
        """Return whether the scale was made for no value."""
        return isnan(self.low)

    def classes(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Class of each value, in [0, len(breaks)]; NOT_READ where it is not a number."""
        found = np.searchsorted(np.asarray(self.breaks), values, side="right")
        return np.where(np.isnan(values), NOT_READ, found).astype(np.int64)

    def class_of(self, value: float) -> int:
        """Class of one value."""
        return bisect_right(self.breaks, value)

    def labels(self, *, unit: str = "") -> list[str]:
        """Describe the range of each class: "under 10%", "10 to 20%", "20% and more"."""
        decimals = max((_decimals(each) for each in self.breaks), default=0)
        texts = [formats.decimal(each, decimals=decimals) for each in self.breaks]
        if not texts:
            return [] if self.is_empty else [gettext("all values")]
        middle = [
            gettext("%(low)s to %(high)s") % {"low": low, "high": high + unit}
            for low, high in pairwise(texts)
        ]
        first = gettext("under %(high)s") % {"high": texts[0] + unit}
        last = gettext("%(low)s or more") % {"low": texts[-1] + unit}
        return [first, *middle, last]


def fixed_scale(values: NDArray[np.float64]) -> Scale:
    """Scale that fits all values of an indicator; what is not a number is left out.

    From zero up in equal round steps; where few values are far above the others, in steps that grow (1, 2, 5,
    10, ...); where all values are close together, in equal steps from the least one.
    """
    known = values[np.isfinite(values)]
    if not known.size:
        return Scale(breaks=(), low=nan, high=nan)
    low, high = float(known.min()), float(known.max())
    if high <= 0 or high - low <= 1e-9 * high:
        return Scale(breaks=(), low=low, high=high)
    positive = known[known > 0]
    median = float(np.median(positive))
    if low > high / 2:
        found = _equal_breaks(low, high)
    elif high > _SKEWED * median:
        found = _growing_breaks(median, high)
    else:
        found = _equal_breaks(0.0, high)
    return Scale(breaks=found, low=low, high=high)


def quantile_scale(values: NDArray[np.float64]) -> Scale:
    """Scale with about as many values in each class; ties share one, which can leave fewer classes."""
    known = np.sort(values[np.isfinite(values)])

    def above(upper: float) -> float:
        below = known[known < upper]
        return _shortest(float(below[-1]), upper, finest=_finest(known)) if below.size else upper

    starts = [
        float(known[place * known.size // MAX_CLASSES]) for place in range(1, MAX_CLASSES) if known.size
    ]
    return _scale_between(known, [above(each) for each in starts])


def equal_scale(values: NDArray[np.float64]) -> Scale:
    """Scale with MAX_CLASSES classes of one width from the least value to the largest."""
    known = np.sort(values[np.isfinite(values)])
    if not known.size:
        return fixed_scale(known)
    inner = np.linspace(known[0], known[-1], MAX_CLASSES + 1)[1:-1]
    return _scale_between(known, [_clean(round(float(each), -_finest(known))) for each in inner])


class Scaled(Protocol):
    """Makes a scale of values; what is not a number is left out."""

    def __call__(self, values: NDArray[np.float64], /) -> Scale: ...


SCALES: Final[dict[str, Scaled]] = {
    "round": fixed_scale,
    "quantile": quantile_scale,
    "equal": equal_scale,
}  # by the option `classes` of a page


def _scale_between(known: NDArray[np.float64], breaks: Sequence[float]) -> Scale:
    """Scale of sorted values; a bound that leaves no value below or above it is dropped."""
    if not known.size:
        return fixed_scale(known)
    low, high = float(known[0]), float(known[-1])
    return Scale(breaks=tuple(sorted({each for each in breaks if low < each <= high})), low=low, high=high)


def _finest(known: NDArray[np.float64]) -> int:
    """Exponent of ten of the last digit of bounds: at most a hundredth of the range of sorted values."""
    span = float(known[-1] - known[0])
    return max(floor(log10(span)) - 2, -_MAX_DECIMALS) if span > 0 else 0


def _shortest(below: float, upper: float, *, finest: int) -> float:
    """Number with the fewest digits above one value and up to the next; with the finest digit if none is."""
    for exponent in range(max(floor(log10(upper - below)) + 1, finest), finest - 1, -1):
        found = _clean(floor(_clean(upper / 10.0**exponent)) * 10.0**exponent)
        if found > below:
            break
    return found


def _equal_breaks(low: float, high: float) -> tuple[float, ...]:
    """Multiples of a round step strictly between two values."""
    rough = (high - low) / (MAX_CLASSES + 1)  # the last class may be twice as wide: it is open
    power = floor(log10(rough))
    step = next(each for each in _ROUND_STEPS if each * 10.0**power >= rough * (1 - 1e-9)) * 10.0**power
    first = floor(low / step) + 1
    last = ceil(high / step) - 1
    return tuple(_clean(place * step) for place in range(first, last + 1))[: MAX_CLASSES - 1]


def _growing_breaks(median: float, high: float) -> tuple[float, ...]:
    """Rungs of a ladder 1, 2, 5, 10, ... below the largest value, so far apart that they reach the median."""
    power = floor(log10(high))
    ladder = [rung * 10.0**exponent for exponent in range(power - 12, power + 1) for rung in _LADDER]
    below = [rung for rung in ladder if rung < high]
    for stride in (1, 2, 3):
        found = below[::-stride][: MAX_CLASSES - 1]
        if found[-1] <= median:
            break
    return tuple(_clean(rung) for rung in reversed(found))


def _clean(value: float) -> float:
    """Without the dust of binary fractions: 0.30000000000000004 -> 0.3."""
    return float(f"{value:.12g}")


def _decimals(value: float) -> int:
    return next((d for d in range(_MAX_DECIMALS) if round(value, d) == value), _MAX_DECIMALS)


def values_of(rows: Sequence[Sequence[float | None]]) -> NDArray[np.float64]:
    """Rows of numbers as one array; None becomes NaN."""
    return np.array([[np.nan if each is None else each for each in row] for row in rows], np.float64)
