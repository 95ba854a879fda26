"""Files of comparisons and movements: every value of their pages, read back, with where it comes from."""

import csv
import io
import json
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import openpyxl
import pandas as pd
import pytest

from reports import compare
from reports.compare import Comparison
from reports.exports import spreadsheet
from reports.exports.comparisons import comparison_findings
from reports.exports.errors import ExportError
from reports.exports.findings import WRITERS, Findings
from reports.exports.movements import movement_findings
from reports.models import DayNote, Study
from reports.movement import movement
from reports.movement_figures import Show
from reports.selectors import LEVEL, Window
from reports.version import software
from tests.reports import report_factory as factory

pytestmark = pytest.mark.django_db
KINDS = list(compare.Kind)
Z = 1.959963984540054


def compared(fair: Study, kind: compare.Kind, *, of: Any = "frequency") -> Comparison:
    age = fair.indicators.get(slug="age")
    if kind == compare.Kind.WINDOWS:
        return compare.compare_windows(age, Window(2, 4), Window(1, 2), of=of)
    if kind == compare.Kind.CATEGORIES:
        return compare.compare_categories(age, Window(1, 4), reference=1, category=None, of=of)
    if kind == compare.Kind.BASELINE:
        return compare.compare_baseline(age, 2, baseline=None, of=of)
    other = factory.create(slug="later-2025", name="Later", market_share=Decimal("0.5"), epsilon="2")
    factory.publish(other, factory.crowd(other, n=3000, seed=5))
    return compare.compare_studies(
        age, Window(1, 4), other=other.indicators.get(slug="age"), other_window=Window(1, 3), of=of
    )


def read_back(findings: Findings, ending: str) -> list[dict[str, Any]]:
    """Rows with all columns; JSON gives back its rows with what they share."""
    content = WRITERS[ending](findings)
    if ending == "json":
        whole = json.loads(content)
        rows = whole.pop("rows")
        return [{name: (whole | row)[name] for name in findings.names} for row in rows]
    if ending == "csv":
        return [dict(row) for row in csv.DictReader(io.StringIO(content.decode()))]
    names, *rows = openpyxl.load_workbook(io.BytesIO(content))[findings.sheet].iter_rows(values_only=True)
    return [dict(zip(map(str, names), row, strict=True)) for row in rows]


def plain(value: Any, ending: str) -> Any:
    """A value as a format gives it back."""
    if ending == "csv":
        return "" if value is None else str(value)
    return value


def check(findings: Findings, ending: str) -> None:
    """Every cell of a file is that of the table."""
    rows = read_back(findings, ending)
    assert len(rows) == len(findings.rows) > 0
    for row, cells in zip(rows, findings.flat(), strict=True):
        assert list(row) == findings.names
        for name, cell in zip(findings.names, cells, strict=True):
            found = row[name]
            if isinstance(found, datetime):
                found = found.date().isoformat()
            if isinstance(cell, float) and ending == "xlsx":
                assert found == pytest.approx(cell, rel=1e-14), name
            else:
                assert found == plain(cell, ending), name


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("of", ["frequency", "visitors"])
def test_comparison_has_every_value_of_its_page(fair: Study, kind: compare.Kind, of: Any) -> None:
    comparison = compared(fair, kind, of=of)
    findings = comparison_findings(comparison)
    assert len(findings.rows) == len(comparison.rows)
    for found, row in zip(findings.rows, comparison.rows, strict=True):
        assert (found["difference"], found["ci_low"], found["ci_high"]) == (row.difference, row.low, row.high)
        assert found["std_error"] == row.std_error
        # The intervals are not quite those of a normal law, which would be as wide as this.
        assert (row.high - row.low) / 2 == pytest.approx(Z * row.std_error, rel=0.03)
        assert (found["value"], found["value_ci_low"], found["value_ci_high"]) == (
            row.value.value, row.value.low, row.value.high,
        )  # fmt: skip
        assert (found["reference"], found["reference_ci_low"], found["reference_ci_high"]) == (
            row.reference.value, row.reference.low, row.reference.high,
        )  # fmt: skip
        assert (found["verdict"], found["adjusted_verdict"]) == (row.alone, row.held)
        assert found["category"] == row.category
        assert found["reference_category"] == ("18-24" if kind == compare.Kind.CATEGORIES else row.category)
    whole = findings.before | findings.after
    assert (whole["comparison"], whole["measure"]) == (kind, of)
    assert (whole["adjustment"], whole["n_rows"]) == ("holm", len(comparison.rows))
    assert whole["interval"] == ("exact" if comparison.is_exact else "at_least")
    assert (whole["plan_version"], whole["epsilon"], whole["unit"]) == (1, 1.0, "profile")
    assert (whole["n_visitors"], whole["n_reports"]) == (
        comparison.report.n_visitors, comparison.report.n_reports,
    )  # fmt: skip
    assert (whole["ci_level"], whole["timezone"]) == (LEVEL, "Europe/Paris")
    assert whole["software_version"] == software()["version"]


def test_both_sides_name_their_study_days_and_plan(fair: Study) -> None:
    whole = comparison_findings(compared(fair, compare.Kind.STUDIES)).before
    sides = {name: (whole[name], whole[f"reference_{name}"]) for name in ("study", "last_day", "epsilon")}
    assert sides == {
        "study": ("fair-2024", "later-2025"),
        "last_day": ("2024-06-02", "2024-06-01"),
        "epsilon": (1.0, 2.0),
    }
    after = comparison_findings(compared_again(fair)).after
    assert (after["market_share"], after["reference_market_share"]) == (1.0, 0.5)


def compared_again(fair: Study) -> Comparison:
    other = Study.objects.get(slug="later-2025").indicators.get(slug="age")
    age = fair.indicators.get(slug="age")
    return compare.compare_studies(age, Window(1, 4), other=other, other_window=Window(1, 3), of="visitors")


def test_mean_of_days_lists_them_and_has_no_window(fair: Study) -> None:
    before = comparison_findings(compared(fair, compare.Kind.BASELINE)).before
    assert before["baseline_days"] == "2024-05-30 2024-06-01 2024-06-02"
    assert before["left_out_days"] is None
    for name in ("first_day", "last_day", "n_visitors", "n_reports"):
        assert before[f"reference_{name}"] is None
    age = fair.indicators.get(slug="age")
    one = comparison_findings(compare.compare_baseline(age, 2, baseline=[4], of="frequency")).before
    assert (one["reference_first_day"], one["baseline_days"]) == ("2024-06-02", "2024-06-02")
    assert one["reference_n_visitors"] > 0


def test_single_row_needs_no_adjustment(fair: Study) -> None:
    age = fair.indicators.get(slug="age")
    pair = compare.compare_categories(age, Window(1, 4), reference=0, category=2, of="frequency")
    assert comparison_findings(pair).after["adjustment"] == "none"


def test_what_is_not_reliable_has_no_verdict() -> None:
    study = factory.create(factory.indicator("zone", *"ABCDEF"), epsilon="0.2")
    factory.publish(study, factory.crowd(study, n=300))
    zone = study.indicators.get()
    comparison = compare.compare_windows(zone, Window(1, 2), Window(3, 4), of="frequency")
    assert {row.status for row in comparison.rows} == {"not_reliable"}
    rows = comparison_findings(comparison).rows
    assert {(row["verdict"], row["adjusted_verdict"], row["status"]) for row in rows} == {
        (None, None, "not_reliable")
    }
    assert all(row["ci_low"] < row["ci_high"] for row in rows)


@pytest.mark.parametrize("ending", list(WRITERS))
@pytest.mark.parametrize("kind", KINDS)
def test_comparison_is_read_back_whole(fair: Study, kind: compare.Kind, ending: str) -> None:
    findings = comparison_findings(compared(fair, kind))
    check(findings, ending)
    assert WRITERS[ending](findings) == WRITERS[ending](findings)


@pytest.mark.parametrize("ending", list(WRITERS))
@pytest.mark.parametrize("show", list(Show))
def test_movement_is_read_back_whole(fair: Study, show: Show, ending: str) -> None:
    findings = movement_findings(movement(fair.indicators.get(slug="age"), show=show))
    check(findings, ending)
    assert WRITERS[ending](findings) == WRITERS[ending](findings)


@pytest.mark.parametrize("show", list(Show))
def test_movement_has_every_value_of_its_page(fair: Study, show: Show) -> None:
    found = movement(fair.indicators.get(slug="age"), show=show)
    rows = [row for row in movement_findings(found).rows if row["category"] is not None]
    estimates = [(point, estimate) for point in found.points for estimate in point.estimates]
    assert len(rows) == len(estimates) > 0
    for row, (point, estimate) in zip(rows, estimates, strict=True):
        assert (row["category"], row["value"]) == (estimate.category, estimate.value)
        assert (row["ci_low"], row["ci_high"], row["status"]) == (
            estimate.ci_low, estimate.ci_high, estimate.status,
        )  # fmt: skip
        if estimate.ci_low is not None:
            assert row["interval"] == ("exact" if point.is_exact else "at_least")
        assert row["value_unit"] == found.unit
        if show not in (Show.DAYS_PRESENT, Show.WINDOW):
            assert row["day"] == point.date.isoformat()
    if show == Show.WINDOW:
        assert [row["figure"] for row in rows] == ["window_new"] * 3 + ["window_returning"] * 3
        days = {(row["window_first_day"], row["window_last_day"]) for row in rows}
        assert days == {("2024-05-31", "2024-06-02")}
    else:
        assert {row["figure"] for row in rows} == {show}
    cohorts = {row["cohort_day"] for row in rows}
    assert cohorts == ({"2024-05-30"} if show in (Show.BACK_WITHIN, Show.THERE_AGAIN) else {None})


def test_totals_are_counts_and_each_is_there_once(fair: Study) -> None:
    found = movement(fair.indicators.get(slug="age"), show=Show.ARRIVALS)
    totals = [row for row in movement_findings(found).rows if row["category"] is None]
    assert {row["interval"] for row in totals} == {"count"}
    by_name = {(row["figure"], row["day"]): row["value"] for row in totals}
    assert len(by_name) == len(totals) == 3 + 4 * 4
    assert by_name["different_visitors", None] == found.key.n_visitors
    assert by_name["days_present", None] == found.key.mean_days
    for day in found.totals:
        name = day.coverage.date.isoformat()
        values = [by_name[figure, name] for figure in ("visitors", "arrivals", "returning", "departures")]
        assert values == [day.coverage.visitors, day.arrivals, day.returning, day.departures]


def test_bounds_of_a_total_are_not_a_count(fair: Study) -> None:
    found = movement(fair.indicators.get(slug="age"), show=Show.THERE_AGAIN)
    assert [point.is_exact for point in found.points] == [True, False, False]
    rows = [
        row
        for row in movement_findings(found).rows
        if row["figure"] == "there_again" and row["category"] is None
    ]
    assert [row["interval"] for row in rows] == ["count", "bounds", "bounds"]
    for row, point in zip(rows[1:], found.points[1:], strict=True):
        assert (row["value"], row["ci_low"], row["ci_high"]) == (None, point.low, point.high)


def test_what_is_hidden_or_missing_says_why() -> None:
    study = factory.create(factory.GENDER)
    factory.publish(study, factory.absent_on(factory.crowd(study), day=3))
    DayNote.objects.create(study=study, day=4, kind="outage", text="mast down", by="adam")
    Study.objects.update(small_cell=10**6)
    hidden = Study.objects.get().indicators.get()
    rows = movement_findings(movement(hidden, show=Show.ARRIVALS)).rows
    assert {row["value"] for row in rows if row["status"] != "ok"} == {None}
    assert {row["status"] for row in rows if row["day"] == "2024-05-31"} == {"suppressed"}
    Study.objects.update(small_cell=0)
    rows = movement_findings(movement(Study.objects.get().indicators.get(), show=Show.ARRIVALS)).rows
    blank = {(row["status"], row["value"], row["interval"]) for row in rows if row["day"] == "2024-06-01"}
    assert blank == {("not_collected", None, None)}
    assert "outage" in {row["status"] for row in rows if row["day"] == "2024-06-02"}


def test_part_of_a_day_that_is_hidden_is_suppressed_though_the_day_is_shown(fair: Study) -> None:
    age = fair.indicators.get(slug="age")
    days = movement(age, show=Show.ARRIVALS).totals
    least = min(count for day in days for count in (day.arrivals, day.returning, day.departures) if count)
    assert least < min(day.coverage.visitors or 0 for day in days)
    Study.objects.update(small_cell=least + 1)
    found = movement(Study.objects.get().indicators.get(slug="age"), show=Show.ARRIVALS)
    rows = movement_findings(found).rows
    hidden = [row for row in rows if row["category"] is None and row["status"] == "suppressed"]
    assert hidden and {(row["value"], row["interval"]) for row in hidden} == {(None, None)}
    shown = {row["day"]: row["status"] for row in rows if row["figure"] == "visitors"}
    assert {shown[row["day"]] for row in hidden if row["day"]} == {"ok"}
    assert all(row["value"] is not None for row in rows if row["status"] == "ok")


def test_indicator_without_figures_has_its_totals() -> None:
    study = factory.create(factory.GENDER, replace(factory.STAY, max_values=2))
    factory.publish(study, factory.crowd(study))
    findings = movement_findings(movement(study.indicators.get(slug="stay")))
    assert {row["category"] for row in findings.rows} == {None}
    assert findings.name == "fair-2024_stay_movement"
    assert "totals only" in findings.words[0]


def test_scaled_visitors_say_by_what() -> None:
    study = factory.create(market_share=Decimal("0.25"))
    factory.publish(study, factory.crowd(study))
    found = movement(study.indicators.get(slug="age"), show=Show.ARRIVALS)
    frame = pd.read_csv(io.BytesIO(WRITERS["csv"](movement_findings(found))))
    assert set(frame["market_share"]) == {0.25}
    first = frame[(frame["figure"] == "arrivals") & (frame["day"] == "2024-05-30")]
    total = first[first["category"].isna()]["value"].iloc[0]
    assert total == found.totals[0].arrivals
    assert first[first["category"].notna()]["value"].sum() == pytest.approx(4 * total, rel=0.01)


def test_workbook_explains_its_columns_and_both_studies(fair: Study) -> None:
    comparison = compared(fair, compare.Kind.STUDIES)
    book = openpyxl.load_workbook(io.BytesIO(WRITERS["xlsx"](comparison_findings(comparison))))
    assert book.sheetnames == ["About", "compare"]
    lines = [row for row in book["About"].iter_rows(values_only=True) if any(row)]
    said = [str(cell) for row in lines for cell in row if cell]
    assert said.count("Where the numbers come from") == said.count("Compared with") == 1
    for text in ("fair-2024", "later-2025", "holm", "at_least", "not_shown", "suppressed", "Europe/Paris"):
        assert text in said
    assert any("Each study has a key of its own" in text for text in said)
    assert book["compare"].cell(2, comparison_findings(comparison).names.index("first_day") + 1).value == (
        datetime.combine(date(2024, 5, 30), datetime.min.time())
    )


def test_text_that_looks_like_a_formula_stays_text() -> None:
    study = factory.create(factory.indicator("trap", "=1+1", "plain"))
    factory.publish(study, factory.crowd(study))
    trap = study.indicators.get()
    findings = comparison_findings(compare.compare_windows(trap, Window(1, 2), Window(3, 4), of="frequency"))
    assert [row["category"] for row in read_back(findings, "csv")] == ["'=1+1", "plain"]
    assert read_back(findings, "xlsx")[0]["category"] == "=1+1"


def test_workbook_with_too_many_rows_is_refused_in_words(
    fair: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spreadsheet, "MAX_ROWS", 2)
    with pytest.raises(ExportError, match=r"holds 2 rows; here are 3\. Take CSV or JSON"):
        WRITERS["xlsx"](comparison_findings(compared(fair, compare.Kind.WINDOWS)))
