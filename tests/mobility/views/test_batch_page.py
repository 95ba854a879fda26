"""The page of a batch: how far it is and how it ended, in words and numbers."""

from collections.abc import Callable
from datetime import timedelta
from io import BytesIO
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from mobility.models import Batch, VaultStudy
from reports.policies import Role
from tests.mobility.views.small_study import GOOD, extract, page, put, rows, text_of

pytestmark = pytest.mark.django_db(databases=["default", "vault"], transaction=True)
Run = Callable[[], None]


@pytest.fixture(autouse=True)
def _signed_in(client: Client, operator: User) -> None:
    client.force_login(operator)


class TestBatch:
    def show(self, client: Client, batch: Batch) -> str:
        return page(client, reverse("operator:batch", args=[batch.pk]))

    def fragment(self, client: Client, batch: Batch) -> str:
        url = reverse("operator:batch", args=[batch.pk])
        response = client.get(url, headers={"HX-Request": "true"})
        assert response.status_code == 200
        return response.content.decode()

    def test_unknown_batch_is_not_found(self, client: Client) -> None:
        assert client.get(reverse("operator:batch", args=[uuid4()])).status_code == 404

    def test_it_asks_for_itself_until_the_end(
        self, client: Client, study: VaultStudy, run_batches: Run
    ) -> None:
        batch = put(client)
        waiting = self.fragment(client, batch)
        assert f'hx-get="{reverse("operator:batch", args=[batch.pk])}" hx-trigger="every 1s"' in waiting
        assert "<html" not in waiting
        run_batches()
        assert "hx-" not in self.fragment(client, batch)

    def test_a_batch_that_is_held_up_says_by_what(self, client: Client, study: VaultStudy) -> None:
        batch = put(client)
        for state in ("queued", "reading", "merging"):
            Batch.objects.filter(pk=batch.pk).update(
                state=state, waits_since=timezone.now(), waits_for="is MOBILITY_STAGING_DIR mounted?"
            )
            shown = self.show(client, batch)
            assert "is tried again every minute, and loses nothing" in shown
            assert "is MOBILITY_STAGING_DIR mounted?" in shown

    def test_a_published_batch_shows_its_numbers_and_the_way_on(
        self, client: Client, study: VaultStudy, run_batches: Run
    ) -> None:
        batch = put(client, extract(rows("a", "b", "c"), "x,never,old\n", "y,2024-05-01T10:00:00,ancient\n",
                                    "z,2024-06-01T10:00:00,old\n"))  # fmt: skip
        run_batches()
        shown = self.show(client, batch)
        assert "Done Published: analysts can read it now." in shown
        assert "Format found CSV, commas, UTF-8 Time zone Europe/Paris" in shown
        assert "Rows read 9 Rows accepted 6 Subscriber-days 3 New subscribers 3" in shown
        assert "Timestamp that cannot be read bad_timestamp 1 8" in shown
        assert "Value outside the categories of its indicator unknown_value 1 9" in shown
        assert "Not on a day of the study outside_period 1" in shown
        assert "never" not in shown
        assert "ancient" not in shown
        assert "Back to the study, for the next file" in shown
        assert "See the report" not in shown

    def test_rows_of_parquet_are_rows_and_not_lines(
        self, client: Client, study: VaultStudy, run_batches: Run
    ) -> None:
        columns = {"msisdn": [1, 2, 3], "time": ["2024-05-01T10:00:00", "never", "2024-05-01T10:00:00"]}
        file = BytesIO()
        pq.write_table(pa.table(columns | {"age": ["old", "old", None]}), file)
        batch = put(client, file.getvalue())
        run_batches()
        shown = self.show(client, batch)
        assert "Format found Parquet Time zone Europe/Paris" in shown
        assert "First row numbers" in shown
        assert "Timestamp that cannot be read bad_timestamp 1 2" in shown

    def test_whoever_may_read_gets_a_link_to_the_report(
        self, client: Client, study: VaultStudy, run_batches: Run, person: Callable[..., User]
    ) -> None:
        batch = put(client)
        run_batches()
        client.force_login(person("both", Role.OPERATOR, Role.ANALYST))
        assert "See the report" in self.show(client, batch)

    def test_a_small_batch_waits_and_says_how_many_of_how_many(
        self, client: Client, study: VaultStudy, run_batches: Run
    ) -> None:
        alone = put(client, extract(rows("a")))
        run_batches()
        shown = self.show(client, alone)
        assert "what waits covers 1 subscriber, and a publication must cover 2" in shown
        assert "Published" not in shown
        put(client, extract(rows("b", day=2)), filename="next.csv")
        run_batches()
        assert "Published: analysts can read it now." in self.show(client, alone)

    def test_what_has_crossed_does_not_wait_for_a_later_batch(
        self, client: Client, study: VaultStudy, run_batches: Run
    ) -> None:
        crossed = put(client)
        run_batches()
        waiting = put(client, extract(rows("d", day=2)), filename="next.csv")
        run_batches()
        assert "Published: analysts can read it now." in self.show(client, crossed)
        assert "what waits covers 1 subscriber" in self.show(client, waiting)

    def test_open_days_are_explained(self, client: Client, study: VaultStudy, run_batches: Run) -> None:
        batch = put(client, more=True)
        run_batches()
        assert "its days stay open for more files" in self.show(client, batch)

    def test_the_same_file_again_points_to_the_first(
        self, client: Client, study: VaultStudy, run_batches: Run
    ) -> None:
        first = put(client)
        run_batches()
        second = put(client)
        run_batches()
        response = client.get(reverse("operator:batch", args=[second.pk]))
        assert "nothing was read and nothing changes" in text_of(response.content.decode())
        assert reverse("operator:batch", args=[first.pk]) in response.content.decode()

    def test_rows_that_were_known_bring_nothing_new(
        self, client: Client, study: VaultStudy, run_batches: Run
    ) -> None:
        put(client)
        again = put(client, GOOD + rows("a").encode())
        run_batches()
        shown = self.show(client, again)
        assert "It brought nothing new: the reports stay as they are." in shown
        assert "analysts can read it now" not in shown

    def test_a_failure_shows_its_reason_in_full(
        self, client: Client, study: VaultStudy, run_batches: Run
    ) -> None:
        batch = put(client, extract("a,never,old\n" * 9, rows("b")))
        run_batches()
        batch.refresh_from_db()
        shown = self.show(client, batch)
        assert "Failed" in shown
        assert "9 of 11 rows (81.8 %) cannot be used" in shown
        assert "bad_timestamp 9 2, 3, 4" in shown
        assert "Back to the study, to send it again" in shown

    def test_progress_is_of_bytes_then_rows_then_shards(self, client: Client, study: VaultStudy) -> None:
        batch = put(client)
        steps = [
            ({"state": "receiving", "bytes_received": 40, "bytes_total": 160}, "25", "The file is arriving"),
            ({"state": "reading", "bytes_read": 80, "rows_read": 1234}, "50", "Rows read 1 234"),
            ({"state": "merging", "shards_done": 3, "shards": [0, 1, 2, 3]}, "75", "Merging into the study"),
        ]  # fmt: skip
        for fields, percent, words in steps:
            Batch.objects.filter(pk=batch.pk).update(**fields)
            html = self.fragment(client, batch)
            assert f'value="{percent}"' in html
            assert words in text_of(html)

    def test_a_queue_that_nobody_serves_is_noticed(self, client: Client, study: VaultStudy) -> None:
        batch = put(client)
        assert "No worker has taken it yet" not in self.show(client, batch)
        Batch.objects.filter(pk=batch.pk).update(created_at=timezone.now() - timedelta(minutes=1))
        assert "No worker has taken it yet" in self.show(client, batch)

    def test_a_batch_behind_another_says_so(self, client: Client, study: VaultStudy) -> None:
        first, second = put(client), put(client, extract(rows("d")))
        VaultStudy.objects.update(active_batch=first)
        assert "Another batch of this study is at work" in self.show(client, second)
        assert "Another batch of this study is at work" not in self.show(client, first)

    def test_a_silent_worker_is_noticed(self, client: Client, study: VaultStudy) -> None:
        batch = put(client)
        soon = timezone.now() + timedelta(minutes=1)
        Batch.objects.filter(pk=batch.pk).update(state="reading", alive_until=soon)
        assert "has not reported" not in self.show(client, batch)
        Batch.objects.filter(pk=batch.pk).update(alive_until=timezone.now() - timedelta(minutes=1))
        assert "has not reported" in self.show(client, batch)
