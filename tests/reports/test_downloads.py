"""Files: `export_report`, and the same numbers behind the links of the pages."""

import csv
import io
import json
from dataclasses import replace
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from reports import selectors
from reports.models import Study
from reports.selectors import Window
from reports.version import software
from tests.reports import report_factory as factory

pytestmark = pytest.mark.django_db

REPORT_KEYS = [
    "study", "indicator", "first_day", "last_day", "plan_version", "mechanism", "epsilon", "unit",
    "n_visitors", "n_reports", "estimates", "status", "ci_level", "timezone", "software_version",
]  # fmt: skip
ESTIMATE_KEYS = [
    "category", "reports", "frequency", "std_error", "ci_low", "ci_high", "consistent", "visitors",
    "visitors_ci_low", "visitors_ci_high", "status",
]  # fmt: skip


def export(*args: str) -> str:
    out = io.StringIO()
    call_command("export_report", *args, stdout=out)
    return out.getvalue()


def test_json_has_the_agreed_names_in_plan_order(fair: Study) -> None:
    records = json.loads(export("fair-2024"))
    assert [list(record) for record in records] == [REPORT_KEYS] * 30
    assert [record["indicator"] for record in records] == ["gender"] * 10 + ["age"] * 10 + ["stay"] * 10
    days = [(record["first_day"], record["last_day"]) for record in records[:10]]
    assert days == sorted(days)
    assert days[0] == ("2024-05-30", "2024-05-30")
    for record in records:
        assert [list(estimate) for estimate in record["estimates"]] == [ESTIMATE_KEYS] * len(
            record["estimates"]
        )
    assert [estimate["category"] for estimate in records[10]["estimates"]] == ["<18", "18-24", "25 & older"]


def test_values_are_those_of_the_selectors(fair: Study) -> None:
    record = json.loads(
        export("fair-2024", "--indicator", "age", "--from", "2024-05-31", "--to", "2024-06-01")
    )
    report = selectors.window_report(fair.indicators.get(slug="age"), Window(2, 3))
    assert len(record) == 1
    assert record[0] | {"estimates": None} == {
        "study": "fair-2024",
        "indicator": "age",
        "first_day": "2024-05-31",
        "last_day": "2024-06-01",
        "plan_version": 1,
        "mechanism": "smp-grr",
        "epsilon": 1.0,
        "unit": "profile",
        "n_visitors": report.n_visitors,
        "n_reports": report.n_reports,
        "estimates": None,
        "status": "ok",
        "ci_level": 0.95,
        "timezone": "Europe/Paris",
        "software_version": software()["version"],
    }
    for row, estimate in zip(record[0]["estimates"], report.estimates, strict=True):
        assert row == {name: getattr(estimate, name) for name in ESTIMATE_KEYS}


def test_csv_has_one_row_per_estimate_with_the_same_numbers(fair: Study) -> None:
    rows = list(csv.DictReader(io.StringIO(export("fair-2024", "--format", "csv"))))
    flat = [
        {**record, **estimate}
        for record in json.loads(export("fair-2024"))
        for estimate in record.pop("estimates")
    ]
    names = REPORT_KEYS[:10] + ESTIMATE_KEYS + REPORT_KEYS[12:]
    assert list(rows[0]) == names
    assert rows == [{name: str(row[name]) for name in names} for row in flat]


def test_same_data_gives_the_same_bytes(fair: Study) -> None:
    assert export("fair-2024") == export("fair-2024")


def test_window_without_data_has_zeros_and_nulls() -> None:
    factory.create()
    records = json.loads(export("fair-2024"))
    assert len(records) == 30
    for record in records:
        assert (record["n_visitors"], record["n_reports"]) == (0, 0)
        for estimate in record["estimates"]:
            assert estimate.pop("category")
            assert estimate.pop("reports") == 0
            assert estimate.pop("status") == "not_collected"
            assert set(estimate.values()) == {None}
    rows = list(csv.DictReader(io.StringIO(export("fair-2024", "--format", "csv"))))
    assert {row["frequency"] for row in rows} == {""}


def test_unions_that_do_not_exist_are_left_out_unless_asked_for_by_name() -> None:
    study = factory.create(factory.GENDER, replace(factory.STAY, max_values=2))
    factory.publish(study, factory.crowd(study))
    records = json.loads(export("fair-2024"))
    assert [record["indicator"] for record in records].count("stay") == 4
    window = ("--from", "2024-05-30", "--to", "2024-05-31")
    assert [record["indicator"] for record in json.loads(export("fair-2024", *window))] == ["gender"]
    with pytest.raises(CommandError, match="window of stay must be a single day"):
        export("fair-2024", "--indicator", "stay", *window)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["nope"], r"STUDY must be the slug of a study \(fair-2024\), got nope"),
        (["fair-2024", "--indicator", "nope"], "--indicator must be one of gender, age, stay, got nope"),
        (["fair-2024", "--from", "2024-05-30"], "--from and --to must be given together"),
        (
            ["fair-2024", "--from", "x", "--to", "2024-05-30"],
            "--from must be a date such as 2017-05-31, got x",
        ),
        (["fair-2024", "--from", "2024-05-30", "--to", "2024-06-03"], "window must lie within 2024-05-30 to"),
        (["fair-2024", "--format", "xml"], "invalid choice"),
    ],
)
def test_errors_name_what_is_wrong(fair: Study, args: list[str], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        export(*args)


def get(client: Client, name: str, *args: str, **query: str) -> Any:
    return client.get(reverse(f"reports:{name}", args=args), query)


def test_links_give_what_the_command_prints(reader: Client, fair: Study) -> None:
    for file_format in ("json", "csv"):
        whole = get(reader, "study_file", "fair-2024", file_format)
        assert whole.content.decode().strip() == export("fair-2024", "--format", file_format).strip()
    window = get(
        reader, "indicator_file", "fair-2024", "age", "json", **{"from": "2024-05-31", "to": "2024-06-01"}
    )
    expected = export("fair-2024", "--indicator", "age", "--from", "2024-05-31", "--to", "2024-06-01")
    assert window.json() == json.loads(expected)
    assert window["Content-Disposition"] == (
        'attachment; filename="fair-2024_age_2024-05-31_2024-06-01.json"'
    )
    days = get(reader, "days_file", "fair-2024", "stay", "json").json()
    assert [day["first_day"] for day in days] == ["2024-05-30", "2024-05-31", "2024-06-01", "2024-06-02"]
    assert all(day["first_day"] == day["last_day"] for day in days)


def test_link_to_a_window_that_does_not_exist_is_refused(reader: Client, fair: Study) -> None:
    answer = get(reader, "indicator_file", "fair-2024", "age", "csv", **{"from": "2030-01-01"})
    assert answer.status_code == 400
    assert "window must lie within" in answer.content.decode()
