"""Moves between zones: their figures are right, and pages, files and answers of a study with them hold."""

import io
import json
import subprocess
import sys
import zipfile
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pytest
from django.urls import reverse

import ldp
from ldp.estimation.simulation import Crowd
from ldp.privacy.moves import MoveSpec
from reports.base import formats
from reports.base.status import Status
from reports.crosstab.queries import Figure
from reports.estimates.queries import UnionNotAvailableError, Window, window_report
from reports.flows.pairs import place_pairs
from reports.flows.queries import Flows, NoFlowsError, flows_of
from reports.maps.flow_arcs import arcs_of
from reports.maps.shapes import area_shapes
from reports.models import DayNote, Plan, Study
from reports.questions.answers import answers
from reports.questions.facts import Facts
from reports.simulator.example import draw_example
from reports.simulator.model import Setting, questions_of_study, simulate
from tests.reports import report_factory as factory
from tests.reports.kept import made_once
from tests.reports.map_factory import HOME, ZONES, area
from tests.reports.page_texts import Markup, check_document, csv_rows, words

pytestmark = pytest.mark.django_db
PER_DAY, N, SLUG = 3, 5000, "fair-2024"
SPEC = MoveSpec(places=4, per_day=PER_DAY)
PAGE = f"/studies/{SLUG}/flows/"
DAYS = range(1, 5)


def moves_of(person: int, day: int) -> list[int]:
    """Moves of a person on a day: in the west, up to five; every seventh is nowhere."""
    kind = (person * 7 + day * (person % 5 == 0)) % 14
    stays = ["", "0", "01", "10", "010", "2", "20", "0101", "0", "1", "01", "21", "0", ""]
    path = (SPEC.outside, *map(int, stays[kind]), SPEC.outside)
    return [5 * a + b for a, b in pairwise(path) if a != b]


MOVES = {day: [moves_of(person, day) for person in range(N)] for day in DAYS}


def published(**changes: object) -> tuple[Study, np.ndarray]:
    study = with_moves(**changes)
    return study, factory.crowd(study, n=N).bitmaps


@made_once
def with_moves(*, mechanism: str = "smp-grr", **changes: object) -> Study:
    trips = factory.moves("trips", *ZONES, per_day=PER_DAY)
    asked = {"epsilon": "4", "area": area(), "mechanism": mechanism}
    study = factory.create(HOME, trips, **(asked | changes))
    people = factory.crowd(study, n=N)
    plan = Plan.objects.get(study=study)
    sanitiser = ldp.Sanitiser(ldp.PlanSpec.from_json(plan.spec), ldp.KeyedPrf(bytes(16)))
    for day, moves in MOVES.items():
        starts = np.cumsum([0, *map(len, moves)])
        codes = np.array([move for each in moves for move in each], np.int32)
        people.daily["trips"][:, day - 1] = sanitiser.picked_moves(
            1, people.pseudonyms, starts=starts, codes=codes, day=day
        )
    factory.publish(study, people)
    return study


def true_moves(bitmaps: np.ndarray, *days: int) -> np.ndarray:
    """Moves of all visitors by pair, with their weights."""
    found = np.zeros(25)
    for day in days:
        for person in np.flatnonzero(bitmaps >> np.uint64(day - 1) & np.uint64(1)):
            moves = MOVES[day][person]
            np.add.at(found, moves, min(1, PER_DAY / max(len(moves), 1)))
    return found.reshape(5, 5)


def flows(study: Study, first: int, last: int) -> Flows:
    (pair,) = place_pairs(study)
    return flows_of(pair, Window(first, last))


@pytest.fixture
def study() -> Study:
    return published()[0]


def holds(figures: list[Figure], truth: np.ndarray, scale: float = 1.0) -> float:
    """Share of intervals with the true number."""
    pairs = zip(figures, truth, strict=True)
    return float(np.mean([each.visitors_ci_low <= n * scale <= each.visitors_ci_high for each, n in pairs]))


@pytest.mark.parametrize(("mechanism", "epsilon"), [("smp-grr", "4"), ("smp-question", "2")])
def test_figures_are_moves_with_their_intervals_on_days_and_over_them(mechanism: str, epsilon: str) -> None:
    study, bitmaps = published(mechanism=mechanism, epsilon=epsilon, market_share=Decimal("0.5"))
    off, widths = ~np.eye(5, dtype=np.bool_), []
    for days in ((2,), tuple(DAYS)):
        found, truth = flows(study, days[0], days[-1]), true_moves(bitmaps, *days) * off
        edges = [found.cells[place][other] for place, other in np.argwhere(off)]
        assert holds(edges, truth[off], scale=2) > 0.8
        totals = [*found.outflow, *found.inflow, found.whole, found.moving]
        sums = [*truth.sum(axis=1), *truth.sum(axis=0), truth.sum(), truth[:4, :4].sum()]
        assert holds(totals, np.array(sums), scale=2) > 0.8
        there = [bitmaps >> np.uint64(day - 1) & np.uint64(1) for day in days]
        assert found.n_people == sum(map(np.count_nonzero, there))
        assert found.whole.share == pytest.approx(found.whole.visitors / 2 / found.n_people)
        widths.append(found.whole.visitors_ci_high - found.whole.visitors_ci_low)
        assert found.balanced.min() >= 0 and found.is_possible(0, 1) and not found.is_possible(2, 2)
        assert found.balanced.sum(axis=1) == pytest.approx(found.balanced.sum(axis=0), abs=0.1)
        assert np.trace(found.balanced[:4, :4]) == 0
    assert 1.5 * widths[0] < widths[1] < 3 * widths[0]  # not four times: noise is new each day


def test_listed_moves_are_made_by_people_and_days_without_figures_are_no_part_of_the_sums() -> None:
    study, bitmaps = published(epsilon="6")
    listed = {(flow.origin, flow.destination) for flow in flows(study, 1, 4).listed}
    assert {(4, 0), (0, 1), (1, 0), (0, 4)} <= listed
    assert all(true_moves(bitmaps, *DAYS)[pair] for pair in listed)
    assert len(flows(study, 2, 2).catchment(0)) == 4  # no one moves from a zone to itself
    DayNote.objects.create(study=study, day=1, kind=DayNote.Kind.OUTAGE, text="Failed")
    assert flows(study, 1, 4).n_days_missing == 1
    Study.objects.update(small_cell=10**6)
    with pytest.raises(NoFlowsError) as error:
        flows(Study.objects.get(), 2, 3)
    assert error.value.status == Status.SUPPRESSED


def test_a_report_has_shares_of_single_days_and_no_visitors(study) -> None:
    trips = study.indicators.get(slug="trips")
    report = window_report(trips, Window(2, 2))
    assert {each.visitors for each in report.estimates} == {None}
    (pair,) = place_pairs(study)
    found = flows_of(pair, Window(2, 2))
    cells = [each for row in found.cells for each in row]
    shares = [PER_DAY * each.frequency for each in report.estimates]
    assert [each.share for each in cells] == pytest.approx(shares)
    errors = [PER_DAY * each.std_error for each in report.estimates]
    assert [each.std_error for each in cells] == pytest.approx(errors)
    with pytest.raises(UnionNotAvailableError, match="moves and visits are counted separately for each day"):
        window_report(trips, Window(1, 2))


def test_the_page_shows_moves_their_balance_and_where_they_end(reader, study) -> None:
    answer = reader.get(f"{PAGE}?indicator=trips&from=2024-05-30&to=2024-06-02&zone=1")
    text, html, found = words(answer), answer.content.decode(), flows(study, 1, 4)
    assert not Markup(html).refused
    for part in (
        f"{len(found.listed)} of 20 pairs of places", "Moves between zones", "Balanced moves",
        "Moves to North &lt;east&gt;", "Per 100 visitor-days", "If a person makes more than 3 moves in a day",
        formats.number(found.whole.visitors), "per 100 visitor-days", "outside all zones",
    ):  # fmt: skip
        assert part in text, part
    assert "Visitor-days" not in text and "Cross-tabulation" not in text
    assert "flows.geojson?indicator=trips" in html.replace("&amp;", "&")
    french = words(reader.get(PAGE, headers={"Accept-Language": "fr"}))
    assert "Déplacements équilibrés" in french and "moves" not in french.lower()


def test_pages_of_an_indicator_lead_to_the_flows(reader, study) -> None:
    moved = reader.get(f"/studies/{SLUG}/trips/?from=2024-05-31&to=2024-05-31")
    assert moved.headers["Location"] == f"{PAGE}?indicator=trips&from=2024-05-31&to=2024-05-31"
    for name in ("days", "compare", "movement", "scenario", "forecast_indicator"):
        assert reader.get(reverse(f"reports:{name}", args=[SLUG, "trips"])).status_code == 404, name
    for name in ("days", "compare", "movement"):
        menu = Markup(reader.get(reverse(f"reports:{name}", args=[SLUG, "home"])).content.decode()).links
        assert any(link.startswith(f"/studies/{SLUG}/trips/") for link in menu)
        assert not any(f"/trips/{name}" in link for link in menu)
    overview = reader.get(f"/studies/{SLUG}/")
    assert f'href="{PAGE}' in overview.content.decode() and "pairs of places" in words(overview)
    asked = {str(each.question): each for each in answers(Facts(study))}
    (links,) = [each.links for question, each in asked.items() if "from one zone to another" in question]
    assert links == [("Flows", PAGE)]
    shares = next(each for question, each in asked.items() if question.startswith("What share"))
    assert [name for name, _ in shares.links] == ["Home"]
    assert reader.get(f"/studies/{SLUG}/questions/").status_code == 200


def test_files_and_programs_get_all_moves_and_the_balanced_ones(reader, study) -> None:
    found, query = flows(study, 2, 3), "indicator=trips&from=2024-05-31&to=2024-06-01"
    rows = csv_rows(reader.get(f"/studies/{SLUG}/flows.csv?{query}"))
    assert len(rows) == 20 + 10
    first = rows[0]
    assert (first["origin"], first["destination"], first["max_moves"]) == ("North west", "North <east>", "3")
    assert float(first["moves"]) == pytest.approx(found.cells[0][1].visitors)
    assert float(first["moves_balanced"]) == pytest.approx(found.balanced[0, 1])
    assert (rows[20]["moves_balanced"], rows[20]["destination"]) == ("", "")
    assert [row["larger_than_noise"] for row in rows].count("yes") == len(found.listed)
    lines = json.loads(reader.get(f"/studies/{SLUG}/flows.geojson?{query}").content)
    assert len(lines["features"]) == len(arcs_of(found, area_shapes(study.area)))
    assert lines["features"][0]["properties"]["moves"] > 0
    answer = reader.get(f"/api/v1/studies/{SLUG}/flows?{query}").json()
    check_document(reader, "/api/v1/studies/{study}/flows", answer=answer)


def test_without_days_page_files_and_programs_add_up_the_whole_study(reader, study) -> None:
    assert "Thu 30 May 2024 to Sun 2 Jun 2024 (4 days)" in words(reader.get(PAGE))
    whole = reader.get(f"/api/v1/studies/{SLUG}/flows").json()
    assert (whole["first_day"], whole["last_day"], whole["n_days"]) == ("2024-05-30", "2024-06-02", 4)
    assert whole["rows"][0]["moves"] == pytest.approx(flows(study, 1, 4).cells[0][1].visitors)
    assert {row["n_days"] for row in csv_rows(reader.get(f"/studies/{SLUG}/flows.csv"))} == {"4"}
    assert reader.get(f"/api/v1/studies/{SLUG}/flows?to=2024-05-31").json()["n_days"] == 2


@pytest.mark.parametrize("name", ["indicator_file", "days_file"])
def test_reports_as_files_have_no_visitors(reader, study, name) -> None:
    rows = csv_rows(reader.get(reverse(f"reports:{name}", args=[SLUG, "trips", "csv"])))
    assert {row["visitors"] for row in rows} == {""} and {row["frequency"] for row in rows} != {""}
    for ending in ("xlsx", "pdf" if name == "indicator_file" else "png"):
        assert reader.get(reverse(f"reports:{name}", args=[SLUG, "trips", ending])).status_code == 200
    visitors = reader.get(reverse("reports:movement_file", args=[SLUG, "trips", "csv"]))
    assert visitors.status_code == 200 and b"outside" not in visitors.content  # of all visitors only
    for other in ("compare_file", "scenario_file", "forecast_indicator_file"):
        assert reader.get(reverse(f"reports:{other}", args=[SLUG, "trips", "csv"])).status_code in (400, 404)


def test_the_bundle_computes_moves_again_and_populations_leave_them_out(reader, study, tmp_path) -> None:
    bundle = reader.get(f"/studies/{SLUG}/bundle.zip")
    zipfile.ZipFile(io.BytesIO(bundle.getvalue())).extractall(tmp_path)
    asked = [sys.executable, "recompute.py"]
    done = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert reader.get(f"/studies/{SLUG}/population.zip").status_code == 200


def test_what_is_said_of_protection_is_true_of_moves(reader, study) -> None:
    """New noise each day: nothing says that answers repeat, and the simulator and the pack know moves."""
    text = words(reader.get(f"{PAGE}?indicator=trips"))
    assert "one of the moves they made that day, drawn at random" in text.replace("&#x27;", "'")
    assert "For moves between zones, one of each person" not in words(reader.get(f"/studies/{SLUG}/home/"))
    assert "For moves between zones, one of each person" in words(reader.get(f"/studies/{SLUG}/"))
    assert "daily value changed" not in text and "knows the value on one day" not in text
    statement = words(reader.get(f"/studies/{SLUG}/statement/"))
    assert "New noise is drawn every day" in statement and "Whether a value changes from one" not in statement
    assert reader.get(f"/studies/{SLUG}/dpia/").status_code in (200, 404)
    asked = {"mechanism": "smp-grr", "unit": "profile", "epsilon": Decimal(4), "days": 4}
    setting = Setting(crowd=Crowd(visitors=5000), questions=questions_of_study(study), **asked)
    row = simulate(setting).rows[1]
    assert row.question.moves == SPEC and not row.question.has_size and row.forecast.union is None
    example = draw_example(setting.plan_at(Decimal(4)), 1, n_visitors=3000)
    assert example is not None and example.n_reports > 1000
