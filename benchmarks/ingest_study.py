"""The study of the ingest benchmark: the demo's columns and numbers of values, coded as operators do.

Short codes make a row about 74 bytes long, as in an operator's extract; the demo writes its values out.
"""

import csv
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

DEMO: Final = Path(__file__).resolve().parent.parent / "mobility" / "demo"
AREA_FILES: Final = ("cells.csv", "zones.geojson")
DAYS: Final = 7
CATEGORIES: Final[Mapping[str, tuple[str, ...]]] = {
    "visitor_category": ("RE", "FR", "TO"),
    "gender": ("F", "M", "NR"),
    "age": ("0-17", "18-24", "25-34", "35-44", "45-54", "55-64", "65+", "NR"),
    "geolife": (*(f"GL{number:02d}" for number in range(1, 12)), "NR"),
    "region": tuple(f"R{number:02d}" for number in range(1, 38)),
    "sleeping_area": (*(f"S{number:02d}" for number in range(1, 11)), "NR"),
}
SIDE: Final = 10
CORNERS: Final = ((0, 0), (1, 0), (1, 1), (0, 1), (0, 0))
SLOTS: Final = "[slots]\nminutes = 30\nepsilon_day = 1.0\n"
COLUMNS: Final = ("msisdn", "timestamp", "cell_id", *CATEGORIES)


def write_study(folder: Path, *, slug: str, subscribers: int, has_slots: bool = False) -> Path:
    """Write a study file and the files of its area into its folder; returns its path.

    Parameters
    ----------
    has_slots : half hours of the zones, which are 100 squares over the cells with slots or without
    """
    folder.mkdir(parents=True, exist_ok=True)
    _put_squares(folder)
    path = folder / f"{slug}.toml"
    path.write_text(_study_text(slug=slug, subscribers=subscribers) + (SLOTS if has_slots else ""))
    return path


def _put_squares(folder: Path) -> None:
    """Write the demo's cells, and as their zones SIDE x SIDE squares."""
    with (DEMO / AREA_FILES[0]).open(newline="") as file:
        cells = [(row["cell_id"], float(row["lon"]), float(row["lat"])) for row in csv.DictReader(file)]
    west, south = (min(cell[axis] for cell in cells) for axis in (1, 2))
    east, north = (max(cell[axis] for cell in cells) for axis in (1, 2))
    width, height = (east - west) / SIDE, (north - south) / SIDE

    def place(value: float, low: float, step: float) -> int:
        return min(int((value - low) / step), SIDE - 1)

    lines = ["cell_id,lon,lat,zone"]
    for name, lon, lat in cells:
        zone = f"Q{place(lon, west, width)}{place(lat, south, height)}"
        lines.append(f"{name},{lon},{lat},{zone}")
    (folder / AREA_FILES[0]).write_text("\n".join(lines) + "\n")
    features = [
        {
            "type": "Feature",
            "properties": {"zone": f"Q{x}{y}"},
            "geometry": {
                "type": "Polygon",
                "coordinates": [
                    [[west + (x + i) * width, south + (y + j) * height] for i, j in CORNERS],
                ],
            },
        }
        for x in range(SIDE)
        for y in range(SIDE)
    ]
    zones = {"type": "FeatureCollection", "features": features}
    (folder / AREA_FILES[1]).write_text(json.dumps(zones))


def first_day() -> Any:
    """First day of the demo study, and of this one."""
    return tomllib.loads((DEMO / "study.toml").read_text())["study"]["first_day"]


def _study_text(*, slug: str, subscribers: int) -> str:
    indicators = "".join(
        f'[[indicator]]\nslug = "{name}"\nkind = "static"\ncolumn = "{name}"\ncategories = {list(values)}\n'
        for name, values in CATEGORIES.items()
    )
    return f"""[study]
slug = "{slug}"
name = "Benchmark of ingest"
timezone = "Europe/Paris"
first_day = {first_day()}
days = {DAYS}
expected_subscribers = {subscribers}
[study.visitor]
min_minutes = 60
from = "06:00"
to = "23:59"
[extract]
subscriber = "msisdn"
timestamp = "timestamp"
cell = "cell_id"
[plan]
mechanism = "smp-grr"
unit = "profile"
epsilon = 1.0
{indicators}
[[indicator]]
slug = "visit_duration"
kind = "daily"
derive = "visit_duration"
[area]
cells = "cells.csv"
zones = "zones.geojson"
"""
