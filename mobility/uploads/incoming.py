"""Common parts of the addresses that receive files."""

from django.http import HttpRequest, HttpResponse

from mobility.base.errors import (
    DiskFullError,
    FeedEndedError,
    KeyAwayError,
    KeyMissingError,
    MobilityError,
    NoRoomError,
    OffsetError,
    QueueFullError,
    StagingUnavailableError,
    StudyClosedError,
    StudyStoppedError,
    SupersededError,
    UploadBrokenError,
    UploadBusyError,
    UploadLapsedError,
    UploadTooLargeError,
)
from mobility.batches.finalisation import AWAY, FULL

# After which a sender is taken for gone: without it a dead connection holds a thread for hours.
SILENCE_S = 60.0
RETRY_AFTER_S = 60
STATUS: dict[type[MobilityError], int] = {
    FeedEndedError: 403,
    OffsetError: 409,
    StudyClosedError: 410,
    SupersededError: 410,
    KeyMissingError: 410,
    DiskFullError: 507,
    UploadTooLargeError: 413,
    UploadBusyError: 423,
    UploadLapsedError: 503,
    QueueFullError: 503,
    StagingUnavailableError: 503,
    KeyAwayError: 503,
    StudyStoppedError: 503,
    NoRoomError: 507,
}


def status_of(error: MobilityError) -> int:
    """HTTP status of a refusal; of an upload that broke off, that of its cause."""
    cause = error.__cause__ if isinstance(error, UploadBrokenError) else error
    if isinstance(cause, OSError) and cause.errno in FULL:  # found out while the file arrived
        return STATUS[NoRoomError]
    if isinstance(cause, OSError) and cause.errno in AWAY and not isinstance(cause, TimeoutError):
        return STATUS[StagingUnavailableError]  # and not what the sender did
    return next((STATUS[kind] for kind in type(cause).__mro__ if kind in STATUS), 400)


def say_when(response: HttpResponse) -> None:
    """Add Retry-After for transient problems."""
    if response.status_code in (STATUS[QueueFullError], STATUS[NoRoomError]):
        response["Retry-After"] = str(RETRY_AFTER_S)


def notice_silence(request: HttpRequest) -> None:
    """Let reading the body fail when its sender has fallen silent, where the server tells its socket."""
    connection = request.META.get("gunicorn.socket")
    if connection is not None:
        connection.settimeout(SILENCE_S)
