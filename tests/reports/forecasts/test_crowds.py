"""Limits of zones: published figures decide, and noise makes no alert come and go."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import numpy as np
import pytest

from reports.estimates.models import DayNote
from reports.forecasts.actions import refresh
from reports.forecasts.crowds import crowded, judge, set_limit, state_after
from reports.forecasts.following import follow
from reports.forecasts.models import CrowdLimit
from reports.forecasts.queries import slot_forecast
from reports.slots.queries import presence
from tests.reports import slot_factory

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 11, 28, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("before", "low", "high", "after"),
    [
        ("below", 900, 1000, "below"), ("below", 900, 1001, "may_exceed"), ("below", 1001, 1100, "exceeds"),
        ("may_exceed", 900, 951, "may_exceed"), ("may_exceed", 900, 950, "below"),
        ("may_exceed", 1000, 1100, "may_exceed"), ("may_exceed", 1001, 1100, "exceeds"),
        ("exceeds", 951, 960, "exceeds"), ("exceeds", 950, 960, "may_exceed"), ("exceeds", 940, 950, "below"),
        ("below", 1000, 1000, "below"), ("below", 1001, 1001, "exceeds"), ("exceeds", 950, 950, "below"),
    ],
)  # fmt: skip
def test_an_end_of_the_interval_raises_a_state_and_clearly_below_ends_it(before, low, high, after) -> None:
    assert state_after(before, low=low, high=high, capacity=1000) == after


def study_with(*slots, definition=slot_factory.DEFINITION, **changes):
    study = slot_factory.create(definition, **changes)
    add(study, *slots)
    return study


def add(study, *slots):
    slot_factory.publish(study, np.array([[people, 0, 0, 0, people, 0] for people in slots]))


def limit_of(study, *, ahead=0, capacity=1000):
    zone = presence(study).zones[0]
    set_limit(study, zone=zone, ahead=ahead, capacity=capacity, by="adam")
    return CrowdLimit.objects.get(ahead=ahead)


def test_the_last_published_slot_is_judged_by_the_interval_of_its_noise() -> None:
    study = study_with(500, 960)
    limit = limit_of(study)
    for people, state in ((960, "may_exceed"), (1120, "exceeds"), (820, "below")):
        add(study, people)
        judge(study)
        limit.refresh_from_db()
        shown = presence(study).figure(limit.slot, presence(study).zones[0])
        assert (limit.low, limit.high) == (shown.low, shown.high)  # about 80 on either side
        assert limit.state == state, people


def test_limits_are_people_as_pages_show_them() -> None:
    study = study_with(600, market_share=Decimal("0.5"), definition=slot_factory.without_noise())
    limit = limit_of(study)
    judge(study)
    limit.refresh_from_db()
    assert (limit.low, limit.high, limit.state) == (1200, 1200, "exceeds")


def test_a_day_without_figures_changes_no_state() -> None:
    study = study_with(1200, definition=slot_factory.without_noise())
    limit = limit_of(study)
    judge(study)
    DayNote.objects.create(study=study, day=1, kind=DayNote.Kind.OUTAGE, text="No mast", by="olga")
    add(study, 0)
    judge(study)
    limit.refresh_from_db()
    assert (limit.state, limit.slot) == ("exceeds", 0)


def test_a_limit_of_a_forecast_waits_for_the_forecast_of_the_last_slot() -> None:
    study = slot_factory.create(days=24)
    counts = slot_factory.counts_of(study, slot_factory.daily, slots=22 * 48)
    slot_factory.publish(study, counts + np.random.default_rng(1).normal(0, 40, counts.shape).round())
    refresh(study)
    expected = slot_forecast(study).expected(35, presence(study).zones[0])  # 18:00 of the next day
    low, high = expected.ends[1]
    limit = limit_of(study, ahead=36, capacity=round((expected.value + high) / 2))
    judge(study)
    limit.refresh_from_db()
    assert (limit.state, limit.slot) == ("may_exceed", 22 * 48 + 35)
    assert (limit.low, limit.high) == pytest.approx((low, high))
    slot_factory.publish(study, slot_factory.counts_of(study, slot_factory.daily, slots=1))
    judge(study)
    limit.refresh_from_db()
    assert limit.slot == 22 * 48 + 35  # the kept forecast is of the slot before
    follow(study.pk)
    limit.refresh_from_db()
    assert limit.slot == 22 * 48 + 36


def test_without_intervals_a_forecast_raises_nothing() -> None:
    study = slot_factory.published(days=8)
    limit = limit_of(study, ahead=1, capacity=1)
    follow(study.pk)
    limit.refresh_from_db()
    assert (limit.state, limit.low, limit.slot) == ("below", None, 192)


def test_an_alert_is_of_lately_published_figures_of_an_open_study_and_is_judged_once() -> None:
    study = study_with(1200, definition=slot_factory.without_noise())
    limit_of(study)
    judge(study, now=NOON)
    judge(study, now=NOON + timedelta(hours=20))  # nothing new was published
    day = timedelta(days=1)
    assert [each.zone for each in crowded(now=NOON + day)] == ["North west"]
    assert crowded(now=NOON + day + timedelta(seconds=1)) == []
    assert f"{crowded(now=NOON)[0].starts_at:%d %H:%M}" == "30 00:00"
    study.state, study.closed_at = study.State.CLOSED, NOON
    study.save()
    assert crowded(now=NOON) == []


def test_a_changed_limit_begins_anew_and_an_empty_one_is_removed() -> None:
    study = study_with(1200, definition=slot_factory.without_noise())
    limit_of(study)
    judge(study)
    limit_of(study)  # the same again
    assert CrowdLimit.objects.get().state == "exceeds"
    assert limit_of(study, capacity=1210).state == "below"  # not held by 95% of 1,210
    judge(study)
    assert CrowdLimit.objects.get().state == "below"
    limit_of(study, capacity=1100)
    judge(study)
    assert len(crowded()) == 1  # of the same slot
    set_limit(study, zone=presence(study).zones[0], ahead=0, capacity=None, by="adam")
    assert not CrowdLimit.objects.exists()
