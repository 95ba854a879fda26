"""The section [area] and the files that it names: cells, zones, water and land, base layers."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from pathlib import PurePosixPath
from typing import Any, Final

from django.utils.translation import gettext_noop as _

from reports.base.reasons import Reason
from reports.studies.geography.areas import place
from reports.studies.geography.files.rules import MAX_LAYERS, Source, layer_in, layer_name
from reports.studies.geography.layers import read_layers, read_mask, sheet_of
from reports.studies.geography.zones import read_zones
from reports.studies.studyfile.cells import read_cells
from reports.studies.studyfile.definition import AreaDefinition, Cell
from reports.studies.studyfile.lookups import file_content
from reports.studies.studyfile.problems import Problem, Problems
from reports.studies.studyfile.sections import DEFAULT_ZONE_COLUMN
from reports.studies.studyfile.table import Table, text_problem

_BESIDE: Final = (".shx", ".dbf", ".prj", ".cpg")


class AreaFiles:
    """The files that [area] names, as they are read; their problems, and notes that stop nothing."""

    def __init__(self, table: Table, *, read: Callable[[str], bytes]) -> None:
        self._table = table
        self._read = read
        self._problems: list[Problems] = []
        self._notes: list[Problems] = []

    @property
    def problems(self) -> list[Problem]:
        """Facts of all files."""
        return [problem for each in self._problems for problem in each.all()]

    @property
    def notes(self) -> list[Problem]:
        """Return warnings about files that are used."""
        return [note for each in self._notes for note in each.all()]

    def lists_of(self, name: str) -> tuple[Problems, Problems]:
        """Lists to be filled for one file: its problems, and its notes."""
        problems, notes = Problems(name), Problems(name, noun="notes")
        self._problems.append(problems)
        self._notes.append(notes)
        return problems, notes

    def content(self, key: str, name: str) -> bytes | None:
        """Return the content of the file that `key` names; None after a problem."""
        return file_content(self._table, key, name, read=self._read)

    def source(self, key: str, name: str) -> Source | None:
        """Return a file of geometries; a shapefile with its other files."""
        name, layer = layer_in(name)
        data = self.content(key, name)
        if data is None:
            return None
        beside = {}
        if PurePosixPath(name).suffix.lower() == ".shp":
            for suffix in _BESIDE:
                try:
                    beside[suffix] = self._read(str(PurePosixPath(name).with_suffix(suffix)))
                except FileNotFoundError:
                    continue
        return Source(name=name, data=data, beside=beside, layer=layer)


def read_area(
    table: Table, *, read: Callable[[str], bytes], study_days: tuple[date, date] | None
) -> tuple[AreaDefinition | None, AreaFiles]:
    """Return the area and the messages about its files; problems of the table are noted in the table.

    The area is None, or incomplete, after a problem.
    """
    files = AreaFiles(table, read=read)
    cells_file = table.text("cells")
    zones_file, layer_files = table.text("zones", default=""), _layer_files(table)
    column = table.text("zone_column", default=DEFAULT_ZONE_COLUMN)
    zones_layer = table.text("zones_layer", default="")
    water_file, land_file = table.text("water", default=""), table.text("land", default="")
    table.finish()
    cells_data = files.content("cells", cells_file) if cells_file else None
    zones = None
    cell_lists, zone_lists = files.lists_of(cells_file), files.lists_of(zones_file)
    zones_source = files.source("zones", zones_file) if zones_file else None
    if zones_source is not None:
        zones = read_zones(zones_source, *zone_lists, column=column, layer=zones_layer, study_days=study_days)
    cells: list[Cell] = []
    if cells_data is not None:
        cells = read_cells(cells_data, cell_lists[0], zones=None if zones is None else set(zones.codes))
    if not cells or files.problems:
        return None, files
    area = place(cells, zones)
    return _with_map(area, files, water=water_file, land=land_file, layers=layer_files), files


def _layer_files(table: Table) -> Sequence[str]:
    """Names of the files of base layers."""
    names = table.raw("layers", required=False)
    if names is None:
        return ()
    if not isinstance(names, list) or not 1 <= len(names) <= MAX_LAYERS:
        table.add(
            "layers", Reason(_("must be a list of 1 to %(most)s names of files"), most=MAX_LAYERS), names
        )
        return ()
    for position, name in enumerate(names, start=1):
        problem = text_problem(name)
        if not problem and layer_name(name) in [layer_name(each) for each in names[: position - 1]]:
            problem = _("must have a unique name, apart from the ending")
        if problem:
            table.add(f"layers[{position}]", problem, name)
            return ()
    return names


def _with_map(
    area: AreaDefinition, files: AreaFiles, *, water: str, land: str, layers: Sequence[str]
) -> AreaDefinition:
    """The area with its water, its land and its base layers."""
    if not (water or land or layers):
        return area

    def mask(key: str, name: str) -> dict[str, Any] | None:
        source = files.source(key, name) if name else None
        return None if source is None else read_mask(source, *files.lists_of(name), area=area)

    near_water, on_land = mask("water", water), mask("land", land)
    sources = [
        (source, files.lists_of(name))
        for position, name in enumerate(layers, start=1)
        if (source := files.source(f"layers[{position}]", name)) is not None
    ]
    return replace(area, water=near_water, land=on_land, layers=read_layers(sources, sheet=sheet_of(area)))
