"""Who reads reports: analysts and administrators; nobody else learns that a page exists."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from reports import tasks
from reports.models import DensityMap, Study
from reports.policies import Role
from tests.reports import map_factory

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
    ("reports:compare_file", ("fair-2024", "gender", "csv")),
    ("reports:movement_file", ("fair-2024", "gender", "csv")),
]
# Of a study in which people report places, and with zones on a map.
ON_MAPS = [
    ("reports:maps", ("fair-2024",)),
    ("reports:maps_days", ("fair-2024",)),
    ("reports:maps_state", ("fair-2024",)),
    ("reports:maps_file", ("fair-2024", "zones", "csv")),
    ("reports:map_days", ("fair-2024", "home")),
]
QUERIES = {"reports:compare_file": "?kind=baseline&from=2024-05-30&to=2024-05-30"}
ASKING = "reports:maps_compute"
WRITTEN = {"reports:notes", "reports:remove_note"}  # by others than readers: tests/reports/test_notes.py
every_page = pytest.mark.parametrize(
    "address", [pytest.param(address, id=address[0]) for address in ADDRESSES]
)


@pytest.fixture
def located(db: None, monkeypatch: pytest.MonkeyPatch) -> Study:
    monkeypatch.setattr(tasks.compute_density, "delay_on_commit", lambda _: None)  # no broker is needed here
    return map_factory.create_located()


def path_of(address: tuple[str, tuple[str, ...]]) -> str:
    return reverse(address[0], args=address[1]) + QUERIES.get(address[0], "")


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


@pytest.mark.parametrize("address", ON_MAPS, ids=lambda address: address[0])
def test_maps_are_for_the_same_readers(
    located: Study,
    client: Client,
    person: Callable[..., User],
    address: tuple[str, tuple[str, ...]],
) -> None:
    path = path_of(address)
    for role, status in ((Role.ANALYST, 200), (Role.ADMINISTRATOR, 200), (Role.OPERATOR, 404)):
        client.force_login(person(f"a-{role}", role))
        assert client.get(path).status_code == status
        assert client.post(path).status_code == 405
    client.force_login(person("stranger"))
    assert client.get(path).status_code == 404
    client.logout()
    assert client.get(path)["Location"].startswith(reverse("login"))


def test_only_readers_ask_for_maps(located: Study, client: Client, person: Callable[..., User]) -> None:
    path = reverse(ASKING, args=["fair-2024"])
    assert client.post(path)["Location"].startswith(reverse("login"))
    for role in (Role.OPERATOR, None):
        client.force_login(person(f"b-{role}", *([role] if role else [])))
        assert client.post(path).status_code == 404
    assert not DensityMap.objects.exists()
    client.force_login(person("reader", Role.ANALYST))
    assert client.get(path).status_code == 405
    assert client.post(path).status_code == 302
    assert DensityMap.objects.count() == 1


def test_all_addresses_of_the_zone_are_tested() -> None:
    from reports.urls import urlpatterns

    tested = {name for name, _ in ADDRESSES + ON_MAPS} | {ASKING} | WRITTEN
    assert {f"reports:{pattern.name}" for pattern in urlpatterns} == tested


@pytest.mark.parametrize(
    "path", ["/studies/nope/", "/studies/fair-2024/nope/", "/studies/fair-2024/nope/days/"]
)
def test_unknown_study_or_indicator_gets_404(reader: Client, fair: Study, path: str) -> None:
    assert reader.get(path).status_code == 404
