"""Errors that reach a person: each text says what is wrong, where, and what to do. Never a row's content."""

from django.utils.translation import gettext_noop as _

from reports.base.reasons import Reason, Value


class MobilityError(Exception):
    """Base of everything the operator zone refuses; `text` and `values` are those of its reason."""

    def __init__(self, text: str = "", **values: Value) -> None:
        super().__init__(Reason(text, **values))

    @property
    def reason(self) -> Reason:
        """Return its text, which pages can word in the language of their reader."""
        return Reason(self.args[0])


class BatchFormatError(MobilityError):
    """The extract cannot be read as its profile says."""


class TooManyBadRowsError(MobilityError):
    """The share of rejected rows is above `max_bad_share`; nothing was published."""


class UploadBrokenError(MobilityError):
    """The upload ended before all bytes had arrived."""


class UploadLapsedError(MobilityError):
    """The upload paused for longer than it may, and was ended; the same file can be sent again."""


class DayStateError(MobilityError):
    """A day cannot be closed or undone in its state."""


class KeyMissingError(MobilityError):
    """The keystore does not hold the key: it was destroyed, or another keystore is mounted."""


class KeyDestroyedError(KeyMissingError):
    """The key was destroyed, and a tombstone in the keystore says so."""


class KeyAwayError(KeyMissingError):
    """A key that is needed is not in the keystore that this host sees; the same work can be tried again."""

    def __init__(self, missing: KeyMissingError) -> None:
        super().__init__(_("%(missing)s; check that the right keystore is mounted"), missing=missing.reason)


class SealBrokenError(MobilityError):
    """Sealed data is truncated, altered or of another key."""


class SupersededError(MobilityError):
    """This work is no longer wanted: the batch has moved on without it; stop without writing."""


class StudyMissingError(MobilityError):
    """There is no such study in the vault."""


class CancelError(MobilityError):
    """A batch can no longer be cancelled."""


class StudyClosedError(MobilityError):
    """The study was closed: it accepts no files or changes."""


class StudyStoppedError(MobilityError):
    """A restored database lacks data that would count twice: the study accepts no files or changes."""


class StagingUnavailableError(MobilityError, ConnectionError):
    """The storage of staged data does not answer now; the same work can be tried again."""


class DiskFullError(MobilityError):
    """A disk of the operator zone is full; the same work can be tried again when there is room."""


class UploadTooLargeError(MobilityError):
    """The file is larger than this site accepts, or than its sender announced."""


class NoRoomError(MobilityError):
    """The file would not fit into the staging folder."""


class QueueFullError(MobilityError):
    """Too much of the study waits: it accepts no files now."""


class UploadBusyError(MobilityError):
    """Bytes of the upload are arriving over another connection."""


class OffsetError(MobilityError):
    """An upload continues at another byte; `offset` says which."""

    def __init__(self, offset: int) -> None:
        self.offset = offset
        super().__init__(f"the upload resumes at byte {offset}: send the file from there")


class FeedTokenError(MobilityError):
    """A token cannot be made like that."""


class FeedEndedError(MobilityError):
    """The account that made a token may no longer send files of its study."""


class OperationsError(Exception):
    """Nothing was changed, unless the text says so."""
