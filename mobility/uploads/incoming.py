"""Common parts of the addresses that receive files."""

from django.http import HttpRequest, HttpResponse

from mobility.base import errors
from mobility.batches.finalisation import AWAY, FULL

# After which a sender is taken for gone: without it a dead connection holds a thread for hours.
SILENCE_S = 60.0
RETRY_AFTER_S = 60
STATUS: dict[type[errors.MobilityError], int] = {
    errors.FeedEndedError: 403,
    errors.OffsetError: 409,
    errors.StudyClosedError: 410,
    errors.SupersededError: 410,
    errors.KeyMissingError: 410,
    errors.DiskFullError: 507,
    errors.UploadTooLargeError: 413,
    errors.UploadBusyError: 423,
    errors.UploadLapsedError: 503,
    errors.QueueFullError: 503,
    errors.StagingUnavailableError: 503,
    errors.KeyAwayError: 503,
    errors.StudyStoppedError: 503,
    errors.NoRoomError: 507,
}


def status_of(error: errors.MobilityError) -> int:
    """HTTP status of a refusal; of an upload that broke off, that of its cause."""
    cause = error.__cause__ if isinstance(error, errors.UploadBrokenError) else error
    if isinstance(cause, OSError) and cause.errno in FULL:  # found out while the file arrived
        return STATUS[errors.NoRoomError]
    if isinstance(cause, OSError) and cause.errno in AWAY and not isinstance(cause, TimeoutError):
        return STATUS[errors.StagingUnavailableError]  # and not what the sender did
    return next((STATUS[kind] for kind in type(cause).__mro__ if kind in STATUS), 400)


def say_when(response: HttpResponse) -> None:
    """Add Retry-After for transient problems."""
    if response.status_code in (STATUS[errors.QueueFullError], STATUS[errors.NoRoomError]):
        response["Retry-After"] = str(RETRY_AFTER_S)


def notice_silence(request: HttpRequest) -> None:
    """Let reading the body fail when its sender has fallen silent, where the server tells its socket."""
    connection = request.META.get("gunicorn.socket")
    if connection is not None:
        connection.settimeout(SILENCE_S)
