"""Guess the format of timestamps; where the study fits with day or month first, both are named."""

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from mobility.extracts.profiles.instants import BAD, instants_of
from reports.studies.studyfile import StudyDefinition
from reports.studies.studyfile.formats import EPOCH_MS, EPOCH_S, ISO

MOST_BAD: Final = 0.1  # share of the texts that a format may leave unread
YEARS_AROUND: Final = 2  # of the study: numbers beyond are something else
_PARTS = re.compile(
    r"(?P<a>\d{1,4})(?P<sep>[-/.])\d{1,2}(?P=sep)(?P<c>\d{1,4})(?P<between>[ T_])\d{1,2}(?P<clock>[:.])\d{2}"
    r"(?P<s>(?P=clock)\d{2}(?P<fraction>[.,]\d+)?)?(?P<zone> ?(?:Z|[+-]\d{2}:?(?:\d{2})?))?"
)
_NUMBERS = {10: EPOCH_S, 12: "%Y%m%d%H%M", 13: EPOCH_MS, 14: "%Y%m%d%H%M%S"}


def timestamp_formats(values: Sequence[str], *, definition: StudyDefinition) -> tuple[str, ...]:
    """Formats that read the texts equally well: none, one, or two between which someone must choose."""
    texts = [value for value in values if value]
    if not texts:
        return ()
    read = {form: _share_read(texts, form, definition) for form in _candidates(texts)}
    best = max(read.values(), default=0.0)
    if best < 1 - MOST_BAD:
        return ()
    equal = [form for form, share in read.items() if share == best]
    within = [form for form in equal if _share_within(texts, form, definition) >= 1 - MOST_BAD]
    return tuple(within if len(within) == 1 else equal)


def _share_within(texts: Sequence[str], form: str, definition: StudyDefinition) -> float:
    """Share of texts whose time is on a day of the study: where day and month could be either, that tells."""
    last_day = definition.first_day + timedelta(days=definition.days - 1)
    found = [each.local for each in instants_of(texts, form=form, definition=definition)]
    return sum(bool(each and definition.first_day <= each.date() <= last_day) for each in found) / len(texts)


def _candidates(texts: Sequence[str]) -> list[str]:
    """Formats that the first texts look like; ISO alone where it fits, since it cannot be mistaken."""
    found: dict[str, None] = {}
    for text in texts[:20]:
        found |= dict.fromkeys(
            [_NUMBERS[len(text)]] if text.isdigit() and len(text) in _NUMBERS else _written(text)
        )
    return [ISO] if ISO in found else list(found)


def _written(text: str) -> list[str]:
    parts = _PARTS.fullmatch(text)
    if parts is None:
        return []
    year_first = len(parts["a"]) == 4
    if year_first and parts["sep"] == "-" and parts["between"] in " T" and parts["clock"] == ":":
        return [ISO]
    time = f"%H{parts['clock']}%M"
    if parts["s"]:
        time += f"{parts['clock']}%S"
    if parts["fraction"]:
        time += f"{parts['fraction'][0]}%f"
    if parts["zone"]:
        time += " %z" if parts["zone"].startswith(" ") else "%z"
    orders = ["Ymd"] if year_first else ["dmY", "mdY"] if len(parts["c"]) == 4 else []
    return [f"{parts['sep'].join(f'%{part}' for part in order)}{parts['between']}{time}" for order in orders]


def _share_read(texts: Sequence[str], form: str, definition: StudyDefinition) -> float:
    """Share of texts with a time; numbers must lie around the study, else they are identifiers."""
    found = instants_of(texts, form=form, definition=definition)
    is_number = all(text.isdigit() for text in texts)
    good = 0
    for instant in found:
        near = instant.local is not None and (
            abs(instant.local.year - definition.first_day.year) <= YEARS_AROUND
        )
        good += instant.outcome != BAD and (near or not is_number)
    return good / len(texts)
