"""Closing and undoing days from the page of a study."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from mobility.keystore import keystore
from mobility.models import Batch, VaultDay, VaultStudy
from tests.mobility.views.small_study import STUDY_URL, page, put, text_of

pytestmark = pytest.mark.django_db(databases=["default", "vault"], transaction=True)
Run = Callable[[], None]


@pytest.fixture(autouse=True)
def _signed_in(client: Client, operator: User) -> None:
    client.force_login(operator)


class TestCloseAndUndo:
    def post(self, client: Client, name: str, **data: object) -> str:
        response = client.post(f"/operator/fair/{name}/", data, follow=True)
        return text_of(response.content.decode())

    @pytest.fixture(autouse=True)
    def _uploaded(self, client: Client, study: VaultStudy, run_batches: Run) -> None:
        put(client)
        run_batches()

    def test_closing_is_a_batch_and_days_become_final(self, client: Client, run_batches: Run) -> None:
        assert "Close days 1 to 2" in self.post(client, "close-days", day=2, confirm="on")
        run_batches()
        batch = Batch.objects.get(kind=Batch.Kind.CLOSE_DAYS)
        assert batch.created_by == "olga"
        shown = page(client, reverse("operator:batch", args=[batch.pk]))
        assert "The days are final." in shown
        assert "Rows read" not in shown
        assert list(VaultDay.objects.values_list("day", "state")) == [(1, "closed"), (2, "closed")]

    def test_undoing_is_a_batch_and_the_day_is_free_again(self, client: Client, run_batches: Run) -> None:
        assert "Undo day 1" in self.post(client, "void-day", day=1, confirm="on")
        run_batches()
        assert VaultDay.objects.count() == 0
        batch = Batch.objects.get(kind=Batch.Kind.VOID_DAY)
        assert "The day was undone" in page(client, reverse("operator:batch", args=[batch.pk]))

    @pytest.mark.parametrize("name", ["close-days", "void-day"])
    @pytest.mark.parametrize(
        "data", [{"day": 1}, {"confirm": "on"}, {"day": 9, "confirm": "on"}, {"day": "x", "confirm": "on"}]
    )
    def test_nothing_happens_without_a_day_and_a_confirmation(
        self, client: Client, name: str, data: dict[str, object]
    ) -> None:
        assert "Nothing was changed: choose a day and confirm." in self.post(client, name, **data)
        assert Batch.objects.count() == 1

    def test_a_closed_day_is_not_offered_for_undoing(self, client: Client, run_batches: Run) -> None:
        self.post(client, "close-days", day=3, confirm="on")
        run_batches()
        shown = page(client, STUDY_URL)
        assert "All days are closed." in shown
        assert "There is no day to undo." in shown
        assert "Nothing was changed" in self.post(client, "void-day", day=1, confirm="on")

    def test_a_refusal_of_the_vault_is_shown(self, client: Client, study: VaultStudy) -> None:
        keystore().destroy(study.key_id)
        assert "destroyed" in self.post(client, "close-days", day=1, confirm="on")

    @pytest.mark.parametrize("name", ["close-days", "void-day"])
    def test_a_get_changes_nothing(self, client: Client, name: str) -> None:
        assert client.get(f"/operator/fair/{name}/").status_code == 405
