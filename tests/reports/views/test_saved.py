"""Kept views: report pages under a name, for the person who kept them."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from reports.models import SavedView, Study
from reports.policies import Role
from reports.services import access
from tests.reports.views.test_tokens import signed_in, words

pytestmark = pytest.mark.django_db
URL = "/access/saved/"
PAGE = "/studies/fair-2024/gender/?from=2024-05-31&order=sorted"


def test_a_view_is_kept_and_found_again(reader: Client, analyst: User, fair: Study) -> None:
    response = reader.post(URL, {"name": " Friday ", "address": PAGE}, follow=True)
    assert response.redirect_chain == [(PAGE, 302)]
    assert "Kept as “Friday”" in words(response)
    view = SavedView.objects.get()
    assert (view.owner, view.name, view.address) == (analyst, "Friday", PAGE)
    assert f'href="{PAGE.replace("&", "&amp;")}"' in reader.get(URL).content.decode()


@pytest.mark.parametrize("page", ["/", "/studies/"])
def test_it_is_offered_where_people_begin(
    reader: Client, analyst: User, administrator: User, fair: Study, page: str
) -> None:
    assert "Friday" not in words(reader.get(page))
    access.save_view(name="Friday", address=PAGE, by=analyst)
    assert "Kept views Friday" in words(reader.get(page))
    assert "Friday" not in words(signed_in(administrator).get(page))


def test_the_page_of_a_report_keeps_itself(reader: Client, fair: Study) -> None:
    html = reader.get(PAGE).content.decode()
    assert f'name="address" value="{PAGE.replace("&", "&amp;")}"' in html
    assert (
        f'href="/access/shares/new/fair-2024/gender/?{PAGE.partition("?")[2].replace("&", "&amp;")}"' in html
    )


def test_the_same_name_replaces(reader: Client, fair: Study) -> None:
    for address in (PAGE, "/studies/fair-2024/"):
        reader.post(URL, {"name": "Friday", "address": address})
    assert SavedView.objects.get().address == "/studies/fair-2024/"


@pytest.mark.parametrize(
    "address",
    [
        "", "https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:alert(1)",
        "/sign-out/", "/operator/", "/studies/fair-2024/gender/export.csv",
        "/studies/fair-2024/statement.json", "/nowhere/", "//studies/fair-2024/",
        "/studies/fair-2024/\n", "/studies/?a=\nb", "/studies/?" + "x" * 1000, "studies/",
    ],
)  # fmt: skip
def test_only_pages_of_studies_are_kept(reader: Client, fair: Study, address: str) -> None:
    response = reader.post(URL, {"name": "x", "address": address})
    assert response.status_code == 302
    assert response["Location"] == URL
    assert not SavedView.objects.exists()
    assert "Only pages of studies" in words(reader.get(URL))


@pytest.mark.parametrize("name", ["", " ", "x" * 81, "a\nb"])
def test_names_have_bounds(reader: Client, fair: Study, name: str) -> None:
    response = reader.post(URL, {"name": name, "address": PAGE}, follow=True)
    assert response.redirect_chain == [(PAGE, 302)]
    assert "1 to 80 printable characters" in words(response)
    assert not SavedView.objects.exists()


def test_names_may_have_the_hard_spaces_of_french_typography(reader: Client, fair: Study) -> None:
    name = "\u00ab\u00a0Mairie\u00a0\u00bb\u202f: juin"
    reader.post(URL, {"name": name, "address": "/studies/fair-2024/"})
    assert SavedView.objects.get().name == name


def test_there_is_an_end_to_keeping(analyst: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "VIEWS_MAX", 2)
    for name in ("a", "b", "b"):
        access.save_view(name=name, address="/studies/", by=analyst)
    with pytest.raises(access.AccessError, match="2 views already"):
        access.save_view(name="c", address="/studies/", by=analyst)


def test_people_see_and_remove_their_own_only(
    reader: Client, analyst: User, administrator: User, person: Callable[..., User]
) -> None:
    view = access.save_view(name="Friday", address="/studies/", by=analyst)
    for user in (administrator, person("otto", Role.ANALYST)):
        other = signed_in(user)
        assert "Friday" not in words(other.get(URL))
        assert other.post(f"{URL}{view.pk}/remove/").status_code == 404
    assert reader.get(f"{URL}{view.pk}/remove/").status_code == 405
    assert "no longer kept" in words(reader.post(f"{URL}{view.pk}/remove/", follow=True))
    assert not SavedView.objects.exists()


def test_only_readers_keep(operator: User, fair: Study) -> None:
    assert signed_in(operator).post(URL, {"name": "x", "address": PAGE}).status_code == 404
    with pytest.raises(access.AccessError):
        access.save_view(name="x", address=PAGE, by=operator)


ADDRESSES = [
    "/access/tokens/", "/access/shares/", "/access/shares/new/fair-2024/gender/", "/access/saved/",
    "/api/v1/docs/",
]  # fmt: skip
POSTS = ["/access/tokens/1/revoke/", "/access/shares/1/revoke/", "/access/saved/1/remove/"]


@pytest.mark.parametrize("address", ADDRESSES)
def test_pages_are_for_readers(
    client: Client, fair: Study, person: Callable[..., User], address: str
) -> None:
    assert client.get(address)["Location"].startswith("/sign-in/")
    expected = {(Role.ANALYST,): 200, (Role.ADMINISTRATOR,): 200, (Role.OPERATOR,): 404, (): 404}
    for roles, found in expected.items():
        user = person(f"one-{'-'.join(roles)}", *roles)
        assert signed_in(user).get(address).status_code == found


@pytest.mark.parametrize("address", POSTS)
def test_what_changes_something_is_for_readers(client: Client, person: Any, address: str) -> None:
    assert client.post(address)["Location"].startswith("/sign-in/")
    for roles in ((Role.OPERATOR,), (), (Role.ANALYST,)):
        assert signed_in(person(f"one-{'-'.join(roles)}", *roles)).post(address).status_code == 404


def test_all_addresses_are_tested() -> None:
    from reports.access_urls import urlpatterns

    public = {"shared"}
    names = {"tokens", "revoke_token", "shares", "new_share", "revoke_share", "saved", "remove_saved"}
    assert {pattern.name for pattern in urlpatterns} == names | public
