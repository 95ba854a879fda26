"""The documentation is complete, asks no other host for anything, and every command that it shows is run.

CONTRIBUTING.md has the convention. A page is run as someone would who follows it: from the folder of the
software, in order, on an installation that has the studies `my-study` (two days of it) and `other-study`.
"""

import ast
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, nullcontext
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from django.core.management import get_commands, load_command_class

from mobility.demo.extract import write_extract
from scripts import docs
from tests import demo_study
from tests.docs_pages import LOOKS_LIKE_A_COMMAND, ROOT, SHELLS, Command, blocks, pages
from tests.mobility.data_folder import Folder

FROM_NOTHING = "<!-- commands start from an empty data folder -->"
PATIENCE_S = 240
WITH_COMMANDS = [page for page in pages() if any(block.is_run_here for block in blocks(page))]
# A process that has loaded the software once, and becomes a command of manage.py when it is asked to.
LOADED = """
import json, os, runpy, socket, sys
import django
django.setup()
from django.core.management import get_commands, load_command_class
from django.urls import get_resolver
for name, app in get_commands().items():
    load_command_class(app, name)
get_resolver().url_patterns
with socket.socket(socket.AF_UNIX) as listener:
    listener.bind(sys.argv[1] + ".new")
    listener.listen()
    os.rename(sys.argv[1] + ".new", sys.argv[1])
    while True:
        asking, _ = listener.accept()
        arguments, files, _, _ = socket.recv_fds(asking, 1 << 16, 3)
        child = os.fork()
        if not child:
            break
        for file in files:
            os.close(file)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        asking.sendall(str(code).encode())
        asking.close()
asking.close()
for number, file in enumerate(files):
    os.dup2(file, number)
    os.close(file)
folder, *sys.argv = json.loads(arguments)
os.chdir(folder)
runpy.run_path(sys.argv[0], run_name="__main__")
"""
# `.venv/bin/python` of a clone: asks that process with own input, output and exit code, while it is there.
# Programs that run until Ctrl-C must be in the session of their terminal.
PYTHON = """#!{python} -IS
import os, socket, sys
if sys.argv[1] != "manage.py" or sys.argv[2] in ("run", "demo") or not os.path.exists("{address}"):
    os.execv("{python}", ["{python}", *sys.argv[1:]])
import json
with socket.socket(socket.AF_UNIX) as asked:
    asked.connect("{address}")
    socket.send_fds(asked, [json.dumps([os.getcwd(), *sys.argv[1:]]).encode()], [0, 1, 2])
    sys.exit(int(asked.recv(16)))
"""
PREPARE = """
from django.core.management import call_command
from mobility.embedded.shared import workers
with workers():
    for study in ("other-study", "my-study"):
        call_command("create_study", study + ".toml")
    for day in {days}:
        call_command("ingest", "my-study", day)
"""


def name(page):
    return str(page.relative_to(ROOT))


def test_every_command_is_run_or_says_why_not():
    fences = [
        fence for page in pages() for fence in re.findall(r"^ *```(?:console|sh)$", page.read_text(), re.M)
    ]
    shown = [block for page in pages() for block in blocks(page) if block.language in ("console", "sh")]
    assert len(shown) == len(fences) - 1  # CONTRIBUTING.md shows one in a block of text
    wrong = []
    for block in (block for page in pages() for block in blocks(page)):
        if not block.language:
            wrong.append(f"{block.where}: name the language of this block (text, if none)")
        elif block.language not in SHELLS:
            lines = [] if block.language == "markdown" else block.text.splitlines()
            if any(LOOKS_LIKE_A_COMMAND.match(line) for line in lines):
                wrong.append(f"{block.where}: commands belong into a console block")
        elif not block.is_run_here and not is_explained(block):
            wrong.append(f"{block.where}: neither run, nor a mark that tells why not")
        elif block.is_run_here and not block.commands:
            wrong.append(f"{block.where}: no line starts with '$ '")
    assert wrong == []


def is_explained(block):
    if block.mark("run by") is not None:
        file = ROOT / block.run_by[0]
        return file.is_file() and block.page.name in file.read_text()
    return bool(block.mark("not run:"))


def parsers():
    found = {}
    for command, app in get_commands().items():
        actions = load_command_class(app, command).create_parser("manage.py", command)._actions
        found[command] = {option for action in actions for option in action.option_strings}
    return found


def test_every_command_and_option_that_is_named_exists():
    known, wrong = parsers(), []
    for page in pages():
        if page.name == "CHANGELOG.md":  # describes the past
            continue
        text = re.sub(r"\\\n\s*", " ", page.read_text())
        for command, rest in re.findall(r"manage\.py (\w+)([^`\n|;&]*)", text):
            if command not in known:
                wrong.append(f"{name(page)}: manage.py {command}")
            elif unknown := set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", rest)) - known[command]:
                wrong.append(f"{name(page)}: manage.py {command} {' '.join(sorted(unknown))}")
    assert not wrong, "\n".join(wrong)


class Clone:
    def __init__(self, root):
        self.root = root
        self.left_running: list[subprocess.Popen[str]] = []
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()
        for path in ROOT.iterdir():
            if path.name not in ("var", ".git", ".env", ".venv"):
                (root / path.name).symlink_to(path)
        self.address = root.parent / "loaded"
        python = root / ".venv" / "bin" / "python"
        python.parent.mkdir(parents=True)
        (root / ".venv" / ".installed").symlink_to(Path(sys.prefix) / ".installed")
        python.write_text(PYTHON.format(python=sys.executable, address=self.address))
        python.chmod(0o700)

    @contextmanager
    def loaded(self):
        with subprocess.Popen(
            [sys.executable, "-c", LOADED, str(self.address)],
            cwd=self.root, env=self.environment, stdin=subprocess.DEVNULL, start_new_session=True,
        ) as process:  # fmt: skip
            until = time.monotonic() + PATIENCE_S
            while not self.address.exists():
                assert process.poll() is None and time.monotonic() < until
                time.sleep(0.05)
            yield
            self.address.unlink()
            process.kill()

    @property
    def environment(self) -> dict[str, str]:
        told = re.findall(r"^([A-Z][A-Z0-9_]*)=", (ROOT / ".env.example").read_text(), flags=re.MULTILINE)
        kept = {name: value for name, value in os.environ.items() if name not in told}
        own = {"MOBILITY_DATA_DIR": str(self.root / "var"), "DJANGO_SETTINGS_MODULE": "mobility.settings"}
        return kept | own | {"PATH": f"{self.root}/.venv/bin:{sys.prefix}/bin:{kept['PATH']}"}

    def _addressed(self, line: str) -> str:
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
        for process in self.left_running:
            os.killpg(process.pid, signal.SIGINT)
        for process in self.left_running:
            process.wait(timeout=60)
        Folder(self.root / "var").stop_all()

    def follow(self, page):
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


@pytest.fixture(scope="module")
def days(tmp_path_factory):
    folder = tmp_path_factory.mktemp("days")
    write_extract(folder, seed=7, n_subscribers=1_000, is_compressed=True)
    return sorted(folder.glob("*.csv.gz"))


@pytest.fixture(scope="module")
def prepared(days, tmp_path_factory):
    clone = Clone(tmp_path_factory.mktemp("pages") / "clone")
    try:
        for slug in ("other-study", "my-study"):
            demo_study.write_study(clone.root, slug=slug).rename(clone.root / f"{slug}.toml")
        code = PREPARE.format(days=[str(day) for day in days[:2]])
        clone.run(Command(line=f"python manage.py shell --no-imports -c {shlex.quote(code)}"))
    finally:
        clone.stop()
    kept = clone.root.with_name("prepared")
    shutil.copytree(clone.root / "var", kept, symlinks=True)
    with clone.loaded():
        yield kept


@pytest.mark.long
@pytest.mark.parametrize("page", WITH_COMMANDS, ids=name)
def test_commands_of_a_page_do_what_it_says(page, prepared, days, tmp_path):
    text, is_held = page.read_text(), False
    # Settings have read secrets of the data folder: what makes or restores one must read them itself.
    has_own_secrets = FROM_NOTHING in text or "manage.py restore " in text
    clone = Clone((tmp_path if has_own_secrets else prepared.parent) / "clone")
    demo_study.write_study(clone.root, slug="my-study")
    shutil.copy(days[2], clone.root / "extract.csv.gz")
    if FROM_NOTHING not in text:
        shutil.copytree(prepared, clone.root / "var", symlinks=True)
        is_held = len(re.findall(r"\$ \S+ manage\.py (?:ingest|close_days|void_day)", text)) > 2
    try:
        # One worker for many commands: each would start its own.
        with Folder(clone.root / "var").holding() if is_held else nullcontext():
            clone.follow(page)
    finally:
        clone.stop()


def test_a_mark_must_give_a_reason_or_a_test_that_knows_the_page(tmp_path):
    page = tmp_path / "page.md"
    for mark, is_enough in (
        ("not run: needs a container engine", True), ("not run:", False),
        ("run by tests/test_docs_commands.py on north", True),  # it names page.md
        ("run by tests/test_environment.py", False), ("run by tests/test_nowhere.py", False),
    ):  # fmt: skip
        page.write_text(f"<!-- {mark} -->\n```sh\ndocker compose up\n```\n")
        (block,) = blocks(page)
        assert is_explained(block) == is_enough, mark


# Elements that a browser loads, and the attribute with their address.
ADDRESSES = dict.fromkeys(("script", "img", "iframe", "source"), "src") | {"link": "href", "object": "data"}


class Page(HTMLParser):
    def __init__(self, file):
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(file.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if found.get("id"):
            self.anchors.add(str(found["id"]))
        if tag in ADDRESSES and (address := found.get(ADDRESSES[tag])) and found.get("rel") != "canonical":
            self.loaded.append(address)
        if tag == "a" and found.get("href"):
            self.links.append(str(found["href"]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("docs") / "site"
    assert docs.build(made) == 0
    return made


@pytest.fixture(scope="module")
def site(folder):
    return {file: Page(file) for file in folder.rglob("*.html")}


def test_generated_pages_are_what_the_code_says_and_the_study_file_page_names_every_key():
    assert docs.outdated() == []
    calls = {"text", "slug", "day", "integer", "decimal", "choice", "clock", "table", "raw"}
    keys = {
        str(call.args[0].value)
        for file in (ROOT / "reports" / "studies" / "studyfile").glob("*.py")
        for call in ast.walk(ast.parse(file.read_text()))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in calls
        and ast.unparse(call.func.value) in ("table", "root", "self")
        and call.args
        and isinstance(call.args[0], ast.Constant)
    }
    assert len(keys) > 40
    text = (ROOT / "docs" / "reference" / "study-file.md").read_text()
    assert {key for key in keys if not re.search(rf"[`.\[]{key}[`\]]", text)} == set()


def test_nothing_is_loaded_from_another_host_search_needs_no_server_and_links_lead_somewhere(folder, site):
    loaded = {address for page in site.values() for address in page.loaded}
    assert loaded
    assert {address for address in loaded if urlsplit(address).scheme or urlsplit(address).netloc} == set()
    styles = [file.read_text() for file in folder.rglob("*.css")]
    assert styles
    assert not [found for text in styles for found in re.findall(r"url\(['\"]?(?:https?:)?//[^)]*", text)]
    assert (folder / "search" / "search_index.js").read_text().startswith("var __index = ")
    assert "vendor/iframe-worker/iframe-worker.js" in site[folder / "index.html"].loaded
    wrong = []
    for file, page in site.items():
        for address in page.links:
            parts = urlsplit(address)
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            is_there = target.is_file() and (
                not parts.fragment or target not in site or unquote(parts.fragment) in site[target].anchors
            )
            # The page for wrong addresses is served at any of them, and has links from the root.
            if not parts.scheme and file.name != "404.html" and not is_there:
                wrong.append(f"{file.name}: {address}")
    assert wrong == []
