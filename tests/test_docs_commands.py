"""Every command that a page of the documentation shows is run, or says who runs it, or why nobody does.

The convention is in CONTRIBUTING.md. A page is run as somebody would who follows it: from the folder of the
software, in order, on an installation that has the studies `my-study` (two days of it) and `other-study`.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class

from mobility.demo.extract import write_extract
from tests.docs_pages import LOOKS_LIKE_A_COMMAND, ROOT, SHELLS, Block, Command, blocks, pages
from tests.mobility.data_folder import Folder

DEMO = ROOT / "mobility" / "demo"
FROM_NOTHING = "<!-- commands start from an empty data folder -->"
PATIENCE_S = 240
WITH_COMMANDS = [page for page in pages() if any(block.is_run_here for block in blocks(page))]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


# --- what is said of blocks -----------------------------------------------------------------------


@pytest.mark.parametrize("page", pages(), ids=name)
def test_every_command_is_run_or_says_why_not(page: Path) -> None:
    wrong = []
    for block in blocks(page):
        if not block.language:
            wrong.append(f"{block.where}: name the language of this block (text, if none)")
        elif block.language not in SHELLS:
            if block.language != "markdown" and any(
                LOOKS_LIKE_A_COMMAND.match(line) for line in block.text.splitlines()
            ):
                wrong.append(f"{block.where}: commands belong into a console block")
        elif not block.is_run_here and not is_explained(block):
            wrong.append(f"{block.where}: neither run, nor a mark that tells why not")
        elif block.is_run_here and not block.commands:
            wrong.append(f"{block.where}: no line starts with '$ '")
    assert wrong == []


def is_explained(block: Block) -> bool:
    """Whether a mark gives a reason, or names a test that knows the page."""
    if (test := block.mark("run by")) is not None:
        file = ROOT / test
        return file.is_file() and block.page.name in file.read_text()
    return bool(block.mark("not run:"))


def parsers() -> dict[str, set[str]]:
    """Options by name of the project's commands, and of Django's."""
    return {
        command: {
            option
            for action in load_command_class(app, command).create_parser("manage.py", command)._actions
            for option in action.option_strings
        }
        for command, app in get_commands().items()
    }


def test_every_command_and_option_that_is_named_exists() -> None:
    known = parsers()
    wrong = []
    for page in pages():
        if page.name == "CHANGELOG.md":  # tells of what there was
            continue
        text = re.sub(r"\\\n\s*", " ", page.read_text())
        for command, rest in re.findall(r"manage\.py (\w+)([^`\n|;&]*)", text):
            if command not in known:
                wrong.append(f"{name(page)}: manage.py {command}")
            elif unknown := set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", rest)) - known[command]:
                wrong.append(f"{name(page)}: manage.py {command} {' '.join(sorted(unknown))}")
    assert not wrong, "\n".join(wrong)


# --- running them -----------------------------------------------------------------------------------


class Clone:
    """A folder that looks like a fresh clone of the software, with a data folder of its own in var/."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.left_running: list[subprocess.Popen[str]] = []
        root.mkdir()
        for path in ROOT.iterdir():
            if path.name not in ("var", ".git", ".env", ".venv"):
                (root / path.name).symlink_to(path)
        (root / ".venv").symlink_to(sys.prefix)

    @property
    def environment(self) -> dict[str, str]:
        """The caller's, without anything that tells the software where its data are."""
        told = re.findall(r"^([A-Z][A-Z0-9_]*)=", (ROOT / ".env.example").read_text(), flags=re.MULTILINE)
        kept = {name: value for name, value in os.environ.items() if name not in told}
        own = {"MOBILITY_DATA_DIR": str(self.root / "var"), "DJANGO_SETTINGS_MODULE": "mobility.settings"}
        return kept | own | {"PATH": f"{sys.prefix}/bin:{kept['PATH']}"}

    def _addressed(self, line: str) -> str:
        """The line, with the address at which what was left running serves: its port may be another."""
        log = self.root / "var.log"
        found = re.search(r"http://127\.0\.0\.1:\d+", log.read_text()) if log.exists() else None
        return line.replace("http://127.0.0.1:8000", found[0]) if found else line

    def start(self, command: Command) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            ["bash", "-o", "pipefail", "-c", self._addressed(command.line)],
            cwd=self.root, env=self.environment, text=True, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(self, command: Command, *, exit_code: int = 0) -> None:
        """Run a command to its end: it must exit and print as the page says."""
        process = self.start(command)
        try:
            output, errors = process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        assert process.returncode == exit_code, f"$ {command.line}\n{output}{errors}"
        if command.expected:
            assert command.pattern.fullmatch(output.strip()), f"$ {command.line}\n{output}"

    def keep_running(self, command: Command) -> None:
        """Start what runs until Ctrl-C, and wait until it has said what the page shows."""
        log = self.root / "var.log"
        with log.open("w") as file:
            process = subprocess.Popen(
                ["bash", "-c", command.line], cwd=self.root, env=self.environment, text=True,
                start_new_session=True, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
            )  # fmt: skip
        self.left_running.append(process)
        until = time.monotonic() + PATIENCE_S
        while not command.pattern.search(log.read_text()):
            assert process.poll() is None and time.monotonic() < until, f"$ {command.line}\n{log.read_text()}"
            time.sleep(0.2)

    def stop(self) -> None:
        """Press Ctrl-C in every terminal, and see that nothing stays."""
        for process in self.left_running:
            os.killpg(process.pid, signal.SIGINT)
        for process in self.left_running:
            process.wait(timeout=60)
        Folder(self.root / "var").stop_all()

    def follow(self, page: Path) -> None:
        """Do what a page says: write its files, run its commands."""
        for block in blocks(page):
            if block.title:
                file = self.root / block.title
                file.parent.mkdir(parents=True, exist_ok=True)
                file.unlink(missing_ok=True)
                file.write_text(block.text)
            if not block.is_run_here:
                continue
            *commands, last = block.commands
            for command in commands:
                self.run(command)
            if block.mark("keeps running") is not None:
                self.keep_running(last)
            else:
                self.run(last, exit_code=int(block.mark("exits with") or 0))


def put_files(root: Path, slug: str) -> None:
    """The files that pages speak of: study.toml with what it names, and a day's extract."""
    text = (DEMO / "study.toml").read_text().replace('slug = "fimu-2017"', f'slug = "{slug}"')
    (root / "study.toml").write_text(text)
    for file in ("cells.csv", "zones.geojson"):
        shutil.copy(DEMO / file, root)


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Seven daily files of 1,000 people."""
    folder = tmp_path_factory.mktemp("days")
    write_extract(folder, seed=7, n_subscribers=1_000, is_compressed=True)
    return sorted(folder.glob("*.csv.gz"))


@pytest.fixture(scope="module")
def prepared(days: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with `my-study`, two days of it, and `other-study`; nothing runs in it."""
    clone = Clone(tmp_path_factory.mktemp("prepared") / "clone")
    try:
        for slug in ("other-study", "my-study"):
            put_files(clone.root, slug)
            clone.run(Command(line="python manage.py create_study study.toml"))
        for file in days[:2]:
            clone.run(Command(line=f"python manage.py ingest my-study {file}"))
    finally:
        clone.stop()
    return clone.root / "var"


@pytest.fixture
def clone(tmp_path: Path, days: list[Path]) -> Iterator[Clone]:
    made = Clone(tmp_path / "clone")
    put_files(made.root, "my-study")
    shutil.copy(days[2], made.root / "extract.csv.gz")
    yield made
    made.stop()


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("page", WITH_COMMANDS, ids=name)
def test_commands_of_a_page_do_what_it_says(page: Path, clone: Clone, prepared: Path) -> None:
    if FROM_NOTHING not in page.read_text():
        shutil.copytree(prepared, clone.root / "var", symlinks=True)
    clone.follow(page)
