"""States and outcomes of batches and days in words, for the pages of operators."""

from collections.abc import Sequence

from django.utils.functional import Promise
from django.utils.translation import gettext, override
from django.utils.translation import gettext_lazy as _

from mobility.batches.queries import StudyHead
from mobility.vault.models.batch import Batch
from mobility.vault.models.subscribers import VaultDay
from reports.base.formats import decimal, short_day, time_title
from reports.base.reasons import Reason

Words = dict[str, str | Promise]

BATCH_STATES: Words = {
    Batch.State.RECEIVING: _("Receiving the file"),
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
    "wrong_columns": _("The number of columns differs from the number in the header"),
    "bad_text": _("Text is not valid in the file's encoding, or contains NUL bytes"),
    "empty_subscriber": _("Subscriber ID is missing"),
    "bad_timestamp": _("Unreadable timestamp"),
    "nonexistent_time": _("Local time that does not exist (clocks were put forward)"),
    "empty_cell": _("Cell ID is missing"),
    "unknown_value": _("Value outside the indicator's categories"),
    "opted_out": _("Subscriber has opted out"),
    "outside_period": _("Event outside the study period"),
    "outside_area": _("Cell outside the area"),
    "outside_hours": _("Event outside the daily hours of the study"),
    "day_closed": _("Day is already closed"),
    "duplicate": _("Same subscriber, time (to the second) and cell as another row"),
}
# Of a study of events, where they differ.
EVENT_ROW_REASONS: Words = {"duplicate": _("Same event as another row of this file or of an earlier file")}
NOTES: Words = {
    "conflicting_value": _(
        "Subscribers with conflicting values for a static indicator that they report on (the first value is "
        "kept)"
    ),
    "late_change": _(
        "Daily values that changed after an answer was recorded for the day (the recorded answer stays "
        "the same)"
    ),
    "slot_closed": _(
        "Rows, including duplicates, in time slots that were already closed (the counts for closed slots "
        "are final)"
    ),
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
NOTHING_COUNTED = _("No rows counted")  # instead of "done"
# Instead of the above of a batch that is only a check: nothing of it is merged or published.
CHECK_STATES: Words = {
    Batch.State.MERGING: _("Counting answers"),
    Batch.State.PUBLISHING: _("Finishing the check"),
    Batch.State.DONE: _("Checked"),
}


def reason_of_rows(code: str, *, of_events: bool) -> Reason:
    """Why a row is unused, as a reason that can be stored."""
    with override("en"):  # the text of the catalogue
        return Reason(row_reason(code, of_events=of_events))


def row_reason(reason: str, *, of_events: bool) -> str:
    """Return why a row is unused, in words."""
    return str((EVENT_ROW_REASONS if of_events else ROW_REASONS).get(reason, ROW_REASONS[reason]))


def help_entry(failure: Reason) -> str:
    """Return the heading in the runbook of failed batches that is about a reason."""
    if failure.values.keys() >= {"rejected", "limit"}:
        return "rows-rejected"
    return "columns-differ" if failure.values.keys() >= {"missing", "count"} else "other-reasons"


def state_of(batch: Batch) -> tuple[str, str]:
    """State of a batch in words, and the class of its badge; a check that is done looks different."""
    if batch.counts_nothing:
        return str(NOTHING_COUNTED), "badge--warn"
    if batch.validate_only and batch.state in CHECK_STATES:
        return str(CHECK_STATES[batch.state]), "badge--accent"
    return str(BATCH_STATES[batch.state]), str(BATCH_BADGES[batch.state])


def batch_title(batch: Batch, head: StudyHead) -> str:
    """Give a batch of the study `head` a title: its file name, or the requested change with its date."""
    day = "" if batch.day is None else short_day(head.date_of(batch.day))
    match batch.kind:
        case Batch.Kind.CLOSE_DAYS:
            return gettext("Close days through %(day)s") % {"day": day}
        case Batch.Kind.CLOSE_SLOTS:
            time = time_title(head.slot_end(batch.slots_through or 1))
            return gettext("Close time slots through %(time)s") % {"time": time}
        case Batch.Kind.VOID_DAY:
            return gettext("Undo %(day)s") % {"day": day}
        case _:
            return batch.filename


def undone_words(days: Sequence[int], head: StudyHead) -> str:
    """Name the days of a file that were undone later: "undone: 31 May"; empty without any."""
    if not days:
        return ""
    return gettext("undone: %(days)s") % {"days": ", ".join(short_day(head.date_of(day)) for day in days)}


def batch_days(batch: Batch, head: StudyHead) -> str:
    """Days of which a file has rows: "31 May to 2 Jun"; empty for another change."""
    if batch.kind not in Batch.FILES or not batch.days_touched:
        return ""
    first, last = (short_day(head.date_of(day)) for day in (batch.days_touched[0], batch.days_touched[-1]))
    if first == last:
        return first
    return gettext("%(first)s to %(last)s") % {"first": first, "last": last}


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
