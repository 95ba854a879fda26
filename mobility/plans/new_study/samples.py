"""Columns and possible categories for a new study, from the first rows of a file.

The rows are raw data. They stay in the memory of one request; what an administrator picks goes into the text.
Identifiers are masked as in the form of a profile.
"""

from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from typing import Final

from django.http import HttpRequest
from django.utils.translation import gettext

from mobility.extracts.profiles.aliases import IDENTIFIERS, plain
from mobility.extracts.profiles.masking import FEW, SEVERAL, shows_people
from mobility.extracts.profiles.preview import texts_seen
from mobility.extracts.profiles.proposals import propose
from mobility.extracts.profiles.sample import ROWS, SAMPLE_BYTES, Sample, read_sample
from mobility.extracts.profiles.timestamp_guess import timestamp_formats
from mobility.plans.new_study.text import blank_text, short_name
from mobility.plans.pages.draft_typed import STATIC, Typed
from reports.studies.studyfile import AreaDefinition, StudyDefinition, parse_study
from reports.studies.studyfile.formats import ISO
from reports.studies.studyfile.numbers import NUMBER

TIME, TIME_FORMAT = "extract.timestamp", "extract.timestamp_format"
ROLES: Final = ("subscriber", "timestamp", "cell")
_IDENTIFIERS: Final = frozenset(map(plain, IDENTIFIERS))
_SHOWN: Final = 6  # values next to the name of a column
_LISTED: Final = 120  # values of a column: the departments of France fit
_DIGITS: Final = 5  # of a number; longer ones could be identifiers


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A column that no one uses yet.

    place : in the file
    adds : what it may become: STATIC, NUMBER, or nothing
    values : the most frequent ones, if they may be shown before the column is picked
    """

    place: int
    name: str
    n_values: int
    adds: str
    values: tuple[str, ...] = ()


def sample_of(request: HttpRequest) -> Sample | None:
    """All rows that were sent of the chosen file; None if none was sent. PreviewError if unreadable."""
    sent = request.FILES.get("sample")
    if sent is None:
        return None
    data = sent.read(SAMPLE_BYTES)
    size = request.POST.get("size", "")
    whole = int(size) if size.isascii() and size.isdigit() else len(data)
    return read_sample(data, size=whole, most=None)


def fill_in(
    typed: Typed, sample: Sample, *, area: AreaDefinition | None, timezone: str, first_day: date, days: int
) -> None:
    """Propose the columns that events need where the form names none, or none of this file.

    `area` : cells of the study, by which their column is recognised too
    """
    of_events = replace(_stand_in(), timezone=timezone, first_day=first_day, days=days, area=area)
    draft = propose(replace(sample, rows=sample.rows[:ROWS]), definition=of_events).draft
    for role in ROLES:
        found, key = draft["columns"].get(role), f"extract.{role}"
        named = typed.values.get(key)
        if found and not (named and named in sample.names):  # a header may end with a separator
            typed.values[key] = found


def fill_in_format(typed: Typed, sample: Sample, *, timezone: str, first_day: date, days: int) -> str:
    """Propose the format of event times where the form names none; returns why there is none to propose.

    With days that are not those of the file, day and month could be either.
    """
    name = typed.values.get(TIME, "")
    if typed.values.get(TIME_FORMAT) or sample.names.count(name) != 1:
        return ""
    of_events = replace(_stand_in(), timezone=timezone, first_day=first_day, days=days)
    formats = timestamp_formats(sample.column(name)[:ROWS], definition=of_events)
    if len(formats) == 1:
        typed.values[TIME_FORMAT] = "" if formats[0] == ISO else formats[0]
        return ""
    if formats:
        return gettext(
            "The times in the sample fit more than one format: %(formats)s. Enter the right one. Or enter "
            "the days of the study first: if only one format fits these days, it is filled in."
        ) % {"formats": ", ".join(formats)}
    return gettext(
        "The times in the sample are not in ISO 8601, and no format was recognised. Check the event time "
        "column and the days of the study, or enter the format."
    )


def offers(sample: Sample, typed: Typed) -> list[Offer]:
    """The columns that have no meaning yet."""
    used = {
        value
        for name, value in typed.values.items()
        if name.startswith("extract.") or name.endswith((".column", ".operator_column"))
    }
    subscribers = sample.column(typed.values.get("extract.subscriber", ""))
    names = [(place, name) for place, name in enumerate(sample.names) if sample.names.count(name) == 1]
    return [_offer(place, name, sample, subscribers) for place, name in names if name and name not in used]


def add_column(typed: Typed, sample: Sample, *, place: int, kind: str) -> str:
    """One more indicator, of a column; returns its key. The values that may be categories are ticked."""
    name = sample.names[place]
    row = typed.add(NUMBER if kind == NUMBER else STATIC)
    title = name.replace("_", " ").replace("-", " ").strip()
    typed.values |= {f"{row}.column": name, f"{row}.name": title[:1].upper() + title[1:]}
    taken = {typed.values.get(f"{other}.slug") for other in typed.rows}
    slug = short_name(name.replace(" ", "_")) or f"column_{place + 1}"
    typed.values[f"{row}.slug"] = slug if slug not in taken else f"{slug[:60]}_{place + 1}"
    if kind != NUMBER:
        typed.values[f"{row}.categories"] = "\n".join(text for text, _ in values_of(sample, name)[0])
    return row


def values_of(sample: Sample, name: str) -> tuple[list[tuple[str, int]], int]:
    """Values of a column with their rows, in order of the alphabet, and how many are not listed.

    "<18" comes first and ">65" last, as in a scale.
    """
    listed, not_listed = texts_seen(sample.column(name), prefix=0, known={}, most=_LISTED)
    return sorted(listed, key=lambda each: ((each[0][0] in ">≥") - (each[0][0] in "<≤"), each)), not_listed


def _offer(place: int, name: str, sample: Sample, subscribers: list[str]) -> Offer:
    texts = [text for text in sample.column(name) if text]
    distinct = set(texts)
    listed, not_listed = values_of(sample, name)
    adds = ""
    if plain(name) not in _IDENTIFIERS and distinct:
        few = max(FEW, len(texts) // SEVERAL)  # more values only where they repeat
        if not not_listed and len(distinct) <= few:
            adds = STATIC
        elif all(text.isdecimal() and len(text) <= _DIGITS for text in distinct):
            adds = NUMBER
    is_hidden = adds != STATIC or shows_people(sample.column(name), subscribers)
    values = () if is_hidden else tuple(text for text, _ in listed[:_SHOWN])
    return Offer(place=place, name=name, n_values=len(distinct), adds=adds, values=values)


def columns_for(sample: Sample | None, value: str) -> list[tuple[str, str]]:
    """Choices of a column, with the one that the text names even if this file lacks it."""
    names = (
        [] if sample is None else [each for each in sample.names if each and sample.names.count(each) == 1]
    )
    if not names:
        return []
    absent = [(value, gettext("%(column)s (not in this file)") % {"column": value})]
    return [
        ("", gettext("none")),
        *((name, name) for name in names),
        *(absent if value and value not in names else []),
    ]


@cache
def _stand_in() -> StudyDefinition:
    """A study without questions: guesses about timestamps need its days only."""
    text = blank_text(timezone="UTC", first_day=date(2000, 1, 1)).replace(
        "[study]", '[study]\nslug = "sample"\nname = "sample"', 1
    )
    text = text.replace("[extract]", '[extract]\nsubscriber = "s"\ntimestamp = "t"')
    text += '[[indicator]]\nslug = "stay"\nkind = "daily"\nderive = "visit_duration"\n'
    return parse_study(text.encode(), filename="", read=_no_file)


def _no_file(name: str) -> bytes:
    raise FileNotFoundError(name)
