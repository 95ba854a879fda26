"""Slots of a separate operator zone: taken once, in order, and nothing else with them."""

from dataclasses import replace
from typing import Any
from uuid import uuid4

import numpy as np
import pytest

from ldp.estimation.series.counts import SlotCounts
from ldp.estimation.tallies import Delta
from reports.studies.slot_models import StudySlots
from reports.transfer import messages
from reports.transfer.actions import IntakeError, take_publication, take_study
from reports.transfer.models import Sender
from reports.transfer.studies import Approval, plan_hash
from tests.mobility.extracts.rows.night_study import night_study
from tests.mobility.slot_study import LARGER, with_slots

pytestmark = pytest.mark.django_db
SLUG = "nights"


@pytest.fixture
def definition():
    return with_slots(night_study(first_day="2017-06-01", days=2))


@pytest.fixture
def north():
    return Sender.objects.create(name="north", public_key="key", registered_by="test")


def create(north, definition) -> bool:
    approval = Approval(review="on_server", by="", at=None)
    given = {"plan_version": 1, "plan_hash": plan_hash(definition.plan_spec()), "is_demo": False}
    return take_study(north, slug=SLUG, body=messages.study_body(definition, approval=approval, **given))


def publish(
    north, definition, *, first=0, n=2, zones=4, publication=None, visitors=0, **changes: Any
) -> bool:
    delta = Delta.zero(definition.plan_spec())
    delta.visitors[0, 1] = visitors
    counts = np.arange(n * zones, dtype=np.int64).reshape(n, zones) - 3
    given = {"number": 1, "plan_hash": plan_hash(definition.plan_spec()), "voided_days": 0}
    given |= {"slots": SlotCounts(first_slot=first, counts=counts).pack()} | changes
    body = messages.publication_body(delta.pack(), **given)
    return take_publication(north, slug=SLUG, publication_id=publication or uuid4(), body=body)


def test_slots_are_taken_once_and_in_order(north, definition):
    assert create(north, definition)
    of_study = StudySlots.objects.get()
    assert of_study.zones == ["South", "North", "Below", "Empty"]
    known = uuid4()
    assert publish(north, definition, publication=known)
    assert not publish(north, definition, publication=known)
    assert publish(north, definition, first=2, n=50)
    of_study.refresh_from_db()
    assert of_study.closed == 52
    first, second = of_study.days.order_by("day")
    assert first.array(zones=4)[:3].tolist() == [[-3, -2, -1, 0], [1, 2, 3, 4], [-3, -2, -1, 0]]
    assert (len(first.array(zones=4)), len(second.array(zones=4))) == (48, 4)


REFUSED = {
    "again": ({"first": 0}, 409, "the next ones must follow"),
    "too early": ({"first": 3}, 409, "the next ones must follow"),
    "other zones": ({"first": 2, "zones": 3}, 422, "must be of 4 zones"),
    "beyond the study": ({"first": 2, "n": 95}, 422, "end by slot 96"),
    "none": ({"first": 2, "n": 0}, 409, "the next ones must follow"),
    "totals, too": ({"first": 2, "visitors": 5}, 422, "totals or slots, got both"),
    "damaged": ({"first": 2, "slots": b"SLOTS1"}, 422, "packed slots must"),
}


@pytest.mark.parametrize(("changes", "status", "words"), REFUSED.values(), ids=REFUSED)
def test_others_are_refused_and_change_nothing(north, definition, changes, status, words):
    create(north, definition)
    publish(north, definition)
    with pytest.raises(IntakeError, match=words) as refused:
        publish(north, definition, **changes)
    assert (refused.value.status, StudySlots.objects.get().closed) == (status, 2)


def test_study_without_slots_takes_none(north, definition):
    plain = replace(definition, slots=None)
    create(north, plain)
    with pytest.raises(IntakeError, match="has no slots") as refused:
        publish(north, plain)
    assert refused.value.status == 409


@pytest.mark.parametrize("within", [(0,), (0, 2), (0, -1), (0, "x")])
def test_larger_zones_are_made_of_the_zones(north, definition, within):
    with pytest.raises(IntakeError, match=r"within must|cannot be created"):
        create(north, with_slots(definition, levels=(replace(LARGER, within=within),)))
    assert not StudySlots.objects.exists()
