"""Checks of a new study: quick ones after each change, and all of them before the draft is made."""

from collections.abc import Callable

from django.conf import settings
from django.utils.translation import gettext_noop as _

from mobility.plans.new_study.sent import NewStudyForm
from mobility.plans.new_study.text import tables_of_text
from reports.studies.studyfile import Problem, StudyDefinition, StudyFileError, parse_study
from reports.studies.studyfile.indicators import with_zones
from reports.studies.studyfile.parse import check_plan, read_sections
from reports.studies.studyfile.problems import Problems
from reports.studies.studyfile.redraft import Tables, read_tables
from reports.studies.studyfile.table import Table

NO_EVENTS = _(
    "must be absent on this page, which creates studies of visitors only. Save the text as a file, and "
    "create the study on the server with manage.py create_study FILE.toml"
)
OF_FILES = ("area", "location", "slots")  # sections that need other files, which come with the last check


def quick_check(
    tables: Tables, *, like: StudyDefinition | None, filename: str
) -> tuple[list[Problem], StudyDefinition | None]:
    """Return the problems that need no files of the area, and the study if it is valid without any."""
    problems = Problems(filename)
    has_area = "area" in tables or (like is not None and like.area is not None)
    root = Table({key: value for key, value in tables.items() if key not in OF_FILES}, "", problems)
    parts = read_sections(root, has_area=has_area, min_publication=settings.MOBILITY_MIN_PUBLICATION)
    if parts.get("units") is not None:  # say so at once: drafts, which come last, know people only
        problems.add("study.kind", NO_EVENTS, parts["units"])
        return problems.all(), None
    if not has_area and "days" in parts:
        parts["indicators"] = with_zones(root, parts["indicators"], None, days=parts["days"])
    if problems.found or has_area:
        return problems.all(), None
    definition = StudyDefinition(**parts, area=None)
    try:
        check_plan(definition, filename=filename)
    except StudyFileError as error:
        return error.problems, None
    return [], definition


def definition_of(
    form: NewStudyForm, text: str, *, like: StudyDefinition | None, note: Callable[[str], None]
) -> StudyDefinition:
    """Read the whole study; StudyFileError with all problems of all files.

    Parameters
    ----------
    like : study that it is a copy of: its cells, zones and places count where the text names no files
    """
    if like is not None:
        tables = tables_of_text(text, filename=form.filename)
        if "area" not in tables:
            return read_tables(tables, like=like)
    return parse_study(
        text.encode() if form.text_is_readable else form.text,
        filename=form.filename,
        read=form.read,
        default_min_publication=settings.MOBILITY_MIN_PUBLICATION,
        note=note,
    )
