"""Numbers as readers see them, in words and figures; colours that can be distinguished (WCAG 2.2); vendored files."""
# ruff: noqa: E501  (a table reads best with one row a line)

import hashlib
import json
import re
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, get_args

import pytest
from django.utils.html import json_script

from ldp.privacy.plans import Mechanism
from ldp.protocols.channels import Unit
from reports.base import formats
from reports.estimates import charts, options, queries
from reports.estimates.coverage import coverage_of
from reports.estimates.queries import Window, WindowReport
from reports.studies import texts as studies_texts
from reports.studies.models import Study
from reports.templatetags.figures import figure_data
from tests.ldp.exact import make_plan
from tests.reports import report_factory as factory

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).parents[3]
STATIC = ROOT / "static"
STYLES = (STATIC / "css/app.css").read_text()
LIGHT_PART, DARK_PART = STYLES.split("@media (prefers-color-scheme: dark)", 1)
SCHEMES = [
    pytest.param(dict(re.findall(r"(--[\w-]+): (#[0-9a-f]{6});", part)), id=name)
    for name, part in (("light", LIGHT_PART), ("dark", DARK_PART.split("\n}\n", 1)[0]))
]
TONES = ("ok", "warn", "bad", "accent")
GROUNDS = ("--bg", "--surface", "--surface-2")
TEXTS = [
    *((text, ground) for text in ("--text", "--muted", "--accent") for ground in GROUNDS),
    *((f"--{tone}", f"--{tone}-soft") for tone in TONES),
    *(("--text", f"--{tone}-soft") for tone in TONES),
    *(("--on-accent", ground) for ground in ("--accent", "--accent-hover")),
    *(("--accent-hover", "--bg"), ("--bad", "--surface")),
]
SHAPES = [*(f"--chart-{place}" for place in range(1, 9)), "--border-strong", "--focus"]


@pytest.fixture
def study() -> Study:
    return factory.published(factory.AGE, factory.MANY, factory.STAY)


def reports_of(study: Study, slug: str, *windows: Window) -> list[WindowReport]:
    indicator = study.indicators.get(slug=slug)
    return queries.indicator_reports(indicator, windows or queries.single_days_of(study))


def covered(study: Study) -> charts.Figure:
    days = coverage_of(study, visitors=queries.visitor_unions(study), notes=()).days
    return charts.visitors_figure(study, days)


def strings(node: Any) -> list[str]:
    if isinstance(node, dict | list):
        values = node.values() if isinstance(node, dict) else node
        return [text for value in values for text in strings(value)]
    return [node] if isinstance(node, str) else []


def test_bars_and_error_bars_are_the_estimates_in_plan_order_each_in_its_row(study) -> None:
    report = reports_of(study, "age", Window(1, 4))[0]
    figure = charts.report_figure(report)
    bars = figure["data"][0]
    for place, estimate in enumerate(report.estimates):
        low = bars["x"][place] - bars["error_x"]["arrayminus"][place]
        high = bars["x"][place] + bars["error_x"]["array"][place]
        expected = [100 * each for each in (estimate.ci_low, estimate.frequency, estimate.ci_high)]
        assert [low, bars["x"][place], high] == pytest.approx(expected, abs=1e-3)
    top, bottom = figure["layout"]["yaxis"]["range"]
    assert top > bottom  # the first category is drawn on top
    few, many = (charts.report_figure(reports_of(study, slug, Window(1, 1))[0]) for slug in ("age", "region"))
    assert (many["layout"]["height"] - few["layout"]["height"]) / (12 - 3) >= 24


def test_a_narrow_chart_has_room_for_the_text_at_each_bar() -> None:
    few = factory.published(factory.GENDER, factory.STAY, n=60)
    figure = charts.report_figure(reports_of(few, "gender", Window(1, 1))[0])
    low, high = figure["layout"]["xaxis"]["range"]
    texts = figure["data"][1]
    assert "not reliable" in "".join(texts["text"])
    for end, text in zip(texts["x"], texts["text"], strict=True):
        assert 270 * (high - end) / (high - low) >= 6 * len(text.strip())  # pixels


def test_quotation_marks_stay_as_they_are_because_plotly_knows_no_entity_of_them() -> None:
    assert charts.axis_label('Zone "A" & <b>') == 'Zone "A" &amp; &lt;b&gt;'
    study = factory.published(factory.indicator("zone", 'Old "port"', "New"), days=1)
    shown = charts.days_figure(reports_of(study, "zone"), shown=[0])
    assert 'Old "port"' in [trace.get("name") for trace in shown["data"]]


def test_data_of_a_page_are_escaped_as_django_does_it() -> None:
    figure = {"text": ["</script>", "a & b", "\u2028 \u00e9"], "day": date(2024, 5, 31)}
    assert figure_data(figure, 'a"b') == json_script(figure, 'a"b')


def test_names_are_escaped_because_plotly_reads_markup(study) -> None:
    figure = charts.report_figure(reports_of(study, "age", Window(1, 4))[0])
    assert figure["layout"]["yaxis"]["ticktext"] == ["&lt;18", "18-24", "25 &amp; older"]
    lines = charts.days_figure(reports_of(study, "age"), shown=[0, 2])
    assert [trace["name"] for trace in lines["data"] if "name" in trace] == ["&lt;18", "25 &amp; older"]
    for text in (*strings(figure), *strings(lines)):
        # other markup becomes a style attribute, which the content policy refuses
        assert not re.search(r"<(?!br>)", text)


def test_figures_are_plain_data_with_colours_of_the_style_sheet_in_light_and_dark(study) -> None:
    whole = charts.report_figure(reports_of(study, "age", Window(1, 4))[0])
    lines = charts.days_figure(reports_of(study, "region"), shown=range(options.MAX_LINES))
    figures = [whole, lines, covered(study)]
    assert json.loads(json.dumps(figures, allow_nan=False)) == figures
    names = {text.split("/")[0] for text in strings(figures) if text.startswith("--")}
    assert {"--text", "--chart-1", f"--chart-{options.MAX_LINES}"} <= names
    for name in names:
        # chart.js reads six hexadecimal digits
        assert len(re.findall(rf"{name}: #[0-9a-f]{{6}};", STYLES)) == 2, name


def test_largest_categories_are_drawn_in_lines_that_differ_in_colour_and_in_shape(study) -> None:
    days = reports_of(study, "region")
    figure = charts.days_figure(days, shown=range(options.MAX_LINES))
    lines = [trace for trace in figure["data"] if "name" in trace]
    for part, name in (("line", "color"), ("marker", "symbol")):
        assert len({line[part][name] for line in lines}) == options.MAX_LINES
    shown = options.largest_categories(days)
    assert len(shown) < 12
    size = [sum(report.estimates[code].consistent for report in days) for code in range(12)]
    assert shown == sorted(shown, key=size.__getitem__, reverse=True)
    assert min(size[code] for code in shown) >= max(size[code] for code in range(12) if code not in shown)


def test_day_without_answers_is_a_gap_in_line_and_band() -> None:
    study = factory.create(factory.AGE, days=4)
    factory.publish(study, factory.absent_on(factory.crowd(study), day=2))
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


def test_visitors_figure_has_the_exact_totals_and_a_sign_instead_of_a_bar_for_a_day_without(study) -> None:
    visitors = queries.visitor_unions(study)
    assert covered(study)["data"][0]["y"] == [visitors[day, day] for day in range(1, 5)]
    bars, blanks = covered(factory.published(small_cell=10, slug="part", gap=2))["data"]
    assert [total is None for total in bars["y"]] == [False, True, False, False]
    assert blanks["text"] == ["", formats.MISSING, "", ""]


# --- colours and vendored files --------------------------------------------------------------------------
def luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("colours", SCHEMES)
def test_texts_can_be_read_and_shapes_can_be_seen(colours) -> None:
    assert [pair for pair in TEXTS if contrast(*map(colours.get, pair)) < 4.5] == []
    assert [shape for shape in SHAPES if contrast(colours[shape], colours["--surface"]) < 3] == []
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


def test_paper_has_the_light_colours() -> None:
    light = dict(re.findall(r"(--[\w-]+): (#[0-9a-f]{6});", LIGHT_PART))
    paper = re.findall(r"(--[\w-]+): (#[0-9a-f]{6});", (STATIC / "css/print.css").read_text())
    assert {"--text", "--chart-1", "--chart-8"} <= {name for name, _ in paper}
    for name, colour in paper:
        assert colour == ("#ffffff" if name == "--bg" else light[name]), name  # paper is white


def listed(folder: Path) -> list[tuple[str, str, str, str]]:
    text = (folder / "VENDOR.md").read_text()
    return re.findall(r"^\| (\S+) \| (\S+) \| .+ \| (\S+) \| ([0-9a-f]{64}) \|$", text, re.MULTILINE)


@pytest.mark.parametrize("folder", ["static/vendor", "tests/e2e/vendor", "docs/vendor"])
def test_every_vendored_file_is_listed_with_its_checksum(folder) -> None:
    files = {
        path.relative_to(ROOT / folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.name != "VENDOR.md"
    }
    assert files == {name: digest for name, _, _, digest in listed(ROOT / folder)}


# --- words ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("write", "texts"),
    [
        (formats.number, {0: "0", 999.6: "1,000", 62440: "62,440", 1234567: "1,234,567", -1234: "\u22121,234", None: "\u2013"}),
        (formats.compact, {0: formats.MISSING, 999: "999", 1000: "1.0k", 9949: "9.9k", 9951: "10k", 62440: "62k", 999_499: "999k", 999_501: "1.0M"}),
        (formats.percent, {0.12345: "12.3%", -0.004: "\u22120.4%", -0.0001: "0.0%", 1.0421: "104.2%", None: "\u2013"}),
        # rounded up
        (formats.epsilon, {Decimal("0.99999999999999999"): "1", Decimal("1.00000000000000001"): "1.0001", Fraction(1, 7): "0.1429"}),
        (formats.epsilon, {Decimal("31.5"): "31.5", Decimal(7): "7", Decimal(10): "10", 0.5: "0.5"}),
        (formats.odds, {Decimal(0): "1.00", Decimal(1): "2.72", Decimal("0.5"): "1.65", Decimal(7): "1,097", Decimal("31.46"): "e^31.5"}),
    ],
    ids=["number", "compact", "percent", "epsilon", "exact epsilon", "odds"],
)  # fmt: skip
def test_numbers_are_written_as_people_read_them(write, texts) -> None:
    assert {value: write(value) for value in texts} == texts


def test_ranges_and_windows_have_both_ends() -> None:
    assert formats.percent_range(-0.013, 0.111) == "\u22121.3 to 11.1%"
    assert formats.number_range(-12, 1234) == "\u221212 to 1,234"
    assert formats.percent_range(None, None) == formats.number_range(None, None) == "\u2013"
    assert formats.window_title(date(2017, 5, 31), date(2017, 5, 31)) == "Wed 31 May 2017"
    title = formats.window_title(date(2017, 5, 31), date(2017, 6, 6))
    assert title == "Wed 31 May 2017 to Tue 6 Jun 2017 (7 days)"


@pytest.mark.parametrize("mechanism", get_args(Mechanism))
@pytest.mark.parametrize("unit", get_args(Unit))
@pytest.mark.parametrize("d", [1, 3])
def test_plan_words_name_who_answers_how_and_what_is_hidden(mechanism, unit, d) -> None:
    words = studies_texts.plan_words(make_plan(*[("static", 20)] * d, mechanism=mechanism, unit=unit))
    family, oracle = mechanism.split("-")
    has_fakes = family == "rsfd" and d > 1
    assert "%" not in words
    assert ("has one indicator, and each person reports on it" in words) == (family != "spl" and d == 1)
    assert (f"one of the {d} indicators" in words) == (family != "spl" and d > 1)
    assert (f"all {d} indicators, which share the plan's epsilon" in words) == (family == "spl")
    assert ("the person sends made-up reports" in words) == has_fakes
    assert ("All of a person's values together are less protected" in words) == (
        has_fakes and unit == "attribute"
    )
    assert ("made-up reports add nothing to that protection" in words) == (has_fakes and unit == "profile")
    assert ("(GRR)" in words, "OUE)" in words) == (oracle in ("grr", "adp"), oracle in ("oue", "ouez", "adp"))
    assert ("reused whenever the value is the same." in words) == (oracle != "allomfree")
    assert ("Each day on which the person is present has its own report" in words) == (oracle == "allomfree")


def test_answer_words_are_those_of_the_channel() -> None:
    """At epsilon 1: e / (e + 1) and the rest of two values; 1/2 and 1 / (e + 1)."""
    codes, bits = (make_plan(("static", 2), mechanism=m).channel(0) for m in ("smp-grr", "smp-oue"))
    faked = make_plan(*[("static", 2)] * 4, mechanism="rsfd-ouez").channel(0)
    rest = "of the other categories"
    marked = f"An answer marks the true category in 50.0% of cases, and each {rest} in 26.9% of cases."
    for channel, text in (
        (codes, f"The answer names the true category in 73.1% of cases, and each {rest} in 26.9% of cases."),
        (bits, marked),
        (faked, f"{marked} Only 25.0% of the reports are real answers; the others are made up."),
    ):
        assert studies_texts.answer_words(channel) == text
