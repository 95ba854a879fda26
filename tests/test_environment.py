"""`.env.example` explains exactly the variables that the settings read."""

import ast
import os
import pwd
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from mobility.base.environment import Env

SETTINGS_FILE = settings.BASE_DIR / "mobility" / "settings.py"
EXAMPLE_FILE = settings.BASE_DIR / ".env.example"
ROOT = Path(__file__).parents[1]
ACCOUNT = pwd.getpwuid(os.getuid())


def variables_read():
    names = set()
    for call in ast.walk(ast.parse(SETTINGS_FILE.read_text())):
        if isinstance(call, ast.Call) and call.args and isinstance(call.args[0], ast.Constant):
            function = ast.unparse(call.func)
            if function.startswith("env.") or function == "_database":
                names.add(str(call.args[0].value))
    return names


def test_example_lists_every_variable_and_no_other_and_every_number_has_a_least_value():
    compose = "".join(file.read_text() for file in (settings.BASE_DIR / "docker").glob("*.yaml"))
    of_compose = dict(re.findall(r"\$\{(\w+):-([^}]*)\}", compose))  # with their defaults
    listed = re.findall(r"^([A-Z][A-Z0-9_]*)=(.*)$", EXAMPLE_FILE.read_text(), flags=re.MULTILINE)
    assert len(listed) == len(dict(listed))
    read = variables_read()
    assert {"SECRET_KEY", "DATABASE_URL", "VAULT_DATABASE_URL", "REDIS_URL"} <= read
    assert set(dict(listed)) == read | set(of_compose)
    own = {name: value for name, value in of_compose.items() if name not in read}
    assert own.items() <= dict(listed).items()
    assert "WORKER_MEMORY" in own
    assert re.findall(r"env\.(int|float)\b", SETTINGS_FILE.read_text()) == []


def whole():
    return Env().whole("N", default=3, least=1)


def number():
    return Env().number("N", default=5.0, least=0.0)


def choice():
    return Env().choice("N", default="a", among=("a", "b", "c"))


def test_values_are_taken(monkeypatch):
    assert (whole(), number(), choice()) == (3, 5.0, "a")
    for read, text, value in ((whole, "1", 1), (number, "0.5", 0.5), (choice, "c", "c")):
        monkeypatch.setenv("N", text)
        assert read() == value, text


def test_what_means_nothing_is_refused_with_its_name(monkeypatch):
    for read, text, said in (
        (whole, "0", "must be at least 1, got 0"), (whole, "-5", "must be at least 1, got -5"),
        (whole, "1.5", "must be a whole number, got '1.5'"), (whole, "", "must be a whole number, got ''"),
        (number, "-0.5", "must be at least 0.0, got -0.5"), (number, "nan", "must be at least 0.0, got nan"),
        (number, "inf", "must be at least 0.0, got inf"), (number, "5s", "must be a number, got '5s'"),
        (choice, "B", "must be a, b or c, got 'B'"),
    ):  # fmt: skip
        monkeypatch.setenv("N", text)
        with pytest.raises(ImproperlyConfigured, match=f"^N {re.escape(said)}$"):
            pytest.fail(f"{text} was read as {read()}")


def test_a_secret_in_a_file_that_cannot_be_read(monkeypatch, tmp_path):
    file = tmp_path / "secret"
    monkeypatch.setenv("S_FILE", str(file))
    for said in ("No such file or directory", "the file is not UTF-8 text"):
        with pytest.raises(
            ImproperlyConfigured, match=f"^S_FILE must name a readable file, got {file}: {said}"
        ):
            pytest.fail(f"{said}: it was read as {Env().str('S')}")
        file.write_bytes(b"\xff\xfe")


@pytest.fixture
def run(tmp_path):
    (tmp_path / "docker").mkdir()
    shutil.copy(ROOT / "docker" / "manage.sh", tmp_path / "docker")
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\nshift\nprintenv ${PRINT:-VALUE}\n")
    python.chmod(0o755)

    def run(text, **environment):
        (tmp_path / "settings").write_text(text)
        told = {"MOBILITY_SETTINGS": str(tmp_path / "settings"), "MOBILITY_ACCOUNT": ACCOUNT.pw_name}
        words = [str(tmp_path / "docker" / "manage.sh"), "check"]
        environment = {"PATH": os.environ["PATH"]} | told | environment
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
        assert not (tmp_path / "run").exists()
        return done

    return run


def test_values_are_taken_as_they_stand(run):
    for line, expected in (
        ("VALUE=plain", "plain"),
        ("# a comment\n\nVALUE=two words; and $HOME", "two words; and $HOME"),
        ("VALUE=$(touch run)`touch run`", "$(touch run)`touch run`"),
        ('VALUE="in quotes"', "in quotes"),
        ("  VALUE=a=b  ", "a=b"),
    ):
        done = run(line)
        assert (done.returncode, done.stdout) == (0, f"{expected}\n"), done.stderr


@pytest.mark.parametrize("line", ["touch run", "VALUE=it's secret-word", "A B=secret-word", "VALUE=a\\"])
def test_a_line_that_systemd_may_read_otherwise_is_refused(run, line):
    done = run(line)
    assert (done.returncode, "line 1" in done.stderr, "secret-word" in done.stderr) == (2, True, False)


def test_the_home_folder_is_that_of_the_account(run):
    assert run("PRINT=HOME", HOME="/nowhere").stdout.strip() == ACCOUNT.pw_dir


def made(folder, **variables):
    words = ["sh", "-c", f"umask 077; {ROOT}/docker/make_secrets.sh operator {folder}/etc/secrets"]
    subprocess.run(words, env={"PATH": os.environ["PATH"]} | variables, check=True)
    return {file.name: file.read_text() for file in (folder / "etc" / "secrets").iterdir()}


def test_secrets_are_for_the_service_only_fit_each_other_and_a_vault_elsewhere_is_spoken_to_by_tls(tmp_path):
    found = made(tmp_path)
    assert (tmp_path / "etc").stat().st_mode & 0o777 == 0o755  # the service passes it
    assert (tmp_path / "etc" / "secrets").stat().st_mode & 0o777 == 0o700
    first, *others = found["redis.conf"].splitlines()
    assert others == ['save ""', "appendonly no"]  # it keeps nothing
    assert found["redis_url"] == f"redis://:{first.removeprefix('requirepass ')}@redis:6379/0\n"
    assert made(tmp_path) == found
    found = made(tmp_path / "elsewhere", VAULT_HOST="vault:1", VAULT_AUTHORITY="/etc/authority.pem")
    tls = "sslmode=verify-full&sslrootcert=/etc/authority.pem"
    assert found["vault_url"].endswith(f"@vault:1/mobility?{tls}\n")
    assert found["main_url"].endswith("@main:5432/mobility\n")
