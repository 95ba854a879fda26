"""Who can see what, until when: what the matrix says is what happens."""

import csv
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from reports.access_matrix import access_matrix, accounts_with_rights
from reports.models import Study
from reports.models.grant import last_moment, today
from reports.policies import Role, studies_for
from reports.selectors import Window
from reports.services import access
from tests.reports import report_factory as factory

Person = Callable[..., User]
TOMORROW = timedelta(days=1)


@pytest.fixture
def market(db: None) -> Study:
    study = factory.create(slug="market", name="The market")
    factory.publish(study, factory.crowd(study))
    return study


@pytest.fixture
def officer(privacy_officer: User, client: Client) -> Client:
    client.force_login(privacy_officer)
    return client


def share(study: Study, *, by: User, note: str = "", password: str = "", days: int = 30) -> str:
    gender = study.indicators.get(slug="gender")
    _, text = access.create_link(
        gender, Window(1, 1), query="", days=days, note=note, password=password, by=by
    )
    return text


def rows_of(client: Client, query: str = "") -> list[dict[str, str]]:
    response = client.get(f"/people/matrix.csv{query}")
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    return list(csv.DictReader(response.content.decode().splitlines()))


def words(client: Client, query: str = "") -> str:
    text = client.get(f"/people/matrix/{query}").content.decode()
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text))


def test_the_matrix_is_what_policies_decide(fair: Study, market: Study, person: Person) -> None:
    people = [
        person("one", Role.ANALYST, studies=[fair]),
        person("ended", Role.VIEWER, studies=[fair], until=today() - TOMORROW),
        person("all", Role.OPERATOR),
        person("boss", Role.ADMINISTRATOR, studies=[]),
        person("both", Role.PRIVACY_OFFICER, Role.OPERATOR, studies=[market]),
        person("none", studies=[fair]),
    ]
    found = access_matrix(Study.objects.all())
    rights = {each.user.username: each.rights for each in found.accounts + found.blind}
    for user in people:
        for study in (fair, market):
            for role in Role:
                in_matrix = role in {right.role for right in rights[user.username][study.pk]}
                assert in_matrix == studies_for(user, role).filter(pk=study.pk).exists(), (user, study, role)
    assert {each.user.username for each in found.blind} == {"ended", "none"}


def test_a_blocked_account_stands_in_no_row(fair: Study, person: Person) -> None:
    user = person("anna", Role.ANALYST)
    access.create_token(name="x", days=1, study=fair, by=user)
    User.objects.filter(pk=user.pk).update(is_active=False)
    found = access_matrix(Study.objects.all())
    assert found.accounts == found.blind == found.openings == ()
    [account] = accounts_with_rights(User.objects.all(), studies=[fair])
    assert account.roles == (Role.ANALYST,)
    assert account.rights == {fair.pk: ()}


def test_the_longer_of_two_grants_counts(fair: Study, person: Person) -> None:
    user = person("anna", Role.ANALYST, studies=[fair], until=today())
    user.study_grants.create(study=None, granted_by="test", until=today() + TOMORROW)
    [account] = access_matrix([fair]).accounts
    assert [right.until for right in account.rights[fair.pk]] == [today() + TOMORROW]


def test_openings_are_those_that_open_now(fair: Study, market: Study, person: Person) -> None:
    anna = person("anna", Role.ANALYST, studies=[fair])
    gone = person("gone", Role.ANALYST, studies=[fair])
    access.create_token(name="all", days=1, study=None, by=anna)
    access.create_token(name="one", days=1, study=fair, by=anna)
    revoked, _ = access.create_token(name="revoked", days=1, study=fair, by=anna)
    expired, _ = access.create_token(name="expired", days=1, study=fair, by=anna)
    type(revoked).objects.filter(pk=revoked.pk).update(revoked_at=timezone.now())
    type(expired).objects.filter(pk=expired.pk).update(expires_at=timezone.now())
    access.create_token(name="suspended", days=1, study=fair, by=gone)
    share(fair, by=anna, note="for the town")
    share(fair, by=gone, note="suspended")
    gone.study_grants.all().delete()
    found = access_matrix(Study.objects.all()).openings
    assert {(each.kind, each.name, each.study.slug) for each in found} == {
        ("token", "all", "fair-2024"),
        ("token", "one", "fair-2024"),
        ("link", "for the town", "fair-2024"),
    }


def test_an_opening_ends_with_the_right_of_its_maker(fair: Study, person: Person) -> None:
    anna = person("anna", Role.ANALYST, studies=[fair], until=today() + TOMORROW)
    access.create_token(name="long", days=100, study=fair, by=anna)
    share(fair, by=anna, days=100)
    for opening in access_matrix([fair]).openings:
        assert opening.until == last_moment(today() + TOMORROW)
    anna.study_grants.update(until=None)
    for opening in access_matrix([fair]).openings:
        assert opening.until > timezone.now() + timedelta(days=99)


def test_the_page_says_it_in_words(officer: Client, fair: Study, market: Study, person: Person) -> None:
    anna = person("anna", Role.ANALYST, studies=[fair], until=today() + TOMORROW)
    person("bob", Role.VIEWER, studies=[])
    access.create_token(name="nightly", days=5, study=None, by=anna)
    share(fair, by=anna, note="town", password="a long secret")
    page = words(officer)
    assert f"anna analyst until {today() + TOMORROW}" in page
    assert "See nothing of this: bob" in page
    assert "Token “nightly” The fair anna" in page
    assert "Share link “town” asks for a password The fair: Gender anna" in page
    only = words(officer, "?study=market")
    assert "analyst until" not in only
    assert "No token and no share link" in only
    assert "There is no such study" in words(officer, "?study=nope")


def test_views_and_uses_are_shown(officer: Client, client: Client, fair: Study, person: Person) -> None:
    anna = person("anna", Role.ANALYST, studies=[fair])
    _, text = access.create_token(name="nightly", days=5, study=fair, by=anna)
    address = share(fair, by=anna)
    assert [each.last_used for each in access_matrix([fair]).openings] == [None, None]
    Client().get(f"/shared/{address}/")
    Client().get("/api/v1/studies", headers={"Authorization": f"Bearer {text}"})
    for opening in access_matrix([fair]).openings:
        assert opening.last_used is not None
        assert timezone.now() - opening.last_used < timedelta(minutes=1)


def test_the_file_has_a_row_for_each_way_into_a_study(
    officer: Client, fair: Study, market: Study, person: Person
) -> None:
    last = datetime(2024, 6, 1, 12, 30, tzinfo=UTC)
    anna = person("anna", Role.ANALYST, Role.OPERATOR, studies=[fair], until=today())
    User.objects.filter(pk=anna.pk).update(last_login=last)
    access.create_token(name="nightly", days=5, study=None, by=anna)
    share(fair, by=anna, note="town")
    rows = [row for row in rows_of(officer) if row["account"] == "anna"]
    assert {row["study"] for row in rows} == {"fair-2024"}
    assert [(row["way"], row["role"], row["name"], row["report"], row["password"]) for row in rows] == [
        ("account", "operator", "", "", ""),
        ("account", "analyst", "", "", ""),
        ("token", "", "nightly", "", ""),
        ("link", "", "town", "Gender", "no"),
    ]
    assert rows[0]["until_utc"] == today().isoformat()
    assert rows[0]["last_used_utc"] == "2024-06-01T12:30:00+00:00"
    assert rows[2]["until_utc"] == f"{today()}T23:59:59+00:00"
    assert {row["study"] for row in rows_of(officer)} == {"fair-2024", "market"}
    assert {row["study"] for row in rows_of(officer, "?study=market")} == {"market"}


def test_a_spreadsheet_computes_nothing_of_the_file(officer: Client, fair: Study, person: Person) -> None:
    anna = person("+anna", Role.ANALYST)
    access.create_token(name="=1+1", days=5, study=fair, by=anna)
    share(fair, by=anna, note="@SUM(1)")
    for row in rows_of(officer):
        assert not any(value.startswith(("=", "+", "-", "@")) for value in row.values()), row
    assert {row["name"] for row in rows_of(officer)} == {"", "'=1+1", "'@SUM(1)"}


def test_many_accounts_and_openings_take_as_many_queries_as_few(
    officer: Client, fair: Study, person: Person, django_assert_num_queries: Any
) -> None:
    def count() -> int:
        with django_assert_num_queries(12) as captured:
            assert officer.get("/people/matrix/").status_code == 200
        return len(captured)

    def fill(n: int) -> None:
        for m in range(n):
            user = person(f"p-{n}-{m}", Role.ANALYST, studies=[fair])
            access.create_token(name="x", days=1, study=None, by=user)
            share(fair, by=user)
        factory.create(slug=f"more-{n}")

    fill(1)
    few = count()
    fill(8)
    assert count() == few
