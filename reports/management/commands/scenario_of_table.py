"""Answer questions about days from tables of unions that another provider published."""

import argparse
import json
import sys
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from ldp import Scenario, days_in_a_row, exactly_days, on_days
from ldp.errors import LdpError
from reports.base.commands import ReadingCommand
from reports.scenario.published_tables import HIDDEN_BELOW, MAX_BYTES, TableError, days_of, read_table
from reports.scenario.table_answers import table_answer


class Command(ReadingCommand):
    help = (
        "Print bounds from tables of visitors (CSV: first, last, volume or #, category). Exits with 1 if "
        "totals contradict each other."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="tables of the same people")
        parser.add_argument("--present", metavar="DAYS", help="days with a visit, separated by commas")
        parser.add_argument("--absent", metavar="DAYS", help="days without a visit, separated by commas")
        parser.add_argument("--exactly", type=int, metavar="K", help="present on exactly K days")
        parser.add_argument("--in-a-row", type=int, metavar="K", help="present on at least K days in a row")
        parser.add_argument(
            "--hidden-below",
            type=int,
            default=HIDDEN_BELOW,
            metavar="N",
            help="a # stands for a number of at least 1 and below N",
        )

    def handle(self, *, files: list[Path], hidden_below: int, **options: Any) -> None:
        if len({str(path) for path in files}) < len(files):
            raise CommandError("each FILE must be named once")
        try:
            tables = [read_table(_content(path), name=str(path), hidden_below=hidden_below) for path in files]
            first_day, days = days_of(tables)
            scenario = _scenario(options, first_day=first_day, days=days)
            answer = table_answer(tables, scenario, first_day=first_day, days=days)
        except (LdpError, TableError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(json.dumps(answer, ensure_ascii=False, indent=1))
        if not answer["all"]["consistent"]:
            self.stdout.flush()
            sys.exit(1)


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise CommandError(f"FILE must be a file that can be read: {error}") from error


def _scenario(options: dict[str, Any], *, first_day: date, days: int) -> Scenario | None:
    of_days = options["present"] is not None or options["absent"] is not None
    asked = [of_days, options["exactly"] is not None, options["in_a_row"] is not None]
    if sum(asked) > 1:
        raise CommandError("ask one question: --present and --absent, --exactly, or --in-a-row")
    if options["exactly"] is not None:
        return exactly_days(options["exactly"], days=days)
    if options["in_a_row"] is not None:
        return days_in_a_row(options["in_a_row"], days=days)
    if not of_days:
        return None
    present, absent = (_days(options, name, first_day=first_day, days=days) for name in ("present", "absent"))
    return on_days(days=days, present=present, absent=absent)


def _days(options: dict[str, Any], name: str, *, first_day: date, days: int) -> list[int]:
    found = []
    last_day = first_day + timedelta(days=days - 1)
    for text in filter(None, (options[name] or "").split(",")):
        try:
            day = date.fromisoformat(text.strip())
        except ValueError:
            raise CommandError(f"--{name} must be dates such as 2017-05-31, got {text}") from None
        if not first_day <= day <= last_day:
            raise CommandError(f"--{name} must be days from {first_day} to {last_day}, got {day}")
        found.append((day - first_day).days + 1)
    return found
