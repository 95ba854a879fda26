"""Report pages are read only, and what is not there is not found. Who reads them is asked in
tests/mobility/views/test_permissions.py, of every address.
"""

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from reports import tasks
from reports.models import DensityMap, Study
from tests.mobility.views.access_rules import RULES
from tests.reports import map_factory

WRITTEN = {"reports:maps_compute", "reports:notes", "reports:remove_note"}
PARTS = {"slug": "fair-2024", "indicator_slug": "home"}
ASKING = "reports:maps_compute"


@pytest.fixture
def located(db: None, monkeypatch: pytest.MonkeyPatch) -> Study:
    monkeypatch.setattr(tasks.compute_density, "delay_on_commit", lambda _: None)  # no broker is needed here
    return map_factory.create_located()


def read_only() -> list[str]:
    return sorted(name for name in RULES if name.startswith("reports:") and name not in WRITTEN)


def ask(client: Client, name: str, method: str) -> HttpResponse:
    rule = RULES[name]
    kwargs = {**rule.kwargs, **{key: PARTS[key] for key in rule.about}}
    response: HttpResponse = getattr(client, method)(reverse(name, kwargs=kwargs) + rule.query)
    return response


def test_pages_are_read_only(client: Client, administrator: User, located: Study) -> None:
    client.force_login(administrator)  # reads them all
    names = read_only()
    assert len(names) > 15
    for name in names:
        assert ask(client, name, "get").status_code == 200, name
        for method in ("post", "put", "patch", "delete"):
            assert ask(client, name, method).status_code == 405, (name, method)


def test_only_readers_ask_for_maps(
    located: Study, client: Client, operator: User, stranger: User, viewer: User
) -> None:
    assert ask(client, ASKING, "post")["Location"].startswith(reverse("login"))
    for user in (operator, stranger):
        client.force_login(user)
        assert ask(client, ASKING, "post").status_code == 404
    assert not DensityMap.objects.exists()
    client.force_login(viewer)
    assert ask(client, ASKING, "get").status_code == 405
    assert ask(client, ASKING, "post").status_code == 302
    assert DensityMap.objects.count() == 1


@pytest.mark.parametrize(
    "path", ["/studies/nope/", "/studies/fair-2024/nope/", "/studies/fair-2024/nope/days/"]
)
def test_unknown_study_or_indicator_gets_404(reader: Client, fair: Study, path: str) -> None:
    assert reader.get(path).status_code == 404
