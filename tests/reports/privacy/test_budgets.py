"""Budgets: studies of the same people add up, a cap is a hard stop, and a larger one takes two people."""

from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from ldp.geo.grid import Grid
from reports.ledger.actions import record
from reports.models import BudgetCap, BudgetPopulation, CapDecision, LedgerEntry, LedgerKind, Plan, Study
from reports.privacy.budget import actions, spending
from reports.privacy.composition import Losses, composition_facts, counted, studies_of
from reports.studies.studyfile.definition import LocationDefinition
from reports.transfer.studies import mark_closed
from tests.reports import report_factory as factory

pytestmark = pytest.mark.django_db
database = pytest.mark.database
GRID = Grid(x0_m=0, y0_m=0, step_m=100, n_x=20, n_y=10)
PLACES = LocationDefinition(level=Decimal(1), radius_m=400, max_values=None, grid=GRID, places=())


def waiting() -> list[BudgetCap]:
    return list(BudgetCap.objects.filter(needs_second=True, decision=None))


def cap(epsilon: str | None, *, unit: str = "profile", period: str = "year", by: str = "adam") -> BudgetCap:
    value = None if epsilon is None else Decimal(epsilon)
    return actions.propose_cap(population="subscribers", unit=unit, period=period, epsilon=value, by=by)


def confirm(asked: BudgetCap, *, by: str = "petra") -> CapDecision:
    return actions.decide_cap(asked, confirm=True, by=by)


def create(slug: str, **changes: Any) -> Study:
    return factory.create(factory.GENDER, slug=slug, **changes)


def static(slug: str, **changes: Any) -> Any:
    return factory.definition(factory.GENDER, slug=slug, **changes)


def check(slug: str, **changes: Any) -> Any:
    return actions.check_budget(static(slug, **changes), by="adam")


def refused(words: str, slug: str, **changes: Any) -> None:
    with pytest.raises(actions.BudgetExceededError, match=words):
        check(slug, **changes)


def in_force() -> dict[tuple[str, str], Decimal | None]:
    return {key: each.epsilon for key, each in spending.caps_in_force("subscribers").items()}


def test_studies_of_the_same_people_add_up_and_others_do_not() -> None:
    create("one", epsilon="1")
    create("two", epsilon="0.5")
    create("visitors", epsilon="2", population="visitors-2024")
    found = counted(studies_of("subscribers"))
    assert 0 <= Decimal("1.5") - found.profile < Decimal("1e-15")
    assert 0 <= Decimal("1.5") - found.attribute < Decimal("1e-15")
    assert found.presence is None  # totals are exact
    parts = [Losses(profile=Decimal("0.123456789012345678901234567891")) for _ in range(3)]
    assert Losses.total(parts).profile == Decimal("0.370370367037037036703703703673")
    assert counted(studies_of("visitors-2024")).profile == studies_of("visitors-2024")[0].losses.profile


def test_exactly_the_cap_is_allowed_and_no_more() -> None:
    more = Decimal("0.50000000000000000001")
    given = {"unit": "profile", "span": spending.Span(year=2024), "cap": Decimal(2)}
    for spent, takes, is_exceeded in (
        ("1.5", Decimal("0.5"), False), ("1.5", more, True), ("3", Decimal(0), False), ("0", None, True)
    ):  # fmt: skip
        line = spending.BudgetLine(**given, spent=Decimal(spent), takes=takes)
        assert line.is_exceeded == is_exceeded
        assert not replace(line, cap=None).is_exceeded


def test_places_have_a_unit_of_their_own_and_exact_totals_have_no_bound() -> None:
    create("one", location=PLACES)
    Plan.objects.update(voided_days=1)
    found = studies_of("subscribers")[0].losses
    # epsilon 1 within 400 m: 2.5 per kilometre, for four days and one that was undone
    assert 0 <= Decimal("12.5") - found.location < Decimal("0.13")
    assert 0 <= 1 - found.profile < Decimal("1e-15")
    cap("1", unit="location")  # overspent
    check("two")
    cap("8", unit="presence", period="ever")
    refused(r"per presence, ever: .* this has no bound", "two")


def test_a_study_that_was_closed_without_data_cost_nothing() -> None:
    empty = create("empty")
    full = factory.published(factory.GENDER, slug="full", n=10)
    assert counted(studies_of("subscribers")).profile > 1
    for study in (empty, full):
        mark_closed(study_slug=study.slug, closed_at=timezone.now())
    assert [each.is_counted for each in studies_of("subscribers")] == [False, True]
    assert counted(studies_of("subscribers")).profile <= 1


def test_days_touch_periods() -> None:
    first, last, span = date(2023, 11, 30), date(2024, 1, 1), spending.Span
    months = ["2023-11", "2023-12", "2024-01"]
    for period, spans in {"year": ["2023", "2024"], "month": months, "ever": ["ever"]}.items():
        found = list(spending.spans_of(first, last, period=period))
        assert [str(each) for each in found] == spans
        assert all(each.touches(first, last) and each.period == period for each in found)
    outside = span(year=2022), span(year=2025), span(year=2023, month=10), span(year=2024, month=2)
    assert not any(each.touches(first, last) for each in outside)


@database
def test_a_cap_is_a_hard_stop() -> None:
    cap("2.5")
    for slug in ("one", "two"):
        check(slug)
        create(slug)
    with pytest.raises(actions.BudgetExceededError) as caught:
        check("three")
    assert str(caught.value) == (
        "study three, requested by adam, must fit the budget of the population subscribers: per profile, "
        "2024: the cap is 2.5, studies have spent 2, 0.5 is left, this takes 1. Choose a smaller epsilon or "
        "fewer daily values, or raise the cap on the Budget page, where a second person confirms it"
    )
    check("three", epsilon="0.5")
    check("three", first_day=date(2025, 1, 1))
    check("three", population="others")
    refused("2024", "three", first_day=date(2023, 12, 30))  # its last days are in 2024


def test_a_study_that_replaces_itself_is_counted_once_and_an_outlook_says_what_is_left() -> None:
    cap("1")
    create("one")
    assert actions.outlook_of(static("one")).lines[0].spent == 0
    check("one")
    refused("2024", "two")
    confirm(cap("2"))
    line = actions.outlook_of(static("two")).lines[0]
    assert (str(line.span), line.percent) == ("2024", 100)
    assert (line.is_exceeded, line.is_nearly_spent) == (False, True)
    before = {"first_day": date(2020, 1, 1), "last_day": date(2020, 1, 2)}
    assert spending.outlook("subscribers", **before, takes=Losses()).lines[0].left == Decimal(2)


def test_each_unit_has_its_own_cap() -> None:
    assert check("one", epsilon="15").lines == ()  # without a cap nothing is stopped
    cap("20")
    cap("0.6", unit="attribute", period="ever")
    cap("10", unit="location", period="month")
    split = factory.definition(factory.GENDER, factory.AGE, slug="split", mechanism="spl-grr")
    actions.check_budget(split, by="adam")  # half an epsilon each
    refused(r"per attribute, ever: the cap is 0\.6.*this takes 1\.", "sampled")
    confirm(cap("1", unit="attribute", period="ever"))
    check("sampled")
    far = replace(PLACES, level=Decimal(2))
    refused(r"per location, 2024-05: the cap is 10, .* this takes 20; per loc", "places", location=far)


def test_a_smaller_cap_holds_at_once_and_a_larger_one_takes_two_people(settings) -> None:
    for smaller in ("3", "2"):
        assert not cap(smaller).needs_second
        assert in_force() == {("profile", "year"): Decimal(smaller)}
    larger = cap("4")
    assert (in_force(), waiting()) == ({("profile", "year"): Decimal(2)}, [larger])
    with pytest.raises(actions.BudgetChangeError, match="someone other than adam"):
        actions.decide_cap(larger, confirm=True, by="adam")
    confirm(larger)
    assert (in_force(), waiting()) == ({("profile", "year"): Decimal(4)}, [])
    with pytest.raises(actions.BudgetChangeError, match="must be waiting"):
        confirm(larger)
    none = cap(None)
    assert none.needs_second
    actions.decide_cap(none, confirm=False, by="adam")  # one's own can be taken back
    assert in_force() == {("profile", "year"): Decimal(4)}
    confirm(cap(None))
    assert in_force() == {}
    assert not cap("9").needs_second  # the first one again
    settings.MOBILITY_SECOND_PERSON = False  # where there is no one else
    assert not any(cap(epsilon).needs_second for epsilon in ("10", "11", None))
    assert in_force() == {}


def test_a_confirmation_is_about_the_cap_that_was_in_force_and_only_one_waits() -> None:
    cap("3")
    larger = cap("4")
    same, waits = "must differ from the one in force, got 3", "confirm or refuse it first"
    wrong = (("3.0", "profile", same), ("5", "profile", waits), (None, "attribute", "must differ"))
    for asked, unit, rule in wrong:
        with pytest.raises(actions.BudgetChangeError, match=rule):
            cap(asked, unit=unit)
    cap("1")  # a smaller one never waits
    with pytest.raises(
        actions.BudgetChangeError, match="cap in force must not have changed since adam requested another"
    ):
        confirm(larger)
    actions.decide_cap(larger, confirm=False, by="petra")
    assert in_force() == {("profile", "year"): Decimal(1)}


@database
def test_decisions_are_kept_and_recorded() -> None:
    cap("3")
    confirm(cap("4"))
    kept = list(BudgetCap.objects.values_list("epsilon", "set_by", "needs_second"))
    assert kept == [(Decimal(3), "adam", False), (Decimal(4), "adam", True)]
    assert CapDecision.objects.get().decided_by == "petra"
    entries = LedgerEntry.objects.filter(kind="budget.changed").order_by("number")
    told = [(entry.actor, entry.facts["what"], entry.facts["epsilon"]) for entry in entries]
    assert told == [("adam", "set", "3"), ("adam", "proposed", "4"), ("petra", "confirmed", "4")]
    row = BudgetPopulation.objects.get()
    fields = {"population": row, "unit": "profile", "period": "year", "set_by": "adam"}
    with pytest.raises(IntegrityError, match="budget_cap_epsilon_positive"), transaction.atomic():
        BudgetCap.objects.create(**fields, epsilon=Decimal(0), needs_second=True)


def test_undoing_a_published_day_spends_and_is_stopped() -> None:
    factory.create(slug="daily")  # an indicator of four daily values
    cap("5.5")
    actions.check_voided_day("daily", voided_days=1)
    assert Plan.objects.get().voided_days == 0
    actions.reserve_voided_day("daily", voided_days=1)
    actions.reserve_voided_day("daily", voided_days=1)  # tried again: spent once
    assert Plan.objects.get().voided_days == 1
    assert 0 <= 5 - counted(studies_of("subscribers")).profile < Decimal("1e-15")
    with pytest.raises(actions.BudgetExceededError, match=r"undoing a published day of study daily must fit"):
        actions.reserve_voided_day("daily", voided_days=2)
    assert Plan.objects.get().voided_days == 1


def test_undoing_a_day_is_not_refused_for_what_it_does_not_spend() -> None:
    factory.create(slug="daily")
    cap("0.5", unit="attribute")  # overspent, but a second daily value is another value
    for slug in ("daily", "nowhere"):  # in the operator zone alone
        actions.reserve_voided_day(slug, voided_days=1)
    assert Plan.objects.get().voided_days == 1


def test_standing_lists_years_without_caps_and_caps_with_what_is_left() -> None:
    create("one")
    create("two", first_day=date(2022, 12, 30))
    cap("1.2", period="month")
    lines = spending.standing("subscribers", studies_of("subscribers"), today=date(2026, 2, 1))
    shown = [(line.unit, str(line.span), line.cap, line.is_nearly_spent) for line in lines]
    yearly = ["2026", "2024", "2023", "2022"]
    months = ["2026-02", "2024-06", "2024-05", "2023-01", "2022-12"]
    assert shown == [
        *(("profile", year, None, False) for year in yearly),
        *(("profile", month, Decimal("1.2"), month != "2026-02") for month in months),
        *(("attribute", year, None, False) for year in yearly),
    ]
    assert [line.percent for line in lines if line.cap] == [0, 84, 84, 84, 84]
    assert lines[5].left is not None
    assert 0 <= lines[5].left - Decimal("0.2") < Decimal("1e-15")
    assert lines[1].left is None


def test_composition_names_other_studies_only_where_they_may_be_named() -> None:
    study = create("one")
    create("two")
    hidden, named = (composition_facts(study, with_names=names) for names in (False, True))
    assert [row["study"] for row in hidden["studies"]] == ["one", None]
    assert [row["study"] for row in named["studies"]] == ["one", "two"]
    spent = str(counted(studies_of("subscribers")).profile)
    assert hidden["epsilon_profile"] == named["epsilon_profile"] == spent


def test_an_account_that_the_proposer_changed_confirms_no_cap_and_may_refuse_it() -> None:
    cap("1")
    larger = cap("2")
    record(LedgerKind.ACCESS_CHANGED, actor="adam", facts={"account": "petra", "change": "created"})
    with pytest.raises(actions.BudgetChangeError, match="adam created the account petra"):
        confirm(larger)
    assert in_force() == {("profile", "year"): Decimal(1)}
    actions.decide_cap(larger, confirm=False, by="petra")
    confirm(cap("2"), by="mona")
