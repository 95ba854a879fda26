"""Base layers of an existing study: water, roads and borders that an administrator imports for its maps."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Final

import numpy as np
from django.db import transaction
from django.db.models import TextField
from django.db.models.functions import MD5, Cast
from django.utils.translation import gettext

from ldp.geo.grid import Grid
from reports.base.later import later
from reports.ledger.actions import record
from reports.ledger.models import LedgerKind
from reports.maps.shapes import area_shapes
from reports.studies.geography.files.rules import MAX_LAYERS, Source, layer_in, layer_name
from reports.studies.models import Area, Study
from reports.studies.studyfile.problems import Problems

Bounds = tuple[float, float, float, float]
COMMAND_LINE: Final = "command line"
_read_layers = later("reports.studies.geography.layers.read_layers")  # GeoPandas: 1 s
_sheet_around = later("reports.studies.geography.layers.sheet_around")
_projection = later("reports.studies.geography.projection.LocalProjection")


class LayersError(ValueError):
    """Files that cannot become base layers; each argument is one problem."""

    def __str__(self) -> str:
        return "\n".join(map(str, self.args))


def import_layers(
    study: Study, names: Sequence[str], *, files: Mapping[str, bytes], by: str
) -> tuple[list[str], list[str]]:
    """Replace the base layers of a study; without names, remove them.

    Parameters
    ----------
    names : files, or FILE#LAYER, in the order of the legend
    files : contents by name

    Returns
    -------
    Names of the layers, and notes about their files

    Raises
    ------
    LayersError : all problems; the old layers stay
    """
    area = Area.objects.filter(study=study).first()
    bounds = None if area is None else _bounds(area)
    if area is None or bounds is None:
        raise LayersError(
            gettext("This study has no maps: its area has neither zones with shapes nor a grid.")
        )
    sources = [
        (source, (Problems(name), Problems(name, noun="notes")))
        for name, source in zip(names, _sources(names, files), strict=True)
    ]
    layers = _read_layers(sources, sheet=_sheet_around(bounds, projection=_projection(area.projection)))
    problems = [str(each) for _, (found, _) in sources for each in found.all()]
    if problems:
        raise LayersError(*problems)
    with transaction.atomic():
        Area.objects.filter(pk=area.pk).update(layers=[asdict(layer) for layer in layers])
        record(LedgerKind.LAYERS_CHANGED, actor=by, study=study.slug, facts={"layers": len(layers)})
    return [layer.name for layer in layers], [str(each) for _, (_, notes) in sources for each in notes.all()]


def state_of_layers(study: Study) -> list[str]:
    """Return the version of the base layers: a database digests megabytes before they would be read."""
    of_study = Area.objects.filter(study=study)
    return list(of_study.values_list(MD5(Cast("layers", TextField())), flat=True))


def has_maps(area: Area | None) -> bool:
    """Return whether anything of an area is drawn."""
    return area is not None and _bounds(area) is not None


def _sources(names: Sequence[str], files: Mapping[str, bytes]) -> list[Source]:
    if len(names) > MAX_LAYERS:
        raise LayersError(gettext("At most %(n)d layers can be imported.") % {"n": MAX_LAYERS})
    shown = [layer_name(name) for name in names]
    problems = [
        gettext("Two layers are called “%(name)s”. Rename one of the files.") % {"name": name}
        for name in dict.fromkeys(shown)
        if shown.count(name) > 1
    ]
    parted = [layer_in(name) for name in names]
    problems += [
        gettext("“%(name)s” is not one of the chosen files.") % {"name": file}
        for file in dict.fromkeys(file for file, _ in parted)
        if file not in files
    ]
    if problems:
        raise LayersError(*problems)
    return [Source(name=file, data=files[file], layer=layer) for file, layer in parted]


def _bounds(area: Area) -> Bounds | None:
    """West, south, east and north of zones and grid, in metres; None without both."""
    shapes = area_shapes(area)
    found = [shapes.bounds] if shapes.zones else []
    if area.grid is not None:
        grid = Grid.from_json(area.grid)
        east, north = grid.x0_m + grid.n_x * grid.step_m, grid.y0_m + grid.n_y * grid.step_m
        found.append((float(grid.x0_m), float(grid.y0_m), float(east), float(north)))
    if not found:
        return None
    corners = np.array(found)
    (west, south), (east, north) = corners[:, :2].min(axis=0).tolist(), corners[:, 2:].max(axis=0).tolist()
    return west, south, east, north
