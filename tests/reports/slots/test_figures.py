"""Figures of slots: intervals, what is known of a slot, comparisons and facts that noise can carry."""

from dataclasses import replace
from datetime import date
from decimal import Decimal

import numpy as np
import pytest
from django.http import QueryDict

from ldp.errors import PlanError
from reports.base.tasks import BrokerAwayError
from reports.estimates.models import DayNote
from reports.estimates.queries import WindowError
from reports.slots import facts, texts
from reports.slots.charts import day_figure
from reports.slots.queries import NoSlotsError, SlotStatus, presence
from reports.slots.query import time_text, view_of
from reports.studies.studyfile.parse import check_small_cells
from tests.reports import report_factory as factory
from tests.reports import slot_factory

pytestmark = pytest.mark.django_db


def view(study, query=""):
    return view_of(QueryDict(query), presence(study))


def test_an_interval_has_the_width_of_the_noise_scaled_after_it() -> None:
    study = slot_factory.published(market_share=Decimal("0.25"))
    found = presence(study)
    zone = found.zones[0]
    sd = float(found.spec.variance) ** 0.5
    shown = found.figure(36, zone)
    assert shown.people == 4 * 2200
    assert (shown.people - shown.low, shown.high - shown.people) == pytest.approx([4 * 1.959964 * sd] * 2)
    assert 35 < sd < 50  # of two levels and 48 slots at epsilon 1
    exact = presence(slot_factory.published(definition=slot_factory.without_noise(), slug="exact")).figure(
        36, zone
    )
    assert (exact.low, exact.people, exact.high) == (2200, 2200, 2200)


def test_a_number_that_noise_pushed_below_none_has_the_interval_of_none() -> None:
    study = slot_factory.published()
    found = presence(study)
    below = _of_counts(study, np.where(found.counts == 0, -300, found.counts))  # the south east
    shown = view_of(QueryDict("day=2024-05-30&at=18:00&zone=3"), below)
    zone = below.zones[3]
    expected = f"0 (0 to {below.half_width:.0f})"
    assert texts.figure_text(below.figure(36, zone)) == expected
    assert texts.figure_texts(below, 36, [zone]) == [expected]
    assert texts.column_texts(np.array([-300.0]), below.half_width) == [expected]
    assert f"at most {below.half_width:.0f} people at 18:00" in texts.sentence(shown)
    band, line = day_figure(shown)["data"]
    assert set(line["y"]) == {0.0}
    assert set(band["y"]) == {0.0, round(below.half_width, 1)}


def test_a_slot_is_published_not_yet_not_collected_or_an_outage() -> None:
    study = slot_factory.create()
    noise = np.random.default_rng(1).normal(0, 30, (48, 6)).round()
    slot_factory.publish(study, noise)
    slot_factory.publish(study, slot_factory.counts_of(study, slot_factory.daily, slots=96))
    DayNote.objects.create(study=study, day=2, kind=DayNote.Kind.OUTAGE, text="No mast", by="olga")
    found = presence(study)
    statuses = [found.status(slot) for slot in (0, 48, 96, 143, 144)]
    assert statuses == ["not_collected", "outage", "ok", "ok", "not_yet"]
    assert (found.counts[:48] == noise).all()  # files keep them
    assert np.isnan(found.people(found.zones[0], day=1)).all()


def test_few_people_on_a_day_with_visitors_are_figures() -> None:
    study = slot_factory.create()
    slot_factory.publish(study, np.ones((48, 6)))
    assert presence(study).status(0) == SlotStatus.NOT_COLLECTED
    factory.publish(study, factory.crowd(study, n=50))
    assert presence(study).status(0) == SlotStatus.OK


def test_slots_stay_published_while_the_broker_is_away(
    monkeypatch, django_capture_on_commit_callbacks
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise BrokerAwayError

    study = slot_factory.create()
    monkeypatch.setattr("mobility.workers.app.send", refuse)
    with django_capture_on_commit_callbacks(execute=True) as asked:
        slot_factory.publish(study, np.ones((48, 6)))
    assert len(asked) == 1 and len(presence(study).counts) == 48


def test_a_view_is_the_latest_slot_and_refuses_what_is_not_there() -> None:
    study = slot_factory.published(slots=96 + 10)
    default = view(study)
    assert (default.date, time_text(default.found, default.slot)) == (date(2024, 6, 1), "04:30")
    assert [zone.name for zone in default.zones][:2] == ["North west", "North <east>"]
    assert time_text(default.found, view(study, "day=2024-05-31").slot) == "18:00"
    again = view(study, default.query(at="10:00", level="halves", zone=["5"]))
    assert (again.day, again.slot, again.zones[0].place) == (3, 96 + 20, 5)
    for query in (
        "day=2024-06-03",
        "day=x",
        "at=10:10",
        "level=x",
        "zone=4",
        "day=2024-05-31&with=2024-05-31",
    ):
        with pytest.raises(WindowError):
            view(study, query)
    with pytest.raises(NoSlotsError):
        presence(factory.published(slug="plain"))


def test_an_hour_that_comes_twice_has_two_names() -> None:
    study = slot_factory.published(first_day=date(2024, 10, 26), slots=48 + 50)
    found = presence(study)
    names = [time_text(found, slot) for slot in range(48, 98)]
    assert len(set(names)) == 50 and names[4:8] == ["02:00", "02:30", "02:00+01:00", "02:30+01:00"]
    assert view_of(QueryDict("day=2024-10-27&at=02:00%2B01:00"), found).slot == 48 + 6
    hours = facts.hours_of(found)
    assert hours[48:56].tolist() == [0, 0, 1, 1, 2, 2, 2, 2]


def test_the_median_of_a_weekday_is_covered_by_its_interval() -> None:
    rng = np.random.default_rng(7)
    study = slot_factory.create(days=50)
    truth = rng.integers(900, 1100, 50)
    missed = {"median": 0, "difference": 0}
    n = 150
    base = view_of(QueryDict("day=2024-05-30&at=18:00&with=weekday"), _of_counts(study, np.zeros((2400, 6))))
    sd = base.found.std_error
    others = [day - 1 for day in base.weekday_days]
    assert len(others) == 0  # no visitors: not collected
    for _ in range(n):
        counts = np.repeat(truth, 48)[:, None] + rng.normal(0, sd, (2400, 6)).round()
        shown = view_of(QueryDict("day=2024-05-30&at=18:00&with=weekday"), _of_counts(study, counts))
        others = [day - 1 for day in shown.weekday_days]
        found = facts.change(shown)
        assert found.n_days == len(others) == 7
        true = float(np.median(truth[others]))
        missed["median"] += not found.other.low <= true <= found.other.high
        missed["difference"] += not found.difference.low <= truth[0] - true <= found.difference.high
    assert max(missed.values()) <= 0.05 * n + 3.5 * (n * 0.05 * 0.95) ** 0.5


def test_facts_are_told_only_where_noise_can_carry_them() -> None:
    study = slot_factory.published()
    shown = view(study, "day=2024-05-30&at=18:00&with=2024-06-01")
    sentences = texts.fact_sentences(shown)
    assert "North west was fullest between 17:00 and 19:30, with about 2,200 people" in sentences[0]
    assert sentences[1].startswith("In total, people spent about 31,200 hours in North west on this day")
    assert sentences[2] == "Fullest zone at 18:00: North west."
    assert texts.sentence(shown).startswith("North west: about 2,200 people at 18:00, between 2,1")
    assert texts.change_sentence(shown, facts.change(shown)).startswith(
        "No clear difference from Sat 1 Jun 2024"
    )
    flat = view(study, "day=2024-05-30&at=18:00&zone=1")
    assert facts.peak(flat.found, flat.zones[0], day=1) is None
    empty = view(study, "day=2024-05-30&at=18:00&zone=3")
    assert "at most" in texts.sentence(empty)
    assert facts.person_hours(empty.found, empty.zones[0], day=1) is None
    exact = view(slot_factory.published(definition=slot_factory.without_noise(), slug="exact"), "at=18:00")
    assert texts.sentence(exact) == "North west: 2,350 people at 18:00."
    assert "with 2,350 people." in texts.fact_sentences(exact)[0]


def test_a_week_is_the_mean_of_days_with_figures() -> None:
    study = slot_factory.published()
    DayNote.objects.create(study=study, day=4, kind=DayNote.Kind.OUTAGE, text="No mast", by="olga")
    found = presence(study)
    week = facts.week(found, found.zones[0])
    assert week.people[18].tolist()[3:6] == [2150, 2200, 2250]  # Thursday to Saturday
    assert np.isnan(week.people[:, [0, 1, 2, 6]]).all()
    assert week.half_width == pytest.approx(found.half_width / 2**0.5)


def test_exact_slots_and_hidden_small_windows_exclude_each_other() -> None:
    exact = factory.definition(slots=slot_factory.without_noise(), small_cell=20)
    with pytest.raises(PlanError, match=r'slots\.noise must not be "none" with study\.small_cell'):
        check_small_cells(exact)
    check_small_cells(replace(exact, small_cell=0))
    check_small_cells(replace(exact, slots=slot_factory.DEFINITION))


def _of_counts(study, counts):
    found = presence(study)
    seen = SlotStatus.OK if counts.any() else SlotStatus.NOT_COLLECTED
    return replace(found, counts=counts.astype(np.int64), statuses=(seen,) * study.days)
