"""Both maps of reported places as one picture: squares, zones, legend of the page, in the light colours."""

from textwrap import fill
from typing import Any, Final

import numpy as np
from django.utils.translation import gettext
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, PathPatch, Rectangle
from numpy.typing import NDArray

from reports.base import formats
from reports.estimates.locations import location_windows, windows_with_maps
from reports.exports.drawing.canvas import (
    ONE_AT_A_TIME,
    filled,
    new_figure,
    png_bytes,
    svg_bytes,
    write_around,
)
from reports.exports.drawing.letters import legible
from reports.exports.drawing.maps import (
    GROUND,
    IN_A_ROW,
    LEGEND_ROW_IN,
    MAP_COLOURS,
    POINTS_IN,
    draw_lines,
    draw_scale,
    draw_water,
    layer_entries,
    look,
    outline,
)
from reports.exports.drawing.zone_names import draw_names
from reports.exports.facts import software_words
from reports.exports.places.selection import Places, head_of, provenance
from reports.maps import density as maps_density
from reports.maps.scale import MAX_CLASSES, Scale
from reports.maps.shapes import AreaShapes, area_shapes

_PANEL_IN: Final = 3.55  # width of a map; the figure is 7.6 wide
_HEADING: Final = 46  # letters in a line above a map
_LEFT_IN: Final = (0.15, 3.9)
_HEIGHT_IN: Final = (2.0, 7.0)  # least and most of a map
_ABOVE_IN: Final = 0.98


def places_to_png(places: Places) -> bytes:
    """Both maps, 1520 pixels wide."""
    with ONE_AT_A_TIME:
        return png_bytes(_figure(places), metadata=_metadata(places, "Software"))


def places_to_svg(places: Places) -> bytes:
    """Both maps; zones, lines and letters are vectors, squares a picture with a pixel each."""
    with ONE_AT_A_TIME:
        return svg_bytes(_figure(places), metadata=_metadata(places, "Creator"))


def _metadata(places: Places, program: str) -> dict[str, str]:
    facts = "; ".join(f"{name}: {value}" for name, value in provenance(places).items())
    return {
        "Title": f"{_title()} · {places.study.shown_name}",
        program: software_words(),
        "Description": facts,
    }


def _figure(places: Places) -> Figure:
    shapes, scale = area_shapes(places.area), _scale(places)
    words = "\n".join(filled(legible(text)) for text in _small_print(places))
    grid = places.found.spec.grid
    map_in = float(np.clip(_PANEL_IN * grid.n_y / grid.n_x, *_HEIGHT_IN))
    legend_in = LEGEND_ROW_IN * (1 + -(-len(shapes.layers) // IN_A_ROW)) + 0.15
    words_in = 0.2 + 0.15 * (words.count("\n") + 1)
    whole_in = _ABOVE_IN + map_in + legend_in + words_in
    figure = new_figure(height_in=whole_in)
    bottom = (legend_in + words_in) / whole_in
    frame = maps_density.density_frame(
        places.found, places.kept, grid_map=places.grid_map, scale=scale, options=places.options
    )
    headings = (
        gettext("Reported (noisy)"),
        gettext("Noise-corrected (deconvolved): where people most likely were"),
    )
    for left_in, panel, heading in zip(_LEFT_IN, frame["panels"], headings, strict=True):
        size = (_PANEL_IN / figure.get_figwidth(), map_in / whole_in)
        axes = figure.add_axes((left_in / figure.get_figwidth(), bottom, *size))
        _draw_panel(axes, places, panel, shapes=shapes, map_in=map_in)
        axes.set_title(fill(heading, _HEADING), loc="left", fontsize=8.5, fontweight="bold", pad=4)
    _draw_legend(figure, scale, shapes, top=bottom)
    days = formats.window_title(places.first_date, places.last_date)
    subtitle = legible(f"{places.study.shown_name} · {days}")
    write_around(figure, title=_title(), subtitle=subtitle, words=words, words_in=words_in - 0.06)
    return figure


def _scale(places: Places) -> Scale:
    """Return the scale of the page: one for both maps and all date ranges."""
    study, spec = places.study, places.found.spec
    windows = maps_density.single_days_and_whole(study, windows_with_maps(study, spec))
    return maps_density.density_scale(location_windows(study, windows), options=places.options)


def _draw_panel(
    axes: Axes, places: Places, panel: dict[str, Any], *, shapes: AreaShapes, map_in: float
) -> None:
    """Squares in their classes, zones with names and layers above them, a scale; or why there is nothing."""
    grid = places.found.spec.grid
    east, north = grid.x0_m + grid.n_x * grid.step_m, grid.y0_m + grid.n_y * grid.step_m
    colours = _colours(np.array(panel["classes"])).reshape(*grid.shape, 4)
    size = (east - grid.x0_m, north - grid.y0_m)
    axes.add_patch(Rectangle((grid.x0_m, grid.y0_m), *size, facecolor=GROUND, zorder=-2))
    draw_water(axes, shapes.layers, order=-1)
    axes.imshow(
        colours,
        origin="lower",
        extent=(grid.x0_m, east, grid.y0_m, north),
        interpolation="none",
        aspect="equal",
    )
    for zone in shapes.zones:
        patch = PathPatch(outline(zone.rings), fill=False, edgecolor=MAP_COLOURS["--map-line"], linewidth=0.6)
        axes.add_patch(patch)
    draw_lines(axes, shapes.layers)
    axes.set_xlim(grid.x0_m, east)
    axes.set_ylim(grid.y0_m, north)
    axes.set_axis_off()
    if panel["blank"]:
        axes.text(0.5, 0.5, panel["blank"], transform=axes.transAxes, ha="center", va="center", size=9)
    draw_scale(axes, width_m=east - grid.x0_m)
    metres = (east - grid.x0_m) / (POINTS_IN * _PANEL_IN)
    draw_names(axes, shapes.zones, metres_per_point=max(metres, (north - grid.y0_m) / (POINTS_IN * map_in)))


def _colours(classes: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Red, green, blue and opacity of each square; without a class it is see-through."""
    names = [MAP_COLOURS[f"--map-{place}"] for place in range(1, 6)]
    table = np.array([[0, 0, 0, 0], *([*bytes.fromhex(name[1:]), 255] for name in names)], np.uint8)
    return np.asarray(table[np.maximum(classes, -1) + 1])


def _draw_legend(figure: Figure, scale: Scale, shapes: AreaShapes, *, top: float) -> None:
    """Classes in a row, layers below; `top` is a share of the height."""
    rows = maps_density.density_legend(scale)
    classes = [Patch(label=row.text, **look(int(row.place) - 1)) for row in rows]
    lines = layer_entries(shapes.layers)
    below = top - LEGEND_ROW_IN / float(figure.get_figheight())
    for entries, at, n_columns in ((classes, top, MAX_CLASSES), (lines, below, IN_A_ROW)):
        if entries:
            figure.legend(
                handles=entries, loc="upper left", bbox_to_anchor=(0.012, at),
                ncols=n_columns, frameon=False, fontsize=8, handlelength=1.6, columnspacing=1.4,
            )  # fmt: skip


def _title() -> str:
    return gettext("Maps of places")


def _small_print(places: Places) -> list[str]:
    """Explain the colours, the number of reports, and the noise that protects them."""
    if places.options.layer == "uncertainty":
        colours = gettext(
            "Left map: colours show how much the number of reports in a square would vary if new noise "
            "were drawn. The value shown is half the width of the range. Right map: colours show half the "
            "width of the band that contains 95 of 100 estimates from resampled reports. To limit the "
            "noise, the noise correction stops early. Some detail is lost as a result, and neither map "
            "accounts for this loss."
        )
    else:
        colours = gettext(
            "Left map: colours show the number of reports in each square. This number is an exact count, "
            "but the reported places are noisy. Right map: colours show how many subscribers were in "
            "each square, estimated from all reports together."
        )
    same = gettext(
        "The legend is the same for both maps and all date ranges. Squares with almost no one in them have "
        "no colour."
    )
    head = head_of(places)
    facts = {
        "reports": formats.number(head["n_reports"]),
        "visitors": formats.number(head["n_visitors"]),
        "step": formats.number(places.found.spec.grid.step_m),
        "version": head["plan_version"],
        "mechanism": head["mechanism"],
        "level": formats.decimal(head["level"], decimals=4),
        "radius": formats.number(head["radius_m"]),
        "mean": formats.number(places.found.spec.law.mean_m),
        "software": software_words(),
        "timezone": places.study.timezone,
    }
    size = gettext(
        "%(reports)s reports from %(visitors)s visitors (both numbers are exact), counted in "
        "squares %(step)s m wide."
    )
    plan = gettext(
        "Plan version %(version)d: %(mechanism)s, with privacy level %(level)s within %(radius)s m. "
        "On average, a reported place is %(mean)s m from the true place. %(software)s. Days are in "
        "the time zone %(timezone)s."
    )
    return [f"{colours} {same}", f"{size} {plan}" % facts]
