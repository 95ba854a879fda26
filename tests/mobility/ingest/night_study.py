"""A small study whose daily indicators come from places."""

from datetime import date

from reports.studyfile import StudyDefinition, parse_study

STUDY = """
[study]
slug = "nights"
name = "Nights"
timezone = "Europe/Paris"
first_day = {first_day}
days = {days}
min_publication = 1
[study.visitor]
min_minutes = 60
from = "06:00"
to = "23:59"
[extract]
subscriber = "who"
timestamp = "when"
cell = "where"
[plan]
mechanism = "{mechanism}"
unit = "profile"
epsilon = {epsilon}
[[indicator]]
slug = "gender"
kind = "static"
column = "gender"
categories = ["F", "M"]
[[indicator]]
slug = "stayed_in"
kind = "daily"
derive = "main_zone"
"""
NIGHT = """
[[indicator]]
slug = "slept_in"
kind = "daily"
derive = "night_zone"
night_from = "{night_from}"
night_to = "{night_to}"
"""
DURATION = """
[[indicator]]
slug = "duration"
kind = "daily"
derive = "visit_duration"
"""
# No zone; the codes run against the order of the names.
CELLS = (
    "cell_id,lon,lat,zone\n"
    "cell-9,6.8,47.6,South\ncell-8,6.9,47.6,North\ncell-7,6.9,47.7,South\ncell-6,6.9,47.8,\n"
)


def night_study(
    *,
    first_day: date,
    days: int,
    night_from: str | None = "22:00",
    night_to: str = "06:00",
    mechanism: str = "smp-grr",
    epsilon: float = 20.0,
    cells: str = CELLS,
) -> StudyDefinition:
    """The study; without a `night_from` one that asks for no night."""
    text = STUDY + (NIGHT if night_from else "") + DURATION + '[area]\ncells = "cells.csv"\n'
    text = text.format(
        first_day=first_day, days=days, mechanism=mechanism, epsilon=epsilon, night_from=night_from,
        night_to=night_to,
    )  # fmt: skip
    return parse_study(text.encode(), filename="study.toml", read=lambda _: cells.encode())
