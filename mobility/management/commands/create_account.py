"""Create an account for a person, with one role or several."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from mobility.errors import MobilityError
from mobility.services.accounts import create_account, new_password
from reports.policies import Role


class Command(BaseCommand):
    help = "Create an account with a generated password, which is printed once and kept nowhere."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username")
        parser.add_argument("role", nargs="+", choices=[role.value for role in Role])

    def handle(self, *args: Any, username: str, role: list[str], **options: Any) -> None:
        password = new_password()
        try:
            create_account(username, roles=[Role(name) for name in role], password=password)
        except MobilityError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(json.dumps({"username": username, "roles": role, "password": password}))
