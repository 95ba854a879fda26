"""A study of events: interventions of two zones over a year and a bit, and files of them."""

from dataclasses import fields
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from reports.studies.studyfile import StudyDefinition, parse_study

SLUG = "interventions"
TEXT = """
[study]
slug = "interventions"
name = "Interventions"
kind = "events"
timezone = "Europe/Paris"
first_day = 2023-12-20
days = 400
min_publication = 10

[extract]
timestamp = "at"
cell = "cell_id"

[plan]
mechanism = "smp-grr"
unit = "profile"
epsilon = 1.0

[[indicator]]
slug = "reason"
kind = "static"
column = "reason"
categories = ["fire", "accident", "illness"]

[[indicator]]
slug = "zone"
kind = "static"
derive = "zone"

[area]
cells = "cells.csv"
"""
CELLS = "cell_id,lon,lat,zone\nC1,6.1,47.1,North\nC2,6.2,47.2,South\nC3,6.3,47.3,South\n"
REASONS = ("fire", "accident", "illness", "")
START = datetime(2023, 12, 20)


def event_definition(text: str = TEXT) -> StudyDefinition:
    return parse_study(text.encode(), filename="events.toml", read=lambda _: CELLS.encode())


def as_changes(definition: StudyDefinition) -> dict[str, Any]:
    """All of a definition, for `make_pipeline`."""
    return {each.name: getattr(definition, each.name) for each in fields(definition)}


def rows_of(*days: int, each: int = 40) -> list[str]:
    """Rows of study days, a minute apart and all different."""
    return [
        f"{START + timedelta(days=day - 1, minutes=9 * n):%Y-%m-%dT%H:%M:%S},"
        f"{('C1', 'C2', 'C3', 'C9')[n % 4 if n % 8 else 0]},{REASONS[(n * 7 + day) % 4]}"
        for day in days
        for n in range(each)
    ]


def write_rows(path: Path, rows: list[str]) -> Path:
    path.write_text("at,cell_id,reason\n" + "".join(f"{row}\n" for row in rows))
    return path


def in_area(rows: list[str]) -> list[str]:
    return [row for row in rows if ",C9," not in row]


# At most two events of a person are answered, and each of those on every indicator.
TEXT_OF_PEOPLE = TEXT.replace('cell = "cell_id"', 'cell = "cell_id"\nperson = "patient"').replace(
    'mechanism = "smp-grr"', 'mechanism = "spl-grr"\nmax_events = 2'
)


def write_people(path: Path, rows: list[str]) -> Path:
    path.write_text("at,cell_id,reason,patient\n" + "".join(f"{row}\n" for row in rows))
    return path
