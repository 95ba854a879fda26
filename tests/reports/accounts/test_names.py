"""Names that fold alike are one name: for administrators, for the database, and for an upgrade."""

from importlib import import_module

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction

from reports.accounts.actions import AccessChangeError, create_account
from reports.accounts.names import folded
from reports.models import AccountName, Study, StudyGrant
from reports.studies.policies import Role
from tests.reports import report_factory as factory

pytestmark = pytest.mark.django_db
UPGRADE = import_module("reports.migrations.0018_names_and_demo")
WIDE_DEMO, WIDE_ADAM = "\uff44\uff45\uff4d\uff4f", "\uff21dam"


def test_names_fold_by_width_case_and_form() -> None:
    for name, same in ((WIDE_ADAM, "adam"), ("STRASSE", "straße"), ("\u212aim", "kim"), ("e\u0301ve", "ÉVE")):
        assert folded(name) == folded(same), name
    assert folded("ada") != folded("ada-2")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (WIDE_DEMO, "reserved for the software"),
        ("Sign\uff0dIn", "reserved for the software"),
        (WIDE_ADAM, "already"),
        ("ADAM", "already"),
        ("ad\u200bam", "valid username"),  # zero width
        ("\u202eadam", "valid username"),  # bidi
        ("ad\u00adam", "valid username"),  # soft hyphen
        ("adam\x00", "valid username"),
        ("adam\u3164", "visible letters"),  # Hangul filler
        ("\u0430dam", "visible letters"),  # Cyrillic
    ],
)
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


def test_an_upgrade_lists_names_that_collide_and_changes_nothing() -> None:
    names = ["Adam", "adam", WIDE_DEMO, "eva"]
    User.objects.bulk_create([User(username=name) for name in names])  # as an earlier release let them be
    with pytest.raises(CommandError) as told:
        UPGRADE.check_names(apps, None)
    text = str(told.value)
    assert ("same name: 'Adam' (number" in text, "software itself: '\\uff44" in text) == (
        True,
        True,
    )
    assert ("update(username='NEW-NAME')" in text, "eva" in text) == (True, False)
    assert list(User.objects.order_by("pk").values_list("username", flat=True)) == names


def test_an_upgrade_marks_the_demo_that_a_command_made_and_no_other_study() -> None:
    User.objects.bulk_create([User(username="Eva")])
    made = factory.create(slug="fimu-2017"), factory.create(slug="other")
    Study.objects.update(created_by="demo")
    UPGRADE.fill(apps, None)
    assert list(Study.objects.filter(is_demo=True)) == [made[0]]
    assert AccountName.objects.get().folded == "eva"
    Study.objects.update(is_demo=False)
    for changes in ({"created_by": "adam"}, {"slug": "fimu-2018"}):
        Study.objects.filter(pk=made[0].pk).update(**changes)
        AccountName.objects.all().delete()
        UPGRADE.fill(apps, None)
        assert not Study.objects.filter(is_demo=True).exists()
