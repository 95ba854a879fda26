"""What programs, links and feeds reach: every path of the API, each role, the own study and another one."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from mobility.models import VaultStudy
from mobility.services import feeds
from reports.api.door import _resolver as resolver_of_the_api
from reports.models import Study, StudyGrant
from reports.models.grant import today
from reports.policies import EXPORTERS, SEES_ALL, Role
from reports.selectors import Window
from reports.services import access
from tests.mobility.views.access_rules import READING
from tests.mobility.views.access_world import (
    OTHER,
    OWN,
    UNKNOWN,
    YESTERDAY,
    Person,
    located_study,
    somebody,
    things_of,
)

pytestmark = pytest.mark.django_db(databases=["default", "vault"], transaction=True)

EVERY_ROLE = [*Role, None]


@pytest.fixture(autouse=True)
def studies(data_dir: object) -> dict[str, Study]:
    """The own study and another one."""
    return {slug: located_study(slug) for slug in (OWN, OTHER)}


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


def test_a_feed_opens_its_study_and_no_other(client: Client, person: Person) -> None:
    anna = person("anna", Role.ANALYST)
    things = {slug: things_of(slug, maker=anna, person=person) for slug in (OWN, OTHER)}
    token, text = feeds.create_token(VaultStudy.objects.get(slug=OWN), name="nightly", days=1, by="olga")
    sent: dict[str, Any] = {"headers": {"Authorization": f"Bearer {text}"}}

    def statuses() -> list[int]:
        """Of batches, and of files without a length: 411 comes after the door."""
        asked = [things[OWN], things[OTHER], UNKNOWN]
        batches = [client.get(reverse("api:batch", args=[each["batch"]]), **sent) for each in asked]
        files = [client.put(reverse("api:extract", args=[each["slug"], "x.csv"]), **sent) for each in asked]
        assert batches[1].content == batches[2].content
        assert files[1].content == files[2].content
        return [response.status_code for response in batches + files]

    assert statuses() == [200, 404, 404, 411, 404, 404]
    feeds.revoke(token, by="olga")
    assert statuses() == [401] * 6
