"""Secrets that can be guessed stop a start; files of secrets are private, and read without their line end."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings

from mobility import checks_secrets as checks
from mobility.environment import Env
from mobility.startup import EXIT_CODE
from scripts import services

ROOT = Path(__file__).parents[2]
GOOD = "kT9vWq2LmX7cRb4Zp8Ns1Fd6Hj3Gy5Ae0UoIxCw"
RANDOM = "9f3c71d2a85be04617cd9283fa5e6b70d41c8e25937af60b"  # fixed: so are the names of tests


def ids(messages: list[checks.CheckMessage]) -> list[str | None]:
    return [message.id for message in messages]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (GOOD, []),
        (GOOD[:31], ["mobility.E010"]),
        ("change-me" + GOOD, ["mobility.E010"]),
        ("ab" * 20, ["mobility.E010"]),
        ("django-insecure-" + GOOD, ["mobility.E010"]),
    ],
)
def test_a_secret_key_is_long_and_random(key: str, expected: list[str]) -> None:
    with override_settings(SECRET_KEY=key):
        assert ids(checks.secret_key()) == expected


@pytest.mark.parametrize(
    ("host", "user", "password", "expected"),
    [
        ("db.example.org", "mobility", RANDOM, []),
        ("db.example.org", "mobility", "", ["mobility.E011"]),
        ("10.0.0.7", "north", "north", ["mobility.E011"]),
        ("10.0.0.7", "north", "Postgres", ["mobility.E011"]),
        ("10.0.0.7", "north", RANDOM[:11], ["mobility.E011"]),
        ("10.0.0.7", "north", "abcd" * 6, ["mobility.E011"]),
        ("10.0.0.7", "north", "North" + RANDOM, ["mobility.E011"]),
        ("10.0.0.7", "north", "Password" + RANDOM, ["mobility.E011"]),
        ("127.0.0.1", "north", "", []),
        ("[::1]", "north", "", []),
        ("/run/postgresql", "north", "", []),
        ("", "", "", []),
    ],
)
def test_databases_of_other_hosts_have_a_password(
    monkeypatch: pytest.MonkeyPatch, host: str, user: str, password: str, expected: list[str]
) -> None:
    own = {"HOST": host, "USER": user, "PASSWORD": password}
    monkeypatch.setitem(settings.DATABASES, "default", settings.DATABASES["default"] | own)
    assert ids(checks.passwords_of_databases()) == expected


def test_a_certificate_stands_for_a_password(monkeypatch: pytest.MonkeyPatch) -> None:
    own = {"HOST": "db.example.org", "USER": "north", "PASSWORD": "", "OPTIONS": {"sslcert": "/x.pem"}}
    monkeypatch.setitem(settings.DATABASES, "default", settings.DATABASES["default"] | own)
    assert checks.passwords_of_databases() == []


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis://127.0.0.1:6379/0", []),
        ("redis://redis:6379/0", ["mobility.E012"]),
        ("redis://10.0.0.7:6379/0", ["mobility.E012"]),
        ("redis://:redis@redis:6379/0", ["mobility.E012"]),
        (f"redis://:{RANDOM}@redis:6379/0", []),
        ("", []),
    ],
)
def test_redis_of_other_hosts_has_a_password(url: str, expected: list[str]) -> None:
    with override_settings(REDIS_URL=url):
        assert ids(checks.password_of_redis()) == expected


def test_an_open_redis_must_be_asked_for() -> None:
    with override_settings(REDIS_URL="redis://redis:6379/0", MOBILITY_ALLOW_OPEN_REDIS=True):
        assert checks.password_of_redis() == []
    with override_settings(REDIS_URL="redis://:redis@redis:6379/0", MOBILITY_ALLOW_OPEN_REDIS=True):
        assert ids(checks.password_of_redis()) == ["mobility.E012"]


def test_secrets_of_services_are_no_examples() -> None:
    with override_settings(MOBILITY_METRICS_TOKEN="a" * 40, MOBILITY_ALERT_WEBHOOK_SECRET="abcd" * 9):
        assert ids(checks.secrets_of_services()) == ["mobility.E013", "mobility.E013"]
    staging = {"BACKEND": "", "OPTIONS": {"secret_key": "minioadmin"}}
    with override_settings(MOBILITY_OIDC_CLIENT_SECRET="secret", STORAGES={"staging": staging}):
        assert ids(checks.secrets_of_services()) == ["mobility.E013", "mobility.E013"]
    with override_settings(MOBILITY_METRICS_TOKEN="changeme", MOBILITY_ALERT_WEBHOOK_SECRET="test"):
        assert ids(checks.secrets_of_services()) == ["mobility.E013", "mobility.E013"]
    assert checks.secrets_of_services() == []


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"DEBUG": True, "ALLOWED_HOSTS": ["127.0.0.1", "localhost", "[::1]"]}, []),
        ({"DEBUG": True, "ALLOWED_HOSTS": ["reports.example.org"]}, ["mobility.E014"]),
        ({"DEBUG": True, "ALLOWED_HOSTS": ["localhost"], "HTTPS": True}, ["mobility.E014"]),
        ({"DEBUG": False, "ALLOWED_HOSTS": ["reports.example.org"], "HTTPS": True}, []),
    ],
)
def test_strangers_are_shown_no_code(changed: dict[str, Any], expected: list[str]) -> None:
    with override_settings(**changed):
        assert ids(checks.debugging()) == expected


def test_a_file_with_a_secret_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "secret"
    file.write_text(GOOD)
    monkeypatch.setenv("SECRET_KEY_FILE", str(file))
    file.chmod(0o640)
    assert ids(checks.files_of_secrets()) == ["mobility.W002"]
    file.chmod(0o400)
    assert checks.files_of_secrets() == []


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_secret_in_a_file_is_read_without_its_line_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    monkeypatch.setattr(Env, "ENVIRON", type(Env.ENVIRON)())  # it remembers what it read
    for name in ("SECRET_KEY", "DATABASE_URL", "VAULT_DATABASE_URL", "REDIS_URL"):
        file = tmp_path / name
        file.write_bytes(f"postgres://u:{RANDOM}@db:5432/main{end}".encode())
        monkeypatch.setenv(f"{name}_FILE", str(file))
        assert Env().str(name) == f"postgres://u:{RANDOM}@db:5432/main"
    assert Env().db_url("DATABASE_URL")["NAME"] == "main"


PROGRAMS = {
    "web": ["gunicorn", "mobility.wsgi", "--bind", "127.0.0.1:{port}", "--no-control-socket"],
    "worker": ["celery", "-A", "mobility", "worker", "--pool", "solo"],
}


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_neither_web_server_nor_worker_starts_with_a_secret_of_examples(data_dir: Path, program: str) -> None:
    own = {"MOBILITY_DATA_DIR": str(data_dir), "SECRET_KEY": "change-me-" + GOOD, "PATH": ""}
    words = [word.format(port=services.free_port()) for word in PROGRAMS[program]]
    process = subprocess.Popen(
        [sys.executable, "-m", *words], cwd=ROOT, env=own, text=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    try:
        _, errors = process.communicate(timeout=90)
    finally:
        process.send_signal(signal.SIGKILL)
    assert process.returncode == EXIT_CODE, errors
    assert "refusing to start" in errors
    assert "mobility.E010" in errors
    assert GOOD not in errors
