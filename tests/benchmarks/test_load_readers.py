"""What analysts take for an answer: not a quick page that says: sign in first."""

import gzip
from email.message import Message
from http.client import HTTPResponse
from types import SimpleNamespace
from typing import cast

import pytest
from django.contrib.auth.models import User
from django.test import Client

from benchmarks.load_readers import HABITS, NO_PAGES, what_is_wrong


def answer(status: int, *, encoding: str = "") -> HTTPResponse:
    headers = Message()
    if encoding:
        headers["Content-Encoding"] = encoding
    return cast(HTTPResponse, SimpleNamespace(status=status, headers=headers))


@pytest.mark.django_db
def test_a_page_counts_only_if_it_is_the_one_of_a_signed_in_person(client: Client) -> None:
    form = client.get("/sign-in/").content
    client.force_login(User.objects.create_user("analyst"))
    page = client.get("/account/").content
    assert what_is_wrong("report", answer(200), page) == ""
    assert what_is_wrong("report", answer(200, encoding="gzip"), gzip.compress(page)) == ""
    assert what_is_wrong("report", answer(200), form) == "is not the page of a signed-in person"
    cut_off = gzip.compress(page)[:-20]
    assert what_is_wrong("report", answer(200, encoding="gzip"), cut_off) == "is cut off or garbled"


@pytest.mark.parametrize("page", sorted(HABITS))
def test_a_redirect_is_no_answer(page: str) -> None:
    assert what_is_wrong(page, answer(302), b"") == "answered 302"


def test_files_and_the_api_are_told_by_their_status_alone() -> None:
    assert sorted(set(HABITS) - NO_PAGES) == [
        "compare", "days", "home", "movement", "report", "report, map", "statement", "studies", "study",
    ]  # fmt: skip
    assert what_is_wrong("file (CSV)", answer(200), b"day,count") == ""
    assert what_is_wrong("API, estimates", answer(500), b"") == "answered 500"
