"""Figures of flows are sums of daily estimates; their page, map, files and answers to programs."""

import itertools
import json
import re
from decimal import Decimal

import numpy as np
import pytest
from django.http import QueryDict

from reports.base import formats
from reports.base.status import Status
from reports.estimates.queries import Window, WindowError, surely_present, window_report
from reports.flows.pairs import place_pairs
from reports.flows.queries import NoFlowsError, flows_of
from reports.flows.query import flow_view
from reports.ledger.models import LedgerKind
from reports.maps.flow_arcs import arcs_of, centre_of
from reports.maps.shapes import area_shapes
from reports.models import DayNote, LedgerEntry, Study
from reports.studies.grant_models import StudyGrant
from tests.reports import report_factory as factory
from tests.reports.flows.conftest import DAY_ZONE, HOME, published, true_days
from tests.reports.map_factory import area
from tests.reports.page_texts import Markup, check_document, csv_rows, words

pytestmark = pytest.mark.django_db


def flows(study: Study, first: int, last: int):
    (pair,) = place_pairs(study)
    return flows_of(pair, Window(first, last))


def names_of(pair, flow):
    return pair.origin.file_names[flow.origin], pair.destination.file_names[flow.destination]


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


def test_consistent_figures_are_sums_of_those_of_the_reports() -> None:
    study, _ = published(epsilon="1.5")
    found = flows(study, 2, 3).shown("consistent")
    reports = [window_report(found.pair.indicator, Window(day, day)) for day in (2, 3)]
    by_code = sum(
        np.array([each.consistent for each in report.estimates]) * report.n_visitors for report in reports
    )
    expected = by_code[found.pair.codes]
    assert values(found.cells) == pytest.approx(expected)
    assert values([found.outflow])[0] == pytest.approx(expected.sum(axis=1))
    assert values([found.inflow])[0] == pytest.approx(expected.sum(axis=0))
    assert found.moving.visitors == pytest.approx(by_code[found.pair.moving].sum())
    assert expected.min() == 0 > min(each.visitors for row in flows(study, 2, 3).cells for each in row)
    day = flows(study, 2, 2)
    within = [each.shown("consistent").share for _, each in day.catchment(1)]
    assert sum(within) == pytest.approx(1) and min(within) >= 0


def test_no_pair_is_listed_without_a_figure(reader) -> None:
    """A few exact answers tell that someone is there, but not how many."""
    study, _ = published(n=20)
    found = flows(study, 1, 4)
    assert found.is_listed.any() and not found.is_reliable
    assert found.listed == []
    response = reader.get(PAGE)
    html, text = response.content.decode(), words(response)
    assert "The noise is too large to give reliable figures for the 16 pairs of places. There are " in text
    assert "The reports on the individual indicators are more accurate:" in text
    folded = ("All pairs, none of which can be distinguished from zero", "Totals, none of which is reliable")
    for hidden in folded:
        assert f"<summary>{hidden}</summary>" in html
    assert "Same zone for both" not in text and "data-map=" not in html
    assert "of 16 pairs of places can be distinguished" not in text


def test_the_list_of_a_day_is_that_of_its_report() -> None:
    study, people = published(epsilon="3")
    found = flows(study, 2, 2)
    report = window_report(found.pair.indicator, Window(2, 2))
    names = {each.category for each in surely_present(report) or []}
    pair = found.pair
    mine = [" / ".join(names_of(pair, flow)) for flow in found.listed]
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


def test_errors_of_a_stream_are_not_said_to_repeat(reader) -> None:
    repeats = "repeats the same randomised answer"
    published(n=2000)
    assert repeats in words(reader.get("/studies/fair-2024/flows/"))
    published(n=2000, slug="stream", mechanism="smp-stream")
    shown = words(reader.get("/studies/stream/flows/"))
    assert "Each answer has new noise, but the same people may answer" in shown and repeats not in shown


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
        ("indicator=home", "no pair of places named “home”. Pairs in this study: trip."),
        ("zone=4", "“zone” must be a number from 0 to 3, not “4”."),
        ("zone=x", "“zone” must be a number from 0 to 3, not “x”."),
    ],
)
def test_what_an_address_names_wrongly_is_said(query: str, message: str) -> None:
    study, _ = published(n=20)
    with pytest.raises(WindowError, match=message.replace(".", r"\.")):
        flow_view(QueryDict(query), place_pairs(study))
    asked = "from=2024-05-31&to=2024-06-01&indicator=trip&zone=2"
    found = flow_view(QueryDict(asked), place_pairs(study))
    assert found.query() == asked


PAGE = "/studies/fair-2024/flows/"


@pytest.fixture
def study() -> Study:
    return published()[0]


def test_the_page_has_list_map_table_and_totals(reader, study) -> None:
    answer = reader.get(PAGE)
    text, found = words(answer), flows(study, 1, 4)
    assert f"{len(found.listed)} of 16 pairs of places can be distinguished from zero. The table" in text
    largest = found.listed[0].figure
    assert formats.number(largest.shown("consistent").visitors) in text
    assert formats.number(largest.visitors) in words(reader.get(f"{PAGE}?values=unbiased"))
    assert "Each figure is a number of visitor-days" in text and "Choose a single day" not in text
    markup = Markup(answer.content.decode())
    assert not markup.refused
    html = answer.content.decode()
    assert len(re.findall(r'<td class="number', html)) == 10 * 2 + 25 + 2 * 10
    faded = len(re.findall(r'<td class="number crosstab-0">', html))
    assert faded == int((~found.is_listed).sum())


def test_a_day_has_a_catchment_with_shares(reader, study) -> None:
    text = words(reader.get(f"{PAGE}?from=2024-05-31&to=2024-05-31&zone=1"))
    assert "Origins of visitors to North &lt;east&gt;" in text and "Share of the zone's total" in text
    assert "Each figure is the number of visitors on this day." in text
    several = words(reader.get(f"{PAGE}?zone=1"))
    assert "Choose a single day to see shares" in several and "Share of the zone's total" not in several


def test_arcs_are_the_listed_pairs_of_two_zones(study) -> None:
    found, shapes = flows(study, 1, 4), area_shapes(study.area)
    arcs = arcs_of(found, shapes)
    zones = {zone.name: centre_of(zone.rings) for zone in shapes.zones}
    pair = found.pair
    names = [names_of(pair, flow) for flow in reversed(found.listed)]
    expected = [(zones[one], zones[other]) for one, other in names if one != other and one in zones]
    assert len(arcs) == len(expected) > 2
    for arc, (start, end) in zip(arcs, expected, strict=True):
        path = np.array(arc["path"]).reshape(-1, 2)
        assert path[0] == pytest.approx(start, abs=1) and path[-2] == pytest.approx(end, abs=1)
    assert arcs[-1]["width"] == max(arc["width"] for arc in arcs) == 8
    assert centre_of([np.array([[0, 0], [4, 0], [4, 2], [0, 2], [0, 0]], float)]).tolist() == [2, 1]


def test_files_have_all_pairs_and_totals_and_lines_the_listed_ones(reader, study) -> None:
    found = flows(study, 2, 3)
    query = "from=2024-05-31&to=2024-06-01"
    rows = csv_rows(reader.get(f"/studies/fair-2024/flows.csv?{query}"))
    assert len(rows) == 25 + 10
    pair = rows[1]
    assert (pair["origin"], pair["destination"], pair["n_days"]) == ("North west", "North <east>", "2")
    assert (pair["first_day"], pair["last_day"]) == ("2024-05-31", "2024-06-01")
    assert float(pair["visitors_ci_low"]) < float(pair["visitors"]) < float(pair["visitors_ci_high"])
    assert float(pair["visitors"]) == pytest.approx(found.cells[0][1].visitors)
    shown = found.shown("consistent")
    figures = [*itertools.chain(*shown.cells), *shown.outflow, *shown.inflow]
    assert [float(row["consistent"]) for row in rows] == [each.share for each in figures]
    assert [row["larger_than_noise"] for row in rows].count("yes") == found.is_listed.sum()
    assert (rows[25]["destination"], rows[25]["larger_than_noise"], rows[30]["origin"]) == ("", "", "")
    assert reader.get(f"/studies/fair-2024/flows.xlsx?{query}").content[:2] == b"PK"
    lines = json.loads(reader.get(f"/studies/fair-2024/flows.geojson?{query}").content)
    assert len(lines["features"]) == len(arcs_of(found, area_shapes(study.area)))
    amounts = [each["properties"]["visitors"] for each in lines["features"]]
    assert amounts[0] == max(amounts)
    (west, south), (east, north) = lines["features"][0]["geometry"]["coordinates"]
    assert 6.8 < west < 6.83 and 6.8 < east < 6.83 and 47.6 < south < 47.63 and 47.6 < north < 47.63
    assert LedgerEntry.objects.filter(kind=LedgerKind.EXPORT_MADE).count() == 3
    assert f"flows.geojson?{query}" in reader.get(f"{PAGE}?{query}").content.decode().replace("&amp;", "&")


def test_programs_get_what_the_file_has(reader, client, study, token) -> None:
    address, headers = "/api/v1/studies/fair-2024/flows", {"Authorization": f"Bearer {token()}"}
    answer = client.get(f"{address}?from=2024-05-31&to=2024-06-01", headers=headers)
    file = reader.get("/studies/fair-2024/flows.json?from=2024-05-31&to=2024-06-01")
    assert answer.json() == json.loads(file.content)
    assert client.get(f"{address}?indicator=home", headers=headers).status_code == 422
    check_document(reader, "/api/v1/studies/{study}/flows", answer=answer.json())


def test_the_page_is_found_and_speaks_french(reader, study) -> None:
    assert f'href="{PAGE}"' in reader.get("/studies/fair-2024/").content.decode()
    of_pair = reader.get("/studies/fair-2024/trip/?from=2024-05-31").content.decode()
    assert f'href="{PAGE}?indicator=trip&amp;from=2024-05-31&amp;to=2024-05-31"' in of_pair
    assert PAGE not in reader.get("/studies/fair-2024/home/").content.decode()
    text = words(reader.get(PAGE, headers={"Accept-Language": "fr"}))
    assert "Flux" in text and "Largest" not in text and "visitor-days" not in text


def test_studies_without_flows_say_what_they_need(reader, analyst, study) -> None:
    wrong = reader.get(f"{PAGE}?zone=9")
    assert wrong.status_code == 400 and "must be a number from 0 to 3" in words(wrong)
    Study.objects.update(small_cell=100_000)
    hidden = words(reader.get(PAGE))
    assert "suppressed" in hidden and "<table" not in hidden
    assert reader.get("/studies/fair-2024/flows.csv").status_code == 400
    Study.objects.update(small_cell=0, presence={"epsilon": "1"})
    assert "Flows are not available for this study" in words(reader.get(PAGE))
    other = factory.published(HOME, factory.GENDER, area=area(), slug="other")
    StudyGrant.objects.create(user=analyst, study=other, granted_by="test")
    assert "No pairs of places" in words(reader.get("/studies/other/flows/"))
    assert (
        b"neither moves nor a joint indicator of two places" in reader.get("/studies/other/flows.csv").content
    )
