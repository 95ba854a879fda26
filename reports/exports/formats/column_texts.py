"""Meaning of each column of the tables in workbooks."""

from collections.abc import Mapping
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

_DAY: Final = _("Day of the figure, in the study's time zone.")
_SHARE: Final = _("Estimated share (1 = 100%), without bias: noise can make it negative or larger than 1.")
MEANINGS: Final[Mapping[str, str | Promise]] = {
    "absent_days": _("Days on which people must be absent."),
    "adjusted_verdict": _("Result for the row, adjusted for the number of rows."),
    "adjustment": _("Adjustment of the results for the number of rows."),
    "ahead": _("Number of steps after the last published figure."),
    "association": _("Dependence between the rows and the columns, in words."),
    "association_p_value": _("P-value of the test for a dependence between rows and columns."),
    "at": _("Day of the forecast, or start of its time slot."),
    "baseline_days": _("Days whose mean is the reference."),
    "by": _("Indicator by whose categories the mean is given."),
    "by_category": _("Category of that indicator."),
    "category": _("Category of the indicator. Empty: all visitors."),
    "class": _("Class of subscribers. Empty: all classes, assuming that they have the same shares."),
    "class_epsilon": _("Epsilon of one answer of the people of the class."),
    "class_reports": _("Answers received from the class."),
    "class_visitors": _("Visitors of the class, as counted."),
    "category_share": _("Share of the people of the category in the data. Empty: all categories."),
    "category_share_high": _(
        "Upper end of the interval of that share. Empty: a total, or a share taken as exact."
    ),
    "category_share_low": _(
        "Lower end of the interval of that share. Empty: a total, or a share taken as exact."
    ),
    "ci_high": _("Upper end of the interval."),
    "ci_level": _("Confidence level of the intervals."),
    "ci_low": _("Lower end of the interval."),
    "cohort_day": _("Day on which the people in the figure were present or arrived."),
    "column_category": _("Category in the column of the table. Empty: a total."),
    "column_indicator": _("Indicator in the columns of the table."),
    "combined": _("Share estimated from all answers about the indicators of the table."),
    "comparison": _("Kind of comparison."),
    "consistent": _(
        "The same value adjusted so that no value is negative and all add up to their total (shares: to 1)."
    ),
    "count": _("Published count of people, before scaling by the market share."),
    "coverage_80": _("Share of past figures inside the 80% forecast interval."),
    "coverage_95": _("Share of past figures inside the 95% forecast interval."),
    "day": _DAY,
    "days": _("Number of days or time slots on which the forecast was tested."),
    "destination": _("Place at the end of the flow. Empty: a total."),
    "destination_indicator": _("Indicator that gives the place at the end."),
    "difference": _("Value minus reference."),
    "epsilon": _("Privacy loss limit of one answer."),
    "estimate": _("Best estimate between the two bounds."),
    "figure": _("Content of the row."),
    "first_day": _("First day of the date range, in the study's time zone."),
    "frequency": _SHARE,
    "high_80": _("Upper end of the 80% forecast interval."),
    "high_95": _("Upper end of the 95% forecast interval."),
    "indicator": _("Short name of the indicator."),
    "interval": _("Kind of interval."),
    "k": _("Number of days in the question."),
    "larger_than_noise": _("“yes” if the figure can be distinguished from zero."),
    "last_day": _("Last day of the date range, included."),
    "least": _("Smallest possible number of people."),
    "left_out_days": _("Days without figures, which are not part of the mean."),
    "level": _("Level of zones. Empty: the finest level."),
    "last_period": _("Name of the last whole period."),
    "last_value": _("Number of events in the last whole period; in a category, estimated."),
    "low_80": _("Lower end of the 80% forecast interval."),
    "low_95": _("Lower end of the 95% forecast interval."),
    "mae": _("Mean absolute error of the forecast on past figures."),
    "mae_last_value": _("Mean absolute error of repeating the last figure."),
    "mae_week_before": _("Mean absolute error of repeating the figure of the week before."),
    "market_share": _("Share of the population in the data; visitors are divided by it."),
    "max_moves": _("Number of a person's moves on one day that count in full."),
    "max_visits": _("Number of a person's zones on one day that count in full."),
    "mean": _("Estimated mean, in the unit of the number."),
    "measure": _("Compared values: shares or numbers of visitors."),
    "mechanism": _("Method that makes the answers random."),
    "method": _("Method of the forecast."),
    "model": _("Name of the model."),
    "most": _("Largest possible number of people."),
    "moves": _("Estimated number of moves, scaled by the market share."),
    "moves_balanced": _("Moves adjusted so that arrivals and departures agree."),
    "moves_per_visitor_day": _("Estimated moves for each visitor and day."),
    "n_days": _("Number of days."),
    "n_known": _("Number of published figures that the forecast uses."),
    "n_reports": _("Number of people whose answers are used."),
    "n_rows": _("Number of rows in the comparison."),
    "n_visitors": _("Number of visitors in the network, not scaled."),
    "name": _("Zone or category. Empty: all visitors."),
    "not_scaled": _("Visitors in the network: counted for all categories, estimated for one."),
    "number": _("Indicator that is a number."),
    "origin": _("Place at the start of the flow. Empty: a total."),
    "origin_indicator": _("Indicator that gives the place at the start."),
    "other_zone": _("The other zone that the same people visited."),
    "overall": _("Result for all categories together, in words."),
    "overall_p_value": _("P-value of the test of all categories together."),
    "pairs": _("Joint indicators that the model is made of."),
    "pairs_epsilon": _("Privacy loss limit of one answer, for each of these."),
    "pairs_n_reports": _("Number of people whose answers are used, for each of these."),
    "pattern_days": _("Days on which these people were present."),
    "people": _("Estimated number of people, scaled by the market share."),
    "period": _("Name of the period."),
    "plan_version": _("Version of the plan that protects the answers."),
    "present_days": _("Days on which people must be present."),
    "question": _("Kind of question."),
    "reports": _("Number of random answers with this category. It is not a number of visitors."),
    "reference": _("The value that is compared with."),
    "rmse": _("Root mean square error of the forecast on past figures."),
    "rmse_last_value": _("Root mean square error of repeating the last figure."),
    "rmse_week_before": _("Root mean square error of repeating the figure of the week before."),
    "row_category": _("Category in the row of the table. Empty: a total."),
    "row_indicator": _("Indicator in the rows of the table."),
    "scaled": _("Estimated number of people: visitors divided by the market share of their category."),
    "selected_categories": _("Selected categories, by short name of their indicator."),
    "share": _SHARE,
    "share_below": _("Share of people below the value."),
    "share_of": _("Whole that the share refers to."),
    "shares_name": _("Name of the market shares by category."),
    "shares_valid_from": _("First day on which these market shares are valid."),
    "shares_valid_to": _("Last day on which these market shares are valid. Empty: no end."),
    "slot_end": _("End of the time slot."),
    "slot_start": _("Start of the time slot."),
    "software_version": _("Version of the software that made the file."),
    "statistic": _("Kind of figure."),
    "status": _("Quality of the row: only “ok” can be used."),
    "std_error": _("Standard error of the estimate."),
    "study": _("Short name of the study."),
    "third_category": _("Category of the third indicator."),
    "third_indicator": _("Third indicator of the table."),
    "timezone": _("Time zone of the days."),
    "unit": _("Values that epsilon protects: one of a person's values, or all of them."),
    "unit_of_mean": _("Unit of the mean."),
    "unit_of_value": _("Unit of the value."),
    "value": _("Value of the figure."),
    "value_below": _("The quantile lies from the value to below this number."),
    "value_unit": _("Unit of the value."),
    "verdict": _("Result for the row alone."),
    "visitors": _("Estimated number of visitors, scaled by the market share."),
    "weekday_mean": _("Mean number of events of each weekday so far, added up over the period."),
    "window_first_day": _("First day of the date range of the figure."),
    "window_last_day": _("Last day of the date range of the figure."),
    "within_category": _("Category to which the table is limited."),
    "within_indicator": _("Indicator to one category of which the table is limited."),
    "zone": _("Name of the zone."),
}
_PARTS: Final[Mapping[str, str | Promise]] = {
    "_ci_low": _("Lower end of the interval of “%(name)s”."),
    "_ci_high": _("Upper end of the interval of “%(name)s”."),
    "_std_error": _("Standard error of “%(name)s”."),
    "_status": _("Quality of “%(name)s”: only “ok” can be used."),
}


def column_words(name: str) -> str:
    """Meaning of a column; KeyError if it has none."""
    if name in MEANINGS:
        return str(MEANINGS[name])
    for ending, text in _PARTS.items():
        if name.endswith(ending):
            return str(text) % {"name": name.removesuffix(ending)}
    other = name.removeprefix("reference_")
    if other in MEANINGS and other != name:
        return gettext("“%(name)s” of the other side of the comparison.") % {"name": other}
    raise KeyError(name)
