"""What an operator sees of a study with presence noise: that nothing crosses before days are closed."""

from collections.abc import Callable
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from mobility.models import Batch, VaultStudy
from mobility.services import intake
from mobility.services.studies import create_study
from reports.studyfile import parse_study
from tests.mobility.views.small_study import STUDY, STUDY_URL, page, put

pytestmark = pytest.mark.django_db(databases=["default", "vault"], transaction=True)
Run = Callable[[], None]
NOISY = STUDY.replace("epsilon = 1.0\n", "epsilon = 1.0\npresence_epsilon = 1.0\npresence_days = 2\n")


@pytest.fixture
def noisy(data_dir: Path, client: Client, operator: User, run_batches: Run) -> VaultStudy:
    """A study with presence noise and one file."""
    create_study(parse_study(NOISY.encode(), filename="study.toml", read=lambda _: b""), by="adam")
    client.force_login(operator)
    put(client)
    run_batches()
    return VaultStudy.objects.get(slug="fair")


def batch_page(client: Client, batch: Batch) -> str:
    return page(client, reverse("operator:batch", args=[batch.pk]))


def test_file_is_taken_in_and_the_page_says_what_publishes_it(client: Client, noisy: VaultStudy) -> None:
    shown = batch_page(client, Batch.objects.get())
    assert "Analysts see nothing of it yet." in shown
    assert "when the day and all days before it are closed" in shown
    assert "See the report" not in shown
    study = page(client, STUDY_URL)
    assert "waits for closing" in study
    listed = page(client, reverse("operator:studies"))
    assert "waiting for closing" in listed
    assert " published" not in listed
    assert "analysts see a day when it and all days before it are closed" in study
    assert "Publishes every day from the first to the chosen one, with presence noise" in study


def test_closing_publishes(client: Client, noisy: VaultStudy, run_batches: Run) -> None:
    batch = intake.request_close_days(noisy, through=2, by="olga")
    run_batches()
    assert "The days are final, and published with their noise." in batch_page(client, batch)
    assert "waits for closing" not in page(client, STUDY_URL)


@pytest.mark.usefixtures("study")
def test_other_studies_read_as_before(client: Client, operator: User, run_batches: Run) -> None:
    client.force_login(operator)
    put(client)
    run_batches()
    assert "Published: analysts can read it now." in batch_page(client, Batch.objects.get())
    assert "presence noise" not in page(client, STUDY_URL)
