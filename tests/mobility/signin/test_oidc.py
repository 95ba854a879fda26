"""Sign-in through an OpenID provider that runs as its own process."""

from urllib.parse import parse_qs, urlsplit

import pytest
from allauth.socialaccount.models import SocialAccount, SocialToken
from django.contrib.auth.models import User
from django.test import Client

from mobility.signin.oidc.newcomers import free_username
from reports.ledger.models import LedgerEntry
from reports.studies.policies import Role, roles_of
from tests.mobility.signin.conftest import at_provider, question

pytestmark = pytest.mark.django_db


def signed_in_as(client):
    page = client.get("/")
    return page.context["user"].username if page.status_code == 200 else None


def is_refused(response, client):
    return response.status_code == 401 and signed_in_as(client) is None and not User.objects.exists()


def asked_by(address):
    return {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}


class TestAccount:
    def test_first_sign_in_makes_one_that_may_do_nothing_and_keeps_nothing_else(
        self, client, sign_in_there, person
    ):
        response = sign_in_there("ada")
        assert (response.status_code, response["Location"]) == (302, "/")
        user = User.objects.get()
        assert (user.username, user.email, user.has_usable_password()) == ("ada", "", False)
        assert roles_of(user) == frozenset()  # the provider's groups alone give nothing
        assert "this account has no role yet" in client.get("/").content.decode()
        assert client.get("/studies/").status_code == 404
        assert client.get("/account/password/").status_code == 404
        assert "you have no password on this site" in client.get("/account/").content.decode()
        entry = LedgerEntry.objects.get(kind="access.changed")
        assert (entry.actor, entry.facts) == ("sign-in", {"account": "ada", "change": "created", "roles": []})
        assert not SocialToken.objects.exists()
        user.groups.set(person("model", Role.ANALYST).groups.all())
        client.logout()
        sign_in_there("ada")  # a later one finds the same account and its roles
        assert (signed_in_as(client), roles_of(User.objects.get(username="ada"))) == ("ada", {Role.ANALYST})
        assert SocialAccount.objects.get().extra_data == {}

    def test_same_name_or_address_as_a_local_account_links_nothing(self, client, sign_in_there, person):
        local = person("Anna", Role.ADMINISTRATOR)
        local.email = "anna@example.org"  # verified, says the provider
        local.save()
        sign_in_there("anna")
        assert signed_in_as(client) == "anna-2"
        assert roles_of(User.objects.get(username="anna-2")) == frozenset()
        assert not SocialAccount.objects.filter(user=local).exists()

    def test_nobody_gets_a_name_of_the_software_or_one_that_passes_for_another(self, analyst):
        names = {
            "demo": "demo-2", "Sign-in": "Sign-in-2", "\uff44emo": "demo-2", "\uff21nna": "Anna-2",
            "an\u200bna": "an-na", "anna\u3164": "person", "\u0430nna": "person", "": "person",
            "\u200b": "person",
        }  # fmt: skip
        assert {wanted: free_username(wanted) for wanted in names} == names

    def test_whoever_is_signed_in_does_not_get_linked_and_a_blocked_account_stays_out(
        self, client, sign_in_there, administrator
    ):
        client.force_login(administrator)
        sign_in_there("ada", process="connect")
        assert signed_in_as(client) == "ada"
        assert not SocialAccount.objects.filter(user=administrator).exists()
        client.logout()
        User.objects.filter(username="ada").update(is_active=False)
        assert sign_in_there("ada")["Location"] == "/sign-in/blocked/"
        assert signed_in_as(client) is None

    def test_groups_give_roles_at_the_first_sign_in_of_an_issuer_only(self, client, sign_in_there, settings):
        settings.MOBILITY_OIDC_GROUPS_CLAIM = "groups"
        settings.MOBILITY_OIDC_GROUPS = {"analysts": "analyst", "ops": "operator", "others": "administrator"}
        sign_in_there("ada")
        user = User.objects.get()
        assert roles_of(user) == {Role.ANALYST}
        user.groups.clear()
        sign_in_there("ada")
        assert roles_of(user) == frozenset()  # rights that an administrator removed stay removed
        SocialAccount.objects.update(provider="oidc-of-another-issuer")  # which has other people
        sign_in_there("ada")
        assert signed_in_as(client) == "ada-2"


@pytest.mark.usefixtures("knows_provider")
class TestQuestion:
    def test_it_has_state_nonce_and_pkce_which_no_visitor_can_change(self, client):
        asked, again = asked_by(question(client)), asked_by(question(client))
        assert asked["code_challenge_method"] == "S256"
        assert sorted(asked["scope"].split()) == ["openid", "profile"]
        for name in ("state", "nonce", "code_challenge"):
            assert len(asked[name]) >= 16
            assert again[name] != asked[name]
        asked = asked_by(question(client, query="?auth_params=nonce%3Dmine&scope=admin&process=connect"))
        assert asked["nonce"] != "mine"
        assert sorted(asked["scope"].split()) == ["openid", "profile"]

    @pytest.mark.parametrize("part", ["nonce", "state", "code_challenge"])
    def test_a_changed_one_is_refused(self, client, part):
        address = question(client)
        value = asked_by(address)[part]
        changed = value[::-1] if part != "code_challenge" else value[:-2] + "AA"
        assert is_refused(client.get(at_provider(address.replace(value, changed), "ada")), client)

    def test_answer_is_to_the_browser_that_asked_and_counts_once(self, client):
        answer = at_provider(question(client), "ada")
        assert is_refused(Client().get(answer), client)
        assert client.get(answer).status_code == 302
        client.logout()
        assert client.get(answer).status_code == 401
        assert signed_in_as(client) is None

    def test_cancelled_there_is_said_here_and_a_wrong_secret_of_the_client_refused(self, client, settings):
        page = client.get(at_provider(question(client), "ada", button="cancel"), follow=True)
        assert "Nothing has changed on this site" in page.content.decode()
        settings.MOBILITY_OIDC_CLIENT_SECRET = "another one"
        assert is_refused(client.get(at_provider(question(client), "ada")), client)

    def test_provider_that_calls_itself_otherwise_or_is_down_is_refused(self, client, settings):
        settings.MOBILITY_OIDC_ISSUER = settings.MOBILITY_OIDC_ISSUER.replace("127.0.0.1", "localhost")
        response = client.post("/sign-in/provider/")
        assert response.status_code == 401
        assert "http-equiv" not in response.content.decode()
        settings.MOBILITY_OIDC_ISSUER = "http://127.0.0.1:9/o"
        response = client.post("/sign-in/provider/")
        assert response.status_code == 401
        assert "Staff login could not be reached" in response.content.decode()

    def test_a_link_elsewhere_cannot_start_it(self, client):
        assert client.get("/sign-in/provider/").status_code == 405
        assert Client(enforce_csrf_checks=True).post("/sign-in/provider/").status_code == 403

    def test_next_is_kept_on_this_site_only(self, sign_in_there):
        assert sign_in_there("ada", next="/account/")["Location"] == "/account/"
        assert sign_in_there("ada", next="https://evil.example/")["Location"] == "/"


def test_without_a_provider_there_is_no_such_page(client):
    assert "/sign-in/provider/" not in client.get("/sign-in/").content.decode()
    assert client.post("/sign-in/provider/").status_code == 404
    assert client.get("/sign-in/provider/answer/?code=1&state=2").status_code == 404
