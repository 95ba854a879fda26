"""Limits of failed sign-ins, and where they are counted; an attempt reveals nothing about accounts."""

import base64
import json
import os
import pickle
from unittest.mock import patch

import pytest
from django.conf import settings
from django.contrib.auth.hashers import PBKDF2PasswordHasher, get_hasher
from django.contrib.auth.models import User
from django.contrib.sessions.serializers import JSONSerializer
from django.core.cache import cache, caches
from django.db import connection
from django.test import Client, RequestFactory
from django.utils.module_loading import import_string
from kombu.exceptions import ContentDisallowed
from kombu.message import Message
from kombu.serialization import prepare_accept_content

from mobility.celery import app
from mobility.signin.cache import JsonCache
from mobility.signin.limits import NO_ADDRESS, client_address

pytestmark = pytest.mark.django_db
WRONG = "The user name or password is incorrect."
WAIT = "Too many failed attempts. Try again in 15 minutes."


def attempt(client, username, password="wrong", **headers):
    return client.post("/sign-in/", {"username": username, "password": password}, **headers)


def errors(response):
    return list(response.context["form"].non_field_errors())


class TestSignIn:
    def test_ten_wrong_passwords_close_an_account_for_a_quarter_hour(self, client, analyst, password, clock):
        for _ in range(10):
            assert errors(attempt(client, analyst.username)) == [WRONG]
        assert errors(attempt(client, analyst.username, password)) == [WAIT]
        clock.shift(14 * 60)
        assert "Try again in 1 minute." in errors(attempt(client, analyst.username, password))[0]
        clock.shift(60)
        assert attempt(client, analyst.username, password)["Location"] == "/"

    def test_account_opens_by_any_form_of_its_name_and_all_share_one_limit(self, client, analyst, password):
        assert attempt(client, "\uff21NNA", password)["Location"] == "/"
        client.logout()
        User.objects.create_user("gone", password=password, is_active=False)
        assert errors(attempt(client, "gone", password)) == [WRONG]  # blocked clients learn nothing
        for forms in (("anna", "Anna ", "\uff21nna"), ("eva", " Eva", "\uff25va")):  # there is no eva
            for number in range(10):
                assert errors(attempt(client, forms[number % 3])) == [WRONG]
            assert errors(attempt(client, forms[0].upper(), password)) == [WAIT]

    @pytest.mark.parametrize("name", ["anna", "nobody", "gone"])
    def test_unknown_or_blocked_ones_cost_as_much(self, client, analyst, person, settings, monkeypatch, name):
        settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.PBKDF2PasswordHasher"]
        monkeypatch.setattr(PBKDF2PasswordHasher, "iterations", 1)
        gone = person("gone")
        gone.is_active = False
        for user in (analyst, gone):
            user.set_password("a password of today")
            user.save()
        assert isinstance(get_hasher(), PBKDF2PasswordHasher)
        with patch.object(PBKDF2PasswordHasher, "encode", autospec=True, return_value="x$1$y$z") as work:
            attempt(client, name)
        assert (work.call_count, errors(attempt(client, name))) == (1, [WRONG])

    def test_success_costs_nothing_and_does_not_forgive_failures(self, client, analyst, password):
        for _ in range(9):
            attempt(client, analyst.username)
        for _ in range(3):
            assert attempt(Client(), analyst.username, password).status_code == 302
        assert errors(attempt(client, analyst.username)) == [WRONG]
        assert "Too many" in errors(attempt(client, analyst.username, password))[0]

    @pytest.fixture
    def _fewer_tries_of_an_address(self, settings):
        assert settings.ACCOUNT_RATE_LIMITS["sign_in_address"] == "50/15m/ip"
        settings.ACCOUNT_RATE_LIMITS = settings.ACCOUNT_RATE_LIMITS | {"sign_in_address": "5/15m/ip"}

    @pytest.mark.usefixtures("_fewer_tries_of_an_address")
    def test_address_that_tries_many_accounts_is_stopped_whatever_it_writes_into_headers(
        self, client, analyst, password
    ):
        for number in range(5):
            written = {"HTTP_X_FORWARDED_FOR": f"203.0.113.{number}"}
            assert errors(attempt(client, f"person-{number}", **written)) == [WRONG]
        assert "Too many" in errors(attempt(client, analyst.username, password))[0]
        assert attempt(Client(), analyst.username, password, REMOTE_ADDR="192.0.2.9").status_code == 302

    @pytest.mark.usefixtures("_fewer_tries_of_an_address")
    def test_all_addresses_of_a_network_of_ipv6_are_one_and_those_of_ipv4_are_not(self, analyst, password):
        for number in range(5):
            attempt(Client(), f"person-{number}", REMOTE_ADDR=f"2001:db8:0:1:{number:x}::1")
            attempt(Client(), f"person-{number}", REMOTE_ADDR=f"::ffff:198.51.100.{number}")
        here = {"REMOTE_ADDR": "2001:db8:0:1:ffff::1"}
        assert "Too many" in errors(attempt(Client(), analyst.username, password, **here))[0]
        for address in ("2001:db8:0:2::1", "::ffff:198.51.100.99"):
            assert attempt(Client(), analyst.username, password, REMOTE_ADDR=address).status_code == 302

    def test_many_requests_of_an_address_are_refused_on_a_page_of_ours(self, client, password):
        assert {attempt(client, "").status_code for _ in range(61)} == {200, 429}
        assert "Try again in a minute" in attempt(client, "").content.decode()

    def test_address_is_what_trusted_proxies_saw(self, settings):
        for proxies, forwarded, expected in (
            (0, "203.0.113.5", "10.0.0.1"),  # anyone may write that header
            (1, "203.0.113.5", "203.0.113.5"), (1, "nonsense", NO_ADDRESS), (1, None, "10.0.0.1"),
            (1, "198.51.100.1, 203.0.113.5", "203.0.113.5"),  # the visitor wrote the first one
            (2, "198.51.100.1, 203.0.113.5", "198.51.100.1"), (2, "203.0.113.5", "10.0.0.1"),  # past a proxy
            (1, "::ffff:203.0.113.5", "203.0.113.5"), (1, "2001:db8::5", "2001:db8::5"),
        ):  # fmt: skip
            settings.ALLAUTH_TRUSTED_PROXY_COUNT = proxies
            headers = {} if forwarded is None else {"x-forwarded-for": forwarded}
            request = RequestFactory().get("/", REMOTE_ADDR="10.0.0.1", headers=headers)
            assert client_address(request) == expected, (proxies, forwarded)

    def test_sign_in_goes_on_to_this_site_only(self, analyst, password):
        for there in ("https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:1"):
            data = {"username": analyst.username, "password": password, "next": there, "language": "fr"}
            for address in ("/sign-in/", "/language/"):
                assert Client().post(address, data)["Location"] == "/"

    def test_session_is_a_new_one_and_ends_after_hours(self, client, analyst, password):
        client.get("/sign-in/")
        session = client.session
        session["before"] = True
        session.save()
        before = session.session_key
        attempt(client, analyst.username, password)
        assert client.session.session_key != before
        assert client.session.get_expiry_age() == 12 * 3600

    def test_nobody_signs_up_and_an_answer_is_a_page_whatever_is_accepted(self, client):
        for address in ("/sign-up/", "/signup/", "/accounts/signup/", "/sign-in/signup/", "/account/email/"):
            assert client.get(address).status_code == 404
        assert client.get("/sign-in/", HTTP_ACCEPT="application/json")["Content-Type"].startswith("text/html")

    def test_a_new_site_says_how_its_first_account_is_made(self, client):
        command = "manage.py create_account NAME --role administrator"
        assert command in client.get("/sign-in/").content.decode()
        User.objects.create_user("ada")
        page = client.get("/sign-in/").content.decode()
        assert "create_account" not in page
        assert "Contact the administrator of this site" in page


class Planted:
    def __init__(self, trace: str) -> None:
        self.trace = trace

    def __reduce__(self):
        return os.mkdir, (self.trace,)


class TestCounts:
    @pytest.mark.database
    def test_a_pickle_among_the_counts_is_a_text_and_is_not_run(self, client, tmp_path):
        trace = tmp_path / "was-run"
        text = base64.b64encode(pickle.dumps(Planted(str(trace)))).decode()
        cache.set("count", [1.5])
        with connection.cursor() as cursor:
            cursor.execute("UPDATE signin_cache SET value = %s", [json.dumps(text)])
        assert cache.get("count") == text
        assert not trace.exists()

    def test_no_store_of_the_settings_keeps_pickles(self):
        assert [type(each) for each in caches.all(initialized_only=False)] == [JsonCache]
        assert import_string(settings.SESSION_SERIALIZER) is JSONSerializer
        assert app.conf.task_ignore_result and not app.conf.result_backend
        assert {app.conf.task_serializer, app.conf.event_serializer, app.conf.result_serializer} == {"json"}

    def test_a_worker_takes_no_message_but_json(self, tmp_path):
        trace = tmp_path / "was-run"
        body = pickle.dumps(Planted(str(trace)))
        accept = prepare_accept_content(app.conf.accept_content)  # as the consumer of a worker does
        assert Message(b"[]", content_type="application/json", accept=accept).decode() == []
        for content_type in ("application/x-python-serialize", "application/x-yaml", "application/x-msgpack"):
            with pytest.raises(ContentDisallowed):
                Message(body, content_type=content_type, content_encoding="binary", accept=accept).decode()
        assert not trace.exists()

    @pytest.mark.database
    def test_counts_come_back_as_they_were_until_they_are_over(self, clock):
        for value in ([1764096000.25, 1764096000.0], True, "y", 3):
            cache.set("count", value, 60)
            assert cache.get("count") == value
        clock.shift(59)
        assert not cache.add("count", "another", 60)
        clock.shift(1)
        assert cache.get("count", []) == []
        assert [cache.add("count", "another", 60) for _ in range(2)] == [True, False]
        assert cache.delete("count")
        assert cache.get("count") is None
        cache.set("x" * 5000 + "\0", "long", None)  # typed text
        assert cache.get("x" * 5000 + "\0") == "long"
