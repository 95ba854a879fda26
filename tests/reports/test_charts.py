"""Figures: the numbers of a report, safe texts, and colours that the style sheet has."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reports import charts, selectors, wording
from reports.coverage import coverage_of
from reports.models import Study
from reports.selectors import Window, WindowReport
from tests.reports import report_factory as factory

pytestmark = pytest.mark.django_db

STYLES = (Path(__file__).parents[2] / "static/css/app.css").read_text()
MANY = factory.indicator("region", *(f"Region {letter}" for letter in "ABCDEFGHIJKL"))


@pytest.fixture
def study() -> Study:
    made = factory.create(factory.AGE, MANY, factory.STAY)
    factory.publish(made, factory.crowd(made))
    return made


def reports_of(study: Study, slug: str, *windows: Window) -> list[WindowReport]:
    return selectors.indicator_reports(
        study.indicators.get(slug=slug), windows or selectors.single_days_of(study)
    )


def strings(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for value in node.values():
            yield from strings(value)
    elif isinstance(node, list):
        for value in node:
            yield from strings(value)
    elif isinstance(node, str):
        yield node


def all_figures(study: Study) -> list[charts.Figure]:
    days = reports_of(study, "region")
    return [
        charts.report_figure(reports_of(study, "age", Window(1, 4))[0]),
        charts.days_figure(days, shown=list(range(charts.MAX_LINES))),
        charts.visitors_figure(
            study, coverage_of(study, visitors=selectors.visitor_unions(study), notes=()).days
        ),
    ]


def test_bars_and_error_bars_are_the_estimates_in_plan_order(study: Study) -> None:
    report = reports_of(study, "age", Window(1, 4))[0]
    figure = charts.report_figure(report)
    bars = figure["data"][0]
    for place, estimate in enumerate(report.estimates):
        assert bars["x"][place] == pytest.approx(100 * estimate.frequency, abs=1e-4)
        assert bars["x"][place] + bars["error_x"]["array"][place] == pytest.approx(
            100 * estimate.ci_high, abs=1e-3
        )
        low = bars["x"][place] - bars["error_x"]["arrayminus"][place]
        assert low == pytest.approx(100 * estimate.ci_low, abs=1e-3)
    top, bottom = figure["layout"]["yaxis"]["range"]
    assert top > bottom  # the first category is drawn on top


def test_names_are_escaped_because_plotly_reads_markup(study: Study) -> None:
    figure = charts.report_figure(reports_of(study, "age", Window(1, 4))[0])
    assert figure["layout"]["yaxis"]["ticktext"] == ["&lt;18", "18-24", "25 &amp; older"]
    lines = charts.days_figure(reports_of(study, "age"), shown=[0, 2])
    assert [trace["name"] for trace in lines["data"] if "name" in trace] == ["&lt;18", "25 &amp; older"]
    for text in (*strings(figure), *strings(lines)):
        # other markup becomes a style attribute, which the content policy refuses
        assert not re.search(r"<(?!br>)", text)


def test_figures_are_plain_data(study: Study) -> None:
    for figure in all_figures(study):
        assert json.loads(json.dumps(figure, allow_nan=False)) == figure


def test_colours_are_properties_of_the_style_sheet_in_light_and_dark(study: Study) -> None:
    names = {
        text.split("/")[0]
        for figure in all_figures(study)
        for text in strings(figure)
        if text.startswith("--")
    }
    assert {"--text", "--chart-1", f"--chart-{charts.MAX_LINES}"} <= names
    for name in names:
        # chart.js reads six hexadecimal digits
        assert len(re.findall(rf"{name}: #[0-9a-f]{{6}};", STYLES)) == 2, name


def test_long_names_wrap() -> None:
    study = factory.create(factory.indicator("home", "comfortable family pavilion", "rural"))
    factory.publish(study, factory.crowd(study))
    figure = charts.report_figure(reports_of(study, "home", Window(1, 1))[0])
    assert figure["layout"]["yaxis"]["ticktext"] == ["comfortable family<br>pavilion", "rural"]


def test_rows_have_room_for_names_of_many_lines() -> None:
    name = "Municipality with a name that takes more than three lines of a narrow chart to be written"
    study = factory.create(factory.indicator("place", name, "Elsewhere"))
    factory.publish(study, factory.crowd(study))
    figure = charts.report_figure(reports_of(study, "place", Window(1, 4))[0])
    lines = figure["layout"]["yaxis"]["ticktext"][0].split("<br>")
    assert len(lines) == 3
    assert lines[-1].endswith("…")
    assert charts.row_px(["one"], one_line=28) == 28
    for n_lines in (2, 3):
        assert charts.row_px(["one", "<br>".join(["line"] * n_lines)], one_line=28) >= 16 * n_lines
    assert figure["layout"]["height"] >= 2 * charts.row_px(figure["layout"]["yaxis"]["ticktext"], one_line=28)


def test_every_category_has_its_row(study: Study) -> None:
    few, many = (charts.report_figure(reports_of(study, slug, Window(1, 1))[0]) for slug in ("age", "region"))
    per_row = (many["layout"]["height"] - few["layout"]["height"]) / (12 - 3)
    assert per_row >= 24


def test_largest_categories_are_drawn_first(study: Study) -> None:
    days = reports_of(study, "region")
    shown = charts.largest_categories(days)
    assert len(shown) < 12
    assert shown == sorted(shown)
    size = [sum(report.estimates[code].consistent for report in days) for code in range(12)]
    assert min(size[code] for code in shown) >= max(size[code] for code in range(12) if code not in shown)


def test_day_without_answers_is_a_gap_in_line_and_band() -> None:
    study = factory.create(factory.AGE, days=4)
    people = factory.crowd(study)
    factory.publish(study, factory.absent_on(people, day=2))
    days = reports_of(study, "age")
    band, line = charts.days_figure(days, shown=[0])["data"]
    assert line["y"][1] is None
    assert None not in (line["y"][0], line["y"][2], line["y"][3])
    assert line["connectgaps"] is False
    gap = band["x"].index(None)
    assert max(band["x"][:gap]) < 2 < min(band["x"][gap + 1 :])
    assert band["y"][gap] is None
    after = band["y"][gap + 1 :]  # days 3 and 4: upper bounds, then lower ones back
    estimates = [days[place].estimates[0] for place in (2, 3)]
    expected = [e.ci_high for e in estimates] + [e.ci_low for e in reversed(estimates)]
    assert after == pytest.approx([100 * bound for bound in expected], abs=1e-3)


def test_lines_differ_in_colour_and_in_shape(study: Study) -> None:
    shown = list(range(charts.MAX_LINES))
    lines = [t for t in charts.days_figure(reports_of(study, "region"), shown=shown)["data"] if "name" in t]
    assert len({line["line"]["color"] for line in lines}) == charts.MAX_LINES
    assert len({line["marker"]["symbol"] for line in lines}) == charts.MAX_LINES


def test_visitors_figure_has_the_exact_totals(study: Study) -> None:
    visitors = selectors.visitor_unions(study)
    bars = charts.visitors_figure(study, coverage_of(study, visitors=visitors, notes=()).days)["data"][0]
    assert bars["y"] == [visitors[day, day] for day in range(1, 5)]


def test_day_without_visitors_has_no_bar_but_a_sign() -> None:
    study = factory.create(small_cell=10)
    factory.publish(study, factory.absent_on(factory.crowd(study), day=2))
    coverage = coverage_of(study, visitors=selectors.visitor_unions(study), notes=())
    bars, blanks = charts.visitors_figure(study, coverage.days)["data"]
    assert [total is None for total in bars["y"]] == [False, True, False, False]
    assert blanks["text"] == ["", wording.MISSING, "", ""]
