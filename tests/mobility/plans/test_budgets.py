"""Budgets where they bite: creating studies, two at once, and undoing published days."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connections

from mobility.base.errors import DayStateError
from mobility.demo.removal import remove_demo
from mobility.models import Batch, VaultStudy
from mobility.plans import studies
from mobility.plans.drafts import approve_draft, draft_new_study, submit_draft
from mobility.plans.publishing import publish_draft
from mobility.plans.studies import create_study
from reports.models import Plan, Study
from reports.privacy.budget.actions import BudgetExceededError, decide_cap, propose_cap
from reports.privacy.budget.spending import outlook
from reports.privacy.composition import Losses, counted, studies_of
from reports.transfer.studies import StudyExistsError, create_study_rows
from tests.demo_study import write_study
from tests.mobility.pipeline import SMALL, fresh

pytestmark = pytest.mark.django_db(databases=["default", "vault"], transaction=True)


def cap(epsilon):
    who = {"population": "subscribers", "unit": "profile", "period": "year"}
    return propose_cap(**who, epsilon=Decimal(epsilon), by="adam")


def test_a_study_over_the_cap_is_created_in_neither_zone(data_dir, definition, tmp_path):
    cap("6")  # the demo's daily indicator may be answered on seven days
    reason = "the cap is 6, studies have spent 0, 6 is left, this takes 7"
    with pytest.raises(BudgetExceededError, match=reason):
        create_study(definition, by="adam")
    assert (Study.objects.count(), VaultStudy.objects.count()) == (0, 0)
    with pytest.raises(CommandError, match="requested by command line, must fit the budget"):
        call_command("create_study", str(write_study(tmp_path)), stdout=StringIO())
    assert create_study(replace(definition, population="others"), by="adam")["study"] == definition.slug


def test_a_study_that_is_there_is_said_to_be_there_whatever_its_budget(data_dir, definition):
    create_study(definition, by="adam")
    cap("1")  # far below what it has spent
    with pytest.raises(StudyExistsError):
        create_study(definition, by="adam")


@pytest.mark.database
@pytest.mark.skipif(connections["default"].vendor == "sqlite", reason="on SQLite only one writes at a time")
def test_two_studies_at_once_cannot_both_take_the_rest(data_dir, definition, monkeypatch):
    cap("10")
    both_have_checked = threading.Barrier(2)

    def slowly(definition, **options):
        with suppress(threading.BrokenBarrierError):  # the other one waits for the end of this one
            both_have_checked.wait(2)
        return create_study_rows(definition, **options)

    def failure_of(slug):
        try:
            create_study(replace(definition, slug=slug), by="adam")
        except Exception as error:  # noqa: BLE001 - the test looks at it
            return type(error)
        finally:
            connections.close_all()

    monkeypatch.setattr(studies, "create_study_rows", slowly)
    with ThreadPoolExecutor(2) as pool:
        assert {*pool.map(failure_of, ("one", "two"))} == {None, BudgetExceededError}
    assert Study.objects.count() == VaultStudy.objects.count() == 1
    assert counted(studies_of("subscribers")).profile <= 10


def test_undoing_a_published_day_is_stopped_by_the_cap(make_pipeline, few):
    pipeline = make_pipeline(**SMALL)
    pipeline.upload(*few[:2])
    cap("8.5")
    pipeline.void_day(1)
    assert (Plan.objects.get().voided_days, fresh(pipeline.study).voided_days) == (1, 1)
    with pytest.raises(DayStateError, match=r"day 2 cannot be undone: .* profile, 2017: the cap is 8\.5"):
        pipeline.void_day(2)
    assert VaultStudy.objects.get().voided_days == 1


def test_what_undoing_a_day_costs_is_spent_before_anything_is_undone(make_pipeline, few, definition):
    pipeline = make_pipeline(**SMALL)
    pipeline.upload(few[0])
    cap("14.5")
    waiting = pipeline.request_void_day(1)
    create_study(replace(definition, slug="other"), by="adam")
    before = pipeline.tallies()
    ended = pipeline.finished(waiting)
    assert (ended.state, pipeline.tallies()) == (Batch.State.FAILED, before)
    assert "day 1 cannot be undone" in ended.failure
    assert Plan.objects.get(study__slug="fimu-2017").voided_days == 0
    first = definition.first_day
    assert outlook("subscribers", first_day=first, last_day=first, takes=Losses()).lines[0].spent <= 14


def test_removing_the_demo_gives_nothing_back(make_pipeline, few):
    pipeline = make_pipeline(**SMALL)
    Study.objects.update(is_demo=True)
    pipeline.upload(few[0])
    before = counted(studies_of("subscribers"))
    assert before.profile > 0
    remove_demo(by="adam")
    assert (Study.objects.exists(), counted(studies_of("subscribers"))) == (False, before)
    cap("7.5")
    with pytest.raises(BudgetExceededError):
        make_pipeline(**SMALL)  # of the same name


def test_publishing_a_draft_over_the_cap_changes_nothing(data_dir, definition):
    draft = draft_new_study(definition, by="adam")
    submit_draft(draft, revision=1, by="adam")
    approve_draft(draft, revision=1, by="petra")
    cap("6")
    with pytest.raises(BudgetExceededError):
        publish_draft(draft, revision=1, by="adam")
    counts = Study.objects.count(), VaultStudy.objects.count()
    assert (fresh(draft).state, counts) == ("reviewed", (0, 0))
    decide_cap(cap("7"), confirm=True, by="petra")
    publish_draft(draft, revision=1, by="adam")
    assert counted(studies_of("subscribers")).profile <= 7
