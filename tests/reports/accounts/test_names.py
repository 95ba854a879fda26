"""Names that fold alike are one name: for administrators, for commands and for the database."""

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import IntegrityError, transaction

from reports.accounts.actions import AccessChangeError, create_account
from reports.accounts.names import folded
from reports.models import AccountName, StudyGrant
from reports.studies.policies import Role
from tests.reports import report_factory as factory

pytestmark = pytest.mark.django_db
WIDE_DEMO, WIDE_ADAM = "\uff44\uff45\uff4d\uff4f", "\uff21dam"


def test_names_fold_by_width_case_and_form() -> None:
    for name, same in ((WIDE_ADAM, "adam"), ("STRASSE", "straße"), ("\u212aim", "kim"), ("e\u0301ve", "ÉVE")):
        assert folded(name) == folded(same), name
    assert folded("ada") != folded("ada-2")


@pytest.mark.parametrize(
    ("name", "why"),
    [(WIDE_DEMO, "reserved by the system"), ("Sign\uff0dIn", "reserved by the system"),
     (WIDE_ADAM, "already"), ("ADAM", "already"), ("adam\x00", "valid username"),
     ("ad\u200bam", "valid username"), ("\u202eadam", "valid username"),  # zero width, bidi
     ("ad\u00adam", "valid username"),  # soft hyphen
     ("adam\u3164", "visible letters"), ("\u0430dam", "visible letters")],  # Hangul filler, Cyrillic
)  # fmt: skip
def test_a_name_that_passes_for_another_is_refused(administrator, name, why) -> None:
    with pytest.raises(AccessChangeError, match=why):
        create_account(name, roles=[Role.ANALYST])
    assert list(User.objects.values_list("username", flat=True)) == ["adam"]


@pytest.mark.database
def test_the_database_refuses_a_second_account_of_a_name_however_it_is_made(administrator) -> None:
    other = User.objects.create(username="eva")
    for account, name in ((User(), "Adam"), (User(), WIDE_ADAM), (User(), "Demo"), (other, "ADAM")):
        account.username = name
        with pytest.raises(IntegrityError), transaction.atomic():
            account.save()
    assert AccountName.objects.count() == 2


def test_commands_find_an_account_by_its_folded_name(analyst) -> None:
    study = factory.create()
    call_command("grant_study", "\uff21NNA", study=[study.slug], verbosity=0)
    assert StudyGrant.objects.filter(user=analyst, study=study).exists()
