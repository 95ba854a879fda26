"""What pages of the operator zone say while an analyst server that runs apart does not have everything."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from mobility.models import Batch, Handover, VaultPublication, VaultStudy
from mobility.services import handover, outcomes

pytestmark = pytest.mark.django_db(databases=["default", "vault"], transaction=True)

SERVER = "https://reports.example.org"


@pytest.fixture
def batch(study: VaultStudy, settings: Settings) -> Batch:
    """A batch that is done, in a zone that hands over to a server that is down."""
    settings.HANDS_OVER, settings.MOBILITY_ANALYST_URL = True, SERVER
    VaultPublication.objects.create(study=study, number=1, subscribers=200, delta=b"")
    Handover.objects.create(
        study=study, tried_at=timezone.now(), problem="the analyst server is out of reach", plan_hash="x"
    )
    return Batch.objects.create(study=study, state=Batch.State.DONE, filename="day.csv", reports=5)


def read(client: Client, path: str) -> str:
    response = client.get(path)
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


@pytest.mark.parametrize("role", ["operator", "administrator"])
def test_pages_of_a_study_say_what_waits_and_why(
    client: Client, batch: Batch, operator: User, administrator: User, role: str
) -> None:
    client.force_login({"operator": operator, "administrator": administrator}[role])
    text = read(client, f"/{role}/{batch.study.slug}/")
    assert f"1 publication of this study has not reached {SERVER} yet." in text
    assert "The analyst server is out of reach." in text
    assert "Nothing is lost" in text


def test_page_of_a_batch_does_not_call_it_published(client: Client, batch: Batch, operator: User) -> None:
    client.force_login(operator)
    text = read(client, f"/operator/batches/{batch.pk}/")
    assert "The analyst server does not have its totals yet." in text
    assert "analysts can read it now" not in text
    assert not outcomes.is_published(batch)
    assert "does not have everything yet" in " ".join(outcomes.notes_for_reader(batch))


def test_nothing_is_said_once_everything_is_there(client: Client, batch: Batch, operator: User) -> None:
    VaultPublication.objects.update(handed_over_at=timezone.now())
    Handover.objects.update(problem="")
    client.force_login(operator)
    for path in (f"/operator/{batch.study.slug}/", f"/operator/batches/{batch.pk}/"):
        assert SERVER not in read(client, path)
    assert "analysts can read it now" in read(client, f"/operator/batches/{batch.pk}/")
    assert outcomes.is_published(batch)


def test_a_study_that_the_server_was_never_told_of_says_so(
    client: Client, batch: Batch, operator: User
) -> None:
    VaultPublication.objects.all().delete()
    Handover.objects.all().delete()
    client.force_login(operator)
    text = read(client, f"/operator/{batch.study.slug}/")
    assert f"{SERVER} does not know the present state of this study yet." in text


def test_an_installation_of_both_zones_never_waits(
    client: Client, batch: Batch, operator: User, settings: Settings
) -> None:
    settings.HANDS_OVER = False
    client.force_login(operator)
    assert SERVER not in read(client, f"/operator/{batch.study.slug}/")
    assert outcomes.is_published(batch)


class TestWaiting:
    """Which studies are tried again."""

    def waits(self, study: VaultStudy) -> bool:
        return study in handover._waiting()

    def test_one_with_a_publication_that_is_not_there(self, batch: Batch) -> None:
        Handover.objects.update(problem="", plan_hash=batch.study.plan_hash)
        assert self.waits(batch.study)
        VaultPublication.objects.update(handed_over_at=timezone.now())
        assert not self.waits(batch.study)

    def test_one_that_failed(self, batch: Batch) -> None:
        VaultPublication.objects.update(handed_over_at=timezone.now())
        Handover.objects.update(plan_hash=batch.study.plan_hash)
        assert self.waits(batch.study)

    def test_one_of_another_plan_and_one_that_nobody_told(self, batch: Batch) -> None:
        VaultPublication.objects.update(handed_over_at=timezone.now())
        Handover.objects.update(problem="")
        assert self.waits(batch.study)
        Handover.objects.all().delete()
        assert self.waits(batch.study)

    def test_one_whose_end_is_not_known_there(self, batch: Batch) -> None:
        VaultPublication.objects.update(handed_over_at=timezone.now())
        Handover.objects.update(problem="", plan_hash=batch.study.plan_hash)
        VaultStudy.objects.update(certificate={"erased_at": None})
        assert self.waits(batch.study)
        Handover.objects.update(is_closed=True)
        assert not self.waits(batch.study)
