"""System checks refuse what would leak keys, mix the zones, or can be guessed."""

import pytest
from django.conf import settings
from django.test import override_settings

from mobility.base.environment import Env
from mobility.embedded import checks
from mobility.embedded import checks_secrets as secrets


def ids(messages: list) -> list[str | None]:
    return [message.id for message in messages]


def test_embedded_default_is_fine_and_its_folder_private_and_writable(data_dir, tmp_path) -> None:
    assert checks.folders() + checks.keystore() + checks.databases() == []
    data_dir.chmod(0o755)
    assert ids(checks.folders()) == ["mobility.W001"]
    (tmp_path / "file").touch()
    with override_settings(MOBILITY_DATA_DIR=tmp_path / "file" / "var"):
        assert ids(checks.folders()) == ["mobility.E001"]


def test_keys_must_be_outside_of_the_code() -> None:
    for folder, expected in (("keys", ["mobility.E002"]), ("var/keystore", []), ("../keys-of-mobility", [])):
        with override_settings(MOBILITY_KEYSTORE_DIR=settings.BASE_DIR / folder):
            assert ids(checks.keystore()) == expected, folder


def test_zones_must_not_share_a_database(monkeypatch: pytest.MonkeyPatch) -> None:
    for alias in ("default", "vault"):
        monkeypatch.setitem(settings.DATABASES[alias], "NAME", "mobility")
    assert ids(checks.databases()) == ["mobility.E003"]


# --- secrets -----------------------------------------------------------------------------------------------
GOOD = "kT9vWq2LmX7cRb4Zp8Ns1Fd6Hj3Gy5Ae0UoIxCw"
RANDOM = "9f3c71d2a85be04617cd9283fa5e6b70d41c8e25937af60b"  # fixed: so are the names of tests


def test_a_secret_key_is_long_and_random() -> None:
    with override_settings(SECRET_KEY=GOOD):
        assert secrets.secret_key() == []
    for key in (GOOD[:31], "change-me" + GOOD, "ab" * 20, "django-insecure-" + GOOD):
        with override_settings(SECRET_KEY=key):
            assert ids(secrets.secret_key()) == ["mobility.E010"], key


@pytest.mark.parametrize("password", ["", "north", "Postgres", RANDOM[:11], "abcd" * 6, "North" + RANDOM,
                                      "Password" + RANDOM])  # fmt: skip
@pytest.mark.parametrize("host", ["db.example.org", "10.0.0.7", "127.0.0.1", "[::1]", "/run/postgresql", ""])
def test_databases_of_other_hosts_have_a_password_or_a_certificate(monkeypatch, host, password) -> None:
    own = settings.DATABASES["default"] | {"HOST": host, "USER": "north", "PASSWORD": password}
    monkeypatch.setitem(settings.DATABASES, "default", own)
    is_refused = host in ("db.example.org", "10.0.0.7")
    assert ids(secrets.passwords_of_databases()) == (["mobility.E011"] if is_refused else [])
    for better in ({"PASSWORD": RANDOM}, {"PASSWORD": "", "OPTIONS": {"sslcert": "/x.pem"}}):
        monkeypatch.setitem(settings.DATABASES, "default", own | better)
        assert secrets.passwords_of_databases() == []


@pytest.mark.parametrize(
    ("url", "is_good"),
    [("redis://127.0.0.1:6379/0", True), ("redis://redis:6379/0", False), ("redis://10.0.0.7:6379/0", False),
     ("redis://:redis@redis:6379/0", False), (f"redis://:{RANDOM}@redis:6379/0", True), ("", True)],
)  # fmt: skip
def test_redis_of_other_hosts_has_a_password_or_is_open_on_request(url, is_good) -> None:
    with override_settings(REDIS_URL=url):
        assert ids(secrets.password_of_redis()) == ([] if is_good else ["mobility.E012"])
    is_guessed = ":redis@" in url
    with override_settings(REDIS_URL=url, MOBILITY_ALLOW_OPEN_REDIS=True):
        assert ids(secrets.password_of_redis()) == (["mobility.E012"] if is_guessed else [])


def test_secrets_of_services_are_no_examples() -> None:
    assert secrets.secrets_of_services() == []
    storages = {"staging": {"BACKEND": "", "OPTIONS": {"secret_key": "minioadmin"}}}
    for guessed in (
        {"MOBILITY_METRICS_TOKEN": "a" * 40, "MOBILITY_ALERT_WEBHOOK_SECRET": "abcd" * 9},
        {"MOBILITY_METRICS_TOKEN": "changeme", "MOBILITY_ALERT_WEBHOOK_SECRET": "test"},
        {"MOBILITY_OIDC_CLIENT_SECRET": "secret", "STORAGES": storages},
    ):
        with override_settings(**guessed):
            assert ids(secrets.secrets_of_services()) == ["mobility.E013", "mobility.E013"]


def test_strangers_are_shown_no_code() -> None:
    for changed, is_good in (
        ({"DEBUG": True, "ALLOWED_HOSTS": ["127.0.0.1", "localhost", "[::1]"]}, True),
        ({"DEBUG": True, "ALLOWED_HOSTS": ["reports.example.org"]}, False),
        ({"DEBUG": True, "ALLOWED_HOSTS": ["localhost"], "HTTPS": True}, False),
        ({"DEBUG": False, "ALLOWED_HOSTS": ["reports.example.org"], "HTTPS": True}, True),
    ):
        with override_settings(**changed):
            assert ids(secrets.debugging()) == ([] if is_good else ["mobility.E014"]), changed


def test_a_file_with_a_secret_is_private(tmp_path, monkeypatch) -> None:
    file = tmp_path / "secret"
    file.write_text(GOOD)
    monkeypatch.setenv("SECRET_KEY_FILE", str(file))
    file.chmod(0o640)
    assert ids(secrets.files_of_secrets()) == ["mobility.W002"]
    file.chmod(0o400)
    assert secrets.files_of_secrets() == []


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_secret_in_a_file_is_read_without_its_line_end(tmp_path, monkeypatch, end) -> None:
    monkeypatch.setattr(Env, "ENVIRON", type(Env.ENVIRON)())  # it remembers what it read
    for name in ("SECRET_KEY", "DATABASE_URL", "VAULT_DATABASE_URL", "REDIS_URL"):
        file = tmp_path / name
        file.write_bytes(f"postgres://u:{RANDOM}@db:5432/main{end}".encode())
        monkeypatch.setenv(f"{name}_FILE", str(file))
        assert Env().str(name) == f"postgres://u:{RANDOM}@db:5432/main"
    assert Env().db_url("DATABASE_URL")["NAME"] == "main"
