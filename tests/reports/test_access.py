"""Who reads reports: analysts and administrators; nobody else learns that a page exists."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from reports.models import Study

ADDRESSES = [
    ("reports:studies", ()),
    ("reports:study", ("fair-2024",)),
    ("reports:study_file", ("fair-2024", "json")),
    ("reports:bundle", ("fair-2024",)),
    ("reports:statement", ("fair-2024",)),
    ("reports:statement_file", ("fair-2024",)),
    ("reports:indicator", ("fair-2024", "gender")),
    ("reports:indicator_file", ("fair-2024", "gender", "csv")),
    ("reports:days", ("fair-2024", "gender")),
    ("reports:days_file", ("fair-2024", "gender", "csv")),
    ("reports:compare", ("fair-2024", "gender")),
    ("reports:movement", ("fair-2024", "gender")),
]
WRITTEN = {"reports:notes", "reports:remove_note"}  # by others than readers: tests/reports/test_notes.py
every_page = pytest.mark.parametrize(
    "address", [pytest.param(address, id=address[0]) for address in ADDRESSES]
)


def path_of(address: tuple[str, tuple[str, ...]]) -> str:
    return reverse(address[0], args=address[1])


@every_page
def test_analyst_and_administrator_read(
    fair: Study, analyst: User, administrator: User, client: Client, address: tuple[str, tuple[str, ...]]
) -> None:
    for user in (analyst, administrator):
        client.force_login(user)
        assert client.get(path_of(address)).status_code == 200


@every_page
def test_operator_and_stranger_get_404(
    fair: Study, operator: User, stranger: User, client: Client, address: tuple[str, tuple[str, ...]]
) -> None:
    for user in (operator, stranger):
        client.force_login(user)
        assert client.get(path_of(address)).status_code == 404


@every_page
def test_anonymous_signs_in(fair: Study, client: Client, address: tuple[str, tuple[str, ...]]) -> None:
    response = client.get(path_of(address))
    assert response.status_code == 302
    assert response["Location"].startswith(reverse("login"))


@every_page
def test_pages_are_read_only(reader: Client, fair: Study, address: tuple[str, tuple[str, ...]]) -> None:
    assert reader.post(path_of(address)).status_code == 405


def test_all_addresses_of_the_zone_are_tested() -> None:
    from reports.urls import urlpatterns

    assert {f"reports:{pattern.name}" for pattern in urlpatterns} == {name for name, _ in ADDRESSES} | WRITTEN


@pytest.mark.parametrize(
    "path", ["/studies/nope/", "/studies/fair-2024/nope/", "/studies/fair-2024/nope/days/"]
)
def test_unknown_study_or_indicator_gets_404(reader: Client, fair: Study, path: str) -> None:
    assert reader.get(path).status_code == 404
