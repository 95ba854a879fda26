"""Print the reports of a study."""

import argparse
from datetime import date
from typing import Any

from django.core.management.base import CommandError

from reports.base.commands import ReadingCommand
from reports.estimates.queries import (
    Window,
    WindowError,
    WindowReport,
    study_reports,
    window_from_dates,
    window_report,
)
from reports.events.periods import PERIODS
from reports.events.queries import DEFAULT
from reports.exports.errors import ExportError
from reports.exports.events import WRITERS, check, periods_record
from reports.exports.records import FORMATS, render
from reports.ledger.handouts import record_file
from reports.management.arguments import refusing, study_named
from reports.studies.models import Study


class Command(ReadingCommand):
    help = "Print the reports of a study, for all indicators and windows or for a selection."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("study", help="slug of the study")
        parser.add_argument("--indicator", metavar="SLUG", help="print only this indicator")
        parser.add_argument("--from", dest="first", metavar="DAY", help="first day of the window")
        parser.add_argument("--to", dest="last", metavar="DAY", help="last day of the window")
        parser.add_argument(
            "--format", dest="file_format", choices=FORMATS, default="json", help="output format"
        )
        parser.add_argument(
            "--period", choices=PERIODS, help="length of periods in a study of events (default: month)"
        )

    def handle(self, **options: Any) -> None:
        study = study_named(options["study"])
        if study.of_events:
            self._print_events(study, options)
            return
        if options["period"]:
            raise CommandError(f"--period must be absent: study {study.slug} does not count events")
        with refusing(WindowError):
            window = _window(study, options["first"], options["last"])
            reports = _reports(study, options["indicator"], window)
        self.stdout.write(render(reports, file_format=options["file_format"]).rstrip("\n"))
        named = {"indicator": "indicator", "from": "first", "to": "last"}
        asked = {name: options[option] for name, option in named.items() if options[option]}
        facts = {"way": "command", "format": options["file_format"]} | asked
        record_file(study=study.slug, by="command line", facts=facts)

    def _print_events(self, study: Study, options: dict[str, Any]) -> None:
        """Print the figures of one indicator in all periods."""
        slug, kind, file_format = options["indicator"], options["period"] or DEFAULT, options["file_format"]
        if options["first"] or options["last"]:
            raise CommandError("--from and --to must be absent for a study of events: use --period")
        found = study.indicators.filter(slug=slug).first()
        if found is None:
            known = ", ".join(study.indicators.values_list("slug", flat=True))
            raise CommandError(f"--indicator must be one of {known} for a study of events, got {slug}")
        with refusing(ExportError):
            record = check(periods_record(found, kind))
        self.stdout.write(WRITERS[file_format](record).decode().rstrip("\n"))
        facts = {"way": "command", "format": file_format, "indicator": slug, "period": kind}
        record_file(study=study.slug, by="command line", facts=facts)


def _reports(study: Study, slug: str | None, window: Window | None) -> list[WindowReport]:
    indicators = list(study.indicators.all())
    if slug is None:
        return study_reports(indicators, window)
    wanted = [indicator for indicator in indicators if indicator.slug == slug]
    if not wanted:
        known = ", ".join(indicator.slug for indicator in indicators)
        raise CommandError(f"--indicator must be one of {known}, got {slug}")
    # Asked for by name, a union that does not exist is an error; among all indicators it is left out.
    return study_reports(wanted, None) if window is None else [window_report(wanted[0], window)]


def _window(study: Study, first: str | None, last: str | None) -> Window | None:
    if first is None and last is None:
        return None
    if first is None or last is None:
        raise CommandError("--from and --to must be given together")
    return window_from_dates(study, _day("--from", first), _day("--to", last))


def _day(option: str, text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise CommandError(f"{option} must be a date such as 2017-05-31, got {text}") from None
