"""A publication and what people do at the same moment."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from django.db import connection, transaction

from reports.boards.actions import create_board
from reports.ledger.actions import record
from reports.models import Board, LedgerEntry, LedgerKind
from reports.transfer import publications
from tests.reports.report_factory import create, crowd, publish

WAIT_S = 30


@pytest.mark.database
@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("data_dir")
@pytest.mark.skipif("connection.vendor == 'sqlite'")
def test_a_board_that_is_made_during_a_publication_makes_neither_of_them_fail(analyst, monkeypatch) -> None:
    study = create()
    begun, board_is_written = Event(), Event()

    def record_later(*words, **facts) -> None:
        begun.set()
        assert board_is_written.wait(WAIT_S)
        record(*words, **facts)

    def add() -> None:
        try:
            publish(study, crowd(study, n=50))
        finally:
            connection.close()

    monkeypatch.setattr(publications, "record", record_later)
    with ThreadPoolExecutor(1) as pool:
        publication = pool.submit(add)
        assert begun.wait(WAIT_S)
        with transaction.atomic():  # has locked the head of the ledger; its commit looks up the study
            create_board(study, name="Mine", by=analyst)
            board_is_written.set()
        publication.result(timeout=WAIT_S)
    assert Board.objects.count() == 1
    assert LedgerEntry.objects.filter(kind=LedgerKind.PUBLICATION_APPLIED).count() == 1
