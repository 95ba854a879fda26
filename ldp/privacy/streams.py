"""Promise about any days in a row: a person answers once in a window, with fresh noise (w-event privacy).

A stream promises epsilon for any `window_days` consecutive days, also if a person's values change on them
(Kellaris et al., VLDB 2014). That holds for answers with independent noise only. An answer that is kept for a
value says for certain that the value changed, and so promises nothing about a window: both are never mixed.
"""

from typing import Final

from ldp.errors import PlanError

DEFAULT_WINDOW: Final = 7


def most_answers(days: int, *, window_days: int) -> int:
    """Most answers of one person on `days` consecutive days."""
    return -(-days // window_days)


def default_window(days: int) -> int:
    """Window of a plan that names none: a week, or the whole study if it is shorter."""
    return min(DEFAULT_WINDOW, days)


def check_window(window_days: int, *, days: int) -> None:
    """Raise PlanError unless a window lies within the study."""
    if not 1 <= window_days <= days:
        raise PlanError(f"window_days must be in [1, {days}], got {window_days}")
