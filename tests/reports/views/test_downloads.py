"""Addresses of files: which formats there are for what, their names and types, and who is refused what."""

import io
import re
import zipfile
from html import unescape
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from reports.compare import compare_windows
from reports.exports.comparisons import comparison_findings
from reports.exports.findings import WRITERS, Findings
from reports.exports.formats import FORMATS, formats_for, render_file
from reports.exports.movements import movement_findings
from reports.exports.selection import Scope, select_days, select_study, select_window
from reports.models import Study
from reports.movement import movement
from reports.movement_figures import Show
from reports.options import DaysOptions, ReportOptions
from reports.selectors import Window

pytestmark = pytest.mark.django_db
OF_ANY_INDICATOR = [ending for ending, found in FORMATS.items() if not found.needs_zones]
ADDRESSES = {
    Scope.WINDOW: "/studies/fair-2024/age/export.{}?from=2024-05-31&to=2024-06-01",
    Scope.DAYS: "/studies/fair-2024/age/days.{}",
    Scope.STUDY: "/studies/fair-2024/export.{}",
}
NAMES = {
    Scope.WINDOW: "fair-2024_age_2024-05-31_2024-06-01",
    Scope.DAYS: "fair-2024_age_days",
    Scope.STUDY: "fair-2024",
}
every_file = pytest.mark.parametrize(
    ("scope", "ending"),
    [(scope, found.ending) for scope in Scope for found in formats_for(scope)],
    ids=str,
)


@every_file
def test_every_format_is_served_as_what_it_is(reader: Client, fair: Study, scope: Scope, ending: str) -> None:
    answer = reader.get(ADDRESSES[scope].format(ending))
    assert answer.status_code == 200
    assert answer["Content-Type"] == FORMATS[ending].content_type
    assert answer["Content-Disposition"] == f'attachment; filename="{NAMES[scope]}.{ending}"'
    age = fair.indicators.get(slug="age")
    selections = {
        Scope.WINDOW: lambda: select_window(age, Window(2, 3)),
        Scope.DAYS: lambda: select_days(age),
        Scope.STUDY: lambda: select_study(fair),
    }
    assert answer.content == render_file(selections[scope](), ending=ending)


def test_what_makes_no_sense_is_not_there(reader: Client, fair: Study) -> None:
    for address in ("/studies/fair-2024/export.png", "/studies/fair-2024/export.svg"):
        assert reader.get(address).status_code == 404
    for scope in Scope:
        assert reader.get(ADDRESSES[scope].format("xml")).status_code == 404


@pytest.mark.parametrize("ending", list(FORMATS))
def test_window_that_does_not_exist_is_refused_in_words(reader: Client, fair: Study, ending: str) -> None:
    answer = reader.get(f"/studies/fair-2024/age/export.{ending}?from=2030-01-01")
    assert answer.status_code == 400
    assert "window must lie within" in answer.content.decode()


def test_bundle_is_a_zip_or_says_why_not(reader: Client, fair: Study) -> None:
    address = reverse("reports:bundle", args=["fair-2024"])
    answer = reader.get(address)
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/zip")
    assert answer["Content-Disposition"] == 'attachment; filename="fair-2024_bundle.zip"'
    assert "recompute.py" in zipfile.ZipFile(io.BytesIO(answer.content)).namelist()
    Study.objects.update(small_cell=10**6)
    answer = reader.get(address)
    assert answer.status_code == 400
    assert "its small-cell rule hides windows with fewer than 1000000 visitors" in answer.content.decode()


@pytest.mark.parametrize(
    ("page", "scope"),
    [
        ("/studies/fair-2024/age/?from=2024-05-31&to=2024-06-01", Scope.WINDOW),
        ("/studies/fair-2024/age/days/", Scope.DAYS),
        ("/studies/fair-2024/", Scope.STUDY),
    ],
)
def test_page_links_to_every_format(reader: Client, fair: Study, page: str, scope: Scope) -> None:
    html = reader.get(page).content.decode()
    links = [link.replace("&amp;", "&") for link in re.findall(r'href="([^"]+)" download', html)]
    wanted = [ADDRESSES[scope].format(found.ending) for found in formats_for(scope)]
    assert [link for link in links if link in wanted] == wanted
    assert (reverse("reports:bundle", args=["fair-2024"]) in links) == (scope == Scope.STUDY)
    for link in wanted[:2]:
        assert reader.get(link).status_code == 200


COMPARED = "kind=windows&from=2024-05-31&to=2024-06-02&with_from=2024-05-30&measure=visitors"
MOVED = "show=there_again&day=2024-05-31&category=1"


def file_of_page(fair: Study, page: str) -> Findings:
    age = fair.indicators.get(slug="age")
    if page == "compare":
        return comparison_findings(compare_windows(age, Window(2, 4), Window(1, 1), of="visitors"))
    return movement_findings(movement(age, show=Show.THERE_AGAIN, cohort=2))


@pytest.mark.parametrize("ending", list(WRITERS))
@pytest.mark.parametrize(("page", "query"), [("compare", COMPARED), ("movement", MOVED)])
def test_findings_are_those_of_the_page_that_links_to_them(
    reader: Client, fair: Study, page: str, query: str, ending: str
) -> None:
    html = reader.get(f"/studies/fair-2024/age/{page}/?{query}").content.decode()
    links = [unescape(link) for link in re.findall(r'href="([^"]+)" download', html)]
    address = f"/studies/fair-2024/age/{page}.{ending}?{query}"
    assert address in links and len(links) == len(WRITERS)
    answer = reader.get(address)
    findings = file_of_page(fair, page)
    assert (answer.status_code, answer["Content-Type"]) == (200, FORMATS[ending].content_type)
    assert answer["Content-Disposition"] == f'attachment; filename="{findings.name}.{ending}"'
    assert answer.content == WRITERS[ending](findings)


def test_movements_need_no_choice(reader: Client, fair: Study) -> None:
    answer = reader.get("/studies/fair-2024/age/movement.csv")
    assert answer.content == WRITERS["csv"](movement_findings(movement(fair.indicators.get(slug="age"))))


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("compare.csv", "must name both sides"),
        ("compare.csv?kind=windows&from=2024-05-31&with_from=2024-05-31", "Both are the same days"),
        ("compare.csv?kind=windows&from=2030-05-31&with_from=2024-05-31", "the address names others"),
        ("compare.csv?kind=categories&from=2024-05-31&reference=9", "must be from 0 to 2, not 9"),
        ("compare.csv?kind=studies&from=2024-05-31&with=a/b", "no other indicator a/b"),
        ("movement.csv?show=nothing", "no figure with the name"),
        ("movement.csv?show=back_within&day=2024-06-02", "before its last one"),
    ],
)
def test_findings_that_do_not_exist_are_refused_in_words(
    reader: Client, fair: Study, address: str, words: str
) -> None:
    answer = reader.get(f"/studies/fair-2024/age/{address}")
    assert (answer.status_code, answer["Content-Type"]) == (400, "text/plain; charset=utf-8")
    assert words in answer.content.decode()


@pytest.mark.parametrize("ending", ["pdf", "png", "parquet", "sdmx.csv", "xml"])
def test_findings_have_few_formats(reader: Client, fair: Study, ending: str) -> None:
    assert reader.get(f"/studies/fair-2024/age/compare.{ending}?{COMPARED}").status_code == 404
    assert reader.get(f"/studies/fair-2024/age/movement.{ending}").status_code == 404


@pytest.mark.parametrize("file", [f"compare.csv?{COMPARED}", "movement.csv", "export.png", "days.csv"])
def test_files_have_the_readers_of_their_pages(fair: Study, operator: User, file: str) -> None:
    address = f"/studies/fair-2024/age/{file}"
    assert "/sign-in/" in Client().get(address)["Location"]
    stranger = Client()
    stranger.force_login(operator)
    assert stranger.get(address).status_code == 404


WINDOW_OPTIONS = {"order": "sorted", "measure": "visitors", "values": "consistent"}
DAYS_OPTIONS = {"show": "cumulative", "form": "multiples", "measure": "visitors"}


@pytest.mark.parametrize("ending", OF_ANY_INDICATOR)
def test_what_is_drawn_follows_the_address_and_data_do_not(reader: Client, fair: Study, ending: str) -> None:
    age = fair.indicators.get(slug="age")
    is_drawn = FORMATS[ending].is_drawn
    asked = f"{ADDRESSES[Scope.WINDOW].format(ending)}&{urlencode(WINDOW_OPTIONS)}"
    options = ReportOptions(**WINDOW_OPTIONS) if is_drawn else ReportOptions()
    wanted = render_file(select_window(age, Window(2, 3), options=options), ending=ending)
    assert reader.get(asked).content == wanted
    plain = reader.get(ADDRESSES[Scope.WINDOW].format(ending)).content
    assert (plain != wanted) == is_drawn
    asked = (
        f"{ADDRESSES[Scope.DAYS].format(ending)}?{urlencode(DAYS_OPTIONS)}&category=2&category=77&category=x"
    )
    answer = reader.get(asked)
    drawn = select_days(age, options=DaysOptions(**DAYS_OPTIONS), categories=[2])
    assert answer.content == render_file(drawn if is_drawn else select_days(age), ending=ending)
    name = "fair-2024_age_cumulative" if is_drawn else "fair-2024_age_days"
    assert f'"{name}.{ending}"' in answer["Content-Disposition"]


@pytest.mark.parametrize(
    ("page", "kept", "options"),
    [
        (
            "/studies/fair-2024/age/",
            {"from": "2024-05-31", "to": "2024-06-01"},
            list(WINDOW_OPTIONS.items()),
        ),
        ("/studies/fair-2024/age/days/", {}, [*DAYS_OPTIONS.items(), ("category", "2"), ("category", "0")]),
    ],
)
def test_links_carry_the_options_of_the_page(
    reader: Client, fair: Study, page: str, kept: dict[str, str], options: list[tuple[str, str]]
) -> None:
    html = reader.get(f"{page}?{urlencode([*kept.items(), *options])}").content.decode()
    links = [urlsplit(unescape(link)) for link in re.findall(r'href="([^"]+)" download', html)]
    assert len(links) == len(OF_ANY_INDICATOR)
    for link in links:
        ending = link.path.split(".", 1)[1]
        wanted = [*kept.items(), *(options if FORMATS[ending].is_drawn else [])]
        assert sorted(parse_qsl(link.query)) == sorted(wanted), ending


@pytest.mark.parametrize(
    "address",
    [
        "/studies/",
        "/studies/fair-2024/",
        "/studies/fair-2024/bundle.zip",
        "/studies/fair-2024/statement/",
        "/studies/fair-2024/statement.json",
        "/studies/fair-2024/age/",
        "/studies/fair-2024/age/compare/",
        "/studies/fair-2024/age/days/",
        "/studies/fair-2024/age/movement/",
        f"/studies/fair-2024/age/compare.csv?{COMPARED}",
        "/studies/fair-2024/age/movement.csv",
        *(ADDRESSES[scope].format("csv") for scope in Scope),
    ],
)
def test_programs_may_ask_for_the_head_only(reader: Client, fair: Study, address: str) -> None:
    head = reader.head(address)
    assert (head.status_code, head.content) == (200, b"")
    assert reader.post(address).status_code == 405
