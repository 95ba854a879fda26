"""Rules for the whole site: headers, cookies, forged requests, file names, settings of production."""

import json
import os
import secrets
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.core.checks.registry import registry
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from mobility.plans.new_study.sent import NewStudyForm
from mobility.signin import checks

ROOT = Path(__file__).parents[3]
# Recommendations of docs/sign_in.md for a site that strangers can reach.
PRODUCTION = {
    "HTTPS": "true", "ALLOWED_HOSTS": "reports.example.org",
    "CSRF_TRUSTED_ORIGINS": "https://reports.example.org", "MOBILITY_TRUSTED_PROXIES": "1",
    "MOBILITY_SECOND_FACTOR": "required",
    "MOBILITY_OIDC_ISSUER": "https://login.example.org/realms/staff",
    "MOBILITY_OIDC_CLIENT_ID": "mobility-reports", "MOBILITY_OIDC_CLIENT_SECRET": "of the client",
    "MOBILITY_OIDC_GROUPS_CLAIM": "groups", "MOBILITY_OIDC_GROUPS": "analysts=analyst",
}  # fmt: skip
# Programs with a token in a header, or an address that only reads: nothing that a forged page could use.
WITHOUT_CSRF = {
    "mobility.uploads.api.views": {"extract", "batch"},
    "reports.transfer.views": {"state", "study", "publication", "receipts", "closed"},
    "reports.api.door": {"answer"},
}


def views(resolver=None, prefix=""):
    for pattern in (resolver or get_resolver()).url_patterns:
        if isinstance(pattern, URLResolver):
            yield from views(pattern, prefix + str(pattern.pattern))
        elif isinstance(pattern, URLPattern):
            yield prefix + str(pattern.pattern), pattern


SITE_OF_PRODUCTION = """
import json, django
from unittest.mock import patch
django.setup()
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
call_command("check", deploy=True, fail_level="DEBUG")
client = Client(SERVER_NAME="reports.example.org", headers={"x-forwarded-proto": "https"})
with (
    patch("django.contrib.staticfiles.storage.staticfiles_storage.url", lambda name, **_: f"/static/{name}"),
    patch.object(User.objects, "exists", lambda: True, create=True),
):
    page = client.get("/sign-in/")
plain = Client(SERVER_NAME="reports.example.org").get("/sign-in/")
cookies = {name: {key: morsel[key] for key in ("secure", "httponly", "samesite", "path", "domain")}
           for name, morsel in page.cookies.items()}
sent_on = [plain.status_code, plain["Location"]]
print(json.dumps({"headers": dict(page.headers), "cookies": cookies, "plain": sent_on}))
"""


class TestSite:
    def test_production_passes_the_checks_of_deployment_and_has_strict_headers_and_cookies(self, tmp_path):
        own = {"MOBILITY_DATA_DIR": str(tmp_path), "SECRET_KEY": secrets.token_urlsafe(60)}
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        environment = kept | own | PRODUCTION | {"DJANGO_SETTINGS_MODULE": "mobility.settings"}
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", SITE_OF_PRODUCTION], cwd=ROOT, env=environment,
            text=True, capture_output=True, check=False, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        checked, _, answer = done.stdout.strip().rpartition("\n")
        assert "no issues" in checked
        found = json.loads(answer)
        assert found["plain"] == [301, "https://reports.example.org/sign-in/"]
        assert found["headers"]["Strict-Transport-Security"] == "max-age=31536000; includeSubDomains"
        assert found["cookies"] == {
            "__Host-csrf": {"secure": True, "httponly": True, "samesite": "Lax", "path": "/", "domain": ""}
        }

    def test_settings_that_promise_too_much_are_errors(self, settings):
        given = {name: value for name, value in PRODUCTION.items() if name.startswith("MOBILITY_OIDC")}
        for changes, expected in (
            ({}, []), ({"MOBILITY_OIDC_ISSUER": "http://127.0.0.1:8080/o"}, []),
            ({"MOBILITY_OIDC_CLIENT_SECRET": ""}, ["signin.E001"]),
            ({"MOBILITY_OIDC_ISSUER": "http://login.example.org"}, ["signin.E002"]),
            ({"MOBILITY_OIDC_GROUPS": {"analysts": "analist"}}, ["signin.E003"]),
            ({"MOBILITY_OIDC_GROUPS_CLAIM": ""}, ["signin.E004"]),
        ):  # fmt: skip
            for name, value in (given | {"MOBILITY_OIDC_GROUPS": {"analysts": "analyst"}} | changes).items():
                setattr(settings, name, value)
            assert [found.id for found in (*checks.provider(), *checks.mapping())] == expected
        assert {checks.provider, checks.mapping} <= set(registry.get_checks())  # asked at every start

    @pytest.mark.django_db
    def test_every_answer_has_the_headers(self, client, analyst):
        client.force_login(analyst)
        pages = ["/", "/sign-in/", "/account/", "/nope/", "/api/v1/studies"]
        for address in (*pages, "/static/img/icon.svg"):
            headers = client.get(address).headers
            assert headers["X-Content-Type-Options"] == "nosniff"
            for name in ("Referrer-Policy", "Cross-Origin-Opener-Policy", "Cross-Origin-Resource-Policy"):
                assert headers[name] == "same-origin"
            assert "camera=()" in headers["Permissions-Policy"]
            if address in pages:  # the other one is a file, and not one that a browser draws as a page
                assert headers["X-Frame-Options"] == "DENY"
                policy = headers["Content-Security-Policy"]
                rules = {"default-src 'self'", "frame-ancestors 'none'", "form-action 'self'"}
                assert rules <= set(policy.split("; "))
                assert not {"unsafe-inline", "unsafe-eval", "*"} & set(policy.replace("'", "").split())

    @pytest.mark.django_db
    def test_cookies_are_for_servers_only(self, client, analyst, password):
        client.get("/sign-in/")
        client.post("/sign-in/", {"username": analyst.username, "password": password})
        for name in (settings.SESSION_COOKIE_NAME, settings.CSRF_COOKIE_NAME):
            assert (client.cookies[name]["httponly"], client.cookies[name]["samesite"]) == (True, "Lax")

    def test_only_programs_are_let_off_the_token_against_forged_requests(self):
        exempt = {}
        for _, pattern in views():
            if getattr(pattern.callback, "csrf_exempt", False):
                exempt.setdefault(pattern.callback.__module__, set()).add(str(pattern.name))
        assert exempt == WITHOUT_CSRF

    @pytest.mark.django_db(databases=["default", "vault"])
    def test_forged_requests_are_refused_at_every_other_address(self, analyst):
        client = Client(enforce_csrf_checks=True)
        client.force_login(analyst)
        tried = 0
        for route, pattern in views():
            if "<" in route or "(" in route or getattr(pattern.callback, "csrf_exempt", False):
                continue  # the middleware asks before the view, for any address
            assert client.post(f"/{route}").status_code == 403, route
            tried += 1
        assert tried > 20

    def test_study_file_names_files_of_its_form_only(self):
        form = NewStudyForm(files={"cells.csv": b"cell_id,lon,lat"})
        assert form.read("cells.csv")
        for name in ("/etc/passwd", "../cells.csv", "./cells.csv", str(ROOT / "manage.py")):
            with pytest.raises(FileNotFoundError):
                form.read(name)
