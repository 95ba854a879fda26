"""The way to an analyst server that runs apart: signed requests over HTTPS, and what their answers mean."""

import json
import ssl
import time
from collections.abc import Iterable
from http.client import HTTPException
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, Request, build_opener
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from django.conf import settings
from django.utils.translation import gettext_noop as _

from mobility.base.errors import MobilityError
from mobility.base.locks import exclusive
from mobility.base.runtime import write_private
from mobility.base.timed_http import TimedHandler, TimedSecureHandler
from reports.transfer.messages import Envelope, Kind, digest_of

API: Final = "/api/v1/intake/studies/"
LOCAL_HOSTS: Final = ("localhost", "127.0.0.1", "::1")
# A study has an id for each publication and receipt; what JSON becomes in memory is thirty times as large.
MAX_ANSWER_BYTES: Final = 10_000_000
MAX_DETAIL: Final = 300  # characters of a refusal that are kept
PASSING: Final = (408, 425, 429)  # as are all from 500 on
_UNREACHED: Final = _("the analyst server cannot be reached (%(why)s)")
PATIENCE: Final = 2  # MOBILITY_HANDOVER_TIMEOUT_S for all messages about one study: its next file waits
# Answers may provoke these: JSON that is nested deeply, or becomes too large.
UNREADABLE: Final = (ValueError, RecursionError, MemoryError)


class HandoverError(MobilityError):
    """A publication could not be handed over; it stays in the vault, and nothing is lost."""


class HandoverWaitsError(HandoverError):
    """The analyst server does not answer as it should now; the same message can be sent again."""


class HandoverRefusedError(HandoverError):
    """The analyst server refuses a message: someone has to do something."""


class HandoverAheadError(HandoverRefusedError):
    """The analyst server claims what this vault does not know of; nothing is sent, and intake continues."""


def check_analyst_url(url: str) -> None:
    """Raise ValueError unless no one between here and there can read or change what is sent."""
    parts = urlsplit(url)
    is_plain = parts.scheme == "http" and parts.hostname in LOCAL_HOSTS
    if not (parts.scheme == "https" or is_plain) or not parts.hostname:
        raise ValueError(f"MOBILITY_ANALYST_URL must begin with https://, got {url!r}")
    if parts.query or parts.fragment or parts.username is not None:
        raise ValueError("MOBILITY_ANALYST_URL must have no user name, query or fragment")


def sender_key() -> Ed25519PrivateKey:
    """The key in MOBILITY_SENDER_KEY_FILE, made at first use.

    Raises
    ------
    HandoverRefusedError : the file holds something else
    """
    path = settings.MOBILITY_SENDER_KEY_FILE
    if not path.exists():
        with exclusive(settings.PATHS.run / "sender_key.lock"):
            if not path.exists():
                key = Ed25519PrivateKey.generate()
                write_private(
                    path, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
                )
    try:
        found = load_pem_private_key(path.read_bytes(), password=None)
    except ValueError:
        found = None
    if not isinstance(found, Ed25519PrivateKey):
        raise HandoverRefusedError(
            _("MOBILITY_SENDER_KEY_FILE must contain an Ed25519 private key, got %(path)s"), path=str(path)
        )
    return found


class _NoRedirect(HTTPRedirectHandler):
    """A signed message goes where it was sent to, and nowhere else."""

    def redirect_request(self, *_: Any) -> None:
        return None


class AnalystServer:
    """The intake of the server at MOBILITY_ANALYST_URL, for as many messages as a short while holds.

    It decides what it answers and how slowly, and must not hold this zone up with either.

    Raises
    ------
    HandoverWaitsError, HandoverRefusedError : in every method
    """

    def __init__(self) -> None:
        try:
            check_analyst_url(settings.MOBILITY_ANALYST_URL)
        except ValueError as error:  # commands do not start with it, but web servers and workers do
            raise HandoverRefusedError(str(error)) from None
        self._key = sender_key()
        self._opener = opener()
        self._until = time.monotonic() + PATIENCE * settings.MOBILITY_HANDOVER_TIMEOUT_S

    def state(self, study: str) -> dict[str, Any]:
        """The server's state of a study."""
        return self._ask("GET", "state", study, path="/state")

    def send_study(self, study: str, body: bytes) -> None:
        self._ask("POST", "study", study, body=body)

    def send_publication(self, study: str, publication: UUID, body: bytes) -> None:
        self._ask(
            "POST",
            "publication",
            study,
            item=str(publication),
            path=f"/publications/{publication}",
            body=body,
        )

    def send_receipts(self, study: str, body: bytes) -> None:
        self._ask("POST", "receipts", study, path="/receipts", body=body)

    def send_closed(self, study: str, body: bytes) -> None:
        self._ask("POST", "closed", study, path="/closed", body=body)

    def _ask(
        self, method: str, kind: Kind, study: str, *, item: str = "", path: str = "", body: bytes = b""
    ) -> dict[str, Any]:
        left_s = self._until - time.monotonic()
        if left_s <= 0:
            raise HandoverWaitsError(
                _("the analyst server is too slow to receive all totals at once: the rest follows")
            )
        envelope = Envelope(
            kind=kind,
            sender=settings.MOBILITY_SENDER_NAME,
            study=study,
            item=item,
            sent_at=int(time.time()),
            digest=digest_of(body),
        )
        request = Request(  # noqa: S310 - the scheme was checked
            f"{settings.MOBILITY_ANALYST_URL}{API}{study}{path}",
            data=body if method == "POST" else None,
            headers={**envelope.signed(self._key), "Content-Type": "application/octet-stream"},
            method=method,
        )
        return _answer(self._opener, request, timeout_s=min(left_s, settings.MOBILITY_HANDOVER_TIMEOUT_S))


def opener() -> OpenerDirector:
    """Certificates are verified: by those of MOBILITY_ANALYST_CA_FILE, or by those of the system."""
    ca_file = settings.MOBILITY_ANALYST_CA_FILE or None
    try:
        context = ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise HandoverRefusedError(
            _("MOBILITY_ANALYST_CA_FILE must contain certificates in PEM format, got %(path)s (%(error)s)"),
            path=str(ca_file),
            error=type(error).__name__,
        ) from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return build_opener(_NoRedirect, TimedHandler, TimedSecureHandler(context=context))


def _answer(opener: OpenerDirector, request: Request, *, timeout_s: float) -> dict[str, Any]:
    try:
        with opener.open(request, timeout=timeout_s) as response:
            content = json.loads(response.read(MAX_ANSWER_BYTES))
    except HTTPError as error:
        with error:
            raise _refusal(error) from None
    except ssl.SSLError as error:
        raise _unverified(error) from None
    except URLError as error:
        if isinstance(error.reason, ssl.SSLError):
            raise _unverified(error.reason) from None
        raise HandoverWaitsError(_UNREACHED, why=_reason(error)) from None
    except UNREADABLE:
        raise HandoverWaitsError(
            _("the server at MOBILITY_ANALYST_URL does not accept handovers: check the address")
        ) from None
    except (OSError, HTTPException) as error:
        raise HandoverWaitsError(_UNREACHED, why=_reason(error)) from None
    if not isinstance(content, dict):
        raise HandoverWaitsError(
            _("the server at MOBILITY_ANALYST_URL does not accept handovers: check the address")
        )
    return content


def _refusal(error: HTTPError) -> HandoverError:
    detail = _printable(_detail(error))
    if error.code in PASSING or error.code >= 500:
        text = _("the analyst server cannot accept the handover now (HTTP %(code)s)")
        if detail:
            text = _("the analyst server cannot accept the handover now (HTTP %(code)s) %(detail)s")
        return HandoverWaitsError(text, code=str(error.code), detail=detail)
    if not detail:  # not its format: another server, or another version
        return HandoverRefusedError(
            _(
                "the server at MOBILITY_ANALYST_URL does not accept handovers (HTTP %(code)s): check the "
                "address"
            ),
            code=str(error.code),
        )
    return HandoverRefusedError(_("the analyst server refuses: %(detail)s"), detail=detail)


def _detail(error: HTTPError) -> str:
    try:
        content = json.loads(error.read(100_000))
    except (*UNREADABLE, OSError, HTTPException):
        return ""
    detail = content.get("detail", "") if isinstance(content, dict) else ""
    return detail if isinstance(detail, str) else ""


def _unverified(error: ssl.SSLError) -> HandoverWaitsError:
    why = getattr(error, "verify_message", "") or error.reason or type(error).__name__
    return HandoverWaitsError(
        _(
            "the certificate of the analyst server cannot be verified (%(why)s): in a closed network, set "
            "MOBILITY_ANALYST_CA_FILE to the certificate of its authority"
        ),
        why=_printable([why]),
    )


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", error)
    return _printable(getattr(reason, "strerror", None) or type(reason).__name__)


def _printable(text: str | Iterable[str]) -> str:
    """Make another server's message fit for a page and a log."""
    shown = "".join(letter if letter.isprintable() else " " for letter in "".join(text))
    return shown[:MAX_DETAIL]
