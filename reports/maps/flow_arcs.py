"""Flows on a map: an arc for each listed pair of two zones, as wide as the pair is large.

`static/js/map.js` draws. The text of a zone has its totals in and out.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from django.utils.translation import gettext

from reports.base import formats
from reports.crosstab.queries import Figure
from reports.estimates.picker import window_title
from reports.flows.pairs import Places
from reports.flows.queries import Flow, Flows
from reports.maps.scale import NOT_ASKED
from reports.maps.shapes import AreaShapes, Path
from reports.maps.zones import MapDocument, map_document

_WIDTHS: Final = (1.5, 8.0)  # pixels, of nothing and of the largest pair
_BEND: Final = 0.18  # of the length of an arc, to its right: both directions are visible
_POINTS: Final = 20
_HEAD: Final = 0.09  # length of an arrow's head, as a share of the arc


def flow_map(flows: Flows, shapes: AreaShapes) -> tuple[MapDocument, int]:
    """Document for drawing the flows, and the number of pairs with an arc."""
    arcs = arcs_of(flows, shapes)
    frame: dict[str, Any] = {
        "title": window_title(flows.pair.indicator.study, flows.window),
        "query": "",
        "panels": [
            {
                "blank": "",
                "classes": [NOT_ASKED] * len(shapes.zones),
                "texts": [
                    _zone_text(flows, name, shown)
                    for name, shown in zip(shapes.names, shapes.shown_names, strict=True)
                ],
                "arcs": arcs,
            }
        ],
    }
    return map_document(shapes, frame), len(arcs)


def arcs_of(flows: Flows, shapes: AreaShapes) -> list[dict[str, Any]]:
    """Flat path and width of each listed pair of two zones with shapes, the largest last, on top."""
    centres = {zone.name: centre_of(zone.rings) for zone in shapes.zones}
    drawn = [
        (flow, centres[names[0]], centres[names[1]])
        for flow in reversed(flows.listed)
        if (names := zone_names(flows, flow))[0] != names[1] and set(names) <= centres.keys()
    ]
    most = max((flow.figure.visitors or 0.0 for flow, _, _ in drawn), default=1.0)
    thin, wide = _WIDTHS
    return [
        {
            "path": np.rint(_arrow(start, end)).astype(int).ravel().tolist(),
            "width": round(thin + (wide - thin) * max(flow.figure.visitors or 0.0, 0.0) / most, 1),
        }
        for flow, start, end in drawn
    ]


def zone_names(flows: Flows, flow: Flow) -> tuple[str, str]:
    """Names of a pair's categories, as the study file has them."""
    pair = flows.pair
    return pair.origin.file_names[flow.origin], pair.destination.file_names[flow.destination]


def centre_of(rings: Sequence[Path]) -> Path:
    """Centroid of the largest ring, [x, y] in metres."""
    found = []
    for ring in rings:
        x, y = (ring - ring[0]).T
        cross = x[:-1] * y[1:] - x[1:] * y[:-1]
        area = cross.sum() / 2
        if area:
            centre = [((x[:-1] + x[1:]) * cross).sum(), ((y[:-1] + y[1:]) * cross).sum()] / (6 * area)
            found.append((abs(area), ring[0] + centre))
    return np.asarray(max(found, key=lambda each: each[0])[1] if found else rings[0][0], np.float64)


def _arrow(start: Path, end: Path) -> Path:
    """Points of a bent line from one place to the other, with a head at its end; shape (n, 2)."""
    along = end - start
    right = np.array([along[1], -along[0]])
    t = np.linspace(0, 1, _POINTS)[:, np.newaxis]
    line = start + t * along + 4 * t * (1 - t) * _BEND * right
    back = line[-1] - line[-3]
    back = back / max(float(np.hypot(*back)), 1e-9) * _HEAD * float(np.hypot(*along))
    side = np.array([back[1], -back[0]]) / 2
    return np.concatenate([line, [end - back + side], [end], [end - back - side]])


def _zone_text(flows: Flows, name: str, shown: str) -> str:
    """Name of a zone, and its totals as an origin and as a destination."""
    sides = (
        (flows.pair.origin, flows.outflow, gettext("%(part)s: %(figure)s")),
        (flows.pair.destination, flows.inflow, gettext("%(part)s: %(figure)s")),
    )
    lines = [shown]
    for part, totals, text in sides:
        if (found := _total(part, totals, name)) is not None:
            lines.append(text % {"part": part.name, "figure": _words(found)})
    return "\n".join(lines)


def _total(part: Places, totals: Sequence[Figure], name: str) -> Figure | None:
    categories = part.file_names[:-1]
    return totals[categories.index(name)] if name in categories else None


def _words(figure: Figure) -> str:
    interval = formats.number_range(figure.visitors_ci_low, figure.visitors_ci_high)
    return f"{formats.number(figure.visitors)} ({interval})"
