"""Who reaches what: every address and every path of the API, each role, the own study and another one.

The rules are in access_rules.py.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.utils import timezone

from mobility.models import Batch, FeedToken, VaultStudy
from mobility.profiles.typed import TypedProfile
from mobility.services import feeds
from mobility.services.drafts import draft_of_study
from mobility.services.profiles import create_profile
from mobility.services.studies import create_study
from reports import tasks
from reports.api.door import _resolver as resolver_of_the_api
from reports.models import BudgetCap, BudgetPopulation, DayNote, SavedView, Study, StudyGrant
from reports.models.grant import today
from reports.policies import EXPORTERS, SEES_ALL, Role
from reports.selectors import Window
from reports.services import access
from tests.mobility.views.access_rules import ELSEWHERE, READING, RULES, Rule
from tests.reports import map_factory
from tests.reports import report_factory as factory

pytestmark = pytest.mark.django_db(databases=["default", "vault"], transaction=True)

Person = Callable[..., User]
OWN, OTHER = "fair", "market"
EVERY_ROLE = [*Role, None]
LISTS = (
    "home", "reports:studies", "operator:studies", "administrator:studies", "access:tokens", "reading:docs",
    "budget:budget", "people:matrix", "ledger:ledger", "administrator:drafts",
)  # fmt: skip
GRANTED = [role for role in Role if role not in SEES_ALL]
YESTERDAY = timedelta(days=-1)
UNKNOWN: dict[str, Any] = {
    "slug": "nothing", "indicator": "age", "batch": uuid4(), "profile": "operator-x", "feed": 10**6,
    "note": 10**6, "token": 10**6, "link": 10**6, "view": 10**6, "cap": 10**6, "account": 10**6,
    "grant": 10**6, "draft": 10**6,
}  # fmt: skip


@dataclass(frozen=True)
class World:
    """Two studies with the same things in both; `of` names those of the own study and of the other one."""

    of: dict[str, dict[str, Any]]

    def ask(self, client: Client, name: str, *, which: str = OWN) -> HttpResponse:
        rule, found = RULES[name], UNKNOWN if which == "nothing" else self.of[which]
        address = reverse(
            name, kwargs={**rule.kwargs, **{key: found[part] for key, part in rule.about.items()}}
        )
        response: HttpResponse = getattr(client, rule.method)(address + rule.query)
        return response


@pytest.fixture
def world(data_dir: object, person: Person, monkeypatch: pytest.MonkeyPatch) -> Callable[[User], World]:
    """Make the studies, with the tokens, links and views of an account in the own one."""
    monkeypatch.setattr(tasks.compute_density, "delay_on_commit", lambda _: None)  # no broker is needed here

    def make(user: User) -> World:
        somebody = person("somebody-else", Role.ANALYST)
        return World({OWN: _things(OWN, user, person), OTHER: _things(OTHER, somebody, person)})

    return make


def _things(slug: str, maker: User, person: Person) -> dict[str, Any]:
    study = Study.objects.get(slug=slug)
    row = VaultStudy.objects.get(slug=slug)
    age = study.indicators.get(slug="age")
    batch = Batch.objects.create(study=row, state=Batch.State.DONE, filename="day.csv")
    feed = FeedToken.objects.create(study=row, name="nightly", digest=slug, expires_at=timezone.now())
    population, _ = BudgetPopulation.objects.get_or_create(name=f"people-{slug}")
    cap = BudgetCap.objects.create(population=population, unit="profile", period="ever", needs_second=True)
    note = DayNote.objects.create(study=study, day=1, kind=DayNote.Kind.EVENT, text="Rain", by="olga")
    view = SavedView.objects.create(owner=maker, name=slug, address=f"/studies/{slug}/")
    target = person(f"target-{slug}", Role.VIEWER, studies=[study])
    # What an account may no longer make it may still have: rows, not services.
    end = timezone.now() + timedelta(days=1)
    token = maker.api_tokens.create(name="nightly", digest=f"token-{slug}", expires_at=end)
    link = maker.share_links.create(
        indicator=age,
        digest=f"link-{slug}",
        expires_at=end,
        first_day=study.first_day,
        last_day=study.first_day,
    )
    return {
        "slug": slug, "indicator": "home", "batch": batch.pk, "feed": feed.pk, "profile": "operator-x",
        "note": note.pk, "token": token.pk, "link": link.pk, "view": view.pk, "cap": cap.pk,
        "account": target.pk, "grant": target.study_grants.get().pk,
        "draft": draft_of_study(slug, by="adam").pk,
    }  # fmt: skip


@pytest.fixture(autouse=True)
def studies(data_dir: object) -> dict[str, Study]:
    """The own study and another one: with people, reported places and zones on a map, in both zones."""
    return {slug: _study(slug) for slug in (OWN, OTHER)}


def _study(slug: str) -> Study:
    age = factory.indicator("age", "young", "old")
    definition = factory.definition(
        age, map_factory.HOME, slug=slug, name=f"The {slug}", epsilon="6", area=map_factory.area(),
        location=map_factory.LOCATION,
    )  # fmt: skip
    create_study(definition, by="adam")
    study, row = Study.objects.get(slug=slug), VaultStudy.objects.get(slug=slug)
    people = factory.crowd(study, n=300)
    map_factory.publish_located(study, people, places=map_factory.true_places(study, people))
    typed = TypedProfile(
        name="operator-x", kind="events", subscriber="id", timestamp="t", cell="c", max_bad_share=Decimal(0)
    )
    create_profile(typed, study=row, by="olga")
    return study


def names(resolver: URLResolver, prefix: str = "") -> Iterator[str]:
    for pattern in resolver.url_patterns:
        if isinstance(pattern, URLResolver):
            below = f"{prefix}{pattern.namespace}:" if pattern.namespace else prefix
            yield from names(pattern, below)
        elif isinstance(pattern, URLPattern):
            yield f"{prefix}{pattern.name}"


def somebody(person: Person, role: Role | None, study: Study, **changes: Any) -> User:
    return person("somebody", *([role] if role else []), studies=[study] if role else [], **changes)


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
    """Headers but for the length: the page repeats its own address."""
    return {name: value for name, value in response.headers.items() if name != "Content-Length"}


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


# --- the reading API --------------------------------------------------------------------------


def paths_of_the_api() -> set[str]:
    patterns = (str(pattern.pattern) for pattern in resolver_of_the_api().url_patterns)
    found = {"/" + re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", pattern) for pattern in patterns}
    return {path for path in found if path not in ("/", "/docs")}


def read(client: Client, path: str, slug: str = OWN, **headers: Any) -> int:
    address = path.replace("{study}", slug).replace("{indicator}", "age")
    return client.get(f"/api/v1{address}", **headers).status_code


def test_every_path_of_the_api_has_a_rule() -> None:
    assert paths_of_the_api() == set(READING)


@pytest.mark.parametrize("role", EVERY_ROLE, ids=str)
def test_a_session_reads_what_its_role_may_take_along(
    client: Client, person: Person, studies: dict[str, Study], role: Role | None
) -> None:
    client.force_login(somebody(person, role, studies[OWN]))
    for path, is_of_study in READING.items():
        assert read(client, path) == (200 if role in EXPORTERS else 404), path
        if is_of_study:
            assert read(client, path, OTHER) == (200 if role in SEES_ALL else 404), path


def test_without_a_token_nothing_is_read(client: Client) -> None:
    for path in READING:
        for slug in (OWN, OTHER, "nothing"):
            assert read(client, path, slug) == 401


@pytest.mark.parametrize("is_of_one", [True, False], ids=["of one study", "of all studies"])
def test_a_token_reads_what_its_owner_may_read_now(
    client: Client, person: Person, studies: dict[str, Study], is_of_one: bool
) -> None:
    user = somebody(person, Role.ANALYST, studies[OWN])
    _, text = access.create_token(name="x", days=1, study=studies[OWN] if is_of_one else None, by=user)
    sent: dict[str, Any] = {"headers": {"Authorization": f"Bearer {text}"}}
    for path, is_of_study in READING.items():
        assert read(client, path, **sent) == 200, path
        if is_of_study:
            assert read(client, path, OTHER, **sent) == 404, path
    StudyGrant.objects.create(user=user, study=studies[OTHER], granted_by="test")
    for path, is_of_study in READING.items():
        if is_of_study:
            assert read(client, path, OTHER, **sent) == (404 if is_of_one else 200), path
    user.study_grants.all().delete()
    for path, is_of_study in READING.items():
        if is_of_study:
            assert read(client, path, **sent) == (401 if is_of_one else 404), path
    assert "fair" not in client.get("/api/v1/studies", **sent).content.decode()


def test_a_token_of_somebody_who_only_looks_opens_nothing(
    client: Client, person: Person, studies: dict[str, Study]
) -> None:
    user = somebody(person, Role.ANALYST, studies[OWN])
    _, text = access.create_token(name="x", days=1, study=None, by=user)
    for role in (Role.VIEWER, Role.PRIVACY_OFFICER, Role.OPERATOR):
        user.groups.set([person(f"has-{role}", role).groups.get()])
        assert read(client, "/studies", headers={"Authorization": f"Bearer {text}"}) == 401, role
        with pytest.raises(access.AccessError):
            access.create_token(name="y", days=1, study=None, by=user)


# --- what is opened to others -----------------------------------------------------------------


def test_a_link_shows_what_its_maker_may_read_now(
    client: Client, person: Person, studies: dict[str, Study]
) -> None:
    user = somebody(person, Role.ANALYST, studies[OWN], until=today())
    _, text = share(studies[OWN], by=user)
    address = reverse("access:shared", args=[text])
    assert client.get(address).status_code == 200
    user.study_grants.update(until=today() + YESTERDAY)
    assert client.get(address).status_code == 404


def test_nobody_opens_a_study_that_is_not_open_to_them(person: Person, studies: dict[str, Study]) -> None:
    user = somebody(person, Role.ANALYST, studies[OWN])
    with pytest.raises(access.AccessError):
        share(studies[OTHER], by=user)
    with pytest.raises(access.AccessError):
        access.create_token(name="x", days=1, study=studies[OTHER], by=user)


def share(study: Study, *, by: User) -> tuple[object, str]:
    age = study.indicators.get(slug="age")
    return access.create_link(age, Window(1, 1), query="", days=1, note="", password="", by=by)


# --- feeds ------------------------------------------------------------------------------------


def test_a_feed_opens_its_study_and_no_other(
    client: Client, person: Person, world: Callable[[User], World]
) -> None:
    things = world(person("anna", Role.ANALYST))
    token, text = feeds.create_token(VaultStudy.objects.get(slug=OWN), name="nightly", days=1, by="olga")
    sent: dict[str, Any] = {"headers": {"Authorization": f"Bearer {text}"}}

    def statuses() -> list[int]:
        """Of batches, and of files without a length: 411 comes after the door."""
        asked = [things.of[OWN], things.of[OTHER], UNKNOWN]
        batches = [client.get(reverse("api:batch", args=[each["batch"]]), **sent) for each in asked]
        files = [client.put(reverse("api:extract", args=[each["slug"], "x.csv"]), **sent) for each in asked]
        assert batches[1].content == batches[2].content
        assert files[1].content == files[2].content
        return [response.status_code for response in batches + files]

    assert statuses() == [200, 404, 404, 411, 404, 404]
    feeds.revoke(token, by="olga")
    assert statuses() == [401] * 6


# --- the rest ---------------------------------------------------------------------------------


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
