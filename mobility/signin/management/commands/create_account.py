"""Create an account for a person, with its roles and the studies that are open to it."""

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from mobility.signin.management.grant_options import Asked, add_grant_arguments, asked_of
from reports.accounts.actions import AccessChangeError, create_account
from reports.accounts.grants import give_grant
from reports.management.arguments import refusing
from reports.studies.policies import SEES_ALL, Role


class Command(BaseCommand):
    help = "Create an account. Without --password-file, a generated password is shown once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username")
        parser.add_argument(
            "--role",
            action="append",
            required=True,
            choices=[role.value for role in Role],
            help="role of the account; repeatable",
        )
        parser.add_argument(
            "--password-file",
            metavar="FILE",
            help="file whose first line is the password; - for standard input",
        )
        add_grant_arguments(parser)

    def handle(self, *args: Any, username: str, role: list[str], **options: Any) -> None:
        roles = [Role(name) for name in dict.fromkeys(role)]
        asked = asked_of(options)
        if SEES_ALL.issuperset(roles) and asked.is_given:
            raise CommandError(
                "administrators and privacy officers see all studies: leave out --study and --all-studies"
            )
        given = _password_in(options["password_file"]) if options["password_file"] else ""
        password = _create(username, roles=roles, asked=asked, password=given)
        if not (SEES_ALL & set(roles) or asked.is_given):
            self.stderr.write(
                f"{username} has no access to a study yet; give access with "
                f"grant_study {username} --study SLUG"
            )
        made = {"username": username, "roles": [str(each) for each in roles], **asked.as_json()}
        self.stdout.write(json.dumps(made if given else made | {"password": password}))


def _password_in(file: str) -> str:
    try:
        text = sys.stdin.readline() if file == "-" else Path(file).read_text().partition("\n")[0]
        password = text.rstrip("\r\n")
        validate_password(password)
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"the password cannot be read: {type(error).__name__}") from error
    except ValidationError as error:
        raise CommandError(" ".join(error.messages)) from error
    return password


@transaction.atomic
def _create(username: str, *, roles: list[Role], asked: Asked, password: str) -> str:
    with refusing(AccessChangeError):
        account, password = create_account(username, roles=roles, password=password)
        for study in asked.studies:
            give_grant(account, study=study, until=asked.until)
    return password
