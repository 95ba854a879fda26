"""Texts of numbers: figures with their unit, and sentences about mean, median and shares."""

from django.utils.text import capfirst
from django.utils.translation import gettext

from ldp.estimation.numbers.threshold import QuantileEstimate
from ldp.protocols.numbers.threshold import Scale
from reports.base import formats
from reports.base.status import Status, estimates_status
from reports.estimates.picker import window_title
from reports.estimates.queries import Estimate
from reports.estimates.texts import KeyFact
from reports.numbers.queries import Figure, MeanComparison, NumberReport
from reports.studies.models import Study
from reports.studies.texts import status_reason


def figure_text(value: float, scale: Scale) -> str:
    """A number with its unit."""
    return gettext("%(number)s %(unit)s") % {"number": _digits(value, scale), "unit": scale.unit}


def _digits(value: float, scale: Scale) -> str:
    """Write a number with as many decimals as its range bears; a cut without any."""
    whole = scale.cuts[-1] - scale.minimum
    return formats.decimal(value, decimals=0 if isinstance(value, int) else 1 if whole >= 20 else 2)


def interval_text(figure: Figure, scale: Scale) -> str:
    """Both bounds of the interval of a mean or a difference."""
    if figure.ci_low is None or figure.ci_high is None:
        return formats.MISSING
    low, high = (_digits(end, scale) for end in (figure.ci_low, figure.ci_high))
    return gettext("%(low)s to %(high)s %(unit)s") % {"low": low, "high": high, "unit": scale.unit}


def range_text(low: int, high: int | None, scale: Scale) -> str:
    """Range in which a quantile lies."""
    if high is None:
        return gettext("%(number)s or more") % {"number": figure_text(low, scale)}
    ends = {"low": _digits(low, scale), "high": _digits(high, scale), "unit": scale.unit}
    return gettext("%(low)s to less than %(high)s %(unit)s") % ends


def quantile_texts(found: QuantileEstimate, scale: Scale) -> tuple[str, str]:
    """Where a quantile lies, and its interval."""
    return range_text(found.low, found.high, scale), range_text(found.ci_low, found.ci_high, scale)


def rounding_words(scale: Scale) -> str:
    """Explain what the mean is the mean of."""
    widest, last = max(scale.spacings), scale.cuts[-1]
    return gettext(
        "Before the mean is calculated, each value is rounded down to the nearest threshold. A value "
        "below the first threshold is rounded down to %(minimum)s. This rounding lowers the mean by up "
        "to %(widest)s. Values below %(minimum)s count as %(minimum)s, and values above %(last)s count "
        "as %(last)s."
    ) % {
        "minimum": figure_text(scale.minimum, scale),
        "widest": figure_text(widest, scale),
        "last": figure_text(last, scale),
    }


def meanings() -> dict[str, str]:
    """Describe each statistic of a file."""
    return {
        "mean": gettext("mean of the values, each rounded down to the minimum or to a threshold"),
        "quantile": gettext(
            "the quantile lies between value and value_below; share_below is the fraction of visitors "
            "whose value is lower than the quantile"
        ),
        "reference_mean": gettext("mean for the comparison days"),
        "difference": gettext("mean for the selected days minus mean for the comparison days"),
    }


def facts_of(number: NumberReport) -> list[KeyFact]:
    """Mean and median with their intervals; none where the mean is not reliable."""
    mean, median, scale = number.mean, number.median, number.scale
    if mean.status != Status.OK or mean.value is None:
        return []
    range_words = gettext("95%% interval %(range)s")
    more = range_words % {"range": interval_text(mean, scale)}
    facts = [KeyFact(label=gettext("Mean"), value=figure_text(mean.value, scale), more=more)]
    if median is not None:
        value, ends = quantile_texts(median, scale)
        more = range_words % {"range": ends}
        facts.append(KeyFact(label=gettext("Median"), value=value, more=more))
    return facts


def mean_sentence(number: NumberReport) -> str:
    """Mean and median in a sentence: the text alternative of the curve."""
    mean, median = number.mean, number.median
    if mean.status != Status.OK or mean.value is None or median is None:
        return blank_sentence(mean.status, number.report.study)
    return gettext(
        "The mean is %(mean)s (95%% interval %(range)s). The median is %(median)s (95%% interval: %(wide)s)."
    ) % {
        "mean": figure_text(mean.value, number.scale),
        "range": interval_text(mean, number.scale),
        **dict(zip(("median", "wide"), quantile_texts(median, number.scale), strict=True)),
    }


def blank_sentence(status: Status, study: Study) -> str:
    """Explain why there is no mean or difference."""
    reason = status_reason(status, study)
    if status == Status.NOT_RELIABLE:
        reason = gettext(
            "The 95% interval covers more than half of the range of possible values, or no reports were "
            "received for one of the thresholds. Choose a range with more days."
        )
    words = {"name": capfirst(formats.status_word(status)), "figure": reason}
    return gettext("%(name)s: %(figure)s") % words


def no_cut_sentence(asked: str, shown: int, scale: Scale) -> str:
    """Say that an address asks for a value that is no cut, and which one is shown."""
    return gettext(
        "“%(asked)s” is not a threshold of this indicator. This is the share at or above %(shown)s."
    ) % {"asked": asked[:40], "shown": figure_text(shown, scale)}


def above_sentence(found: Estimate) -> str:
    """Share of the visitors whose number reaches a cut."""
    if found.frequency is None or found.ci_low is None or found.ci_high is None:
        return capfirst(formats.status_word(found.status))
    # Of one figure its own width counts: there is no other whose reading it could bias.
    window = Status.OK if found.status == Status.NOT_RELIABLE else found.status
    status = estimates_status(window, ci_low=[found.ci_low], ci_high=[found.ci_high])
    if status != Status.OK:
        return gettext("%(name)s: 95%% interval %(range)s") % {
            "name": capfirst(formats.status_word(status)),
            "range": formats.percent_range(found.ci_low, found.ci_high),
        }
    return gettext("%(share)s of the visitors (95%% interval %(range)s), or %(people)s people (%(wide)s)") % {
        "share": formats.percent(found.frequency),
        "range": formats.percent_range(found.ci_low, found.ci_high),
        "people": formats.number(found.visitors),
        "wide": formats.number_range(found.visitors_ci_low, found.visitors_ci_high),
    }


def difference_sentence(comparison: MeanComparison) -> str:
    """Difference of two means, and whether it differs from chance."""
    number, found = comparison.number, comparison.difference
    if found.status != Status.OK or found.value is None or found.ci_low is None or found.ci_high is None:
        return blank_sentence(found.status, number.report.study)
    values = {
        "one": window_title(number.report.study, number.report.window),
        "other": window_title(comparison.reference.report.study, comparison.reference.report.window),
        "difference": figure_text(abs(found.value), number.scale),
        "range": interval_text(found, number.scale),
    }
    if found.ci_low <= 0 <= found.ci_high:
        return (
            gettext(
                "No difference detected between the means of %(one)s and %(other)s: the 95%% interval of the "
                "difference, %(range)s, includes 0."
            )
            % values
        )
    if found.value > 0:
        return (
            gettext(
                "The mean of %(one)s is %(difference)s higher than that of %(other)s (95%% interval of the "
                "difference: %(range)s)."
            )
            % values
        )
    return (
        gettext(
            "The mean of %(one)s is %(difference)s lower than that of %(other)s (95%% interval of the "
            "difference: %(range)s)."
        )
        % values
    )
