"""The map of a window as a file: zones, classes, hatching and legend of the page, in the light colours."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from django.utils.translation import gettext
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, PathPatch
from matplotlib.path import Path as Outline

from reports.base import formats
from reports.base.status import Status
from reports.estimates.options import GROUPS, ReportOptions, ordered, shown_value
from reports.estimates.queries import WindowReport
from reports.exports.drawing.canvas import COLOURS, WIDTH_IN, Box, new_figure
from reports.exports.drawing.letters import legible
from reports.exports.drawing.zone_names import draw_names
from reports.exports.selection import Scope, Selection
from reports.maps import zones
from reports.maps.scale import HIDDEN, NOT_ASKED, NOT_READ
from reports.maps.shapes import AreaShapes, LineLayer, Path, area_shapes, wound
from reports.studies.models import Area
from reports.studies.texts import invented_words

# The light colours of static/css/map.css. A test compares them.
MAP_COLOURS: Final = {
    "--map-1": "#dceaf5", "--map-2": "#a6cae5", "--map-3": "#659fcc", "--map-4": "#2b6ca6",
    "--map-5": "#0b3a66", "--map-line": "#7b8895", "--map-layer": "#1b6f73",
    "--map-water": "#d7e8e5", "--map-river": "#5f9ea0", "--map-road": "#9c7b4e", "--map-border": "#6b4d7d",
}  # fmt: skip
# Lines by the look of their layer, as in static/js/map.js.
LAYER_LINES: Final[Mapping[str, Mapping[str, Any]]] = {
    "water": {"color": MAP_COLOURS["--map-river"], "linewidth": 1.0},
    "road": {"color": MAP_COLOURS["--map-road"], "linewidth": 1.0},
    "border": {"color": MAP_COLOURS["--map-border"], "linewidth": 1.2, "linestyle": (0, (4, 2))},
    "other": {"color": MAP_COLOURS["--map-layer"], "linewidth": 1.1},
}
_WATER: Final[Mapping[str, Any]] = {
    "facecolor": MAP_COLOURS["--map-water"], "edgecolor": MAP_COLOURS["--map-river"], "linewidth": 0.6,
}  # fmt: skip
GROUND: Final = "#eef2f5"
POINTS_IN: Final = 72  # an inch
_HEIGHT_IN: Final = (3.0, 6.5)  # least and most of the map
LEGEND_ROW_IN: Final = 0.22
IN_A_ROW: Final = 4


def shows_map(selection: Selection) -> bool:
    """Return whether the page of the selection shows a map, and there is one."""
    options = selection.options
    if selection.scope != Scope.WINDOW or options.view != "map" or options.group == GROUPS:
        return False
    return bool(zones.zones_of(selection.reports[0].indicator))


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneMap:
    """Zones with their classes, and the legend."""

    shapes: AreaShapes
    classes: list[int]
    entries: list[Any]

    def legend_in(self, width_in: float) -> float:
        """Height of the legend in a width."""
        return LEGEND_ROW_IN * -(-len(self.entries) // in_a_row(width_in)) + 0.15

    def height_in(self, width_in: float) -> float:
        """Height of map and legend in a width."""
        west, south, east, north = self.shapes.bounds
        wanted = 0.96 * width_in * (north - south) / max(east - west, 1.0)
        return float(np.clip(wanted, *_HEIGHT_IN)) + self.legend_in(width_in)


def map_chart(selection: Selection, *, extra_in: tuple[float, float]) -> Figure:
    """Zones in the classes of the page, with its legend below; `extra_in`: inches above and below both."""
    found, (top_in, bottom_in) = zone_map(selection), extra_in
    height_in = found.height_in(WIDTH_IN)
    figure = new_figure(height_in=height_in + top_in + bottom_in)
    draw_map(figure, found, box=Box(0, bottom_in, WIDTH_IN, height_in))
    return figure


def in_a_row(width_in: float) -> int:
    """Entries of a legend side by side."""
    return max(1, round(IN_A_ROW * width_in / WIDTH_IN))


def zone_map(selection: Selection) -> ZoneMap:
    """Zones of the one report of a selection, in the classes of its page."""
    report, options = selection.reports[0], selection.options
    shapes = area_shapes(Area.objects.get(study=report.indicator.study_id))
    scale = zones.scale_of(report.indicator, options=options)
    frame = zones.map_frame(report, names=shapes.names, scale=scale, options=options)
    classes: list[int] = frame["panels"][0]["classes"]
    entries = _legend(zones.legend(scale, report.study, options=options), classes, shapes)
    return ZoneMap(shapes=shapes, classes=classes, entries=entries)


def draw_map(figure: Figure, found: ZoneMap, *, box: Box) -> None:
    """Draw zones and legend into a part of a figure, which is as high as the map says."""
    shapes, legend_in = found.shapes, found.legend_in(box.width)
    west, south, east, north = shapes.bounds
    inside = Box(
        box.left + 0.02 * box.width, box.bottom + legend_in, 0.96 * box.width, box.height - legend_in
    )
    axes = figure.add_axes(inside.of(figure))
    axes.set_axis_off()
    axes.set_aspect("equal")
    axes.set_xlim(west, east)
    axes.set_ylim(south, north)
    _draw_zones(axes, shapes, found.classes)
    draw_water(axes, shapes.layers)
    draw_lines(axes, shapes.layers)
    draw_scale(axes, width_m=east - west)
    metres = max((east - west) / inside.width, (north - south) / inside.height)
    top = max(found.classes, default=NOT_ASKED)
    darkest = [zone for zone, of in zip(shapes.zones, found.classes, strict=True) if of == top > 0]
    draw_names(axes, shapes.zones, metres_per_point=metres / POINTS_IN, darkest=darkest)
    corner = Box(box.left + 0.012 * box.width, box.bottom + legend_in, 0, 0).of(figure)
    figure.legend(
        handles=found.entries, loc="upper left", bbox_to_anchor=corner[:2],
        ncols=in_a_row(box.width), frameon=False, fontsize=8, handlelength=1.6, columnspacing=1.4,
    )  # fmt: skip


def map_words(selection: Selection) -> str:
    """Explain the colours, the fixed legend, and values without a place on the map."""
    report, options = selection.reports[0], selection.options
    is_share = options.measure == "frequency"
    what = gettext("Share of visitors") if is_share else gettext("Visitors")
    if options.layer == "uncertainty":
        how = gettext("Colours show half the width of the 95% interval.")
    elif options.values == "consistent":
        how = gettext("Colours show consistent values (adjusted estimates).")
    else:
        how = gettext("Colours show unbiased estimates.")
    fixed = gettext("The legend is the same for all date ranges of this indicator.")
    beside = beside_words(report, options=options)
    ground = invented_words(report.study)
    texts = (f"{what}.", how, fixed, zones.classes_words(options), beside, ground)
    return " ".join(text for text in texts if text)


def beside_words(report: WindowReport, *, options: ReportOptions) -> str:
    """Values without a place on the map; empty if there are none."""
    names = area_shapes(Area.objects.get(study=report.indicator.study_id)).names
    rest = []
    for each in zones.not_on_map(ordered(report, options=options), names=names):
        value = shown_value(report, each, options=options).value
        if each.status == Status.OK:
            rest.append(f"{each.shown_category} {formats.amount(value, options.measure)}")
    return gettext("Not on the map: %(rest)s.") % {"rest": formats.listed(rest)} if rest else ""


def _draw_zones(axes: Axes, shapes: AreaShapes, classes: Sequence[int]) -> None:
    for place, (zone, found) in enumerate(zip(shapes.zones, classes, strict=True)):
        patch = PathPatch(outline(zone.rings), **look(found))
        patch.set_gid(f"zone-{place}")
        axes.add_patch(patch)


def draw_scale(axes: Axes, *, width_m: float) -> None:
    """A bar of a round length in the lower left corner, about an eighth of the map wide."""
    power = 10.0 ** np.floor(np.log10(max(width_m / 8, 1.0)))
    length_m = next(step * power for step in (5, 2, 1) if step * power <= max(width_m / 8, 1.0))
    text = f"{length_m / 1000:.0f} km" if length_m >= 1000 else f"{length_m:.0f} m"
    (west, east), (south, north) = axes.get_xlim(), axes.get_ylim()
    x, y = west + 0.01 * (east - west), south + 0.01 * (north - south)
    axes.plot([x, x + length_m], [y, y], color=COLOURS["--text"], linewidth=1.5, solid_capstyle="butt")
    axes.annotate(text, (x, y), xytext=(0, 3), textcoords="offset points", size=7.5)


def outline(rings: Sequence[Path]) -> Any:
    """Rings as one path: those inside of others run the other way, which leaves holes."""
    return Outline.make_compound_path(*(Outline(ring, closed=True) for ring in rings))


def look(found: int) -> dict[str, Any]:
    """Return the style of a class, HIDDEN, NOT_READ or NOT_ASKED."""
    edge: dict[str, Any] = {"edgecolor": MAP_COLOURS["--map-line"], "linewidth": 0.6}
    if found in (HIDDEN, NOT_READ):
        return edge | {"facecolor": GROUND, "hatch": "////" if found == NOT_READ else "..."}
    return edge | {"facecolor": GROUND if found == NOT_ASKED else MAP_COLOURS[f"--map-{found + 1}"]}


def _legend(rows: Sequence[zones.LegendRow], classes: Sequence[int], shapes: AreaShapes) -> list[Any]:
    """Entries: all classes, what has none if there is such a zone, and the layers."""
    styles = {"hidden": HIDDEN}
    shown = [(row.text, styles.get(row.place) or int(row.place) - 1) for row in rows]
    used = [(text, found) for text, found in shown if found != HIDDEN or found in classes]
    entries: list[Any] = [Patch(label=text, **look(found)) for text, found in used]
    if NOT_READ in classes:
        entries.append(Patch(label=gettext("no reliable value"), **look(NOT_READ)))
    if NOT_ASKED in classes:
        entries.append(Patch(label=gettext("not a category of this indicator"), **look(NOT_ASKED)))
    return [*entries, *layer_entries(shapes.layers)]


def draw_water(axes: Axes, layers: Sequence[LineLayer], *, order: float = 1.5) -> None:
    """Fill seas and lakes; `order` 1.5 puts them above zones and below lines, 0 below everything."""
    for layer in layers:
        if layer.is_filled:
            axes.add_patch(PathPatch(outline(wound(layer.paths)), **_WATER, zorder=order))


def draw_lines(axes: Axes, layers: Sequence[LineLayer]) -> None:
    """Draw rivers, roads and borders."""
    for layer in layers:
        if not layer.is_filled:
            for path in layer.paths:
                axes.plot(path[:, 0], path[:, 1], **LAYER_LINES[layer.look])


def layer_entries(layers: Sequence[LineLayer]) -> list[Any]:
    """Entries of base layers in a legend."""
    return [
        Patch(label=legible(layer.shown_name), **_WATER)
        if layer.is_filled
        else Line2D([], [], label=legible(layer.shown_name), **LAYER_LINES[layer.look])
        for layer in layers
    ]
