"""Feeds that send one file each, all at once, as a program of an operator does, and wait for their batches.

A file that is not received is sent again, since the same file counts once.
"""

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, Final

PATIENCE_S: Final = 1200.0
TRY_AGAIN_S: Final = 2.0
LOOK_S: Final = 0.5
BLOCK_BYTES: Final = 1 << 20


@dataclass(slots=True, kw_only=True)
class Sent:
    """Outcome of a file; times are of the monotonic clock."""

    study: str
    began: float = 0.0
    received: float = 0.0
    ended: float = 0.0
    batch: dict[str, Any] = field(default_factory=dict)
    sent_again: list[str] = field(default_factory=list)
    problem: str = ""


class Feed(threading.Thread):
    """Sends `path` to `study` and waits until the batch is final.

    Parameters
    ----------
    token : of the feed, for this study
    """

    def __init__(self, address: tuple[str, int], *, study: str, token: str, path: Path) -> None:
        super().__init__()
        self._address = address
        self._headers = {"Authorization": f"Bearer {token}"}
        self._path = path
        self.sent = Sent(study=study)
        self.is_received = threading.Event()

    def run(self) -> None:
        self.sent.began = time.monotonic()
        deadline = self.sent.began + PATIENCE_S
        batch = self._patiently("PUT", deadline, expected=201)
        self.sent.received = time.monotonic()
        self.is_received.set()
        if batch is None:
            return
        while state := self._patiently("GET", deadline, batch=batch["batch"], expected=200):
            if state["is_final"]:
                self.sent.ended = time.monotonic()
                self.sent.batch = state
                return
            time.sleep(LOOK_S)

    def _patiently(
        self, method: str, deadline: float, *, expected: int, batch: str = ""
    ) -> dict[str, Any] | None:
        """The answer; asks again while the server says that it cannot answer now."""
        while True:
            try:
                status, answer = self._ask(method, batch)
            except (OSError, HTTPException) as error:
                status, answer = 0, {"detail": type(error).__name__}
            if status == expected:
                return answer
            problem = f"{method} {status} {answer.get('detail', '')}"
            if status not in (0, 503) or time.monotonic() > deadline:
                self.sent.problem = problem
                return None
            if method == "PUT":
                self.sent.sent_again.append(problem)
            time.sleep(TRY_AGAIN_S)

    def _ask(self, method: str, batch: str) -> tuple[int, dict[str, Any]]:
        connection = HTTPConnection(*self._address, timeout=PATIENCE_S, blocksize=BLOCK_BYTES)
        try:
            if method == "PUT":
                with self._path.open("rb") as body:
                    headers: Mapping[str, str] = self._headers | {
                        "Content-Length": str(self._path.stat().st_size)
                    }
                    connection.request(
                        "PUT", f"/api/v1/studies/{self.sent.study}/extracts/{self._path.name}", body=body,
                        headers=headers,
                    )  # fmt: skip
                    response = connection.getresponse()
            else:
                connection.request("GET", f"/api/v1/batches/{batch}", headers=self._headers)
                response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        is_json = "json" in response.headers.get("Content-Type", "")
        return response.status, json.loads(content) if is_json else {}
