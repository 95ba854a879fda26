"""Second factors: an app, recovery codes, and who must have one. Security keys: tests/e2e/test_sign_in.py."""

from collections.abc import Callable
from io import StringIO
from re import findall, search
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from mobility.signin.sessions import forget_ended
from mobility.signin.views import browser_in_words
from reports.models.ledger import LedgerEntry
from reports.policies import Role
from tests.mobility.signin.conftest import Clock
from tests.mobility.signin.totp import PERIOD_S, code_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def enter(client: Client, password: str, clock: object) -> Callable[[User], None]:
    def go(user: User) -> None:
        client.post("/sign-in/", {"username": user.username, "password": password})

    return go


@pytest.fixture
def add_app(client: Client, password: str, enter: Callable[[User], None]) -> Callable[[User], str]:
    """Sign in and set up an app, through the pages; its secret."""

    def go(user: User) -> str:
        enter(user)
        client.post("/account/confirm/?next=/account/app/", {"password": password})
        page = client.get("/account/app/").content.decode()
        found = search(r'id="secret">([A-Z2-7]+)<', page)
        assert found, page
        done = client.post("/account/app/", {"code": code_of(found[1])})
        assert done["Location"] == "/account/recovery-codes/"
        return found[1]

    return go


def name_of(client: Client) -> str | None:
    response = client.get("/account/")
    return response.context["user"].username if response.status_code == 200 else None


def recovery_codes(client: Client) -> list[str]:
    return findall(r"<li>(\d{4} ?\d{4})</li>", client.get("/account/recovery-codes/").content.decode())


def test_app_is_asked_for_after_the_password(
    client: Client, analyst: User, add_app: Callable[[User], str], enter: Callable[[User], None],
    clock: Clock,
) -> None:  # fmt: skip
    secret = add_app(analyst)
    client.logout()
    clock.shift(PERIOD_S)
    enter(analyst)
    assert name_of(client) is None  # half way in is not in
    assert client.get("/sign-in/")["Location"] == "/sign-in/second-factor/"
    wrong = client.post("/sign-in/second-factor/", {"code": "000000"})
    assert "was not accepted" in wrong.content.decode()
    assert client.post("/sign-in/second-factor/", {"code": code_of(secret)})["Location"] == "/"
    assert name_of(client) == analyst.username


def test_code_holds_once_and_for_half_a_minute(
    client: Client, analyst: User, add_app: Callable[[User], str], enter: Callable[[User], None],
    clock: Clock,
) -> None:  # fmt: skip
    secret = add_app(analyst)
    clock.shift(PERIOD_S)
    code = code_of(secret)
    results = []
    for wait in (0, 1, PERIOD_S):
        client.logout()
        clock.shift(wait)
        enter(analyst)
        results.append(client.post("/sign-in/second-factor/", {"code": code}).status_code)
    assert results == [302, 200, 200]  # taken, used up, too old


def test_ten_wrong_codes_close_the_second_step(
    client: Client, analyst: User, add_app: Callable[[User], str], enter: Callable[[User], None],
    clock: Clock,
) -> None:  # fmt: skip
    secret = add_app(analyst)
    client.logout()
    clock.shift(PERIOD_S)
    enter(analyst)
    for _ in range(10):
        client.post("/sign-in/second-factor/", {"code": "000000"})
    page = client.post("/sign-in/second-factor/", {"code": code_of(secret)})
    assert "Too many attempts have failed. Wait 15 minutes" in page.content.decode()
    assert name_of(client) is None


def test_recovery_code_opens_once(
    client: Client, analyst: User, add_app: Callable[[User], str], enter: Callable[[User], None]
) -> None:
    add_app(analyst)
    codes = recovery_codes(client)
    assert len(codes) == len(set(codes)) == 10
    results = []
    for _ in range(2):
        client.logout()
        enter(analyst)
        results.append(client.post("/sign-in/second-factor/", {"code": codes[0]}).status_code)
    assert results == [302, 200]


def test_second_factor_stands_behind_the_password_again(
    client: Client, analyst: User, enter: Callable[[User], None]
) -> None:
    """Whoever finds an open screen cannot change how its owner signs in."""
    enter(analyst)
    for address in ("/account/app/", "/account/keys/add/", "/account/recovery-codes/new/"):
        assert client.get(address)["Location"].startswith("/account/confirm/?next=")
    assert "That is not your password" in client.post("/account/confirm/", {"password": "x"}).content.decode()
    assert client.get("/account/app/")["Location"].startswith("/account/confirm/")


def test_confirming_wears_off(
    client: Client, analyst: User, add_app: Callable[[User], str], clock: Clock
) -> None:
    add_app(analyst)
    assert client.get("/account/recovery-codes/").status_code == 200
    clock.shift(601)
    assert client.get("/account/recovery-codes/")["Location"].startswith("/account/confirm/")


def test_secrets_are_sealed_in_the_database(analyst: User, add_app: Callable[[User], str]) -> None:
    secret = add_app(analyst)
    for stored in Authenticator.objects.filter(user=analyst):
        assert secret not in str(stored.data)
    kept = Authenticator.objects.get(type=Authenticator.Type.TOTP).data["secret"]
    assert kept.startswith("gAAAA")  # Fernet


def test_another_secret_key_opens_nothing(
    client: Client, analyst: User, add_app: Callable[[User], str], enter: Callable[[User], None],
    clock: Clock, settings: LazySettings,
) -> None:  # fmt: skip
    secret = add_app(analyst)
    clock.shift(PERIOD_S)
    old, settings.SECRET_KEY = settings.SECRET_KEY, "another one"
    fresh = Client()
    fresh.post("/sign-in/", {"username": analyst.username, "password": "only-for-tests-7Qx"})
    assert fresh.post("/sign-in/second-factor/", {"code": code_of(secret)}).status_code == 200
    settings.SECRET_KEY_FALLBACKS = [old]
    assert fresh.post("/sign-in/second-factor/", {"code": code_of(secret)}).status_code == 302


@pytest.mark.parametrize("role", [Role.ADMINISTRATOR, Role.PRIVACY_OFFICER])
def test_strong_roles_add_a_factor_first_where_it_is_required(
    client: Client, person: Callable[..., User], add_app: Callable[[User], str],
    enter: Callable[[User], None], settings: LazySettings, role: Role,
) -> None:  # fmt: skip
    settings.MOBILITY_SECOND_FACTOR = "required"
    user = person("strong", role)
    enter(user)
    for address in ("/", "/studies/", "/administrator/", "/operator/"):
        assert client.get(address)["Location"] == "/account/"
    assert "Your role needs a second factor" in client.get("/account/").content.decode()
    add_app(user)
    assert client.get("/").status_code == 200


def test_last_factor_of_a_strong_role_cannot_be_removed(
    client: Client, administrator: User, add_app: Callable[[User], str], settings: LazySettings
) -> None:
    add_app(administrator)
    settings.MOBILITY_SECOND_FACTOR = "required"
    page = client.post("/account/app/remove/").content.decode()
    assert "this is the only one" in page
    assert Authenticator.objects.filter(type=Authenticator.Type.TOTP).exists()
    settings.MOBILITY_SECOND_FACTOR = "optional"
    assert client.post("/account/app/remove/")["Location"] == "/account/"
    assert not Authenticator.objects.exists()  # nor codes that stand in for nothing


def test_others_are_not_asked(client: Client, analyst: User, settings: LazySettings) -> None:
    settings.MOBILITY_SECOND_FACTOR = "required"
    client.force_login(analyst)
    assert client.get("/").status_code == 200


def test_lost_factor_is_removed_by_command(analyst: User, add_app: Callable[[User], str]) -> None:
    add_app(analyst)
    out = StringIO()
    call_command("remove_second_factors", analyst.username, stdout=out)
    assert '"removed": ["recovery_codes", "totp"]' in out.getvalue()
    assert not Authenticator.objects.exists()
    with pytest.raises(CommandError, match="got 'nobody'"):
        call_command("remove_second_factors", "nobody")


def test_keys_of_others_are_not_there(client: Client, analyst: User, operator: User, password: str) -> None:
    key = Authenticator.objects.create(user=operator, type=Authenticator.Type.WEBAUTHN, data={"name": "his"})
    client.post("/sign-in/", {"username": analyst.username, "password": password})
    client.post("/account/confirm/", {"password": password})
    for address in (f"/account/keys/{key.pk}/", f"/account/keys/{key.pk}/remove/"):
        assert client.get(address).status_code == 404
        assert client.post(address).status_code == 404
    assert Authenticator.objects.filter(pk=key.pk).exists()


def test_other_sessions_end(analyst: User, password: str) -> None:
    here, there = Client(), Client()
    for client in (here, there):
        client.post("/sign-in/", {"username": analyst.username, "password": password})
    assert here.get("/account/").content.decode().count("127.0.0.1") == 2
    assert here.post("/account/sessions/end-others/")["Location"] == "/account/"
    assert name_of(here) == analyst.username
    assert name_of(there) is None


def test_new_password_ends_other_sessions(analyst: User, password: str) -> None:
    here, there = Client(), Client()
    for client in (here, there):
        client.post("/sign-in/", {"username": analyst.username, "password": password})
    form = {"oldpassword": "wrong", "password1": "a new one 8Rz!", "password2": "a new one 8Rz!"}
    assert "That is not your password" in here.post("/account/password/", form).content.decode()
    assert here.post("/account/password/", form | {"oldpassword": password})["Location"] == "/account/"
    assert name_of(here) == analyst.username
    assert name_of(there) is None


def test_new_password_must_be_a_good_one(client: Client, analyst: User, password: str) -> None:
    client.force_login(analyst)
    form = {"oldpassword": password, "password1": "short", "password2": "short"}
    assert client.post("/account/password/", form).status_code == 200
    analyst.refresh_from_db()
    assert analyst.check_password(password)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox, Linux"),
        ("Mozilla/5.0 (Windows NT 10.0) Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0", "Edge, Windows"),
        ("Mozilla/5.0 (Linux; Android 15) Chrome/140.0.0.0 Mobile Safari/537.36", "Chrome, Android"),
        ("Mozilla/5.0 (Macintosh; Intel Mac OS X 15_5) Version/18.5 Safari/605.1.15", "Safari, macOS"),
        ("curl/8.5", "curl/8.5"),
        ("", "-"),
        ("x" * 200, "x" * 60),
    ],
)
def test_browser_is_named_in_words(said: str, shown: str) -> None:
    assert browser_in_words(said) == shown


def test_ledger_knows_of_second_factors_and_passwords(
    client: Client, analyst: User, add_app: Callable[[User], str], enter: Callable[[User], None],
    clock: Clock, password: str, django_capture_on_commit_callbacks: Any,
) -> None:  # fmt: skip
    with django_capture_on_commit_callbacks(execute=True):
        add_app(analyst)
    client.post(
        "/account/password/", {"oldpassword": password, "password1": "a new 8Rz!x", "password2": "no"}
    )
    form = {"oldpassword": password, "password1": "a new one 8Rz!", "password2": "a new one 8Rz!"}
    client.post("/account/password/", form)
    client.logout()
    client.post("/sign-in/", {"username": analyst.username, "password": "a new one 8Rz!"})
    client.post("/sign-in/second-factor/", {"code": "000000"})
    call_command("remove_second_factors", analyst.username, stdout=StringIO())
    entries = LedgerEntry.objects.order_by("number").values_list("kind", "actor", "facts__change")
    assert [entry for entry in entries if entry[0] in ("access.changed", "sign_in.failed")] == [
        ("access.changed", "anna", "second factor added"),
        ("access.changed", "anna", "password changed"),
        ("sign_in.failed", "anna", None),
        ("access.changed", "command line", "second factor removed"),
    ]


def test_ended_sessions_are_forgotten_with_their_addresses(
    client: Client, analyst: User, password: str
) -> None:
    here = Client()
    for one in (client, here):
        one.post("/sign-in/", {"username": analyst.username, "password": password})
    Session.objects.filter(pk=client.session.session_key).update(expire_date=timezone.now())
    assert forget_ended() == 1
    assert [row.session_key for row in UserSession.objects.all()] == [here.session.session_key]
    assert name_of(here) == analyst.username
