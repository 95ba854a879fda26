"""The FIMU population: who is there on which day, with which answers, counted exactly as in the facts."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ldp.kernels.streams import KeyedStream
from reports.studies.studyfile import VISIT_DURATION, StudyDefinition, parse_study

FOLDER: Final = Path(__file__).parent
STUDY_FILE: Final = FOLDER / "study.toml"
ABSENT: Final = -1

Codes = NDArray[np.int32]
Indices = NDArray[np.int64]

ABROAD: Final = (
    "Asia Oceania", "Belgium + Luxembourg", "China", "Eastern country", "Germany", "Italy", "Netherlands",
    "Other countries in Europe", "Rest of the world", "Russia", "Scandinavia", "Spain", "Swiss",
    "United Kingdom", "United States",
)  # fmt: skip
AROUND: Final = (
    "City of Belfort", "Agglomeration of Belfort", "Rest Territory of Belfort", "Agglomeration of Hericourt",
    "Agglomeration of Montbeliard", "Rest of Doubs", "Rest of Haute Saone", "South Haut Rhin",
    "North Haut Rhin", "Vosges",
)  # fmt: skip
# The facts count each indicator alone; these groups make them go together. Others get what is left.
FOREIGN: Final[Mapping[str, tuple[str, ...]]] = {
    "visitor_category": ("Foreign tourist",),
    "gender": ("NR",),
    "age": ("NR",),
    "geolife": ("NR",),
    "region": ABROAD,
}
RESIDENT: Final[Mapping[str, tuple[str, ...]]] = {
    "visitor_category": ("Resident",),
    "region": ("Franche-Comté",),
    "sleeping_area": AROUND,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Population:
    """Truth of the demo, one row per subscriber; a code is the place of a category in the study file."""

    days: int
    categories: Mapping[str, tuple[str, ...]]  # by slug, visit_duration too
    presence: NDArray[np.uint64]  # (n,), bit t-1 = day t
    static: Mapping[str, Codes]  # by slug, (n,)
    durations: Codes  # (n, days), ABSENT where not present

    @property
    def n_subscribers(self) -> int:
        return int(self.presence.size)

    @property
    def subscriber_days(self) -> int:
        return int(np.bitwise_count(self.presence).sum())

    def is_present(self, day: int) -> NDArray[np.bool_]:
        """Return whether each subscriber is present on study day `day` (1 = first)."""
        return present_on(self.presence, day=day)

    def part(self, rows: Indices) -> "Population":
        """Return the same truth for some of the subscribers."""
        return replace(
            self,
            presence=self.presence[rows],
            static={slug: codes[rows] for slug, codes in self.static.items()},
            durations=self.durations[rows],
        )


def build_population(*, seed: int, n_subscribers: int | None = None) -> Population:
    """Deal the facts out to subscribers: all 88,935, or a random part of them.

    Raises
    ------
    ValueError : n_subscribers is below 1 or above the facts, or facts and study file disagree
    """
    facts = load_facts()
    total = int(facts["visitors"])
    if n_subscribers is not None:
        _check_part(n_subscribers, total=total)
    categories = _categories(facts, study=load_study())
    stream = keyed_stream(seed, purpose="population")
    presence = stream.shuffled(_presence(facts))
    population = Population(
        days=int(facts["days"]),
        categories=categories,
        presence=presence,
        static=_static(facts, categories=categories, presence=presence, stream=stream),
        durations=_durations(facts, bands=categories[VISIT_DURATION], presence=presence, stream=stream),
    )
    if n_subscribers is None:
        return population
    return sample(population, n_subscribers, stream=stream)


def sample(population: Population, n: int, *, stream: KeyedStream) -> Population:
    """Draw n subscribers; ValueError if there are fewer than n."""
    _check_part(n, total=population.n_subscribers)
    return population.part(np.sort(stream.permutation(population.n_subscribers)[:n]))


def _check_part(n: int, *, total: int) -> None:
    if not 1 <= n <= total:
        raise ValueError(f"n_subscribers must be in [1, {total}], got {n}")


def keyed_stream(seed: int, *, purpose: str) -> KeyedStream:
    """Random words of one purpose; purposes do not disturb each other."""
    name = f"{seed}/{purpose}".encode()
    return KeyedStream(hashlib.blake2b(name, digest_size=16, person=b"mobility demo").digest())


def present_on(presence: NDArray[np.uint64], *, day: int) -> NDArray[np.bool_]:
    """Return whether bit `day` - 1 is set."""
    return (presence >> np.uint64(day - 1) & np.uint64(1)).astype(np.bool_)


def load_facts() -> dict[str, Any]:
    """The counts of MS-FIMU (SOURCES.md)."""
    facts: dict[str, Any] = json.loads((FOLDER / "fimu_facts.json").read_text(encoding="utf-8"))
    return facts


def load_study() -> StudyDefinition:
    """The study file of the demo, with its cells and zones."""
    return parse_study(
        STUDY_FILE.read_bytes(),
        filename=STUDY_FILE.name,
        read=lambda name: (STUDY_FILE.parent / name).read_bytes(),
    )


def _categories(facts: Mapping[str, Any], *, study: StudyDefinition) -> dict[str, tuple[str, ...]]:
    """Categories by indicator, in the order of the study file; they must be those of the facts."""
    known = {slug: set(counts) for slug, counts in facts["marginals"].items()}
    known[VISIT_DURATION] = set().union(*facts["visit_duration_by_day"].values())
    categories = {indicator.slug: indicator.categories for indicator in study.indicators}
    for slug, names in known.items():
        if set(categories.get(slug, ())) != names:
            raise ValueError(f"categories of {slug} must be those of the facts, got {categories.get(slug)}")
    return categories


def _presence(facts: Mapping[str, Any]) -> NDArray[np.uint64]:
    patterns = facts["presence_patterns"]
    bitmaps = [int(pattern[::-1], base=2) for pattern in patterns]
    return np.repeat(np.array(bitmaps, np.uint64), list(patterns.values()))


def _static(
    facts: Mapping[str, Any],
    *,
    categories: Mapping[str, tuple[str, ...]],
    presence: NDArray[np.uint64],
    stream: KeyedStream,
) -> dict[str, Codes]:
    marginals = facts["marginals"]
    sizes = marginals["visitor_category"]
    residents, foreigners, others = _groups(
        presence, n_residents=sizes["Resident"], n_foreigners=sizes["Foreign tourist"], stream=stream
    )
    static = {}
    for slug, counts in marginals.items():
        names = categories[slug]
        groups = [
            (foreigners, _codes_of(FOREIGN.get(slug, names), names=names)),
            (residents, _codes_of(RESIDENT.get(slug, names), names=names)),
            (others, _codes_of(names, names=names)),
        ]
        static[slug] = _deal(np.array([counts[name] for name in names]), groups=groups, stream=stream)
    return static


def _groups(
    presence: NDArray[np.uint64], *, n_residents: int, n_foreigners: int, stream: KeyedStream
) -> tuple[Indices, Indices, Indices]:
    """Residents come on more days than others, so that categories differ between windows."""
    affinity = stream.uniform_int(presence.size, 0, 1000) + 150 * np.bitwise_count(presence).astype(np.int64)
    order = np.argsort(-affinity, kind="stable")
    visitors = stream.shuffled(order[n_residents:])
    return order[:n_residents], visitors[:n_foreigners], visitors[n_foreigners:]


def _codes_of(chosen: Sequence[str], *, names: Sequence[str]) -> Indices:
    return np.array([names.index(name) for name in chosen])


def _deal(counts: Indices, *, groups: Sequence[tuple[Indices, Indices]], stream: KeyedStream) -> Codes:
    """Deal one card to everyone: each group, in turn, from the cards left of the categories it may have."""
    left = counts.copy()
    codes = np.empty(int(counts.sum()), np.int32)
    for people, allowed in groups:
        deck = stream.shuffled(np.repeat(allowed, left[allowed]))[: people.size]
        codes[people] = deck
        left -= np.bincount(deck, minlength=left.size)
    return codes


def _durations(
    facts: Mapping[str, Any], *, bands: Sequence[str], presence: NDArray[np.uint64], stream: KeyedStream
) -> Codes:
    days = int(facts["days"])
    durations = np.full((presence.size, days), ABSENT, np.int32)
    for day in range(1, days + 1):
        counts = facts["visit_duration_by_day"][str(day)]
        present = np.flatnonzero(present_on(presence, day=day))
        if sum(counts.values()) != present.size:
            raise ValueError(f"day {day} must have a duration for {present.size}, got {sum(counts.values())}")
        deck = np.repeat(np.arange(len(bands), dtype=np.int32), [counts[band] for band in bands])
        durations[present, day - 1] = stream.shuffled(deck)
    return durations
