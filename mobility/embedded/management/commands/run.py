"""Serve existing data until Ctrl-C."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from mobility.base.errors import MobilityError
from mobility.base.messages import say
from mobility.embedded.shared import workers
from mobility.embedded.web import running_address, serve_until_stopped, web_server
from reports.management.arguments import refusing


class Command(BaseCommand):
    help = (
        "Start what is not running yet (Redis, a worker), serve the site on this machine, and "
        "stop everything on Ctrl-C."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", type=int, default=8000, help="first port to try")

    def handle(self, *args: Any, port: int, **options: Any) -> None:
        if address := running_address():
            raise CommandError(f"another command already serves the site: {address}")
        with refusing(MobilityError), workers() as check, web_server(port=port) as address:
            self.stdout.write(json.dumps({"address": address}))
            self.stdout.flush()
            say(f"serving at {address}; stop with Ctrl-C")
            serve_until_stopped(check)
