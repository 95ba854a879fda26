"""The fan of a forecast: what is published, what is expected, and its intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.utils.translation import gettext, pgettext

from ldp.estimation.series.forecast import LEVELS
from reports.base import formats
from reports.estimates.charts import Figure, axis_of_times, base_layout, chart_text
from reports.estimates.options import MAX_LINES
from reports.estimates.queries import WindowReport
from reports.forecasts.queries import Expected
from reports.forecasts.smoothing import SmoothedCategory, SmoothedShare
from reports.forecasts.texts import NONE, expected_text, interval_words

_TICKS: Final = 5  # two lines each: more overlap on a phone
_SHADES: Final = ("0.28", "0.14")  # of the intervals of `LEVELS`


@dataclass(frozen=True, slots=True, kw_only=True)
class Fan:
    """Points before and after the last published one; `times` are in words, lines parted by <br>.

    published : None where there is no figure
    """

    times: Sequence[str]
    published: Sequence[float | None]
    expected: Sequence[Expected]
    limit: int | None = None
    is_share: bool = False


def fan_figure(fan: Fan) -> Figure:
    """Line of what is published, dashed line of what is expected, and a band for each interval."""
    n = len(fan.published)
    ahead = list(range(n, n + len(fan.expected)))
    data = [band for level in reversed(range(len(LEVELS))) if (band := _band(fan, ahead, level=level))]
    data.append(_line(fan, list(range(n)), list(fan.published), name=gettext("Published"), dash="solid"))
    expected = [each.value for each in fan.expected]
    data.append(_line(fan, ahead, list(expected), name=gettext("Forecast"), dash="dash"))
    if fan.limit is not None:
        data.append(_limit(fan, n + len(fan.expected)))
    layout = base_layout(height_px=400)
    layout["xaxis"] |= axis_of_times(fan.times, ticks=_TICKS)
    layout["yaxis"] |= {"rangemode": "tozero", "nticks": 7}
    layout["yaxis"] |= {"ticksuffix": formats.percent_sign()} if fan.is_share else {"tickformat": ",.0f"}
    layout["legend"] = {"orientation": "h", "y": -0.16, "yanchor": "top", "x": 0, "itemclick": "toggle"}
    return {"data": data, "layout": layout | {"hovermode": "closest", "showlegend": True}}


def add_smoothed(
    figure: Figure,
    reports: Sequence[WindowReport],
    smoothed: SmoothedCategory | None,
    *,
    place: int,
    measure: str,
) -> None:
    """Draw the smoothed line of a category over its points, in place, and rings around days of a change.

    Points are then no longer joined: their line would only show the noise.
    """
    if smoothed is None:
        return
    name = chart_text(smoothed.shown_category)
    points = next(
        each for each in figure["data"] if (each.get("name"), each["mode"]) == (name, "lines+markers")
    )
    points["mode"] = "markers"
    scales = [100.0 if measure == "frequency" else (report.scale or 0.0) for report in reports]
    figure["data"].append(_smoothed_line(smoothed, scales, colour=f"--chart-{place % MAX_LINES + 1}"))
    if any(day.is_change for day in smoothed.days):
        figure["data"].append(_rings(smoothed, points["y"]))


def _smoothed_line(smoothed: SmoothedCategory, scales: Sequence[float], *, colour: str) -> dict[str, Any]:
    name = gettext("%(name)s, smoothed") % {"name": chart_text(smoothed.shown_category)}
    values = [
        None if day.smoothed is None else round(day.smoothed * scale, 4)
        for day, scale in zip(smoothed.days, scales, strict=True)
    ]
    look = {"mode": "lines", "line": {"color": colour, "width": 3}, "connectgaps": False}
    hover = [f"{name}<br>{_day(day)}<br>{formats.percent(day.smoothed)}" for day in smoothed.days]
    return _over(smoothed) | look | {"y": values, "name": name, "hovertext": hover}


def _rings(smoothed: SmoothedCategory, values: Sequence[float | None]) -> dict[str, Any]:
    name = pgettext("smoothed", "Change")
    rings = [y if day.is_change else None for y, day in zip(values, smoothed.days, strict=True)]
    marker = {"symbol": "circle-open", "size": 15, "color": "--text", "line": {"width": 2}}
    hover = [f"{name}<br>{_day(day)}" for day in smoothed.days]
    return _over(smoothed) | {
        "mode": "markers",
        "y": rings,
        "name": name,
        "marker": marker,
        "hovertext": hover,
    }


def _over(smoothed: SmoothedCategory) -> dict[str, Any]:
    """Trace over the points of a category, without its own entry in the legend."""
    return {
        "type": "scatter",
        "x": [day.day for day in smoothed.days],
        "legendgroup": chart_text(smoothed.shown_category),
        "showlegend": False,
        "hoverinfo": "text",
    }


def _day(day: SmoothedShare) -> str:
    return chart_text(formats.day_title(day.date))


def _drawn(value: float | None, *, is_share: bool) -> float | None:
    """Value at the precision of a screen, not below none."""
    if value is None:
        return None
    return max(round(100 * value, 3) if is_share else round(value, 1), 0.0)


def _line(fan: Fan, x: list[int], values: list[float | None], *, name: str, dash: str) -> dict[str, Any]:
    n = len(fan.published)
    texts = [
        expected_text(fan.expected[place - n] if place >= n else Expected(value=value, ends=(None,)),
                      is_share=fan.is_share) if value is not None else NONE
        for place, value in zip(x, values, strict=True)
    ]  # fmt: skip
    return {
        "type": "scatter",
        "mode": "lines",
        "x": x,
        "y": [_drawn(value, is_share=fan.is_share) for value in values],
        "name": name,
        "line": {"color": "--chart-1", "width": 2, "dash": dash},
        "connectgaps": False,
        "hovertext": [f"{fan.times[place]}<br>{text}" for place, text in zip(x, texts, strict=True)],
        "hoverinfo": "text",
    }


def _band(fan: Fan, x: list[int], *, level: int) -> dict[str, Any] | None:
    found = [(at, each.ends[level]) for at, each in zip(x, fan.expected, strict=True)]
    known = [(at, ends) for at, ends in found if ends is not None]
    if not known:
        return None
    places = [at for at, _ in known]
    bounds = [ends if fan.is_share else formats.people_bounds(*ends) for _, ends in known]
    low = [_drawn(ends[0], is_share=fan.is_share) for ends in bounds]
    high = [_drawn(ends[1], is_share=fan.is_share) for ends in bounds]
    return {
        "type": "scatter",
        "mode": "lines",
        "x": places + places[::-1],
        "y": high + low[::-1],
        "name": interval_words(LEVELS[level]),
        "fill": "toself",
        "fillcolor": f"--chart-1/{_SHADES[level]}",
        "line": {"width": 0},
        "hoverinfo": "skip",
    }


def _limit(fan: Fan, n: int) -> dict[str, Any]:
    name = gettext("Limit")
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [-0.5, n - 0.5],
        "y": [fan.limit, fan.limit],
        "name": name,
        "line": {"color": "--text", "width": 1.5, "dash": "dot"},
        "hovertext": [f"{chart_text(name)}{formats.colon()} {formats.number(fan.limit)}"] * 2,
        "hoverinfo": "text",
    }
