"""`manage.py make_extract`: the CDR-like files of the demo study."""

import json
from argparse import ArgumentParser
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from reports.management.arguments import refusing


class Command(BaseCommand):
    help = (
        "Write the extract of the demo study, one CSV file per day, with synthetic people and the totals "
        "of FIMU 2017."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--out", type=Path, help="output folder; default: demo/extract in the data folder"
        )
        parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same bytes")
        parser.add_argument("--subscribers", type=int, help="number of subscribers, sampled from the 88,935")
        parser.add_argument(
            "--population",
            type=Path,
            metavar="DIR",
            help="people that `synthesise` made from the demo study",
        )
        parser.add_argument("--gzip", action="store_true", help="write .csv.gz")

    @refusing(OSError, ValueError)
    def handle(self, *args: Any, **options: Any) -> None:
        from mobility.demo.extract import write_extract  # noqa: PLC0415 - pyarrow: not for --help

        directory = options["out"] or settings.MOBILITY_DATA_DIR / "demo" / "extract"
        summary = write_extract(
            directory,
            seed=options["seed"],
            n_subscribers=options["subscribers"],
            is_compressed=options["gzip"],
            people=options["population"],
        )
        self.stdout.write(json.dumps(asdict(summary)))
