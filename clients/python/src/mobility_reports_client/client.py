"""Requests with a token, which goes into one header and nowhere else."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Any, Self
from urllib.error import HTTPError, URLError
from urllib.parse import parse_qs, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from mobility_reports_client.operations import Operations

TIMEOUT_S = 60
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
TOKEN_VARIABLE = "MOBILITY_REPORTS_TOKEN"  # noqa: S105 - a name, not a token


class ClientError(Exception):
    """The server could not be read; the text has no token and no address."""


class ProblemError(ClientError):
    """The server refused a request: `status`, `detail`, and `errors` by parameter."""

    def __init__(self, status: int, detail: str, errors: Any = None) -> None:
        super().__init__(f"{status}: {detail}")
        self.status, self.detail, self.errors = status, detail, errors


class _NoRedirect(HTTPRedirectHandler):
    """A token goes to the server that it is for, and not to where that one points."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Client(Operations):
    """The reading API of one server.

    Parameters
    ----------
    address : of the server, such as https://reports.example.org
    token : of /access/tokens/; better from a file (`from_token_file`) or the environment
    """

    __slots__ = ("_open", "_root", "_token")

    def __init__(self, address: str, token: str) -> None:
        parts = urlsplit(address)
        is_local = parts.scheme == "http" and parts.hostname in LOCAL_HOSTS
        is_plain = parts.hostname and not (parts.query or parts.fragment or "@" in parts.netloc)
        if not (parts.scheme == "https" or is_local) or not is_plain:
            raise ValueError("address must begin with https://, and have no query and no password")
        if not token or not token.isascii() or not token.isprintable() or " " in token:
            raise ValueError("token must be one word")
        self._root, self._token = f"{address.rstrip('/')}/api/v1/", token
        # Of https a proxy sees no headers; what is not encrypted does not leave this machine.
        self._open = build_opener(_NoRedirect, *([ProxyHandler({})] if is_local else [])).open

    @classmethod
    def from_token_file(cls, address: str, path: str | Path) -> Self:
        """Return a client whose token is the only word of a file."""
        # An error of decoding would have the token; the replaced character is refused without it.
        return cls(address, Path(path).read_text(encoding="ascii", errors="replace").strip())

    @classmethod
    def from_environment(cls, address: str) -> Self:
        """Return a client whose token is in MOBILITY_REPORTS_TOKEN."""
        return cls(address, os.environ.get(TOKEN_VARIABLE, ""))

    def __repr__(self) -> str:
        return f"Client({self._root!r})"

    def __reduce__(self) -> Any:
        raise TypeError("a client has a token, and is not written to files")

    def get(self, path: str, query: dict[str, Any]) -> Any:
        """Return the JSON at a path below /api/v1/; parameters that are None are left out."""
        asked = urlencode({key: each for key, each in query.items() if each is not None}, doseq=True)
        return self._read(Request(self._root + path + (f"?{asked}" if asked else "")))  # noqa: S310

    def post(self, path: str, body: Any) -> Any:
        """Return the answer to a question in JSON."""
        request = Request(self._root + path, data=json.dumps(body).encode(), method="POST")  # noqa: S310
        request.add_header("Content-Type", "application/json")
        return self._read(request)

    def _read(self, request: Request) -> Any:
        request.add_unredirected_header("Authorization", f"Bearer {self._token}")
        request.add_header("Accept", "application/json")
        try:
            with self._open(request, timeout=TIMEOUT_S) as response:
                return json.load(response)
        except HTTPError as error:
            with error:
                raise _problem(error.code, error.read(100_000)) from None
        except (URLError, HTTPException, OSError, ValueError) as error:
            raise ClientError(f"the server gave no answer ({type(error).__name__})") from None


def every(operation: Callable[..., Mapping[str, Any]], *args: Any, **asked: Any) -> Iterator[Any]:
    """Entries of a list, part by part: `every(client.windows, "my-study", "gender")`."""
    offset = 0
    while True:
        part = operation(*args, **asked, offset=offset)
        yield from part["items"]
        if not part["next"]:
            return
        # Only the number is taken: the address of the next part could be anywhere.
        (text,) = parse_qs(urlsplit(part["next"]).query)["offset"]
        if int(text) <= offset:
            raise ClientError("the next part of a list must be behind the last one")
        offset = int(text)


def _problem(status: int, body: bytes) -> ProblemError:
    try:
        found = json.loads(body)
        return ProblemError(status, str(found.get("detail") or found.get("title")), found.get("errors"))
    except (ValueError, AttributeError):
        return ProblemError(status, "the server gave no reason")
