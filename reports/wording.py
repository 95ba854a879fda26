"""How numbers, days and epsilons are written: the same on pages, in charts and in texts for screen readers.

Numbers do not depend on the reader's language: a narrow space between thousands and a decimal point.
"""

from datetime import date
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction

from django.utils.formats import date_format
from django.utils.translation import gettext, ngettext

from reports.models import Study
from reports.selectors import Estimate, WindowReport

SPACE = "\u202f"  # narrow, and no line break
MINUS = "\u2212"
MISSING = "\u2013"


def number(value: float | None) -> str:
    """Whole number, thousands apart: 62440 -> "62 440"."""
    if value is None:
        return MISSING
    return f"{round(value):,}".replace(",", SPACE).replace("-", MINUS)


def compact(value: int) -> str:
    """Few characters for small cells: 62440 -> "62k"."""
    if value < 1000:
        return str(value)
    if value < 9950:
        return f"{value / 1000:.1f}k"
    return f"{value / 1000:.0f}k" if value < 999_500 else f"{value / 1_000_000:.1f}M"


def percent(value: float | None) -> str:
    """Share with one decimal: 0.1234 -> "12.3 %"."""
    return MISSING if value is None else f"{_tenths(value)}{SPACE}%"


def points(value: float) -> str:
    """Difference of two shares, in percentage points: 0.037 -> "3.7 points"."""
    return gettext("%(number)s points") % {"number": _tenths(value)}


def percent_range(low: float | None, high: float | None) -> str:
    """Both bounds, never a width: "11.1 to 13.5 %"."""
    if low is None or high is None:
        return MISSING
    return gettext("%(low)s to %(high)s") % {"low": _tenths(low), "high": percent(high)}


def number_range(low: float | None, high: float | None) -> str:
    """Both bounds of a number of visitors."""
    if low is None or high is None:
        return MISSING
    return gettext("%(low)s to %(high)s") % {"low": number(low), "high": number(high)}


def share_range(estimate: Estimate) -> str:
    """Both bounds of a share."""
    return percent_range(estimate.ci_low, estimate.ci_high)


def visitors_range(estimate: Estimate) -> str:
    """Both bounds of a number of visitors."""
    return number_range(estimate.visitors_ci_low, estimate.visitors_ci_high)


def epsilon(value: Decimal | Fraction | float, *, decimals: int = 4) -> str:
    """Rounded up, so that no text promises more than is kept; without trailing zeros."""
    step = Fraction(1, 10**decimals)
    steps = -(-Fraction(value) // step)
    text = f"{Decimal(int(steps)).scaleb(-decimals):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def odds(epsilon_value: Decimal) -> str:
    """Factor by which odds can change, exp(epsilon), rounded up: 1 -> "2.72", 7 -> "1 097"."""
    ratio = epsilon_value.exp()
    if ratio >= 1_000_000:
        return f"e^{epsilon(epsilon_value, decimals=1)}"
    if ratio < 100:
        return f"{ratio.quantize(Decimal('0.01'), rounding=ROUND_CEILING)}"
    return number(int(ratio.to_integral_value(rounding=ROUND_CEILING)))


def day_title(day: date) -> str:
    return date_format(day, "D j M Y")


def short_day(day: date) -> str:
    return date_format(day, "j M")


def window_title(first: date, last: date) -> str:
    """Days in words: "Wed 31 May 2017 to Tue 6 Jun 2017 (7 days)"."""
    if first == last:
        return day_title(first)
    days = (last - first).days + 1
    return ngettext("%(first)s to %(last)s (%(days)d day)", "%(first)s to %(last)s (%(days)d days)", days) % {
        "first": day_title(first),
        "last": day_title(last),
        "days": days,
    }


def report_summary(report: WindowReport) -> str:
    """One sentence that says what a chart shows."""
    if report.n_reports == 0:
        return gettext("No answers in this window.")
    largest = max(report.estimates, key=lambda estimate: estimate.frequency or 0.0)
    if (largest.frequency or 0.0) > 1:
        return gettext("Of %(visitors)s visitors; the noise is too large to name the largest category.") % {
            "visitors": number(report.n_visitors)
        }
    return gettext(
        "Of %(visitors)s visitors, an estimated %(share)s (95 %% interval %(range)s) are in the largest "
        "category, %(category)s."
    ) % {
        "visitors": number(report.n_visitors),
        "share": percent(largest.frequency),
        "range": percent_range(largest.ci_low, largest.ci_high),
        "category": largest.category,
    }


def visitor_rule(study: Study) -> str:
    """Who counts as a visitor."""
    return gettext(
        "Present on a day: at least %(minutes)d minutes between the first and the last event inside the "
        "area, from %(start)s to %(end)s, local time (%(timezone)s)."
    ) % {
        "minutes": study.visitor_min_minutes,
        "start": study.visitor_from.strftime("%H:%M"),
        "end": study.visitor_to.strftime("%H:%M"),
        "timezone": study.timezone,
    }


def _tenths(value: float) -> str:
    text = f"{value * 100:.1f}"
    return ("0.0" if text == "-0.0" else text).replace("-", MINUS)
