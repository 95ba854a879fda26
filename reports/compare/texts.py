"""Texts of differences: signed numbers, the sides of a comparison, and the sentence on top."""

from datetime import date

from django.utils.translation import gettext, ngettext, pgettext

from ldp.estimation.joint.association import Association
from ldp.estimation.noisy_estimators import NoisyTotal
from ldp.estimation.windows import Quantity
from reports.base import formats
from reports.base.status import Status
from reports.compare.proposals import Proposal
from reports.compare.queries import (
    Comparison,
    Kind,
    NotComparableError,
    NoTest,
    Reason,
    Row,
    Value,
    Verdict,
)
from reports.estimates.queries import LEVEL
from reports.studies import texts as studies_texts
from reports.studies.labels import name_with_slug


def value_range(value: Value, of: Quantity) -> str:
    """Both bounds of a value."""
    return formats.amount_range(value.low, value.high, of)


def change(row: Row, of: Quantity) -> str:
    """A difference with its sign and unit: "+4.1 points", "\u2212320 visitors"."""
    number = _signed(row.difference, of)
    if of == "frequency":
        return gettext("%(number)s points") % {"number": number}
    return gettext("%(number)s visitors") % {"number": number}


def change_range(row: Row, of: Quantity) -> str:
    """Both bounds of a difference, signed: "+1.2 to +7.0"."""
    return gettext("%(low)s to %(high)s") % {"low": _signed(row.low, of), "high": _signed(row.high, of)}


def verdict_word(verdict: Verdict) -> str:
    """Higher, lower, or that nothing can be said; never a colour alone."""
    if verdict == Verdict.NOT_SHOWN:
        return pgettext("difference", "no difference detected")
    return pgettext("difference", "higher") if verdict == Verdict.HIGHER else pgettext("difference", "lower")


def verdict_sign(verdict: Verdict) -> str:
    """Return one character next to the word."""
    return {Verdict.HIGHER: "\u25b2", Verdict.LOWER: "\u25bc", Verdict.NOT_SHOWN: formats.MISSING}[verdict]


def value_title(comparison: Comparison) -> str:
    """Head of the column of what is compared."""
    if comparison.kind == Kind.CATEGORIES:
        return gettext("This category")
    return _place(comparison, is_reference=False)


def reference_title(comparison: Comparison) -> str:
    """Head of the column of what it is compared with."""
    if comparison.kind == Kind.CATEGORIES:
        return comparison.shown_category
    if comparison.kind == Kind.BASELINE and len(comparison.baseline) > 1:
        n = len(comparison.baseline)
        return ngettext("Mean of %(n)d other day", "Mean of %(n)d other days", n) % {"n": n}
    return _place(comparison, is_reference=True)


def summary(comparison: Comparison) -> str:
    """The verdict: one sentence, with its test and the level that holds for the whole table."""
    row, n = comparison.largest, len(comparison.rows)
    values = {
        "n": n,
        "held": comparison.n_held,
        "category": row.shown_category,
        "change": change(row, comparison.of),
        "range": change_range(row, comparison.of),
    }
    if comparison.status != Status.OK:
        text = gettext(
            "No conclusion is possible: the figures of at least one side are not reliable, because their "
            "intervals are too wide."
        )
    elif comparison.n_held:
        text = _detected(comparison)
    elif n == 1:
        text = gettext("No difference was detected (5%% level): %(change)s (95%% interval %(range)s).")
    elif isinstance(comparison.overall, Association) and comparison.overall.p_value < 1 - LEVEL:
        values["p"] = formats.p_value(comparison.overall.p_value)
        text = gettext(
            "The shares differ when all categories are tested together (chi-square test, p %(p)s), but no "
            "single one of the %(n)d categories is shown to differ (5%% level, Holm test)."
        )
    else:
        text = gettext(
            "No difference was detected in any of the %(n)d categories (5%% level, Holm test), but the "
            "noise may hide one."
        )
    return text % values


def _detected(comparison: Comparison) -> str:
    if len(comparison.rows) == 1:
        return gettext(
            "%(category)s: a difference was detected (5%% level), %(change)s (95%% interval %(range)s)."
        )
    return ngettext(
        "%(held)d of %(n)d categories differs (5%% level, Holm test): %(category)s, by %(change)s (95%% "
        "interval %(range)s).",
        "%(held)d of %(n)d categories differ (5%% level, Holm test), most of all %(category)s: %(change)s "
        "(95%% interval %(range)s).",
        comparison.n_held,
    )


def proposal_words(found: Proposal) -> str:
    """Name other dates that can show a difference, or say that none can."""
    values = {
        "first": formats.window_title(*found.dates[0]),
        "second": formats.window_title(*found.dates[1]),
        "category": found.shown_category,
        "observed": formats.points(abs(found.observed or 0.0)),
        "smallest": formats.points(found.smallest),
    }
    if found.observed is None:
        text = gettext(
            "For reliable figures, compare %(first)s with %(second)s. A difference of %(smallest)s or more "
            "in any category is then detected 8 times in 10."
        )
    elif found.tells:
        text = gettext(
            "To see if %(category)s really differs (by %(observed)s here), compare %(first)s with "
            "%(second)s. A difference of %(smallest)s or more is then detected 8 times in 10."
        )
    else:
        text = gettext(
            "The difference for %(category)s (%(observed)s here) is too small to be detected on dates near "
            "these. Even if you compare %(first)s with %(second)s, only a difference of %(smallest)s or more "
            "is detected 8 times in 10."
        )
    return text % values


def total_words(comparison: Comparison) -> str:
    """Say if the totals of two windows differ, which are exact; empty for others, and to hide few people."""
    now, then = comparison.report.n_visitors, comparison.reference.n_visitors
    if comparison.kind != Kind.WINDOWS or now is None or not then:
        return ""
    # Where one range holds the other, the change is a number of people.
    if _is_nested(comparison) and 0 < abs(now - then) < comparison.report.study.small_cell:
        return ""
    values = {
        "now": formats.number(now),
        "day": value_title(comparison),
        "then": formats.number(then),
        "other": reference_title(comparison),
        "change": formats.number(abs(now - then)),
        "share": f"{_signed(now / then - 1, 'frequency')}{formats.percent_sign()}",
    }
    n = abs(now - then)
    if now == then:
        text = gettext("The total number of visitors is the same: %(now)s (%(day)s and %(other)s).")
    elif now > then:
        text = ngettext(
            "%(change)s more visitor in total (%(share)s): %(now)s (%(day)s) against %(then)s (%(other)s).",
            "%(change)s more visitors in total (%(share)s): %(now)s (%(day)s) against %(then)s (%(other)s).",
            n,
        )
    else:
        text = ngettext(
            "%(change)s fewer visitor in total (%(share)s): %(now)s (%(day)s) against %(then)s (%(other)s).",
            "%(change)s fewer visitors in total (%(share)s): %(now)s (%(day)s) against %(then)s (%(other)s).",
            n,
        )
    exact = gettext("Both totals are exact, so the difference needs no interval.")
    return f"{text % values} {exact}"


def _is_nested(comparison: Comparison) -> bool:
    sides = [(each.first_date, each.last_date) for each in (comparison.report, comparison.reference)]
    around = min(first for first, _ in sides), max(last for _, last in sides)
    return around in sides


def noisy_total_words(now: NoisyTotal, then: NoisyTotal) -> str:
    """Say if two totals with presence noise differ: only their intervals can be compared."""
    values = {
        "now": formats.noisy_number(now),
        "now_range": formats.noisy_range(now),
        "then": formats.noisy_number(then),
        "then_range": formats.noisy_range(then),
    }
    if now.ci_low > then.ci_high:
        text = gettext(
            "More visitors in total: about %(now)s (95%% interval %(now_range)s) against about %(then)s "
            "(%(then_range)s)."
        )
    elif now.ci_high < then.ci_low:
        text = gettext(
            "Fewer visitors in total: about %(now)s (95%% interval %(now_range)s) against about %(then)s "
            "(%(then_range)s)."
        )
    else:
        text = gettext(
            "No difference between the totals was detected: about %(now)s visitors (95%% interval "
            "%(now_range)s) against about %(then)s (%(then_range)s). The intervals overlap."
        )
    return text % values


def counted_days(limit: int) -> str:
    """Say what noisy totals leave out where people count on their first days only."""
    return ngettext(
        "Each visitor is counted only on the first day they are present, so later days count fewer visitors.",
        "Each visitor is counted only on the first %(n)d days they are present, so later days count fewer "
        "visitors.",
        limit,
    ) % {"n": limit}


def overall_words(overall: Association | NoTest | None) -> str:
    """Say if the shares of all categories differ, or why that is not tested; empty for other comparisons."""
    if overall is None:
        return ""
    if isinstance(overall, NoTest):
        text = gettext("No test of all categories together is available. %(reason)s")
        return text % {"reason": _no_test(overall)}
    p = {"p": formats.p_value(overall.p_value)}
    if overall.p_value < 1 - LEVEL:
        return (
            gettext(
                "All categories together: the shares differ between the two date ranges (p %(p)s). The test "
                "does not show which categories differ, by how much, or why."
            )
            % p
        )
    return (
        gettext(
            "All categories together: no difference between the shares of the two date ranges was detected "
            "(p %(p)s). This does not show that they are the same, because noise can hide a difference."
        )
        % p
    )


def test_words() -> str:
    """Describe how the test of all categories works."""
    return gettext(
        "The test of all categories together is a chi-square test of the shares. It takes into account that "
        "people who were present in both date ranges repeat their answers. If the shares are the same, it "
        "wrongly reports a difference in 5% of cases."
    )


def _no_test(reason: NoTest) -> str:
    return {
        NoTest.SHARED_PEOPLE: gettext(
            "The test needs the number of people who were present in both date ranges, which is not known "
            "for these two. Choose date ranges that overlap or that follow each other without a gap."
        ),
        NoTest.FIRST_DAYS: gettext(
            "For a daily indicator, the totals do not show how many people gave the same answer in both date "
            "ranges. Choose date ranges that begin on the same day."
        ),
        NoTest.SMALL: gettext("This study hides small categories."),
        NoTest.FEW: gettext(
            "Too few people were present in only one of the date ranges, or too few of them answered. Choose "
            "other or longer date ranges."
        ),
        NoTest.MANY: gettext("The indicator has too many categories."),
    }[reason]


def correction(comparison: Comparison) -> str:
    """Why a table needs a stricter rule than a row; empty for a single row, and where nothing is judged."""
    if len(comparison.rows) < 2 or comparison.status != Status.OK:
        return ""
    return gettext(
        "Even with no real difference, about one row in twenty appears to differ by chance. The last "
        "column therefore uses a stricter test, Holm's correction. With this test, at most 5 in 100 "
        "such tables contain even one false difference."
    )


def error_words(comparison: Comparison) -> str:
    """Return whether the intervals of the differences are exact, and why or why not."""
    if comparison.kind == Kind.CATEGORIES:
        return gettext(
            "Both categories are estimated from the same answers, so their errors are related. The error "
            "of the difference takes this into account exactly."
        )
    if comparison.kind == Kind.STUDIES:
        return gettext(
            "Each study has its own key, so the errors of the two studies are independent. The error "
            "stated for the difference is therefore exact. Do not add up the visitor numbers of the "
            "two studies, because the same people may be in both."
        )
    if comparison.is_exact:
        return gettext(
            "A visitor counted on both sides of the comparison gives only one answer, so part of the error "
            "cancels out in the difference. The calculation accounts for this exactly. As a result, "
            "subtracting the two displayed values might not give exactly the same difference."
        )
    few = comparison.report.study.small_cell
    hidden = gettext(
        "This study suppresses counts of fewer than %(n)s visitors. The number of visitors counted on "
        "both sides of the comparison can reveal such a count. If it does, the error calculation ignores "
        "these visitors."
    )
    return f"{_bound_words(comparison)} {hidden % {'n': formats.number(few)} if few else ''}".rstrip()


def _bound_words(comparison: Comparison) -> str:
    if comparison.report.indicator.kind == "daily":
        return gettext(
            "A person may give different answers on different days, so it is not known how strongly the "
            "errors of the two sides of the comparison are correlated. The errors shown are upper bounds, "
            "and the intervals contain the true value at least 95 times in 100."
        )
    return gettext(
        "It is not known exactly how many visitors are counted on both sides of the comparison. The "
        "errors shown are therefore upper bounds, and the intervals contain the true value at least 95 "
        "times in 100."
    )


def not_comparable(error: NotComparableError) -> str:
    """Why there is no difference, and what to do."""
    if error.report is not None:
        report = error.report
        title = formats.window_title(report.first_date, report.last_date)
        status = formats.status_word(report.status)
        reason = studies_texts.status_reason(report.status, report.study)
        return gettext("%(days)s: %(status)s. %(reason)s Choose other days.") % {
            "days": title,
            "status": status,
            "reason": reason,
        }
    return {
        Reason.SAME_WINDOWS: gettext(
            "Both sides of the comparison cover the same days, so the difference is 0. Choose other days."
        ),
        Reason.SAME_CATEGORIES: gettext(
            "Both sides of the comparison show the same category, so the difference is 0. Choose another "
            "category."
        ),
        Reason.NO_BASELINE: gettext(
            "There are no figures for any of the other days, so no comparison is possible. Choose different "
            "days."
        ),
        Reason.OTHER_CATEGORIES: gettext(
            "The two indicators have different categories, so they cannot be compared. Choose another "
            "indicator."
        ),
        Reason.BLANK: gettext("There are no figures for these days. Choose other days."),
        Reason.NOISY: gettext(
            "This study adds presence noise, and date ranges share part of this noise. The error of "
            "a difference cannot be computed, so no difference is shown. Compare the intervals in "
            "the report instead. If two intervals do not overlap, the figures differ."
        ),
        Reason.SMALL: gettext(
            "This study hides small categories, so this comparison is not shown. Choose other days or "
            "categories."
        ),
        Reason.GROUPS: gettext(
            "Comparisons are not available for this indicator yet, because its answers disclose groups or "
            "categories. Compare the intervals in the report instead. If two intervals do not "
            "overlap, the figures differ."
        ),
        Reason.NUMBER: gettext(
            "This indicator is a number. To compare its mean on different days, open the report and "
            "choose the days there."
        ),
    }[error.reason]


def _place(comparison: Comparison, *, is_reference: bool) -> str:
    report = comparison.reference if is_reference else comparison.report
    days = formats.window_title(report.first_date, report.last_date)
    if comparison.kind != Kind.STUDIES:
        return days
    studies = {comparison.report.study, comparison.reference.study}
    is_shared = len(studies) > len({each.shown_name for each in studies})
    return f"{name_with_slug(report.study) if is_shared else report.study.shown_name}, {days}"


def day_list(days: list[date]) -> str:
    """Days in a row: "30 May, 1 Jun"."""
    return ", ".join(formats.short_day(day) for day in days)


def _signed(value: float, of: Quantity) -> str:
    text = formats.decimal(value * 100, decimals=1) if of == "frequency" else formats.number(value)
    is_zero = not any(sign in text for sign in "123456789")
    if is_zero:
        return text.lstrip(formats.MINUS)
    return f"+{text}" if value > 0 else text
