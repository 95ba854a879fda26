"""Marking days: what people know of a day that its numbers do not tell."""

from datetime import date

from django.db import transaction

from reports.estimates.models import DayNote
from reports.studies.models import Study
from reports.studies.studyfile.table import is_one_line

MAX_TEXT = 200


class DayNoteError(ValueError):
    """A note that cannot be kept; nothing was changed."""


@transaction.atomic
def note_day(study: Study, *, day: date, kind: DayNote.Kind, text: str, by: str) -> DayNote:
    """Keep a note on a day; one of the same kind on that day is replaced.

    DayNoteError if the day is not one of the study's, or the text is empty, too long or not one line.
    """
    number = study.day_of(day)
    if not 1 <= number <= study.days:
        raise DayNoteError(f"day must lie within {study.first_day} to {study.last_day}, got {day}")
    words = text.strip()
    if not words or len(words) > MAX_TEXT or not is_one_line(words):
        raise DayNoteError(f"text must be one line of 1 to {MAX_TEXT} characters, got {len(words)}")
    note, _ = DayNote.objects.update_or_create(
        study=study, day=number, kind=kind, defaults={"text": words, "by": by}
    )
    return note


def remove_note(study: Study, *, note_id: int) -> bool:
    """Remove a note; False when it does not exist."""
    deleted, _ = DayNote.objects.filter(study=study, pk=note_id).delete()
    return deleted > 0
