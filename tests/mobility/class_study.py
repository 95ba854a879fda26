"""A small study with classes, files of it, and a recount of who was there in which class."""

import random
from collections.abc import Iterable
from pathlib import Path

from tests.study_text import columns, daily, static, study_text

DAYS = 3
CLASSES = ("panel", "standard", "minor")
COLOURS = ("red", "green", "blue")
HEADER = "msisdn,time,contract,colour\n"
EXACT = {"panel": 20, "standard": 19, "minor": 18}  # answers differ from values once in millions


def class_text(epsilons=None, *, mechanism="smp-grr", more="", study="", has_static=True):
    """Study file; `epsilons` by class."""
    epsilons = EXACT if epsilons is None else epsilons
    tables = "".join(
        f'[[class]]\nslug = "{slug}"\nname = "Class {slug}"\nname_fr = "Classe {slug}"\n'
        f'value = "{slug.upper()}"\nepsilon = {epsilon}\n'
        for slug, epsilon in epsilons.items()
    )
    text = study_text(
        static("colour", *COLOURS) if has_static else "",
        daily("visit_duration"),
        tables,
        slug="classes",
        name="Classes",
        first_day="2024-03-01",
        days=DAYS,
        study="min_publication = 5\n" + study,
        extract=columns(),
        mechanism=mechanism,
        epsilon=max(epsilons.values()),
    )
    return text.replace("[plan]\n", f'[plan]\nclass_column = "contract"\n{more}')


def rows_of(who: str, day: int, *, contract: str, colour: str, minutes: int = 90) -> list[str]:
    """Two rows of a person on a day, `minutes` apart."""
    times = (f"2024-03-{day:02d}T10:00:00", f"2024-03-{day:02d}T{10 + minutes // 60}:{minutes % 60:02d}:00")
    return [f"{who},{time},{contract},{colour}\n" for time in times]


def some_rows(*, n: int = 300, seed: int = 1) -> dict[int, list[str]]:
    """Rows of each day; of some people the class differs between days, or between the rows of one."""
    rng = random.Random(seed)
    found: dict[int, list[str]] = {day: [] for day in range(1, DAYS + 1)}
    for person in range(n):
        contract = rng.choices(CLASSES, [1, 6, 3])[0].upper()
        colour = COLOURS[rng.choices(range(3), [1, 2, 3] if contract == "MINOR" else [3, 2, 1])[0]]
        for day in found:
            if rng.random() < 0.5:
                own = rng.choice(CLASSES).upper() if rng.random() < 0.1 else contract
                minutes = rng.choice([30, 70, 130, 200])
                found[day] += rows_of(f"p{person}", day, contract=own, colour=colour, minutes=minutes)
    return found


def write_days(folder: Path, rows: dict[int, list[str]]) -> list[Path]:
    """One file of each day."""
    paths = [folder / f"day{day}.csv" for day in rows]
    for path, of_day in zip(paths, rows.values(), strict=True):
        path.write_text(HEADER + "".join(of_day))
    return paths


def recount(rows: Iterable[str]) -> tuple[dict[str, str], dict[str, str], dict[str, set[int]]]:
    """Class and colour of each person, by the first row, and days of each visitor; rows in their order."""
    classes: dict[str, str] = {}
    colours: dict[str, str] = {}
    times: dict[tuple[str, int], list[str]] = {}
    for row in rows:
        who, time, contract, colour = row.strip().split(",")
        classes.setdefault(who, contract.lower())
        colours.setdefault(who, colour)
        times.setdefault((who, int(time[8:10])), []).append(time[11:])
    minutes = lambda time: int(time[:2]) * 60 + int(time[3:5])  # noqa: E731
    days: dict[str, set[int]] = {}
    for (who, day), of_day in times.items():
        if max(map(minutes, of_day)) - min(map(minutes, of_day)) >= 60:
            days.setdefault(who, set()).add(day)
    return classes, colours, days
