"""The web server of the image, for benchmarks: started with the same words, at another address."""

import http.client
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from benchmarks.installation import ROOT

OPTIONS: Final = ("mobility.wsgi", "--config", "docker/gunicorn.conf.py")  # as the image starts it
START_S: Final = 60.0
STOP_S: Final = 30.0
POLL_S: Final = 0.05


class Web:
    """gunicorn with its processes.

    Parameters
    ----------
    folder : for its log
    address : host and port
    """

    def __init__(self, *, environment: Mapping[str, str], folder: Path, address: tuple[str, int]) -> None:
        self.address = address
        self.log = folder / "web.log"
        self._environment = dict(environment)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Process id of the parent of its processes."""
        if self._process is None:
            raise RuntimeError("the web server does not run")
        return self._process.pid

    def start(self) -> None:
        """Start it and wait until it answers.

        Raises
        ------
        SystemExit : it does not come up; the text ends with its log
        """
        host, port = self.address
        command = [sys.executable, "-m", "gunicorn", *OPTIONS, "--bind", f"{host}:{port}"]
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                command, cwd=ROOT, env=self._environment,
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
            )  # fmt: skip
        deadline = time.monotonic() + START_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise SystemExit(f"the web server does not start\n{self.log.read_text(errors='replace')}")
            time.sleep(POLL_S)

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection(*self.address, timeout=START_S)
        try:
            connection.request("GET", "/sign-in/")
            return connection.getresponse().status < 500
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def stop(self) -> None:
        """End it with its processes."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(timeout=STOP_S)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._process = None
