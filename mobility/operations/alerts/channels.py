"""Ways to notify people of alerts: e-mail and a webhook. Only the content of a message leaves."""

import hashlib
import hmac
import json
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from http.client import HTTPException
from smtplib import SMTPException
from typing import Any, Final, Protocol
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import (
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    build_opener,
)

from django.conf import settings
from django.core.mail import EmailMessage

from mobility.base.errors import MobilityError
from mobility.operations.findings import Fact

TIMEOUT_S: Final = 10
LOCAL_HOSTS: Final = ("localhost", "127.0.0.1", "::1")
ID_HEADER: Final = "Mobility-Alert-Id"
TIME_HEADER: Final = "Mobility-Alert-Time"
SIGNATURE_HEADER: Final = "Mobility-Alert-Signature"


class ChannelError(MobilityError):
    """A channel did not take a message; the text is a kind of error, never its words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """Message to people; as JSON it is the body of the webhook (docs/alerts.md)."""

    id: str  # the same when it is sent again
    kind: str  # opened, worse, again, reminder, ended, test
    at: str
    zone: str
    code: str
    level: str
    subject: str
    since: str
    title: str
    what: str
    todo: str
    status_url: str
    runbook: str
    facts: Mapping[str, Fact] = field(default_factory=dict)
    version: int = 1


class Channel(Protocol):
    """A way to tell people."""

    name: str

    def send(self, messages: Sequence[Message]) -> Iterator[Message]:
        """Send, and yield each message once it was taken.

        Raises
        ------
        ChannelError : it did not take the next one
        """


def channels() -> list[Channel]:
    """Return the channels that are set up."""
    found: list[Channel] = []
    if settings.MOBILITY_ALERT_EMAIL_TO:
        found.append(Email())
    if settings.MOBILITY_ALERT_WEBHOOK_URL:
        found.append(Webhook())
    return found


class Email:
    """Send one mail for all messages of the moment."""

    name = "email"

    def send(self, messages: Sequence[Message]) -> Iterator[Message]:
        if not messages:
            return
        mail = EmailMessage(
            subject=subject_of(messages),
            body="\n\n".join(text_of(message) for message in messages) + "\n",
            to=settings.MOBILITY_ALERT_EMAIL_TO,
            headers={ID_HEADER: messages[0].id},
        )
        try:
            mail.send()
        except (SMTPException, OSError, ValueError) as error:
            raise ChannelError(type(error).__name__) from None
        yield from messages


class Webhook:
    """A signed POST for each message."""

    name = "webhook"

    def send(self, messages: Sequence[Message]) -> Iterator[Message]:
        try:
            check_webhook_url(settings.MOBILITY_ALERT_WEBHOOK_URL)
            opener = _opener()
        except (ValueError, OSError):
            raise ChannelError("wrong_address") from None
        for message in messages:
            _post(opener, message)
            yield message


def check_webhook_url(url: str) -> None:
    """Raise ValueError unless no one between here and there can read or change what is sent."""
    parts = urlsplit(url)
    is_plain = parts.scheme == "http" and parts.hostname in LOCAL_HOSTS
    if not (parts.scheme == "https" or is_plain) or not parts.hostname:
        # The address itself may hold a secret: it is not quoted.
        raise ValueError(f"MOBILITY_ALERT_WEBHOOK_URL must begin with https://, got {parts.scheme}://")


def body_of(message: Message) -> bytes:
    return json.dumps(asdict(message), sort_keys=True, ensure_ascii=False).encode()


def signature_of(body: bytes, *, sent_at: str, secret: str) -> str:
    """HMAC-SHA256 of time, full stop and body: so an old message cannot be sent as a new one."""
    return hmac.new(secret.encode(), sent_at.encode() + b"." + body, hashlib.sha256).hexdigest()


def subject_of(messages: Sequence[Message]) -> str:
    """The worst first; its own line cannot be put into a header."""
    more = f" (+{len(messages) - 1})" if len(messages) > 1 else ""
    first = messages[0]
    return " ".join(f"[Mobility reports] {first.kind}: {first.level}: {first.title}{more}".split())


def text_of(message: Message) -> str:
    lines = [
        f"{message.kind.upper()}  {message.level}  {message.code}  {message.subject}".rstrip(),
        message.title,
        message.what,
        *([message.todo] if message.kind != "ended" else []),
        f"Since {message.since}. Zone {message.zone}.",
        f"Status: {message.status_url}",
        f"Runbook: {message.runbook}",
    ]
    return "\n".join(line for line in lines if line)


class _NoRedirect(HTTPRedirectHandler):
    """A message goes where it was sent to, and nowhere else."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _opener() -> OpenerDirector:
    context = ssl.create_default_context(cafile=settings.MOBILITY_ALERT_WEBHOOK_CA_FILE or None)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # No proxy, also if the environment names one: it would read what goes to this machine.
    return build_opener(ProxyHandler({}), _NoRedirect, HTTPSHandler(context=context))


def _post(opener: OpenerDirector, message: Message) -> None:
    body, sent_at = body_of(message), str(int(time.time()))
    headers = {"Content-Type": "application/json", ID_HEADER: message.id, TIME_HEADER: sent_at}
    if settings.MOBILITY_ALERT_WEBHOOK_SECRET:
        secret = settings.MOBILITY_ALERT_WEBHOOK_SECRET
        headers[SIGNATURE_HEADER] = "sha256=" + signature_of(body, sent_at=sent_at, secret=secret)
    url = settings.MOBILITY_ALERT_WEBHOOK_URL
    request = Request(url, data=body, headers=headers, method="POST")  # noqa: S310 - the scheme was checked
    try:
        with opener.open(request, timeout=TIMEOUT_S):
            return  # nothing of the answer is read
    except HTTPError as error:
        error.close()
        raise ChannelError(f"http_{error.code}") from None
    except URLError as error:
        raise ChannelError(type(error.reason).__name__) from None
    except (OSError, HTTPException, ValueError) as error:
        raise ChannelError(type(error).__name__) from None
