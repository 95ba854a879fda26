"""A real OpenID provider as its own process, for tests of sign-in: Django OAuth Toolkit.

`python -m tests.openid_provider FOLDER REDIRECT_ADDRESS...` serves on a free port and prints its issuer.
It wants PKCE. People sign in with their name as password; some belong to groups.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

ROOT = Path(__file__).parents[1]
CLIENT_ID, CLIENT_SECRET = "mobility-reports", "a secret of the client, 7Qx"
# Name, e-mail address, groups.
PEOPLE = [
    ("ada", "ada@example.org", ["staff", "analysts"]),
    ("anna", "anna@example.org", ["staff"]),
    ("olga", "olga@example.org", ["staff", "ops"]),
]
LOGIN = "<h1>Provider</h1><form method='post'>{% csrf_token %}{{ form.as_p }}<button>Log in</button></form>"
CONSENT = """<h1>Allow it?</h1><form method="post">{% csrf_token %}
{% for field in form %}{{ field.as_hidden }}{% endfor %}
<button name="cancel" value="Cancel" type="submit">Cancel</button>
<button name="allow" value="Authorize" type="submit">Authorize</button></form>"""


@dataclass(frozen=True, kw_only=True)
class Provider:
    issuer: str
    process: "subprocess.Popen[str]"

    @property
    def variables(self) -> dict[str, str]:
        own = {"MOBILITY_OIDC_CLIENT_ID": CLIENT_ID, "MOBILITY_OIDC_CLIENT_SECRET": CLIENT_SECRET}
        return own | {"MOBILITY_OIDC_ISSUER": self.issuer}


@contextmanager
def openid_provider(folder: Path, *redirect_addresses: str) -> Iterator[Provider]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.openid_provider", str(folder), *redirect_addresses],
        cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=(folder / "provider.log").open("w"),
    )  # fmt: skip
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, (folder / "provider.log").read_text()
        yield Provider(issuer=json.loads(line)["issuer"], process=process)
    finally:
        process.terminate()
        process.wait(timeout=30)


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Quiet(WSGIRequestHandler):
    log_message = staticmethod(lambda *_: None)


def _configure(folder: Path, issuer: str) -> None:
    from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
    from django.conf import settings

    made = generate_private_key(public_exponent=65537, key_size=2048)
    key = made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    pages = {"in.html": LOGIN, "oauth2_provider/authorize.html": CONSENT}
    loader = ("django.template.loaders.locmem.Loader", pages)
    settings.configure(
        SECRET_KEY="of the provider",
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],  # of tests: fast
        ALLOWED_HOSTS=["127.0.0.1", "localhost"],
        ROOT_URLCONF="tests.openid_provider",
        USE_TZ=True,
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": folder / "provider.sqlite3"}},
        INSTALLED_APPS=[
            *(f"django.contrib.{app}" for app in ("auth", "contenttypes", "sessions")), "oauth2_provider",
        ],
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.middleware.csrf.CsrfViewMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
        ],
        TEMPLATES=[
            {"BACKEND": "django.template.backends.django.DjangoTemplates", "OPTIONS": {"loaders": [loader]}}
        ],
        SESSION_COOKIE_NAME="provider_session",
        CSRF_COOKIE_NAME="provider_csrf",
        LOGIN_URL="/log-in/",
        OAUTH2_PROVIDER={
            "OIDC_ENABLED": True,
            "OIDC_ISS_ENDPOINT": issuer,  # under any name in the request
            "OIDC_RSA_PRIVATE_KEY": key.decode(),
            "OAUTH2_VALIDATOR_CLASS": "tests.openid_provider.validator",
            "SCOPES": {"openid": "identity", "profile": "name", "groups": "groups"},
            "PKCE_REQUIRED": True,
            "COMPLIANT_BCP_RFC9700_PKCE_METHOD": True,
        },
    )  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "urlpatterns":
        from django.contrib.auth.views import LoginView
        from django.http import HttpResponse
        from django.urls import include, path

        login = LoginView.as_view(template_name="in.html")
        icon = path("favicon.ico", lambda _: HttpResponse(status=204))
        return [path("log-in/", login), icon, path("o/", include("oauth2_provider.urls"))]
    if name == "validator":
        from oauth2_provider.oauth2_validators import OAuth2Validator

        class Validator(OAuth2Validator):
            oidc_claim_scope = None

            def get_additional_claims(self, request: Any) -> dict[str, Any]:
                user = request.user
                return {
                    "preferred_username": user.username, "name": user.username.title(),
                    "email": user.email, "email_verified": True,
                    "groups": list(user.groups.values_list("name", flat=True)),
                }  # fmt: skip

        return Validator
    raise AttributeError(name)


def _fill(redirect_addresses: list[str]) -> None:
    from django.contrib.auth.models import Group, User
    from django.core.management import call_command
    from oauth2_provider.models import get_application_model

    call_command("migrate", verbosity=0)
    for name, address, groups in PEOPLE:
        user = User.objects.create_user(name, address, name)
        user.groups.set([Group.objects.get_or_create(name=group)[0] for group in groups])
    get_application_model().objects.create(
        client_id=CLIENT_ID, client_secret=CLIENT_SECRET, client_type="confidential", algorithm="RS256",
        authorization_grant_type="authorization-code", redirect_uris=" ".join(redirect_addresses),
    )  # fmt: skip


def main(folder: Path, redirect_addresses: list[str]) -> None:
    import django
    from django.core.wsgi import get_wsgi_application

    server = _Server(("127.0.0.1", 0), _Quiet)
    issuer = f"http://127.0.0.1:{server.server_port}/o"
    _configure(folder, issuer)
    django.setup()
    _fill(redirect_addresses)
    server.set_app(get_wsgi_application())
    sys.stdout.write(json.dumps({"issuer": issuer}) + "\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    sys.modules["tests.openid_provider"] = sys.modules["__main__"]
    main(Path(sys.argv[1]), sys.argv[2:])
