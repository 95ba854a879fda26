"""Answer a question about the days of people."""

import argparse
from typing import Any

from django.core.management.base import CommandError
from django.http import QueryDict

from reports.base.commands import ReadingCommand
from reports.estimates.queries import WindowError
from reports.exports.findings.scenarios import scenario_answer, scenario_findings
from reports.exports.findings.tables import to_csv, to_json
from reports.ledger.handouts import record_file
from reports.management.arguments import refusing, study_named
from reports.scenario.queries import refusal
from reports.scenario.query import NAMES, question_of
from reports.studies.models import Indicator, Study

_WRITERS = {"json": to_json, "csv": to_csv}


class Command(ReadingCommand):
    help = (
        "Print how many people came on chosen days: least, most and best estimate, with likely patterns. "
        "Without a question: who came on all days."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("study", help="slug of the study")
        parser.add_argument(
            "--indicator", metavar="SLUG", help="also print answers by category of this indicator"
        )
        parser.add_argument("--present", metavar="DAYS", help="days with a visit, separated by commas")
        parser.add_argument("--absent", metavar="DAYS", help="days without a visit, separated by commas")
        parser.add_argument("--exactly", metavar="K", help="present on exactly K days")
        parser.add_argument("--in-a-row", metavar="K", help="present on at least K days in a row")
        parser.add_argument("--nights", metavar="K", help="stayed at least K nights in a row")
        parser.add_argument("--format", dest="file_format", choices=sorted(_WRITERS), default="json")

    def handle(self, **options: Any) -> None:
        study = study_named(options["study"])
        indicator = _indicator(study, options["indicator"]) if options["indicator"] else None
        if text := refusal(study, indicator):
            raise CommandError(text)
        asked = QueryDict(mutable=True)
        asked.update({name: options[name] for name in NAMES if options[name] is not None})
        with refusing(WindowError):
            question = question_of(asked, study=study)
        findings = scenario_findings(question, indicator, scenario_answer(question, indicator))
        self.stdout.write(_WRITERS[options["file_format"]](findings).decode().rstrip("\n"))
        facts = {"way": "command", "format": options["file_format"], "question": question.query}
        if indicator:
            facts["indicator"] = indicator.slug
        record_file(study=study.slug, by="command line", facts=facts)


def _indicator(study: Study, slug: str) -> Indicator:
    found = study.indicators.filter(slug=slug).first()
    if found is None:
        known = ", ".join(study.indicators.values_list("slug", flat=True))
        raise CommandError(f"--indicator must be one of {known}, got {slug}")
    return found
