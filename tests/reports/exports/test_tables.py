"""CSV, JSON, XLSX, Parquet and SDMX-CSV, each read back with another library than the one that wrote it."""

import csv
import io
import json
from datetime import date
from typing import Any

import openpyxl
import polars
import pytest

from reports.exports import spreadsheet
from reports.exports.columns import NAMES
from reports.exports.errors import ExportError
from reports.exports.formats import render_file
from reports.exports.records import ESTIMATE_NAMES, REPORT_NAMES
from reports.exports.selection import Selection, select_days, select_study, select_window
from reports.models import DayNote, Study
from reports.selectors import LEVEL, Window, indicator_reports
from reports.version import software
from tests.reports import report_factory as factory

pytestmark = pytest.mark.django_db
TABLES = ("csv", "json", "xlsx", "parquet", "sdmx.csv")


@pytest.fixture
def whole(fair: Study) -> Selection:
    return select_study(fair)


def expected_rows(selection: Selection) -> list[dict[str, Any]]:
    """One row per estimate, straight from the selectors."""
    return [
        {
            "study": report.study.slug,
            "indicator": report.indicator.slug,
            "first_day": report.first_date,
            "last_day": report.last_date,
            **{name: getattr(report, name) for name in REPORT_NAMES[4:]},
            **{name: getattr(estimate, name) for name in ESTIMATE_NAMES},
            "ci_level": LEVEL,
            "timezone": "Europe/Paris",
            "software_version": software()["version"],
        }
        for report in selection.reports
        for estimate in report.estimates
    ]


def sheet_rows(content: bytes, name: str) -> list[dict[str, Any]]:
    sheet = openpyxl.load_workbook(io.BytesIO(content))[name]
    names, *rows = sheet.iter_rows(values_only=True)
    return [dict(zip(map(str, names), row, strict=True)) for row in rows]


def test_csv_has_every_number(whole: Selection) -> None:
    rows = list(csv.DictReader(io.StringIO(render_file(whole, ending="csv").decode())))
    assert list(rows[0]) == list(NAMES)
    assert rows == [{name: str(value) for name, value in row.items()} for row in expected_rows(whole)]


def test_json_has_every_number_and_what_it_needs_to_be_read(whole: Selection) -> None:
    records = json.loads(render_file(whole, ending="json"))
    flat = [{**record, **estimate} for record in records for estimate in record.pop("estimates")]
    wanted = [
        {name: value.isoformat() if isinstance(value, date) else value for name, value in row.items()}
        for row in expected_rows(whole)
    ]
    assert [{name: row[name] for name in NAMES} for row in flat] == wanted
    assert {record["status"] for record in records} == {"ok"}


def test_workbook_has_every_number_in_a_sheet_per_indicator(whole: Selection) -> None:
    content = render_file(whole, ending="xlsx")
    book = openpyxl.load_workbook(io.BytesIO(content))
    assert book.sheetnames == ["About", "gender", "age", "stay"]
    rows = [row for name in book.sheetnames[1:] for row in sheet_rows(content, name)]
    for row in rows:
        row["first_day"], row["last_day"] = row["first_day"].date(), row["last_day"].date()
    wanted = expected_rows(whole)
    assert len(rows) == len(wanted)
    for row, expected in zip(rows, wanted, strict=True):
        for column, value in expected.items():
            # Workbooks hold 16 digits of a number.
            found = pytest.approx(row[column], rel=1e-15) if isinstance(value, float) else row[column]
            assert value == found, column


def test_workbook_says_what_it_is(whole: Selection) -> None:
    about = openpyxl.load_workbook(io.BytesIO(render_file(whole, ending="xlsx")))["About"]
    said = {row[0]: row[1] for row in about.iter_rows(values_only=True)}
    assert said["Study"] == "fair-2024"
    assert said["Days (both included)"] == "2024-05-30/2024-06-02"
    assert said["Time zone of the days"] == "Europe/Paris"
    assert (said["Version of the plan"], said["Mechanism"], said["Unit of privacy"]) == (
        "1", "smp-grr", "profile",
    )  # fmt: skip
    assert said["Level of the intervals"] == "0.95"
    assert said["Software"] == "{name} {version}".format(**software())
    assert said["suppressed"].startswith("hidden by the study's small-cell rule")


def test_parquet_has_every_number_with_its_type(whole: Selection) -> None:
    content = render_file(whole, ending="parquet")
    frame = polars.read_parquet(io.BytesIO(content))
    assert frame.columns == list(NAMES)
    assert frame.to_dicts() == expected_rows(whole)
    assert frame.schema["first_day"] == polars.Date
    assert frame.schema["n_reports"] == polars.Int64
    metadata = polars.read_parquet_metadata(io.BytesIO(content))
    facts = json.loads(metadata["mobility_reports"])
    assert (facts["plan_version"], facts["unit"], facts["ci_level"]) == ("1", "profile", "0.95")
    assert facts["plan_sha256"] == whole.reports[0].plan.spec_hash


def test_sdmx_has_its_columns_and_codes(fair: Study) -> None:
    indicator = fair.indicators.get(slug="age")
    for window, freq, period in (
        (Window(2, 2), "D", "2024-05-31"),
        (Window(2, 4), "_O", "2024-05-31/P3D"),
    ):
        selection = select_window(indicator, window)
        rows = list(csv.DictReader(io.StringIO(render_file(selection, ending="sdmx.csv").decode())))
        assert list(rows[0]) == [
            "FREQ", "REF_AREA", "TIME_PERIOD", "INDICATOR", "CATEGORY", "OBS_VALUE", "CI_LOW", "CI_HIGH",
            "CI_LEVEL", "N_REPORTS", "EPSILON", "MECHANISM", "POLICY_VERSION", "OBS_STATUS", "CONF_STATUS",
        ]  # fmt: skip
        (report,) = selection.reports
        for row, estimate in zip(rows, report.estimates, strict=True):
            assert (row["FREQ"], row["REF_AREA"], row["TIME_PERIOD"]) == (freq, "fair-2024", period)
            assert float(row["OBS_VALUE"]) == estimate.frequency
            assert (float(row["CI_LOW"]), float(row["CI_HIGH"])) == (estimate.ci_low, estimate.ci_high)
            assert (row["N_REPORTS"], row["EPSILON"]) == (str(report.n_reports), "1.0")
            assert (row["CATEGORY"], row["OBS_STATUS"], row["CONF_STATUS"]) == (estimate.category, "E", "F")


@pytest.mark.parametrize("ending", TABLES)
def test_same_data_give_the_same_bytes(whole: Selection, ending: str) -> None:
    assert render_file(whole, ending=ending) == render_file(select_study(whole.study), ending=ending)


@pytest.mark.parametrize("ending", TABLES)
def test_days_and_windows_are_files_too(fair: Study, ending: str) -> None:
    stay = fair.indicators.get(slug="stay")
    for selection in (select_days(stay), select_window(stay, Window(1, 3))):
        assert len(render_file(selection, ending=ending)) > 100


def test_four_kinds_of_blank_stay_four() -> None:
    study = factory.create(factory.GENDER)
    crowd = factory.crowd(study, n=4000)
    factory.publish(study, factory.absent_on(crowd, day=3))
    DayNote.objects.create(study=study, day=4, kind="outage", text="mast down", by="adam")
    (indicator,) = study.indicators.all()
    few = indicator_reports(indicator, [Window(1, 1)])[0].n_visitors
    assert few is not None
    selection = select_days(indicator)
    Study.objects.filter(pk=study.pk).update(small_cell=few + 1)
    hidden = select_days(type(indicator).objects.get(pk=indicator.pk))
    assert [report.status for report in selection.reports] == ["ok", "ok", "not_collected", "outage"]
    rows = polars.read_parquet(io.BytesIO(render_file(hidden, ending="parquet"))).to_dicts()
    first = [row for row in rows if row["first_day"] == date(2024, 5, 30)]
    assert {(row["status"], row["n_visitors"], row["reports"], row["frequency"]) for row in first} == {
        ("suppressed", None, None, None)
    }
    nothing = [row for row in rows if row["first_day"] == date(2024, 6, 1)]
    assert {(row["status"], row["reports"], row["frequency"]) for row in nothing} == {
        ("not_collected", 0, None)
    }
    sdmx = list(csv.DictReader(io.StringIO(render_file(hidden, ending="sdmx.csv").decode())))
    codes = {row["TIME_PERIOD"]: (row["OBS_STATUS"], row["CONF_STATUS"]) for row in sdmx}
    assert codes["2024-05-30"] == ("Q", "A")
    assert codes["2024-06-01"] == ("L", "F")
    assert {row["OBS_VALUE"] for row in sdmx if row["TIME_PERIOD"] == "2024-05-30"} == {""}
    sheet = sheet_rows(render_file(hidden, ending="xlsx"), "gender")
    assert [(row["status"], row["frequency"]) for row in sheet[:3]] == [("suppressed", None)] * 3


def test_text_that_looks_like_a_formula_stays_text() -> None:
    evil = ["=1+1", "+33", "-5", "@SUM(A1)", "plain"]
    study = factory.create(factory.indicator("trap", *evil))
    factory.publish(study, factory.crowd(study))
    selection = select_study(study)
    rows = list(csv.DictReader(io.StringIO(render_file(selection, ending="csv").decode())))
    assert [row["category"] for row in rows[:5]] == ["'=1+1", "'+33", "'-5", "'@SUM(A1)", "plain"]
    assert any(float(row["ci_low"]) < 0 for row in rows), "negative numbers stay numbers"
    sdmx = list(csv.DictReader(io.StringIO(render_file(selection, ending="sdmx.csv").decode())))
    assert [row["CATEGORY"] for row in sdmx[:5]] == [row["category"] for row in rows[:5]]
    sheet = openpyxl.load_workbook(io.BytesIO(render_file(selection, ending="xlsx")))["trap"]
    column = NAMES.index("category") + 1
    cells = [sheet.cell(row, column) for row in range(2, 7)]
    assert [(cell.value, cell.data_type) for cell in cells] == [(text, "s") for text in evil]


def test_workbook_with_too_many_rows_is_refused_in_words(
    whole: Selection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spreadsheet, "MAX_ROWS", 29)
    with pytest.raises(
        ExportError, match=r"holds 29 rows of an indicator; gender has 30\. Take CSV or Parquet"
    ):
        render_file(whole, ending="xlsx")


def test_sheets_of_long_and_reserved_names_differ() -> None:
    used = {"about"}
    names = [
        spreadsheet._sheet_name(slug, used=used)
        for slug in ("about", "history", "a" * 40, "a" * 31, "A" * 32)
    ]
    assert names == ["about_2", "history_2", "a" * 31, "a" * 29 + "_2", "A" * 29 + "_3"]
    assert all(len(name) <= 31 for name in names)
