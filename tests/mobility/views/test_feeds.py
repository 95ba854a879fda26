"""The page of feeds: a token is shown once, listed, and revoked."""

import html
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from mobility.models import Batch, FeedToken, VaultStudy
from mobility.services import feeds
from reports.policies import Role
from tests.mobility.views.small_study import GOOD, page, text_of

pytestmark = pytest.mark.django_db(databases=["default", "vault"], transaction=True)
URL = "/operator/fair/feeds/"


@pytest.fixture(autouse=True)
def _signed_in(client: Client, operator: User) -> None:
    client.force_login(operator)


def test_a_token_is_shown_once(client: Client, study: VaultStudy) -> None:
    assert "None yet" in page(client, URL)
    response = client.post(URL, {"name": "nightly", "days": "30"})
    assert response.status_code == 200
    found = re.search(r"mobility-feed-[\w-]{43}", response.content.decode())
    assert found is not None
    token = feeds.token_of(found[0])
    assert token is not None
    assert (token.name, token.created_by, token.study) == ("nightly", "olga", study)
    assert "no-store" in response["Cache-Control"]
    shown = page(client, URL)
    assert "nightly valid" in shown
    assert found[0] not in shown


def test_the_command_of_the_page_sends_a_file_and_shows_the_token_in_no_list_of_processes(
    client: Client, study: VaultStudy, live_server, tmp_path: Path
) -> None:
    token = feeds.create_token(study, name="nightly", days=3, by="olga")[1]
    (tmp_path / "TOKEN").write_text(token + "\n")
    (tmp_path / "FILE").write_bytes(GOOD)
    shown = client.get(URL, headers={"Host": live_server.url.removeprefix("http://")}).content.decode()
    found = re.search(r"<pre [^>]*>(.*?)</pre>", shown, re.DOTALL)
    assert found is not None
    done = subprocess.run(  # with -x bash tells the words of every program that it starts
        ["bash", "-xc", html.unescape(found[1])], cwd=tmp_path, capture_output=True, text=True, check=False,
        timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert Batch.objects.get().created_by == "feed nightly"
    assert "+ curl " in done.stderr
    assert token not in done.stderr


@pytest.mark.parametrize("given", [{"name": "", "days": "30"}, {"name": "x", "days": "0"}, {"name": "x"}])
def test_a_form_that_is_wrong_makes_nothing(client: Client, study: VaultStudy, given: dict[str, str]) -> None:
    response = client.post(URL, given)
    assert "errorlist" in response.content.decode()
    assert not FeedToken.objects.exists()


def test_a_token_can_be_revoked(client: Client, study: VaultStudy) -> None:
    token, text = feeds.create_token(study, name="nightly", days=3, by="olga")
    assert client.get(f"{URL}{token.pk}/revoke/").status_code == 405
    assert client.post(f"/operator/other/feeds/{token.pk}/revoke/").status_code == 404
    assert feeds.token_of(text) is not None
    shown = text_of(client.post(f"{URL}{token.pk}/revoke/", follow=True).content.decode())
    assert "The token of “nightly” was revoked" in shown
    assert "nightly revoked" in shown
    assert feeds.token_of(text) is None


def test_the_way_up_is_one_that_the_person_may_go(
    client: Client, study: VaultStudy, person: Callable[..., User]
) -> None:
    for role, way in ((Role.OPERATOR, "/operator/"), (Role.ADMINISTRATOR, "/administrator/")):
        client.force_login(person(f"one-{role}", role))
        html = client.get(URL).content.decode()
        crumbs = html.split('class="breadcrumbs"')[1].split("</nav>")[0]
        assert re.findall(r'href="([^"]+)"', crumbs) == [way, f"{way}fair/"]
        assert all(client.get(link).status_code == 200 for link in (way, f"{way}fair/"))


def test_the_example_names_this_site_and_study(client: Client, study: VaultStudy) -> None:
    assert "http://testserver/api/v1/studies/fair/extracts/FILE?profile=default" in page(client, URL)


def test_the_list_says_the_state_of_each_and_ends_what_is_valid(client: Client, study: VaultStudy) -> None:
    names = ("a <b>", "old", "gone")
    tokens = {name: feeds.create_token(study, name=name, days=3, by="olga")[0] for name in names}
    FeedToken.objects.filter(pk=tokens["old"].pk).update(expires_at=timezone.now())
    feeds.revoke(tokens["gone"], by="olga")
    html = client.get(URL).content.decode()
    shown = text_of(html)
    assert "old expired" in shown
    assert "gone revoked" in shown
    labels = re.findall(r'<form method="post" action="([^"]+)">.*?aria-label="([^"]+)"', html)
    assert labels == [(f"{URL}{tokens['a <b>'].pk}/revoke/", "Revoke a &lt;b&gt;")]
