"""Machines of a deployment on one host, each with its own network and file system.

A machine is a network namespace and a mount namespace. Its writes to /etc, /var, /opt and so on are in a
separate layer in memory, above those of the host, which stay as they are. It takes root.
"""

import itertools
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
CODE: Final = "/opt/mobility-reports"
OWN: Final = ("etc", "var", "opt", "run", "srv", "tmp", "root")
UNITS: Final = "etc/systemd/system"
HOME: Final = "/root/home"  # of root, and closed to all others, as Debian's /root
START_S: Final = 120
TOOLS: Final = ("ip", "nsenter", "unshare", "setpriv", "runuser", "useradd", "openssl", "curl", "nginx")
_ENDS: Final = itertools.count()


def why_not() -> str:
    if os.getuid() != 0:
        return "needs root, for network namespaces"
    if missing := [tool for tool in TOOLS if not shutil.which(tool)]:
        return f"needs {', '.join(missing)}"
    tried = subprocess.run(
        ["unshare", "--mount", "--net", "--propagation", "private", "sh", "-c", _own_folder("etc", "/mnt")],
        capture_output=True, check=False
    )  # fmt: skip
    return "" if tried.returncode == 0 else "needs overlay file systems in namespaces"


def _own_folder(name: str, layers: str) -> str:
    below = f"{layers}/{name}"
    start = f"mountpoint -q {layers} || mount -t tmpfs -o size=2g layers {layers}; "
    if name == "run":  # sockets of the host's services lead to them through any layer
        return f"{start} mkdir -p {below}/up && mount --bind {below}/up /run"
    return (
        f"{start} mkdir -p {below}/up {below}/work && "
        f"mount -t overlay own -o lowerdir=/{name},upperdir={below}/up,workdir={below}/work /{name}"
    )


class Machine:
    """One machine. Attributes: `name`, and `root`, its file system as this process sees it."""

    def __init__(self, name: str, *, hosts: Mapping[str, str]) -> None:
        self.name = name
        self.namespace = f"mr{os.getpid()}-{name}"
        self._running: list[subprocess.Popen[bytes]] = []
        self._units: dict[str, subprocess.Popen[bytes]] = {}
        _run("ip", "netns", "add", self.namespace)
        _run("ip", "-n", self.namespace, "link", "set", "lo", "up")
        self._tops = list(dict.fromkeys([*OWN, *(path.parts[1] for path in _needed())]))
        known = "".join(f"{address} {host}\\n" for host, address in hosts.items())
        script = [
            "set -e",
            *(_own_folder(top, "/mnt") for top in self._tops),
            f"mkdir {CODE}; mount --bind {shlex.quote(str(ROOT))} {CODE}",
            f"printf '127.0.0.1 localhost\\n{known}' > /etc/hosts; : > /etc/resolv.conf",
            *(f"chmod a+x {shlex.quote(str(folder))}" for folder in _closed()),
            # The account of the service reads the code; a checkout may be private. Files that come and go
            # meanwhile, as kernels that another test compiles, are no failure.
            f"find {CODE} '(' -name .git -o -name var ')' -prune -o ! -type l ! -perm -o=r "
            "-exec chmod a+rX {} + || true",
            f"install -d -m 700 {HOME}",
            "echo ready",
            "exec sleep infinity",
        ]
        self._keeper = subprocess.Popen(
            ["ip", "netns", "exec", self.namespace, "unshare", "--mount", "--propagation", "private",
             "sh", "-c", "\n".join(script)],
            stdout=subprocess.PIPE, start_new_session=True
        )  # fmt: skip
        assert self._keeper.stdout.readline() == b"ready\n", name
        self.root = Path(f"/proc/{self._keeper.pid}/root")

    @property
    def written(self) -> Path:
        return self.root / "mnt"

    def link(self, other: "Machine", *, own: str, others: str) -> None:
        ends = [(self, own), (other, others)]
        names = [f"mr{os.getpid()}e{next(_ENDS)}" for _ in ends]
        _run("ip", "link", "add", names[0], "type", "veth", "peer", "name", names[1])
        for link, (machine, address) in zip(names, ends, strict=True):
            _run("ip", "link", "set", link, "netns", machine.namespace)
            _run("ip", "-n", machine.namespace, "address", "add", f"{address}/24", "dev", link)
            _run("ip", "-n", machine.namespace, "link", "set", link, "up")

    def inside(self, *words: str) -> list[str]:
        into = ["nsenter", f"--target={self._keeper.pid}", "--mount", "--net"]
        return [*into, "env", f"--chdir={CODE}", *words]

    def shell(self, line, *, exit_code=0, environment=None) -> str:
        path = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin:/usr/lib/postgresql/bin", "HOME": HOME}
        done = subprocess.run(
            self.inside("bash", "-o", "pipefail", "-c", line), env=path | dict(environment or {}),
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=300
        )  # fmt: skip
        said = f"{self.name}$ {line}\n{done.stdout}{done.stderr}"
        assert exit_code is None or done.returncode == exit_code, said
        return done.stdout

    def write(self, path: str, text: str) -> None:
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def start(self, *words: str, log: str) -> subprocess.Popen[bytes]:
        """Start a service; its output is in /var/log there."""
        with (self.root / "var" / "log" / log).open("ab") as output:
            process = subprocess.Popen(
                self.inside(*words), stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                start_new_session=True, env={"PATH": os.environ["PATH"]}
            )  # fmt: skip
        self._running.append(process)
        return process

    def start_unit(self, name: str) -> subprocess.Popen[bytes]:
        """Do for a unit what systemd would: account, settings, folders; nothing else can be written."""
        unit = Unit(self.root / UNITS / re.sub(r"@\w+", "@", name), instance=re.sub(r".*@|\..*", "", name))
        folders = [f"/var/lib/{each}" for each in unit.words("StateDirectory")]
        folders += [f"/var/cache/{each}" for each in unit.words("CacheDirectory")]
        settings = f"set -a; . {unit.value('EnvironmentFile')}; set +a"
        protect = [
            *(f"mkdir -p -m 700 {folder}; chown mobility {folder}" for folder in folders),
            *(f"mount --bind {folder} {folder}" for folder in folders), "mount -t tmpfs tmpfs /tmp",
            "mount -o remount,bind,ro /",
            *(f"mount -o remount,bind,ro /{top}" for top in (*self._tops, "mnt") if top != "tmp"),
            f"cd {unit.value('WorkingDirectory')}; umask {unit.value('UMask')}",
            f"ulimit -c {unit.value('LimitCORE')}", settings,
        ]  # fmt: skip
        as_service = [
            "setpriv", "--reuid", unit.value("User"), "--regid", unit.value("Group"), "--init-groups",
            "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all",
            "env", *unit.environment(), unit.value("ExecStart")
        ]  # fmt: skip
        script = "\n".join(["set -e", *protect, "exec " + " ".join(as_service)])
        self._units[name] = self.start(
            "unshare", "--mount", "--propagation", "private", "env", "--ignore-environment", "HOME=/var/lib",
            "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "sh", "-c", script, log=f"{name}.log"
        )  # fmt: skip
        return self._units[name]

    def stop_unit(self, name: str) -> None:
        process = self._units.pop(name)
        process.terminate()
        process.wait(timeout=120)

    def log(self, name: str) -> str:
        return (self.root / "var" / "log" / name).read_text(errors="replace")

    def wait(self, line: str, *, what: str) -> None:
        deadline = time.monotonic() + START_S
        while subprocess.run(self.inside("bash", "-c", line), capture_output=True, check=False).returncode:
            if time.monotonic() > deadline:
                files = (self.written / "var" / "up" / "log").glob("*.log")
                logs = {each.name: each.read_text(errors="replace")[-3000:] for each in files}
                raise AssertionError(f"{self.name}: waited {START_S} s for {what}\n{logs}")
            time.sleep(0.3)

    def stop(self) -> None:
        for process in (*reversed(self._running), self._keeper):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(timeout=30)
        # Processes that have left its session, as those of PostgreSQL and nginx.
        words = ["ip", "netns", "pids", self.namespace]
        found = subprocess.run(words, capture_output=True, text=True, check=False)
        for pid in found.stdout.split():
            with suppress(ProcessLookupError):  # ended meanwhile
                os.kill(int(pid), signal.SIGKILL)
        _run("ip", "netns", "delete", self.namespace)


class Unit:
    def __init__(self, file: Path, *, instance: str) -> None:
        text = file.read_text().replace("%i", instance).replace("%H", os.uname().nodename)
        self._lines = [line.partition("=") for line in text.splitlines() if "=" in line and line[0] != "#"]

    def value(self, name: str) -> str:
        return next(value for key, _, value in self._lines if key == name)

    def words(self, name: str) -> list[str]:
        return self.value(name).split()

    def environment(self) -> list[str]:
        return [word for key, _, value in self._lines if key == "Environment" for word in value.split()]


@contextmanager
def machine(name: str, *, hosts: Mapping[str, str]) -> Iterator[Machine]:
    made = Machine(name, hosts=hosts)
    try:
        yield made
    finally:
        made.stop()


def _needed() -> list[Path]:
    """Paths that the account of the service must reach: our programs name their interpreter by its path."""
    interpreter = ROOT / ".venv" / "bin" / "python"
    return [interpreter, interpreter.resolve()]


def _closed() -> list[Path]:
    above = [folder for path in _needed() for folder in path.parents if len(folder.parts) > 1]
    return [folder for folder in above if not folder.stat().st_mode & 0o001]


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)
