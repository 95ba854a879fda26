"""People of a sample who are alone with their values in the mapped columns (quasi-identifiers)."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from mobility.extracts.profiles.preview import CLASS, OPERATOR, roles_of
from mobility.extracts.profiles.sample import Sample
from reports.studies.studyfile import StudyDefinition

LEAST_PEOPLE: Final = 2  # one person alone is unique in anything


@dataclass(frozen=True, slots=True, kw_only=True)
class Uniqueness:
    """Result of the check.

    columns : names of the columns that were looked at together, in the order of the study's indicators,
        that of the class first
    people : subscribers in the sample
    unique : those of them whose values no other subscriber has, in [0, people]
    """

    columns: tuple[str, ...]
    people: int
    unique: int


def uniqueness_of(
    sample: Sample, draft: Mapping[str, Any], *, definition: StudyDefinition
) -> Uniqueness | None:
    """Check the columns of static indicators and of the class; None without one, or with one subscriber.

    Texts count as they are in the file, since the file is what could leak: not the categories that a study
    makes of them. Of a subscriber with several rows the first counts.

    Parameters
    ----------
    draft : in the shape of a profile's file, perhaps unfinished
    """
    roles = roles_of(draft, definition)
    slugs = [indicator.slug for indicator in definition.static_indicators]
    static = {*slugs, *(OPERATOR % slug for slug in slugs), CLASS}
    chosen = dict.fromkeys(name for role, name in roles.items() if role in static)
    columns = tuple(name for name in chosen if sample.names.count(name) == 1)
    if not columns:
        return None
    values = zip(*(sample.column(name) for name in columns), strict=True)
    subscribers = sample.column(roles.get("subscriber", ""))
    if not subscribers:
        return None
    first: dict[str, tuple[str, ...]] = {}
    for subscriber, texts in zip(subscribers, values, strict=True):
        if subscriber:  # without one, its row is rejected
            first.setdefault(subscriber, texts)
    if len(first) < LEAST_PEOPLE:
        return None
    found = Counter(first.values())
    return Uniqueness(columns=columns, people=len(first), unique=sum(n == 1 for n in found.values()))
