"""Pages of operators: what they show."""

import re
from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from mobility import wording
from mobility.ingest.counts import IGNORED, REJECTED
from mobility.models import Batch, VaultDay, VaultStudy
from tests.mobility.views.small_study import STUDY_URL, extract, page, put, rows

pytestmark = pytest.mark.django_db(databases=["default", "vault"], transaction=True)
Run = Callable[[], None]


@pytest.fixture(autouse=True)
def _signed_in(client: Client, operator: User) -> None:
    client.force_login(operator)


class TestStudies:
    def test_without_a_study_it_says_who_makes_one(self, client: Client) -> None:
        assert "No study is open to you yet" in page(client, "/operator/")

    def test_a_study_is_listed_with_its_days_and_last_batch(
        self, client: Client, study: VaultStudy, run_batches: Run
    ) -> None:
        assert "none yet" in page(client, "/operator/")
        put(client)
        run_batches()
        shown = page(client, "/operator/")
        assert "Fair &amp; market" in shown
        assert "1 published of 3 days" in shown
        assert "day.csv Done" in shown


class TestStudy:
    def test_it_says_what_to_send(self, client: Client, study: VaultStudy) -> None:
        shown = page(client, STUDY_URL)
        assert "in any order: msisdn , time , age" in shown
        assert "manage.py ingest fair FILE" in shown

    def test_unknown_study_is_not_found(self, client: Client) -> None:
        assert client.get("/operator/nothing/").status_code == 404

    def test_days_and_batches_follow_the_uploads(
        self, client: Client, study: VaultStudy, run_batches: Run
    ) -> None:
        assert page(client, STUDY_URL).count("no data") == 3
        put(client, more=True)
        put(client, extract(rows("d", "e", day=2)), filename="second.csv")
        run_batches()
        shown = page(client, STUDY_URL)
        days = re.findall(r"\w{3} \d May 2024 (open|published|closed|no data)", shown.split("Batches")[0])
        assert days == ["open", "published", "no data"]
        assert "second.csv Done 4 4 olga" in shown

    def test_rows_are_shown_of_every_file_and_of_no_other_change(
        self, client: Client, study: VaultStudy
    ) -> None:
        for kind in Batch.Kind:
            Batch.objects.create(
                study=study, kind=kind, state="done", day=1, rows_read=7, rows_accepted=6, created_by=kind
            )
        shown = page(client, STUDY_URL)
        assert [kind.value for kind in Batch.Kind if f"Done 7 6 {kind.value} " in shown] == list(Batch.FILES)

    def test_number_of_queries_does_not_grow_with_batches(
        self, client: Client, study: VaultStudy, django_assert_max_num_queries: Callable[..., object]
    ) -> None:
        for _ in range(30):
            Batch.objects.create(study=study, state=Batch.State.DONE, filename="x.csv")
        with django_assert_max_num_queries(12, using="vault"):  # type: ignore[attr-defined]
            client.get(STUDY_URL)
        with django_assert_max_num_queries(4, using="vault"):  # type: ignore[attr-defined]
            client.get("/operator/")


def test_every_outcome_of_a_row_has_words() -> None:
    assert set(wording.ROW_REASONS) == {*REJECTED, *IGNORED}


@pytest.mark.parametrize(
    ("done", "total", "words"),
    [(3_300_000, 11_600_000, "3.3 of 11.6 MB"), (12, 12, "0.001 MB"), (0, 5_000, "0.0 of 0.005 MB"),
      (7_000_000, None, "7.0 MB")],
)  # fmt: skip
def test_sizes_are_in_megabytes(done: int, total: int | None, words: str) -> None:
    assert wording.size_of(done, total) == words


def test_every_state_has_words() -> None:
    assert set(wording.BATCH_STATES) == set(wording.BATCH_BADGES) == set(Batch.State.values)
    assert set(wording.DAY_STATES) == set(wording.DAY_BADGES) == set(VaultDay.State.values)


def test_pages_have_no_inline_script_or_style(client: Client, study: VaultStudy, run_batches: Run) -> None:
    batch = put(client)
    run_batches()
    for url in ("/operator/", STUDY_URL, reverse("operator:batch", args=[batch.pk])):
        html = client.get(url).content.decode()
        assert not re.search(r"\sstyle=|\son\w+=|<style", html), url
        inline = re.findall(r"<script(?![^>]*\ssrc=)([^>]*)>", html)
        assert all('type="application/json"' in attributes for attributes in inline), url
