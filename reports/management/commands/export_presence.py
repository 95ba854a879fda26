"""Print presence by slot of time and zone."""

import argparse
from typing import Any

from reports.base.commands import ReadingCommand
from reports.estimates.queries import WindowError
from reports.exports.presence.selection import asked_days, asked_zones
from reports.exports.presence.tables import SlotTable, to_csv, to_json
from reports.ledger.handouts import record_file
from reports.management.arguments import refusing, study_named
from reports.slots.queries import presence

_WRITERS = {"json": to_json, "csv": to_csv}


class Command(ReadingCommand):
    help = (
        "Print the people in each zone and time slot, with 95% intervals, for all published days or a "
        "selection."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("study", help="slug of the study")
        parser.add_argument("--from", dest="first", metavar="DAY", default="", help="first day")
        parser.add_argument("--to", dest="last", metavar="DAY", default="", help="last day")
        parser.add_argument(
            "--zone", action="append", default=[], metavar="NAME", help="print only this zone; repeatable"
        )
        parser.add_argument(
            "--format", dest="file_format", choices=sorted(_WRITERS), default="json", help="output format"
        )

    def handle(self, **options: Any) -> None:
        study = study_named(options["study"])
        with refusing(WindowError):
            first, last = asked_days(study, options["first"], options["last"])
            found = presence(study, first_day=first, last_day=last)
            zones = asked_zones(options["zone"], found, level=None)
        content = _WRITERS[options["file_format"]](SlotTable(found=found, zones=zones))
        self.stdout.write(content.decode().rstrip("\n"))
        facts = {"way": "command", "format": options["file_format"], "what": "presence"}
        asked = {"from": options["first"], "to": options["last"]}
        facts |= {name: day for name, day in asked.items() if day}
        record_file(study=study.slug, by="command line", facts=facts)
