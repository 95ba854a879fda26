"""Commands that wait outlive an outage of a database, and print the same."""

from contextlib import nullcontext
from datetime import timedelta
from functools import partial

import pytest
from django.db import OperationalError, connections

from mobility.base.errors import MobilityError
from mobility.management import batch_command, patience
from mobility.management.patience import DatabasesAwayError, patiently
from reports.studies.studyfile import StudyDefinition
from tests.mobility.batches.killing import KillAt, run, spread
from tests.mobility.commands import printed
from tests.mobility.pipeline import SMALL

pytestmark = pytest.mark.django_db(databases=["default", "vault"], transaction=True)
TAKEN_IN = ("rows_read", "rows_accepted", "subscriber_days", "subscribers_new", "reports", "duplicate")
CHANGED = ("subscriber_days", "reports", "published")


def prepared(make_pipeline, few, command, *, slug):
    """A study in which a command has something to do; its words, and what is compared of its output."""
    pipeline = make_pipeline(slug=slug, n_shards=1, **SMALL)
    first_day = StudyDefinition.from_json(pipeline.study.definition).first_day
    if command == "ingest":
        return pipeline, (slug, str(few[0])), TAKEN_IN
    if command == "cancel_batch":
        return pipeline, (str(pipeline.receive(few[0]).pk),), ("state",)
    pipeline.upload(few[0])
    if command == "close_study":
        pipeline.close_days(1)
        return pipeline, (slug,), ("key_was_lost", "erased", "dropped", "batches")
    if command == "void_day":
        return pipeline, (slug, first_day.isoformat()), CHANGED
    return pipeline, (slug, "--through", (first_day + timedelta(days=1)).isoformat()), CHANGED


@pytest.mark.parametrize("command", ["ingest", "close_days", "void_day", "cancel_batch", "close_study"])
def test_a_command_that_meets_no_database_for_a_moment_prints_its_json(
    make_pipeline, few, command, monkeypatch, settings
):
    settings.MOBILITY_SECOND_PERSON = False
    monkeypatch.setattr(patience, "POLL_S", 0.01)

    def told_by(slug, kill):
        pipeline, words, compared = prepared(make_pipeline, few, command, slug=slug)
        works, told = nullcontext(partial(pipeline.work, retries=True)), []  # in this process
        monkeypatch.setattr(batch_command, "workers", lambda: works)
        run(lambda: told.append(printed(command, *words)), kill)
        return [told[0][name] for name in compared]

    count = KillAt()
    expected = told_by("undisturbed", count)
    for n in spread(4, over=count.seen):
        assert told_by(f"without-answer-{n}", KillAt(n, OperationalError)) == expected, n


def test_a_database_that_does_not_answer_is_waited_for_and_not_for_ever(db, monkeypatch, capsys):
    monkeypatch.setattr(patience, "POLL_S", 0.01)
    asked = []

    def away(*_):
        asked.append(1)
        raise OperationalError("no answer")

    def work():
        if not asked:
            raise MobilityError("the upload was interrupted after") from OperationalError()
        return "done"

    def back(execute, *statement):
        return execute(*statement) if len(asked) > 3 else away()

    with connections["vault"].execute_wrapper(back):
        assert patiently(work) == "done"
    waits, over = "a database is not responding: waiting for it", "all databases are responding again"
    assert capsys.readouterr().err.splitlines() == [waits, over]
    monkeypatch.setattr(patience, "PATIENCE_S", 0.05)
    asked.clear()
    with connections["default"].execute_wrapper(away), pytest.raises(DatabasesAwayError):
        patiently(work)


@pytest.mark.parametrize("error", [MobilityError, OperationalError])
def test_what_fails_though_all_databases_answer_is_not_tried_for_ever(db, error):
    tries = []

    def work():
        tries.append(1)
        raise error

    with pytest.raises(error):
        patiently(work)
    assert len(tries) == (1 if error is MobilityError else patience.TRIES)
