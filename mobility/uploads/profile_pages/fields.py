"""The form of a profile as the page shows it: fields with their choices, reasons and errors."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.utils.translation import gettext, gettext_lazy

from mobility.extracts.form_fields import Columns, Errors, Field
from mobility.extracts.profiles.parse import bad_share_of
from mobility.extracts.profiles.proposals import Proposal
from mobility.extracts.profiles.sample import Sample
from mobility.uploads.profile_pages.attributes import attribute_fields, select
from mobility.uploads.profile_pages.draft import PATTERN_FORM
from reports.studies.studyfile import Problem, StudyDefinition
from reports.studies.studyfile.formats import DELIMITERS, EPOCH_MS, EPOCH_S, ISO

DELIMITER_NAMES: Final = {
    "comma": gettext_lazy("comma"),
    "semicolon": gettext_lazy("semicolon"),
    "tab": gettext_lazy("tab"),
    "pipe": gettext_lazy("pipe |"),
}
FORMAT_NAMES: Final = {
    ISO: gettext_lazy("ISO 8601, such as 2017-05-31 18:00:00"),
    EPOCH_S: gettext_lazy("seconds since 1970"),
    EPOCH_MS: gettext_lazy("milliseconds since 1970"),
}
ROLE_NAMES: Final = {
    "subscriber": gettext_lazy("Subscriber"),
    "person": gettext_lazy("Person"),
    "timestamp": gettext_lazy("Event time"),
    "cell": gettext_lazy("Cell"),
}


def profile_fields(
    proposal: Proposal, sample: Sample, *, definition: StudyDefinition, problems: Sequence[Problem]
) -> dict[str, Any]:
    """Lay the form out for a draft; `sample` says which columns and texts there are.

    `errors` are those of no field.
    """
    errors = Errors(problems)
    columns = Columns(proposal, sample, errors)
    draft = proposal.draft
    is_events = draft["profile"].get("kind") != "subscribers"
    has_people = definition.extract.person is not None
    of_events = [role for role in ROLE_NAMES if role != "person" or has_people]
    roles = of_events if is_events else ["subscriber"]
    fields: dict[str, Any] = {
        "head": _head(draft["profile"], definition, errors),
        "roles": [_role(role, columns, definition) for role in roles],
    }
    if is_events:
        fields["roles"] += _timestamp_format(proposal, errors)
    fields["attributes"] = [
        attribute_fields(each, columns, first_day=definition.first_day)
        for each in definition.static_indicators
    ]
    return fields | {"errors": errors.left()}


def _head(profile: Mapping[str, Any], definition: StudyDefinition, errors: Errors) -> list[Field]:
    kinds = [("events", gettext("events (CDRs)")), ("subscribers", gettext("subscriber attributes"))]
    delimiters = [(name, str(DELIMITER_NAMES[name])) for name in DELIMITERS]
    is_events = profile.get("kind") != "subscribers"
    usual = gettext("A number from 0 to 1. Leave empty to use %(share)s, the value set in the study.")
    return [
        Field(
            name="name",
            label=gettext("Name of the profile"),
            value=profile.get("name", ""),
            help=gettext(
                "Use lower-case letters, digits, - and _, for example operator-x. You cannot change the "
                "name later."
            ),
            errors=errors.of("profile.name"),
        ),
        select(
            "kind",
            gettext("Content of the files"),
            profile.get("kind", "events"),
            kinds,
            errors=errors.of("profile.kind"),
        ),
        select(
            "delimiter",
            gettext("Column separator"),
            profile.get("delimiter", ""),
            [("", gettext("detected automatically from the header of each file")), *delimiters],
            errors=errors.of("profile.delimiter"),
        ),
        Field(
            name="max_bad_share",
            label=gettext("Maximum share of rejected rows (a file that exceeds this share is refused)"),
            value=str(profile.get("max_bad_share", "")),
            help=usual % {"share": f"{bad_share_of(definition, is_events=is_events):f}"},
            errors=errors.of("profile.max_bad_share"),
        ),
    ]


def _role(role: str, columns: Columns, definition: StudyDefinition) -> Field:
    needs_no_cell = role == "cell" and definition.area is None
    none = gettext("none (the study has no area)") if needs_no_cell else gettext("choose a column")
    value = columns.proposal.draft["columns"].get(role, "")
    return columns.field(f"role-{role}", str(ROLE_NAMES[role]), value, key=f"columns.{role}", none=none)


def _timestamp_format(proposal: Proposal, errors: Errors) -> list[Field]:
    """The format, and where it is a pattern the pattern."""
    form = proposal.draft["profile"].get("timestamp_format", "")
    offered = [*FORMAT_NAMES, *(each for each in proposal.formats if each not in FORMAT_NAMES)]
    is_own = form not in ("", *offered)
    found = errors.of("profile.timestamp_format")
    choice = select(
        "timestamp_format",
        gettext("Time format"),
        PATTERN_FORM if is_own else form,
        [
            ("", gettext("choose a format")),
            *((each, format_words(each)) for each in offered),
            (PATTERN_FORM, gettext("custom format")),
        ],
        note=_format_note(form, proposal.formats),
        errors=[] if is_own else found,
    )
    if not is_own:
        return [choice]
    parts = gettext(
        "%Y year, %m month, %d day, %H hour, %M minute, %S second, %f fraction of a second, %z UTC offset"
    )
    label = gettext("Custom time format")
    return [choice, Field(name="timestamp_pattern", label=label, value=form, help=parts, errors=found)]


def _format_note(form: str, formats: Sequence[str]) -> str:
    if not form and len(formats) > 1:
        return gettext(
            "In the dates, does the day or the month come first? The first rows fit both orders, so "
            "ask the sender of the file."
        )
    return gettext("suggested from the values") if tuple(formats) == (form,) else ""


def format_words(form: str) -> str:
    """A format of timestamps in words; of a pattern, which part of the date comes first."""
    if form in FORMAT_NAMES:
        return str(FORMAT_NAMES[form])
    first = min(("%d", "%m", "%Y"), key=form.index)
    words = {"%d": gettext("day first"), "%m": gettext("month first"), "%Y": gettext("year first")}
    return f"{form} ({words[first]})"
