"""Help someone who has lost the second factor."""

import json
from argparse import ArgumentParser
from typing import Any

from allauth.mfa.models import Authenticator
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from mobility.signin.events import COMMAND_LINE, note_change
from reports.accounts.models import find_account


class Command(BaseCommand):
    help = (
        "Remove all second factors of an account. The password alone is then enough to sign in "
        "until the owner adds a new factor."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username")

    def handle(self, *args: Any, username: str, **options: Any) -> None:
        user = find_account(username)
        if user is None:
            raise CommandError(f"username must be that of an account, got {username!r}")
        with transaction.atomic():
            factors = Authenticator.objects.filter(user=user)
            removed = sorted(factors.values_list("type", flat=True))
            factors.delete()
            if removed:
                note_change(user, actor=COMMAND_LINE, change="second factor removed")
        self.stdout.write(json.dumps({"username": username, "removed": removed}))
