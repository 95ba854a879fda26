"""Small categories: hidden with what would give them, on each page and in each file; a policy for readers."""

import json
import re
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from django.http import QueryDict
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from ldp import project_simplex
from ldp.errors import PlanError
from reports.base.status import Status
from reports.boards.actions import create_board
from reports.crosstab.joints import joint_indicators
from reports.crosstab.queries import measure, table_of
from reports.crosstab.query import view_of
from reports.estimates.fingerprints import slot_of
from reports.estimates.queries import Window, study_reports, visitor_unions
from reports.estimates.small_categories import Hidden, hidden_categories
from reports.estimates.texts import hidden_words
from reports.exports.bundle import bundle_of
from reports.exports.errors import ExportError
from reports.exports.records import to_csv, to_json
from reports.models import Board, LedgerEntry, Study
from reports.privacy.statement.document import study_facts
from reports.scenario.population import synthesise
from reports.studies.studyfile import StudyDefinition
from reports.studies.studyfile.parse import check_small_cells
from reports.studies.tally_models import Tally
from tests.reports import map_factory, slot_factory
from tests.reports import report_factory as factory
from tests.reports.map_factory import area

pytestmark = pytest.mark.django_db
LIMIT = 90
ZONES = ("Harbour", "Old town", "Station", "Island")
ZONE = factory.indicator("zone", *ZONES, "NR")
SEX = factory.indicator("sex", "F", "M")
BOTH = factory.joint("both", ZONE, SEX)
N_SEXES = 3  # with that of no value
RARE = 3, 4
BASE, API = "/studies/fair-2024/", "/api/v1/studies/fair-2024/"
# Without the rule, the exchange of both rare zones changes each of these.
TELLING = (
    BASE, f"{BASE}zone/", f"{BASE}zone/?view=map", f"{BASE}zone/days/", f"{BASE}both/", f"{BASE}export.csv",
    f"{BASE}crosstab/", f"{BASE}crosstab.csv", f"{BASE}crosstab/?only-zone=3", f"{BASE}flows/",
    f"{BASE}flows.csv", f"{BASE}zone/export.json", "board", f"{API}indicators/zone/windows",
    f"{BASE}zone/compare/?from=2024-06-01&with_from=2024-05-30", f"{BASE}zone/movement/",
)  # fmt: skip
OTHERS = (
    f"{BASE}zone/?group=found", f"{BASE}crosstab/?shares=row", f"{BASE}crosstab/?shares=column",
    f"{BASE}crosstab/?combined=1", f"{BASE}crosstab/?only-sex=0", f"{BASE}zone/compare/?kind=categories",
    f"{BASE}zone/scenario/?exactly=2", f"{BASE}sex/", f"{BASE}zone/map.json", f"{BASE}zone/export.svg",
)  # fmt: skip


def made(**changes: Any) -> Study:
    """Return a study of 4,000 people, of whom 44 are in two rare zones."""
    asked = {"small_category": LIMIT, "area": area(ZONES), "days": 3, "epsilon": "12"} | changes
    study = factory.create(ZONE, SEX, BOTH, **asked)
    zone = np.repeat(np.arange(5, dtype=np.int32), [2000, 1500, 456, 4, 40])
    sex = np.resize(np.array([0, 1, 0], np.int32), zone.size)
    static = {"zone": zone, "sex": sex, "both": zone * N_SEXES + sex}
    factory.publish(study, replace(factory.crowd(study), static=static))
    return Study.objects.get(pk=study.pk)


# --- one window ---------------------------------------------------------------------------------


@given(
    weights=st.lists(st.integers(0, 400), min_size=2, max_size=8),
    noise=st.lists(st.floats(-30, 30), min_size=8, max_size=8),
    least=st.integers(1, 100),
)
def test_no_small_number_is_shown_or_can_be_worked_out(weights, noise, least) -> None:
    visitors = np.array(weights) + np.array(noise[: len(weights)]) + 1
    total = float(visitors.sum())
    if total < len(weights):
        return
    shares, n = visitors / total, round(total)
    found = hidden_categories(shares, shares, ci_low=shares, n_visitors=n, least=least)
    shown, small = ~found.all, found.small
    assert not (shown & (shares * n < least)).any()
    assert not (found.consistent[shown] * n < least).any()
    assert small.any() or not found.others.any()
    if small.any() and shown.any():
        # The sum of the hidden ones gives each small one no better than a range as wide as the limit.
        # Of the others, which are the smallest, each has at most what the smallest shown one has.
        rest, most = (float(each) for each in ((shares * n)[found.all].sum(), (shares * n)[shown].min()))
        lowest = rest - (small.sum() - 1) * least - found.others.sum() * most
        assert found.all.sum() >= 2 and least - lowest >= least - 1e-6


@pytest.mark.parametrize(
    ("shares", "statuses"),
    [
        ((0.5, 0.3, 0.2), (None, None, None)),
        ((0.6, 0.35, 0.05), (None, Status.SUPPRESSED, Status.SMALL)),
        ((0.7, 0.2, 0.05, 0.05), (None, None, Status.SMALL, Status.SMALL)),
        # 95 + 95 leave 90 to 100 for each
        ((0.5, 0.31, 0.095, 0.095), (None, Status.SUPPRESSED, Status.SMALL, Status.SMALL)),
        ((1.0, 0.0), (Status.SUPPRESSED, Status.SMALL)),
        # 80 + 210 less a number from 100 to 215 would leave 75 or more
        ((0.495, 0.215, 0.21, 0.08), (None, Status.SUPPRESSED, Status.SUPPRESSED, Status.SMALL)),
    ],
)
def test_the_smallest_other_category_is_hidden_where_it_must_be(shares, statuses) -> None:
    found = hidden_categories(shares, shares, ci_low=shares, n_visitors=1000, least=100)
    assert tuple(found.status(code) for code in range(len(shares))) == statuses


@given(
    counts=st.lists(st.sampled_from([3, 15, 40, 90, 300]), min_size=9, max_size=9),
    hidden=st.lists(st.booleans(), min_size=3, max_size=3),
)
def test_no_combination_can_be_worked_out_from_sums_of_parts(counts, hidden) -> None:
    table = np.array(counts, float)
    n = int(table.sum())
    of_part = Hidden(small=np.array(hidden[:2]), others=np.zeros(2, np.bool_), consistent=np.zeros(2))
    found = hidden_categories(
        table / n, table / n, ci_low=table, n_visitors=n, least=20, parts=((3, of_part), (3, None))
    ).all
    assert found[table < 20].all()
    sums = np.array([*np.kron(np.eye(3), np.ones(3)), *np.kron(np.ones(3), np.eye(3))])
    sums = sums[[not (row < 2 and hidden[row]) for row in range(6)]][:, found]  # of parts that are shown
    for code in range(int(found.sum())):
        asked = np.vstack([sums, np.eye(int(found.sum()))[code]])
        assert np.linalg.matrix_rank(asked) > np.linalg.matrix_rank(sums)


def test_consistent_shares_do_not_depend_on_how_the_hidden_ones_split_their_rest() -> None:
    splits = [np.array([0.7, 0.26, *rest]) for rest in ((0.02, 0.02), (0.06, -0.02))]
    found = [
        hidden_categories(each, project_simplex(each), ci_low=each, n_visitors=1000, least=100)
        for each in splits
    ]
    assert found[0].consistent[:2].tolist() == found[1].consistent[:2].tolist() == pytest.approx([0.7, 0.26])


# --- a whole study ------------------------------------------------------------------------------


def said(pages: Iterable[str], *, reader: Client) -> dict[str, bytes]:
    board = Board.objects.get()
    found = {}
    for page in pages:
        address = f"{BASE}boards/{board.pk}/" if page == "board" else page
        response = reader.get(address)
        assert response.status_code == 200, page
        found[page] = re.sub(rb'csrf\w+" value="\w+"|nonce-[\w-]+', b"", response.content)
    return found


def exchange(study: Study) -> None:
    """Exchange the answers of both rare zones, also in their combinations."""
    one, other = RARE
    for tally in Tally.objects.filter(plan__study=study).select_related("indicator"):
        counts = np.frombuffer(tally.counts, "<i8").reshape(len(tally.indicator.categories), -1).copy()
        order = np.arange(len(counts))
        if tally.indicator.slug == "zone":
            order[[one, other]] = other, one
        elif tally.indicator.slug == "both":
            by_zone = order.reshape(-1, N_SEXES)
            by_zone[[one, other]] = by_zone[[other, one]]
        Tally.objects.filter(pk=tally.pk).update(counts=counts[order].tobytes())
    slot_of.cache_clear()  # no publication says that totals changed


def test_all_that_is_said_is_the_same_with_two_hidden_categories_exchanged(reader, analyst) -> None:
    study = made()
    create_board(study, name="Zones", by=analyst)
    before = said([*TELLING, *OTHERS], reader=reader)
    exchange(study)
    after = said([*TELLING, *OTHERS], reader=reader)
    assert [page for page in before if before[page] != after[page]] == []
    shown = before[f"{BASE}zone/"].decode()
    assert shown.count("&lt;90</span>") == 2 and "display policy" in shown
    Study.objects.update(small_category=0)
    without = said(TELLING, reader=reader)
    exchange(study)
    again = said(TELLING, reader=reader)
    assert [page for page in TELLING if without[page] == again[page]] == []  # the comparison can fail


@pytest.mark.parametrize(
    ("days", "hidden"),
    [
        ((0b001, 0b010, 0b100), {(1, 2), (2, 3), (1, 3)}),  # each person on one day
        ((0b001, 0b111, 0b100), {(1, 3)}),  # no one skips day 2
        ((0b101, 0b010, 0b111), set()),
    ],
)
def test_a_day_cannot_be_worked_out_from_longer_windows(days, hidden) -> None:
    asked = factory.indicator("zone", *ZONES)
    study = factory.create(asked, small_category=LIMIT, days=3, epsilon="12")
    bitmaps = np.repeat(np.array(days, np.uint64), 1000)
    # On day 2 few are in the zone "Island", on other days many.
    numbers = [[500, 200, 180, 120] if not day & 2 else [500, 300, 180, 20] for day in days]
    zone = np.concatenate([np.repeat(np.arange(4, dtype=np.int32), each) for each in numbers])
    factory.publish(study, replace(factory.crowd(study, n=3000), bitmaps=bitmaps, static={"zone": zone}))
    reports = study_reports(list(study.indicators.all()), None)
    found = {each.window for each in reports if each.estimates[3].is_hidden and each.window.days > 1}
    assert all(
        "would reveal a small category" in hidden_words(each) for each in reports if each.window in hidden
    )
    assert found == hidden and reports[3].window == (2, 2) and reports[3].estimates[3].below == LIMIT


def test_joint_views_hide_what_a_hidden_zone_is_part_of() -> None:
    study = made()
    (joint,) = joint_indicators(study)
    measured = measure(joint, Window(1, 3))
    table = table_of(measured, view_of(QueryDict(), [joint], visitors=visitor_unions(study)))
    hidden = [[each.is_hidden for each in row] for row in (*table.cells, table.columns)]
    # Zones without visitors without a value keep their totals; columns, which have the rare zones, do not.
    assert hidden == [[False] * 3] * 3 + [[True] * 3] * 2 + [[False] * 3] + [[True] * 3]
    assert [each.is_hidden for each in table.rows] == [False, False, False, True, True, False]
    assert not table.whole.is_hidden
    assert measured.answer({0: [0, 1]}).status == Status.OK
    assert measured.answer({0: [0, 1, 3]}).status == measured.answer({1: [0]}).status == Status.SUPPRESSED


def test_files_say_the_limit_scaled_and_only_where_there_is_one() -> None:
    reports = study_reports(list(made(market_share=Decimal("0.7")).indicators.all()), Window(1, 3))
    rare = json.loads(to_json(reports))[0]["estimates"][3]
    assert rare | {"status": "small", "visitors_below": 129} == rare  # 90 / 0.7, rounded up
    assert {rare[name] for name in ("reports", "frequency", "ci_low", "consistent", "visitors")} == {None}
    assert to_csv(reports).splitlines()[0].endswith("software_version,visitors_below")
    Study.objects.update(small_category=0)
    plain = study_reports(list(Study.objects.get().indicators.all()), Window(1, 3))
    assert "visitors_below" not in to_csv(plain) + to_json(plain)


def test_tallies_and_digests_are_not_handed_out() -> None:
    with pytest.raises(ExportError, match="categories that the study hides"):
        bundle_of(made())
    assert "delta_sha256" not in LedgerEntry.objects.get(kind="publication.applied").facts
    people = synthesise(Study.objects.get())
    assert people.left_out["zone"] == "has small categories" and "sex" not in people.left_out


def test_a_study_with_figures_that_the_rule_does_not_hide_is_refused() -> None:
    limited = factory.definition(small_category=20)
    check_small_cells(limited)
    for changes in (
        {"slots": slot_factory.DEFINITION},
        {"location": map_factory.LOCATION},
        {"indicators": (factory.LENGTH,)},
        {"indicators": (factory.moves("trips", *ZONES),)},
        {"plan": replace(limited.plan, presence_epsilon=Decimal(1))},
    ):
        with pytest.raises(PlanError, match=r"must be absent with study\.small_category"):
            check_small_cells(replace(limited, **changes))


def test_the_key_is_in_plan_statement_and_definition_only_if_it_is_set() -> None:
    with_key, without = (factory.definition(small_category=each) for each in (20, None))
    assert with_key.plan_spec() == without.plan_spec()
    assert "small_category" not in without.to_json()
    assert StudyDefinition.from_json(with_key.to_json()) == with_key
    assert study_facts(made())["small_category"] == LIMIT
    assert "small_category" not in study_facts(factory.create(slug="other"))
