"""Totals scaled by market shares of categories, from tallies to pages, files, the API and shared links."""

import io
import json
import zipfile
from dataclasses import replace
from datetime import date
from decimal import Decimal

import jsonschema
import numpy as np
import pytest
from django.conf import settings
from django.utils import translation

from reports.estimates.queries import Window, window_report
from reports.exports.bundle import bundle_of
from reports.extrapolation.queries import NoSharesError, extrapolation, extrapolations
from reports.extrapolation.texts import total_sentence
from reports.privacy.statement.document import privacy_statement
from reports.sharing import actions as access
from reports.studies.models import Study
from reports.studies.studyfile.category_shares import CategoryShare, CategoryShares
from tests.reports import report_factory as factory
from tests.reports.page_texts import csv_rows, pdf_text, words

pytestmark = pytest.mark.django_db
PAGE = "/studies/fair-2024/gender/"
QUERY = "?from=2024-05-31&to=2024-06-01"
NUMBERS = {"F": "0.38", "M": "0.2", "NR": "0.9"}


def shares(first=date(2024, 5, 1), last=date(2024, 6, 1), name="Survey 7", **changes):
    # Not in the order of the categories: that of a study file is of no account.
    given = [CategoryShare(category=each, share=Decimal(number)) for each, number in NUMBERS.items()]
    given[1] = replace(given[1], low=Decimal("0.17"), high=Decimal("0.23"))
    fields = {"name": name, "name_fr": "Enquête 7", "indicator": "gender", "shares": tuple(given[::-1])}
    return CategoryShares(**fields | {"valid_from": first, "valid_to": last} | changes)


@pytest.fixture
def study():
    return factory.published(category_shares=(shares(),), epsilon="3", market_share=Decimal("0.5"))


def gender(study):
    return study.indicators.get(slug="gender")


def test_the_statement_and_the_bundle_name_the_shares_and_their_days(reader, study) -> None:
    plain = factory.published(slug="plain", epsilon="3")
    found = {each.slug: privacy_statement(each) for each in (study, plain)}
    schema = json.loads((settings.BASE_DIR / "docs/statement.schema.json").read_text())
    for each in found.values():
        jsonschema.Draft202012Validator(schema).validate(each)
    assert "extrapolation" not in found["plain"]
    told = found[study.slug]["extrapolation"]
    (given,) = told["market_shares"]
    assert (given["name"], given["valid_from"], given["valid_to"]) == ("Survey 7", "2024-05-01", "2024-06-01")
    assert {each["category"]: each["share"] for each in given["shares"]} == NUMBERS
    with zipfile.ZipFile(io.BytesIO(bundle_of(study))) as bundle:
        assert json.loads(bundle.read("statement.json"))["extrapolation"] == told
    page = reader.get("/studies/fair-2024/statement/").content.decode()
    for said in (
        "does not change epsilon",
        "Survey 7 (<code>gender</code>, valid from",
        "M 20.0% (17.0%\u2013",
    ):
        assert said in page, said
    assert "scaling-title" not in reader.get("/studies/plain/statement/").content.decode()


def test_the_total_is_the_sum_over_categories_and_covers_the_truth(study) -> None:
    report = window_report(gender(study), Window(2, 3))
    found = extrapolation(report)
    people = factory.crowd(study)
    there = people.present(2, 3)
    true = np.bincount(people.static["gender"][there], minlength=3) / [
        float(each) for each in NUMBERS.values()
    ]
    assert abs(found.total.value - true.sum()) < 4 * found.total.std_error
    assert found.total.value == pytest.approx(sum(each.people.value for each in found.rows))
    for row, estimate, number in zip(found.rows, report.estimates, NUMBERS.values(), strict=True):
        assert row.category == estimate.category
        assert row.seen.value == pytest.approx(estimate.frequency * report.n_visitors)
        assert row.people.value == pytest.approx(row.seen.value / float(number))
    assert sum(each.seen.value for each in found.rows) == pytest.approx(report.n_visitors)
    assert found.shares.name == "Survey 7"
    exact = replace(shares(), shares=tuple(replace(each, low=None, high=None) for each in shares().shares))
    plain = factory.published(slug="exact", category_shares=(exact,), epsilon="3")
    other = extrapolation(window_report(gender(plain), Window(2, 3)))
    assert other.total.value == found.total.value
    assert other.total.std_error < found.total.std_error


@pytest.mark.parametrize("mechanism", ["rsfd-grr", "rsfd-ouez"])
def test_totals_from_made_up_reports_too_cover_the_truth(mechanism) -> None:
    study = factory.published(category_shares=(shares(),), epsilon="5", mechanism=mechanism)
    found = extrapolation(window_report(gender(study), Window(2, 3))).total
    people = factory.crowd(study)
    of_category = np.bincount(people.static["gender"][people.present(2, 3)], minlength=3)
    true = (of_category / [float(each) for each in NUMBERS.values()]).sum()
    assert abs(found.value - true) < 4 * found.std_error < true


def test_page_file_pdf_api_and_link_say_the_same(reader, client, token, analyst, study) -> None:
    whole, days = extrapolations(gender(study), Window(2, 3))
    total = f"{round(whole.total.value):,}"
    text = words(reader.get(PAGE + QUERY))
    ends = f"{round(whole.total.ci_low):,} to {round(whole.total.ci_high):,}"
    said = f"About {total} people (95% interval: {ends})."
    assert f"{said} Not scaled: {whole.report.n_visitors:,} visitors." in text
    assert "Survey 7, valid from Wed 1 May 2024 to Sat 1 Jun 2024" in text
    assert "It also includes the error of each market share that has an interval" in text
    assert "20.0% (17.0 to 23.0%)" in text
    assert [f"{round(each.total.value):,}" in text for each in days] == [True, True]
    assert "overall market share of 50.0%" in text
    rows = csv_rows(reader.get(f"{PAGE}extrapolation.csv{QUERY}"))
    assert [row["category"] for row in rows] == ["", "F", "M", "NR"] * 3
    assert [row["first_day"] for row in rows[::4]] == ["2024-05-31", "2024-05-31", "2024-06-01"]
    assert {(row["shares_name"], row["shares_valid_to"]) for row in rows} == {("Survey 7", "2024-06-01")}
    assert float(rows[0]["scaled"]) == whole.total.value
    assert float(rows[0]["not_scaled"]) == whole.report.n_visitors
    assert [row["category_share"] for row in rows[1:4]] == ["0.38", "0.2", "0.9"]
    assert reader.get(f"{PAGE}extrapolation.xlsx{QUERY}").content[:2] == b"PK"
    home = "/api/v1/studies/fair-2024/indicators"
    headers = {"Authorization": f"Bearer {token()}"}
    answer = client.get(f"{home}/gender/extrapolation{QUERY}", headers=headers).json()
    assert answer["sentence"] == total_sentence(whole)
    assert json.loads(reader.get(f"{PAGE}extrapolation.json{QUERY}").content)["rows"] == answer["rows"]
    assert client.get(f"{home}/age/extrapolation{QUERY}", headers=headers).status_code == 422
    printed = pdf_text(reader.get(f"{PAGE}export.pdf{QUERY}").content)
    assert said in " ".join(printed.split())
    given = {"query": "", "days": 30, "note": "", "password": "", "by": analyst}
    _, link = access.create_link(gender(study), Window(2, 3), **given)
    shared = words(client.get(f"/shared/{link}/"))
    assert said in shared
    assert "Download" not in shared


def test_other_indicators_have_no_such_total(reader, study) -> None:
    assert "scaled by category" not in words(reader.get(f"/studies/fair-2024/age/{QUERY}"))
    assert reader.get(f"/studies/fair-2024/age/extrapolation.csv{QUERY}").status_code == 400
    with pytest.raises(NoSharesError, match="no market shares for the categories of Age"):
        extrapolation(window_report(study.indicators.get(slug="age"), Window(1, 1)))


def test_days_without_shares_have_no_total_and_windows_over_two_have_those_of_days(reader) -> None:
    two = shares(last=date(2024, 5, 31)), shares(first=date(2024, 6, 1), last=None, name="Survey 8")
    study = factory.published(category_shares=two, epsilon="3")
    whole, days = extrapolations(gender(study), Window(2, 3))
    assert (whole.shares, whole.total.value, whole.rows) == (None, None, ())
    assert [each.shares.name for each in days] == ["Survey 7", "Survey 8"]
    assert "no market shares by category are valid on all of these days" in words(reader.get(PAGE + QUERY))
    rows = csv_rows(reader.get(f"{PAGE}extrapolation.csv{QUERY}"))
    assert [row["shares_name"] for row in rows] == ["Survey 7"] * 4 + ["Survey 8"] * 4
    Study.objects.update(category_shares=None)
    assert "scaled by category" not in words(reader.get(PAGE + QUERY))
    late = factory.published(slug="late", category_shares=(shares(first=date(2024, 6, 2), last=None),))
    refused = reader.get(f"/studies/{late.slug}/gender/extrapolation.csv?from=2024-05-31&to=2024-05-31")
    assert refused.status_code == 400
    assert "No total for the population" in words(refused)


def test_days_with_as_many_answers_are_all_shown_or_none() -> None:
    """The width of a total grows with it: it must not decide which totals are shown."""
    study = factory.published(category_shares=(shares(),), epsilon="1")
    report = window_report(gender(study), Window(2, 2))
    first, *others = report.estimates
    found = {}
    for n in range(10, 200, 10):
        for share in (-0.5, 0, 0.5, 1, 1.5):
            rest = [
                each._replace(frequency=(1 - share) / 2, consistent=max(1 - share, 0) / 2) for each in others
            ]
            moved = (first._replace(frequency=share, consistent=share), *rest)
            total = extrapolation(replace(report, n_reports=n, estimates=moved)).total
            assert found.setdefault(n, total.status) == total.status
    assert [*found.values()] == sorted(found.values())
    assert {*found.values()} == {"not_reliable", "ok"}


def test_small_numbers_stay_hidden(reader) -> None:
    study = factory.published(category_shares=(shares(),), epsilon="3", small_category=1000)
    assert any(each.is_hidden for each in window_report(gender(study), Window(2, 3)).estimates)
    whole, _ = extrapolations(gender(study), Window(2, 3))
    assert (whole.total.status, whole.total.value, whole.rows) == ("suppressed", None, ())
    rows = csv_rows(reader.get(f"{PAGE}extrapolation.csv{QUERY}"))
    assert {row["scaled"] for row in rows} == {""}
    Study.objects.update(small_category=0, small_cell=100_000)
    assert extrapolation(window_report(gender(Study.objects.get()), Window(2, 3))).total.value is None


def test_readers_see_the_shares_of_a_study_and_everything_in_french(reader, study) -> None:
    text = words(reader.get("/studies/fair-2024/"))
    assert "Survey 7 ( gender , valid from Wed 1 May 2024 to Sat 1 Jun 2024)" in text
    assert "M 20.0% (17.0%\u201323.0%)" in text
    found = extrapolation(window_report(gender(study), Window(2, 3)))
    with translation.override("fr"):
        assert "Sans redressement" in total_sentence(found)
        assert "Enquête 7, valables du mer 1er mai 2024 au sam 1er juin 2024" in total_sentence(found)
