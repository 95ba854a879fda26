"""How often a sign-in may fail; what an attempt teaches about accounts: nothing."""

from collections.abc import Callable
from unittest.mock import patch

import pytest
from django.conf import LazySettings
from django.contrib.auth.hashers import PBKDF2PasswordHasher, get_hasher
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_in, user_login_failed
from django.http import HttpResponse
from django.test import Client, RequestFactory

from mobility.signin.limits import NO_ADDRESS, client_address
from tests.mobility.signin.conftest import Clock

pytestmark = pytest.mark.django_db
WRONG = "That name and password do not belong together."
WAIT = "Too many attempts have failed. Wait 15 minutes, then try again."


def attempt(client: Client, username: str, password: str = "wrong", **headers: str) -> HttpResponse:
    return client.post("/sign-in/", {"username": username, "password": password}, **headers)  # type: ignore[arg-type]


def errors(response: HttpResponse) -> list[str]:
    return list(response.context["form"].non_field_errors())  # type: ignore[attr-defined]


def test_ten_wrong_passwords_close_an_account_for_a_quarter_of_an_hour(
    client: Client, analyst: User, password: str, clock: Clock
) -> None:
    for _ in range(10):
        assert errors(attempt(client, analyst.username)) == [WRONG]
    assert errors(attempt(client, analyst.username, password)) == [WAIT]
    clock.shift(14 * 60)
    assert "Wait 1 minute," in errors(attempt(client, analyst.username, password))[0]
    clock.shift(60)
    assert attempt(client, analyst.username, password)["Location"] == "/"


def test_account_that_does_not_exist_answers_and_closes_alike(
    client: Client, analyst: User, clock: Clock
) -> None:
    known = [errors(attempt(client, analyst.username)) for _ in range(11)]
    unknown = [errors(attempt(client, "nobody")) for _ in range(11)]
    assert known == unknown
    assert known[-1] == [WAIT]


@pytest.mark.parametrize("username", ["anna", "nobody", "gone"])
def test_unknown_and_blocked_accounts_take_the_same_work(
    client: Client, analyst: User, person: Callable[..., User], settings: LazySettings, username: str
) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.PBKDF2PasswordHasher"]
    gone = person("gone")
    gone.is_active = False
    for user in (analyst, gone):
        user.set_password("a password of today")
        user.save()
    assert isinstance(get_hasher(), PBKDF2PasswordHasher)
    with patch.object(PBKDF2PasswordHasher, "encode", autospec=True, return_value="x$1$y$z") as work:
        attempt(client, username)
    assert work.call_count == 1
    assert errors(attempt(client, username)) == [WRONG]


def test_blocked_account_with_the_right_password_learns_nothing(
    client: Client, analyst: User, password: str
) -> None:
    analyst.is_active = False
    analyst.save()
    assert errors(attempt(client, analyst.username, password)) == [WRONG]


def test_another_spelling_is_the_same_account(client: Client, analyst: User) -> None:
    for name in ["anna", "ANNA", "Anna ", " anna", "aNNa"] * 2:
        attempt(client, name)
    assert "Too many" in errors(attempt(client, "anna"))[0]


def test_success_does_not_forgive_failures(client: Client, analyst: User, password: str) -> None:
    for _ in range(9):
        attempt(client, analyst.username)
    assert attempt(Client(), analyst.username, password).status_code == 302
    assert errors(attempt(client, analyst.username)) == [WRONG]
    assert "Too many" in errors(attempt(client, analyst.username, password))[0]


def test_success_costs_nothing(analyst: User, password: str) -> None:
    for _ in range(12):
        assert attempt(Client(), analyst.username, password).status_code == 302


def test_address_that_tries_many_accounts_is_stopped(client: Client, analyst: User, password: str) -> None:
    for number in range(50):
        assert errors(attempt(client, f"person-{number}")) == [WRONG]
    assert "Too many" in errors(attempt(client, analyst.username, password))[0]
    assert attempt(Client(), analyst.username, password, REMOTE_ADDR="192.0.2.9").status_code == 302


def test_many_requests_of_an_address_are_refused_on_a_page_of_ours(client: Client, password: str) -> None:
    answers = {attempt(client, "").status_code for _ in range(61)}
    assert answers == {200, 429}
    assert "Wait a minute" in attempt(client, "").content.decode()


@pytest.mark.parametrize(
    ("proxies", "forwarded", "expected"),
    [
        (0, "203.0.113.5", "10.0.0.1"),  # anybody may write that header
        (1, "203.0.113.5", "203.0.113.5"),
        (1, "198.51.100.1, 203.0.113.5", "203.0.113.5"),  # the visitor wrote the first one
        (2, "198.51.100.1, 203.0.113.5", "198.51.100.1"),
        (2, "203.0.113.5", "10.0.0.1"),  # came past a proxy
        (1, "nonsense", NO_ADDRESS),
        (1, None, "10.0.0.1"),
    ],
)
def test_address_is_what_trusted_proxies_saw(
    settings: LazySettings, proxies: int, forwarded: str | None, expected: str
) -> None:
    settings.ALLAUTH_TRUSTED_PROXY_COUNT = proxies
    headers = {} if forwarded is None else {"x-forwarded-for": forwarded}
    request = RequestFactory().get("/", REMOTE_ADDR="10.0.0.1", headers=headers)
    assert client_address(request) == expected


def test_written_header_does_not_open_a_new_count(client: Client) -> None:
    for number in range(50):
        attempt(client, f"person-{number}", HTTP_X_FORWARDED_FOR=f"203.0.113.{number}")
    assert "Too many" in errors(attempt(client, "anna", HTTP_X_FORWARDED_FOR="203.0.113.99"))[0]


def test_signals_of_django_fire(client: Client, analyst: User, password: str) -> None:
    """The ledger of sign-ins listens to them."""
    heard: list[str] = []
    listeners = [(user_logged_in, "in"), (user_login_failed, "failed")]
    receivers = [lambda word=word, **_: heard.append(word) for _, word in listeners]
    for (signal, _), receiver in zip(listeners, receivers, strict=True):
        signal.connect(receiver)
    try:
        attempt(client, analyst.username)
        attempt(client, analyst.username, password)
    finally:
        for (signal, _), receiver in zip(listeners, receivers, strict=True):
            signal.disconnect(receiver)
    assert heard == ["failed", "in"]


@pytest.mark.parametrize(
    "there", ["https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:1"]
)
def test_sign_in_goes_on_to_this_site_only(client: Client, analyst: User, password: str, there: str) -> None:
    data = {"username": analyst.username, "password": password, "next": there}
    assert client.post("/sign-in/", data)["Location"] == "/"
    assert client.post("/language/", {"language": "fr", "next": there})["Location"] == "/"


def test_session_is_a_new_one_and_ends_after_hours(client: Client, analyst: User, password: str) -> None:
    client.get("/sign-in/")
    session = client.session
    session["before"] = True
    session.save()
    before = session.session_key
    attempt(client, analyst.username, password)
    assert client.session.session_key != before
    assert client.session.get_expiry_age() == 12 * 3600


def test_nobody_signs_up(client: Client) -> None:
    for address in ("/sign-up/", "/signup/", "/accounts/signup/", "/sign-in/signup/", "/account/email/"):
        assert client.get(address).status_code == 404


def test_answer_is_a_page_whatever_is_accepted(client: Client) -> None:
    response = client.get("/sign-in/", HTTP_ACCEPT="application/json")
    assert response["Content-Type"].startswith("text/html")
