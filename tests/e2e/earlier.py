"""Earlier releases: their code out of the history, and many commands in one process of theirs."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.installation import ROOT, Installation, Worker

RELEASES: list[dict[str, str]] = json.loads((ROOT / "docs" / "releases.json").read_text())["releases"]
SEVERAL = """
import contextlib, io, json, sys, django
django.setup()
from django.core.management import call_command
answers = []
for words in json.load(sys.stdin):
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        call_command(*words)
    answers.append(output.getvalue())
json.dump(answers, sys.stdout)
"""


class CommitMissingError(Exception):
    """The history at hand does not reach back to a release."""


def code_of(commit: str, folder: Path) -> Path:
    """The files of a commit, in `folder`.

    Raises
    ------
    CommitMissingError : the clone is shallow
    """
    known = subprocess.run(
        ["git", "cat-file", "-e", f"{commit}^{{commit}}"], cwd=ROOT, capture_output=True, check=False
    )
    if known.returncode != 0:
        raise CommitMissingError(f"commit {commit[:12]} is not in this clone: `git fetch --unshallow`")
    folder.mkdir(parents=True)
    with subprocess.Popen(["git", "archive", commit], cwd=ROOT, stdout=subprocess.PIPE) as archive:
        subprocess.run(["tar", "--extract", "--directory", folder], stdin=archive.stdout, check=True)
    assert archive.returncode == 0
    return folder


class Upgraded(Installation):
    """An installation that begins with the code of an earlier release, and goes on with today's."""

    def several(self, *commands: tuple[str, ...]) -> list[str]:
        """What each of these commands prints, in one process; all must succeed."""
        done = subprocess.run(
            [sys.executable, "-c", SEVERAL], input=json.dumps(commands), cwd=self.code,
            env=self.environment, capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        answers: list[str] = json.loads(done.stdout)
        return answers

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """One command, whatever comes of it."""
        with self.command(*words) as process:
            output, errors = process.communicate(timeout=300)
        return subprocess.CompletedProcess(words, process.returncode, output, errors)

    def python(self, text: str) -> tuple[str, ...]:
        """The command that runs a few lines."""
        return ("shell", "--no-imports", "--command", text)

    def upgrade(self) -> None:
        """As docs/upgrading.md says: stop, new code, migrate both databases, static files, start."""
        self.workers[0].stop()
        self.code = ROOT
        for alias in ("default", "vault"):
            migrated = self.run("migrate", "--database", alias, "--verbosity", "0")
            assert migrated.returncode == 0, migrated.stderr
        collected = self.run("collectstatic", "--no-input", "--verbosity", "0")
        assert collected.returncode == 0, collected.stderr
        folder = self.workers[0].log.parent
        self.workers = [Worker(1, processes=1, environment=self.environment, folder=folder, code=ROOT)]
        self.workers[0].start()

    def values(self, *commands: tuple[str, ...]) -> list[Any]:
        """JSON values that these commands print."""
        return [json.loads(text) for text in self.several(*commands)]
