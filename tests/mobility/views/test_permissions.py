"""Who reaches what: every address of the site against every role."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.utils import timezone

from mobility.models import Batch, FeedToken, VaultStudy
from mobility.profiles.typed import TypedProfile
from mobility.services.profiles import create_profile
from reports.models import BudgetCap, BudgetPopulation
from reports.policies import Role

pytestmark = pytest.mark.django_db(databases=["default", "vault"], transaction=True)

OPERATOR, ANALYST, ADMINISTRATOR = Role.OPERATOR, Role.ANALYST, Role.ADMINISTRATOR
PRIVACY_OFFICER = Role.PRIVACY_OFFICER
READERS = frozenset({ANALYST, ADMINISTRATOR})
EVERYBODY = frozenset({OPERATOR, ANALYST, ADMINISTRATOR, None})
BATCH = "0b0e7a86-0000-4000-8000-000000000001"
FEED = 7
CAP = 11
STUDY, INDICATOR = {"slug": "fair"}, {"slug": "fair", "indicator_slug": "age"}
PROFILE = {"slug": "fair", "name": "operator-x"}


@dataclass(frozen=True, kw_only=True)
class Rule:
    """Roles (None: signed in, no role) that an address lets in, and how it is asked."""

    roles: frozenset[Role | None]
    kwargs: dict[str, Any] = field(default_factory=dict)
    method: str = "get"
    signed_out: int = 302


RULES = {
    "home": Rule(roles=EVERYBODY),
    "login": Rule(roles=EVERYBODY, signed_out=200),
    "logout": Rule(roles=EVERYBODY, method="post"),
    "account": Rule(roles=EVERYBODY),
    "account_change_password": Rule(roles=EVERYBODY),
    "account_reauthenticate": Rule(roles=EVERYBODY),
    "end_other_sessions": Rule(roles=EVERYBODY, method="post"),
    "reports:studies": Rule(roles=READERS),
    "reports:study": Rule(roles=READERS, kwargs=STUDY),
    "reports:study_file": Rule(roles=READERS, kwargs={**STUDY, "file_format": "json"}),
    "reports:bundle": Rule(roles=READERS, kwargs=STUDY),
    "reports:compare": Rule(roles=READERS, kwargs=INDICATOR),
    "reports:movement": Rule(roles=READERS, kwargs=INDICATOR),
    "reports:compare_file": Rule(roles=READERS, kwargs={**INDICATOR, "file_format": "csv"}),
    "reports:movement_file": Rule(roles=READERS, kwargs={**INDICATOR, "file_format": "csv"}),
    "reports:notes": Rule(roles=frozenset({OPERATOR, ADMINISTRATOR}), kwargs=STUDY),
    "reports:remove_note": Rule(
        roles=frozenset({OPERATOR, ADMINISTRATOR}), kwargs={**STUDY, "note_id": 1}, method="post"
    ),
    "reports:statement": Rule(roles=READERS, kwargs=STUDY),
    "reports:statement_file": Rule(roles=READERS, kwargs=STUDY),
    "reports:indicator": Rule(roles=READERS, kwargs=INDICATOR),
    "reports:indicator_file": Rule(roles=READERS, kwargs={**INDICATOR, "file_format": "csv"}),
    "reports:days": Rule(roles=READERS, kwargs=INDICATOR),
    "reports:days_file": Rule(roles=READERS, kwargs={**INDICATOR, "file_format": "csv"}),
    "operator:studies": Rule(roles=frozenset({OPERATOR})),
    "operator:study": Rule(roles=frozenset({OPERATOR}), kwargs=STUDY),
    "operator:batch": Rule(roles=frozenset({OPERATOR}), kwargs={"batch_id": BATCH}),
    "operator:unmatched_cells": Rule(roles=frozenset({OPERATOR}), kwargs={"batch_id": BATCH}),
    "operator:coverage": Rule(roles=frozenset({OPERATOR}), kwargs=STUDY),
    "operator:uploads": Rule(roles=frozenset({OPERATOR}), kwargs=STUDY, method="options", signed_out=401),
    "operator:upload": Rule(
        roles=frozenset({OPERATOR}), kwargs={**STUDY, "upload_id": BATCH}, signed_out=401
    ),
    "operator:cancel": Rule(roles=frozenset({OPERATOR}), kwargs={"batch_id": BATCH}, method="post"),
    "operator:feeds": Rule(roles=frozenset({OPERATOR, ADMINISTRATOR}), kwargs=STUDY),
    "operator:revoke_feed": Rule(
        roles=frozenset({OPERATOR, ADMINISTRATOR}), kwargs={**STUDY, "token_id": FEED}, method="post"
    ),
    "operator:profiles": Rule(roles=frozenset({OPERATOR}), kwargs=STUDY),
    "operator:new_profile": Rule(roles=frozenset({OPERATOR}), kwargs=STUDY),
    "operator:profile": Rule(roles=frozenset({OPERATOR}), kwargs=PROFILE),
    "operator:delete_profile": Rule(roles=frozenset({OPERATOR}), kwargs=PROFILE, method="post"),
    "api:extract": Rule(
        roles=EVERYBODY, kwargs={**STUDY, "filename": "day.csv"}, method="put", signed_out=401
    ),
    "api:batch": Rule(roles=EVERYBODY, kwargs={"batch_id": BATCH}, signed_out=401),
    "operator:close_days": Rule(roles=frozenset({OPERATOR}), kwargs=STUDY, method="post"),
    "operator:void_day": Rule(roles=frozenset({OPERATOR}), kwargs=STUDY, method="post"),
    "budget:budget": Rule(roles=frozenset({ADMINISTRATOR, PRIVACY_OFFICER})),
    "budget:decide": Rule(
        roles=frozenset({ADMINISTRATOR, PRIVACY_OFFICER}), kwargs={"cap_id": CAP}, method="post"
    ),
    "administrator:studies": Rule(roles=frozenset({ADMINISTRATOR})),
    "administrator:create": Rule(roles=frozenset({ADMINISTRATOR})),
    "administrator:study": Rule(roles=frozenset({ADMINISTRATOR}), kwargs=STUDY),
    "administrator:close": Rule(roles=frozenset({ADMINISTRATOR}), kwargs=STUDY),
    # Without a demo, nobody: see tests/mobility/services/test_demo_removal.py.
    "administrator:remove_demo": Rule(roles=frozenset()),
    "administrator:certificate": Rule(roles=frozenset({ADMINISTRATOR}), kwargs=STUDY),
}


# Each about the account of whoever asks: tests/mobility/signin.
SIGN_IN = {
    "account_login", "account_inactive", "mfa_index", "mfa_list_webauthn", "mfa_authenticate",
    "mfa_reauthenticate", "mfa_reauthenticate_webauthn", "mfa_activate_totp", "mfa_deactivate_totp",
    "mfa_add_webauthn", "mfa_edit_webauthn", "mfa_remove_webauthn", "mfa_view_recovery_codes",
    "mfa_generate_recovery_codes", "mfa_download_recovery_codes", "oidc_login", "oidc_callback",
    "socialaccount_login_cancelled",
}  # fmt: skip
# Their rules depend on who owns what: tests/reports/api and tests/reports/views. A language is for everybody.
ELSEWHERE = {"access", "intake", "reading", "set_language", *SIGN_IN}
# Not found in this study, whoever asks: see tests/reports/test_access.py.
ON_MAPS = {
    "reports:maps",
    "reports:maps_days",
    "reports:maps_compute",
    "reports:maps_state",
    "reports:maps_file",
    "reports:map_days",
}


@pytest.fixture(autouse=True)
def _study_with_a_batch(study: VaultStudy) -> None:
    Batch.objects.create(pk=BATCH, study=study, state=Batch.State.DONE, filename="day.csv")
    FeedToken.objects.create(pk=FEED, study=study, name="nightly", digest="0", expires_at=timezone.now())
    people, _ = BudgetPopulation.objects.get_or_create(name="subscribers")
    BudgetCap.objects.create(pk=CAP, population=people, unit="profile", period="ever", needs_second=True)
    typed = TypedProfile(
        name="operator-x", kind="events", subscriber="id", timestamp="t", cell=None, max_bad_share=Decimal(0)
    )
    create_profile(typed, study=study, by="olga")


def names(resolver: URLResolver, prefix: str = "") -> Iterator[str]:
    for pattern in resolver.url_patterns:
        if isinstance(pattern, URLResolver):
            below = f"{prefix}{pattern.namespace}:" if pattern.namespace else prefix
            yield from names(pattern, below)
        elif isinstance(pattern, URLPattern):
            yield f"{prefix}{pattern.name}"


def ask(client: Client, name: str) -> HttpResponse:
    rule = RULES[name]
    response: HttpResponse = getattr(client, rule.method)(reverse(name, kwargs=rule.kwargs))
    return response


def test_every_address_has_a_rule() -> None:
    found = {name for name in names(get_resolver()) if name.split(":")[0] not in ELSEWHERE}
    assert found == set(RULES) | ON_MAPS


@pytest.mark.parametrize("name", RULES)
def test_signed_out_must_sign_in(client: Client, name: str) -> None:
    response = ask(client, name)
    assert response.status_code == RULES[name].signed_out
    if response.status_code == 302:
        assert response.headers["Location"].startswith("/sign-in/")


@pytest.mark.parametrize("role", [OPERATOR, ANALYST, ADMINISTRATOR, None], ids=str)
def test_a_role_sees_its_pages_and_nothing_else(
    client: Client, person: Callable[..., User], role: Role | None
) -> None:
    user = person("somebody", *([role] if role else []))
    seen, hidden = set(), set()
    for name in RULES:
        client.force_login(user)
        response = ask(client, name)
        (hidden if response.status_code == 404 else seen).add(name)
        is_sent_away = response.headers.get("Location", "").startswith("/sign-in/")
        assert not is_sent_away or name == "logout", name
        assert response.status_code < 500, name
    assert seen == {name for name, rule in RULES.items() if role in rule.roles}
    assert hidden == set(RULES) - seen


def test_a_blocked_account_is_signed_out(client: Client, operator: User) -> None:
    client.force_login(operator)
    operator.is_active = False
    operator.save()
    assert client.get("/operator/").status_code == 302


def test_roles_add_up(client: Client, person: Callable[..., User]) -> None:
    client.force_login(person("both", OPERATOR, ANALYST))
    assert client.get("/operator/fair/").status_code == 200
    assert client.get("/studies/fair/").status_code == 200
    assert client.get("/administrator/fair/").status_code == 404


def test_a_link_in_the_navigation_is_one_that_works(client: Client, person: Callable[..., User]) -> None:
    for role, links in {
        OPERATOR: {"/operator/"},
        ANALYST: {"/studies/"},
        ADMINISTRATOR: {"/administrator/", "/studies/"},
        None: set(),
    }.items():
        client.force_login(person(f"nav-{role}", *([role] if role else [])))
        home = client.get("/").content.decode()
        shown = {link for link in ("/operator/", "/studies/", "/administrator/") if f'href="{link}"' in home}
        assert shown == links, role
