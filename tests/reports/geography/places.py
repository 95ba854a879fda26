"""A study around Belfort, and files of zones as programs for maps write them."""

from typing import Any

import geopandas as gpd
import pytest
from shapely import box
from shapely.geometry.base import BaseGeometry

from reports.studyfile import StudyDefinition, StudyFileError, parse_study

STUDY = """
[study]
slug = "fair-2024"
name = "Fair 2024"
timezone = "Europe/Paris"
first_day = 2024-03-30
days = 3
[study.visitor]
min_minutes = 60
from = "06:00"
to = "23:59"
[extract]
subscriber = "msisdn"
timestamp = "time"
cell = "cell"
[plan]
mechanism = "smp-grr"
unit = "profile"
epsilon = 1.0
[[indicator]]
slug = "age_band"
kind = "static"
column = "age"
categories = ["young", "old"]
[area]
cells = "cells.csv"
"""
CELLS = "cell_id,lon,lat\nwest,6.85,47.65\neast,6.95,47.65\nfar,7.5,47.65\n"
WEST, EAST = box(6.8, 47.6, 6.9, 47.7), box(6.9, 47.6, 7.0, 47.7)


class Parsed:
    """A study and the notes on its files."""

    def __init__(self, study: StudyDefinition, notes: list[str]) -> None:
        assert study.area is not None
        self.study, self.area, self.notes = study, study.area, notes


def parse(area: str, files: dict[str, bytes], *, cells: str = CELLS) -> Parsed:
    """Parse a study whose section [area] goes on with `area`."""
    given = {"cells.csv": cells.encode(), **files}
    notes: list[str] = []

    def read(name: str) -> bytes:
        if name not in given:
            raise FileNotFoundError(name)
        return given[name]

    text = (STUDY + area).encode()
    return Parsed(parse_study(text, filename="study.toml", read=read, note=notes.append), notes)


def problems(area: str, files: dict[str, bytes], *, cells: str = CELLS) -> list[str]:
    """What is wrong with such a study."""
    with pytest.raises(StudyFileError) as caught:
        parse(area, files, cells=cells)
    return str(caught.value).split("\n")


def frame(
    shapes: list[BaseGeometry | None], *, crs: str | int | None = 4326, **columns: list[Any]
) -> gpd.GeoDataFrame:
    """Table of shapes given in degrees, in a coordinate system."""
    table = gpd.GeoDataFrame(columns, geometry=shapes, crs=4326)
    return table.set_crs(None, allow_override=True) if crs is None else table.to_crs(crs)
