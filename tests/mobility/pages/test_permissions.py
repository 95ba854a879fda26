"""Access: every address and path of the API, each role, the own study and another."""

import hashlib
import re
from functools import partial
from urllib.parse import parse_qs, urlsplit

import pytest
from django.template.backends.django import Template
from django.urls import URLPattern, URLResolver, get_resolver, resolve, reverse

from mobility.models import Batch, VaultStudy
from mobility.uploads.feeds import actions as feeds
from reports.accounts.actions import COMMAND_LINE
from reports.api.door import _resolver as resolver_of_the_api
from reports.estimates.queries import Window
from reports.sharing import actions as access
from reports.studies.grant_models import StudyGrant, today
from reports.studies.policies import EXPORTERS, READERS, SEES_ALL, Role
from tests.mobility.pages.access_rules import ELSEWHERE, OF_EVENTS, QUESTIONS, READING, RULES
from tests.mobility.pages.conftest import OTHER, OWN, UNKNOWN, YESTERDAY
from tests.mobility.pages.pages import IN_BOTH

pytestmark = IN_BOTH
EVERY_ROLE = [*Role, None]
LISTS = (
    "home", "reports:studies", "operator:studies", "administrator:studies", "access:tokens", "reading:docs",
    "budget:budget", "people:matrix", "ledger:ledger", "administrator:drafts",
)  # fmt: skip
KEPT_NOWHERE = "private, no-store"
GRANTED = [role for role in Role if role not in SEES_ALL]
ASKED = [(name, which) for name, rule in RULES.items() for which in ((OWN, OTHER) if rule.about else (OWN,))]


def names(resolver, prefix=""):
    for pattern in resolver.url_patterns:
        if isinstance(pattern, URLResolver):
            yield from names(pattern, f"{prefix}{pattern.namespace}:" if pattern.namespace else prefix)
        elif isinstance(pattern, URLPattern):
            yield f"{prefix}{pattern.name}"


def may_see(rule, role, which):
    others = SEES_ALL if rule.others is None else rule.others
    return role in rule.roles and (which == OWN or role in others or "account_id" in rule.about)


def is_asked(rule, role, which):
    """Ask for one of two studies that are both open or both closed to a role."""
    is_open, is_other_open = (may_see(rule, role, each) for each in (OWN, OTHER))
    if not rule.about or is_open != is_other_open:
        return True
    return which == (OTHER if is_open and role == Role.ADMINISTRATOR else OWN)


@pytest.fixture
def unrendered(monkeypatch):
    """Views work, and put nothing into words or pictures: who is let in is decided before."""
    monkeypatch.setattr(Template, "render", lambda *_, **__: "")
    for name in ("drawing.pages.to_png", "drawing.pages.to_svg", "places.drawing.places_to_png",
                 "places.drawing.places_to_svg", "pdf.to_pdf", "boards.drawing.to_png"):  # fmt: skip
        monkeypatch.setattr(f"reports.exports.{name}", lambda *_: b"")


class TestAddresses:
    def test_every_address_has_a_rule(self):
        found = set(names(get_resolver()))
        elsewhere = {name for name in found if name in ELSEWHERE or name.split(":")[0] in ELSEWHERE}
        assert found - elsewhere == set(RULES)

    def test_signed_out_must_sign_in(self, client, world, unrendered):
        missing = [(name, "nothing") for name, rule in RULES.items() if rule.about]
        for name, which in [*ASKED, *missing]:
            response = world.ask(client, name, which=which)
            assert response.status_code == RULES[name].signed_out, name
            assert response["Cache-Control"] == KEPT_NOWHERE, name
            if response.status_code == 302 and name != "reading:root":
                assert response.headers["Location"].startswith("/sign-in/"), name

    @pytest.mark.parametrize("role", EVERY_ROLE, ids=str)
    def test_a_role_sees_its_pages_of_its_study_and_nothing_else(self, world, unrendered, role):
        client, seen = world.client(role), set()
        asked = [(name, which) for name, which in ASKED if is_asked(RULES[name], role, which)]
        for name, which in sorted(asked, key=lambda each: each[0] == "logout"):
            response = world.ask(client, name, which=which)
            assert response["Cache-Control"] == KEPT_NOWHERE, name
            if response.status_code != 404:
                seen.add((name, which))
                assert response.status_code == RULES[name].expected, (name, which)
            assert not response.headers.get("Location", "").startswith("/sign-in/") or name == "logout", name
        assert seen == {(name, which) for name, which in asked if may_see(RULES[name], role, which)}

    @pytest.mark.parametrize("role", GRANTED, ids=str)
    def test_a_right_that_has_ended_opens_nothing(self, world, unrendered, role):
        client = world.client(role, until=today() + YESTERDAY)
        for name, rule in RULES.items():
            of_study = {"slug", "batch_id"} & set(rule.about) and not name.startswith("api:")
            if of_study and role in rule.roles:
                assert world.ask(client, name).status_code == 404, name

    @pytest.mark.parametrize("role", EVERY_ROLE, ids=str)
    def test_hidden_and_missing_look_the_same(self, world, role):
        client = world.client(role)
        for name, rule in RULES.items():
            if rule.about and (role in rule.roles or role is None) and not may_see(rule, role, OTHER):
                hidden, missing = (world.ask(client, name, which=which) for which in (OTHER, "nothing"))
                assert (hidden.status_code, missing.status_code) == (404, 404), name
                assert words_of(hidden) == words_of(missing), name
                assert headers_of(hidden) == headers_of(missing), name


def headers_of(response):
    left_out = {"Content-Length", "X-Request-ID"}
    return {name: value for name, value in response.headers.items() if name not in left_out}


def words_of(response):
    text = re.sub(r'(csrfmiddlewaretoken" value|name="next" value)="[^"]*"', "", response.content.decode())
    return text.replace(response.request["PATH_INFO"], "")


# Names in English and in French; the last ones are of categories and zones, which no operator sees.
NAMES = (
    ("The fair", "Foire fair"), ("Age", "Tranche"), ("Home", "Domicile"), ("young", "jeunes"),
    ("North west", "Nord-Ouest"), ("South east", "Sud-Est"),
)  # fmt: skip
AS_WRITTEN = {  # contents of a study file, to check or to change, and values of extracts
    "administrator:create", "administrator:draft", "administrator:edit_draft", "operator:profile",
    "operator:new_profile",
}  # fmt: skip
MORE_PAGES = (
    "age/?view=map", "home/?view=map", "home/map-days/", "home/?view=table", "age/days/?form=multiples",
    "age/compare/?kind=categories&reference=0&from=2024-05-30", "home/movement/?show=days_present",
    "age/compare/?kind=studies&with=market/age&from=2024-05-30&with_from=2024-05-30",
    "age/scenario/?present=2024-05-30", "scenario/?present=2024-05-30", "dpia.md",
    "presence/", "presence/?day=2024-05-30&with=2024-05-31",
)  # fmt: skip


def says(text, name):
    return re.search(rf"(?<![\w-]){name}(?![\w-])", text) is not None


class TestPages:
    @pytest.mark.parametrize("role", [Role.ADMINISTRATOR, Role.OPERATOR], ids=str)
    def test_a_page_shows_names_in_its_language(self, world, role):
        link, client = world.user.share_links.get(indicator__study__slug=OWN), world.client(role)
        link.digest, link.query = hashlib.sha256(b"secret").hexdigest(), "from=2024-05-30"
        link.save()
        walk = [
            (name, partial(world.ask, client, name)) for name, rule in RULES.items()
            if rule.method == "get" and "file_format" not in rule.kwargs and role in rule.roles
        ]  # fmt: skip
        if role in READERS:
            walk += [(path, partial(client.get, f"/studies/{OWN}/{path}")) for path in MORE_PAGES]
        walk += [("shared", partial(client.get, "/shared/secret/"))]
        for own, other, language in ((0, 1, "en"), (1, 0, "fr")):
            client.defaults["HTTP_ACCEPT_LANGUAGE"] = language
            seen, foreign = "", []
            for name, ask in walk:
                answer = ask()
                is_page = answer["Content-Type"].startswith("text/html") or name in MORE_PAGES
                if answer.status_code == 200 and is_page and name not in AS_WRITTEN:
                    text = answer.getvalue().decode()
                    foreign += [(name, each[other]) for each in NAMES if says(text, each[other])]
                    seen += text
            assert foreign == [], language
            missing = {each[own] for each in NAMES if not says(seen, each[own])}
            assert missing == ({each[own] for each in NAMES[3:]} if role == Role.OPERATOR else set())

    @pytest.mark.parametrize("role", [*GRANTED, None], ids=str)
    def test_lists_name_no_study_that_is_not_open(self, world, role):
        client = world.client(role)
        lists = ["/api/v1/studies", f"/studies/{OWN}/age/compare/?kind=studies", f"/studies/{OWN}/statement/"]
        for address in [*lists, *map(reverse, LISTS)]:
            assert "market" not in client.get(address).content.decode(), address

    @pytest.mark.parametrize(
        ("second", "statuses"),
        [(Role.ANALYST, {"/studies/fair/": 200, "/studies/market/": 404, "/administrator/fair/": 404}),
         # Administrators see every study, and upload with a grant only.
         (Role.ADMINISTRATOR, {"/studies/market/": 200, "/administrator/market/": 200})],
    )  # fmt: skip
    def test_roles_add_up(self, client, person, world, second, statuses):
        client.force_login(person("both", Role.OPERATOR, second, studies=[world.studies[OWN]]))
        batch = reverse("operator:batch", args=[world.of[OTHER]["batch"]])
        expected = {"/operator/fair/": 200, "/operator/market/": 404, batch: 404, **statuses}
        for address, status in expected.items():
            assert client.get(address).status_code == status, address
        assert "The market" not in client.get("/operator/").content.decode()

    def test_a_link_in_the_navigation_is_one_that_works(self, world):
        overseer = {"/administrator/", "/studies/", "/people/", "/ledger/", "/status/"}
        expected = {Role.OPERATOR: {"/operator/"}, None: set()}
        expected |= {role: {"/studies/"} for role in (Role.ANALYST, Role.VIEWER)}
        expected |= dict.fromkeys((Role.ADMINISTRATOR, Role.PRIVACY_OFFICER), overseer)
        for role, links in expected.items():
            client = world.client(role)
            home = client.get("/").content.decode()
            shown = {link for link in (*overseer, "/operator/") if f'href="{link}"' in home}
            assert shown == links, role
            assert all(client.get(link).status_code == 200 for link in shown)

    def test_pages_offer_only_what_works(self, world, request):
        """Each link is one that its reader is let in to, and leads somewhere: asked for once of all roles."""
        offered = {role: self.links(world, role) for role in Role}
        request.getfixturevalue("unrendered")
        asked = set()
        for role, links in offered.items():
            client = world.client(role)
            for view, link in links.items():
                rule, which = RULES.get(view[0]), OTHER if view[1] == OTHER else OWN
                assert rule is None or may_see(rule, role, which), (role, link)
                if view not in asked:
                    assert client.get(link).status_code != 404, link
            asked |= links.keys()

    def links(self, world, role):
        """One link of each view, study and kind of file: all indicators have the same readers."""
        client, links = world.client(role), {}
        reports = ["/", "/studies/", *(f"/studies/fair/{end}" for end in ("", "statement/"))]
        pages = {
            Role.OPERATOR: ["/", "/operator/", "/operator/fair/", "/operator/fair/coverage/"],
            Role.ADMINISTRATOR: reports,  # they export what analysts export
        }.get(role) or [
            *reports, *(f"/studies/fair/{end}" for end in ("maps/", "home/", "age/days/", "age/movement/")),
            "/studies/fair/age/compare/?kind=windows",
        ]  # fmt: skip
        if role in SEES_ALL:
            pages += ["/administrator/", "/administrator/fair/", "/people/", "/people/matrix/", "/ledger/"]
        for address in pages:
            text = client.get(address).content.decode()
            assert text
            for found in re.findall(r'(?:href|action)="(/[^"#]*)"', text):
                link = urlsplit(found.replace("&amp;", "&"))
                if not link.path.startswith(("/static/", "/sign-out/", "/language/")):
                    view = resolve(link.path)
                    about = (view.kwargs.get(name) for name in ("slug", "file_format", "content", "path"))
                    links[view.view_name, *about, frozenset(parse_qs(link.query))] = link.geturl()
        return links


def read(client, path, slug=OWN, **headers):
    address = path.replace("{study}", slug).replace(
        "{indicator}", "age_home" if path.endswith("/association") else "age"
    )
    address = f"/api/v1{address}".replace("{collection}", "home").replace("{feature}", "1")
    if path in QUESTIONS:
        response = client.post(address, QUESTIONS[path], content_type="application/json", **headers)
    else:
        response = client.get(address, **headers)
    assert response["Cache-Control"] == KEPT_NOWHERE, path
    has_none = (
        path.endswith(("/number", "/means", "/extrapolation", "/classes", "/model", "/visited", "/change"))
        and response.status_code == 422
    )  # so it was read
    return 200 if has_none else response.status_code


def bearer(text):
    return {"headers": {"Authorization": f"Bearer {text}"}}


class TestTokens:
    def test_every_path_of_the_api_has_a_rule(self):
        patterns = (str(pattern.pattern) for pattern in resolver_of_the_api().url_patterns)
        found = {"/" + re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", pattern) for pattern in patterns}
        assert found - {"/", "/docs"} == set(READING) | OF_EVENTS

    @pytest.mark.parametrize("role", [*Role, None], ids=str)
    def test_a_session_reads_what_its_role_may_take_along(self, world, role):
        client = world.client(role)
        for path, is_of_study in READING.items():
            if not is_of_study or role not in SEES_ALL:
                assert read(client, path) == (200 if role in EXPORTERS else 404), path
            if is_of_study:
                assert read(client, path, OTHER) == (200 if role in SEES_ALL else 404), path

    def test_without_a_token_nothing_is_read(self, client, world):
        for path in READING:
            assert read(client, path) == read(client, path, "nothing") == 401

    @pytest.mark.parametrize("is_of_one", [True, False], ids=["of one study", "of all studies"])
    def test_a_token_reads_what_its_owner_may_read_now(self, client, world, is_of_one):
        user, own = world.somebody(Role.ANALYST), world.studies[OWN]
        _, text = access.create_token(name="x", days=1, study=own if is_of_one else None, by=user)
        of_studies = [path for path, is_of_study in READING.items() if is_of_study]
        for path in READING if is_of_one else ():  # the other one reads the other study below
            assert read(client, path, **bearer(text)) == 200, path
        for path in of_studies:
            assert read(client, path, OTHER, **bearer(text)) == 404, path
        StudyGrant.objects.create(user=user, study=world.studies[OTHER], granted_by="test")
        for path in of_studies:
            assert read(client, path, OTHER, **bearer(text)) == (404 if is_of_one else 200), path
        user.study_grants.all().delete()
        for path in of_studies:
            assert read(client, path, **bearer(text)) == (401 if is_of_one else 404), path
        assert "fair" not in client.get("/api/v1/studies", **bearer(text)).content.decode()

    def test_a_token_of_somebody_who_only_looks_opens_nothing(self, client, world):
        _, text = access.create_token(name="x", days=1, study=None, by=world.somebody(Role.ANALYST))
        for role in (Role.VIEWER, Role.PRIVACY_OFFICER, Role.OPERATOR):
            user = world.somebody(role)
            assert read(client, "/studies", **bearer(text)) == 401, role
            with pytest.raises(access.AccessError):
                access.create_token(name="y", days=1, study=None, by=user)

    def test_a_link_shows_what_its_maker_may_read_now(self, client, world):
        user = world.somebody(Role.ANALYST, until=today())
        _, text = share(world.studies[OWN], by=user)
        address = reverse("access:shared", args=[text])
        assert client.get(address).status_code == 200
        user.study_grants.update(until=today() + YESTERDAY)
        assert client.get(address).status_code == 404
        # no one opens a study that is not open to them
        user, other = world.somebody(Role.ANALYST), world.studies[OTHER]
        with pytest.raises(access.AccessError):
            share(other, by=user)
        with pytest.raises(access.AccessError):
            access.create_token(name="x", days=1, study=other, by=user)


def share(study, *, by):
    age = study.indicators.get(slug="age")
    return access.create_link(age, Window(1, 1), query="", days=1, note="", password="", by=by)


def test_a_feed_opens_its_study_and_no_other(client, world):
    own = VaultStudy.objects.get(slug=OWN)
    token, text = feeds.create_token(own, name="nightly", days=1, by=COMMAND_LINE)
    Batch.objects.update(created_by="feed nightly")

    def statuses():
        asked, sent = [world.of[OWN], world.of[OTHER], UNKNOWN], bearer(text)
        batches = [client.get(reverse("api:batch", args=[each["batch"]]), **sent) for each in asked]
        files = [client.put(reverse("api:extract", args=[each["slug"], "x.csv"]), **sent) for each in asked]
        assert (batches[1].content, files[1].content) == (batches[2].content, files[2].content)
        return [response.status_code for response in batches + files]

    assert statuses() == [200, 404, 404, 411, 404, 404]
    feeds.revoke(token, by="olga")
    assert statuses() == [401] * 6
