"""Presence by slot over the zones of an area: the files of larger zones that [slots] names."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import PurePosixPath
from typing import Final

from django.utils.translation import gettext_noop as _

from reports.base.reasons import Reason
from reports.studies.geography.levels import LevelFile, check_overlaps, read_levels
from reports.studies.geography.zones import read_zones
from reports.studies.studyfile.area import AreaFiles
from reports.studies.studyfile.definition import AreaDefinition
from reports.studies.studyfile.slots_definition import SlotsDefinition
from reports.studies.studyfile.table import Table, text_problem

MAX_LEVELS: Final = 3


def with_levels(
    slots: SlotsDefinition,
    table: Table,
    area: AreaDefinition,
    *,
    zone_column: str,
    study_days: tuple[date, date] | None,
    read: Callable[[str], bytes],
) -> tuple[SlotsDefinition, AreaFiles]:
    """Return presence by slot with its larger zones, and the messages about their files.

    table : [slots], which takes problems of its keys; after one the levels are of no use
    zone_column, study_days, read : as for the zones of the area
    """
    files = AreaFiles(table, read=read)
    if area.geojson is not None:
        check_overlaps(area, lambda rule: table.add("levels", rule))
    names = _level_files(table)
    if names and area.geojson is None:
        table.add("levels", _("needs area.zones, a file of shapes: larger zones are compared with them"))
        return slots, files
    found: list[LevelFile] = []
    for place, name in enumerate(names, start=1):
        problems, notes = files.lists_of(name)
        source = files.source(f"levels[{place}]", name)
        if source is None:
            continue
        zones = read_zones(source, problems, notes, column=zone_column, layer="", study_days=study_days)
        if zones is not None:
            level = LevelFile(name=name, level=source.stem, zones=zones, problems=problems, notes=notes)
            found.append(level)
    if not names or len(found) < len(names):
        return slots, files
    return replace(slots, levels=read_levels(found, area)), files


def _level_files(table: Table) -> list[str]:
    """Names of the files of larger zones."""
    names = table.raw("levels", required=False)
    if names is None:
        return []
    if not isinstance(names, list) or not 1 <= len(names) <= MAX_LEVELS:
        table.add(
            "levels", Reason(_("must be a list of 1 to %(most)s names of files"), most=MAX_LEVELS), names
        )
        return []
    stems: list[str] = []
    for position, name in enumerate(names, start=1):
        problem = text_problem(name)
        stem = "" if problem else PurePosixPath(name).stem
        if stem in stems:
            problem = _("must have a unique name, apart from the ending")
        if problem:
            table.add(f"levels[{position}]", problem, name)
            return []
        stems.append(stem)
    return names
