"""Many commands of an installation in one process: each runs as `manage.py` runs it, and starts no Python."""

import json
import multiprocessing
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.e2e.forked import LIBRARIES, run_all

ROOT = Path(__file__).parents[2]
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload([*LIBRARIES])
LONGEST_S = 300


class Outcome(NamedTuple):
    code: int
    output: str
    errors: str


def outcomes(commands, environment, *, code=ROOT) -> list[Outcome]:
    answer, theirs = FORKS.Pipe(duplex=False)
    given = [*commands], dict(environment), str(code), theirs
    process = FORKS.Process(target=run_all, args=given)
    process.start()
    theirs.close()
    try:
        assert answer.poll(LONGEST_S), f"no end within {LONGEST_S} s: {commands}"
        return [Outcome(*each) for each in answer.recv()]
    except EOFError:
        pytest.fail(f"the process of these commands has died: {commands}")
    finally:
        process.kill()
        process.join()


def texts(commands, environment, *, code=ROOT) -> list[str]:
    ended = outcomes(commands, environment, code=code)
    for words, each in zip(commands, ended, strict=True):
        assert each.code == 0, (words, each.errors)
    return [each.output for each in ended]


def values(commands, environment, *, code=ROOT) -> list[Any]:
    return [json.loads(text) for text in texts(commands, environment, code=code)]


def put_databases(migrated, folder):
    """Give a data folder databases that its first command would need seconds to make; the folder."""
    folder.mkdir(mode=0o700, exist_ok=True)
    for file in migrated.glob("*.sqlite3"):
        shutil.copy(file, folder)
    return folder


def code_of(commit, folder):
    known = subprocess.run(["git", "cat-file", "-e", f"{commit}^{{commit}}"], cwd=ROOT, check=False)
    if known.returncode != 0:
        pytest.skip(f"commit {commit[:12]} is not in this clone: `git fetch --unshallow`")
    folder.mkdir(parents=True)
    with subprocess.Popen(["git", "archive", commit], cwd=ROOT, stdout=subprocess.PIPE) as archive:
        subprocess.run(["tar", "--extract", "--directory", folder], stdin=archive.stdout, check=True)
    assert archive.returncode == 0
    return folder
