"""The first page, the list of studies, the page of one, of an indicator in a window and by day; costs."""

import re
from dataclasses import replace
from datetime import date
from decimal import Decimal
from html import unescape
from urllib.parse import urlencode

import numpy as np
import pytest
from django.http import QueryDict
from django.template.loader import render_to_string
from django.test import Client
from django.urls import reverse

from reports.base import formats
from reports.base.status import Status
from reports.estimates import charts, options
from reports.estimates import queries as selectors
from reports.estimates import texts as estimates_texts
from reports.estimates.notes import note_day
from reports.estimates.options import CHOICES, ReportOptions, ordered, shown_value
from reports.estimates.picker import build_picker
from reports.estimates.queries import Window, WindowReport, surely_present
from reports.models import DayNote, Study
from reports.pages import days
from reports.studies.studyfile import VISIT_DURATION_BANDS
from reports.templatetags.wording import share_cell, total_cell
from tests.reports import map_factory
from tests.reports import report_factory as factory
from tests.reports.page_texts import Markup, data_of, get, page, text_of

pytestmark = pytest.mark.django_db
NOWHERE = "You do not have access to any study yet"
WINDOW = {"from": "2024-05-31", "to": "2024-06-01"}
CHOSEN = {"view": "table", "order": "natural", "measure": "visitors", "values": "unbiased"}


def home_of(client: Client, user) -> str:
    client.force_login(user)
    return client.get(reverse("home")).content.decode()


@pytest.mark.django_db(databases=["default", "vault"])
def test_everybody_is_sent_to_their_own_pages(request, client) -> None:
    addresses = {name: reverse(f"{name}:studies") for name in ("reports", "operator", "administrator")}
    for role, expected in (
        ("analyst", {"reports"}),
        ("operator", {"operator"}),
        ("administrator", {"reports", "administrator"}),
        ("stranger", set()),
    ):
        html = home_of(client, request.getfixturevalue(role))
        assert {name for name, address in addresses.items() if f'href="{address}"' in html} == expected
        assert ("Ask the administrator" in html) == (role == "stranger")
        assert (NOWHERE in html) == (role == "analyst")
        assert (reverse("administrator:create") in html) == (role == "administrator")
    factory.create()
    assert "The fair" not in home_of(client, request.getfixturevalue("operator"))


def test_anonymous_signs_in_and_comes_back(client, analyst, password) -> None:
    wanted = reverse("reports:studies")
    form = client.get(wanted, follow=True)
    assert "Sign in" in form.content.decode()
    wrong = client.post(reverse("login"), {"username": analyst.username, "password": "wrong"})
    assert 'role="alert"' in wrong.content.decode()
    given = {"username": analyst.username, "password": password, "next": wanted}
    assert client.post(form.redirect_chain[-1][0], given)["Location"] == wanted


def test_lost_pages_forged_forms_and_faults_are_explained(reader) -> None:
    forged = Client(enforce_csrf_checks=True).post(reverse("login"), {"username": "x", "password": "y"})
    lost = (reader.get("/nothing-here/"), 404, "Page not found")
    for answer, status, words in (lost, (forged, 403, "reload the page")):
        assert (answer.status_code, words in answer.content.decode()) == (status, True)
    assert "Something went wrong" in render_to_string("500.html")  # needs no request


def test_home_and_list_show_state_coverage_and_next_step(client, analyst) -> None:
    factory.published(slug="done-2024", name="Done")
    factory.published(slug="part-2024", name="Part", gap=2)
    factory.create(slug="new-2024", name="New")
    html, listed = home_of(client, analyst), page(client, "studies")
    missing = "Next: an operator uploads the missing extract for Fri 31 May 2024."
    for text in ("4 of 4", "3 of 4", "0 of 4", "All days are published", missing):
        assert html.count(text) == 1, text
    leads = [
        html.count(f'href="{reverse("reports:indicator", args=[f"{each}-2024", "age"])}"')
        for each in ("done", "new")
    ]
    assert leads == [1, 0]
    for words in (formats.number(4000), "4 of 4", "3 of 4", "0 of 4", "All days are published."):
        assert words in listed
    assert listed.count("no data yet") == 1
    assert ("an operator uploads the extract for the first day" in html, "demo" in html) == (True, False)


def test_study_page_says_who_counts_how_answers_are_protected_and_its_key_figures(reader, fair) -> None:
    text = page(reader, "study")
    visitors = selectors.visitor_unions(fair)
    daily = [int(visitors[day, day]) for day in range(1, 5)]
    for words in (
        "at least 60 minutes",
        "06:00 to 23:59 local time (Europe/Paris)",
        "All cells in the extract",
        "one of the 3 indicators",
        f"<dd>{formats.number(int(visitors[1, 4]))}</dd>",
        f"{formats.number(max(daily))} visitors",
        f"<dd>{formats.decimal(sum(daily) / int(visitors[1, 4]), decimals=2)}</dd>",
        "Figures without a range are exact",
        *(reverse("reports:indicator", args=["fair-2024", each.slug]) for each in fair.indicators.all()),
    ):
        assert words in text


def test_calendar_marks_each_day_and_leads_those_who_write_notes_to_them(reader, client, administrator):
    study = factory.published(gap=3)
    note_day(study, day=date(2024, 6, 2), kind=DayNote.Kind.EVENT, text="Fireworks", by="adam")
    text = page(reader, "study")
    calendar = text.split('class="month"')[1].split("</table>")[0]
    found = {word: calendar.count(f">{word}<") for word in ("published", "not collected", "event")}
    assert found == {"published": 3, "not collected": 1, "event": 1}
    for day in ("2024-05-30", "2024-06-01"):
        assert f"?from={day}&amp;to={day}" in calendar
    assert "3 of 4 days are published. Next day to publish: Sat 1 Jun 2024." in text and "Fireworks" in text
    notes = reverse("reports:notes", args=["fair-2024"])
    assert notes not in page(reader, "study")
    client.force_login(administrator)
    assert notes in page(client, "study")


@pytest.mark.parametrize(
    ("name", "args", "queries"),
    [
        # each: session, user, groups, grants
        ("home", (), 4 + 7),  # studies, of events, indicators, notes, kept views, boards; names
        ("reports:studies", (), 4 + 3 + 3),  # studies, indicators, notes; kept views; names; of events
        # study, plan, visitors, notes, area, zones, indicators, slots, boards; state: plans, notes,
        # publications, layers
        ("reports:study", ("fair-2024",), 4 + 9 + 4),
        # study, indicators, visitors, zones, tally, notes
        ("reports:indicator", ("fair-2024", "gender"), 4 + 6),
        # study, indicators, plan; state: plans, notes, publications
        ("reports:days", ("fair-2024", "gender"), 4 + 6),
        # study, plan, indicators (3), area, typed epsilons, versions; studies, plans, deleted of the people
        ("reports:statement", ("fair-2024",), 4 + 13),
    ],
)
def test_number_of_queries_does_not_grow(reader, fair, name, args, queries, django_assert_num_queries):
    big = [factory.GENDER, factory.AGE, factory.MANY, factory.STAY]
    factory.published(*big, slug="other-2024", days=14, n=100)
    for slug in ("fair-2024", "other-2024"):
        address = reverse(name, args=[slug, *args[1:]] if args else [])
        reader.get(address)  # makes what is kept
        with django_assert_num_queries(queries):
            assert reader.get(address).status_code == 200


def test_categories_not_above_zero_are_summed_up(reader) -> None:
    study = factory.published(factory.MANY, n=1500)
    report = report_of(study, "region", 1, 4)
    found = surely_present(report)
    assert 0 < len(found) < 11
    html = page(reader, "indicator", "region")
    assert f"{len(found)} of 12 categories are significantly above zero." in text_of(html)
    answer = get(reader, "indicator", "region", group="found")
    grouped = answer.context["estimates"]
    assert f"an estimated {formats.percent(grouped[0].consistent)}" in answer.context["summary"]
    assert [each.category for each in grouped] == [*(each.category for each in found), "Other categories"]
    rest = grouped[-1]
    others = [each for each in report.estimates if each not in found]
    assert rest.frequency == pytest.approx(sum(each.frequency for each in others))
    assert sum(each.consistent for each in grouped) == pytest.approx(1)
    assert "differ slightly" in answer.content.decode() and "differ slightly" not in html
    # noise of the parts cancels out: independent errors would add up to more
    assert rest.std_error < np.sqrt(sum(each.std_error**2 for each in others))
    assert rest.ci_low < rest.frequency < rest.ci_high


def test_groups_of_categories_are_summed_up_with_their_exact_error(reader) -> None:
    names = factory.MANY.categories
    groups = (("North", names[:3]), ("South", names[5:7]))
    study = factory.published(replace(factory.MANY, groups=groups), n=3000)
    report = report_of(study, "region", 1, 4)
    assert "Show groups of categories" in text_of(page(reader, "indicator", "region"))
    answer = get(reader, "indicator", "region", group="groups", order="natural", values="unbiased")
    north, south, rest = answer.context["estimates"]
    assert [each.category for each in (north, south, rest)] == ["North", "South", "Other categories"]
    assert north.frequency == pytest.approx(sum(each.frequency for each in report.estimates[:3]))
    assert north.frequency + south.frequency + rest.frequency == pytest.approx(1)
    assert rest.std_error < np.sqrt(sum(each.std_error**2 for each in report.estimates[3:5]) * 7 / 2)
    assert all(each.ci_low < each.frequency < each.ci_high for each in (north, south, rest))


def test_groups_whose_intervals_are_too_wide_have_no_estimates_in_words(reader) -> None:
    halves = factory.MANY.categories[:6], factory.MANY.categories[6:]
    groups = tuple(zip(("North", "South"), halves, strict=True))
    factory.published(replace(factory.MANY, groups=groups), n=400)
    assert "an estimated" in get(reader, "indicator", "region").context["summary"]
    answer = get(reader, "indicator", "region", group="groups")
    assert {each.status for each in answer.context["estimates"]} == {Status.NOT_RELIABLE}
    assert "an estimated" not in answer.context["summary"]


def test_a_study_shows_each_indicator_in_the_days_chosen(reader) -> None:
    study = factory.published(factory.GENDER, factory.MANY, factory.HALF_STAY)
    many = report_of(study, "region", 2, 3)
    answer = get(reader, "study", **WINDOW)
    html = answer.content.decode()
    assert {shown.tile.of: bool(shown.figure) for shown in answer.context["tiles"]} == {
        "gender": True, "region": True, "stay": False,
    }  # fmt: skip
    shown = sorted((each.consistent * 100 for each in many.estimates), reverse=True)[:6]
    assert data_of(html, "figure-2")["data"][0]["x"] == pytest.approx(shown, abs=1e-3)
    text = text_of(html)
    assert "6 smaller categories are not shown." in text
    assert "Only single days are available for this indicator." in text
    assert answer.context["figures"].n_visitors == many.n_visitors
    assert get(reader, "study", **{"from": "2031-01-01"}).status_code == 400


def test_visitors_per_day_are_those_of_the_days_chosen(reader, fair) -> None:
    visitors = selectors.visitor_unions(fair)
    for window, (first, last) in (({}, (1, 4)), (WINDOW, (2, 3))):
        answer = get(reader, "study", **window)
        html = answer.content.decode()
        days = list(range(first, last + 1))
        assert data_of(html)["data"][0]["x"] == days
        rows = html.split('<caption class="visually-hidden">Visitors per day')[1].split("</table>")[0]
        assert rows.count('<th scope="row">') == len(days)
        total = formats.number(int(visitors[first, last]))
        assert f"On these days together, there were {total} unique visitors." in text_of(html)


def test_nr_is_explained_where_a_reader_sees_it(reader) -> None:
    answered = replace(
        factory.GENDER, categories=("F", "M", "NR"), categories_fr=("Femmes", "Hommes", "Inconnu")
    )
    factory.published(answered, replace(factory.MANY))
    words = "NR means “not recorded”"
    for name, args in (("indicator", ["gender"]), ("days", ["gender"]), ("study", [])):
        html = page(reader, name, *args)
        assert html.count(words) == 1, name
    assert words not in page(reader, "indicator", "region")
    answer = reader.get(
        reverse("reports:indicator", args=["fair-2024", "gender"]), headers={"Accept-Language": "fr"}
    )
    html = answer.content.decode()
    assert "Inconnu" in html and "NR" not in text_of(html)  # the French name says it


def test_pages_say_which_visits_have_a_duration(reader) -> None:
    duration = replace(factory.STAY, categories=VISIT_DURATION_BANDS)
    factory.published(duration)
    for language, label, words in (
        ("en", "1 to 2 hours", "Only visits of 1 to 18 hours have a duration here."),
        ("fr", "1 à 2 heures", "Seules les visites de 1 à 18 heures ont une durée ici."),
    ):
        for name, args in (("indicator", ["stay"]), ("days", ["stay"]), ("study", [])):
            answer = reader.get(
                reverse(f"reports:{name}", args=["fair-2024", *args]), headers={"Accept-Language": language}
            )
            shown = text_of(answer.content.decode())
            assert label in shown and words in shown and "Duration 2h" not in shown
    assert b"Duration 2h" in reader.get("/studies/fair-2024/stay/days.csv").content


def test_a_study_of_zones_shows_one_map_in_the_days_chosen(reader) -> None:
    again = replace(map_factory.HOME, slug="work", name="Work")
    map_factory.create(factory.GENDER, map_factory.HOME, again)
    for window in (WINDOW, {"from": "2024-06-01", "to": "2024-06-01"}):
        answer = get(reader, "study", **window)
        on_map = [(shown.tile.of, shown.title) for shown in answer.context["tiles"] if shown.map]
        assert on_map == [("home", "Home: map")]
        html = answer.content.decode()
        first, last = map(date.fromisoformat, window.values())
        assert data_of(html, "map-4")["frame"]["title"] == formats.window_title(first, last)
        assert "js/map.js" in html and "South west" in html
    other = factory.published(factory.GENDER, slug="no-zones")
    assert "js/map.js" not in reader.get(reverse("reports:study", args=[other.slug])).content.decode()


def test_a_study_leads_to_share_links_geojson_and_qgis_unless_one_only_reads(reader, client, viewer) -> None:
    study = map_factory.create(factory.GENDER, map_factory.HOME, factory.HALF_STAY)
    html = get(reader, "study", **WINDOW).content.decode()
    shares = [reverse("access:new_share", args=[study.slug, slug]) for slug in ("gender", "home", "stay")]
    geojson = reverse("reports:indicator_file", args=[study.slug, "home", "geojson"])
    query = "?from=2024-05-31&to=2024-06-01"
    menus = [shares[0] + query, shares[1] + query, shares[2], geojson + query]  # no sums of days of the last
    for address in menus:
        assert f'href="{address.replace("&", "&amp;")}"' in html
        assert reader.get(address).status_code == 200
    qgis = f"http://testserver/api/v1/studies/{study.slug}/features/"
    assert f">{qgis}</pre>" in html
    assert reader.get(qgis).json()["links"]
    assert html.count(".geojson") == 1
    client.force_login(viewer)
    read_only = get(client, "study", **WINDOW).content.decode()
    assert not any(words in read_only for words in ("share/", ".geojson", qgis))


# --- all days of an indicator ---------------------------------------------------------------------------
def test_days_page_has_each_estimate_and_its_cells_are_escaped(reader, fair) -> None:
    text = page(reader, "days", "stay")
    singles = selectors.single_days_of(fair)
    for report in selectors.indicator_reports(fair.indicators.get(slug="stay"), singles):
        for estimate in report.estimates:
            assert f"{formats.percent(estimate.frequency)}<br>" in text
            assert estimates_texts.share_range(estimate) in text
        assert f"?from={report.first_date}&amp;to={report.last_date}" in text
        assert f">{formats.number(report.n_reports)}</td>" in text
    estimate = selectors.window_report(fair.indicators.get(slug="age"), Window(1, 1)).estimates[0]
    interval = f'<span class="muted small">{estimates_texts.share_range(estimate)}</span>'
    assert share_cell(estimate) == f"{formats.percent(estimate.frequency)}<br>{interval}"
    assert "&lt;</span>suppressed" in total_cell(None, "suppressed")
    assert total_cell(0, "ok") == "0"


def test_reader_chooses_the_lines(reader) -> None:
    factory.published(factory.MANY)

    def names(query: str) -> list[str]:
        address = reverse("reports:days", args=["fair-2024", "region"])
        html = reader.get(f"{address}{query or '?'}&form=lines").content.decode()
        return [trace["name"] for trace in data_of(html)["data"] if "name" in trace]

    assert names("?category=11&category=2") == ["Region C", "Region L"]
    assert len(names("")) < options.MAX_LINES
    assert len(names("?" + "&".join(f"category={code}" for code in range(12)))) == options.MAX_LINES
    # nonsense is as good as no choice
    assert names("?category=12&category=x&category=-1&category=²") == names("")


def test_cumulated_days_are_the_unions_from_the_first_day(reader, fair) -> None:
    note_day(fair, day=date(2024, 6, 1), kind=DayNote.Kind.EVENT, text="Fireworks & music", by="adam")
    text = page(reader, "days", "age", show="cumulative", form="lines")
    unions = [Window(1, day) for day in range(1, 5)]
    reports = selectors.indicator_reports(fair.indicators.get(slug="age"), unions)
    line = data_of(text)["data"][1]
    assert line["x"] == [1, 2, 3, 4]
    assert line["y"] == pytest.approx([100 * r.estimates[0].frequency for r in reports], abs=1e-3)
    for report in reports:
        assert f">{formats.number(report.n_visitors)}</td>" in text
        assert f"?from=2024-05-30&amp;to={report.last_date}" in text
    for shown in (text, page(reader, "days", "age")):
        assert shown.count("Fireworks &amp; music") == 1  # notes are above the chart


def test_small_charts_have_one_scale_and_all_categories(reader) -> None:
    study = factory.published(factory.MANY)
    text = page(reader, "days", "region")
    names = re.findall(r'<script id="(figure[^"]*)"', text)
    asked = selectors.single_days_of(study)
    reports = selectors.indicator_reports(study.indicators.get(slug="region"), asked)
    sizes = [sum(each.estimates[code].consistent for each in reports) for code in range(12)]
    by_size = sorted(range(12), key=sizes.__getitem__, reverse=True)
    assert names == [f"figure-{code}" for code in by_size]
    found = [data_of(text, name) for name in names]
    ((low, high),) = {tuple(figure["layout"]["yaxis"]["range"]) for figure in found}
    ends = [y for figure in found for trace in figure["data"] for y in trace["y"] if y is not None]
    assert low <= min(ends) and max(ends) <= high
    assert (text.count('role="img"'), Markup(text).refused) == (12, [])


@pytest.mark.parametrize("measure", ["frequency", "visitors"])
def test_days_show_consistent_values_and_unbiased_ones_on_request(reader, measure) -> None:
    study = factory.published(factory.MANY)
    asked = selectors.single_days_of(study)
    reports = selectors.indicator_reports(study.indicators.get(slug="region"), asked)
    for values in ("consistent", "unbiased"):
        text = page(reader, "days", "region", measure=measure, values=values)
        how = ReportOptions(measure=measure, values=values)
        for code in (0, 11):
            pairs = [(report, report.estimates[code]) for report in reports]
            wanted = [shown_value(*pair, options=how).value for pair in pairs]
            drawn = data_of(text, f"figure-{code}")["data"][1]["y"]
            scale, word = (100, formats.percent) if measure == "frequency" else (1, formats.number)
            assert drawn == pytest.approx([scale * each for each in wanted], abs=0.06)
            assert [each for each in wanted if f"{word(each)}<br>" not in text] == []


def test_the_number_in_a_chart_of_visitors_is_in_its_sentence_and_table(reader) -> None:
    study = factory.published()
    report = selectors.window_report(study.indicators.get(slug="age"), Window(1, study.days))
    top = max(report.estimates, key=lambda each: each.frequency)
    shown = formats.number(options.shown_visitors(report, top, values="consistent").value)
    html = page(reader, "indicator", "age", measure="visitors")
    assert f"an estimated {shown}, or {formats.percent(top.consistent)}" in text_of(html)
    assert f'data-head="Consistent visitors">{shown}</td>' in html


def test_visitors_are_drawn_and_tabled_and_links_keep_options_and_categories(reader, fair) -> None:
    text = page(reader, "days", "age", measure="visitors", form="lines")
    reports = selectors.indicator_reports(fair.indicators.get(slug="age"), selectors.single_days_of(fair))
    line = data_of(text)["data"][1]
    assert line["y"] == pytest.approx([report.estimates[0].visitors for report in reports], abs=0.06)
    for report in reports:
        assert estimates_texts.visitors_range(report.estimates[0]) in text
    chosen = {"category": "2", "show": "cumulative", "measure": "visitors"}
    links = Markup(page(reader, "days", "age", **chosen)).links
    assert "?category=2&show=cumulative&form=lines&measure=visitors" in links
    other = reverse("reports:days", args=["fair-2024", "gender"])
    assert f"{other}?show=cumulative&measure=visitors" in links


def test_a_large_table_comes_in_parts_that_keep_what_was_asked_for(reader, monkeypatch) -> None:
    monkeypatch.setattr(days, "CELLS_SHOWN", 4 * 10)  # ten categories of four days
    factory.published(factory.MANY)
    asked = {"category": "2", "measure": "visitors"}
    first = page(reader, "days", "region", **asked)
    assert "Data table, categories 1 to 10 of 12" in first
    assert first.count('<th scope="row">Region') == 10
    assert "?category=2&measure=visitors&page=2#numbers-title" in Markup(first).links
    last = page(reader, "days", "region", **asked, page="2")
    assert "categories 11 to 12 of 12" in last
    assert "?category=2&measure=visitors&page=1#numbers-title" in Markup(last).links
    assert page(reader, "days", "region", page="nonsense").count('<th scope="row">Region') == 10


def test_totals_of_a_day_without_data_are_blanks_and_every_cell_names_its_day(reader) -> None:
    factory.published(gap=3)
    html = page(reader, "days", "age")
    cells = re.findall(r'<td class="number" data-head="([^"]+)">(.*?)</td>', html, re.DOTALL)
    assert [head for head, _ in cells] == ["30 May", "31 May", "1 Jun", "2 Jun"] * 5  # 3 categories, 2 totals
    assert all(("not collected" in cell) == (head == "1 Jun") for head, cell in cells)
    assert 'data-head="to 2 Jun"' in page(reader, "days", "age", show="cumulative")


# --- an indicator in a window ---------------------------------------------------------------------------
def report_of(study: Study, slug: str, *window: int) -> WindowReport:
    return selectors.window_report(study.indicators.get(slug=slug), Window(*window))


def test_table_chart_and_totals_show_the_estimates(reader, fair) -> None:
    html = page(reader, "indicator", "age", **WINDOW)
    report = report_of(fair, "age", 2, 3)
    text = text_of(html)
    assert f'id="n-visitors">{formats.number(report.n_visitors)}<' in html
    assert f'id="n-reports">{formats.number(report.n_reports)}<' in html
    assert "Fri 31 May 2024 to Sat 1 Jun 2024 (2 days)" in text
    for estimate in report.estimates:
        share = f"{formats.percent(estimate.frequency)} {estimates_texts.share_range(estimate)}"
        visitors = f"{formats.number(estimate.visitors)} {estimates_texts.visitors_range(estimate)}"
        assert f"{share} {visitors} " in text
    shares = data_of(html)["data"][0]["x"]
    assert shares == pytest.approx([100 * estimate.frequency for estimate in report.estimates], abs=1e-4)


def test_window_is_the_whole_study_or_a_day_or_what_lies_between_and_others_are_refused(reader, fair) -> None:
    for query, window in (
        ({}, Window(1, 4)),
        ({"from": "2024-06-01"}, Window(3, 3)),
        ({"from": "2024-06-02", "to": "2024-05-31"}, Window(2, 4)),
    ):
        assert get(reader, "indicator", "gender", **query).context["report"].window == window
    for day in ("2024-07-01", "tomorrow", "2024-02-30"):
        answer = get(reader, "indicator", "gender", **{"from": day})
        assert answer.status_code == 400
        assert "These days are outside the study" in answer.content.decode()
        assert 'class="triangle"' in answer.content.decode()


def test_every_window_is_one_link_with_its_days_and_visitors(reader, fair) -> None:
    grid = page(reader, "indicator", "gender").split('role="grid"')[1].split("</table>")[0]
    links = Markup(grid).links
    unions = selectors.visitor_unions(fair)
    for window in selectors.windows_of(fair):
        first, last = fair.date_of(window.first_day), fair.date_of(window.last_day)
        link = links[f"?from={first}&to={last}"]
        visitors = formats.number(unions[window.first_day, window.last_day])
        assert link["title"] == f"{formats.window_title(first, last)}: {visitors} visitors"
    assert page(reader, "indicator", "gender", **{"from": str(first), "to": str(last)})


def test_each_page_of_an_indicator_leads_to_the_others(reader, fair) -> None:
    names = ("indicator", "days", "compare", "movement", "scenario")
    report, *others = (reverse(f"reports:{name}", args=["fair-2024", "age"]) for name in names)
    selected_categories = f'href="{reverse("reports:crosstab", args=["fair-2024"])}?indicator=age&amp;'
    for address in (report, *others):
        found_page = reader.get(address).content.decode()
        assert (selected_categories in found_page) == (address == report)
        tabs = found_page.split('<nav class="pages')[1].split("</nav>")[0]
        found = {link.split("?")[0] for link in re.findall(r'href="([^"]+)"', tabs)}
        assert found == {report, *others}
        assert re.findall(r'href="([^"?]+)[^"]*" aria-current="page"', tabs) == [address]


@pytest.mark.parametrize("asked", [WINDOW, {"from": "2024-05-30", "to": "2024-05-30"}])
def test_the_chosen_days_go_along_to_every_page_of_an_indicator_and_back_to_the_study(reader, fair, asked):
    days, seen = urlencode(asked), set()
    for name in ("indicator", "days", "compare", "movement", "scenario"):
        html = page(reader, name, "age", **asked)
        ways = html.split('class="breadcrumbs"')[1].split("</nav>")[0]
        tabs = html.split('<nav class="pages')[1].split("</nav>")[0]
        links = {unescape(link) for link in re.findall(r'href="([^"]+)"', ways + tabs)}
        assert all(days in link for link in links - {reverse("reports:studies")}), name
        seen |= links
    assert len(seen) > 5 and {reader.get(link).status_code for link in seen} == {200}


def test_privacy_is_said_with_the_certified_numbers(reader, fair) -> None:
    lasting = text_of(page(reader, "indicator", "gender"))
    # a daily indicator of four days: 4 answers at epsilon 1
    for words in (
        "epsilon 1 per answer",
        "in this study, taken together, are protected with epsilon 4 (privacy unit: profile)",
        "visitor totals are exact",
        "Of 100 answers, about 58 give the true category",
        "by a factor of at most 2.72",
        "The odds of a correct guess about that person then change by a factor of at most 54.60",
    ):
        assert words in lasting
    daily = text_of(page(reader, "indicator", "stay"))
    assert "gives at most 4 answers, one per day" in daily and "one per day" not in lasting


@pytest.mark.parametrize(("n", "is_wide"), [(400, True), (40_000, False)])
def test_imprecise_reports_say_so(reader, n, is_wide) -> None:
    factory.published(n=n)
    assert ("Low precision:" in page(reader, "indicator", "gender")) is is_wide
    for day in range(1, 5):
        DayNote.objects.create(study=Study.objects.get(), day=day, kind="outage", text="No mast", by="olga")
    assert "Low precision:" not in page(reader, "indicator", "gender")


def test_attribute_unit_and_voided_days_are_named(reader) -> None:
    study = factory.create(unit="attribute", epsilon="0.5")
    factory.publish(study, factory.crowd(study), voided_days=1)
    for name, slugs, said in (
        ("indicator", ["gender"], "is protected with epsilon 0.5 (privacy unit: attribute)"),
        ("statement", [], "(privacy unit: attribute), is protected with epsilon 0.5."),
    ):
        text = text_of(page(reader, name, *slugs))
        assert said in text and "The uploads for 1 published day were undone" in text
    assert "epsilon is 2.5." in text_of(page(reader, "indicator", "gender"))  # 4 days and the voided one


def test_attribute_promise_of_fake_data_is_said_with_all_its_numbers(reader) -> None:
    """Two indicators at epsilon 1: answers and profiles have ln(2 e - 1) = 1.4898."""
    factory.published(factory.GENDER, factory.MANY, mechanism="rsfd-ouez", unit="attribute")
    numbers = "epsilon is 1.4899.", "guess about that value by a factor of at most 2.72", "at most 4.44"
    rows = "Certified epsilon per profile 1.4899", "1.4899 1 50 \u00d7 2.72"
    for name, slugs, texts in (("indicator", ["gender"], numbers), ("statement", [], rows)):
        text = text_of(page(reader, name, *slugs))
        assert [said for said in texts if said not in text] == []


def test_no_data_no_visitors_and_no_answers_are_told_apart(reader) -> None:
    def check(state: str, words: str, **query: str) -> None:
        answer = get(reader, "indicator", "gender", **query)
        assert (answer.context["state"], words in answer.content.decode()) == (state, True)

    assert NOWHERE in page(reader, "studies")
    study = factory.create()
    text = page(reader, "study")
    assert ("No data yet" in text, "plotly" in text) == (True, False)
    assert "No data yet" in page(reader, "days", "stay")
    check("no_data", "No data yet")
    factory.publish(study, factory.absent_on(factory.unanswered(factory.crowd(study, n=200)), day=3))
    check("no_answers", "There were 200 visitors")
    check("empty_window", "No visitors on these days", **{"from": "2024-06-01"})


def test_union_that_does_not_exist_is_explained_and_days_are_shown_instead(reader) -> None:
    factory.published(factory.GENDER, factory.HALF_STAY)
    text, day = page(reader, "days", "stay", show="cumulative"), "?from=2024-05-31&amp;to=2024-05-31"
    for words in ("Cumulative figures are not available here", "on at most 2 of the 4 days", day):
        assert words in text
    assert "Cumulative figures are not available here" not in page(reader, "days", "stay")
    answer = get(reader, "indicator", "stay", **{"from": "2024-05-30", "to": "2024-05-31"})
    assert answer.context["state"] == "union_not_available"
    assert "on at most 2 of the 4 days" in answer.content.decode()
    assert answer.content.decode().count("<select") == 1
    assert get(reader, "indicator", "stay").context["state"] == "report"  # without a choice: a day


def read(text: str) -> ReportOptions:
    return ReportOptions.from_query(QueryDict(text))


def test_every_choice_survives_the_address_and_nonsense_is_the_default() -> None:
    assert ReportOptions().query("from=a&to=b") == "from=a&to=b"
    for name, values in CHOICES.items():
        for value in values:
            assert read(ReportOptions(**{name: value}).query("")) == ReportOptions(**{name: value})
    for text in ("from=2024-05-30", "view=pie", "order=", "values=Unbiased", "measure=frequency%00"):
        assert read(text) == ReportOptions()


def test_sorted_is_largest_first_and_keeps_every_category() -> None:
    report = report_of(factory.published(factory.MANY, epsilon="0.5"), "region", 1, 4)
    for values, attribute in (("unbiased", "frequency"), ("consistent", "consistent")):
        found = ordered(report, options=ReportOptions(order="sorted", values=values))
        sizes = [getattr(estimate, attribute) for estimate in found]
        assert sizes == sorted(sizes, reverse=True)
        assert {estimate.category for estimate in found} == {e.category for e in report.estimates}
        zeros = [each.frequency for each in found if each.consistent == 0]
        assert len(zeros) > 1 and zeros == sorted(zeros, reverse=True)
    assert ordered(report, options=ReportOptions(order="natural")) == report.estimates


def test_shown_values_are_those_of_the_report() -> None:
    report = report_of(factory.published(market_share=Decimal("0.5")), "gender", 1, 4)
    of = report.estimates[0]
    visitors = (of.visitors, of.consistent * report.n_visitors / 0.5, of.visitors_ci_low, of.visitors_ci_high)
    shares = (of.frequency, of.consistent, of.ci_low, of.ci_high)
    for measure, (*expected, low, high) in (("frequency", shares), ("visitors", visitors)):
        for values, value in zip(("unbiased", "consistent"), expected, strict=True):
            shown = shown_value(report, of, options=ReportOptions(measure=measure, values=values))
            assert (shown.value, shown.low, shown.high) == (pytest.approx(value), low, high)


def test_chart_shows_what_was_asked_for(reader, fair) -> None:
    report = report_of(fair, "age", 1, 4)
    figure = data_of(page(reader, "indicator", "age", measure="visitors", values="unbiased"))
    visitors = sorted((estimate.visitors for estimate in report.estimates), reverse=True)
    assert figure["data"][0]["x"] == pytest.approx(visitors, abs=0.06)
    assert figure["data"][1]["text"][0].strip() == formats.number(visitors[0])
    bars = charts.report_figure(report, options=ReportOptions(values="consistent"))["data"][0]
    assert sum(bars["x"]) == pytest.approx(100, abs=1e-3)
    for place, estimate in enumerate(report.estimates):  # lines stay those of the unbiased estimates
        high = bars["x"][place] + bars["error_x"]["array"][place]
        assert high == pytest.approx(100 * estimate.ci_high, abs=1e-3)


def test_view_shows_chart_or_table_or_both(reader, fair) -> None:
    for view, has_chart, has_table in (("both", True, True), ("chart", True, False), ("table", False, True)):
        html = page(reader, "indicator", "gender", view=view)
        assert ('data-figure="figure"' in html, ">Answers received</th>" in html) == (has_chart, has_table)
        assert "in the largest " in html  # the summary in words is always there


def test_every_link_and_form_keeps_the_options(reader, fair) -> None:
    html = page(reader, "indicator", "gender", **WINDOW, **CHOSEN)
    tail = "&order=natural&measure=visitors&values=unbiased"
    links = Markup(html).links
    for window in selectors.windows_of(fair):
        first, last = fair.date_of(window.first_day), fair.date_of(window.last_day)
        assert f"?from={first}&to={last}&view=table{tail}" in links
    other = reverse("reports:indicator", args=["fair-2024", "age"])
    assert f"{other}?from=2024-05-31&to=2024-06-01&view=table{tail}" in links
    assert f"?from=2024-05-31&to=2024-06-01{tail}" in links  # back to both views
    for name, value in CHOSEN.items():
        assert f'<input type="hidden" name="{name}" value="{value}">' in html
    warning = "adjusted so that none is negative"  # consistent values
    assert warning in page(reader, "indicator", "gender")
    assert warning not in page(reader, "indicator", "gender", values="unbiased")


def test_long_studies_have_a_calendar_with_each_day_and_each_week(reader) -> None:
    study = factory.published(days=15)  # from Thursday 30 May
    visitors = selectors.visitor_unions(study)
    picker = build_picker(study.indicators.get(slug="gender"), visitors=visitors, current=Window(2, 6))
    assert picker.rows == ()
    days = [day for week in picker.weeks for day in week.days if day is not None]
    assert [day.window for day in days] == selectors.single_days_of(study)
    assert [day.visitors for day in days] == [visitors[day, day] for day in range(1, 16)]
    assert [week.whole.window for week in picker.weeks] == [Window(1, 4), Window(5, 11), Window(12, 15)]
    assert [day.window.first_day for day in days if day.is_inside] == [2, 3, 4, 5, 6]
    assert (picker.shorter.window, picker.longer.window) == (Window(2, 5), Window(2, 7))
    html = page(reader, "indicator", "gender")
    assert ('class="triangle"' in html, html.count("<option")) == (False, 30)


def test_short_studies_have_a_triangle_and_days_without_unions_no_weeks_to_choose() -> None:
    study = factory.create(days=14)
    visitors = selectors.visitor_unions(study)
    picker = build_picker(study.indicators.get(slug="gender"), visitors=visitors, current=None)
    assert (len(picker.rows), picker.weeks) == (14, ())
    assert sum(cell is not None for row in picker.rows for cell in row.cells) == 14 * 15 // 2
    half = factory.create(factory.HALF_STAY, days=20, slug="half")
    visitors = selectors.visitor_unions(half)
    picker = build_picker(half.indicators.get(), visitors=visitors, current=Window(20, 20))
    assert all(week.whole is None for week in picker.weeks if sum(map(bool, week.days)) > 1)
    assert (picker.longer, picker.shorter, picker.earlier.window) == (None, None, Window(19, 19))


def test_a_study_shows_visitors_by_day_first_then_charts_then_the_map(reader) -> None:
    map_factory.create(map_factory.HOME, factory.GENDER)
    answer = get(reader, "study")
    html = answer.content.decode()
    parts = [html.index(f'id="{name}-title"') for name in ("visitors", "figures", "indicators", "plan")]
    assert parts == sorted(parts)
    assert [shown.tile.kind for shown in answer.context["tiles"]] == ["indicator", "indicator", "map"]


def test_why_charts_have_no_estimates_is_said_once(reader) -> None:
    factory.published(factory.GENDER, factory.MANY, n=130, epsilon="0.1")
    html = page(reader, "study")
    assert text_of(html).count("Not reliable: ") == 1 and html.count('data-figure="figure-') == 2
    assert text_of(html).count("? not reliable") >= 2
