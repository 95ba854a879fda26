"""Texts about forecasts and limits of zones."""

from typing import Final

from django.utils.translation import gettext, ngettext

from ldp.estimation.series.levels import WEEKDAY_DAYS
from reports.base import formats
from reports.events.periods import PeriodKind
from reports.forecasts.actions import LEAST_DAYS, has_days_forecast
from reports.forecasts.crowds import Crowded
from reports.forecasts.queries import EventForecast, Expected, ExpectedEvents, Judged

NONE: Final = "\N{EN DASH}"  # in place of a number that is not known


def method_words(method: str) -> str:
    """Explain a method, and why a better one is not used."""
    return {
        "ridge": gettext(
            "The forecast uses ridge regression. Its inputs are the last day's values, the changes "
            "at the same time on earlier days, the time of day, and the time of week. Outliers are "
            "given less weight."
        ),
        "mean step": gettext(
            "The forecast is the last value plus the average change at this time of day. The history is "
            "too short for a regression, which needs 21 days."
        ),
        "last value": gettext(
            "The forecast is the last value, because the history is too short for any other method."
        ),
        "level and weekday": gettext(
            "The forecast combines a slowly changing level with a weekday effect. A Kalman filter "
            "takes the known noise of the published figures into account."
        ),
        "level, weekday and year": gettext(
            "The forecast combines a slowly changing level with effects of the weekday and of the season. A "
            "Kalman filter takes the known noise of the published figures into account."
        ),
        "level": gettext(
            "The forecast is based on a slowly changing level. The history is too short for weekday "
            "effects, which need 14 days with figures (two of each weekday)."
        ),
    }[method]


def event_cells(each: ExpectedEvents) -> tuple[str, ...]:
    """Name of a category, the expected number of its events, and the intervals of `LEVELS`."""
    value = expected_text(Expected(value=each.expected.value, ends=(None,)))
    return (
        each.shown_name or gettext("All events"),
        value,
        *(range_text(ends) for ends in each.expected.ends),
    )


def event_forecast_words(found: EventForecast) -> str:
    """Say which period is forecast; empty without a forecast."""
    if found.first_date is None or found.last_date is None:
        return ""
    return gettext(
        "Expected numbers of events in %(name)s (%(first)s to %(last)s). They were not counted."
    ) % {
        "name": found.name,
        "first": formats.day_title(found.first_date),
        "last": formats.day_title(found.last_date),
    }


def event_backtest_words(found: EventForecast, *, kind: PeriodKind) -> str:
    """Say how far forecasts of earlier days and periods were off, and what was not tested."""
    if found.judged is None:
        return ""
    tests = [_day_backtest_words(found.judged)]
    if found.longer is not None:
        tests.append(_period_backtest_words(found.longer))
    elif kind != "day":
        tests.append(gettext("Forecasts of longer periods, such as this one, were not tested."))
    return " ".join(
        (
            *tests,
            gettext("Forecasts of categories were not tested, because their true numbers are not known."),
        )
    )


def _day_backtest_words(judged: Judged) -> str:
    model, last, _week = (formats.number(each or 0.0) for each in judged.mae)
    return ngettext(
        "In a backtest of the next day on %(n)d past day, the number of all events differed from the "
        "forecast by %(model)s, and from the day before by %(last)s.",
        "In a backtest of the next day on %(n)d past days, the number of all events differed from the "
        "forecast by %(model)s on average, and from the day before by %(last)s.",
        judged.days,
    ) % {"n": judged.days, "model": model, "last": last}


def _period_backtest_words(judged: Judged) -> str:
    model, last, _week = (formats.number(each or 0.0) for each in judged.mae)
    return ngettext(
        "In a backtest of the next period on %(n)d past period of this kind, the number of all events "
        "differed from the forecast by %(model)s, and from as many days before by %(last)s.",
        "In a backtest of the next period on %(n)d past periods of this kind, the number of all events "
        "differed from the forecast by %(model)s on average, and from as many days before by %(last)s.",
        judged.days,
    ) % {"n": judged.days, "model": model, "last": last}


def no_event_forecast(found: EventForecast) -> str:
    """Say why there is no forecast of the next period; empty where there is one."""
    if found.rows:
        return ""
    if found.row.result:
        return gettext(
            "There is no forecast of this period, because the history is too short. It must have %(days)s "
            "days, two of each weekday (public holidays count as Sundays), and as many as lie between the "
            "last day with events and the end of the next period."
        ) % {"days": WEEKDAY_DAYS}
    if not has_days_forecast(found.row.study):
        return gettext("Daily forecasts are available only for studies of at least %(least_days)s days.") % {
            "least_days": LEAST_DAYS
        }
    return gettext("A worker computes the forecast after figures are published.")


def ahead_text(minutes: int) -> str:
    """Say how far after the last published slot a slot is."""
    if minutes % 60:
        return ngettext("%(n)d minute ahead", "%(n)d minutes ahead", minutes) % {"n": minutes}
    hours = minutes // 60
    return ngettext("%(n)d hour ahead", "%(n)d hours ahead", hours) % {"n": hours}


def expected_text(found: Expected, *, is_share: bool = False) -> str:
    """A value with its 95% interval, if it has one."""
    if is_share:
        value = formats.percent(min(max(found.value, 0.0), 1.0))
        ends = found.ends[-1]
        return f"{value} ({formats.percent_range(*ends)})" if ends else value
    value = formats.number(max(found.value, 0.0))
    return f"{value} ({range_text(found.ends[-1])})" if found.ends[-1] else value


def interval_words(level: float) -> str:
    """Name of an interval with a confidence level in (0, 1)."""
    percent = formats.decimal(100 * level, decimals=0) + formats.percent_sign()
    return gettext("%(level)s interval") % {"level": percent}


def range_text(ends: tuple[float, float] | None, *, is_share: bool = False) -> str:
    """An interval of people, not below none, or of shares; empty without one."""
    if ends is None:
        return ""
    if is_share:
        return formats.percent_range(*ends)
    return formats.people_range(*ends)


def crowd_sentence(found: Crowded) -> str:
    """Say which limit is, or may be, exceeded, when and by how many people."""
    limit = found.limit
    words = {
        "zone": found.shown_zone,
        "time": f"{found.starts_at:%H:%M}",
        "day": formats.day_title(found.starts_at.date()),
        "capacity": formats.number(limit.capacity),
        "people": range_text((limit.low or 0.0, limit.high or 0.0)),
    }
    if found.is_certain:
        text = gettext(
            "%(zone)s exceeds its limit of %(capacity)s: %(people)s people on %(day)s at %(time)s."
        )
    else:
        text = gettext(
            "%(zone)s may exceed its limit of %(capacity)s: %(people)s people on %(day)s at %(time)s."
        )
    return text % words
