"""Measure the server's time for each page of an analyst, and the size of its answer.

    python -m benchmarks.pages [--rounds 40] [--slots-only]

Four studies in a fresh SQLite database: seven days with seven indicators, 62 days with an indicator of 100
zones and a board of twelve tiles, seven days with joint indicators, and 62 days with 48 slots in 100 zones.
Each address is asked for in turn, round after round, by a signed-in analyst; there is no network
in between. Prints every page; docs/pages.md sums them up.
"""

import argparse
import dataclasses
import gc
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import django

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from reports.studies.models import Study
    from reports.studies.studyfile.definition import AreaDefinition

WEEK: Final = ("week", 7, 100.0)  # slug, days, budget in milliseconds of the 95th percentile
SEASON: Final = ("season", 62, 100.0)
N_CATEGORIES: Final = 100
N_ZONES: Final = 100
CROSSED: Final = (12, 37)
N_FLOW_ZONES: Final = 62
SLOTS_BUDGET_MS: Final = 100.0
BOARD_BUDGET_MS: Final = 250.0
# Of the board: with key figures, visitors and a text, twelve tiles.
BOARD_TILES: Final = (
    "map:indicator_1",
    "indicator:indicator_1",
    *(f"indicator:indicator_{n}" for n in range(1, 8)),
)
N_PEOPLE: Final = 50_000
PERCENTILE: Final = 95


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """An address of a study, and what it is."""

    study: str
    name: str
    path: str
    budget_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Time of a page in milliseconds, with its statements and the kilobytes of its answer.

    again_ms : median of the next reader, for whom the figures are kept
    """

    page: Page
    median_ms: float
    p95_ms: float
    again_ms: float
    queries: int
    kilobytes: float


def make_study(slug: str, *, days: int) -> "Study":
    """A study of people who are there on any of its days."""
    from tests.reports import report_factory as factory

    names = [f"Zone {code + 1}" for code in range(N_CATEGORIES if days == SEASON[1] else 7)]
    others = [[f"Category {code + 1}" for code in range(size)] for size in (2, 3, 7, 12, 22, 10)]
    indicators = [
        factory.indicator(f"indicator_{number}", *categories)
        for number, categories in enumerate([names, *others], start=1)
    ]
    study = factory.create(*indicators, slug=slug, name=slug.title(), days=days, area=area_of(names))
    factory.publish(study, factory.crowd(study, n=N_PEOPLE))
    return study


def pages_of(study: "Study", *, budget_ms: float) -> Iterator[Page]:
    """Every kind of page of its largest indicator."""
    from django.urls import reverse

    first, last = study.date_of(1), study.date_of(study.days)
    args = [study.slug, "indicator_1"]
    addresses = {
        "studies": reverse("reports:studies"),
        "study": reverse("reports:study", args=args[:1]),
        "report, all days": reverse("reports:indicator", args=args),
        "report, one day": reverse("reports:indicator", args=args) + f"?from={first}&to={first}",
        "all days": reverse("reports:days", args=args),
        "movement": reverse("reports:movement", args=args),
        "compare, day and baseline": reverse("reports:compare", args=args)
        + f"?kind=baseline&from={first}&to={first}",
        "compare, two windows": reverse("reports:compare", args=args)
        + f"?kind=windows&from={first}&to={first}&with_from={last}&with_to={last}",
        "scenario, all days": reverse("reports:scenario_study", args=args[:1]),
        "statement": reverse("reports:statement", args=args[:1]),
    }
    for name, path in addresses.items():
        yield Page(study=study.slug, name=name, path=path, budget_ms=budget_ms)


def area_of(names: Sequence[str]) -> "AreaDefinition":
    """An area of squares of a kilometre, ten in a column."""
    from reports.studies.studyfile.definition import AreaDefinition
    from tests.reports import map_factory

    features = [
        {
            "type": "Feature",
            "properties": {"zone": name},
            "geometry": {"type": "Polygon", "coordinates": [map_factory.square(*divmod(place, 10))]},
        }
        for place, name in enumerate(names)
    ]
    return AreaDefinition(
        cells=map_factory.area().cells,
        zones=tuple(names),
        geojson={"type": "FeatureCollection", "features": features},
    )


def make_board(study: "Study", *, owner: "User") -> Page:
    """A board of twelve tiles, one of them a map of 100 zones, and its page."""
    from reports.boards import actions
    from reports.boards.tiles import read_tiles
    from reports.boards.views import board_address

    board = actions.create_board(study, name="Season", by=owner)
    for tile in read_tiles(board.tiles)[2:]:
        actions.change_tile(board, "remove", key=tile.key)
    for value in ("text:", *BOARD_TILES):
        actions.add_tile(board, value)
    return Page(
        study=study.slug, name="board of 12 tiles", path=board_address(board), budget_ms=BOARD_BUDGET_MS
    )


def make_slots_study() -> "Study":
    """A study with 62 days of 48 slots in 100 zones, all of them published."""
    import numpy as np

    from tests.reports import report_factory as factory
    from tests.reports import slot_factory

    area = area_of([f"Zone {place + 1}" for place in range(N_ZONES)])
    slots = dataclasses.replace(slot_factory.DEFINITION, levels=())
    study = factory.create(factory.GENDER, slug="slots", name="Slots", days=62, area=area, slots=slots)
    at = np.arange(len(study.slots.clock))[:, np.newaxis]
    size = np.arange(1, N_ZONES + 1)
    slot_factory.publish(study, (40 * size * (1.5 + np.sin(2 * np.pi * (at / 48 - 0.5)))).round())
    return study


def slot_pages_of(study: "Study") -> Iterator[Page]:
    """The page of presence by slot with all that it can show, and the frames of its map."""
    from django.urls import reverse

    address = reverse("reports:presence", args=[study.slug])
    day = study.date_of(30)
    for name, path in {
        "presence, latest slot": address,
        "presence, day and median": f"{address}?day={day}&at=18:00&with=weekday",
        "presence, frames of a day": f"{address}slots.json?day={day}",
    }.items():
        yield Page(study=study.slug, name=name, path=path, budget_ms=SLOTS_BUDGET_MS)


def make_joint_study() -> "Study":
    """A week of a static indicator of 12 values with one of 37, and days with those of 62 zones by origin."""
    import numpy as np

    from ldp.privacy.joint import joint_codes
    from tests.reports import report_factory as factory

    names = [f"Zone {place + 1}" for place in range(N_FLOW_ZONES)]
    groups, regions = (
        factory.indicator(slug, *(f"{slug} {code}" for code in range(size)))
        for slug, size in zip(("group", "region"), CROSSED, strict=True)
    )
    home = factory.indicator("home", *names)
    day_zone = factory.indicator("day_zone", *names, kind="daily", column=None, derive="main_zone")
    crossed, trip = (
        factory.joint("both", groups, regions),
        factory.joint("trip", home, day_zone, kind="daily"),
    )
    indicators = (groups, regions, home, day_zone, crossed, trip)
    study = factory.create(*indicators, slug="joint", name="Joint", epsilon="1", area=area_of(names))
    people = factory.crowd(study, n=N_PEOPLE)
    values = [people.static["group"], people.static["region"]]
    people.static["both"] = joint_codes(values, sizes=CROSSED)
    sizes, homes = (N_FLOW_ZONES, N_FLOW_ZONES), people.static["home"]
    trips = [joint_codes([homes, zones], sizes=sizes) for zones in people.daily["day_zone"].T]
    people.daily["trip"] = np.stack(trips, axis=1)
    factory.publish(study, people)
    return study


def joint_pages_of(study: "Study") -> Iterator[Page]:
    """The cross-tabulation, a filter sentence, one about a single indicator, and flows."""
    from django.urls import reverse

    crosstab, flows = (reverse(f"reports:{name}", args=[study.slug]) for name in ("crosstab", "flows"))
    for name, path, budget_ms in (
        ("cross-tabulation, 12 x 37", crosstab, 150.0),
        ("cross-tabulation with a filter sentence", f"{crosstab}?only-group=2,3&only-region=5", 100.0),
        ("selected categories of one indicator", f"{crosstab}?indicator=region&only-region=2,3,5", 100.0),
        ("flows, 62 x 62", flows, 250.0),
    ):
        yield Page(study=study.slug, name=name, path=path, budget_ms=budget_ms)


def make_analyst() -> "User":
    """An account that reads all studies."""
    from reports.accounts.actions import create_account
    from reports.accounts.grants import give_grant
    from reports.studies.policies import Role

    analyst, _ = create_account("analyst", roles=[Role.ANALYST])
    give_grant(analyst, study=None)
    return analyst


def measure(pages: Sequence[Page], *, reader: "User", rounds: int) -> list[Timing]:
    """Ask for the pages in turn, so that a slow second hits all of them; the first round is not counted."""
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    from reports.estimates.fingerprints import slot_of

    client = Client(headers={"host": "localhost"})
    client.force_login(reader)
    taken: dict[Page, list[float]] = {page: [] for page in pages}
    again: dict[Page, list[float]] = {page: [] for page in pages}
    facts: dict[Page, tuple[int, float]] = {}
    for page in pages:
        with CaptureQueriesContext(connection) as queries:
            response: Any = client.get(page.path)
        if response.status_code != 200:
            raise SystemExit(f"{page.path} answered {response.status_code}")
        facts[page] = len(queries), len(response.content) / 1000
    gc.collect()
    gc.freeze()  # as mobility/wsgi.py does: else a collection walks through everything imported, for 180 ms
    for _ in range(rounds):
        for page in pages:
            slot_of.cache_clear()
            for times in (taken[page], again[page]):
                started = time.perf_counter()
                client.get(page.path)
                times.append(1000 * (time.perf_counter() - started))
    return [
        Timing(
            page=page,
            median_ms=statistics.median(times),
            p95_ms=statistics.quantiles(times, n=100, method="inclusive")[PERCENTILE - 1],
            again_ms=statistics.median(again[page]),
            queries=facts[page][0],
            kilobytes=facts[page][1],
        )
        for page, times in taken.items()
    ]


def table(timings: Sequence[Timing]) -> str:
    """Markdown."""
    lines = [
        "| study | page | median ms | 95th percentile ms | of the budget | again ms | statements | kB |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {each.page.study} | {each.page.name} | {each.median_ms:.0f} | {each.p95_ms:.0f} | "
        f"{100 * each.p95_ms / each.page.budget_ms:.0f} % | {each.again_ms:.0f} | "
        f"{each.queries} | {each.kilobytes:.0f} |"
        for each in timings
    ]
    return "\n".join(lines)


def no_worker(*_task: object, **_options: object) -> None:
    """Take a request for a worker, which no page waits for."""


@contextmanager
def fresh_site() -> Iterator[None]:
    """An empty installation on SQLite, without workers."""
    with tempfile.TemporaryDirectory(prefix="mobility-pages-") as folder:
        os.environ |= {"DJANGO_SETTINGS_MODULE": "mobility.settings", "MOBILITY_DATA_DIR": str(Path(folder))}
        django.setup()
        from django.conf import settings
        from django.core.management import call_command

        for alias in ("default", "vault"):
            call_command("migrate", database=alias, verbosity=0)
        call_command("collectstatic", interactive=False, verbosity=0)
        settings.TASK_SENDER = f"benchmarks.pages.{no_worker.__name__}"
        yield


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--slots-only", action="store_true", help="only the pages of presence by slot")
    asked = parser.parse_args()
    with fresh_site():
        pages: list[Page] = []
        reader = make_analyst()
        for slug, days, budget_ms in () if asked.slots_only else (WEEK, SEASON):
            study = make_study(slug, days=days)
            pages += pages_of(study, budget_ms=budget_ms)
            pages += [make_board(study, owner=reader)] if slug == SEASON[0] else []
        if not asked.slots_only:
            pages += joint_pages_of(make_joint_study())
        pages += slot_pages_of(make_slots_study())
        sys.stdout.write(table(measure(pages, reader=reader, rounds=asked.rounds)) + "\n")


if __name__ == "__main__":
    main()
