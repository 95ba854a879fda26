"""Findings of checks, in sentences: the same on pages and on the command line."""

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.utils.translation import gettext, gettext_lazy, ngettext

from mobility.batches.quality.calendar import StudyCalendar
from mobility.batches.quality.coverage import DayCoverage, DayStatus
from mobility.batches.quality.facts import Facts, Share
from mobility.batches.quality.look_back import Basis, Comparison, LookBack, SilentHours
from mobility.batches.texts import row_reason
from mobility.vault.models.batch import Batch
from reports.base.formats import day_title, listed, number, percent, window_title

# One decimal would make nothing of a smaller share.
SMALL_SHARE = 0.001
# Of the rows of a file of subscribers: registers repeat few of them, files of events most.
REPEATED_SHARE = 0.2
VERDICTS = {
    "usual": gettext_lazy("normal"),
    "low": gettext_lazy("unusually low"),
    "high": gettext_lazy("unusually high"),
    "few": gettext_lazy("not compared: the usual value is too small"),
}


def comparison_words(each: Comparison, calendar: StudyCalendar) -> dict[str, Any]:
    """A line of the table of comparisons."""
    values = _values(each, of_events=calendar.of_events)
    if each.day is not None:
        values["figure"] = f"{day_title(calendar.date_of(each.day))}: {values['figure']}"
    return {**values, "verdict": VERDICTS[each.verdict], "is_warning": each.is_warning}


def _values(each: Comparison, *, of_events: bool) -> dict[str, str]:
    """A figure, what it usually is and what that is taken of, as text."""
    return {
        "figure": figure_words(each, of_events=of_events),
        "value": figure_value(each, each.value),
        "usual": figure_value(each, each.usual),
        "basis": basis_words(each.basis, each.n),
    }


def files_words(files: Mapping[str, int]) -> str:
    """Files by source: "default (2 files), roaming (1 file)"."""
    text = [
        ngettext("%(source)s (%(n)d file)", "%(source)s (%(n)d files)", n) % {"source": source, "n": n}
        for source, n in files.items()
    ]
    return ", ".join(text)


def part_of_all(share: Share) -> str:
    """Return both numbers and the share: "10 of 40,312 (under 0.1%)"."""
    both = gettext("%(part)s of %(all)s") % {"part": number(share.part), "all": number(share.of)}
    if share.value is None:
        return both
    if 0 < share.value < SMALL_SHARE:
        small = gettext("under %(share)s") % {"share": percent(SMALL_SHARE)}
        return f"{both} ({small})"
    return f"{both} ({percent(share.value)})"


def moment(when: datetime) -> str:
    """A second of a local day, with the offset that says which of two folded ones."""
    offset = when.strftime("%z")
    return f"{day_title(when.date())}, {when:%H:%M:%S} (UTC{offset[:3]}:{offset[3:]})"


def warnings(found: LookBack, calendar: StudyCalendar) -> Iterator[str]:
    """Describe everything unusual about a file, with the usual values."""
    for silent in found.silent:
        yield silence(silent, calendar)
    for each in found.warnings:
        yield _comparison(each, calendar)


def misfits(batch: Batch, facts: Facts, calendar: StudyCalendar) -> Iterator[str]:
    """Files that no rule refuses, and that are hardly what was meant: no row counts, or the wrong profile."""
    if batch.counts_nothing:
        yield nothing_counts(batch, facts, calendar)
    repeated, rows = facts.duplicates or 0, facts.duplicates_of or 0
    if batch.kind == Batch.Kind.SUBSCRIBERS and repeated >= REPEATED_SHARE * rows > 0:
        yield gettext(
            "%(repeated)s of %(rows)s rows are for a subscriber who already has a row, and only the first "
            "row for each subscriber counts. A subscriber file must have one row per subscriber. If this "
            "file contains events, choose an events profile."
        ) % {"repeated": number(repeated), "rows": number(rows)}


def nothing_counts(batch: Batch, facts: Facts, calendar: StudyCalendar) -> str:
    """Say why no row of a file was used."""
    outside = batch.rows_ignored.get("outside_period", 0)
    seconds = [each for each in (facts.first_event, facts.last_event) if each is not None]
    if outside and outside == sum(batch.rows_ignored.values()) and len(seconds) == 2:
        first, last = (datetime.fromtimestamp(each, ZoneInfo(calendar.timezone)).date() for each in seconds)
        text = gettext(
            "No rows were counted, because the dates in the file are outside the study period. The "
            "file covers %(found)s, and the study covers %(expected)s. Check that this is the right "
            "study and that the profile has the right date format."
        ) % {
            "found": window_title(first, last),
            "expected": window_title(calendar.date_of(1), calendar.date_of(calendar.days)),
        }
        if not all(_is_within(_swapped(day), calendar) for day in (first, last)):
            return text
        swapped = gettext(
            "Day and month are probably swapped: in the other order, dates of the file are in the study."
        )
        return f"{text} {swapped}"
    reasons = Counter(batch.rows_ignored) + Counter(batch.rows_rejected)
    words = [
        f"{row_reason(reason, of_events=calendar.of_events)} ({number(rows)})"
        for reason, rows in reasons.most_common()
    ]
    return gettext("All %(rows)s rows were ignored or rejected. Reasons: %(reasons)s.") % {
        "rows": number(batch.rows_read),
        "reasons": listed(words),
    }


def _swapped(day: date) -> date | None:
    """The date with day and month in the other order; None if there is no such day."""
    try:
        return day.replace(month=day.day, day=day.month)
    except ValueError:
        return None


def _is_within(day: date | None, calendar: StudyCalendar) -> bool:
    return day is not None and calendar.date_of(1) <= day <= calendar.date_of(calendar.days)


def silence(silent: SilentHours, calendar: StudyCalendar) -> str:
    """Hours without rows, of a day that has rows otherwise."""
    return gettext(
        "%(day)s: no events between %(hours)s; those hours usually have %(usual)s rows. Was there an outage?"
    ) % {
        "day": day_title(calendar.date_of(silent.day)),
        "hours": hours_range(silent),
        "usual": number(silent.usual),
    }


def hours_range(silent: SilentHours) -> str:
    """Hours of a day in words: "14:00 and 16:00"."""
    return gettext("%(begin)s and %(end)s") % {"begin": f"{silent.begin:02}:00", "end": f"{silent.end:02}:00"}


def basis_words(basis: Basis, n: int) -> str:
    """Source of a median."""
    match basis:
        case "weekday":
            text = ngettext(
                "%(n)s earlier day that falls on the same weekday",
                "median of %(n)s earlier days that fall on the same weekday",
                n,
            )
        case "days":
            text = ngettext("%(n)s earlier day", "median of %(n)s earlier days", n)
        case _:
            text = ngettext("%(n)s earlier file", "median of %(n)s earlier files", n)
    return text % {"n": n}


def figure_words(each: Comparison, *, of_events: bool) -> str:
    """Name of a compared figure; of a study of events each unit is an event."""
    match each.figure:
        case "rows":
            return gettext("Rows, including duplicates")
        case "subscribers":
            return gettext("Events") if of_events else gettext("Subscribers")
        case "rejected":
            return gettext("Rejected rows")
        case _:
            return gettext("Empty values in %(column)s") % {"column": each.column}


def figure_value(each: Comparison, value: float) -> str:
    """A number, or a share."""
    return number(value) if each.day is not None else percent(value)


def status_words(status: DayStatus) -> str:
    """State of a day of a source."""
    return {
        DayStatus.COMPLETE: gettext("complete"),
        DayStatus.PARTIAL: gettext("partial"),
        DayStatus.MISSING: gettext("missing"),
        DayStatus.FAILED: gettext("failed"),
        DayStatus.UNDONE: gettext("undone"),
        DayStatus.NOT_DUE: gettext("not due yet"),
        DayStatus.NOT_EXPECTED: gettext("not expected"),
    }[status]


def status_help(status: DayStatus) -> str:
    """Meaning of a state of a day."""
    return {
        DayStatus.COMPLETE: gettext("The study has rows for this day, and no gaps were found."),
        DayStatus.PARTIAL: gettext(
            "More files are expected, or no rows arrived for some hours that usually have rows."
        ),
        DayStatus.MISSING: gettext("The day is over, and no file contained rows for it."),
        DayStatus.FAILED: gettext("The last file with rows for this day failed or was refused."),
        DayStatus.UNDONE: gettext(
            "The uploads for this day were undone, and no rows have been uploaded for this day since."
        ),
        DayStatus.NOT_DUE: gettext("The day is not over yet."),
        DayStatus.NOT_EXPECTED: gettext(
            "Another source has sent rows for this day. This source is only expected to send rows from the "
            "day its profile was created, or from its first day with rows if that day is earlier."
        ),
    }[status]


def day_notes(day: DayCoverage) -> Iterator[str]:
    """Return why a day is not complete."""
    if day.failed is not None:
        yield gettext("%(file)s: %(reason)s") % {
            "file": day.failed.filename,
            "reason": day.failed.failure.words,
        }
        if day.files:
            yield gettext("The study still contains rows for this day from earlier files.")
    if day.more_to_come:
        yield gettext("More files were announced but have not arrived.")
    for silent in day.silent:
        yield gettext("No events between %(hours)s. Was there an outage?") % {"hours": hours_range(silent)}


def unmatched_notes(facts: Facts) -> Iterator[str]:
    """Number of unmatched cells that the list does not show."""
    if facts.unmatched_more:
        yield ngettext(
            "For %(rows)s of the rows outside the area, the network cell is not listed.",
            "For %(rows)s of the rows outside the area, the network cells are not listed.",
            facts.unmatched_more,
        ) % {"rows": number(facts.unmatched_more)}
    if facts.unmatched_hidden:
        yield ngettext(
            "In %(rows)s row, the text in the cell column differs so much from the cells of the area that "
            "it is not shown or kept: it could be personal data. Check that the columns are not swapped.",
            "In %(rows)s rows, the text in the cell column differs so much from the cells of the area that "
            "it is not shown or kept: it could be personal data. Check that the columns are not swapped.",
            facts.unmatched_hidden,
        ) % {"rows": number(facts.unmatched_hidden)}


def _comparison(each: Comparison, calendar: StudyCalendar) -> str:
    values = _values(each, of_events=calendar.of_events)
    if each.day is None:
        text = gettext("%(figure)s: %(value)s in this file, usually %(usual)s (%(basis)s).")
        return text % values
    values["day"] = day_title(calendar.date_of(each.day))
    if each.verdict == "low":
        text = gettext(
            "%(day)s, %(figure)s: %(value)s, usually %(usual)s (%(basis)s). Is part of the file missing?"
        )
    else:
        text = gettext(
            "%(day)s, %(figure)s: %(value)s, usually %(usual)s (%(basis)s). Was some data sent twice?"
        )
    return text % values
