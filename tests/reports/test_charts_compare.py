"""The figure of a comparison: every difference with its interval, told apart by shape, in safe texts."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from reports import charts_compare, compare, wording
from reports.compare import Comparison, Verdict
from reports.models import Study
from reports.selectors import Window
from tests.reports.test_charts import STYLES, strings

pytestmark = pytest.mark.django_db


@pytest.fixture
def comparison(fair: Study) -> Comparison:
    """Three rows: one that holds, one that differs by itself only, one that does not differ."""
    age = fair.indicators.get(slug="age")
    found = compare.compare_windows(age, Window(2, 4), Window(1, 2), of="frequency")
    verdicts = [
        (Verdict.HIGHER, Verdict.HIGHER),
        (Verdict.LOWER, Verdict.NOT_SHOWN),
        (Verdict.NOT_SHOWN, Verdict.NOT_SHOWN),
    ]
    rows = [
        replace(row, alone=alone, held=held) for row, (alone, held) in zip(found.rows, verdicts, strict=True)
    ]
    return replace(found, rows=tuple(rows))


def traces(figure: dict[str, Any]) -> list[dict[str, Any]]:
    return list(figure["data"])


def test_dots_and_whiskers_are_the_differences(comparison: Comparison) -> None:
    for of, scale in (("frequency", 100), ("visitors", 1)):
        figure = charts_compare.comparison_figure(replace(comparison, of=of))
        for place, trace in enumerate(traces(figure)):
            row = comparison.rows[place]
            assert trace["y"] == [place]
            assert trace["x"] == [pytest.approx(scale * row.difference, abs=0.06)]
            high = trace["x"][0] + trace["error_x"]["array"][0]
            low = trace["x"][0] - trace["error_x"]["arrayminus"][0]
            assert (low, high) == (
                pytest.approx(scale * row.low, abs=0.12),
                pytest.approx(scale * row.high, abs=0.12),
            )
            first, last = figure["layout"]["xaxis"]["range"]
            assert first < min(low, 0) <= max(high, 0) < last


def test_findings_differ_by_shape_and_name(comparison: Comparison) -> None:
    found = traces(charts_compare.comparison_figure(comparison))
    assert [trace["name"] for trace in found] == [
        "differs",
        "differs by itself only",
        "no difference can be shown",
    ]
    assert len({trace["marker"]["symbol"] for trace in found}) == 3


def test_what_is_not_there_has_no_name_in_the_legend(comparison: Comparison) -> None:
    one = replace(comparison, rows=comparison.rows[:1])
    figure = charts_compare.comparison_figure(one)
    assert [trace["name"] for trace in traces(figure)] == ["differs"]
    assert figure["layout"]["showlegend"] is False


def test_texts_are_safe_and_colours_are_those_of_the_style_sheet(comparison: Comparison) -> None:
    figure = charts_compare.comparison_figure(comparison)
    assert figure["layout"]["yaxis"]["ticktext"] == ["&lt;18", "18-24", "25 &amp; older"]
    assert json.loads(json.dumps(figure, allow_nan=False)) == figure
    for text in strings(figure):
        assert not re.search(r"<(?!br>)", text)
        if text.startswith("--"):
            assert len(re.findall(rf"{text}: #[0-9a-f]{{6}};", STYLES)) >= 2, text
    hovers = [text for trace in traces(figure) for text in trace["hovertext"]]
    assert all(re.search(rf"<br>[+{wording.MINUS}]?\d+\.\d points \(.* to .*\)<br>", text) for text in hovers)
