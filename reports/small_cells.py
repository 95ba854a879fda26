"""The small-cell rule for figures that are differences: none may lead back to a window that is suppressed.

Every reader can subtract windows that are shown from each other. So a difference is shown only if all windows
that it is made of are, and if neither it nor its complement beside it is as small as a suppressed one.
"""

from reports.models import Study
from reports.selectors import Counts
from reports.status import is_suppressed


def hides_window(study: Study, visitors: Counts, *, first_day: int, last_day: int) -> bool:
    """Whether the rule suppresses a window; never one without days (`last_day` before `first_day`)."""
    if last_day < first_day:
        return False
    return is_suppressed(int(visitors[first_day, last_day]), small_cell=study.small_cell)


def hides_a_day(study: Study, visitors: Counts, *, first_day: int, last_day: int) -> bool:
    """Whether the rule suppresses one of these days at least: then a sum over them tells of it."""
    days = range(first_day, last_day + 1)
    return any(hides_window(study, visitors, first_day=day, last_day=day) for day in days)


def hides_new_or_returning(study: Study, visitors: Counts, *, first_day: int, last_day: int) -> bool:
    """Whether those of a window who were there before, and those who were not, may not be told apart.

    Both are hidden or none: one is the visitors of the window less the other.
    """
    new = int(visitors[1, last_day] - visitors[1, first_day - 1])
    returning = int(visitors[first_day, last_day]) - new
    is_small = any(is_suppressed(part, small_cell=study.small_cell) for part in (new, returning))
    return is_small or hides_window(study, visitors, first_day=1, last_day=first_day - 1)


def hides_last_visits(study: Study, visitors: Counts, *, day: int) -> bool:
    """Whether it is hidden how many visitors of a day came on no later one."""
    later = int(visitors[day + 1, study.days]) if day < study.days else 0
    leaving = int(visitors[day, study.days]) - later
    limit = study.small_cell
    return is_suppressed(leaving, small_cell=limit) or is_suppressed(later, small_cell=limit)
