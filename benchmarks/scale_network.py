"""Hosts for benchmarks: network namespaces with an address each, on their own bridge."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

FIRST_HOST: Final = 10
COUNTERS: Final = ("rx_bytes", "tx_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Bytes that a host has sent and received so far, with the headers of its packets."""

    sent: int
    received: int

    def since(self, before: "Traffic") -> "Traffic":
        return Traffic(sent=self.sent - before.sent, received=self.received - before.received)


class Network(AbstractContextManager["Network"]):
    """Make a bridge with `hosts` hosts; all of it is removed at the end of a `with` block.

    Attributes
    ----------
    gateway : address of this machine on the bridge
    network : addresses of all
    """

    def __init__(self, hosts: int) -> None:
        if os.geteuid() != 0 or not shutil.which("ip"):
            raise SystemExit("network namespaces need root, and the program ip (Debian: iproute2)")
        number = os.getpid() % 250
        self._tag = f"mb{os.getpid() % 100_000}"  # a name of an interface has 15 characters at most
        self.gateway = f"10.213.{number}.1"
        self.network = f"10.213.{number}.0/24"
        self.addresses = [f"10.213.{number}.{FIRST_HOST + host}" for host in range(hosts)]

    def _host(self, host: int) -> str:
        return f"{self._tag}-{host}"

    def __enter__(self) -> Self:
        try:
            _ip("link", "add", self._tag, "type", "bridge")
            _ip("addr", "add", f"{self.gateway}/24", "dev", self._tag)
            _ip("link", "set", self._tag, "up")
            for host, address in enumerate(self.addresses):
                self._add(self._host(host), address)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def _add(self, name: str, address: str) -> None:
        _ip("netns", "add", name)
        _ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
        _ip("link", "set", name, "master", self._tag, "up")
        _ip("-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
        for link in ("lo", "eth0"):
            _ip("-n", name, "link", "set", link, "up")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for host in range(len(self.addresses)):
            for kind_of in ("link", "netns"):  # the kernel takes its time over cables of a host that is gone
                with suppress(subprocess.CalledProcessError):
                    _ip(kind_of, "delete", self._host(host))
        with suppress(subprocess.CalledProcessError):
            _ip("link", "delete", self._tag)

    def runs_in(self, host: int) -> Sequence[str]:
        """Words before a command that runs on a host."""
        return ("ip", "netns", "exec", self._host(host))

    def traffic(self, host: int) -> Traffic:
        """Return the bytes sent through the cable of a host; this end receives what the host sends."""
        folder = Path("/sys/class/net") / self._host(host) / "statistics"
        sent, received = (int((folder / name).read_text()) for name in COUNTERS)
        return Traffic(sent=sent, received=received)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)
