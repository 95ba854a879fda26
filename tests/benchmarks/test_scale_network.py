"""Hosts of a benchmark: they reach each other by their addresses, bytes are counted, all of it goes away."""

import os
import shutil
import subprocess
import sys

import pytest

from benchmarks.scale_network import Network

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("ip"), reason="network namespaces need root and iproute2"
)
N_BYTES = 200_000
RECEIVE = "import socket; s = socket.create_server(('', 7000)); print('ready', flush=True); " + (
    "c = s.accept()[0]; print(sum(map(len, iter(lambda: c.recv(65536), b''))))"
)
SEND = f"import socket, sys; socket.create_connection((sys.argv[1], 7000)).sendall(bytes({N_BYTES}))"


def names() -> str:
    listed = ["ip", "netns", "list"], ["ip", "-o", "link"]
    return "".join(
        subprocess.run(words, check=True, capture_output=True, text=True).stdout for words in listed
    )


def test_hosts_talk_to_each_other_and_their_bytes_are_counted() -> None:
    with Network(2) as network:
        tag = network.runs_in(0)[-1].rpartition("-")[0]
        before = network.traffic(0)
        with subprocess.Popen(
            [*network.runs_in(1), sys.executable, "-c", RECEIVE], stdout=subprocess.PIPE, text=True
        ) as receiver:
            assert receiver.stdout is not None and receiver.stdout.readline() == "ready\n"
            sender = [*network.runs_in(0), sys.executable, "-c", SEND, network.addresses[1]]
            subprocess.run(sender, check=True)
            assert receiver.stdout.readline() == f"{N_BYTES}\n"
        passed = network.traffic(0).since(before)
        assert N_BYTES < passed.sent < 1.1 * N_BYTES
        assert passed.received < 0.1 * N_BYTES
        assert tag in names()
    assert tag not in names()


def test_whatever_ends_the_run_takes_the_hosts_away() -> None:
    tag = ""
    with pytest.raises(KeyboardInterrupt), Network(1) as network:
        tag = network.runs_in(0)[-1]
        raise KeyboardInterrupt
    assert tag and tag not in names()
