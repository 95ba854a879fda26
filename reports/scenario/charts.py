"""The bar of an answer: where its ends and its estimate are, in percent of an axis from 0."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import floor, log10
from typing import Final

from reports.scenario import texts
from reports.scenario.queries import Bar

_STEPS: Final = (1, 1.5, 2, 3, 4, 5, 6, 8, 10)
_THIN: Final = 0.6  # percent; a bar of one number is drawn so wide


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A bar with its places in percent of the axis; `tick` is None where no estimate is shown."""

    bar: Bar
    start: float
    width: float
    tick: float | None
    label: str
    range_text: str
    estimate_text: str


def axis_end(bars: Iterable[Bar]) -> int:
    """Return a round number of people at the end of an axis that holds all bars."""
    most = max((bar.most for bar in bars), default=1.0)
    if most <= 1:
        return 1
    unit = 10.0 ** floor(log10(most))
    return next(round(step * unit) for step in _STEPS if step * unit >= most)


def drawn(bar: Bar, *, end: int) -> Drawn:
    """A bar on an axis from 0 to `end` people."""
    start, most = (100 * each / end for each in (bar.least, bar.most))
    width = max(most - start, _THIN)
    return Drawn(
        bar=bar,
        start=round(min(start, 100 - width), 2),
        width=round(width, 2),
        tick=None if bar.estimate is None else round(100 * bar.estimate / end, 2),
        label=texts.bar_text(bar),
        range_text=texts.range_text(bar),
        estimate_text=texts.estimate_text(bar),
    )
