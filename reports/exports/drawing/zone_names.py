"""Names of zones on drawn maps: those that fit into their zone, the largest zones first."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any, Final

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties
from matplotlib.patheffects import Stroke
from matplotlib.textpath import TextToPath

from reports.exports.drawing.canvas import FONT
from reports.exports.drawing.letters import legible, legible_visual
from reports.maps.shapes import Path, ZoneShape

NAME_PT: Final = 7.0
_LINE_PT: Final = 1.25 * NAME_PT  # from one line to the next
_AROUND_PT: Final = 2.0  # between a name and the border of its zone
_HEIGHTS: Final = (0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8)  # of the box of a zone, where a name is tried
_PEN: Final = TextToPath()

Span = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """A name around its centre in metres; `size_m` is the width and height that it takes."""

    text: str
    x_m: float
    y_m: float
    size_m: tuple[float, float]

    def overlaps(self, other: "Name") -> bool:
        """Return whether both would take the same place."""
        apart = abs(self.x_m - other.x_m), abs(self.y_m - other.y_m)
        return all(
            2 * gap < mine + theirs
            for gap, mine, theirs in zip(apart, self.size_m, other.size_m, strict=True)
        )


def draw_names(
    axes: Axes, zones: Sequence[ZoneShape], *, metres_per_point: float, darkest: Sequence[ZoneShape] = ()
) -> None:
    """Write the names of `placed_names`, light behind dark, so that they can be read on every class."""
    look: dict[str, Any] = {
        "size": NAME_PT,
        "ha": "center",
        "va": "center",
        "linespacing": _LINE_PT / NAME_PT,
    }
    halo = Stroke(linewidth=2.0, foreground="white")
    for name in placed_names(zones, metres_per_point=metres_per_point, darkest=darkest):
        axes.text(name.x_m, name.y_m, name.text, path_effects=[halo], zorder=4, **look)
        # Letters with an effect are outlines, which no search finds.
        axes.text(name.x_m, name.y_m, name.text, zorder=5, **look)


def placed_names(
    zones: Sequence[ZoneShape], *, metres_per_point: float, darkest: Sequence[ZoneShape] = ()
) -> list[Name]:
    """Names that fit into their zones, in one line or two, the largest zones first; none overlap.

    Those of the `darkest` zones, which readers look for, may also reach beyond their zones.
    """
    placed: list[Name] = []
    for must_fit, chosen in ((True, zones), (False, darkest)):
        for zone in sorted(chosen, key=_area, reverse=True):
            texts = list(_lines(_written(zone.shown_name)))
            if any(each.text in texts for each in placed):
                continue
            for text in texts:
                name = _fitting(zone.rings, text, metres_per_point=metres_per_point, must_fit=must_fit)
                if name is not None and not any(name.overlaps(other) for other in placed):
                    placed.append(name)
                    break
    return placed


def _written(text: str) -> str:
    """Letters for a picture; where they stay letters, for a PDF, in the order in which they are seen."""
    return legible_visual(text) if matplotlib.rcParams["svg.fonttype"] == "none" else legible(text)


def _lines(text: str) -> Iterator[str]:
    """Yield a name in one line, then in the two most even ones."""
    yield text
    words = text.split()
    parted = [(" ".join(words[:at]), " ".join(words[at:])) for at in range(1, len(words))]
    if parted:
        yield "\n".join(min(parted, key=lambda lines: max(map(len, lines))))


def _fitting(rings: Sequence[Path], text: str, *, metres_per_point: float, must_fit: bool) -> Name | None:
    """The name at the widest place of its zone; None where it must fit, and no place holds it."""
    lines, font = text.split("\n"), FontProperties(family=FONT, size=NAME_PT)
    widest = max(_PEN.get_text_width_height_descent(line, font, False)[0] for line in lines)
    width = (widest + 2 * _AROUND_PT) * metres_per_point
    height = (len(lines) * _LINE_PT + _AROUND_PT) * metres_per_point
    points = np.concatenate(rings)
    (west, south), (east, north) = points.min(axis=0), points.max(axis=0)
    if must_fit and (width > east - west or height > north - south):
        return None
    best: tuple[float, float, float] | None = None
    for share in _HEIGHTS:
        y = float(south + share * (north - south))
        for left, right in _free(rings, y, height=height if must_fit else 0.0):
            if (right - left >= width or not must_fit) and (best is None or right - left > best[0]):
                best = right - left, (left + right) / 2, y
    return None if best is None else Name(text=text, x_m=best[1], y_m=best[2], size_m=(width, height))


def _free(rings: Sequence[Path], y: float, *, height: float) -> list[Span]:
    """Stretches from west to east that are inside of a zone at the top, middle and bottom of a line."""
    found = _inside(rings, y)
    for edge in (y - height / 2, y + height / 2):
        both = product(found, _inside(rings, edge))
        found = [(max(a[0], b[0]), min(a[1], b[1])) for a, b in both if min(a[1], b[1]) > max(a[0], b[0])]
    return found


def _inside(rings: Sequence[Path], y: float) -> list[Span]:
    """Stretches of a horizontal line inside of an odd number of rings."""
    crossings: list[float] = []
    for ring in rings:
        (x1, y1), (x2, y2) = ring[:-1].T, ring[1:].T
        crosses = (y1 > y) != (y2 > y)
        at = (y - y1[crosses]) / (y2[crosses] - y1[crosses])
        crossings += (x1[crosses] + at * (x2[crosses] - x1[crosses])).tolist()
    return [span for place, span in enumerate(pairwise(sorted(crossings))) if place % 2 == 0]


def _area(zone: ZoneShape) -> float:
    """Square metres: holes run the other way, and count as less."""
    return sum(
        float(np.sum(ring[:-1, 0] * ring[1:, 1] - ring[1:, 0] * ring[:-1, 1])) / 2 for ring in zone.rings
    )
