"""A provider that runs for the whole session, and a site that knows it."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import unescape
from re import search
from typing import Any

import pytest
import requests
from django.conf import LazySettings
from django.core.cache import cache
from django.http import HttpResponse
from django.test import Client

from tests.openid_provider import CLIENT_ID, CLIENT_SECRET, Provider, openid_provider

ANSWER = "http://testserver/sign-in/provider/answer/"


@dataclass
class Clock:
    """A clock that stands until it is moved."""

    now: float

    def shift(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The time of day as codes and counts see it, at the beginning of a half minute."""
    standing = Clock(now=time.time() // 30 * 30)
    monkeypatch.setattr(time, "time", lambda: standing.now)
    return standing


@pytest.fixture(autouse=True)
def _nothing_counted_before(db: None) -> None:
    cache.clear()


@pytest.fixture(scope="session")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    with openid_provider(tmp_path_factory.mktemp("provider"), ANSWER) as running:
        yield running


@pytest.fixture
def knows_provider(provider: Provider, settings: LazySettings) -> None:
    settings.MOBILITY_OIDC_ISSUER = provider.issuer
    settings.MOBILITY_OIDC_CLIENT_ID = CLIENT_ID
    settings.MOBILITY_OIDC_CLIENT_SECRET = CLIENT_SECRET
    settings.MOBILITY_OIDC_NAME = "Staff login"


def question(client: Client, *, query: str = "", **data: str) -> str:
    """Address at the provider to which the site sends a visitor."""
    page = client.post(f"/sign-in/provider/{query}", data).content.decode()
    found = search(r'http-equiv="refresh" content="0;url=([^"]+)"', page)
    assert found, page
    return unescape(found[1])


def at_provider(address: str, person: str, *, button: str = "allow") -> str:
    """Log in there and press a button, as a browser does; the address to which the provider sends back."""
    browser = requests.Session()
    page = browser.get(address, timeout=30)
    form = {"username": person, "password": person, "csrfmiddlewaretoken": browser.cookies["provider_csrf"]}
    page = browser.post(page.url, form, timeout=30)
    assert "Allow it?" in page.text, page.text
    hidden = {
        found[0]: unescape(found[1])
        for found in _all(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', page.text)
    }
    done = browser.post(page.url, {**hidden, button: "yes"}, timeout=30, allow_redirects=False)
    return done.headers["Location"]


def _all(pattern: str, text: str) -> list[tuple[str, str]]:
    from re import findall

    return findall(pattern, text)


@pytest.fixture
def sign_in_there(client: Client, knows_provider: None) -> Callable[..., HttpResponse]:
    """Sign in through the provider: `sign_in_there("ada")`."""

    def go(person: str, **data: str) -> Any:
        return client.get(at_provider(question(client, **data), person))

    return go
