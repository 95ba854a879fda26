"""Write a table whose rows have noisy places instead of true ones, after a second person approved it."""

import json
import math
from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from mobility.base.errors import MobilityError
from mobility.tables.options import NamedPoint
from mobility.vault.queries import find_study
from reports.accounts.actions import COMMAND_LINE
from reports.base.later import later
from reports.management.arguments import naming_files, refusing

release = later("mobility.tables.writing.release")  # GeoPandas: 1 s
COLUMN = "COLUMN"


class Command(BaseCommand):
    help = (
        "Replace the place in each row of a CSV or Parquet table by one with noise, so that the table can "
        "leave the operator zone. The first run checks the table and asks a second person for approval; run "
        "the same command again after that."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("study", help="slug of the study whose key makes the noise")
        parser.add_argument("file", type=Path, help="the table: CSV (plain, gzip, zstd) or Parquet")
        parser.add_argument("to", type=Path, help="new file; its ending is .csv or .parquet")
        for name in ("lat", "lon"):
            parser.add_argument(f"--{name}", required=True, metavar=COLUMN, help="degrees, WGS 84")
        parser.add_argument(
            "--id",
            required=True,
            metavar=COLUMN,
            help="the person or thing of a row; each id has one place, and a pseudonym replaces it",
        )
        parser.add_argument("--level", required=True, help='a number, or a text such as "ln 3"')
        parser.add_argument("--radius", required=True, type=int, help="metres; epsilon = level / radius")
        parser.add_argument(
            "--grid", type=int, help="side of the squares in metres; without it, as small as fits"
        )
        parser.add_argument(
            "--zone", default="zone", metavar=COLUMN, help="column for the zone of the noisy place"
        )
        parser.add_argument(
            "--zones", type=Path, metavar="FILE", help="GeoJSON or GeoPackage, instead of the study's zones"
        )
        parser.add_argument(
            "--zone-property", default="zone", metavar="NAME", help="attribute of FILE with the code"
        )
        parser.add_argument(
            "--distance-to", action="append", default=[], type=_point, metavar="NAME=LAT,LON",
            help="add a column with the distance from the noisy place to this point, in metres",
        )  # fmt: skip
        parser.add_argument("--drop", action="append", default=[], metavar=COLUMN, help="leave a column out")

    @refusing(MobilityError)
    @naming_files()
    def handle(self, *args: Any, study: str, file: Path, to: Path, **options: Any) -> None:
        row = find_study(study)
        facts = release(row, file, to, asked=options, by=COMMAND_LINE)
        self.stdout.write(json.dumps({"study": row.slug, "table": str(to), **facts}))


def _point(text: str) -> NamedPoint:
    """A named point, as a `type` of argparse."""
    name, _, place = text.partition("=")
    try:
        lat, lon = (float(part) for part in place.split(","))
    except ValueError:
        lat = lon = math.nan
    if not (name.isidentifier() and abs(lat) <= 90 and abs(lon) <= 180):
        raise ArgumentTypeError("must be a name and degrees, such as centre=48.85,2.35")
    return NamedPoint(name=name, lat=lat, lon=lon)
