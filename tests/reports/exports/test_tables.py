"""Tables of estimates, comparisons and movements in every format, each read back with another library."""

import csv
import io
import json
import tracemalloc
from datetime import date, datetime
from decimal import Decimal

import openpyxl
import polars
import pytest

from reports.base.version import software
from reports.compare import queries
from reports.compare.queries import Kind
from reports.estimates.queries import LEVEL, Window, indicator_reports
from reports.exports.errors import ExportError
from reports.exports.findings.comparisons import comparison_findings
from reports.exports.findings.movements import movement_findings
from reports.exports.formats import spreadsheet
from reports.exports.formats.choosing import FORMATS, MOVEMENT
from reports.exports.formats.columns import NAMES
from reports.exports.records import ESTIMATE_NAMES, REPORT_NAMES, report_record, to_json
from reports.exports.selection import Scope, select_days, select_study, select_window
from reports.models import DayNote, Study
from reports.movement.figures import Show
from reports.movement.queries import movement
from tests.reports import report_factory as factory
from tests.reports.report_factory import render_file

pytestmark = pytest.mark.django_db
LATER = {"slug": "later-2025", "name": "Later", "market_share": Decimal("0.5"), "epsilon": "2"}
WHOLE = Window(1, 4)


@pytest.fixture
def whole(fair):
    return select_study(fair)


def expected_rows(selection):
    return [
        {"study": report.study.slug, "indicator": report.indicator.slug}
        | {"first_day": report.first_date, "last_day": report.last_date}
        | {name: getattr(report, name) for name in REPORT_NAMES[4:]}
        | {name: getattr(estimate, name) for name in ESTIMATE_NAMES}
        | {"ci_level": LEVEL, "timezone": "Europe/Paris", "software_version": software()["version"]}
        for report in selection.reports
        for estimate in report.estimates
    ]


def csv_rows(selection, ending="csv"):
    return list(csv.DictReader(io.StringIO(render_file(selection, ending=ending).decode())))


def cumulative_rows(study):
    text = FORMATS[Scope.STUDY]["cumulative.csv"].write(select_study(study)).decode()
    return list(csv.DictReader(io.StringIO(text)))


def parquet_of(selection):
    return io.BytesIO(render_file(selection, ending="parquet"))


def workbook_of(selection):
    return openpyxl.load_workbook(io.BytesIO(render_file(selection, ending="xlsx")))


def sheet_rows(sheet):
    names, *rows = sheet.iter_rows(values_only=True)
    return [dict(zip(map(str, names), row, strict=True)) for row in rows]


def compared(age, kind, *, of="frequency"):
    if kind == Kind.WINDOWS:
        return queries.compare_windows(age, Window(2, 4), Window(1, 2), of=of)
    if kind == Kind.CATEGORIES:
        return queries.compare_categories(age, WHOLE, reference=1, category=None, of=of)
    if kind == Kind.BASELINE:
        return queries.compare_baseline(age, 2, baseline=None, of=of)
    other = (Study.objects.filter(slug="later-2025").first() or factory.published(**LATER)).indicators
    sides = {"other": other.get(slug="age"), "other_window": Window(1, 3)}
    return queries.compare_studies(age, WHOLE, **sides, of=of)


def read_back(findings, ending):
    content = FORMATS[MOVEMENT][ending].write(findings)
    if ending == "json":
        whole = json.loads(content)
        return [{name: (whole | row)[name] for name in findings.names} for row in whole.pop("rows")]
    if ending == "csv":
        return [dict(row) for row in csv.DictReader(io.StringIO(content.decode()))]
    return sheet_rows(openpyxl.load_workbook(io.BytesIO(content))[findings.sheet])


def check_files(findings):
    for ending, form in FORMATS[MOVEMENT].items():
        rows = read_back(findings, ending)
        assert len(rows) == len(findings.rows) > 0
        for row, cells in zip(rows, findings.flat(), strict=True):
            assert list(row) == findings.names
            for name, cell in zip(findings.names, cells, strict=True):
                found = row[name].date().isoformat() if isinstance(row[name], datetime) else row[name]
                if ending == "csv":
                    assert found == ("" if cell is None else str(cell)), name
                elif ending == "xlsx" and isinstance(cell, float):
                    assert found == pytest.approx(cell, rel=1e-14), name
                else:
                    assert found == cell, name
        assert form.write(findings) == form.write(findings)


def totals_of(findings):
    return [row for row in findings.rows if row["category"] is None]


class TestEstimates:
    def test_workbook_has_every_number_in_a_sheet_per_indicator_and_says_what_it_is(self, whole):
        book = workbook_of(whole)
        assert book.sheetnames == ["About", "gender", "age", "stay"]
        rows = [row for name in book.sheetnames[1:] for row in sheet_rows(book[name])]
        for row, expected in zip(rows, expected_rows(whole), strict=True):
            row["first_day"], row["last_day"] = row["first_day"].date(), row["last_day"].date()
            for column, value in expected.items():
                # Workbooks hold 16 digits of a number.
                found = pytest.approx(row[column], rel=1e-15) if isinstance(value, float) else row[column]
                assert value == found, column
        said = {row[0]: row[1] for row in book["About"].iter_rows(values_only=True)}
        expected = {
            "Study": "fair-2024", "Days (inclusive)": "2024-05-30/2024-06-02", "Mechanism": "smp-grr",
            "Time zone used for days": "Europe/Paris", "Plan version": "1",
            "Privacy unit": "all of a person's values (profile)",
            "Confidence level of the intervals": "0.95", "Software": "{name} {version}".format(**software()),
        }  # fmt: skip
        assert {name: said[name] for name in expected} == expected
        assert said["suppressed"].startswith("suppressed by the study's small-cell rule")
        columns = {name: said[name] for sheet in book.worksheets[1:] for name in sheet_rows(sheet)[0]}
        assert columns["reports"].startswith("Number of random answers")
        assert all(text.endswith(".") for text in columns.values())

    def test_csv_has_every_number_and_parquet_with_its_type(self, whole):
        rows = csv_rows(whole)
        assert list(rows[0]) == list(NAMES)
        assert rows == [{name: str(value) for name, value in row.items()} for row in expected_rows(whole)]
        content = parquet_of(whole)
        frame = polars.read_parquet(content)
        assert (frame.columns, frame.to_dicts()) == (list(NAMES), expected_rows(whole))
        assert (frame.schema["first_day"], frame.schema["n_reports"]) == (polars.Date, polars.Int64)
        facts = json.loads(polars.read_parquet_metadata(content)["mobility_reports"])
        assert (facts["plan_version"], facts["unit"], facts["ci_level"]) == ("1", "profile", "0.95")
        assert facts["plan_sha256"] == whole.reports[0].plan.spec_hash

    def test_cumulative_days_end_on_a_date_and_count_each_visitor_once(self):
        study = factory.published(factory.AGE, factory.HALF_STAY, days=9)
        rows = cumulative_rows(study)
        expected = [
            (indicator, day, category, days)
            for indicator, most in (
                (study.indicators.get(slug="age"), 7),
                (study.indicators.get(slug="stay"), 1),
            )
            for day in range(1, 10)
            for category in indicator.categories
            for days in range(1, min(day, most) + 1)
        ]
        assert len(rows) == len(expected)
        for row, (indicator, day, category, days) in zip(rows, expected, strict=True):
            (report,) = indicator_reports(indicator, [Window(day - days + 1, day)])
            (estimate,) = [each for each in report.estimates if each.category == category]
            names = ("study", "indicator", "date", "category", "cumulative_days", "status")
            said = (study.slug, indicator.slug, str(report.last_date), category, str(days), estimate.status)
            assert tuple(row[name] for name in names) == said
            ends = (estimate.visitors, estimate.visitors_ci_low, estimate.visitors_ci_high)
            assert tuple(row[f"volume{end}"] for end in ("", "_ci_low", "_ci_high")) == tuple(map(str, ends))

    def test_cumulative_days_have_no_rows_of_moves_which_are_no_visitors(self):
        study = factory.published(factory.GENDER, factory.moves("flow", "East", "West"))
        assert {row["indicator"] for row in cumulative_rows(study)} == {"gender"}

    def test_cumulative_days_leave_hidden_numbers_empty(self):
        study = factory.published(factory.AGE, small_category=10**6)
        rows = cumulative_rows(study)
        assert {(row["volume"], row["volume_ci_low"], row["status"]) for row in rows} == {("", "", "small")}
        assert all(int(row["visitors_below"]) > 0 for row in rows)

    @pytest.mark.parametrize(("end", "freq", "time"), [(2, "D", "2024-05-31"), (4, "_O", "2024-05-31/P3D")])
    def test_sdmx_has_its_columns_and_codes(self, fair, end, freq, time):
        selection = select_window(fair.indicators.get(slug="age"), Window(2, end))
        rows = csv_rows(selection, "sdmx.csv")
        assert list(rows[0]) == [
            "STRUCTURE", "STRUCTURE_ID", "ACTION",
            "FREQ", "REF_AREA", "TIME_PERIOD", "INDICATOR", "CATEGORY", "OBS_VALUE", "CI_LOW", "CI_HIGH",
            "CI_LEVEL", "N_REPORTS", "EPSILON", "MECHANISM", "POLICY_VERSION", "OBS_STATUS", "CONF_STATUS",
        ]  # fmt: skip
        (report,) = selection.reports
        for row, estimate in zip(rows, report.estimates, strict=True):
            assert (row["FREQ"], row["REF_AREA"], row["TIME_PERIOD"]) == (freq, "fair-2024", time)
            assert float(row["OBS_VALUE"]) == estimate.frequency
            assert (float(row["CI_LOW"]), float(row["CI_HIGH"])) == (estimate.ci_low, estimate.ci_high)
            assert (row["N_REPORTS"], row["EPSILON"]) == (str(report.n_reports), "1.0")
            assert (row["OBS_STATUS"], row["CONF_STATUS"]) == ("E", "F")
        assert [row["CATEGORY"] for row in rows] == ["_18", "18-24", "25_older"]

    @pytest.mark.parametrize("ending", ["csv", "json", "xlsx", "parquet", "sdmx.csv"])
    def test_same_data_give_the_same_bytes_of_days_and_windows_too(self, fair, ending):
        stay = fair.indicators.get(slug="stay")
        first, again = (render_file(select_study(fair), ending=ending) for _ in range(2))
        assert first == again
        for selection in (select_days(stay), select_window(stay, Window(1, 3))):
            assert len(render_file(selection, ending=ending)) > 100

    def test_four_kinds_of_blank_stay_four(self):
        study = factory.create(factory.GENDER)
        factory.publish(study, factory.absent_on(factory.crowd(study), day=3))
        DayNote.objects.create(study=study, day=4, kind="outage", text="mast down", by="adam")
        (indicator,) = study.indicators.all()
        few = indicator_reports(indicator, [Window(1, 1)])[0].n_visitors
        statuses = [report.status for report in select_days(indicator).reports]
        assert statuses == ["ok", "ok", "not_collected", "outage"]
        Study.objects.update(small_cell=few + 1)
        hidden = select_days(type(indicator).objects.get())

        def found(day, *names):
            return {tuple(row[name] for name in names) for row in rows if row["first_day"] == day}

        rows = polars.read_parquet(parquet_of(hidden)).to_dicts()
        suppressed = found(date(2024, 5, 30), "status", "n_visitors", "reports", "frequency")
        assert suppressed == {("suppressed", None, None, None)}
        assert found(date(2024, 6, 1), "status", "reports", "frequency") == {("not_collected", 0, None)}
        sdmx = csv_rows(hidden, "sdmx.csv")
        codes = {row["TIME_PERIOD"]: (row["OBS_STATUS"], row["CONF_STATUS"]) for row in sdmx}
        assert (codes["2024-05-30"], codes["2024-06-01"]) == (("Q", "A"), ("L", "F"))
        assert {row["OBS_VALUE"] for row in sdmx if row["TIME_PERIOD"] == "2024-05-30"} == {""}
        sheet = sheet_rows(workbook_of(hidden)["gender"])
        assert [(row["status"], row["frequency"]) for row in sheet[:3]] == [("suppressed", None)] * 3

    def test_json_is_written_a_report_at_a_time(self, whole):
        records = [report_record(report) for report in whole.reports * 20]
        tracemalloc.start()
        try:
            text, peak = to_json(whole.reports * 20), tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 4 * len(text)
        assert text == json.dumps(records, ensure_ascii=False, indent=1)
        assert to_json([]) == "[]"

    def test_text_that_looks_like_a_formula_stays_text(self):
        evil = ["=1+1", "+33", "-5", "@SUM(A1)", "plain"]
        selection = select_study(factory.published(factory.indicator("trap", *evil)))
        rows = csv_rows(selection)
        assert [row["category"] for row in rows[:5]] == ["'=1+1", "'+33", "'-5", "'@SUM(A1)", "plain"]
        assert any(float(row["ci_low"]) < 0 for row in rows), "negative numbers stay numbers"
        sdmx = csv_rows(selection, "sdmx.csv")
        assert [row["CATEGORY"] for row in sdmx[:5]] == ["_1_1", "_33", "_-5", "_SUM_A1_", "plain"]
        sheet, column = workbook_of(selection)["trap"], NAMES.index("category") + 1
        cells = [sheet.cell(row, column) for row in range(2, 7)]
        assert [(cell.value, cell.data_type) for cell in cells] == [(text, "s") for text in evil]
        windows, trap = (Window(1, 2), Window(3, 4)), Study.objects.get().indicators.get()
        findings = comparison_findings(queries.compare_windows(trap, *windows, of="frequency"))
        written = [row["category"] for row in read_back(findings, "csv")]
        assert written == [row["category"] for row in rows[:5]]
        assert [row["category"] for row in read_back(findings, "xlsx")] == evil

    def test_workbook_with_too_many_rows_is_refused_in_words(self, whole, age, monkeypatch):
        monkeypatch.setattr(spreadsheet, "MAX_ROWS", 29)
        said = r"can hold at most 29 rows per indicator, but gender has 30\. Choose CSV or Parquet"
        with pytest.raises(ExportError, match=said):
            render_file(whole, ending="xlsx")
        monkeypatch.setattr(spreadsheet, "MAX_ROWS", 2)
        with pytest.raises(ExportError, match=r"can hold 2 rows, but this table has 3\. Choose CSV or JSON"):
            FORMATS[MOVEMENT]["xlsx"].write(comparison_findings(compared(age, Kind.WINDOWS)))

    def test_sheets_of_long_and_reserved_names_differ(self):
        used, slugs = {"about"}, ("about", "history", "a" * 40, "a" * 31, "A" * 32)
        names = [spreadsheet._sheet_name(slug, used=used) for slug in slugs]
        assert names == ["about_2", "history_2", "a" * 31, "a" * 29 + "_2", "A" * 29 + "_3"]
        assert all(len(name) <= 31 for name in names)


class TestComparisons:
    @pytest.mark.parametrize("kind", Kind)
    def test_comparison_has_every_value_of_its_page(self, age, kind):
        for of in ("frequency", "visitors"):
            comparison = compared(age, kind, of=of)
            findings = comparison_findings(comparison)
            for found, row in zip(findings.rows, comparison.rows, strict=True):
                expected = {
                    "difference": row.difference, "ci_low": row.low, "ci_high": row.high,
                    "std_error": row.std_error,
                    "value": row.value.value, "value_ci_low": row.value.low, "value_ci_high": row.value.high,
                    "reference": row.reference.value, "reference_ci_low": row.reference.low,
                    "reference_ci_high": row.reference.high, "verdict": row.alone,
                    "adjusted_verdict": row.held, "category": row.category,
                    "reference_category": "18-24" if kind == Kind.CATEGORIES else row.category,
                }  # fmt: skip
                assert {name: found[name] for name in expected} == expected
                # The intervals are not quite those of a normal law, which would be as wide as this.
                assert (row.high - row.low) / 2 == pytest.approx(1.959963984540054 * row.std_error, rel=0.03)
            expected = {
                "comparison": kind, "measure": of, "adjustment": "holm", "n_rows": len(comparison.rows),
                "interval": "exact" if comparison.is_exact else "at_least", "plan_version": 1, "epsilon": 1.0,
                "unit": "profile", "n_visitors": comparison.report.n_visitors,
                "n_reports": comparison.report.n_reports, "ci_level": LEVEL, "timezone": "Europe/Paris",
                "software_version": software()["version"],
            }  # fmt: skip
            whole = findings.before | findings.after
            assert {name: whole[name] for name in expected} == expected
        check_files(findings)

    def test_both_sides_name_their_study_days_and_plan(self, age):
        findings = comparison_findings(compared(age, Kind.STUDIES, of="visitors"))
        whole = findings.before | findings.after
        last_days, shares = ("2024-06-02", "2024-06-01"), (1.0, 0.5)
        sides = {"study": ("fair-2024", "later-2025"), "epsilon": (1.0, 2.0), "market_share": shares}
        for name, expected in (sides | {"last_day": last_days}).items():
            assert (whole[name], whole[f"reference_{name}"]) == expected

    def test_mean_of_days_lists_them_and_has_no_window(self, age):
        before = comparison_findings(compared(age, Kind.BASELINE)).before
        assert before["baseline_days"] == "2024-05-30 2024-06-01 2024-06-02"
        assert before["left_out_days"] is None
        for name in ("first_day", "last_day", "n_visitors", "n_reports"):
            assert before[f"reference_{name}"] is None
        one = comparison_findings(queries.compare_baseline(age, 2, baseline=[4], of="frequency")).before
        assert (one["reference_first_day"], one["baseline_days"]) == ("2024-06-02", "2024-06-02")
        assert one["reference_n_visitors"] > 0

    def test_single_row_needs_no_adjustment_and_what_is_not_reliable_has_no_verdict(self, age):
        pair = queries.compare_categories(age, WHOLE, reference=0, category=2, of="frequency")
        assert comparison_findings(pair).after["adjustment"] == "none"
        few = factory.published(factory.indicator("zone", *"ABCDEF"), n=300, epsilon="0.2", slug="few")
        comparison = queries.compare_windows(few.indicators.get(), Window(1, 2), Window(3, 4), of="frequency")
        assert {row.status for row in comparison.rows} == {"not_reliable"}
        for row in comparison_findings(comparison).rows:
            assert (row["verdict"], row["adjusted_verdict"], row["status"]) == (None, None, "not_reliable")
            assert row["ci_low"] < row["ci_high"]


class TestMovements:
    @pytest.mark.parametrize("show", Show)
    def test_movement_has_every_value_of_its_page(self, age, show):
        found = movement(age, show=show)
        findings = movement_findings(found)
        check_files(findings)
        rows = [row for row in findings.rows if row["category"] is not None]
        estimates = [(point, estimate) for point in found.points for estimate in point.estimates]
        assert len(rows) == len(estimates) > 0
        for row, (point, estimate) in zip(rows, estimates, strict=True):
            assert (row["category"], row["value"]) == (estimate.category, estimate.value)
            assert (row["ci_low"], row["ci_high"]) == (estimate.ci_low, estimate.ci_high)
            assert row["consistent"] == estimate.consistent
            assert (row["status"], row["value_unit"]) == (estimate.status, found.unit)
            if estimate.ci_low is not None:
                assert row["interval"] == ("exact" if point.is_exact else "at_least")
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

    def test_totals_are_counts_and_each_is_there_once(self, age):
        found = movement(age, show=Show.ARRIVALS)
        totals = totals_of(movement_findings(found))
        assert {row["interval"] for row in totals} == {"count"}
        by_name = {(row["figure"], row["day"]): row["value"] for row in totals}
        assert len(by_name) == len(totals) == 3 + 4 * 4
        assert by_name["different_visitors", None] == found.key.n_visitors
        assert by_name["days_present", None] == found.key.mean_days
        for day in found.totals:
            name = day.coverage.date.isoformat()
            values = [by_name[figure, name] for figure in ("visitors", "arrivals", "returning", "departures")]
            assert values == [day.coverage.visitors, day.arrivals, day.returning, day.departures]
        found = movement(age, show=Show.THERE_AGAIN)  # Bounds of a total are no count.
        assert [point.is_exact for point in found.points] == [True, False, False]
        rows = [row for row in totals_of(movement_findings(found)) if row["figure"] == "there_again"]
        assert [row["interval"] for row in rows] == ["count", "bounds", "bounds"]
        for row, point in zip(rows[1:], found.points[1:], strict=True):
            assert (row["value"], row["ci_low"], row["ci_high"]) == (None, point.low, point.high)

    def test_what_is_hidden_or_missing_says_why(self):
        study = factory.create(factory.GENDER)
        factory.publish(study, factory.absent_on(factory.crowd(study), day=3))
        DayNote.objects.create(study=study, day=4, kind="outage", text="mast down", by="adam")

        def rows(small_cell):
            Study.objects.update(small_cell=small_cell)
            return movement_findings(movement(Study.objects.get().indicators.get(), show=Show.ARRIVALS)).rows

        hidden, shown = rows(10**6), rows(0)
        assert {row["value"] for row in hidden if row["status"] != "ok"} == {None}
        assert {row["status"] for row in hidden if row["day"] == "2024-05-31"} == {"suppressed"}
        for row in (row for row in shown if row["day"] == "2024-06-01"):
            assert (row["status"], row["value"], row["interval"]) == ("not_collected", None, None)
        assert "outage" in {row["status"] for row in shown if row["day"] == "2024-06-02"}

    def test_part_of_a_day_that_is_hidden_is_suppressed_though_the_day_is_shown(self, age):
        days = movement(age, show=Show.ARRIVALS).totals
        least = min(count for day in days for count in (day.arrivals, day.returning, day.departures) if count)
        assert least < min(day.coverage.visitors or 0 for day in days)
        Study.objects.update(small_cell=least + 1)
        found = movement(Study.objects.get().indicators.get(slug="age"), show=Show.ARRIVALS)
        findings = movement_findings(found)
        hidden = [row for row in totals_of(findings) if row["status"] == "suppressed"]
        assert hidden and {(row["value"], row["interval"]) for row in hidden} == {(None, None)}
        shown = {row["day"]: row["status"] for row in findings.rows if row["figure"] == "visitors"}
        assert {shown[row["day"]] for row in hidden if row["day"]} == {"ok"}
        assert all(row["value"] is not None for row in findings.rows if row["status"] == "ok")

    def test_workbook_explains_its_columns_and_both_studies(self, age):
        findings = comparison_findings(compared(age, Kind.STUDIES))
        book = openpyxl.load_workbook(io.BytesIO(FORMATS[MOVEMENT]["xlsx"].write(findings)))
        assert book.sheetnames == ["About", "compare"]
        said = [str(cell) for row in book["About"].iter_rows(values_only=True) for cell in row if cell]
        assert said.count("Source of the figures") == said.count("Compared with") == 1
        names = {"fair-2024", "later-2025", "holm", "at_least", "not_shown", "suppressed", "Europe/Paris"}
        assert names <= set(said)
        assert any("Each study has its own key" in text for text in said)
        first_day = book["compare"].cell(2, findings.names.index("first_day") + 1).value
        assert first_day == datetime.combine(date(2024, 5, 30), datetime.min.time())
