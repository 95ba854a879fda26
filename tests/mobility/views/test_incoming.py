"""What the addresses for files share: statuses, and senders that fall silent."""

import errno
import socket

import pytest
from django.test import RequestFactory

from mobility.errors import (
    KeyAwayError,
    KeyMissingError,
    MobilityError,
    NoRoomError,
    OffsetError,
    QueueFullError,
    StagingUnavailableError,
    UploadBrokenError,
)
from mobility.views import incoming


def test_a_sender_that_falls_silent_does_not_hold_a_thread_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incoming, "SILENCE_S", 0.05)
    here, there = socket.socketpair()
    with here, there:
        request = RequestFactory().put("/", **{"gunicorn.socket": here})
        incoming.notice_silence(request)
        with pytest.raises(TimeoutError):
            here.recv(1)


def test_a_server_that_does_not_tell_its_socket_is_fine() -> None:
    incoming.notice_silence(RequestFactory().put("/"))


class KindOfMissing(KeyMissingError):
    """A refusal of a kind that has a status."""


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (OffsetError(3), 409),
        (KindOfMissing("gone"), 410),
        (QueueFullError("many"), 503),
        (StagingUnavailableError("down"), 503),
        (KeyAwayError("another keystore"), 503),
        (MobilityError("other"), 400),
    ],
)
def test_refusals_have_a_status(error: MobilityError, status: int) -> None:
    assert incoming.status_of(error) == status


@pytest.mark.parametrize(
    ("cause", "status"),
    [
        (StagingUnavailableError("down"), 503),
        (NoRoomError("full"), 507),
        (OSError(errno.ENOSPC, "full"), 507),
        (OSError(errno.EDQUOT, "full"), 507),
        (OSError(errno.EROFS, "read-only"), 503),
        (OSError(errno.EACCES, "closed"), 503),
        (OSError(errno.ESTALE, "stale"), 503),
        (OSError(errno.ECONNRESET, "reset"), 400),
        (TimeoutError(errno.ETIMEDOUT, "silent"), 400),
        (UploadBrokenError("early"), 400),
        (None, 400),
    ],
)
def test_an_upload_that_broke_off_has_the_status_of_its_cause(cause: Exception | None, status: int) -> None:
    broken = UploadBrokenError("the upload broke off")
    broken.__cause__ = cause
    assert incoming.status_of(broken) == status
