"""Addresses of files: which formats there are for what, their names and types, and who is refused what."""

import io
import re
import zipfile
from html import unescape
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from django.test import Client
from django.urls import reverse

from reports.exports.formats import FORMATS, formats_for, render_file
from reports.exports.selection import Scope, select_days, select_study, select_window
from reports.models import Study
from reports.options import DaysOptions, ReportOptions
from reports.selectors import Window

pytestmark = pytest.mark.django_db
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


WINDOW_OPTIONS = {"order": "sorted", "measure": "visitors", "values": "consistent"}
DAYS_OPTIONS = {"show": "cumulative", "form": "multiples", "measure": "visitors"}


@pytest.mark.parametrize("ending", list(FORMATS))
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
    assert len(links) == len(FORMATS)
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
        *(ADDRESSES[scope].format("csv") for scope in Scope),
    ],
)
def test_programs_may_ask_for_the_head_only(reader: Client, fair: Study, address: str) -> None:
    head = reader.head(address)
    assert (head.status_code, head.content) == (200, b"")
    assert reader.post(address).status_code == 405
