"""Second factors: an app, recovery codes, and who must have one. Security keys: tests/e2e/test_sign_in.py."""

from io import StringIO
from re import search

import pytest
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from mobility.signin.sessions import forget_ended
from mobility.signin.views import browser_in_words
from reports.ledger.models import LedgerEntry
from reports.studies.policies import Role
from tests.mobility.signin.totp import PERIOD_S, code_of

pytestmark = pytest.mark.django_db
NEW = "a new one 8Rz!"
SECOND = "/sign-in/second-factor/"


def enter(client, user, password="only-for-tests-7Qx"):
    client.post("/sign-in/", {"username": user.username, "password": password})


def send_code(client, code):
    return client.post(SECOND, {"code": code})


@pytest.fixture
def add_app(client, password, clock):
    def go(user):
        enter(client, user)
        client.post("/account/confirm/?next=/account/app/", {"password": password})
        secret = search(r'id="secret">([A-Z2-7]+)<', client.get("/account/app/").content.decode())[1]
        done = client.post("/account/app/", {"code": code_of(secret)})
        assert done["Location"] == "/account/recovery-codes/"
        return secret

    return go


@pytest.fixture
def secret(client, analyst, add_app, clock) -> str:
    secret = add_app(analyst)
    client.logout()
    clock.shift(PERIOD_S)
    return secret


def name_of(client):
    response = client.get("/account/")
    return response.context["user"].username if response.status_code == 200 else None


class TestFactors:
    def test_app_is_asked_for_after_the_password(self, client, analyst, secret):
        enter(client, analyst)
        assert name_of(client) is None  # half way in is not in
        assert client.get("/sign-in/")["Location"] == SECOND
        assert "was not accepted" in send_code(client, "000000").content.decode()
        assert (send_code(client, code_of(secret))["Location"], name_of(client)) == ("/", analyst.username)

    def test_code_holds_once_and_for_half_a_minute(self, client, analyst, secret, clock):
        code, results = code_of(secret), []
        for wait in (0, 1, PERIOD_S):
            client.logout()
            clock.shift(wait)
            enter(client, analyst)
            results.append(send_code(client, code).status_code)
        assert results == [302, 200, 200]  # taken, used up, too old

    def test_ten_wrong_codes_close_the_second_step(self, client, analyst, secret):
        enter(client, analyst)
        for _ in range(10):
            send_code(client, "000000")
        page = send_code(client, code_of(secret)).content.decode()
        assert "Too many failed attempts. Try again in 15 minutes" in page
        assert name_of(client) is None

    def test_second_factor_stands_behind_the_password_again(self, client, analyst, add_app, clock):
        enter(client, analyst)
        for address in ("/account/app/", "/account/keys/add/", "/account/recovery-codes/new/"):
            assert client.get(address)["Location"].startswith("/account/confirm/?next=")
        refused = client.post("/account/confirm/", {"password": "x"}).content.decode()
        assert "The password is incorrect" in refused
        assert client.get("/account/app/")["Location"].startswith("/account/confirm/")
        add_app(analyst)
        assert client.get("/account/recovery-codes/").status_code == 200
        clock.shift(601)  # it wears off
        assert client.get("/account/recovery-codes/")["Location"].startswith("/account/confirm/")

    def test_secrets_are_sealed_in_the_database_and_no_other_key_opens_them(self, analyst, secret, settings):
        for stored in Authenticator.objects.filter(user=analyst):
            assert secret not in str(stored.data)
        kept = Authenticator.objects.get(type=Authenticator.Type.TOTP).data["secret"]
        assert kept.startswith("gAAAA")  # Fernet
        old, settings.SECRET_KEY = settings.SECRET_KEY, "another one"
        fresh = Client()
        enter(fresh, analyst)
        assert send_code(fresh, code_of(secret)).status_code == 200
        settings.SECRET_KEY_FALLBACKS = [old]
        assert send_code(fresh, code_of(secret)).status_code == 302

    @pytest.mark.django_db(databases=["default", "vault"])
    @pytest.mark.parametrize("role", [Role.ADMINISTRATOR, Role.PRIVACY_OFFICER])
    def test_strong_roles_add_a_factor_first_where_required(self, client, person, add_app, settings, role):
        settings.MOBILITY_SECOND_FACTOR = "required"
        user = person("strong", role)
        enter(client, user)
        for address in ("/", "/studies/", "/administrator/", "/operator/"):
            assert client.get(address)["Location"] == "/account/"
        assert "Your role requires a second factor" in client.get("/account/").content.decode()
        add_app(user)
        assert client.get("/").status_code == 200
        client.force_login(person("other", Role.ANALYST))  # no request for a factor
        assert client.get("/").status_code == 200

    def test_last_factor_of_a_strong_role_cannot_be_removed(self, client, administrator, add_app, settings):
        add_app(administrator)
        settings.MOBILITY_SECOND_FACTOR = "required"
        assert "this is the only one on your account" in client.post("/account/app/remove/").content.decode()
        assert Authenticator.objects.filter(type=Authenticator.Type.TOTP).exists()
        settings.MOBILITY_SECOND_FACTOR = "optional"
        assert client.post("/account/app/remove/")["Location"] == "/account/"
        assert not Authenticator.objects.exists()  # nor codes that replace nothing

    def test_keys_of_others_are_not_there(self, client, analyst, operator, password):
        kind = Authenticator.Type.WEBAUTHN
        key = Authenticator.objects.create(user=operator, type=kind, data={"name": "his"})
        enter(client, analyst)
        client.post("/account/confirm/", {"password": password})
        for address in (f"/account/keys/{key.pk}/", f"/account/keys/{key.pk}/remove/"):
            assert (client.get(address).status_code, client.post(address).status_code) == (404, 404)
        assert Authenticator.objects.filter(pk=key.pk).exists()


class TestSessions:
    @pytest.fixture
    def browsers(self, analyst) -> list[Client]:
        browsers = [Client(), Client()]
        for browser in browsers:
            enter(browser, analyst)
        return browsers

    def test_others_end_by_a_button_or_a_new_password_which_must_be_good(self, analyst, browsers, password):
        here, there = browsers

        def change(old, new):
            return here.post("/account/password/", {"oldpassword": old, "password1": new, "password2": new})

        assert "The password is incorrect" in change("wrong", NEW).content.decode()
        assert change(password, "short").status_code == 200
        analyst.refresh_from_db()
        assert analyst.check_password(password)
        assert (name_of(there), change(password, NEW)["Location"]) == (analyst.username, "/account/")
        assert (name_of(here), name_of(there)) == (analyst.username, None)
        enter(there, analyst, NEW)
        assert here.get("/account/").content.decode().count("127.0.0.1") == 2
        assert here.post("/account/sessions/end-others/")["Location"] == "/account/"
        assert (name_of(here), name_of(there)) == (analyst.username, None)

    def test_ended_ones_are_forgotten_with_their_addresses(self, analyst, browsers):
        here, there = browsers
        Session.objects.filter(pk=there.session.session_key).update(expire_date=timezone.now())
        assert forget_ended() == 1
        assert [row.session_key for row in UserSession.objects.all()] == [here.session.session_key]
        assert name_of(here) == analyst.username


def test_browser_is_named_in_words():
    for said, shown in (
        ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox, Linux"),
        ("Mozilla/5.0 (Windows NT 10.0) Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0", "Edge, Windows"),
        ("curl/8.5", "curl/8.5"), ("", "-"), ("x" * 200, "x" * 60),
    ):  # fmt: skip
        assert browser_in_words(said) == shown


def test_lost_factor_is_removed_by_command_and_the_ledger_knows_of_factors_and_passwords(
    client, analyst, add_app, password, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        add_app(analyst)
    for again in ("no", NEW):
        client.post("/account/password/", {"oldpassword": password, "password1": NEW, "password2": again})
    client.logout()
    enter(client, analyst, NEW)
    send_code(client, "000000")
    out = StringIO()
    call_command("remove_second_factors", analyst.username, stdout=out)
    assert '"removed": ["recovery_codes", "totp"]' in out.getvalue()
    assert not Authenticator.objects.exists()
    with pytest.raises(CommandError, match="got 'nobody'"):
        call_command("remove_second_factors", "nobody")
    entries = LedgerEntry.objects.order_by("number").values_list("kind", "actor", "facts__change")
    assert [entry for entry in entries if entry[0] in ("access.changed", "sign_in.failed")] == [
        ("access.changed", "anna", "second factor added"), ("access.changed", "anna", "password changed"),
        ("sign_in.failed", "anna", None), ("access.changed", "command line", "second factor removed"),
    ]  # fmt: skip
