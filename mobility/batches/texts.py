"""States and outcomes of batches and days in words, for the pages of operators."""

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from mobility.vault.models.batch import Batch
from mobility.vault.models.subscribers import VaultDay
from reports.base.formats import decimal

Words = dict[str, str | Promise]

BATCH_STATES: Words = {
    Batch.State.RECEIVING: _("The file is arriving"),
    Batch.State.QUEUED: _("Waiting for a worker"),
    Batch.State.READING: _("Reading and checking rows"),
    Batch.State.MERGING: _("Merging into the study"),
    Batch.State.PUBLISHING: _("Publishing"),
    Batch.State.DONE: _("Done"),
    Batch.State.FAILED: _("Failed"),
    Batch.State.CANCELLED: _("Cancelled"),
}
BATCH_BADGES: Words = {
    Batch.State.RECEIVING: "badge--accent",
    Batch.State.QUEUED: "",
    Batch.State.READING: "badge--accent",
    Batch.State.MERGING: "badge--accent",
    Batch.State.PUBLISHING: "badge--accent",
    Batch.State.DONE: "badge--ok",
    Batch.State.FAILED: "badge--bad",
    Batch.State.CANCELLED: "",
}
DAY_STATES: Words = {
    VaultDay.State.OPEN: _("open"),
    VaultDay.State.PUBLISHED: _("published"),
    VaultDay.State.CLOSED: _("closed"),
}
DAY_BADGES: Words = {
    VaultDay.State.OPEN: "badge--warn",
    VaultDay.State.PUBLISHED: "badge--ok",
    VaultDay.State.CLOSED: "",
}
# Every name of mobility.extracts.rows.counts.REJECTED and IGNORED.
ROW_REASONS: Words = {
    "wrong_columns": _("Not as many columns as the header"),
    "bad_text": _("Not text in the file's encoding, or with NUL bytes"),
    "empty_subscriber": _("No subscriber"),
    "bad_timestamp": _("Timestamp that cannot be read"),
    "nonexistent_time": _("Local time that does not exist (the clock was put forward)"),
    "empty_cell": _("No cell"),
    "unknown_value": _("Value outside the categories of its indicator"),
    "opted_out": _("Subscriber who has opted out"),
    "outside_period": _("Not on a day of the study"),
    "outside_area": _("Cell outside the area"),
    "outside_hours": _("Outside the visitor hours"),
    "day_closed": _("Day that is closed already"),
    "duplicate": _("Same subscriber, second and cell as another row"),
}
NOTES: Words = {
    "conflicting_value": _(
        "Subscribers with a second value for something that does not change: the first stays"
    ),
    "late_change": _("Daily values that would change after their answer was published: the answer stays"),
}
# Every fact of mobility.extracts.readers.Source.
SOURCES: Words = {
    "csv": _("CSV"),
    "parquet": _("Parquet"),
    "comma": _("commas"),
    "semicolon": _("semicolons"),
    "tab": _("tabs"),
    "pipe": _("pipes"),
    "gzip": _("gzip"),
    "zstd": _("zstd"),
    "utf-8": _("UTF-8"),
    "latin-1": _("Latin-1"),
}
NO_DATA = _("no data")


def batch_title(batch: Batch) -> str:
    """Describe a batch: the name of its file, or the requested change."""
    match batch.kind:
        case Batch.Kind.CLOSE_DAYS:
            return gettext("Close days 1 to %(day)s") % {"day": batch.day}
        case Batch.Kind.VOID_DAY:
            return gettext("Undo day %(day)s") % {"day": batch.day}
        case _:
            return batch.filename


def source_words(batch: Batch) -> str:
    """Describe the file: "CSV, semicolons, Latin-1, gzip"; empty before it was read."""
    found = (batch.source.get(fact) for fact in ("format", "delimiter", "encoding", "compression"))
    return ", ".join(str(SOURCES[fact]) for fact in found if fact)


def size_of(done: int, total: int | None) -> str:
    """Describe the progress of a file: "3.3 of 11.6 MB"; one number when all is done."""
    if total is None or done == total:
        return gettext("%(size)s MB") % {"size": megabytes(done)}
    return gettext("%(done)s of %(total)s MB") % {"done": megabytes(done), "total": megabytes(total)}


def megabytes(n_bytes: int) -> str:
    """Millions of bytes; something small is not nothing."""
    if n_bytes == 0 or n_bytes >= 50_000:
        return decimal(n_bytes / 1e6, decimals=1)
    return decimal(max(n_bytes, 1000) / 1e6, decimals=3)
