"""docker/manage.sh reads settings and runs nothing that is in them."""

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
    (programs / "python").write_text("#!/bin/sh\nshift\nprintenv VALUE\n")
    (programs / "python").chmod(0o755)
    return tmp_path


def run(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    (folder / "settings").write_text(text)
    own = {
        "MOBILITY_SETTINGS": str(folder / "settings"),
        "MOBILITY_ACCOUNT": pwd.getpwuid(os.getuid()).pw_name,
    }
    words = [str(folder / "docker" / "manage.sh"), "check"]
    return subprocess.run(
        words, env={"PATH": os.environ["PATH"]} | own, capture_output=True, text=True, check=False
    )


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
