"""What holds for the whole site: headers, cookies, forged requests, file names, settings of production."""

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from mobility.views.study_form import StudyForm

ROOT = Path(__file__).parents[3]
# What docs/sign_in.md says for a site that strangers can reach.
PRODUCTION = {
    "HTTPS": "true",
    "ALLOWED_HOSTS": "reports.example.org",
    "CSRF_TRUSTED_ORIGINS": "https://reports.example.org",
    "MOBILITY_SECOND_FACTOR": "required",
    "MOBILITY_TRUSTED_PROXIES": "1",
    "MOBILITY_OIDC_ISSUER": "https://login.example.org/realms/staff",
    "MOBILITY_OIDC_CLIENT_ID": "mobility-reports",
    "MOBILITY_OIDC_CLIENT_SECRET": "of the client",
    "MOBILITY_OIDC_GROUPS_CLAIM": "groups",
    "MOBILITY_OIDC_GROUPS": "analysts=analyst",
}
# Programs with a token in a header, or an address that only reads: nothing that a forged page could use.
WITHOUT_CSRF = {
    "mobility.views.api": {"extract", "batch"},
    "reports.api.intake": {"state", "study", "publication", "receipts", "closed"},
    "reports.api.door": {"answer"},
}


def production(data_dir: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A command under the settings of production."""
    own = {"MOBILITY_DATA_DIR": str(data_dir), "SECRET_KEY": secrets.token_urlsafe(60)}
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return subprocess.run(
        [sys.executable, *words], cwd=ROOT, env=kept | own | PRODUCTION | variables,
        text=True, capture_output=True, check=False, timeout=120,
    )  # fmt: skip


def views(resolver: URLResolver | None = None, prefix: str = "") -> Iterator[tuple[str, URLPattern]]:
    for pattern in (resolver or get_resolver()).url_patterns:
        if isinstance(pattern, URLResolver):
            yield from views(pattern, prefix + str(pattern.pattern))
        elif isinstance(pattern, URLPattern):
            yield prefix + str(pattern.pattern), pattern


def test_check_deploy_is_clean(tmp_path: Path) -> None:
    done = production(tmp_path, "manage.py", "check", "--deploy", "--fail-level", "DEBUG")
    assert (done.returncode, "no issues" in done.stdout) == (0, True), done.stderr


@pytest.mark.parametrize(
    ("variables", "code"),
    [
        ({"MOBILITY_OIDC_CLIENT_SECRET": ""}, "signin.E001"),
        ({"MOBILITY_OIDC_ISSUER": "http://login.example.org"}, "signin.E002"),
        ({"MOBILITY_OIDC_GROUPS": "analysts=analist"}, "signin.E003"),
        ({"MOBILITY_OIDC_GROUPS_CLAIM": ""}, "signin.E004"),
        ({"MOBILITY_SECOND_FACTOR": "sometimes"}, "must be optional or required"),
    ],
)
def test_settings_that_promise_too_much_stop_the_start(
    tmp_path: Path, variables: dict[str, str], code: str
) -> None:
    done = production(tmp_path, "manage.py", "check", **variables)
    assert done.returncode != 0
    assert code in done.stderr


HEADERS_OF_PRODUCTION = """
import json, django
from unittest.mock import patch
django.setup()
from django.core.management import call_command
from django.test import Client
call_command("migrate", verbosity=0)
client = Client(SERVER_NAME="reports.example.org", headers={"x-forwarded-proto": "https"})
with patch("django.contrib.staticfiles.storage.staticfiles_storage.url", lambda name, **_: f"/static/{name}"):
    page = client.get("/sign-in/")
plain = Client(SERVER_NAME="reports.example.org").get("/sign-in/")
cookies = {name: {key: morsel[key] for key in ("secure", "httponly", "samesite", "path", "domain")}
           for name, morsel in page.cookies.items()}
sent_on = [plain.status_code, plain["Location"]]
print(json.dumps({"headers": dict(page.headers), "cookies": cookies, "plain": sent_on}))
"""


def test_headers_and_cookies_of_production(tmp_path: Path) -> None:
    done = production(
        tmp_path, "-W", "ignore", "-c", HEADERS_OF_PRODUCTION, DJANGO_SETTINGS_MODULE="mobility.settings"
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["plain"] == [301, "https://reports.example.org/sign-in/"]
    assert found["headers"]["Strict-Transport-Security"] == "max-age=31536000; includeSubDomains"
    assert found["cookies"] == {
        "__Host-csrf": {"secure": True, "httponly": True, "samesite": "Lax", "path": "/", "domain": ""}
    }


@pytest.mark.django_db
@pytest.mark.parametrize(
    "address", ["/", "/sign-in/", "/account/", "/nope/", "/api/v1/studies", "/static/img/icon.svg"]
)
def test_every_answer_has_the_headers(client: Client, analyst: User, address: str) -> None:
    client.force_login(analyst)
    headers = client.get(address).headers
    expected = {
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
    }
    assert {name: headers.get(name) for name in expected} == expected
    assert "camera=()" in headers["Permissions-Policy"]
    if address.startswith("/static/"):
        return  # a file, and not one that a browser draws as a page
    assert headers["X-Frame-Options"] == "DENY"
    policy = headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "form-action 'self'" in policy
    assert not {"unsafe-inline", "unsafe-eval", "*"} & set(policy.replace("'", "").split())


@pytest.mark.django_db
def test_cookies_are_for_servers_only(client: Client, analyst: User, password: str) -> None:
    client.get("/sign-in/")
    client.post("/sign-in/", {"username": analyst.username, "password": password})
    for name in (settings.SESSION_COOKIE_NAME, settings.CSRF_COOKIE_NAME):
        assert (client.cookies[name]["httponly"], client.cookies[name]["samesite"]) == (True, "Lax")


@pytest.mark.django_db
def test_signed_in_pages_of_an_account_are_kept_nowhere(client: Client, analyst: User) -> None:
    client.force_login(analyst)
    for address in ("/account/", "/account/password/"):
        assert "no-store" in client.get(address)["Cache-Control"]


def test_only_programs_are_let_off_the_token_against_forged_requests() -> None:
    exempt: dict[str, set[str]] = {}
    for _, pattern in views():
        if getattr(pattern.callback, "csrf_exempt", False):
            exempt.setdefault(pattern.callback.__module__, set()).add(str(pattern.name))
    assert exempt == WITHOUT_CSRF


@pytest.mark.django_db(databases=["default", "vault"])
def test_forged_requests_are_refused_at_every_other_address(analyst: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(analyst)
    tried = 0
    for route, pattern in views():
        if "<" in route or "(" in route or getattr(pattern.callback, "csrf_exempt", False):
            continue  # the middleware asks before the view, whatever stands in the address
        assert client.post(f"/{route}").status_code == 403, route
        tried += 1
    assert tried > 20


@pytest.mark.django_db
@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "..\\..\\boot.ini", "....//x", "a/../../x", "/etc/passwd"]
)
def test_static_files_do_not_climb(client: Client, name: str) -> None:
    assert client.get(f"/static/{quote(name, safe='')}").status_code == 404
    assert client.get(f"/static/{name}").status_code == 404


def test_study_file_names_files_of_its_form_only() -> None:
    """Where a browser sends it; a command reads what its user may read."""
    form = StudyForm(files={"cells.csv": b"cell_id,lon,lat"})
    assert form.read("cells.csv")
    for name in ("/etc/passwd", "../cells.csv", "./cells.csv", str(ROOT / "manage.py")):
        with pytest.raises(FileNotFoundError):
            form.read(name)
