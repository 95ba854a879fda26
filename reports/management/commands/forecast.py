"""Forecast the next slots of a study, or its next days."""

import argparse
from typing import Any

from django.core.management.base import CommandError

from reports.base.commands import ReadingCommand
from reports.exports.errors import ExportError
from reports.exports.forecasts import TEXT_FORMATS, WRITERS, check, days_record, slots_record
from reports.forecasts.actions import has_days_forecast, refresh
from reports.forecasts.computing import SLOTS_AHEAD
from reports.forecasts.queries import day_forecast, slot_forecast
from reports.ledger.handouts import record_file
from reports.management.arguments import refusing, study_named
from reports.slots.queries import has_slots
from reports.studies.models import Indicator, Study


class Command(ReadingCommand):
    help = (
        "Forecast people by zone and time slot, or visitors by day, from published figures. Forecasts "
        "use no epsilon."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("study", help="slug of the study")
        parser.add_argument(
            "--horizons",
            type=int,
            metavar="N",
            default=SLOTS_AHEAD,
            help="maximum number of slots or days to forecast",
        )
        parser.add_argument("--days", action="store_true", help="forecast days instead of time slots")
        parser.add_argument(
            "--indicator", metavar="SLUG", help="forecast the shares of this indicator's categories by day"
        )
        parser.add_argument("--format", dest="file_format", choices=TEXT_FORMATS, default="json")

    def handle(self, **options: Any) -> None:
        study, horizons = study_named(options["study"]), options["horizons"]
        if not 1 <= horizons <= SLOTS_AHEAD:
            raise CommandError(f"--horizons must be in 1..{SLOTS_AHEAD}, got {horizons}")
        if study.of_events:
            text = f"study {study.slug!r} counts events: their forecast is on the page of each indicator"
            raise CommandError(text)
        indicator = _indicator(study, options["indicator"]) if options["indicator"] else None
        is_of_slots = has_slots(study) and not options["days"] and indicator is None
        if not is_of_slots and not has_days_forecast(study):
            raise CommandError(f"study {study.slug!r} has no slots and too few days for a forecast")
        refresh(study)
        with refusing(ExportError):
            if is_of_slots:
                record = check(slots_record(slot_forecast(study, days=1), horizons=horizons))
            else:
                record = check(days_record(day_forecast(study, indicator), horizons=horizons))
        self.stdout.write(WRITERS[options["file_format"]](record).decode().rstrip("\n"))
        facts = {"way": "command", "format": options["file_format"], "what": "forecast"}
        record_file(study=study.slug, by="command line", facts=facts)


def _indicator(study: Study, slug: str) -> Indicator:
    found = study.indicators.filter(slug=slug).first()
    if found is None:
        known = ", ".join(study.indicators.values_list("slug", flat=True))
        raise CommandError(f"--indicator must be one of {known}, got {slug}")
    return found
