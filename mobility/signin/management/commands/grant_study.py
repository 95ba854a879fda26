"""Open studies to an account, or close them again: for anyone who has the shell of the server."""

import json
from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from mobility.signin.management.grant_options import Asked, add_grant_arguments, asked_of
from reports.accounts.actions import AccessChangeError
from reports.accounts.grants import give_grant, withdraw_grant
from reports.accounts.models import find_account
from reports.management.arguments import refusing
from reports.studies.grant_models import StudyGrant


class Command(BaseCommand):
    help = "Give an account access to studies, or withdraw it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username")
        add_grant_arguments(parser)
        parser.add_argument("--withdraw", action="store_true", help="withdraw access instead of granting it")

    def handle(self, *args: Any, username: str, withdraw: bool, **options: Any) -> None:
        account = find_account(username)
        if account is None:
            raise CommandError(f"no account is named {username!r}: create it with create_account")
        asked = asked_of(options)
        if not asked.is_given:
            raise CommandError("give --study SLUG or --all-studies")
        with refusing(AccessChangeError):
            (_withdraw if withdraw else _give)(account, asked)
        self.stdout.write(json.dumps({"username": username, "granted": not withdraw, **asked.as_json()}))


@transaction.atomic
def _give(account: User, asked: Asked) -> None:
    for study in asked.studies:
        give_grant(account, study=study, until=asked.until)


@transaction.atomic
def _withdraw(account: User, asked: Asked) -> None:
    for study in asked.studies:
        grant = StudyGrant.objects.filter(user=account, study=study).first()
        if grant is None:
            name = "all studies" if study is None else study.slug
            raise AccessChangeError(f"{account.username} has no grant for {name}")
        withdraw_grant(grant)
