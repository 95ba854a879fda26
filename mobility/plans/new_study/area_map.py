"""The map that shows the files of cells and zones before anything is created from them."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from django.utils.translation import gettext, ngettext

from reports.base import formats
from reports.base.later import later
from reports.maps.scale import NOT_ASKED
from reports.maps.shapes import area_shapes
from reports.studies.areas import area_fields
from reports.studies.models import Area
from reports.studies.studyfile import AreaDefinition, Problem
from reports.studies.studyfile.problems import Problems
from reports.studies.studyfile.redraft import Tables
from reports.studies.studyfile.table import Table

MAX_POINTS: Final = 3_000  # of cells that are drawn: more would only slow the page down
_read_area = later("reports.studies.studyfile.area.read_area")  # GeoPandas: 1 s
_cells_in_metres = later("reports.studies.geography.areas.cells_in_metres")
_bounds_in_metres = later("reports.studies.geography.areas.bounds_in_metres")


def read_area_of(
    tables: Tables, *, read: Callable[[str], bytes], filename: str
) -> tuple[AreaDefinition | None, list[Problem]]:
    """Return the area that a text names, or what is wrong with it and its files."""
    problems = Problems(filename)
    table = Table(tables, "", problems).table("area", required=False)
    if table is None:
        return None, []
    area, files = _read_area(table, read=read, study_days=None)
    found = [*problems.all(), *files.problems]
    return (None if found else area), found


def map_of(area: AreaDefinition) -> dict[str, Any]:
    """All that the page needs to draw an area, and what it says of it."""
    shapes = area_shapes(Area(**area_fields(area)))
    x_m, y_m = _cells_in_metres(area)
    step = -(-x_m.size // MAX_POINTS)
    points = np.column_stack([x_m, y_m])[::step].round().astype(np.int64).ravel().tolist()
    n_of = dict.fromkeys(area.zones, 0)
    for cell in area.cells:
        if cell.zone is not None:
            n_of[cell.zone] += 1
    shown = shapes.names
    panel = {
        "blank": "",
        "classes": [NOT_ASKED] * len(shown),
        "texts": [f"{each.shown_name}\n{_cells_words(n_of[each.name])}" for each in shapes.zones],
        "points": points,
    }
    frame = {"title": "", "query": "", "panels": [panel]}
    return {
        "document": {"shapes": shapes.to_json() | {"bounds": list(_bounds_in_metres(area))}, "frame": frame},
        "words": _words(area, n_outside=len(area.cells) - sum(n_of.values())),
        "is_sampled": step > 1,
        "empty": [name for name, n in n_of.items() if not n],
    }


def _cells_words(n: int) -> str:
    return ngettext("%(n)s cell", "%(n)s cells", n) % {"n": formats.number(n)}


def _words(area: AreaDefinition, *, n_outside: int) -> str:
    zones = len(area.zones)
    words = ngettext("%(cells)s, %(n)s zone.", "%(cells)s, %(n)s zones.", zones) % {
        "cells": _cells_words(len(area.cells)),
        "n": formats.number(zones),
    }
    if not n_outside or not zones:
        return words
    outside = ngettext("%(n)s cell is not in any zone.", "%(n)s cells are not in any zone.", n_outside)
    return f"{words} {outside % {'n': formats.number(n_outside)}}"


def at_fields(problems: list[Problem], tables: Tables, *, filename: str) -> list[Problem]:
    """Problems of other files as problems of the field that names the file."""
    area = tables.get("area")
    named = (
        {name: f"area.{key}" for key, name in area.items() if isinstance(name, str)}
        if isinstance(area, dict)
        else {}
    )
    return [
        each
        if each.file in (filename, "")
        else Problem(
            file=each.file,
            key=named.get(each.file, "area.layers" if each.file else ""),
            rule=gettext("%(file)s, %(place)s: %(rule)s")
            % {"file": each.file, "place": each.key, "rule": each.rule},
            value=each.value,
        )
        for each in problems
    ]
