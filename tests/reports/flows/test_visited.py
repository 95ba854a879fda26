"""Visited zones and pairs of them: their figures are right, and pages, files and answers hold."""

import json
from decimal import Decimal
from itertools import combinations

import numpy as np
import pytest
from django.template.loader import render_to_string
from django.urls import reverse

import ldp
from ldp.estimation.simulation import Crowd
from mobility.plans.pages.simulator import _row as simulator_row
from reports.base.status import Status
from reports.boards.offers import offers_of
from reports.boards.tiles import Kind
from reports.estimates.queries import Window
from reports.flows.queries import NoFlowsError
from reports.flows.visited import Visited, visited_items, visited_of
from reports.models import DayNote, Plan, Study
from reports.questions.answers import answers
from reports.questions.facts import Facts
from reports.simulator.model import Setting, questions_of_study, simulate
from reports.simulator.texts import unreachable_words
from tests.reports import report_factory as factory
from tests.reports.kept import made_once
from tests.reports.map_factory import HOME, ZONES, area
from tests.reports.page_texts import Markup, check_document, csv_rows, words

pytestmark = pytest.mark.django_db
N, SLUG, DAYS = 5000, "fair-2024", range(1, 5)
PAGE = f"/studies/{SLUG}/flows/visited/"
PAIRS = list(combinations(range(4), 2))
# Zones of a day, by a number of the person; the last zone is never visited.
SETS = ["", "0", "01", "012", "1", "2", "01", ""]


def zones_of(person: int, day: int) -> list[int]:
    return [*map(int, SETS[(person * 7 + day * (person % 5 == 0)) % len(SETS)])]


def items_of(items: str, person: int, day: int) -> list[int]:
    zones = zones_of(person, day)
    return zones if items == "places" else [PAIRS.index(pair) for pair in combinations(zones, 2)]


def published(items: str, **changes: object) -> tuple[Study, np.ndarray]:
    study = with_visits(items, **changes)
    return study, factory.crowd(study, n=N).bitmaps


@made_once
def with_visits(items: str, *, per_day: int, **changes: object) -> Study:
    seen = factory.visits("seen", items, *ZONES, per_day=per_day)
    study = factory.create(HOME, seen, **({"epsilon": "4", "area": area()} | changes))
    people, plan = factory.crowd(study, n=N), Plan.objects.get(study=study)
    sanitiser = ldp.Sanitiser(ldp.PlanSpec.from_json(plan.spec), ldp.KeyedPrf(bytes(16)))
    for day in DAYS:
        of_day = [items_of(items, person, day) for person in range(N)]
        starts = np.cumsum([0, *map(len, of_day)])
        codes = np.array([code for each in of_day for code in each], np.int32)
        asked = {"starts": starts, "codes": codes, "day": day}
        people.daily["seen"][:, day - 1] = sanitiser.picked_moves(1, people.pseudonyms, **asked)
    factory.publish(study, people)
    return study


def true_visitors(items: str, bitmaps: np.ndarray, *days: int, per_day: int) -> np.ndarray:
    """Visitors of each item, summed over days, with their weights."""
    found = np.zeros(4 if items == "places" else len(PAIRS))
    for day in days:
        for person in np.flatnonzero(bitmaps >> np.uint64(day - 1) & np.uint64(1)):
            mine = items_of(items, person, day)
            np.add.at(found, mine, min(1, per_day / max(len(mine), 1)))
    return found


def visited(study: Study, first: int, last: int) -> Visited:
    (items,) = visited_items(study)
    return visited_of(items, Window(first, last))


@pytest.mark.parametrize(("items", "per_day"), [("places", 4), ("places", 2), ("pairs", 3)])
def test_figures_are_visitors_of_a_day_and_visitor_days_of_several(items: str, per_day: int) -> None:
    study, bitmaps = published(items, per_day=per_day, market_share=Decimal("0.5"))
    widths = []
    for days in ((2,), tuple(DAYS)):
        found = visited(study, days[0], days[-1])
        truth = 2 * true_visitors(items, bitmaps, *days, per_day=per_day)
        holds = [
            f.visitors_ci_low <= n <= f.visitors_ci_high for f, n in zip(found.figures, truth, strict=True)
        ]
        assert np.mean(holds) >= 0.75
        there = [np.count_nonzero(bitmaps >> np.uint64(day - 1) & np.uint64(1)) for day in days]
        assert found.n_people == sum(there)
        first = found.figures[0]
        assert first.share == pytest.approx(first.visitors / 2 / sum(there))
        assert all(truth[code] for code in found.listed)
        assert found.is_listed[0] and not found.is_listed[-1]
        assert [found.figures[code].visitors for code in found.listed] == sorted(
            (found.figures[code].visitors for code in found.listed), reverse=True
        )
        widths.append(first.visitors_ci_high - first.visitors_ci_low)
    assert 1.5 * widths[0] < widths[1] < 3 * widths[0]  # not four times: noise is new each day


def test_days_without_figures_are_no_part_of_sums_and_small_windows_are_hidden() -> None:
    study, _ = published("places", per_day=4)
    DayNote.objects.create(study=study, day=1, kind=DayNote.Kind.OUTAGE, text="Failed")
    assert visited(study, 1, 4).n_days_missing == 1
    Study.objects.update(small_cell=10**6)
    with pytest.raises(NoFlowsError) as error:
        visited(Study.objects.get(), 2, 3)
    assert error.value.status == Status.SUPPRESSED


@pytest.mark.parametrize(
    ("items", "title", "weight", "n"),
    [
        ("places", "Zones visited in a day", "If a person visits more than 2 zones on a day", 4),
        (
            "pairs",
            "Pairs of zones visited on the same day",
            "If a person has more than 2 pairs of zones on a day",
            6,
        ),
    ],
)
def test_the_page_shows_the_list_and_all_others(reader, items: str, title: str, weight: str, n: int) -> None:
    study, _ = published(items, per_day=2)
    answer = reader.get(f"{PAGE}?indicator=seen&from=2024-05-30&to=2024-06-02")
    text, html, found = words(answer), answer.content.decode(), visited(study, 1, 4)
    assert answer.status_code == 200 and not Markup(html).refused
    what = "zones" if items == "places" else "pairs of zones"
    for part in (
        title, weight, f"The figures for {len(found.listed)} of {n} {what} can be distinguished from zero",
        "Visitor-days", "Share of visitor-days", "mistake is at most 5%", "they visited that day",
        "To add up the figures of several days, choose the first and last day above.",
    ):  # fmt: skip
        assert part in text, part
    assert "date ranges of several days are not available" not in text
    assert html.count('<tr><th scope="row">') >= n
    one_day = words(reader.get(f"{PAGE}?indicator=seen&from=2024-05-31&to=2024-05-31"))
    assert "Share of visitors" in one_day and "Visitor-days" not in one_day
    french = words(reader.get(PAGE, headers={"Accept-Language": "fr"}))
    assert "Zones visitées" in french and "visitors" not in french.lower()
    wrong = reader.get(f"{PAGE}?indicator=nothing")
    assert wrong.status_code == 400 and "no indicator of visited zones named “nothing”" in words(wrong)
    complete = published(items, per_day=6, slug="whole")[0]
    assert "Every visit counts in full" in words(reader.get(f"/studies/{complete.slug}/flows/visited/"))


def test_pages_lead_to_the_visits_and_no_map_is_offered(reader) -> None:
    study, _ = published("places", per_day=4)
    moved = reader.get(f"/studies/{SLUG}/seen/?from=2024-05-31&to=2024-05-31")
    assert moved.headers["Location"] == f"{PAGE}?indicator=seen&from=2024-05-31&to=2024-05-31"
    overview = reader.get(f"/studies/{SLUG}/").content.decode()
    assert f'href="{PAGE}"' in overview and f'href="{PAGE}?indicator=seen' in overview
    assert "most visited" in overview and f'href="/studies/{SLUG}/flows/"' not in overview
    offers = [(offer.kind, offer.of) for offer in offers_of(study) if offer.of == "seen"]
    assert offers == [(Kind.FLOWS, "seen")]
    (links,) = [each.links for each in answers(Facts(study)) if "visit in a day" in str(each.question)]
    assert links == [("Visited zones", PAGE)]
    assert reader.get(f"/studies/{SLUG}/flows.csv").status_code == 400
    statement = words(reader.get(f"/studies/{SLUG}/statement/"))
    assert "Visited zones (Seen): new noise is drawn every day" in statement
    # The way of reporting and the limits of daily values both claim that visits do not show a return.
    assert statement.count("value has changed between them") == 2
    factory.create(HOME, slug="plain")
    without = words(reader.get("/studies/plain/flows/visited/"))
    assert "No visited zones" in without
    assert reader.get("/studies/plain/flows/visited.csv").status_code == 400


@pytest.mark.parametrize("items", ["places", "pairs"])
def test_files_and_programs_get_all_visits(reader, items: str) -> None:
    study, _ = published(items, per_day=3)
    found, query = visited(study, 2, 3), "indicator=seen&from=2024-05-31&to=2024-06-01"
    address = reverse("reports:visited_file", args=[SLUG, "csv"])
    rows = csv_rows(reader.get(f"{address}?{query}"))
    assert len(rows) == len(found.figures)
    assert [row["zone"] for row in rows] == [names[0] for names in found.items.file_names]
    assert [row["other_zone"] for row in rows] == [
        names[1] if items == "pairs" else "" for names in found.items.file_names
    ]
    assert [float(row["visitors"]) for row in rows] == pytest.approx([f.visitors for f in found.figures])
    assert [row["larger_than_noise"] == "yes" for row in rows] == found.is_listed.tolist()
    assert {row["max_visits"] for row in rows} == {"3"}
    for ending in ("xlsx", "json"):
        answer = reader.get(f"{reverse('reports:visited_file', args=[SLUG, ending])}?{query}")
        assert answer.status_code == 200
    assert len(json.loads(answer.content)["rows"]) == len(rows)
    answer = reader.get(f"/api/v1/studies/{SLUG}/visited?{query}").json()
    check_document(reader, "/api/v1/studies/{study}/visited", answer=answer)
    assert answer["rows"][0]["frequency"] == pytest.approx(found.figures[0].share)


def test_the_simulator_says_how_sharp_visits_are() -> None:
    study, _ = published("places", per_day=3)
    asked = {"mechanism": "smp-grr", "unit": "profile", "epsilon": Decimal(4), "days": 4}
    setting = Setting(crowd=Crowd(visitors=2500), questions=questions_of_study(study), **asked)
    row = simulate(setting).rows[1]
    assert row.question.moves.items == "places" and row.forecast.union is None
    channel = ldp.PlanSpec.from_json(Plan.objects.get(study=study).spec).answer_channel(1)
    error = ldp.pure_variance(1 / 5, n_reports=1250, n_population=10**9, channel=channel) ** 0.5
    assert row.day_half_width == pytest.approx(1.96 * error, rel=0.1)
    unreachable = unreachable_words(setting, slugs=[row.question.slug], of_union=True)
    assert unreachable.startswith("Moves and visits are counted separately for each day")
    context = {"rows": [simulator_row(row)], "setting": setting, "days_in_all": 2500}
    table = render_to_string("simulator/_simulator_table.html", context)
    assert "because moves and visits are counted separately" in table and "not everyone answers" not in table
