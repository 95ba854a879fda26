"""The pages that compare and that show movements: the address is the question, every answer is in words."""

import re
from datetime import date
from html import unescape
from urllib.parse import parse_qsl

import pytest
from django.urls import reverse

from reports.base import formats
from reports.compare import queries, texts
from reports.compare.proposals import better_windows
from reports.estimates.queries import Window
from reports.models import DayNote, Study
from reports.movement.figures import Show
from reports.movement.queries import consistent, movement
from tests.reports import report_factory as factory
from tests.reports.page_texts import Markup, data_of, spaced, words

pytestmark = pytest.mark.django_db
BUSY = {"from": "2024-05-31", "to": "2024-06-02"}
WINDOWS = {"kind": "windows", **BUSY, "with_from": "2024-05-30", "with_to": "2024-05-31"}
FIRST, SECOND = {"from": "2024-05-30"}, {"from": "2024-05-31"}
NONSENSE = [
    {"kind": "windows", **SECOND, "with_from": "2031-01-01"},
    {"kind": "windows", "from": "yesterday", "with_from": "2024-05-31"},
    {"kind": "categories", **SECOND, "reference": "3"},
    {"kind": "categories", **SECOND, "reference": "-1"},
    {"kind": "categories", **SECOND, "reference": "0", "category": "\u0663"},
    {"kind": "categories", **SECOND, "reference": "0", "category": "9" * 5000},
    {"kind": "baseline", **SECOND, "day": "x"},
    {"kind": "baseline", **BUSY},
    {"kind": "studies", **SECOND, "with": "fair-2024/gender"},
    {"kind": "studies", **SECOND, "with": "fair-2025/band", "with_from": "2024-05-31"},
    {"kind": "studies", **SECOND, "with": "\x00<script>"},
]
SHARES, MEANS = (Show.BACK_WITHIN, Show.THERE_AGAIN), (Show.DAYS_PRESENT, Show.WINDOW)


def get(client, slug="age", **query):
    return client.get(reverse("reports:compare", args=["fair-2024", slug]), query)


def rows_of(page):
    body = re.search(r"<tbody>(.*?)</tbody>", page.content.decode(), re.DOTALL).group(1)
    cells = (re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in body.split("</tr>")[:-1])
    return [[re.sub(r"[ \n]+", " ", re.sub(r"<[^>]+>", " ", cell)).strip() for cell in row] for row in cells]


def other_study():
    band = factory.indicator("band", "25 & older", "<18", "18-24")
    made = factory.create(band, slug="fair-2025", name="The next fair", first_day=date(2025, 5, 29), days=3)
    factory.publish(made, factory.crowd(made, seed=3), key=bytes(15) + b"\2")


def drawn_on(page, name="figure"):
    return data_of(page.content.decode(), name)["data"]


def moves(client, slug="age", **query):
    return client.get(reverse("reports:movement", args=["fair-2024", slug]), query)


class TestComparisons:
    def test_table_and_chart_show_the_differences(self, reader, fair):
        page, age = get(reader, **WINDOWS), fair.indicators.get(slug="age")
        expected = queries.compare_windows(age, Window(2, 4), Window(1, 2), of="frequency")
        for row, cells in zip(expected.rows, rows_of(page), strict=True):
            change, spread = texts.change, texts.change_range
            assert cells[1] == f"{change(row, 'frequency')} {spread(row, 'frequency')}"
            share = formats.percent_range(row.value.low, row.value.high)
            assert cells[2] == f"{formats.percent(row.value.value)} {share}"
            assert cells[3].startswith(formats.percent(row.reference.value))
            assert cells[4].endswith(texts.verdict_word(row.alone))
            assert cells[5].endswith(texts.verdict_word(row.held))
        assert spaced(texts.summary(expected)) in words(page)
        traces = drawn_on(page, "undecided-figure")
        drawn = {place: x for trace in traces for place, x in zip(trace["y"], trace["x"], strict=True)}
        wanted = [100 * row.difference for row in expected.rows]
        assert [drawn[place] for place in range(3)] == pytest.approx(wanted, abs=1e-3)

    def test_visitors_can_be_compared_and_the_form_shows_what_was_asked(self, reader, fair):
        page = get(reader, measure="visitors", **WINDOWS)
        assert page.context["comparison"].of == "visitors"
        assert all(re.search(r"\d visitors ", cells[1]) for cells in rows_of(page))
        html = page.content.decode()
        chosen = re.findall(r'<option value="([^"]*)" selected>', html)
        assert chosen == ["2024-05-31", "2024-06-02", "2024-05-30", "2024-05-31", "visitors"]
        # The other kinds keep the days and the measure; a baseline is for a single day.
        assert 'href="?kind=categories&amp;measure=visitors&amp;from=2024-05-31&amp;to=2024-06-02"' in html
        assert 'href="?kind=baseline&amp;measure=visitors"' in html

    def test_categories_need_no_more_than_a_reference(self, reader, fair):
        page = get(reader, kind="categories", reference="0", **BUSY)
        assert [cells[0] for cells in rows_of(page)] == ["18-24", "25 &amp; older"]
        assert "are estimated from the same answers" in words(page)
        one = get(reader, kind="categories", reference="0", category="2", **BUSY)
        assert [cells[0] for cells in rows_of(one)] == ["25 &amp; older"]
        assert len(rows_of(one)[0]) == 5  # a single row needs no correction
        assert "Holm" not in words(one)

    def test_studies_with_the_same_categories_are_offered(self, reader, fair):
        alone = words(get(reader, kind="studies"))
        assert "No other study has an indicator with the same categories" in alone
        other_study()
        asked = get(reader, kind="studies")
        assert asked.context["state"] == "ask" and "The next fair: Band" in words(asked)
        page = get(reader, kind="studies", **BUSY, **{"with": "fair-2025/band", "with_from": "2025-05-30"})
        assert [cells[0] for cells in rows_of(page)] == ["&lt;18", "18-24", "25 &amp; older"]
        assert "The next fair, Fri 30 May 2025" in words(page)
        assert "because the same people may be in both." in words(page)
        whole = get(reader, kind="studies", **BUSY, **{"with": "fair-2025/band"})
        assert whole.context["comparison"].reference.window == Window(1, 3)

    def test_without_a_question_there_is_a_form(self, reader, fair):
        for kind in ("categories", "baseline", "studies"):
            page = get(reader, kind=kind)
            assert (page.status_code, page.context["state"]) == (200, "ask")
            # Without another study there is nothing to press, and the form says so.
            assert ("No comparison yet" in words(page)) == (kind != "studies")
        assert get(reader, kind="moons").context["kind"] == "windows"

    def test_windows_have_an_answer_from_the_start(self, reader, fair):
        for query, sides in (
            ({}, (Window(4, 4), Window(1, 1))),
            (BUSY, (Window(2, 4), Window(1, 1))),
            ({"from": "2024-05-30", "to": "2024-06-02"}, (Window(4, 4), Window(1, 1))),
            ({"from": "2024-05-31", "to": "2024-05-31"}, (Window(2, 2), Window(1, 1))),
        ):
            found = get(reader, **query).context["comparison"]
            assert (found.report.window, found.reference.window) == sides

    def test_rows_without_a_difference_are_folded_and_better_dates_proposed(self, reader, fair):
        page = get(reader, "gender", **{"from": "2024-05-30", "with_from": "2024-05-31"})
        found, better = page.context["comparison"], page.context["better_words"]
        assert (found.n_held, page.content.decode().count("<tbody>")) == (0, 1)
        proposed = better_windows(found)
        assert better == texts.proposal_words(proposed) and spaced(better) in words(page)
        query = dict(parse_qsl(page.context["better_query"]))
        assert bool(query) == proposed.tells

    def test_what_has_no_difference_is_explained(self, reader, fair):
        same = {"kind": "windows", **BUSY, "with_from": "2024-05-31", "with_to": "2024-06-02"}
        one = {"kind": "categories", **BUSY, "reference": "1", "category": "1"}
        for query in (same, one, {"kind": "baseline", **SECOND, "day": "2"}):
            assert get(reader, **query).context["state"] == "not_comparable"

    def test_nonsense_in_the_address_is_answered_in_words(self, reader, fair):
        other_study()
        for query in NONSENSE:
            page = get(reader, **query)
            assert page.status_code == 400, query
            assert "Invalid address" in words(page)
            assert "<script>" not in page.content.decode().replace('<script id="', "")
            assert "Compare" in words(page)
        gone = get(reader, kind="studies", **BUSY, **{"with": "gone/age"})
        assert gone.status_code == 400
        assert "There is no indicator named gone/age with the same categories." in words(gone)

    def test_days_without_numbers_are_named_and_a_study_without_any_has_nothing_to_compare(self, reader):
        study, asked = factory.create(), {"reference": "0", "with_from": "2024-05-30"}
        for kind in ("windows", "categories", "baseline"):
            assert get(reader, "gender", kind=kind, **SECOND, **asked).context["state"] == "not_comparable"
        factory.publish(study, factory.absent_on(factory.crowd(study), day=3))
        page = get(reader, "gender", kind="windows", **{"from": "2024-06-01"}, with_from="2024-05-30")
        assert "Sat 1 Jun 2024: not collected." in words(page)
        baseline = words(get(reader, "gender", kind="baseline", **FIRST))
        assert "Baseline days: 31 May, 2 Jun. Days left out because they have no figures: 1 Jun." in baseline

    def test_days_together_are_not_compared_where_people_answer_on_some_only(self, reader):
        factory.published(factory.HALF_STAY)
        assert get(reader, "stay", **WINDOWS).context["state"] == "union_not_available"
        file = reverse("reports:compare_file", args=["fair-2024", "stay", "csv"])
        assert reader.get(file, WINDOWS).status_code == 400
        assert get(reader, "stay").context["state"] == "result"  # of single days

    def test_files_hold_the_comparison_that_the_page_chose(self, reader, fair):
        page = get(reader, "gender").content.decode()
        (link,) = re.findall(r'href="([^"]+/compare\.csv[^"]*)"', page)
        file = reader.get(unescape(link))
        assert file.status_code == 200 and b"2024-05-30" in file.getvalue()

    def test_number_of_queries_does_not_grow(self, reader, fair, django_assert_max_num_queries):
        other_study()
        for kind, n in (("windows", 10), ("categories", 10), ("baseline", 10), ("studies", 13)):
            query = {"kind": kind, **SECOND, "with_from": "2024-05-30", "reference": "0"}
            if kind == "studies":
                query |= {"with": "fair-2025/band", "with_from": "2025-05-30"}
            with django_assert_max_num_queries(n):
                assert get(reader, **query).context["state"] == "result"

    def test_what_is_not_reliable_has_its_interval_and_neither_number_nor_verdict(self, reader):
        study = factory.published(n=400)
        days = {"from": "2024-05-30", "to": "2024-06-02", "with_from": "2024-05-30", "with_to": "2024-05-30"}
        page, gender = get(reader, "gender", kind="windows", **days), study.indicators.get(slug="gender")
        found = queries.compare_windows(gender, Window(1, 4), Window(1, 1), of="frequency")
        assert "No conclusion is possible: the figures of at least one side are not reliable" in words(page)
        for row, cells in zip(found.rows, rows_of(page), strict=True):
            assert cells[1] == f"? not reliable {texts.change_range(row, 'frequency')}"
            assert cells[2].startswith(formats.percent(row.value.value)) and cells[4] == "? not reliable"
            assert texts.change(row, "frequency") not in page.content.decode()
        assert "Holm" not in words(page)
        (trace,) = drawn_on(page, "undecided-figure")
        assert (trace["name"], trace["marker"]["symbol"]) == ("not reliable", "line-ew-open")
        assert all("not reliable" in text for text in trace["hovertext"])


class TestMovements:
    @pytest.mark.parametrize("show", Show)
    def test_table_and_chart_show_the_same_figures(self, reader, fair, show):
        page = moves(reader, show=show)
        assert Markup(page.content.decode()).refused == [] and "unsafe" not in page["Content-Security-Policy"]
        found, text, drawn = movement(fair.indicators.get(slug="age"), show=show), words(page), 0
        found, shown = consistent(found), page.context["shown"]
        for code, estimate in (each for point in found.points for each in enumerate(point.estimates)):
            drawn += estimate.ci_low is not None and (show in MEANS or code in shown)
            if estimate.status != "ok":
                continue
            if show in SHARES:
                assert spaced(formats.percent_range(estimate.ci_low, estimate.ci_high)) in text
            elif show == Show.DAYS_PRESENT:
                assert formats.decimal(estimate.value, decimals=2) in text
            else:
                assert spaced(formats.number(estimate.value)) in text
                assert spaced(formats.number_range(estimate.ci_low, estimate.ci_high)) in text
        traces, axis = drawn_on(page), "x" if show in MEANS else "y"
        assert sum(value is not None for trace in traces for value in trace[axis]) == drawn
        for trace in traces:
            whiskers = trace[f"error_{axis}"]
            assert all(up >= 0 for up in whiskers["array"] + whiskers["arrayminus"])

    def test_totals_are_exact_and_say_so_and_bounds_are_told_apart(self, reader, fair):
        page, found = moves(reader), movement(fair.indicators.get(slug="age"))
        for day in found.totals:
            numbers = (day.coverage.visitors, day.arrivals, day.returning, day.departures)
            assert spaced(" ".join(map(formats.number, numbers))) in words(page)
        assert f"days present per visitor {formats.decimal(found.key.mean_days, decimals=2)}" in words(page)
        first, again = drawn_on(page, "totals-figure")[:2]
        sums = [one + other for one, other in zip(first["y"], again["y"], strict=True)]
        assert sums == [day.coverage.visitors for day in found.totals]
        exact, bounds = (words(moves(reader, show=show)) for show in ("arrivals", "there_again"))
        assert [text.count("at least 95%") for text in (exact, bounds)] == [0, 3]  # and two days apart
        DayNote.objects.create(study=fair, day=3, kind="outage", text="mast down", by="olga")
        assert ["may seem to arrive later" in text for text in (exact, words(moves(reader)))] == [False, True]

    def test_choices_stay_in_every_link_and_day_and_window_are_taken_from_the_address(self, reader, fair):
        page = moves(reader, show="back_within", day="2024-05-31", category="1").content.decode()
        links = [link for link in Markup(page).links if link.startswith("?")]
        assert len(links) == len(Show)
        for link in links:
            assert "day=2024-05-31" in link and "category=1" in link
            assert moves(reader, **dict(pair.split("=") for pair in link[1:].split("&"))).status_code == 200
        assert '<option value="2024-05-31" selected>' in page
        found = moves(reader, show="there_again", day="2024-06-01").context["found"]
        assert (found.cohort, len(found.points)) == (3, 1)
        found = moves(reader, show="window", **{"from": "2024-06-02", "to": "2024-05-31"}).context["found"]
        assert (found.window.first_day, found.window.last_day) == (2, 4)

    @pytest.mark.parametrize(
        ("query", "said"),
        [
            ({"show": "profit"}, "no figure named “profit”"),
            ({"show": "there_again", "day": "2024-06-02"}, "2024-06-02 cannot be chosen here."),
            ({"show": "there_again", "day": "tomorrow"}, "not “tomorrow”"),
            ({"show": "window", "from": "2024-05-30", "to": "2024-05-31"}, "Choose days after the first"),
            ({"show": "window", "from": "2024-05-31", "to": "2025-05-31"}, "2025-05-31 cannot be chosen"),
        ],
    )
    def test_nonsense_in_the_address_is_explained(self, reader, fair, query, said):
        answer = moves(reader, **query)
        assert answer.status_code == 400 and said in answer.content.decode()
        assert answer.context["found"].points  # and the page has something to continue with

    def test_values_that_change_have_fewer_figures_and_answers_on_some_days_only_totals(self, reader, fair):
        assert moves(reader, "stay", show="departures").status_code == 400
        Study.objects.update(slug="every-day")
        factory.published(factory.HALF_STAY)
        page = moves(reader, "stay")
        assert (page.context["found"].points, "Only totals are shown" in words(page)) == ((), True)

    def test_a_study_without_data_or_answers_or_of_one_day_says_so(self, reader):
        study, page = factory.create(), moves(reader, "gender").content.decode()
        assert "No data yet" in page and "plotly" not in page
        factory.publish(study, factory.unanswered(factory.crowd(study, n=200)))
        text = words(moves(reader))
        assert "There are no answers to show" in text and "not collected" in text
        Study.objects.update(slug="unanswered")
        factory.published(days=1)
        assert "there can be no returning visitors" in words(moves(reader))

    def test_categories_of_the_chart_can_be_chosen(self, reader):
        factory.published(factory.MANY)
        assert len({trace["name"] for trace in drawn_on(moves(reader, "region"))}) == 5
        page = moves(reader, "region", category=["2", "11", "99", "x"])
        names = [trace["name"] for trace in drawn_on(page) if trace.get("showlegend", True)]
        assert names == ["Region C", "Region L"]
        assert page.content.decode().count('<tr><th scope="row">Region') == 12  # the table has all of them

    def test_page_of_a_long_study_stays_light(self, reader):
        factory.published(factory.indicator("region", *(f"Region {code}" for code in range(100))), days=62)
        for show, is_cut in ((Show.ARRIVALS, True), (Show.THERE_AGAIN, True), (Show.WINDOW, False)):
            answer = moves(reader, "region", show=show)
            assert len(answer.content) < 500_000
            assert ("too large to read" in answer.content.decode()) == is_cut

    def test_page_takes_few_queries(self, reader, fair, django_assert_num_queries):
        moves(reader)
        with django_assert_num_queries(15):
            moves(reader, show="there_again")
        with django_assert_num_queries(11):  # the figures are kept
            moves(reader, show="there_again")


def test_the_report_and_other_indicators_link_here_with_their_days(reader, fair):
    report = reader.get(reverse("reports:indicator", args=["fair-2024", "age"]), BUSY).content.decode()
    moved, compared = (
        reverse(f"reports:{name}", args=["fair-2024", "age"]) for name in ("movement", "compare")
    )
    days = "?from=2024-05-31&to=2024-06-02"
    assert {compared + days, moved + days} <= set(Markup(report).links)
    assert moved in Markup(moves(reader, "gender").content.decode()).links
