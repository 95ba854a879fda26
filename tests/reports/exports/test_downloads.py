"""Addresses of files: which formats there are for what, their names and types, what each must hold."""

import io
import re
import zipfile
from dataclasses import replace
from html import unescape
from itertools import product
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from django.urls import reverse

from reports.compare.queries import compare_windows
from reports.estimates.options import DaysOptions, ReportOptions
from reports.estimates.queries import Window
from reports.exports.findings.comparisons import comparison_findings
from reports.exports.findings.movements import movement_findings
from reports.exports.formats.choosing import COMPARISON, FORMATS, MOVEMENT, formats_for
from reports.exports.selection import Scope, select_days, select_study, select_summary, select_window
from reports.movement.figures import Show
from reports.movement.queries import movement
from reports.studies.models import Study

pytestmark = pytest.mark.django_db
OF_INDICATORS = FORMATS[Scope.WINDOW]
OF_ANY_INDICATOR = [ending for ending, found in OF_INDICATORS.items() if not found.needs_zones]
AGE = "/studies/fair-2024/age/"
ADDRESSES = {Scope.DAYS: AGE + "days.{}", Scope.STUDY: "/studies/fair-2024/export.{}"}
ADDRESSES |= {Scope.WINDOW: AGE + "export.{}?from=2024-05-31&to=2024-06-01"}
NAMES = {Scope.WINDOW: "_age_2024-05-31_2024-06-01", Scope.DAYS: "_age_days", Scope.STUDY: ""}
BUNDLE, STATEMENT = "/studies/fair-2024/bundle.zip", "/studies/fair-2024/statement.json"
COMPARED = "kind=windows&from=2024-05-31&to=2024-06-02&with_from=2024-05-30&measure=visitors"
MOVED = "show=there_again&day=2024-05-31&category=1"
WINDOW_OPTIONS = {"order": "natural", "measure": "visitors", "values": "unbiased"}
DAYS_OPTIONS = {"show": "cumulative", "form": "lines", "measure": "visitors"}
LINKS = [
    ("", {"from": "2024-05-31", "to": "2024-06-01"}, list(WINDOW_OPTIONS.items())),
    ("days/", {}, [*DAYS_OPTIONS.items(), ("category", "2"), ("category", "0")]),
]


@pytest.fixture
def drawn(monkeypatch):
    selections = []

    def write(selection):
        selections.append(selection)
        return b"drawn"

    for scope, ending in product(Scope, OF_INDICATORS):
        found = FORMATS[scope].get(ending)
        if found and found.is_drawn:
            monkeypatch.setitem(FORMATS[scope], ending, replace(found, write=write))
    return selections


def file_of(reader, address):
    answer = reader.get(address)
    assert answer.status_code == 200, address
    assert answer["Link"] == f'<{STATEMENT}>; rel="describedby"'
    return answer


def links_of(reader, page):
    html = reader.get(page).content.decode()
    return [unescape(link) for link in re.findall(r'href="([^"]+)" (?:download|data-file)', html)]


class TestFiles:
    @pytest.mark.parametrize("scope", Scope)
    def test_every_format_is_served_as_what_it_is(self, reader, fair, age, drawn, scope):
        window, days = select_window(age, Window(2, 3)), select_days(age)
        selection = {Scope.WINDOW: window, Scope.DAYS: days, Scope.STUDY: select_study(fair)}[scope]
        for found in formats_for(scope):
            answer = file_of(reader, ADDRESSES[scope].format(found.ending))
            assert answer["Content-Type"] == found.content_type
            name = f"fair-2024{NAMES[scope]}.{found.ending}"
            assert answer["Content-Disposition"] == f'attachment; filename="{name}"'
            if not found.is_drawn:
                assert answer.content == found.write(selection)
            elif scope == Scope.STUDY:
                assert drawn.pop() == select_summary(fair)
            else:
                assert drawn.pop() == selection

    def test_files_of_the_study_lead_to_its_statement(self, reader, fair):
        assert reverse("reports:statement_file", args=[fair.slug]) == STATEMENT
        assert file_of(reader, STATEMENT).json()["study"]["slug"] == fair.slug
        assert STATEMENT in reader.get("/studies/fair-2024/gender/export.svg").content.decode()

    def test_what_makes_no_sense_is_not_there_or_refused_in_words(self, reader, fair):
        for ending in ("png", "svg"):
            assert reader.get(ADDRESSES[Scope.STUDY].format(ending)).status_code == 404
        for scope in Scope:
            assert reader.get(ADDRESSES[scope].format("xml")).status_code == 404
        for ending in ("pdf", "png", "parquet", "sdmx.csv", "xml"):
            assert reader.get(f"{AGE}compare.{ending}?{COMPARED}").status_code == 404
            assert reader.get(f"{AGE}movement.{ending}").status_code == 404

    def test_bundle_is_a_zip_or_says_why_not(self, reader, fair):
        answer = file_of(reader, BUNDLE)
        assert answer["Content-Type"] == "application/zip"
        assert answer["Content-Disposition"] == 'attachment; filename="fair-2024_bundle.zip"'
        assert "recompute.py" in zipfile.ZipFile(io.BytesIO(answer.content)).namelist()
        Study.objects.update(small_cell=10**6)
        assert reader.get(BUNDLE).status_code == 400

    def test_pages_link_to_every_format(self, reader, fair):
        pages = (AGE + "?from=2024-05-31&to=2024-06-01", AGE + "days/", "/studies/fair-2024/")
        for scope, page in zip(Scope, pages, strict=True):
            links = links_of(reader, page)
            wanted = [ADDRESSES[scope].format(found.ending) for found in formats_for(scope)]
            assert [link for link in links if link in wanted] == wanted
            assert (BUNDLE in links) == (scope == Scope.STUDY)

    def test_days_of_the_address_are_those_of_the_page_and_its_files(self, reader, age):
        asked = "?from=2024-05-31&to=2024-06-01"
        page = reader.get(f"{AGE}days/{asked}")
        assert [report.window for report in page.context["reports"]] == [Window(2, 2), Window(3, 3)]
        answer = file_of(reader, f"{AGE}days.json{asked}")
        assert answer.content == FORMATS[Scope.DAYS]["json"].write(select_days(age, days=Window(2, 3)))
        assert "fair-2024_age_days_2024-05-31_2024-06-01.json" in answer["Content-Disposition"]
        assert f"{AGE}days.json{asked}" in links_of(reader, f"{AGE}days/{asked}")
        for query in ("?from=2024-05-31", "?from=1999-01-01&to=1999-01-09"):  # a day alone shows no course
            assert len(reader.get(f"{AGE}days/{query}").context["reports"]) == age.study.days


class TestFindings:
    @pytest.mark.parametrize(("page", "query"), [("compare", COMPARED), ("movement", MOVED)])
    def test_findings_are_those_of_the_page_that_links_to_them(self, reader, age, page, query):
        if page == "compare":
            findings = comparison_findings(compare_windows(age, Window(2, 4), Window(1, 1), of="visitors"))
        else:
            findings = movement_findings(movement(age, show=Show.THERE_AGAIN, cohort=2))
        links = links_of(reader, f"{AGE}{page}/?{query}")
        formats = FORMATS[COMPARISON if page == "compare" else MOVEMENT]
        assert set(links) == {f"{AGE}{page}.{ending}?{query}" for ending in ("csv", "xlsx", "json")}
        for ending, found in formats.items():
            answer = file_of(reader, f"{AGE}{page}.{ending}?{query}")
            assert answer["Content-Type"] == found.content_type
            assert answer["Content-Disposition"] == f'attachment; filename="{findings.name}.{ending}"'
            assert answer.content == found.write(findings)

    @pytest.mark.parametrize(
        ("address", "said"),
        [
            ("compare.csv", "must specify both sides"),
            ("compare.csv?kind=windows&from=2024-05-31&with_from=2024-05-31", "cover the same days"),
            ("compare.csv?kind=windows&from=2030-05-31&with_from=2024-05-31", "link asks for other dates"),
            ("compare.csv?kind=categories&from=2024-05-31&reference=9", "but the address contains 9"),
            ("compare.csv?kind=studies&from=2024-05-31&with=a/b", "no indicator named a/b with the same"),
            ("movement.csv?show=nothing", "no figure named"),
            ("movement.csv?show=back_within&day=2024-06-02", "day of the study except the last"),
            *((f"export.{ending}?from=2030-01-01", "must lie between") for ending in OF_INDICATORS),
        ],
    )  # fmt: skip
    def test_findings_that_do_not_exist_are_refused_in_words(self, reader, fair, address, said):
        answer = reader.get(AGE + address)
        assert (answer.status_code, answer["Content-Type"]) == (400, "text/plain; charset=utf-8")
        assert said in answer.content.decode()


class TestOptions:
    def test_what_is_drawn_follows_the_address_and_data_do_not(self, reader, age, drawn):
        window = select_window(age, Window(2, 3), options=ReportOptions(**WINDOW_OPTIONS))
        days = select_days(age, options=DaysOptions(**DAYS_OPTIONS), categories=[2])
        assert window != select_window(age, Window(2, 3))
        categories = "category=2&category=77&category=x"
        for ending in OF_ANY_INDICATOR:
            is_drawn, plain = OF_INDICATORS[ending].is_drawn, ADDRESSES[Scope.WINDOW].format(ending)
            answer = reader.get(f"{plain}&{urlencode(WINDOW_OPTIONS)}")
            assert drawn.pop() == window if is_drawn else answer.content == reader.get(plain).content
            plain = ADDRESSES[Scope.DAYS].format(ending)
            answer = reader.get(f"{plain}?{urlencode(DAYS_OPTIONS)}&{categories}")
            assert drawn.pop() == days if is_drawn else answer.content == reader.get(plain).content
            name = "fair-2024_age_cumulative" if is_drawn else "fair-2024_age_days"
            assert f'"{name}.{ending}"' in answer["Content-Disposition"]

    @pytest.mark.parametrize(("page", "kept", "options"), LINKS)
    def test_links_carry_the_options_of_the_page(self, reader, fair, page, kept, options):
        links = links_of(reader, f"{AGE}{page}?{urlencode([*kept.items(), *options])}")
        assert len(links) == len(OF_ANY_INDICATOR)
        for link in map(urlsplit, links):
            ending = link.path.split(".", 1)[1]
            wanted = [*kept.items(), *(options if OF_INDICATORS[ending].is_drawn else [])]
            assert sorted(parse_qsl(link.query)) == sorted(wanted), ending
