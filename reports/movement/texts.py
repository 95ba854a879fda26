"""Texts that explain each figure of movements."""

from dataclasses import dataclass
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy

from reports.base import formats
from reports.movement.figures import OF_A_DAY, Derived, Difference, Movement, Point, Show, Unit
from reports.studies.models import Indicator
from reports.studies.queries import has_lasting_reports, has_unions


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """A short name, and one sentence that says what is counted."""

    title: str | Promise
    meaning: str | Promise


WORDS: Final = {
    Show.ARRIVALS: Words(
        title=gettext_lazy("Arrivals"),
        meaning=gettext_lazy(
            "Visitors on a given day who were not present on any earlier day of the study. On the first "
            "day, this includes all visitors."
        ),
    ),
    Show.RETURNING: Words(
        title=gettext_lazy("Returning"),
        meaning=gettext_lazy("Visitors on a given day who were also present on an earlier day of the study."),
    ),
    Show.DEPARTURES: Words(
        title=gettext_lazy("Departures"),
        meaning=gettext_lazy(
            "Visitors on a given day who were not present on any later day of the study. On the last day, "
            "this includes all visitors."
        ),
    ),
    Show.BACK_WITHIN: Words(
        title=gettext_lazy("Returned by a given day"),
        meaning=gettext_lazy(
            "Share of one day's visitors who returned on at least one later day, up to the day shown."
        ),
    ),
    Show.THERE_AGAIN: Words(
        title=gettext_lazy("Returned on a given day"),
        meaning=gettext_lazy("Share of one day's visitors who were also present on the later day shown."),
    ),
    Show.DAYS_PRESENT: Words(
        title=gettext_lazy("Days present"),
        meaning=gettext_lazy("Average number of days of the study on which a visitor was present."),
    ),
    Show.WINDOW: Words(
        title=gettext_lazy("New and returning"),
        meaning=gettext_lazy(
            "Visitors on the chosen days, split by whether they were present on an earlier day of the study."
        ),
    ),
}


def interval_words(found: Movement) -> str:
    """Return whether the intervals are exact, in one sentence."""
    if found.show == Show.THERE_AGAIN:
        return gettext(
            "The 95% intervals for the next day are exact. For a later day, the number of people "
            "present on both that day and the starting day is not known exactly. Only a minimum and "
            "a maximum are known. The range shown for a later day contains the true value in at "
            "least 95% of cases."
        )
    if found.show == Show.DAYS_PRESENT:
        return gettext(
            "The intervals are conservative. They assume that the number of days present varies "
            "between visitors as much as the totals allow. They therefore contain the true value in "
            "at least 95% of cases."
        )
    return gettext(
        "The 95% intervals are exact because the number of answers from these visitors is known. On "
        "average, 95 of 100 intervals contain the true value."
    )


def verdict(found: Movement) -> str:
    """Say in one sentence which rows differ, with the test and its level; empty where nothing is tested."""
    tested = found.findings
    if tested is None:
        return ""
    n = {"n": tested.n_tests, "held": len(tested.differences)}
    if not tested.differences:
        return _no_difference(found) % n
    largest = tested.differences[0]
    where = row_name(found, largest)
    values = {"row": where, "change": change(found, largest), "range": change_range(found, largest)}
    return _some_difference(found) % (n | values)


def _no_difference(found: Movement) -> str:
    if found.unit != Unit.VISITORS:
        return gettext(
            "No category is shown to differ from all visitors (5%% level, Bonferroni correction for %(n)d "
            "tests), but the noise may hide a difference."
        )
    if found.show == Show.WINDOW:
        return gettext(
            "New and returning visitors are not shown to differ in any category (5%% level, Bonferroni "
            "correction for %(n)d tests), but the noise may hide a difference."
        )
    return gettext(
        "On no day are these visitors shown to differ from the other visitors of the day (5%% level, "
        "Bonferroni correction for %(n)d tests), but the noise may hide a difference."
    )


def _some_difference(found: Movement) -> str:
    if found.unit != Unit.VISITORS:
        return gettext(
            "%(held)d of %(n)d figures differ from that of all visitors (5%% level, Bonferroni correction), "
            "most of all %(row)s: %(change)s (interval %(range)s)."
        )
    if found.show == Show.WINDOW:
        return gettext(
            "New and returning visitors differ in %(held)d of %(n)d categories (5%% level, Bonferroni "
            "correction), most of all %(row)s: %(change)s among new visitors (interval %(range)s)."
        )
    return gettext(
        "%(held)d of %(n)d shares of these visitors differ from those of the other visitors of the day (5%% "
        "level, Bonferroni correction), most of all %(row)s: %(change)s (interval %(range)s)."
    )


def row_name(found: Movement, row: Difference) -> str:
    """Category and day of a row that differs."""
    name = found.points[row.place].estimates[row.code].shown_category
    if found.show in (Show.WINDOW, Show.DAYS_PRESENT):
        return name
    return f"{name}, {formats.short_day(found.points[row.place].date)}"


def change(found: Movement, row: Difference) -> str:
    """A difference with its sign and unit."""
    if found.unit == Unit.DAYS:
        return gettext("%(number)s days") % {"number": _signed(row.value, found)}
    return gettext("%(number)s points") % {"number": _signed(row.value, found)}


def change_range(found: Movement, row: Difference) -> str:
    """Both bounds of a difference, which hold for all rows at once."""
    return gettext("%(low)s to %(high)s") % {"low": _signed(row.low, found), "high": _signed(row.high, found)}


def _signed(value: float, found: Movement) -> str:
    decimals, factor = (2, 1) if found.unit == Unit.DAYS else (1, 100)
    text = formats.decimal(value * factor, decimals=decimals)
    return f"+{text}" if value > 0 else text


def proposal_words(found: Movement) -> str:
    """Name days that can show a difference of new and returning visitors, or say that none can."""
    proposal = found.findings and found.findings.proposal
    if not proposal:
        return ""
    study, window = found.report.study, proposal.window
    values = {
        "days": formats.window_title(study.date_of(window.first_day), study.date_of(window.last_day)),
        "category": found.points[0].estimates[proposal.code].shown_category,
        "observed": formats.points(proposal.observed),
        "smallest": formats.points(proposal.smallest),
    }
    if proposal.tells:
        text = gettext(
            "To see if %(category)s really differs (by %(observed)s here), look at the new and returning "
            "visitors of %(days)s. A difference of %(smallest)s or more is then detected 8 times in 10."
        )
    else:
        text = gettext(
            "The difference for %(category)s (%(observed)s here) is too small to be detected on other days. "
            "Even among the new and returning visitors of %(days)s, only a difference of %(smallest)s or "
            "more is detected 8 times in 10."
        )
    return text % values


def reason_for_nothing(indicator: Indicator) -> str:
    """Return why an indicator has no figures per category; empty where it has."""
    if indicator.study.days < 2:
        return gettext("The study covers only one day, so there can be no returning visitors.")
    if indicator.study.small_category:
        return gettext(
            "This study hides small categories, so arrivals, returns and departures are not shown by "
            "category. Only totals are shown."
        )
    if has_unions(indicator):
        return ""
    if indicator.max_moves is not None:
        return gettext(
            "Moves and visits are counted separately for each day, so there are no figures on returning "
            "visitors."
        )
    return gettext(
        "For this indicator, each person gives an answer on at most %(m)d of the %(days)d days. It is "
        "therefore not known how many visitors in each category were also present on earlier days. Only "
        "totals are shown."
    ) % {"m": indicator.max_values, "days": indicator.study.days}


def reason_for_less(indicator: Indicator) -> str:
    """Return why an indicator has some of the figures only; empty where it has all."""
    if has_lasting_reports(indicator) or not has_unions(indicator):
        return ""
    if indicator.kind == Indicator.Kind.STATIC:
        return gettext(
            "A visitor's value is reported again on each day, with new noise. Arrivals and returns use the "
            "report for the day of the arrival or return. Departures, later returns and the number of days "
            "present cannot be computed separately for each value."
        )
    return gettext(
        "A visitor can have a different value on each day. Arrivals and returns use the visitor's value "
        "on the day of the arrival or return. Departures, later returns and the number of days present "
        "cannot be computed separately for each value."
    )


def summary(found: Movement, *, indicator: Indicator) -> str:
    """One sentence that says what the chart shows."""
    if found.show is None:
        return ""
    values = {"name": indicator.shown_name, "figure": str(WORDS[found.show].title)}
    if found.show in OF_A_DAY and found.cohort is not None:
        values["day"] = formats.day_title(indicator.study.date_of(found.cohort))
        return (
            gettext("%(name)s, %(figure)s: share of the visitors on %(day)s, with 95%% intervals.") % values
        )
    if found.unit == Unit.DAYS:
        return gettext("%(name)s, %(figure)s: mean per visitor, with 95%% intervals.") % values
    return gettext("%(name)s, %(figure)s: estimated visitors, with 95%% intervals.") % values


def value_text(value: float | None, *, unit: Unit) -> str:
    """One number in its unit."""
    if value is None:
        return formats.MISSING
    if unit == Unit.SHARE:
        return formats.percent(value)
    return formats.decimal(value, decimals=2) if unit == Unit.DAYS else formats.number(value)


def range_text(low: float | None, high: float | None, *, unit: Unit) -> str:
    """Both bounds in their unit."""
    if low is None or high is None:
        return formats.MISSING
    if unit == Unit.SHARE:
        return formats.percent_range(low, high)
    if unit == Unit.VISITORS:
        return formats.number_range(low, high)
    ends = {"low": value_text(low, unit=unit), "high": value_text(high, unit=unit)}
    return gettext("%(low)s to %(high)s") % ends


def total_text(point: Point, *, unit: Unit) -> str:
    """The total of a point, or the bounds that it lies between."""
    if point.total is not None or point.low is None:
        return value_text(point.total, unit=unit)
    return range_text(point.low, point.high, unit=unit)


def derived_text(estimate: Derived, *, unit: Unit) -> tuple[str, str]:
    """The estimate and its interval; where only bounds are known, the bounds and nothing."""
    interval = range_text(estimate.ci_low, estimate.ci_high, unit=unit)
    if estimate.value is None:
        return interval, ""
    return value_text(estimate.value, unit=unit), interval
