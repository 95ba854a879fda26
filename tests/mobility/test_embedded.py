"""The embedded default for real: databases, Redis, a worker and the web server in a folder of their own."""

import os
import re
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from urllib.request import urlopen

import pytest
from django.conf import settings
from redis import Redis

from mobility.embedded.databases import embedded_files
from mobility.embedded.service import Service, ServiceError
from mobility.embedded.web import free_socket
from mobility.runtime import RuntimePaths
from reports.policies import Role
from tests.mobility.data_folder import HOLD, Folder

FOREIGN = "settings.EMBEDDED_REDIS = False\nsettings.CELERY_BROKER_URL = 'redis://127.0.0.1:1/0'\n"


def groups_of(file: Path) -> set[str]:
    with closing(sqlite3.connect(file)) as database:
        return {name for (name,) in database.execute("SELECT name FROM auth_group")}


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.long
class TestDatabases:
    def test_first_command_migrates_both_and_creates_the_roles(self, folder: Folder) -> None:
        _, messages = folder.shell().communicate(timeout=60)
        assert messages == f"preparing the databases in {folder.root}\n"
        assert groups_of(folder.paths.main_database) == set(Role)
        with closing(sqlite3.connect(folder.paths.vault_database)) as vault:
            assert vault.execute("SELECT count(*) FROM mobility_batch").fetchone() == (0,)

    def test_folder_and_secret_are_for_this_user_alone(self, folder: Folder) -> None:
        folder.shell().communicate(timeout=60)
        assert folder.root.stat().st_mode & 0o777 == 0o700
        assert folder.paths.secret_key.stat().st_mode & 0o777 == 0o600

    def test_second_command_has_nothing_to_prepare(self, folder: Folder) -> None:
        folder.shell().communicate(timeout=60)
        _, messages = folder.shell().communicate(timeout=60)
        assert messages == ""

    def test_a_migration_that_came_later_is_applied(self, folder: Folder) -> None:
        folder.shell().communicate(timeout=60)
        folder.command("migrate", "reports", "0001").communicate(timeout=60)
        with closing(sqlite3.connect(folder.paths.main_database)) as database, database:
            database.execute("DELETE FROM auth_group")
        _, messages = folder.shell().communicate(timeout=60)
        assert "preparing" in messages
        assert len(groups_of(folder.paths.main_database)) == len(Role)

    def test_two_commands_at_once_prepare_once(self, folder: Folder) -> None:
        ended = [process.communicate(timeout=60) for process in [folder.shell(), folder.shell()]]
        assert sorted(len(messages.splitlines()) for _, messages in ended) == [0, 1]
        assert len(groups_of(folder.paths.main_database)) == len(Role)

    def test_command_that_needs_no_database_makes_none(self, folder: Folder) -> None:
        folder.command("check").communicate(timeout=60)
        assert not folder.paths.main_database.exists()

    def test_database_named_by_a_url_is_left_alone(
        self, data_dir: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        paths = RuntimePaths(data_dir)
        monkeypatch.setitem(settings.DATABASES["default"], "NAME", "mobility")
        monkeypatch.setitem(settings.DATABASES["vault"], "NAME", str(paths.vault_database))
        assert embedded_files() == {"vault": paths.vault_database}


@pytest.mark.slow
@pytest.mark.long
class TestWorkers:
    def test_answer_on_a_socket_only_and_leave_nothing(self, folder: Folder) -> None:
        with folder.holding() as process:
            assert folder.running() == {"redis", "worker"}
            with Redis(unix_socket_path=str(folder.paths.redis_socket), decode_responses=True) as client:
                for name, value in {"port": "0", "save": "", "appendonly": "no"}.items():
                    assert client.config_get(name) == {name: value}
            groups = [int((folder.paths.run / f"{name}.pid").read_text()) for name in ("redis", "worker")]
        assert process.returncode == 0
        assert folder.running() == set()
        for group in groups:
            with pytest.raises(ProcessLookupError):
                os.killpg(group, 0)

    def test_second_command_uses_them_and_the_last_one_stops_them(self, folder: Folder) -> None:
        with folder.holding() as second_to_last:
            with folder.holding() as last:
                second_to_last.communicate("\n", timeout=60)
                assert folder.running() == {"redis", "worker"}
            assert "starting" not in last.communicate()[1]
        assert folder.running() == set()

    def test_sigterm_stops_them(self, folder: Folder) -> None:
        with folder.holding() as process:
            process.terminate()
            process.wait(timeout=60)
        assert process.returncode == 128 + signal.SIGTERM
        assert folder.running() == set()

    def test_after_a_kill_the_next_command_takes_them_over(self, folder: Folder) -> None:
        with folder.holding() as killed:
            killed.kill()
            killed.wait()
        assert folder.running() == {"redis", "worker"}
        with folder.holding() as process:
            pass
        assert process.returncode == 0
        assert folder.running() == set()

    def test_other_redis_without_a_worker_is_an_error(self, folder: Folder) -> None:
        code = HOLD.replace("import sys", f"import sys\nfrom django.conf import settings\n{FOREIGN}", 1)
        process = folder.shell(code)
        _, messages = process.communicate(timeout=60)
        assert process.returncode == 1
        assert "REDIS_URL" in messages.splitlines()[-1]


@pytest.mark.slow
@pytest.mark.long
class TestRun:
    def test_serves_pages_with_their_styles_until_ctrl_c(self, folder: Folder) -> None:
        with folder.command("run") as process:
            address = process.stdout.readline().split('"')[3]
            _, page = get(f"{address}/sign-in/")
            style = re.search(r'href="(/static/[^"]+\.css)"', page)
            assert style is not None
            assert get(f"{address}{style[1]}")[0] == 200
            assert folder.running() == {"redis", "worker", "web"}

            second = folder.command("run")
            _, messages = second.communicate(timeout=60)
            assert second.returncode == 1
            assert messages.endswith(f"served already by another command: {address}\n")

            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=60) == 0
        assert folder.running() == set()

    def test_says_when_a_service_dies(self, folder: Folder) -> None:
        with folder.command("run") as process:
            process.stdout.readline()
            os.kill(int((folder.paths.run / "redis.pid").read_text()), signal.SIGKILL)
            _, messages = process.communicate(timeout=60)
        assert process.returncode == 1
        assert "redis stopped by itself" in messages
        assert folder.running() == set()


def get(address: str) -> tuple[int, str]:
    with urlopen(address, timeout=10) as response:  # noqa: S310 - our own server
        return response.status, response.read().decode()


@pytest.mark.usefixtures("data_dir")
class TestService:
    def test_failed_start_shows_the_last_words(self) -> None:
        service = Service("talker")
        service.start([sys.executable, "-c", "import sys; sys.exit('no such colour')"])
        with pytest.raises(ServiceError, match=r"talker stopped while starting\n.*\n  \| no such colour"):
            service.wait_until(lambda: False, timeout_s=30)

    def test_silent_one_is_given_up(self) -> None:
        service = Service("sleeper")
        service.start(["sleep", "60"])
        with pytest.raises(ServiceError, match="sleeper does not answer after 0 s"):
            service.wait_until(lambda: False, timeout_s=0.2)
        service.stop()

    def test_stop_ends_children_of_a_stubborn_one_too(self) -> None:
        service = Service("stubborn")
        service.start(["sh", "-c", "trap '' TERM; sleep 60 & sleep 60"])
        wait_until(service.is_alive)
        time.sleep(0.3)
        service.stop(grace_s=0.3)
        assert not service.is_alive()

    def test_stopping_what_does_not_run_is_fine(self) -> None:
        Service("nobody").stop()
        assert not Service("nobody").is_alive()


def test_taken_port_gives_way_to_the_next() -> None:
    with free_socket(18_300) as first, free_socket(18_300) as second:
        assert second.getsockname()[1] > first.getsockname()[1]
