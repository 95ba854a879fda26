"""A provider that runs for the whole session, and a site that knows it."""

import time
from dataclasses import dataclass
from html import unescape
from re import findall, search

import pytest
import requests
from django.core.cache import cache

from tests.openid_provider import CLIENT_ID, CLIENT_SECRET, openid_provider

ANSWER = "http://testserver/sign-in/provider/answer/"


@dataclass
class Clock:
    now: float

    def shift(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch) -> Clock:
    """The time of day as codes and counts see it, at the beginning of a half minute."""
    standing = Clock(now=time.time() // 30 * 30)
    monkeypatch.setattr(time, "time", lambda: standing.now)
    return standing


@pytest.fixture(autouse=True)
def _nothing_counted_before(db):
    cache.clear()


@pytest.fixture(scope="session")
def provider(tmp_path_factory):
    with openid_provider(tmp_path_factory.mktemp("provider"), ANSWER) as running:
        yield running


@pytest.fixture
def knows_provider(provider, settings):
    settings.MOBILITY_OIDC_ISSUER, settings.MOBILITY_OIDC_NAME = provider.issuer, "Staff login"
    settings.MOBILITY_OIDC_CLIENT_ID, settings.MOBILITY_OIDC_CLIENT_SECRET = CLIENT_ID, CLIENT_SECRET


def question(client, *, query: str = "", **data: str) -> str:
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
    fields = findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', page.text)
    given = {name: unescape(value) for name, value in fields} | {button: "yes"}
    return browser.post(page.url, given, timeout=30, allow_redirects=False).headers["Location"]


@pytest.fixture
def sign_in_there(client, knows_provider):
    return lambda person, **data: client.get(at_provider(question(client, **data), person))
