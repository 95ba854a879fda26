"""Texts about forecasts and limits of zones."""

from typing import Final

from django.utils.translation import gettext, ngettext

from reports.base import formats
from reports.forecasts.crowds import Crowded
from reports.forecasts.queries import Expected

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
