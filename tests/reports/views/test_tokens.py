"""The page of tokens: shown once, listed with scope, role and last use, revoked by who may."""

import hashlib
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.forms.models import model_to_dict
from django.test import Client
from django.utils import timezone

from reports.models import ApiToken, Study
from reports.policies import Role
from reports.services import access

pytestmark = pytest.mark.django_db
URL = "/access/tokens/"
FORM = {"name": "nightly", "study": "", "days": "30"}


def words(response: Any) -> str:
    """Text of a page, without its marks."""
    return " ".join(re.sub(r"<[^>]+>", " ", response.content.decode()).split())


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_a_token_is_shown_once(reader: Client, analyst: User, fair: Study) -> None:
    assert "None yet" in words(reader.get(URL))
    response = reader.post(URL, FORM | {"study": "fair-2024"})
    found = re.search(r"mobility-read-[\w-]{43}", response.content.decode())
    assert found is not None
    token = access.token_of(found[0])
    assert token is not None
    assert (token.owner, token.study, token.name) == (analyst, fair, "nightly")
    assert timedelta(days=29.9) < token.expires_at - timezone.now() < timedelta(days=30)
    assert "no-store" in response["Cache-Control"]
    again = reader.get(URL)
    assert found[0] not in again.content.decode()
    assert "nightly The fair valid" in words(again)


def test_only_its_digest_is_kept(analyst: User) -> None:
    token, text = access.create_token(name="x", days=1, study=None, by=analyst)
    assert text not in str(model_to_dict(token))
    assert token.digest == hashlib.sha256(text.encode()).hexdigest()
    assert access.create_token(name="x", days=1, study=None, by=analyst)[1] != text


@pytest.mark.parametrize(
    "given", [{"name": ""}, {"name": "x" * 81}, {"days": "0"}, {"days": "731"}, {"study": "nothing"}]
)
def test_a_form_that_is_wrong_makes_nothing(reader: Client, fair: Study, given: dict[str, str]) -> None:
    assert "errorlist" in reader.post(URL, FORM | given).content.decode()
    assert not ApiToken.objects.exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": " "}, "1 to 80"),
        ({"name": "a\nb"}, "printable"),
        ({"days": 0}, "got 0"),
        ({"days": 731}, "1 to 730"),
    ],
)
def test_names_and_days_have_bounds(analyst: User, options: dict[str, Any], message: str) -> None:
    with pytest.raises(access.AccessError, match=message):
        access.create_token(**({"name": "x", "days": 1, "study": None, "by": analyst} | options))


def test_only_readers_get_one(operator: User, stranger: User) -> None:
    for user in (operator, stranger):
        with pytest.raises(access.AccessError):
            access.create_token(name="x", days=1, study=None, by=user)


def test_people_see_and_revoke_their_own_and_administrators_all(
    analyst: User, administrator: User, person: Callable[..., User]
) -> None:
    other = person("otto", Role.ANALYST)
    mine, text = access.create_token(name="mine", days=1, study=None, by=analyst)
    access.create_token(name="theirs", days=1, study=None, by=other)
    page = words(signed_in(analyst).get(URL))
    assert "mine" in page
    assert "theirs" not in page
    everyone = words(signed_in(administrator).get(URL))
    assert "mine all studies anna analyst" in everyone
    assert "theirs all studies otto analyst" in everyone
    revoke = f"{URL}{mine.pk}/revoke/"
    assert signed_in(other).post(revoke).status_code == 404
    assert access.token_of(text) is not None
    assert "was revoked" in words(signed_in(administrator).post(revoke, follow=True))
    assert access.token_of(text) is None
    first = ApiToken.objects.get(pk=mine.pk).revoked_at
    access.revoke(mine, by=administrator)
    assert ApiToken.objects.get(pk=mine.pk).revoked_at == first is not None


def test_states_are_told_apart(administrator: User, analyst: User) -> None:
    states = {}
    now = timezone.now()
    for name, change in {
        "valid": {}, "revoked": {"revoked_at": now}, "expired": {"expires_at": now},
    }.items():  # fmt: skip
        token, _ = access.create_token(name=f"one-{name}", days=1, study=None, by=analyst)
        ApiToken.objects.filter(pk=token.pk).update(**change)
        states[name] = token
    page = words(signed_in(administrator).get(URL))
    for name in states:
        assert f"one-{name} all studies anna analyst {name}" in page
    analyst.groups.clear()
    assert "one-valid all studies anna no role suspended" in words(signed_in(administrator).get(URL))


def test_rows_cost_no_queries_of_their_own(
    administrator: User, analyst: User, fair: Study, django_assert_max_num_queries: Any
) -> None:
    client = signed_in(administrator)
    for n in range(12):
        access.create_token(name=f"t{n}", days=1, study=fair, by=analyst)
    with django_assert_max_num_queries(10):
        client.get(URL)


def test_revoking_needs_the_form(reader: Client, analyst: User) -> None:
    token, text = access.create_token(name="x", days=1, study=None, by=analyst)
    assert reader.get(f"{URL}{token.pk}/revoke/").status_code == 405
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(analyst)
    assert strict.post(f"{URL}{token.pk}/revoke/").status_code == 403
    assert access.token_of(text) is not None
