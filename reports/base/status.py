"""Status of a figure: four kinds of blank, which no page and no file may confuse with zero.

Which one it is depends on sizes, marks and widths only, never on an estimate itself: leaving out estimates
because of their values would bias those that stay.
"""

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

# From low to high, as a share. A wider interval spans more than half of all shares there are: it cannot tell
# a quarter from three quarters, for any question. (Seven categories at epsilon 1 reach it with about
# 1,000 reports.)
WIDEST_INTERVAL: Final = 0.5
# Half of it: from here on a report says that it is imprecise.
WIDE_INTERVAL: Final = 0.1


class Status(StrEnum):
    """Status of a report or an estimate; exports write the value.

    ok : reliable, with its interval
    not_reliable : the intervals of the report are too wide for any use
    not_collected : there is no data, or no answer, of that window
    suppressed : the study hides windows with so few visitors; a policy, not a part of the privacy promise
    small : the study hides categories with so few visitors; a policy, too
    outage : people marked every day of the window as an outage of the source
    """

    OK = "ok"
    NOT_RELIABLE = "not_reliable"
    NOT_COLLECTED = "not_collected"
    SUPPRESSED = "suppressed"
    SMALL = "small"
    OUTAGE = "outage"


def is_suppressed(n_visitors: int, *, small_cell: int) -> bool:
    """Return whether the small-cell rule hides a window: visitors, but fewer than the limit (0 = none)."""
    return 0 < n_visitors < small_cell


def window_status(*, n_visitors: int, n_reports: int, small_cell: int, is_outage: bool) -> Status:
    """Status of a window before its estimates are looked at; an outage if all its days are marked as one."""
    if is_suppressed(n_visitors, small_cell=small_cell):
        return Status.SUPPRESSED
    if is_outage:
        return Status.OUTAGE
    return Status.OK if n_reports else Status.NOT_COLLECTED


def estimates_status(window: Status, *, ci_low: Sequence[float], ci_high: Sequence[float]) -> Status:
    """Status of all estimates of a report in a window with that status; at least one.

    The mean width of their intervals decides for all of them together. A single width grows with its
    estimate: near the limit only the lowest estimates would stay, which would bias what is read. The mean
    hardly does, since shares add up to one in any case.
    """
    widths = [high - low for low, high in zip(ci_low, ci_high, strict=True)]
    if window == Status.OK and math.fsum(widths) / len(widths) > WIDEST_INTERVAL:
        return Status.NOT_RELIABLE
    return window
