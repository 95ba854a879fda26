"""Mark a day of a study: an outage of the source, or an event."""

import argparse
import json
from datetime import date
from typing import Any

from django.core.management.base import BaseCommand

from reports.estimates.models import DayNote
from reports.estimates.notes import DayNoteError, note_day
from reports.management.arguments import day_of, refusing, study_named


class Command(BaseCommand):
    help = (
        "Mark a day as an outage of the source, or note an event. An earlier note of the same kind is "
        "replaced."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("study", help="slug of the study")
        parser.add_argument("day", type=day_of)
        kind = parser.add_mutually_exclusive_group(required=True)
        kind.add_argument("--outage", metavar="TEXT", help="which data is missing, and why")
        kind.add_argument("--event", metavar="TEXT", help="event that explains the number of visitors")

    def handle(self, *, study: str, day: date, **options: Any) -> None:
        found = study_named(study)
        kind = DayNote.Kind.EVENT if options["outage"] is None else DayNote.Kind.OUTAGE
        with refusing(DayNoteError):
            note = note_day(found, day=day, kind=kind, text=options[kind], by="command line")
        self.stdout.write(
            json.dumps(
                {"study": found.slug, "day": day.isoformat(), "kind": note.kind, "text": note.text},
                ensure_ascii=False,
            )
        )
