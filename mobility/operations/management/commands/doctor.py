"""Find what is wrong with this installation, and say what to do about it."""

import json
import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from mobility.operations.doctor.diagnosis import Diagnosis
from mobility.operations.findings import Level
from reports.base.version import software

MARKS = {Level.ERROR: "ERROR", Level.WARNING: "WARNING", Level.NOTE: "NOTE"}


class Command(BaseCommand):
    help = (
        "Check databases, broker, workers, keys, storage, data and this machine (docs/doctor.md). "
        "Print JSON on standard output and a summary on standard error. Exit with 1 if something "
        "needs action now."
    )
    requires_system_checks: tuple[str, ...] = ()  # they are findings here

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--deep",
            action="store_true",
            help="also run the checks that take minutes: sealed data, totals, ledger, SQLite files",
        )
        parser.add_argument("--json", action="store_true", help="print only JSON, without a summary")

    def handle(self, *args: Any, deep: bool, json: bool, **options: Any) -> None:
        from mobility.operations.doctor import broker, examining  # noqa: PLC0415 - numba: 0.5 s, not for --help

        found = sorted(examining.examine(deep=deep), key=lambda each: -each.level)
        wrong = [each for each in found if each.level > Level.OK]
        is_ok = not any(each.level == Level.ERROR for each in wrong)
        self._print(found, wrong, ok=is_ok, redis=broker.version(), deep=deep)
        if not json:
            self._say(wrong, n_checked=len(found))
        if not is_ok:
            sys.exit(1)

    def _print(self, found: list[Diagnosis], wrong: list[Diagnosis], *, ok: bool, **facts: Any) -> None:
        value = {"ok": ok, "version": software()["version"], "zone": settings.MOBILITY_ZONE, **facts}
        value |= {"looked_at": len(found), "findings": [each.to_json() for each in wrong]}
        self.stdout.write(json.dumps(value, ensure_ascii=False, indent=1))

    def _say(self, wrong: list[Diagnosis], *, n_checked: int) -> None:
        for each in wrong:
            subject = f" [{each.subject}]" if each.subject else ""
            style = self.style.ERROR if each.level == Level.ERROR else self.style.WARNING
            self.stderr.write(f"{MARKS[each.level]} {each.code}{subject}: {each.what}", style)
            if each.todo:
                self.stderr.write(f"  fix: {each.todo}")
            self.stderr.write(f"  see: {each.page}")
        counts = ", ".join(
            f"{sum(each.level == level for each in wrong)} {mark.lower()}" for level, mark in MARKS.items()
        )
        self.stderr.write(f"{n_checked} checked: {counts}")
