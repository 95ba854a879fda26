"""Check that the workers of this host are alive: for supervisors. Exit 0: they are."""

import json
import socket
from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.utils import timezone

from mobility.workers.models import WorkerSign
from mobility.workers.signs import SILENT_S
from reports.base.commands import ReadingCommand


class Command(ReadingCommand):
    help = "Exit with 0 if a worker on this host has responded within the last minute."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--name", help="Celery name of the worker; default: any worker on this host")

    def handle(self, *_: Any, name: str | None, **__: Any) -> None:
        since = timezone.now() - timedelta(seconds=SILENT_S)
        signs = WorkerSign.objects.filter(zone=settings.MOBILITY_ZONE, seen_at__gt=since)
        host = socket.gethostname()
        mine = signs.filter(name=name) if name else signs.filter(name__endswith=f"@{host}")
        names = list(mine.values_list("name", flat=True))
        if not names:
            raise CommandError(f"{name or 'a worker of ' + host} has not responded within {SILENT_S} s")
        self.stdout.write(json.dumps({"workers": names}))
