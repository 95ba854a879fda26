"""Load the demo study through the same path as a user's data, and serve its reports."""

import json
import sys
from argparse import ArgumentParser
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from mobility.base.errors import MobilityError
from mobility.base.locks import exclusive
from mobility.base.messages import say
from mobility.demo import loading
from mobility.demo.accounts import ensure_demo_accounts
from mobility.demo.files import accounts_file
from mobility.embedded.shared import workers
from mobility.embedded.web import running_address, serve_until_stopped, web_server
from mobility.management.patience import patiently
from mobility.vault.models.subscribers import VaultStudy
from reports.management.arguments import refusing


class Command(BaseCommand):
    help = (
        "Start all services, load the demo study, and serve the site until Ctrl-C. If "
        "interrupted, run it again to continue."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--no-serve", action="store_true", help="stop when the report is ready")
        parser.add_argument("--subscribers", type=int, metavar="N", help="use fewer than 88,935 subscribers")
        parser.add_argument("--port", type=int, default=8000, help="first port to try")

    @refusing(MobilityError, after="the demo stopped at this step: ")
    def handle(self, *args: Any, no_serve: bool, subscribers: int | None, port: int, **options: Any) -> None:
        try:
            with ExitStack() as running:
                self._run(running, serve=not no_serve, subscribers=subscribers, port=port)
        except KeyboardInterrupt:
            say("\ninterrupted: the next run continues from here")
            sys.exit(130)

    def _run(self, running: ExitStack, *, serve: bool, subscribers: int | None, port: int) -> None:
        # A second demo at the same time waits here, and finds everything done.
        with exclusive(settings.PATHS.run / "demo.lock"):
            with loading.step("accounts"):
                accounts = ensure_demo_accounts(accounts_file())
            with loading.step("extract of seven days"):
                files = loading.ensure_extract(subscribers=subscribers)
            with loading.step("study"):
                study = loading.ensure_study()
            with loading.step("Redis and worker"):
                check_workers = running.enter_context(workers())
            served_elsewhere = running_address()
            address = served_elsewhere if serve else None
            if serve and not served_elsewhere:
                with loading.step("web server"):
                    address = running.enter_context(web_server(port=port))
            result = self._load(study, files, check_workers=check_workers)
        self.stdout.write(json.dumps({"study": study.slug, "address": address, **result}))
        self.stdout.flush()
        if address:
            introduce(address, accounts)
        if serve and not served_elsewhere:
            say("stop with Ctrl-C")
            serve_until_stopped(check_workers)

    def _load(
        self, study: VaultStudy, files: list[Path], *, check_workers: Callable[[], None]
    ) -> dict[str, Any]:
        """Load the files and write the report."""
        batches = []
        for number, file in enumerate(files, start=1):
            with loading.step(f"day {number} of {len(files)}: {file.name}"):
                batches.append(patiently(partial(loading.ingest, study, file, check_workers=check_workers)))
        with loading.step("slots of all days"):
            patiently(partial(loading.close_slots, study, check_workers=check_workers))
        with loading.step("report"):
            export, n_visitors = loading.write_report(study.slug)
        return {
            "batches": [str(batch.pk) for batch in batches],
            "n_visitors": n_visitors,
            "export": str(export),
        }


def introduce(address: str, accounts: dict[str, str]) -> None:
    say(f"\nthe demo is at {address}; sign in as")
    for username, password in accounts.items():
        say(f"  {username:<14} {password}")
