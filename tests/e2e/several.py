"""Many commands of an installation in one process: each runs as `manage.py` runs it, and starts no Python."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
RUN_ALL = """
import contextlib, io, json, sys, traceback
sys.path.insert(0, "")
import manage
outcomes = []
for words in json.load(sys.stdin):
    sys.argv = ["manage.py", *words]
    code, output, errors = 0, io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        try:
            manage.main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
            errors.write("" if isinstance(end.code, int) else str(end.code))
        except Exception:
            code = 1
            traceback.print_exc()
    outcomes.append((code, output.getvalue(), errors.getvalue()))
json.dump(outcomes, sys.stdout)
"""


class Outcome(NamedTuple):
    code: int
    output: str
    errors: str


def outcomes(commands, environment, *, code=ROOT) -> list[Outcome]:
    done = subprocess.run(
        [sys.executable, "-c", RUN_ALL], input=json.dumps(commands), cwd=code, env=dict(environment),
        capture_output=True, text=True, check=False, timeout=300
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [Outcome(*each) for each in json.loads(done.stdout)]


def texts(commands, environment, *, code=ROOT) -> list[str]:
    """What each of these commands prints; all must succeed."""
    ended = outcomes(commands, environment, code=code)
    for words, each in zip(commands, ended, strict=True):
        assert each.code == 0, (words, each.errors)
    return [each.output for each in ended]


def values(commands, environment, *, code=ROOT) -> list[Any]:
    return [json.loads(text) for text in texts(commands, environment, code=code)]


def code_of(commit, folder):
    known = subprocess.run(["git", "cat-file", "-e", f"{commit}^{{commit}}"], cwd=ROOT, check=False)
    if known.returncode != 0:
        pytest.skip(f"commit {commit[:12]} is not in this clone: `git fetch --unshallow`")
    folder.mkdir(parents=True)
    with subprocess.Popen(["git", "archive", commit], cwd=ROOT, stdout=subprocess.PIPE) as archive:
        subprocess.run(["tar", "--extract", "--directory", folder], stdin=archive.stdout, check=True)
    assert archive.returncode == 0
    return folder
