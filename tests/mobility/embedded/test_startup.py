"""Web servers and workers of a new version do not serve with databases of an earlier one."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from django.db import OperationalError, connections
from gunicorn import util
from gunicorn.config import Config
from gunicorn.glogging import Logger
from gunicorn.http import RequestParser
from gunicorn.http.errors import InvalidHeader
from gunicorn.workers.gthread import ThreadWorker

import manage
from mobility import celery, startup
from mobility.embedded import refusals, unread
from mobility.operations.management.commands import check_alerts
from mobility.operations.probes import databases
from reports.transfer.models import Sender
from scripts import services
from tests.mobility.data_folder import own_process

ROOT = Path(__file__).parents[3]
GUNICORN = (sys.executable, "-m", "gunicorn", "mobility.wsgi", "--no-control-socket", "--bind")
SERVER = (sys.executable, "-c", "import mobility.wsgi")
WORKER = (sys.executable, "-m", "celery", "-A", "mobility", "worker", "--pool", "solo")
COMMAND = (sys.executable, "manage.py", "check")
PAGES = """
from django.core.wsgi import get_wsgi_application
from django.urls import reverse
get_wsgi_application()
reverse("reading:docs"), __import__("reports.templatetags.downloads")
"""
COMMANDS = """
import django, manage
from django.core.management import get_commands, load_command_class
django.setup()
for name, app in get_commands().items():
    if app.startswith(("mobility", "reports")):
        command = load_command_class(app, name)  # which is all that --help takes
        if "installation" in command.requires_system_checks:
            command.check(**command.get_check_kwargs({}))
"""
TASKS = "import django, mobility.celery; django.setup(); mobility.celery.app.loader.import_default_modules()"
COMPILED = {"numba", "llvmlite", "pyarrow"}
LATER = {"matplotlib", "fpdf", "fontTools", "PIL", "xlsxwriter", "ninja", "pydantic",
         "pandas", "geopandas", "shapely", "pyproj", "pyogrio", "h3", "scipy.optimize"}  # fmt: skip
ASKING = {"celery", "redis", "requests", "mobility.urls"}
EXAMPLE_KEY = "change-me-kT9vWq2LmX7cRb4Zp8Ns1Fd6Hj3Gy5Ae0UoIxCw"


@pytest.mark.parametrize(
    ("command", "own", "said"),
    [
        (SERVER, {}, "migrations not applied"),
        (WORKER, {}, "docs/upgrading.md"),
        ((*GUNICORN, f"127.0.0.1:{services.free_port()}"), {"SECRET_KEY": EXAMPLE_KEY}, "mobility.E010"),
        (SERVER, {"MOBILITY_SWEEP_S": "15s"}, "MOBILITY_SWEEP_S must be a whole number, got '15s'"),
        (WORKER, {"SECRET_KEY_FILE": "/no"}, "SECRET_KEY_FILE must name a readable file, got /no: No such"),
        (COMMAND, {"MOBILITY_SWEEP_S": "15s"}, "MOBILITY_SWEEP_S must be a whole number, got '15s'"),
    ],
    ids=["old-web", "old-worker", "guessed-web", "web", "worker", "command"],
)
def test_what_cannot_work_is_refused_with_its_reason(command, own, said, tmp_path) -> None:
    """Databases before `migrate`, a secret of examples, settings that mean nothing: never a traceback."""
    done = own_process(command, {"MOBILITY_DATA_DIR": str(tmp_path), **own})
    assert done.returncode == startup.EXIT_CODE, done.stderr
    assert not [text for text in ("refusing to start:", said) if text not in done.stderr]
    assert not [text for text in ("Traceback", EXAMPLE_KEY) if text in done.stderr]


@pytest.fixture
def _stay_connected(monkeypatch) -> None:
    for connection in connections.all():
        monkeypatch.setattr(connection, "close", lambda: None)  # of the test's transaction


@pytest.mark.django_db(databases=["default", "vault"])
@pytest.mark.usefixtures("_stay_connected")
def test_no_command_adds_to_studies_of_a_shared_main_database(settings, monkeypatch, capsys) -> None:
    settings.MOBILITY_ZONE = "operator"
    Sender.objects.create(name="north", public_key="x", registered_by="ada")
    for module, step in ((manage, "prepare"), (manage, "dump_no_core"), (os, "umask")):
        monkeypatch.setattr(module, step, lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["manage.py", "close_days", "my-study", "--through", "2017-05-31"])
    with pytest.raises(SystemExit) as ended:
        manage.main()
    assert ended.value.code == startup.EXIT_CODE
    assert "it has a registered sender, north" in capsys.readouterr().err


@pytest.mark.django_db(databases=["default", "vault"])
@pytest.mark.usefixtures("_stay_connected")
def test_one_migration_is_enough(monkeypatch, capsys) -> None:
    startup.refuse_outdated()
    lacking = {"default": set(), "vault": {("mobility", "0099_later")}}
    monkeypatch.setattr(databases, "pending", lacking.__getitem__)
    with pytest.raises(SystemExit):
        startup.refuse_outdated()
    said = capsys.readouterr().err
    assert ("database vault: migrations not applied: 1" in said, "default" in said) == (True, False)

    def away(alias: str) -> set[object]:
        raise OperationalError

    monkeypatch.setattr(databases, "pending", away)  # it stops nothing
    startup.refuse_outdated()


@pytest.mark.django_db(databases=["default", "vault"])
def test_settings_that_stop_servers_are_told_all_the_same(data_dir, settings, capsys) -> None:
    """A timer looks for alerts also while neither server nor worker starts."""
    settings.MOBILITY_METRICS_TOKEN, settings.SECRET_KEY = "short", EXAMPLE_KEY
    with pytest.raises(SystemExit):
        celery._refuse_unsafe()  # as a worker starts
    said = capsys.readouterr().err
    assert ("mobility.E033" in said, "mobility.E010" in said, EXAMPLE_KEY in said) == (True, True, False)
    check_alerts.Command().run_from_argv(["manage.py", "check_alerts", "--now"])  # system checks and all
    told = json.loads(capsys.readouterr().out)
    assert told["looked"]
    assert told["open"] >= 1


# --- by systemd --------------------------------------------------------------------------------------------
def test_only_a_refusal_keeps_a_unit_down(tmp_path) -> None:
    """Gunicorn ends as well when a start fails by an exception, which may pass: by another code."""
    for unit in ("mobility-web.service", "mobility-worker@.service"):
        text = (ROOT / "docker" / "systemd" / unit).read_text()
        codes = re.findall(r"^RestartPreventExitStatus=(.+)$", text, flags=re.MULTILINE)
        assert codes == [str(startup.EXIT_CODE)], unit
    (tmp_path / "run").touch()  # where a folder belongs
    done = own_process((*GUNICORN, f"127.0.0.1:{services.free_port()}"), {"MOBILITY_DATA_DIR": str(tmp_path)})
    assert ("FileExistsError" in done.stderr, done.returncode in {0, startup.EXIT_CODE}) == (True, False)


def test_a_command_without_settings_of_its_installation_makes_no_other_one(tmp_path, monkeypatch) -> None:
    for name in ("mobility", "reports", "ldp"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "manage.py", tmp_path)
    (tmp_path / "settings").touch()
    own = {"PATH": os.environ["PATH"], "MOBILITY_SETTINGS": str(tmp_path / "settings")}
    command, options = [sys.executable, "manage.py", "migrate"], {"text": True, "capture_output": True}
    done = subprocess.run(command, cwd=tmp_path, env=own, check=False, timeout=120, **options)
    assert done.returncode == 1, done.stderr
    assert "docker/manage.sh migrate" in done.stderr
    assert not (tmp_path / "var").exists()
    monkeypatch.setenv("MOBILITY_SETTINGS", str(tmp_path / "settings"))
    monkeypatch.setenv("MOBILITY_DATA_DIR", "var/own")
    assert unread.refusal(["manage.py", "migrate"]) == ""


def test_a_request_that_gunicorn_cannot_read_is_answered_by_a_problem() -> None:
    here, there = socket.socketpair()
    with here, there:
        there.sendall(b"PUT /api/v1/studies/fair/extracts/x HTTP/1.1\r\nContent-Length: 12x\r\n\r\n")
        config = Config()
        with pytest.raises(InvalidHeader) as raised:
            next(iter(RequestParser(config, here, ("::1", 1))))
        worker = ThreadWorker(1, 1, [], None, 1, config, Logger(config))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(util, "write_error", util.write_error)
            refusals.refuse_as_problems()
            worker.handle_error(None, here, ("::1", 1), raised.value)
        head, _, body = there.recv(9999).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"Content-Type: application/problem+json\r\n" in head
    assert (json.loads(body)["status"], f"Content-Length: {len(body)}".encode() in head) == (400, True)


# --- quick starts ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("program", "zone", "absent"),
    [
        (PAGES, "analyst", COMPILED | LATER),
        (COMMANDS, "all", COMPILED | LATER | ASKING),
        (TASKS, "all", LATER),
    ],
    ids=["pages of analysts", "commands", "worker"],
)
def test_a_process_loads_what_it_needs_at_its_start_and_no_more(program, zone, absent, tmp_path) -> None:
    """Half a second each, and up to a hundred megabytes of every process."""
    command = (sys.executable, "-c", f"{program}\nimport sys; print(*sys.modules)")
    done = own_process(command, {"MOBILITY_DATA_DIR": str(tmp_path), "MOBILITY_ZONE": zone})
    assert done.returncode == 0, done.stderr
    assert absent & set(done.stdout.split()) == set()


@pytest.mark.django_db(databases=["default", "vault"])
def test_a_web_server_has_loaded_what_its_first_scenario_computes_with(migrated_folder) -> None:
    command = (sys.executable, "-c", "import sys, mobility.wsgi; print(*sys.modules)")
    done = own_process(command, {"MOBILITY_DATA_DIR": str(migrated_folder.root)})
    assert set(startup.SOLVER) <= set(done.stdout.split()), done.stderr


def test_late_imports_of_own_modules_are_few_and_each_says_why() -> None:
    """Ruff wants each to be marked."""
    texts = [
        path.read_text() for name in ("ldp", "reports", "mobility") for path in (ROOT / name).rglob("*.py")
    ]
    marked = re.findall(
        r"^ +from (?:ldp|reports|mobility)\b.*# noqa: .*PLC0415(.*)", "".join(texts), re.MULTILINE
    )
    assert 0 < len(marked) < 20
    assert [said for said in marked if not re.match(r" - \w", said)] == []
