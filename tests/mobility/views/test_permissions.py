"""Who reaches what: every address, each role, the own study and another one.

The rules are in access_rules.py; programs, links and feeds in test_permissions_of_programs.py.
"""

import re
from collections.abc import Callable, Iterator

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from reports import tasks
from reports.models import Study
from reports.models.grant import today
from reports.policies import SEES_ALL, Role
from tests.mobility.views.access_rules import ELSEWHERE, RULES, Rule
from tests.mobility.views.access_world import (
    OTHER,
    OWN,
    YESTERDAY,
    Person,
    World,
    located_study,
    somebody,
    things_of,
)

pytestmark = pytest.mark.django_db(databases=["default", "vault"], transaction=True)

EVERY_ROLE = [*Role, None]
LISTS = (
    "home", "reports:studies", "operator:studies", "administrator:studies", "access:tokens", "reading:docs",
    "budget:budget", "people:matrix", "ledger:ledger", "administrator:drafts",
)  # fmt: skip
GRANTED = [role for role in Role if role not in SEES_ALL]


@pytest.fixture(autouse=True)
def studies(data_dir: object) -> dict[str, Study]:
    """The own study and another one."""
    return {slug: located_study(slug) for slug in (OWN, OTHER)}


@pytest.fixture
def world(person: Person, monkeypatch: pytest.MonkeyPatch) -> Callable[[User], World]:
    """Put one of everything into the studies; tokens, links and views of the own one are of an account."""
    monkeypatch.setattr(tasks.compute_density, "delay_on_commit", lambda _: None)  # no broker is needed here

    def make(user: User) -> World:
        another = person("somebody-else", Role.ANALYST)
        makers = {OWN: user, OTHER: another}
        return World({slug: things_of(slug, maker=maker, person=person) for slug, maker in makers.items()})

    return make


def names(resolver: URLResolver, prefix: str = "") -> Iterator[str]:
    for pattern in resolver.url_patterns:
        if isinstance(pattern, URLResolver):
            below = f"{prefix}{pattern.namespace}:" if pattern.namespace else prefix
            yield from names(pattern, below)
        elif isinstance(pattern, URLPattern):
            yield f"{prefix}{pattern.name}"


def is_about_a_study(rule: Rule) -> bool:
    return "slug" in rule.about or "batch_id" in rule.about


def may_see(rule: Rule, role: Role | None, which: str) -> bool:
    others = SEES_ALL if rule.others is None else rule.others
    return role in rule.roles and (which == OWN or role in others or "account_id" in rule.about)


def test_every_address_has_a_rule() -> None:
    found = set(names(get_resolver()))
    elsewhere = {name for name in found if name in ELSEWHERE or name.split(":")[0] in ELSEWHERE}
    assert found - elsewhere == set(RULES)


def test_signed_out_must_sign_in(client: Client, world: Callable[[User], World], person: Person) -> None:
    things = world(person("anna", Role.ANALYST))
    for name, rule in RULES.items():
        for which in (OWN, OTHER, "nothing") if rule.about else (OWN,):
            response = things.ask(client, name, which=which)
            assert response.status_code == rule.signed_out, name
            if response.status_code == 302 and name != "reading:root":
                assert response.headers["Location"].startswith("/sign-in/"), name


@pytest.mark.parametrize("role", EVERY_ROLE, ids=str)
def test_a_role_sees_its_pages_of_its_study_and_nothing_else(
    client: Client,
    person: Person,
    studies: dict[str, Study],
    world: Callable[[User], World],
    role: Role | None,
) -> None:
    user = somebody(person, role, studies[OWN])
    things = world(user)
    seen, hidden = set(), set()
    for name, rule in RULES.items():
        for which in (OWN, OTHER) if rule.about else (OWN,):
            client.force_login(user)
            response = things.ask(client, name, which=which)
            if response.status_code == 404:
                hidden.add((name, which))
            else:
                seen.add((name, which))
                assert response.status_code == rule.expected, (name, which)
            is_sent_away = response.headers.get("Location", "").startswith("/sign-in/")
            assert not is_sent_away or name == "logout", name
    asked = {
        (name, which) for name, rule in RULES.items() for which in ((OWN, OTHER) if rule.about else (OWN,))
    }
    assert seen == {(name, which) for name, which in asked if may_see(RULES[name], role, which)}
    assert hidden == asked - seen


@pytest.mark.parametrize("role", GRANTED, ids=str)
def test_a_right_that_has_ended_opens_nothing(
    client: Client, person: Person, studies: dict[str, Study], world: Callable[[User], World], role: Role
) -> None:
    user = somebody(person, role, studies[OWN], until=today() + YESTERDAY)
    things = world(user)
    client.force_login(user)
    for name, rule in RULES.items():
        if is_about_a_study(rule) and not name.startswith("api:"):
            assert things.ask(client, name).status_code == 404, name


@pytest.mark.parametrize("role", Role, ids=str)
def test_hidden_and_missing_look_the_same(
    client: Client, person: Person, studies: dict[str, Study], world: Callable[[User], World], role: Role
) -> None:
    user = somebody(person, role, studies[OWN])
    things = world(user)
    client.force_login(user)
    for name, rule in RULES.items():
        if rule.about and not may_see(rule, role, OTHER):
            hidden, missing = (things.ask(client, name, which=which) for which in (OTHER, "nothing"))
            assert (hidden.status_code, missing.status_code) == (404, 404), name
            assert words_of(hidden) == words_of(missing), name
            assert headers_of(hidden) == headers_of(missing), name


def headers_of(response: HttpResponse) -> dict[str, str]:
    """Headers but for the length (a page repeats its own address) and the id of the request."""
    left_out = {"Content-Length", "X-Request-ID"}
    return {name: value for name, value in response.headers.items() if name not in left_out}


def words_of(response: HttpResponse) -> str:
    """A page without what is new in each: the token against forged requests, and its own address."""
    text = re.sub(r'(csrfmiddlewaretoken" value|name="next" value)="[^"]*"', "", response.content.decode())
    return text.replace(response.request["PATH_INFO"], "")  # type: ignore[attr-defined]


@pytest.mark.parametrize("role", EVERY_ROLE, ids=str)
def test_lists_name_no_study_that_is_not_open(
    client: Client, person: Person, studies: dict[str, Study], role: Role | None
) -> None:
    client.force_login(somebody(person, role, studies[OWN]))
    lists = [reverse(name) for name in LISTS]
    lists += ["/api/v1/studies", f"/studies/{OWN}/age/compare/?kind=studies", f"/studies/{OWN}/statement/"]
    for address in lists:
        text = client.get(address).content.decode()
        assert ("The market" in text or "market" in text) <= (role in SEES_ALL), address


def test_a_blocked_account_is_signed_out(client: Client, operator: User) -> None:
    client.force_login(operator)
    operator.is_active = False
    operator.save()
    assert client.get("/operator/").status_code == 302


def test_roles_add_up(client: Client, person: Person) -> None:
    client.force_login(person("both", Role.OPERATOR, Role.ANALYST))
    assert client.get("/operator/fair/").status_code == 200
    assert client.get("/studies/fair/").status_code == 200
    assert client.get("/administrator/fair/").status_code == 404


def test_an_administrator_uploads_with_a_grant_only(
    client: Client, person: Person, studies: dict[str, Study]
) -> None:
    client.force_login(person("both", Role.OPERATOR, Role.ADMINISTRATOR, studies=[studies[OWN]]))
    assert client.get("/operator/fair/").status_code == 200
    assert client.get("/operator/market/").status_code == 404
    assert "The market" not in client.get("/operator/").content.decode()
    assert client.get("/studies/market/").status_code == 200
    assert client.get("/administrator/market/").status_code == 200


def test_a_link_in_the_navigation_is_one_that_works(client: Client, person: Person) -> None:
    overseer = {"/administrator/", "/studies/", "/people/", "/ledger/"}
    for role, links in {
        Role.OPERATOR: {"/operator/"},
        Role.ANALYST: {"/studies/"},
        Role.VIEWER: {"/studies/"},
        Role.ADMINISTRATOR: overseer,
        Role.PRIVACY_OFFICER: overseer,
        None: set(),
    }.items():
        client.force_login(person(f"nav-{role}", *([role] if role else [])))
        home = client.get("/").content.decode()
        shown = {link for link in (*overseer, "/operator/") if f'href="{link}"' in home}
        assert shown == links, role
        for link in shown:
            assert client.get(link).status_code == 200


@pytest.mark.parametrize(
    "role", [Role.VIEWER, Role.PRIVACY_OFFICER, Role.ANALYST, Role.ADMINISTRATOR], ids=str
)
def test_pages_offer_only_what_works(
    client: Client, person: Person, studies: dict[str, Study], role: Role
) -> None:
    """Every link and form of the pages that a reader sees leads somewhere."""
    client.force_login(somebody(person, role, studies[OWN]))
    pages = ["/", "/studies/", *(f"/studies/fair/{end}" for end in ("", "statement/", "maps/", "home/"))]
    pages += [f"/studies/fair/age/{end}" for end in ("days/", "compare/?kind=windows", "movement/")]
    if role in SEES_ALL:
        pages += ["/administrator/", "/administrator/fair/", "/people/", "/people/matrix/", "/ledger/"]
    for address in pages:
        text = client.get(address).content.decode()
        assert text
        for found in set(re.findall(r'(?:href|action)="(/[^"#]*)"', text)):
            link = found.replace("&amp;", "&")
            if not link.startswith(("/static/", "/sign-out/", "/language/")):
                assert client.options(link).status_code != 404, (address, link)
                assert client.get(link).status_code != 404, (address, link)
