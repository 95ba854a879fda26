"""Sign-in through an OpenID provider that runs as a process of its own."""

from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
from allauth.socialaccount.models import SocialAccount, SocialToken
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client

from mobility.signin.newcomers import free_username
from reports.models.ledger import LedgerEntry
from reports.policies import Role, roles_of
from tests.mobility.signin.conftest import at_provider, question

pytestmark = pytest.mark.django_db
GoThere = Callable[..., HttpResponse]


def signed_in_as(client: Client) -> str | None:
    page = client.get("/")
    return page.context["user"].username if page.status_code == 200 else None


def is_refused(response: HttpResponse, client: Client) -> bool:
    return response.status_code == 401 and signed_in_as(client) is None and not User.objects.exists()


def test_first_sign_in_makes_an_account_that_may_do_nothing(client: Client, sign_in_there: GoThere) -> None:
    response = sign_in_there("ada")
    assert (response.status_code, response["Location"]) == (302, "/")
    user = User.objects.get()
    assert (user.username, user.email, user.has_usable_password()) == ("ada", "", False)
    assert roles_of(user) == frozenset()
    assert "this account has no role yet" in client.get("/").content.decode()
    assert client.get("/studies/").status_code == 404


def test_later_sign_ins_find_the_same_account_and_its_roles(
    client: Client, sign_in_there: GoThere, person: Callable[..., User]
) -> None:
    sign_in_there("ada")
    User.objects.get().groups.set(person("model", Role.ANALYST).groups.all())
    client.logout()
    sign_in_there("ada")
    assert signed_in_as(client) == "ada"
    assert roles_of(User.objects.get(username="ada")) == {Role.ANALYST}


def test_same_name_or_address_as_a_local_account_links_nothing(
    client: Client, sign_in_there: GoThere, person: Callable[..., User]
) -> None:
    local = person("Anna", Role.ADMINISTRATOR)
    local.email = "anna@example.org"  # verified, says the provider
    local.save()
    sign_in_there("anna")
    assert signed_in_as(client) == "anna-2"
    assert roles_of(User.objects.get(username="anna-2")) == frozenset()
    assert not SocialAccount.objects.filter(user=local).exists()


@pytest.mark.parametrize("name", ["demo", "Sign-in"])
def test_nobody_gets_a_name_under_which_the_software_acts(db: None, name: str) -> None:
    assert free_username(name) == f"{name}-2"


def test_whoever_is_signed_in_does_not_get_linked(
    client: Client, sign_in_there: GoThere, administrator: User
) -> None:
    client.force_login(administrator)
    sign_in_there("ada", process="connect")
    assert signed_in_as(client) == "ada"
    assert not SocialAccount.objects.filter(user=administrator).exists()


def test_groups_give_roles_at_the_first_sign_in_only(
    client: Client, sign_in_there: GoThere, settings: LazySettings
) -> None:
    settings.MOBILITY_OIDC_GROUPS_CLAIM = "groups"
    settings.MOBILITY_OIDC_GROUPS = {"analysts": "analyst", "ops": "operator", "others": "administrator"}
    sign_in_there("ada")
    user = User.objects.get()
    assert roles_of(user) == {Role.ANALYST}
    user.groups.clear()
    sign_in_there("ada")
    assert roles_of(user) == frozenset()  # what an administrator took away stays away


def test_groups_alone_give_nothing(sign_in_there: GoThere, settings: LazySettings) -> None:
    settings.MOBILITY_OIDC_GROUPS_CLAIM = "groups"
    sign_in_there("ada")
    assert roles_of(User.objects.get()) == frozenset()


def test_new_account_stands_in_the_ledger(sign_in_there: GoThere) -> None:
    sign_in_there("ada")
    entry = LedgerEntry.objects.get(kind="access.changed")
    assert (entry.actor, entry.facts) == ("sign-in", {"account": "ada", "change": "created", "roles": []})


def test_nothing_that_the_provider_tells_is_kept(sign_in_there: GoThere) -> None:
    sign_in_there("ada")
    sign_in_there("ada")
    account = SocialAccount.objects.get()
    assert account.extra_data == {}
    assert not SocialToken.objects.exists()


def test_question_has_state_nonce_and_pkce(client: Client, knows_provider: None) -> None:
    asked = parse_qs(urlsplit(question(client)).query)
    assert asked["code_challenge_method"] == ["S256"]
    assert sorted(asked["scope"][0].split()) == ["openid", "profile"]
    assert all(len(asked[name][0]) >= 16 for name in ("state", "nonce", "code_challenge"))
    again = parse_qs(urlsplit(question(client)).query)
    assert all(again[name] != asked[name] for name in ("state", "nonce", "code_challenge"))


def test_visitor_cannot_change_the_question(client: Client, knows_provider: None) -> None:
    address = question(client, query="?auth_params=nonce%3Dmine&scope=admin&process=connect")
    asked = parse_qs(urlsplit(address).query)
    assert asked["nonce"] != ["mine"]
    assert sorted(asked["scope"][0].split()) == ["openid", "profile"]


@pytest.mark.parametrize("part", ["nonce", "state", "code_challenge"])
def test_changed_question_is_refused(client: Client, knows_provider: None, part: str) -> None:
    address = question(client)
    value = parse_qs(urlsplit(address).query)[part][0]
    changed = value[::-1] if part != "code_challenge" else value[:-2] + "AA"
    answer = at_provider(address.replace(value, changed), "ada")
    assert is_refused(client.get(answer), client)


def test_answer_to_another_browser_is_refused(client: Client, knows_provider: None) -> None:
    answer = at_provider(question(Client()), "ada")
    assert is_refused(client.get(answer), client)


def test_answer_counts_once(client: Client, sign_in_there: GoThere) -> None:
    answer = at_provider(question(client), "ada")
    assert client.get(answer).status_code == 302
    client.logout()
    assert client.get(answer).status_code == 401
    assert signed_in_as(client) is None


def test_provider_that_calls_itself_otherwise_is_refused(
    client: Client, knows_provider: None, settings: LazySettings
) -> None:
    settings.MOBILITY_OIDC_ISSUER = settings.MOBILITY_OIDC_ISSUER.replace("127.0.0.1", "localhost")
    response = client.post("/sign-in/provider/")
    assert response.status_code == 401
    assert "http-equiv" not in response.content.decode()


def test_wrong_secret_of_the_client_is_refused(
    client: Client, knows_provider: None, settings: LazySettings
) -> None:
    settings.MOBILITY_OIDC_CLIENT_SECRET = "another one"
    assert is_refused(client.get(at_provider(question(client), "ada")), client)


def test_other_issuer_has_other_people(
    client: Client, sign_in_there: GoThere, settings: LazySettings
) -> None:
    sign_in_there("ada")
    account = SocialAccount.objects.get()
    account.provider = "oidc-of-another-issuer"
    account.save()
    sign_in_there("ada")
    assert signed_in_as(client) == "ada-2"


def test_provider_that_is_down_is_said_in_words(
    client: Client, knows_provider: None, settings: LazySettings
) -> None:
    settings.MOBILITY_OIDC_ISSUER = "http://127.0.0.1:9/o"
    response = client.post("/sign-in/provider/")
    assert response.status_code == 401
    assert "Staff login could not be reached" in response.content.decode()


def test_cancelled_there_is_said_here(client: Client, knows_provider: None) -> None:
    answer = at_provider(question(client), "ada", button="cancel")
    page = client.get(answer, follow=True)
    assert "Nothing has changed here" in page.content.decode()
    assert not User.objects.exists()


def test_blocked_account_stays_out(client: Client, sign_in_there: GoThere) -> None:
    sign_in_there("ada")
    User.objects.update(is_active=False)
    response = sign_in_there("ada")
    assert response["Location"] == "/sign-in/blocked/"
    assert signed_in_as(client) is None


def test_next_is_kept_on_this_site_only(client: Client, sign_in_there: GoThere) -> None:
    assert sign_in_there("ada", next="/account/")["Location"] == "/account/"
    assert sign_in_there("ada", next="https://evil.example/")["Location"] == "/"


def test_account_of_a_provider_has_no_password_here(client: Client, sign_in_there: GoThere) -> None:
    sign_in_there("ada")
    assert client.get("/account/password/").status_code == 404
    assert "there is no password here" in client.get("/account/").content.decode()


def test_without_a_provider_there_is_no_such_page(client: Client) -> None:
    assert "/sign-in/provider/" not in client.get("/sign-in/").content.decode()
    assert client.post("/sign-in/provider/").status_code == 404
    assert client.get("/sign-in/provider/answer/?code=1&state=2").status_code == 404


def test_a_link_elsewhere_cannot_start_it(client: Client, knows_provider: None) -> None:
    assert client.get("/sign-in/provider/").status_code == 405
    assert Client(enforce_csrf_checks=True).post("/sign-in/provider/").status_code == 403
