"""docker/manage.sh reads settings and runs nothing that is in them; docker/make_secrets.sh makes secrets."""

import os
import pwd
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The script beside a `manage.py` that prints one variable: real shell, no Django."""
    (tmp_path / "docker").mkdir()
    shutil.copy(ROOT / "docker" / "manage.sh", tmp_path / "docker")
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    (programs / "python").write_text("#!/bin/sh\nshift\nprintenv ${PRINT:-VALUE}\n")
    (programs / "python").chmod(0o755)
    return tmp_path


def run(folder: Path, text: str, **environment: str) -> subprocess.CompletedProcess[str]:
    (folder / "settings").write_text(text)
    own = {
        "MOBILITY_SETTINGS": str(folder / "settings"),
        "MOBILITY_ACCOUNT": pwd.getpwuid(os.getuid()).pw_name,
    }
    words = [str(folder / "docker" / "manage.sh"), "check"]
    environment = {"PATH": os.environ["PATH"]} | own | environment
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("VALUE=plain", "plain"),
        ("# a comment\n\nVALUE=two words; and $HOME", "two words; and $HOME"),
        ("VALUE=$(touch run)`touch run`", "$(touch run)`touch run`"),
        ('VALUE="in quotes"', "in quotes"),
        ("  VALUE=a=b  ", "a=b"),
    ],
)
def test_values_are_taken_as_they_stand(installed: Path, line: str, expected: str) -> None:
    done = run(installed, line)
    assert (done.returncode, done.stdout) == (0, f"{expected}\n"), done.stderr
    assert not (installed / "run").exists()


@pytest.mark.parametrize("line", ["touch run", "VALUE=it's secret-word", "A B=secret-word", "VALUE=a\\"])
def test_a_line_that_systemd_may_read_otherwise_is_refused(installed: Path, line: str) -> None:
    done = run(installed, line)
    assert done.returncode == 2
    assert "line 1" in done.stderr
    assert "secret-word" not in done.stderr
    assert not (installed / "run").exists()


def test_the_home_folder_is_that_of_the_account(installed: Path) -> None:
    """Root's is closed to the service: libpq would fail there, or go on without TLS."""
    done = run(installed, "PRINT=HOME", HOME="/nowhere")
    assert done.stdout.strip() == pwd.getpwuid(os.getuid()).pw_dir


# --- secrets ------------------------------------------------------------------------------------------


def made(folder: Path, **variables: str) -> dict[str, str]:
    """Secrets of an operator zone, by file."""
    own = {"PATH": os.environ["PATH"]} | variables
    words = ["sh", "-c", f"umask 077; {ROOT}/docker/make_secrets.sh operator {folder}/etc/secrets"]
    subprocess.run(words, env=own, check=True)
    return {file.name: file.read_text() for file in (folder / "etc" / "secrets").iterdir()}


def test_the_service_passes_the_folder_above_its_secrets(tmp_path: Path) -> None:
    made(tmp_path)
    assert (tmp_path / "etc").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "etc" / "secrets").stat().st_mode & 0o777 == 0o700


def test_a_vault_elsewhere_is_spoken_to_by_tls(tmp_path: Path) -> None:
    found = made(tmp_path, VAULT_HOST="vault:1", VAULT_AUTHORITY="/etc/authority.pem")
    assert found["vault_url"].endswith(
        "@vault:1/mobility?sslmode=verify-full&sslrootcert=/etc/authority.pem\n"
    )
    assert found["main_url"].endswith("@main:5432/mobility\n")


def test_the_broker_keeps_nothing_and_has_the_password_of_its_address(tmp_path: Path) -> None:
    found = made(tmp_path)
    first, *others = found["redis.conf"].splitlines()
    assert others == ['save ""', "appendonly no"]
    assert found["redis_url"] == f"redis://:{first.removeprefix('requirepass ')}@redis:6379/0\n"
    assert made(tmp_path) == found
