"""Flows are sums of the estimates of days, with intervals that hold, and lists of what is surely there."""

from decimal import Decimal

import numpy as np
import pytest
from django.http import QueryDict

from reports.base.status import Status
from reports.estimates.queries import Window, WindowError, surely_present, visitor_unions, window_report
from reports.flows.pairs import place_pairs
from reports.flows.queries import NoFlowsError, flows_of
from reports.flows.query import flow_view
from reports.models import DayNote, Study
from tests.reports import report_factory as factory
from tests.reports.flows.conftest import DAY_ZONE, HOME, published, true_days
from tests.reports.map_factory import area

pytestmark = pytest.mark.django_db


def flows(study: Study, first: int, last: int):
    (pair,) = place_pairs(study)
    return flows_of(pair, Window(first, last))


def values(figures):
    return np.array([[each.visitors for each in row] for row in figures])


@pytest.mark.parametrize("epsilon", ["1", "6"], ids=["projective", "GRR"])
def test_figures_of_days_are_the_sums_of_their_estimates(epsilon: str) -> None:
    study, _ = published(epsilon=epsilon, market_share=Decimal("0.5"))
    found = flows(study, 2, 3)
    reports = [window_report(found.pair.indicator, Window(day, day)) for day in (2, 3)]
    for name in ("visitors", "visitors_ci_low", "visitors_ci_high"):
        summed = np.sum([[getattr(e, name) for e in report.estimates] for report in reports], axis=0)
        mine = np.array([getattr(each, name) for row in found.cells for each in row])
        assert mine == pytest.approx(summed)
    assert found.n_people == sum(report.n_visitors for report in reports)
    assert values([found.outflow])[0] == pytest.approx(values(found.cells).sum(axis=1))
    assert values([found.inflow])[0] == pytest.approx(values(found.cells).sum(axis=0))


def test_intervals_hold_the_true_visitor_days() -> None:
    study, people = published()
    found, truth = flows(study, 1, 4), true_days(people, first=1, last=4)
    assert found.of_days and found.n_people == truth.sum()
    for figures, expected in (
        ([each for row in found.cells for each in row], truth.ravel()),
        (found.outflow, truth.sum(axis=1)),
        (found.inflow, truth.sum(axis=0)),
        ([found.staying], [np.trace(truth[:3, :3])]),
        # Homes are three of the four zones: "NR" is none, and is left out of both.
        ([found.moving], [truth[:3, :4].sum() - np.trace(truth[:3, :3])]),
    ):
        holds = [
            figure.visitors_ci_low <= n <= figure.visitors_ci_high
            for figure, n in zip(figures, expected, strict=True)
        ]
        assert np.mean(holds) > 0.9
        assert max(figure.visitors_ci_high - figure.visitors_ci_low for figure in figures) < truth.sum() / 4


def test_the_list_of_a_day_is_that_of_its_report() -> None:
    study, people = published(epsilon="3")
    found = flows(study, 2, 2)
    report = window_report(found.pair.indicator, Window(2, 2))
    names = {each.category for each in surely_present(report) or []}
    pair = found.pair
    mine = [
        f"{pair.origin.file_names[flow.origin]} / {pair.destination.file_names[flow.destination]}"
        for flow in found.listed
    ]
    assert set(mine) == {name for name in names if "no value" not in name} != set()
    amounts = [flow.figure.visitors for flow in found.listed]
    assert amounts == sorted(amounts, reverse=True)
    truth = true_days(people, first=2, last=2)
    assert all(truth[flow.origin, flow.destination] for flow in found.listed)


def test_a_catchment_has_shares_on_a_single_day_only() -> None:
    study, people = published()
    found = flows(study, 2, 2)
    rows = found.catchment(1)
    truth = true_days(people, first=2, last=2)[:, 1]
    for flow, within in rows:
        assert within.share == pytest.approx(flow.figure.visitors / found.inflow[1].visitors)
        assert within.share == pytest.approx(truth[flow.origin] / truth.sum(), abs=0.1)
    assert sum(within.share for _, within in rows) == pytest.approx(1)
    assert {within for _, within in flows(study, 2, 3).catchment(0)} == {None}


def test_static_pairs_count_each_visitor_once() -> None:
    work = factory.indicator("work", *HOME.categories)
    study = factory.published(HOME, work, factory.joint("both", HOME, work), area=area(), epsilon="6")
    found = flows(study, 1, 4)
    report = window_report(found.pair.indicator, Window(1, 4))
    assert (found.of_days, found.n_people) == (False, report.n_visitors)
    assert [e.visitors for row in found.cells for e in row] == [e.visitors for e in report.estimates]


def test_days_without_figures_are_no_part_of_the_sums() -> None:
    study, _ = published()
    whole, fewer = flows(study, 1, 4), flows(study, 2, 4)
    DayNote.objects.create(study=study, day=1, kind=DayNote.Kind.OUTAGE, text="Failed")
    found = flows(study, 1, 4)
    assert (whole.n_days_missing, found.n_days_missing, found.n_people) == (0, 1, fewer.n_people)
    Study.objects.update(small_cell=10**6)
    with pytest.raises(NoFlowsError) as error:
        flows(Study.objects.get(), 2, 3)
    assert error.value.status == Status.SUPPRESSED


def test_only_pairs_with_a_zone_are_flows() -> None:
    study, _ = published(with_area=False)
    assert place_pairs(study) == []
    other = factory.create(
        HOME, factory.GENDER, DAY_ZONE, factory.joint("a", HOME, factory.GENDER),
        factory.joint("b", HOME, factory.GENDER, DAY_ZONE, kind="daily"), area=area(), slug="other",
    )  # fmt: skip
    (pair,) = place_pairs(other)
    assert (pair.indicator.slug, pair.has_zones_at_both_ends) == ("a", False)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("indicator=home", "No pair of places is called “home”. Pairs of this study: trip."),
        ("zone=4", "“zone” must be a number from 0 to 3, not “4”."),
        ("zone=x", "“zone” must be a number from 0 to 3, not “x”."),
    ],
)
def test_what_an_address_names_wrongly_is_said(query: str, message: str) -> None:
    study, _ = published(n=20)
    with pytest.raises(WindowError, match=message.replace(".", r"\.")):
        flow_view(QueryDict(query), place_pairs(study), visitors=visitor_unions(study))
    asked = "from=2024-05-31&to=2024-06-01&indicator=trip&zone=2"
    found = flow_view(QueryDict(asked), place_pairs(study), visitors=visitor_unions(study))
    assert found.query() == asked
