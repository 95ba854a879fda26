"""Errors that reach a person: each text says what is wrong, where, and what to do. Never a row's content."""


class MobilityError(Exception):
    """Base of everything the operator zone refuses."""


class BatchFormatError(MobilityError):
    """The extract cannot be read as its profile says."""


class TooManyBadRowsError(MobilityError):
    """The share of rejected rows is above `max_bad_share`; nothing was published."""


class UploadBrokenError(MobilityError):
    """The upload ended before all bytes had arrived."""


class DayStateError(MobilityError):
    """A day cannot be closed or undone in its state."""


class KeyMissingError(MobilityError):
    """The keystore does not hold the key: it was destroyed, or another keystore is mounted."""


class SealBrokenError(MobilityError):
    """Sealed data is truncated, altered or of another key."""


class LeaseLostError(MobilityError):
    """Another worker took this batch over; this one must stop without writing."""


class StudyMissingError(MobilityError):
    """There is no such study in the vault."""
