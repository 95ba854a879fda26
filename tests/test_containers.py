"""Files of containers and units are well formed, keep what they promise, and start the same programs."""

import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from django.core.management import get_commands

from tests.test_environment import variables_read

ROOT = Path(__file__).parents[1]
DOCKER = ROOT / "docker"
UNITS = DOCKER / "systemd"
ZONES = {"all": "compose.yaml", "operator": "compose.operator.yaml", "analyst": "compose.analyst.yaml"}
BASE = yaml.safe_load((DOCKER / "base.yaml").read_text())["services"]
TOOLS = Path(sys.executable).parent
READ = variables_read()


def services(zone):
    """Services of a zone with what they take from base.yaml, as the Compose specification merges it."""
    content = yaml.safe_load((DOCKER / ZONES[zone]).read_text())
    merged = {}
    for name, own in content["services"].items():
        base = BASE[own["extends"]["service"]]
        merged[name] = base | own
        for part in ("environment", "volumes", "secrets"):
            if isinstance(base.get(part), dict):
                merged[name][part] = base[part] | own.get(part, {})
            elif isinstance(base.get(part), list):
                merged[name][part] = base[part] + own.get(part, [])
    return merged


def test_dockerfile_and_compose_files_are_well_formed():
    for words in (
        [TOOLS / "hadolint", DOCKER / "Dockerfile"],
        [TOOLS / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", *DOCKER.glob("*.yaml")],
    ):
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd-analyze")
def test_units_are_well_formed_and_shut_in(tmp_path):
    for file in UNITS.iterdir():
        text = file.read_text().replace("/opt/mobility-reports/.venv", sys.prefix)
        (tmp_path / file.name).write_text(text.replace("/opt/mobility-reports", str(ROOT)))
    for file in sorted(tmp_path.glob("*.*")):
        words = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(file)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert not [line for line in done.stderr.splitlines() if "mobility-" in line]
    for file in sorted(tmp_path.glob("*.service")):
        words = ["systemd-analyze", "security", "--offline=true", "--no-pager", str(file)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        level = re.search(r"exposure level for \S+: ([\d.]+)", done.stdout)
        assert level is not None, done.stderr
        assert float(level[1]) <= 2, file.name  # 0 is best, 10 is worst


@pytest.mark.parametrize("zone", ZONES)
def test_every_container_is_shut_in_its_secrets_are_files_and_its_logs_do_not_fill_the_disk(zone):
    for name, service in services(zone).items():
        assert service["read_only"], name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", service["user"]), name
        assert service["mem_limit"], name
        assert not service.get("privileged"), name
        assert not any("docker.sock" in str(volume) for volume in service.get("volumes", [])), name
        assert service["logging"]["options"].keys() == {"max-size", "max-file"}, name
        for variable, value in service.get("environment", {}).items():
            if Path(value).parent == Path("/proc/sys/kernel/random"):
                continue  # an unknown one
            if variable in READ and variable.endswith("_FILE"):
                continue  # the software makes it, on a volume
            if re.search(r"KEY|PASSWORD|SECRET|TOKEN|URL", variable) and not variable.endswith("_DIR"):
                assert variable.endswith("_FILE"), (name, variable)
                assert Path(value).parent == Path("/run/secrets"), (name, variable)
                assert Path(value).name in service["secrets"], (name, variable)


def test_redis_refuses_before_it_is_killed():
    command = BASE["redis"]["command"]
    most_mb = int(command[command.index("--maxmemory") + 1].removesuffix("mb"))
    assert 0 < most_mb < int(BASE["redis"]["mem_limit"].removesuffix("m"))


def test_variables_of_compose_files_are_documented():
    page = (ROOT / "docs" / "deployment.md").read_text()
    used = {name for file in DOCKER.glob("*.yaml") for name in re.findall(r"\$\{(\w+)", file.read_text())}
    assert ("WORKER_MEMORY" in used, [name for name in sorted(used) if f"`{name}`" not in page]) == (True, [])


@pytest.mark.parametrize("zone", ZONES)
def test_only_the_proxy_is_reached_from_elsewhere_and_the_application_is_no_administrator(zone):
    assert [name for name, service in services(zone).items() if service.get("ports")] == ["proxy"]
    networks = yaml.safe_load((DOCKER / ZONES[zone]).read_text())["networks"]
    inside = {name for name, own in networks.items() if (own or {}).get("internal")}
    assert inside == {"front", "inside", "vault"} - ({"vault"} if zone == "analyst" else set())
    for name in ("main", "vault", "redis"):
        if name in services(zone):
            assert set(services(zone)[name]["networks"]) <= inside
    for name in {"main", "vault"} & services(zone).keys():
        service = services(zone)[name]
        told = service["environment"]
        assert told["POSTGRES_USER"] == "postgres"
        assert told["ROLE_PASSWORD_FILE"] == f"/run/secrets/{name}_password"
        assert told["POSTGRES_PASSWORD_FILE"] not in {f"/run/secrets/{each}" for each in service["secrets"]}
        mounted = dict(volume.split(":")[:2] for volume in service["volumes"] if volume.startswith("./"))
        assert mounted["./postgres_init.sh"].startswith("/docker-entrypoint-initdb.d/")
        for script in mounted:
            assert (DOCKER / script).stat().st_mode & 0o111 == 0o111, script


def test_the_analyst_zone_is_told_nothing_of_a_vault():
    text = re.sub(r"#.*", "", (DOCKER / ZONES["analyst"]).read_text())
    assert not re.search(r"vault|keys:", text, flags=re.IGNORECASE)
    for zone in ("all", "operator"):
        reach = [name for name, own in services(zone).items() if "vault" in own["networks"]]
        assert sorted(reach) == ["migrate", "migrate-vault", "vault", "web", "worker"]
        assert services(zone)["vault"]["networks"] == ["vault"]


@pytest.mark.parametrize("zone", ZONES)
def test_folders_of_containers_are_on_volumes(zone):
    folders = {name for name in READ if name.endswith("_DIR")} - {"MOBILITY_WATCH_DIR"}
    folders |= {"MOBILITY_LEDGER_KEY_FILE", "MOBILITY_SENDER_KEY_FILE"}
    for name in ("web", "worker"):
        service = services(zone)[name]
        assert service["env_file"] == [{"path": ".env", "required": False}]
        mounted = {volume.split(":")[1] for volume in service["volumes"]}
        for variable in folders:
            folder = Path(service["environment"][variable])
            is_in_the_image = variable == "MOBILITY_STATIC_DIR"
            is_no_key_here = zone == "analyst" and variable == "MOBILITY_KEYSTORE_DIR"
            assert is_in_the_image or is_no_key_here or f"/{folder.parts[1]}" in mounted, variable


def test_images_have_versions_what_the_code_needs_and_nothing_else():
    dockerfile = (DOCKER / "Dockerfile").read_text()
    assert set(re.findall(r"^FROM (\S+)", dockerfile, flags=re.MULTILINE)) == {"${PYTHON_IMAGE}"}
    bases = re.findall(r"^ARG PYTHON_IMAGE=(\S+)$", dockerfile, flags=re.MULTILINE)
    assert BASE["app"]["build"]["args"] == {"PYTHON_IMAGE": "${PYTHON_IMAGE:-" + bases[0] + "}"}
    for image in (*bases, *(BASE[name]["image"] for name in ("postgres", "redis", "proxy"))):
        assert re.search(r":\d+\.\d+(\.\d+)?-[a-z]", image), image
    ignored = (ROOT / ".dockerignore").read_text()
    allowed = re.findall(r"^!(\S+)$", ignored, flags=re.MULTILINE)
    assert ignored.split("\n")[1] == "*"
    assert [name for name in allowed if not (ROOT / name).exists()] == []
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", dockerfile, flags=re.MULTILINE)
    assert {word for line in copied for word in line.split()} == set(allowed)
    told = re.findall(r"^ARG VERSION=(\S+)$", dockerfile, flags=re.MULTILINE)
    project = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), flags=re.MULTILINE)
    assert told == [project[1]]


def test_the_build_of_a_release_refuses_a_base_image_without_a_digest():
    dockerfile = (DOCKER / "Dockerfile").read_text()
    (check,) = re.findall(r"^RUN (case .*?esac)$", dockerfile, flags=re.MULTILINE | re.DOTALL)
    assert dockerfile.index(check) < dockerfile.index("COPY")
    for version, image, code in (
        ("0.3.0.dev0", "python:3.11.14-slim-trixie", 0),
        ("0.3.0", "python:3.11.14-slim-trixie", 1),
        ("0.3.0", f"python:3.11.14-slim-trixie@sha256:{'0' * 64}", 0),
    ):
        told = {"VERSION": version, "PYTHON_IMAGE": image}
        done = subprocess.run(["sh", "-c", check], env=told, capture_output=True, text=True, check=False)
        is_refused = "must end in @sha256:DIGEST for release 0.3.0, got" in done.stderr
        assert (done.returncode, is_refused) == (code, bool(code)), told


WEB = runpy.run_path(str(DOCKER / "gunicorn.conf.py"))
NGINX = (DOCKER / "nginx" / "mobility.conf").read_text()
FORMS = ("/sign-in/", "/operator/batches/x/cancel/", "/operator/s/profiles/new/",
                "/administrator/drafts/", "/api/v1/studies/s/reports/")  # fmt: skip
STREAMS = ("/operator/s/uploads/", "/operator/s/uploads/1/", "/api/v1/studies/s/extracts/a.csv",
                  "/api/v1/intake/studies/s", "/administrator/create/")  # fmt: skip


def location_of(path: str) -> str:
    """Return the proxy's action for an address, by the rules of nginx: exact, `^~`, first expression, `/`."""
    site = NGINX[NGINX.index("listen 443") :]
    found = re.findall(r'^    location (?:(=|~|\^~) )?"?(\S+?)"? \{\n(.*?)^    \}', site, flags=re.M | re.S)
    for kind in ("=", "^~", "~"):
        for own, pattern, text in found:
            is_it = {"=": path == pattern, "^~": path.startswith(pattern), "~": re.search(pattern, path)}
            if own == kind and is_it[kind]:
                return str(text)
    return next(text for own, pattern, text in found if (own, pattern) == ("", "/"))


def test_who_sends_a_form_slowly_holds_no_thread_and_the_proxy_asks_anew_where_the_server_is():
    server = NGINX[NGINX.index("listen 443") : NGINX.index("    location ")]
    assert ("proxy_request_buffering" in server, "limit_conn mobility_address 40;" in server) == (False, True)
    assert "client_body_timeout 15s;" in server
    for path in FORMS:
        text = location_of(path)
        sizes = re.findall(r"client_(?:max_body|body_buffer)_size (\w+);", text + server)[:2]
        assert sizes[0] == sizes[1], "a body would be written to a file"
        assert ("proxy_request_buffering" in text, "return 411" in text) == (False, True)
    for path in STREAMS:
        assert "proxy_request_buffering off;" in location_of(path), path
        assert "limit_conn mobility_uploads 8;" in location_of(path), path
        (most,) = re.findall(r"limit_conn mobility_all_uploads (\d+);", location_of(path))
        assert int(most) <= WEB["workers"] * WEB["threads"] * 3 / 4, "pages would wait for uploads"
    assert "proxy_set_header X-Request-ID $request_id;" in server
    # An upgrade makes a container with another address; nginx asks for a name only once by default.
    words = [line.split() for line in (DOCKER / "nginx" / "upstream.conf").read_text().splitlines()]
    told = {line[0]: [word.rstrip(";") for word in line[1:]] for line in words}
    assert told["server"] == ["web:8000", "resolve"]
    assert told["resolver"][0] == "127.0.0.11"  # Docker's
    assert "zone" in told
    # Share links, origins of forms and the way back from a provider would lead to another server.
    assert "proxy_set_header Host $http_host;" in NGINX
    assert 'ports: ["443:443", "80:80"]' in (DOCKER / "base.yaml").read_text()  # where http:// leads to


@pytest.mark.skipif(not shutil.which("nginx"), reason="needs nginx")
def test_the_proxy_counts_a_network_of_ipv6_as_one_address(tmp_path):
    site = NGINX[: NGINX.index("server {")]
    zones = re.findall(r"^limit_conn_zone (\S+) ", site, flags=re.MULTILINE)
    assert set(zones) == {"$mobility_network", "$server_name"}
    (network,) = re.findall(r"^map \S+ \$mobility_network \{.*?^\}$", site, flags=re.MULTILINE | re.DOTALL)
    socket = tmp_path / "s"
    (tmp_path / "nginx.conf").write_text(
        f"daemon off; master_process off; pid {tmp_path}/pid; error_log stderr; events {{}}"
        f" http {{ access_log off; {network} server {{ listen unix:{socket}; set_real_ip_from unix:;"
        " real_ip_header X-Real-IP;"
        ' location / { return 200 "$mobility_network"; } } }'
    )
    asked = ("2001:db8:0:1::1", "2001:db8:0:1:a:b:c:d", "2001:db8:0:2::1", "::ffff:192.0.2.9", "192.0.2.9",
             "::ffff:192.0.2.10", "2001:db8:a0a:a0a::1", "2001:db8:a0a:a0a::2")  # fmt: skip
    command = ["nginx", "-p", str(tmp_path), "-e", "stderr", "-c", str(tmp_path / "nginx.conf")]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as server:
        try:
            curl = ["curl", "-s", "--retry", "20", "--retry-all-errors", "--retry-delay", "0"]
            curl += ["--unix-socket", socket, "http://x/"]
            words = [[*curl, "-H", f"X-Real-IP: {each}"] for each in asked]
            told = [subprocess.run(each, capture_output=True, check=True) for each in words]
        finally:
            server.terminate()
    one, same, other, mapped, plain, neighbour, newlines, newlines_too = (done.stdout for done in told)
    assert one == same != other
    assert mapped == plain != neighbour
    assert newlines == newlines_too != one
    assert plain == bytes([192, 0, 2, 9])


def started_by(unit: str) -> list[str]:
    (line,) = re.findall(r"^ExecStart=(.+)$", (UNITS / unit).read_text(), flags=re.MULTILINE)
    words: list[str] = line.split()
    return [Path(words[0]).name, *words[1:]]


@pytest.mark.parametrize("zone", ZONES)
def test_units_start_what_containers_start(zone):
    found = services(zone)
    assert started_by("mobility-web.service") == found["web"]["command"]
    worker = started_by("mobility-worker@.service")
    assert worker[: len(found["worker"]["command"])] == found["worker"]["command"]
    assert worker[len(found["worker"]["command"]) :] == ["--hostname", "worker%i@%H"]


def test_what_makes_backups_cannot_see_keys_and_commands_of_units_exist():
    unit = (UNITS / "mobility-backup.service").read_text()
    assert "InaccessiblePaths=-/var/lib/mobility-reports-keys\n" in unit
    assert "StateDirectory=mobility-reports\n" in unit
    started = [started_by(unit.name) for unit in UNITS.glob("*.service")]
    named = {words[2] for words in started if words[1] == "manage.py"}
    assert named == {"backup", "check_alerts"}
    assert named <= set(get_commands())
