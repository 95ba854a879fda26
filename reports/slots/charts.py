"""Figures of presence by slot: the day as lines, and the week as a table of colours."""

from itertools import pairwise
from math import floor, log10
from typing import Any, Final

import numpy as np
from django.utils.dates import WEEKDAYS as WEEKDAY_NAMES
from django.utils.dates import WEEKDAYS_ABBR
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from reports.base import formats
from reports.estimates.charts import SYMBOLS, Figure, axis_of_times, base_layout, chart_text
from reports.estimates.options import MAX_LINES
from reports.slots import facts, texts
from reports.slots.facts import Week
from reports.slots.queries import Floats, SlotZone
from reports.slots.query import View, time_text

_TICKS: Final = 6
CLASSES: Final = 5
_ROUND: Final = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 20.0)


def day_figure(view: View) -> Figure:
    """A line for each zone over the slots of the day, with its interval; another day as a dashed line."""
    data: list[dict[str, Any]] = []
    for place, zone in enumerate(view.zones):
        data += _line(view, zone, place=place)
    if (people := facts.other_people(view)) is not None:
        data.append(_dashed(view, people))
    layout = base_layout(height_px=420)
    layout["xaxis"] |= axis_of_times(_times(view), ticks=_TICKS)
    layout["yaxis"] |= {"tickformat": ",.0f", "rangemode": "tozero", "nticks": 7}
    layout["legend"] = {"orientation": "h", "y": -0.12, "yanchor": "top", "x": 0, "itemclick": "toggle"}
    layout["shapes"] = [
        {
            "type": "line",
            "x0": view.slot - view.day_slots.start,
            "x1": view.slot - view.day_slots.start,
            "yref": "paper",
            "y0": 0,
            "y1": 1,
            "line": {"color": "--border-strong", "width": 1, "dash": "dot"},
        }
    ]
    return {"data": data, "layout": layout | {"hovermode": "closest", "showlegend": True}}


def _line(view: View, zone: SlotZone, *, place: int) -> list[dict[str, Any]]:
    """Band and line of a zone; slots without figures leave a gap."""
    found, colour = view.found, f"--chart-{place % MAX_LINES + 1}"
    people, half = found.people(zone, day=view.day), found.half_width
    name = chart_text(zone.shown_name)
    line = {
        "type": "scatter",
        "mode": "lines+markers",
        "x": list(range(len(people))),
        "y": _drawn(people),
        "name": name,
        "legendgroup": name,
        "line": {"color": colour, "width": 2},
        "marker": {"symbol": SYMBOLS[place % len(SYMBOLS)], "size": 4},
        "connectgaps": False,
        "hovertext": [
            f"{name}<br>{time}{formats.colon()} {words}"
            for time, words in zip(_times(view), texts.column_texts(people, half), strict=True)
        ],
        "hoverinfo": "text",
    }
    there = np.flatnonzero(~np.isnan(people))
    if not half or not there.size:  # the published slots of a day follow each other
        return [line]
    x, shown = there.tolist(), np.maximum(people[there], 0)
    band = {
        "type": "scatter",
        "mode": "lines",
        "x": x + x[::-1],
        "y": _drawn(shown + half) + _drawn(shown - half)[::-1],
        "fill": "toself",
        "fillcolor": f"{colour}/0.14",
        "line": {"width": 0},
        "legendgroup": name,
        "showlegend": False,
        "hoverinfo": "skip",
    }
    return [band, line]


def _times(view: View) -> list[str]:
    return [time_text(view.found, slot) for slot in view.day_slots]


def _dashed(view: View, people: Floats) -> dict[str, Any]:
    name = chart_text(f"{view.zones[0].shown_name}{formats.colon()} {texts.other_legend(view)}")
    return {
        "type": "scatter",
        "mode": "lines",
        "x": list(range(len(people))),
        "y": _drawn(people),
        "name": name,
        "line": {"color": "--muted", "width": 2, "dash": "dash"},
        "connectgaps": False,
        "hovertext": [f"{name}<br>{formats.number(max(each, 0))}" for each in np.nan_to_num(people).tolist()],
        "hoverinfo": "text",
    }


def _drawn(people: Floats) -> list[float | None]:
    """Values at the precision of a screen, not below none."""
    return [None if np.isnan(each) else max(round(each, 1), 0.0) for each in people.tolist()]


def heat_rows(week: Week) -> list[tuple[str, SafeString]]:
    """A row for each hour with a cell for each weekday; colours in equal steps from none to the most."""
    step = _step(week)
    names = [str(WEEKDAY_NAMES[weekday]) for weekday in range(7)]
    rows = []
    for hour, row in enumerate(week.people.tolist()):
        cells = [
            _heat_cell(people, step=step, title=f"{name}, {hour:02d}:00")
            for people, name in zip(row, names, strict=True)
        ]
        rows.append((f"{hour:02d}", SafeString("".join(cells))))
    return rows


def heat_legend(week: Week) -> list[str]:
    """Describe the classes of colours from the lowest; none without figures."""
    step = _step(week)
    ends = [formats.number(step * place) for place in range(CLASSES + 1)]
    return [
        gettext("%(low)s to %(high)s") % {"low": low, "high": high} for low, high in pairwise(ends) if step
    ]


def _step(week: Week) -> float:
    """Width of a class of colours: round, and a fifth of the most at least; 0 without people."""
    if np.isnan(week.people).all() or (most := float(np.nanmax(week.people))) <= 0:
        return 0.0
    power = 10.0 ** floor(log10(most / CLASSES))
    return power * next(each for each in _ROUND if each * power * CLASSES >= most)


def weekday_heads() -> list[tuple[str, str]]:
    """Short and long names of the columns."""
    return [(str(WEEKDAYS_ABBR[weekday]), str(WEEKDAY_NAMES[weekday])) for weekday in range(7)]


def _heat_cell(people: float, *, step: float, title: str) -> str:
    """A cell of the table; in Python: there are many."""
    if np.isnan(people):
        return f'<td class="number">{formats.MISSING}</td>'
    n = max(round(people), 0)
    place = min(max(int(people / step), 0), CLASSES - 1) + 1 if step else 1
    words, text = (
        chart_text(f"{title}{formats.colon()} {formats.number(n)}"),
        formats.compact(n) if n else "0",
    )
    return f'<td class="number slots-week__{place}" title="{words}">{text}</td>'
