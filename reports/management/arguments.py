"""Arguments and refusals that commands share."""

from argparse import ArgumentTypeError
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date

from django.core.management.base import CommandError

from reports.studies.models import Study


@contextmanager
def refusing(*errors: type[Exception], after: str = "") -> Iterator[None]:
    """End a command with the text of one of these errors, `after` other words; with or as a decorator."""
    try:
        yield
    except errors as error:
        raise CommandError(f"{after}{error}") from error


@contextmanager
def naming_files() -> Iterator[None]:
    """End a command with why a file cannot be read or written, and its name if the error knows it."""
    try:
        yield
    except OSError as error:
        file = f"{error.filename}: " if error.filename else ""
        raise CommandError(f"{file}{error.strerror or error}") from error


def day_of(text: str) -> date:
    """The day that an argument names, as a `type` of argparse."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ArgumentTypeError(f"must be a date such as 2017-05-31, got {text[:40]!r}") from None


def study_named(slug: str) -> Study:
    """The study of the argument STUDY; CommandError if there is none, which says which there are."""
    found = Study.objects.filter(slug=slug).first()
    if found is None:
        known = ", ".join(Study.objects.values_list("slug", flat=True)) or "none"
        raise CommandError(f"STUDY must be the slug of a study ({known}), got {slug}")
    return found
