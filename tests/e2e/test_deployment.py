"""From empty databases to a served deployment of two zones, by the commands of docs/deployment.md alone.

Then an upgrade, by those of docs/upgrading.md.
Three machines: the vault, the operator's and the analysts'. The last one has no way to the first.
"""

import json
import re
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from mobility import startup
from mobility.demo.extract import write_extract
from mobility.services.staging import FRAME_BYTES
from tests.e2e.documented import (
    ADDRESSES,
    ANALYSTS,
    CA,
    HEADER,
    OPERATOR,
    STUDY,
    UPGRADING,
    VAULT,
    Deployment,
    batch_done,
    connecting,
    page_as_ana,
    reports_of,
    within,
)
from tests.e2e.machines import CODE, Machine, machine, why_not
from tests.e2e.traces import Search

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.skipif(bool(why_not()), reason=f"{why_not()}; test_zones_postgres.py has roles instead"),
]

MARK: Final = "planted-subscriber-4711"
NAME_OF_FILE: Final = "secret-name-of-a-file.csv"


@pytest.fixture(scope="module")
def extracts(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Seven daily files."""
    folder = tmp_path_factory.mktemp("extracts")
    write_extract(folder, seed=5, n_subscribers=4_000)
    return sorted(folder.glob("*.csv"))


@pytest.fixture(scope="module")
def deployment(extracts: list[Path]) -> Iterator[Deployment]:
    with (
        machine("vault", hosts={}) as vault,
        machine("north", hosts=ADDRESSES) as north,
        machine("reports", hosts={ANALYSTS: ADDRESSES[ANALYSTS]}) as reports,
    ):
        north.link(vault, own="10.20.1.1", others=ADDRESSES[VAULT])
        north.link(reports, own=ADDRESSES[OPERATOR], others=ADDRESSES[ANALYSTS])
        north.write("/srv/feeds/day1.csv", extracts[0].read_text())
        made = Deployment(vault, north, reports)
        made.follow()
        yield made


def published(deployment: Deployment) -> Any:
    """Reports of the first file, once both zones have the same."""
    told = batch_done(deployment, deployment.found["BATCH"])
    assert told["state"] == "done"
    ours = reports_of(deployment.north)
    deadline = time.monotonic() + 60
    while (theirs := reports_of(deployment.reports)) != ours:
        assert time.monotonic() < deadline, theirs
    return ours


def test_what_a_feed_sends_is_read_by_an_analyst(deployment: Deployment) -> None:
    assert published(deployment)[0]["n_visitors"] > 0
    assert "gender" in page_as_ana(deployment, f"/studies/{STUDY}/gender/")


def test_services_are_ready_and_only_the_proxy_is_reached(deployment: Deployment) -> None:
    for host, address in ((deployment.north, OPERATOR), (deployment.reports, ANALYSTS)):
        host.shell("curl --silent --fail http://127.0.0.1:8000/healthz/ready")
        other = deployment.reports if host is deployment.north else deployment.north
        for port, expected in {443: "open", 80: "open", 8000: "Connection refused",
                               5432: "Connection refused", 6379: "Connection refused"}.items():  # fmt: skip
            assert connecting(other, ADDRESSES[address], port) == expected, (address, port)
        told = "--output /dev/null --write-out '%{http_code} %{redirect_url}'"
        head = f"curl --silent {told} --header 'Host: {address}'"
        assert host.shell(f"{head} http://127.0.0.1/x?y=1") == f"308 https://{address}/x?y=1"
        assert host.shell(f"{head} --insecure https://127.0.0.1/metrics").split() == ["404"]


# --- nothing of the vault where analysts are -----------------------------------------------------------


def test_the_analyst_machine_has_no_way_to_the_vault(deployment: Deployment) -> None:
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


def test_the_vault_is_reached_by_tls_only(deployment: Deployment) -> None:
    ask = "runuser -u postgres -- psql --tuples-only --no-align --command"
    query = (
        "SELECT count(*), bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) "
        "WHERE usename = 'mobility'"
    )
    n_connections, are_tls = deployment.vault.shell(f'{ask} "{query}"').strip().split("|")
    assert int(n_connections) > 0
    assert are_tls == "t"
    url = (deployment.north.root / "etc/mobility-reports/secrets/vault_url").read_text().strip()
    plain = url.replace("sslmode=verify-full", "sslmode=disable")
    assert plain != url
    told = deployment.north.shell(f"psql '{plain}' --command 'SELECT 1' 2>&1", exit_code=2)
    assert "no pg_hba.conf entry" in told
    assert "no encryption" in told


def test_the_broker_saves_nothing(deployment: Deployment) -> None:
    for host in (deployment.north, deployment.reports):
        password = (host.root / "etc/mobility-reports/secrets/redis.conf").read_text().split()[1]
        words = f"AUTH {password}\\r\\nCONFIG GET save\\r\\nQUIT\\r\\n"
        told = host.shell(f"exec 3<>/dev/tcp/127.0.0.1/6379; printf '{words}' >&3; cat <&3")
        assert told.splitlines() == ["+OK", "*2", "$4", "save", "$0", "", "+OK"]


LOADED: Final = """
import json, sys, importlib, mobility.wsgi, mobility.celery
from django.conf import settings
from django.db import connections
mobility.celery.app.loader.import_default_modules()
refused = {}
for name in ("mobility.models", "mobility.services.uploads"):
    try:
        importlib.import_module(name)
        refused[name] = ""
    except Exception as error:
        refused[name] = type(error).__name__
words = ("mobility.models", "mobility.ingest", "mobility.keystore", "mobility.presence", "mobility.sealing")
print(json.dumps({
    "loaded": sorted(name for name in sys.modules if name.startswith(words)),
    "refused": refused, "databases": sorted(settings.DATABASES), "connections": sorted(connections),
    "keystore": settings.MOBILITY_KEYSTORE_DIR.exists(),
}))
"""


def asked(host: Machine) -> dict[str, Any]:
    """What a process of this zone has, that loads what web server and worker load, with the same settings."""
    host.write("/srv/loaded.py", LOADED)
    line = (
        "set -a; . /etc/mobility-reports/settings; cd /opt/mobility-reports; "
        "DJANGO_SETTINGS_MODULE=mobility.settings PYTHONPATH=. setpriv --reuid mobility --regid mobility "
        "--init-groups .venv/bin/python /srv/loaded.py"
    )
    answer: dict[str, Any] = json.loads(host.shell(line))
    return answer


def test_the_analyst_process_can_import_nothing_of_the_vault(deployment: Deployment) -> None:
    theirs = asked(deployment.reports)
    assert theirs["databases"] == theirs["connections"] == ["default"]
    assert theirs["refused"] == {
        "mobility.models": "RuntimeError",
        "mobility.services.uploads": "RuntimeError",
    }
    assert not theirs["keystore"]
    ours = asked(deployment.north)
    assert ours["databases"] == ["default", "vault"]
    assert "mobility.models" in ours["loaded"]
    assert ours["refused"] == {"mobility.models": "", "mobility.services.uploads": ""}


def test_running_analyst_processes_know_no_vault(deployment: Deployment) -> None:
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
            assert b"MOBILITY_ZONE=analyst" in told
            assert b"vault" not in told.lower()
            assert b"KEYSTORE" not in told
    assert seen >= 4  # of the web server and the worker: a parent and a process each, at least


def test_databases_of_analysts_have_no_table_of_the_vault(deployment: Deployment) -> None:
    query = "psql --tuples-only --no-align --command 'SELECT tablename FROM pg_tables' mobility"
    query = f"runuser -u postgres -- {query}"
    tables = {name: getattr(deployment, name).shell(query).split() for name in ("vault", "north", "reports")}
    for name in ("north", "reports"):
        assert "reports_study" in tables[name]
        assert not [table for table in tables[name] if table.startswith("mobility_")]
    assert "mobility_batch" in tables["vault"]


def test_nothing_of_the_vault_is_written_on_the_analyst_machine(deployment: Deployment) -> None:
    secrets = deployment.north.root / "etc/mobility-reports/secrets"
    words = tuple((secrets / name).read_text().strip() for name in ("vault_password", "secret_key"))
    search = Search((*words, VAULT))
    assert search.in_files(deployment.north.written / "etc/up")
    assert search.in_files(deployment.reports.written) == []
    assert not [path for path in deployment.reports.written.rglob("*keystore*") if path.is_dir()]


# --- bodies leave no trace in the proxy ----------------------------------------------------------------


def test_the_proxy_passes_a_body_on_while_it_comes_and_writes_none(
    deployment: Deployment, extracts: list[Path]
) -> None:
    lines = extracts[1].read_text().splitlines(keepends=True)
    marked = lines[-1].replace(lines[-1].split(",")[0], MARK, 1)
    body = "".join([lines[0], marked, *lines[1:] * 10]).encode()  # each row counts once
    north = deployment.north
    half = len(body) // 2
    header = (north.root / HEADER.lstrip("/")).read_text().strip()
    sent: dict[str, Any] = {}

    def send() -> dict[str, Any]:
        context = ssl.create_default_context(cafile=str(north.root / CA.lstrip("/")))
        plain = socket.create_connection((ADDRESSES[OPERATOR], 443), timeout=60)
        with context.wrap_socket(plain, server_hostname=OPERATOR) as line:
            line.sendall(
                f"PUT /api/v1/studies/{STUDY}/extracts/{NAME_OF_FILE}?profile=default HTTP/1.1\r\n"
                f"Host: {OPERATOR}\r\n"
                f"{header}\r\nContent-Length: {len(body)}\r\n"
                "Connection: close\r\n\r\n".encode()
            )
            line.sendall(body[:half])
            time.sleep(2)
            sent["files"] = files_that_nginx_holds(north)
            sent["staged"] = staged_bytes(north)
            line.sendall(body[half:])
            answer = b""
            while part := line.recv(65536):
                answer += part
        head, _, content = answer.partition(b"\r\n\r\n")
        assert b" 201 " in head.splitlines()[0], answer
        found = re.search(rb"\{.*\}", content, flags=re.DOTALL)
        assert found is not None
        value: dict[str, Any] = json.loads(found[0])
        return value

    assert half > 2 * FRAME_BYTES
    told = batch_done(deployment, within(north, send)["batch"])
    assert told["state"] == "done"
    assert sent["staged"] > 0, "nothing arrived before the body was whole"
    assert sent["files"] == []
    search = Search((MARK, NAME_OF_FILE, STUDY + "/extracts/day1.csv"))
    assert (
        search.in_files(*(north.written / name for name in ("var/up/log", "var/up/lib", "tmp/up", "run/up")))
        == []
    )
    log = (north.root / "var/log/nginx/access.log").read_text()
    assert f"PUT /api/v1/studies/{STUDY}/extracts/- 201" in log
    assert "profile=default" not in log


def files_that_nginx_holds(host: Machine) -> list[str]:
    """Regular files that its processes have open, but its logs; a body's file has no name any more."""
    found = []
    for pid in host.shell("pgrep nginx").split():
        if Path(f"/proc/{pid}/ns/net").stat().st_ino != Path(f"/run/netns/{host.namespace}").stat().st_ino:
            continue
        for link in Path(f"/proc/{pid}/fd").iterdir():
            target = str(link.readlink())
            if target.startswith("/") and not target.startswith(("/dev/", "/var/log/")):
                found.append(target)
    return found


def staged_bytes(host: Machine) -> int:
    staging = host.root / "var/lib/mobility-reports/staging"
    return sum(path.stat().st_size for path in staging.rglob("*") if path.is_file())


def test_names_of_share_links_and_who_opens_them_are_in_no_log(deployment: Deployment) -> None:
    secret = "a-secret-of-a-share-link"
    host = deployment.reports
    host.shell(
        f"curl --silent --insecure --header 'Host: {ANALYSTS}' https://127.0.0.1/shared/{secret}/?q={secret}"
    )
    assert " - GET /shared/- " in (host.root / "var/log/nginx/access.log").read_text()
    assert Search((secret,)).in_files(host.written / "var/up/log") == []


# --- what is refused -------------------------------------------------------------------------------------


def test_the_configuration_of_the_container_is_right_for_nginx(deployment: Deployment) -> None:
    deployment.reports.shell(f"nginx -t -c {CODE}/docker/nginx/nginx.conf")


def test_a_service_can_write_nothing_but_its_folders(deployment: Deployment) -> None:
    """Of the units as they stand: what they start sees a file system that it cannot change."""
    host = deployment.reports
    (pid, *_) = host.shell("pgrep -u mobility -f mobility.wsgi").split()
    mounts = Path(f"/proc/{pid}/mountinfo").read_text().splitlines()
    options = {line.split()[4]: line.split()[5] for line in mounts}
    assert all(options[top].startswith("ro") for top in ("/", "/etc", "/var", "/opt", "/srv", "/root"))
    assert options["/var/lib/mobility-reports"].startswith("rw")
    capabilities = re.search(
        r"^CapEff:\s*(\w+)$", Path(f"/proc/{pid}/status").read_text(), flags=re.MULTILINE
    )
    assert capabilities is not None
    assert int(capabilities[1], 16) == 0


def test_a_worker_with_a_guessable_secret_is_refused(deployment: Deployment) -> None:
    host = deployment.reports
    file = host.root / "etc/mobility-reports/settings"
    before = file.read_text()
    file.write_text(
        before.replace("SECRET_KEY_FILE=/etc/mobility-reports/secrets/secret_key", "SECRET_KEY=change-me")
    )
    try:
        assert host.start_unit("mobility-worker@9.service").wait(timeout=90) == startup.EXIT_CODE
    finally:
        file.write_text(before)
    assert "mobility.E010" in host.log("mobility-worker@9.service.log")


# --- afterwards, since it stops what the others ask ------------------------------------------------------


def test_an_upgrade_by_the_commands_of_its_page_loses_nothing(deployment: Deployment) -> None:
    """docs/upgrading.md, to the same code."""
    before = published(deployment)
    deployment.follow(UPGRADING)
    for host in (deployment.north, deployment.reports):
        host.wait("curl --silent --fail http://127.0.0.1:8000/healthz/ready", what="the web server")
        (backup,) = (host.root / "var/backups/mobility-reports").glob("backup-*")
        assert [path for path in backup.iterdir() if path.stat().st_size]
        assert reports_of(host) == before
    assert "gender" in page_as_ana(deployment, f"/studies/{STUDY}/gender/")
