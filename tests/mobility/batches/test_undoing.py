"""A second person must approve undoing a published day that raises epsilon above what was approved."""

from contextlib import nullcontext
from dataclasses import replace
from decimal import Decimal
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction

from mobility.batches import requests
from mobility.batches.publication import undoing
from mobility.batches.publication.undoing import UndoDecisionError, UndoWaitsError
from mobility.management import batch_command
from mobility.models import Batch, DayUndo, VaultDay, VaultStudy
from reports.ledger.actions import record
from reports.models import LedgerEntry, LedgerKind, Plan
from reports.privacy.composition import Losses
from tests.mobility.pipeline import SMALL

pytestmark = pytest.mark.django_db(databases=["default", "vault"], transaction=True)


@pytest.fixture
def filled(make_pipeline, few):
    pipeline = make_pipeline(n_shards=1, **SMALL)
    pipeline.upload(*few[:2])
    return pipeline


def ask(pipeline, day=1, by="olga") -> DayUndo:
    with pytest.raises(UndoWaitsError, match=r"have not been undone yet\. Undoing the uploads"):
        requests.request_void_day(pipeline.study, day=day, by=by)
    return DayUndo.objects.get(day=day, is_approved=None)


def told() -> list[tuple[str, str]]:
    entries = LedgerEntry.objects.filter(kind="day.undo").order_by("number")
    return [(entry.actor, entry.facts["what"]) for entry in entries]


def voided() -> tuple[int, int]:
    return VaultStudy.objects.get().voided_days, Plan.objects.get().voided_days


def test_nothing_is_undone_before_another_person_approves_and_then_it_is(filled):
    before = filled.tallies()
    asked = ask(filled)
    assert ask(filled, by="otto") == asked  # asked once
    assert (filled.tallies(), voided()) == (before, (0, 0))
    assert not Batch.objects.filter(kind=Batch.Kind.VOID_DAY).exists()
    batch = filled.finished(requests.approve_undo(asked, voided_days=1, by="petra"))
    assert (batch.state, batch.created_by, voided()) == (Batch.State.DONE, "olga", (1, 1))
    assert (filled.visitors(1, 1), told()) == (0, [("olga", "asked"), ("petra", "approved")])
    facts = LedgerEntry.objects.filter(kind="day.undo").latest("number").facts
    assert (facts["day"], facts["voided_days"], facts["epsilon_profile"]) == ("2017-05-31", 1, "8")


def test_whoever_asked_or_could_act_as_them_approves_nothing_and_anyone_may_refuse(filled):
    asked = ask(filled)
    record(LedgerKind.ACCESS_CHANGED, actor="olga", facts={"account": "petra", "change": "created"})
    own, made = "olga made this request, so another person", "olga created the account petra"
    for by, words in (("olga", own), ("petra", made)):
        with pytest.raises(UndoDecisionError, match=words):
            requests.approve_undo(asked, voided_days=1, by=by)
    undoing.refuse(asked, by="petra")
    with pytest.raises(UndoDecisionError, match="petra has already approved or refused this request"):
        requests.approve_undo(asked, voided_days=1, by="mona")
    undoing.refuse(ask(filled), by="olga")
    assert ([what for _, what in told()], voided()) == (["asked", "refused", "asked", "withdrawn"], (0, 0))
    # An approval is of the epsilon that was seen.
    first, second = ask(filled), ask(filled, day=2)
    filled.finished(requests.approve_undo(first, voided_days=1, by="mona"))
    further = "so undoing this day's uploads would raise epsilon further"
    with pytest.raises(UndoDecisionError, match=further):
        requests.approve_undo(second, voided_days=1, by="mona")
    assert filled.finished(requests.approve_undo(second, voided_days=2, by="mona")).state == Batch.State.DONE


def test_of_two_approved_at_once_the_second_is_asked_for_again(filled):
    batches = [requests.approve_undo(ask(filled, day=day), voided_days=1, by="petra") for day in (1, 2)]
    done, failed = (filled.finished(batch) for batch in batches)
    assert (done.state, failed.state, voided()) == (Batch.State.DONE, Batch.State.FAILED, (1, 1))
    assert "would rise above the approved value" in failed.failure


def test_a_day_that_was_published_after_it_was_asked_for_takes_an_approval(make_pipeline, few):
    pipeline = make_pipeline(**SMALL)
    pipeline.upload(few[0], more_to_come=True)
    waits = requests.request_void_day(pipeline.study, day=1, by="olga")  # nothing is published: no approval
    VaultDay.objects.update(state=VaultDay.State.PUBLISHED)
    ended = pipeline.finished(waits)
    assert (ended.state, voided()) == (Batch.State.FAILED, (0, 0))
    assert "would rise above the approved value" in ended.failure


@pytest.mark.parametrize("case", ["static only", "below another loss", "one person works here"])
def test_it_is_undone_at_once_if_epsilon_stays_or_one_works(make_pipeline, few, definition, settings, case):
    changes = SMALL | {"n_shards": 1}
    if case == "static only":
        changes["indicators"] = definition.static_indicators
    elif case == "below another loss":  # eight answers of 0.1 stay below the one of the others
        daily = [each for each in definition.indicators if each.kind == "daily"]
        small = [replace(each, epsilon=Decimal("0.1")) for each in daily]
        changes["indicators"] = (*definition.static_indicators, *small)
    else:
        settings.MOBILITY_SECOND_PERSON = False
    pipeline = make_pipeline(**changes)
    pipeline.upload(few[0])
    batch = requests.request_void_day(pipeline.study, day=1, by="olga")
    assert (pipeline.finished(batch).state, DayUndo.objects.exists()) == (Batch.State.DONE, False)


def test_the_command_says_what_it_waits_for_and_fails(filled, monkeypatch):
    monkeypatch.setattr(batch_command, "workers", lambda: nullcontext(lambda: None))
    with pytest.raises(CommandError, match=r"raises epsilon, .* rises from 7 to 8\. A second person"):
        call_command("void_day", "fimu-2017", "2017-05-31", stdout=StringIO())
    assert (DayUndo.objects.get().asked_by, voided()) == ("command line", (0, 0))


@pytest.mark.database
def test_the_database_refuses_an_approval_by_whoever_asked(filled):
    asked = ask(filled)
    own = {"is_approved": True, "decided_by": "olga", "decided_at": asked.asked_at}
    refused = pytest.raises(IntegrityError, match="day_undo_approved_by_another")
    with refused, transaction.atomic(using="vault"):
        DayUndo.objects.filter(pk=asked.pk).update(**own)
    with pytest.raises(IntegrityError), transaction.atomic(using="vault"):
        DayUndo.objects.create(study=asked.study, day=1, voided_days=1, asked_by="otto")


@pytest.mark.parametrize("has_new_noise", [True, False])
def test_a_day_that_is_given_again_shows_changes_where_each_day_has_new_noise(has_new_noise):
    rise = undoing.Rise(before=Losses(), after=Losses(profile=Decimal(1)), has_new_noise=has_new_noise)
    assert ("whether a person's value has changed between them" in rise.words) == has_new_noise
    assert "epsilon rises from 0 to 1" in rise.words
