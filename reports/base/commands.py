"""Commands that only read: they start without the pages."""

from typing import Final

from django.core.management.base import BaseCommand

INSTALLATION: Final = "installation"  # tag of the system checks that are ours


class ReadingCommand(BaseCommand):
    """A command that changes nothing of studies.

    It makes our own system checks only: others load all pages, to see whether their addresses are sound.
    """

    requires_system_checks = (INSTALLATION,)
