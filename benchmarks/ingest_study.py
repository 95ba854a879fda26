"""The study of the ingest benchmark: the demo's columns and numbers of values, coded as operators do.

Short codes make a row about 74 bytes long, as in an operator's extract; the demo writes its values out.
"""

import shutil
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
COLUMNS: Final = ("msisdn", "timestamp", "cell_id", *CATEGORIES)


def write_study(folder: Path, *, slug: str, subscribers: int) -> Path:
    """Write a study file and the files of its area into its folder; returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in AREA_FILES:
        shutil.copy(DEMO / name, folder / name)
    path = folder / f"{slug}.toml"
    path.write_text(_study_text(slug=slug, subscribers=subscribers))
    return path


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
