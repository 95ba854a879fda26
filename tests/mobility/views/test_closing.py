"""The end of a study on its page: what stands against it, confirming it twice, and the certificate."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ImproperlyConfigured
from django.test import Client

from mobility.keystore import keystore
from mobility.models import Batch, VaultDay, VaultStudy
from mobility.services import closing
from reports.models import Study
from tests.mobility.views.small_study import page, text_of

pytestmark = pytest.mark.django_db(databases=["default", "vault"], transaction=True)
STUDY_URL = "/administrator/fair/"
CLOSE_URL = f"{STUDY_URL}close/"
CERTIFICATE_URL = f"{STUDY_URL}certificate.json"


@pytest.fixture(autouse=True)
def _signed_in(client: Client, administrator: User, study: VaultStudy) -> None:
    client.force_login(administrator)


def refused(client: Client, **typed: Any) -> str:
    """What the page says; nothing may have changed."""
    response = client.post(CLOSE_URL, typed)
    assert response.status_code == 422
    study = VaultStudy.objects.get()
    assert study.closed_at is None
    assert keystore().exists(study.key_id)
    return text_of(response.content.decode())


def test_study_page_leads_to_it_and_it_says_what_goes_and_what_stays(client: Client) -> None:
    assert CLOSE_URL in client.get(STUDY_URL).content.decode()
    shown = page(client, CLOSE_URL)
    assert "The key of the study" in shown
    assert "The reports: totals of sanitised answers" in shown
    assert "Lose these rows" not in shown
    assert "Cancel" not in shown


@pytest.mark.parametrize("typed", ["", "fare", "Fair & market"])
def test_it_wants_the_short_name(client: Client, typed: str) -> None:
    words = refused(client, slug=typed)
    assert ("This is not the short name of the study" if typed else "This field is required") in words


def test_confirmed_it_closes_and_gives_the_certificate(client: Client) -> None:
    assert "There is no erasure certificate" in text_of(
        client.get(CERTIFICATE_URL, follow=True).content.decode()
    )
    response = client.post(CLOSE_URL, {"slug": " fair "}, follow=True)
    assert response.redirect_chain == [(STUDY_URL, 302)]
    shown = text_of(response.content.decode())
    assert "The study is closed." in shown
    assert "Closed by adam at 20" in shown
    assert "Backups of the vault from before" in shown
    study = VaultStudy.objects.get()
    assert not keystore().exists(study.key_id)
    assert Study.objects.get().closed_at == study.closed_at
    file = client.get(CERTIFICATE_URL)
    assert json.loads(file.content) == study.certificate
    assert file["Content-Disposition"] == 'attachment; filename="fair-erasure-certificate.json"'
    assert client.get(CLOSE_URL).status_code == 302
    assert CLOSE_URL not in client.get(STUDY_URL).content.decode()


def test_batches_that_can_be_cancelled_are_asked_about(client: Client, study: VaultStudy) -> None:
    batch = Batch.objects.create(study=study, state=Batch.State.QUEUED)
    assert "Cancel 1 batch that has not ended" in page(client, CLOSE_URL)
    assert "This field is required" in refused(client, slug="fair")
    assert client.post(CLOSE_URL, {"slug": "fair", "cancel_batches": "on"}).status_code == 302
    batch.refresh_from_db()
    assert batch.state == Batch.State.CANCELLED


def test_batches_that_are_merged_are_waited_for(client: Client, study: VaultStudy) -> None:
    Batch.objects.create(study=study, state=Batch.State.MERGING)
    assert "1 batch is being merged" in page(client, CLOSE_URL)
    assert "have not ended (1 merging)" in refused(client, slug="fair")


def test_unpublished_days_are_asked_about(client: Client, study: VaultStudy) -> None:
    VaultDay.objects.create(study=study, day=2)
    assert "Days with rows that were never published: Thu 2 May 2024" in page(client, CLOSE_URL)
    assert "This field is required" in refused(client, slug="fair")
    assert client.post(CLOSE_URL, {"slug": "fair", "drop_unpublished": "on"}).status_code == 302
    assert "Days dropped unpublished 2024-05-02" in page(client, STUDY_URL)


def test_interrupted_closing_is_finished_there(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise ImproperlyConfigured

    with monkeypatch.context() as patch:
        patch.setattr(closing, "compact", interrupted)
        with pytest.raises(ImproperlyConfigured):
            client.post(CLOSE_URL, {"slug": "fair"})
    assert client.get(CERTIFICATE_URL).status_code == 302
    assert "Finish the closing" in page(client, STUDY_URL)
    assert "its key is to be destroyed, or destroyed already" in page(client, CLOSE_URL)
    client.post(CLOSE_URL, {"slug": "fair"})
    assert client.get(CERTIFICATE_URL).status_code == 200


def test_what_stands_against_it_at_the_last_moment_is_said(client: Client, monkeypatch: Any) -> None:
    def changed(*_: object, **__: object) -> None:
        raise closing.StudyNotClosedError("the study was changed while it was being closed: close it again")

    monkeypatch.setattr(closing, "_publish_last", changed)
    assert "the study was changed while it was being closed" in refused(client, slug="fair")


@pytest.mark.parametrize("person_of", ["operator", "analyst", "stranger"])
def test_others_cannot_close(client: Client, request: pytest.FixtureRequest, person_of: str) -> None:
    client.force_login(request.getfixturevalue(person_of))
    assert client.post(CLOSE_URL, {"slug": "fair"}).status_code == 404
    assert VaultStudy.objects.get().closed_at is None


def test_operators_see_that_it_is_closed(client: Client, operator: User) -> None:
    client.post(CLOSE_URL, {"slug": "fair"})
    client.force_login(operator)
    html = client.get("/operator/fair/").content.decode()
    assert "This study was closed on" in text_of(html)
    assert "<form" not in html.partition("<main")[2].partition("</main>")[0]
    assert "upload.js" not in html
    assert "closed" in page(client, "/operator/")
