"""Studies with answers in them, made the way the operator zone makes them, from a few thousand people."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from itertools import combinations, product
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

import ldp
from ldp.estimation.tallies import class_blocks
from ldp.keyed.noise.presence import noise_delta
from ldp.keyed.tallying import tally_stays
from ldp.privacy.presence import first_days
from ldp.protocols.numbers.threshold import Scale
from reports.exports.formats.choosing import FORMATS
from reports.exports.selection import Scope, Selection
from reports.models import Plan, Study
from reports.studies.studyfile import StudyDefinition
from reports.studies.studyfile.definition import (
    ExtractProfile,
    IndicatorDefinition,
    PlanDefinition,
    VisitorRule,
)
from reports.transfer.publications import apply_publication
from reports.transfer.studies import create_study_rows
from tests.reports.kept import made_once


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """True values, known to the tests only; -1 = no value."""

    bitmaps: NDArray[np.uint64]
    static: Mapping[str, NDArray[np.int32]] = field(default_factory=dict)
    daily: Mapping[str, NDArray[np.int32]] = field(default_factory=dict)
    classes: NDArray[np.int64] | None = None

    @property
    def pseudonyms(self) -> NDArray[np.uint64]:
        return np.arange(1, self.bitmaps.size + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)

    def present(self, first_day: int, last_day: int) -> NDArray[np.bool_]:
        return (self.bitmaps & np.uint64(sum(1 << (day - 1) for day in range(first_day, last_day + 1)))) != 0


def render_file(selection: Selection, *, ending: str) -> bytes:
    return FORMATS[Scope.WINDOW][ending].write(selection)


def indicator(slug: str, *categories: str, **changes: Any) -> IndicatorDefinition:
    none = dict.fromkeys(("derive", "epsilon", "max_values"))
    named = {"slug": slug, "name": slug.replace("_", " ").capitalize(), "column": slug}
    return IndicatorDefinition(**none | named | {"kind": "static", "categories": categories} | changes)


def joint(slug: str, *parts: IndicatorDefinition, **changes: Any) -> IndicatorDefinition:
    def combined(lists: Iterable[Sequence[str]], none: str) -> tuple[str, ...]:
        return tuple(" / ".join(each) for each in product(*((*names, none) for names in lists)))

    changes["parts"] = tuple(part.slug for part in parts)
    if any(part.categories_fr for part in parts):
        french = [part.categories_fr or part.categories for part in parts]
        changes["categories_fr"] = combined(french, "sans valeur")
    return indicator(slug, *combined([part.categories for part in parts], "no value"), column=None, **changes)


def moves(slug: str, *zones: str, per_day: int = 6, **changes: Any) -> IndicatorDefinition:
    names = tuple(" / ".join(each) for each in product((*zones, "outside"), repeat=2))
    asked = {"kind": "daily", "column": None, "derive": "moves", "max_moves": per_day}
    return indicator(slug, *names, **(asked | changes))


def visits(slug: str, items: str, *zones: str, per_day: int = 6, **changes: Any) -> IndicatorDefinition:
    """Visited zones, or pairs of them: `items` is "places" or "pairs"."""
    names = zones if items == "places" else tuple(" / ".join(each) for each in combinations(zones, 2))
    derive = "visited_zones" if items == "places" else "visited_pairs"
    asked = {"kind": "daily", "column": None, "derive": derive, "max_moves": per_day}
    return indicator(slug, *names, "no zone", **(asked | changes))


GENDER = indicator("gender", "F", "M", "NR")
AGE = indicator("age", "<18", "18-24", "25 & older")
STAY = indicator("stay", "short", "long", kind="daily", column=None, derive="visit_duration")
SCALE = Scale(cuts=(60, 120, 240, 480), unit="min")
LENGTH = indicator(
    "length", *(f"{cut} min or more" for cut in SCALE.cuts), kind="daily", column=None,
    derive="visit_duration", scale=SCALE, categories_fr=tuple(f"{cut} min ou plus" for cut in SCALE.cuts),
)  # fmt: skip
EXTRACT: Any = {"subscriber": "msisdn", "timestamp": "at", "cell": None, "max_bad_share": Decimal("0.05")}
BOTH = joint("both", GENDER, AGE)
MANY = indicator("region", *(f"Region {letter}" for letter in "ABCDEFGHIJKL"))
HALF_STAY = replace(STAY, max_values=2)  # answered on two days of four
NOISE_KEY = bytes(15) + b"\3"


def definition(
    *indicators: IndicatorDefinition,
    mechanism: Any = "smp-grr",
    unit: Any = "profile",
    epsilon: str = "1",
    tallies: tuple[Any, ...] = (),
    **changes: Any,
) -> StudyDefinition:
    plan: dict[str, Any] = {"mechanism": mechanism, "unit": unit, "epsilon": Decimal(epsilon)}
    plan["tallies"] = tallies
    values: dict[str, Any] = {"slug": "fair-2024", "name": "The fair", "timezone": "Europe/Paris"}
    values |= {"first_day": date(2024, 5, 30), "days": 4, "expected_subscribers": None, "area": None}
    values |= {"market_share": Decimal(1), "min_publication": 1, "small_cell": 0}
    values |= {"visitor": VisitorRule(min_minutes=60, from_minute=360, to_minute=1439)}
    values |= {"extract": ExtractProfile(**EXTRACT), "indicators": indicators or (GENDER, AGE, STAY)}
    return StudyDefinition(**values | {"plan": PlanDefinition(**plan, epsilon_profile=None)} | changes)


def create(*indicators: IndicatorDefinition, **changes: Any) -> Study:
    return create_study_rows(definition(*indicators, **changes), by="adam")


def crowd(study: Study, *, n: int = 4000, seed: int = 1) -> People:
    """People with skewed values: the first category of each indicator is the most frequent."""
    stream = ldp.KeyedStream(seed.to_bytes(16, "big"))
    bitmaps = stream.uniform_int(n, 1, 2**study.days).astype(np.uint64)
    static, daily = {}, {}
    for each in study.indicators.all():
        k = len(each.categories)
        if each.kind == "static":
            static[each.slug] = _skewed(stream, n, k)
        else:
            daily[each.slug] = np.stack([_skewed(stream, n, k) for _ in range(study.days)], axis=1)
    return People(bitmaps=bitmaps, static=static, daily=daily)


def of_days(study: Study, numbers: Mapping[int, int]) -> People:
    """Return people by number for each bitmap of their days."""
    bitmaps = np.repeat(np.array(list(numbers), np.uint64), list(numbers.values()))
    return replace(crowd(study, n=bitmaps.size), bitmaps=bitmaps)


def publish(study: Study, people: People, *, key: bytes = bytes(16), voided_days: int = 0) -> ldp.Delta:
    plan = Plan.objects.get(study=study)
    spec = ldp.PlanSpec.from_json(plan.spec)
    sanitiser = ldp.Sanitiser(spec.of_classes[0], ldp.KeyedPrf(key))
    delta = _delta(spec, people, sanitiser=sanitiser)
    apply(study, plan, delta, voided_days=voided_days)
    return delta


def apply(study: Study, plan: Plan, delta: ldp.Delta, *, voided_days: int = 0) -> None:
    asked = {"study_slug": study.slug, "publication_id": uuid4(), "plan_hash": plan.spec_hash}
    apply_publication(**asked, delta=delta, voided_days=voided_days)


def void(study: Study, *, day: int, n: int = 4000) -> None:
    """Undo a day of the people of `published`: they were not there on it, and epsilon grows."""
    people = crowd(study, n=n)
    plan = Plan.objects.get(study=study)
    spec = ldp.PlanSpec.from_json(plan.spec)
    sanitiser = ldp.Sanitiser(spec, ldp.KeyedPrf(bytes(16)))
    left = replace(people, bitmaps=people.bitmaps & ~np.uint64(1 << (day - 1)))
    before, after = (
        _delta(spec, people, sanitiser=sanitiser, sign=-1),
        _delta(spec, left, sanitiser=sanitiser),
    )
    apply(study, plan, before + after, voided_days=1)


@made_once
def published(*asked: IndicatorDefinition, n: int = 4000, gap: int = 0, **changes: Any) -> Study:
    study = create(*asked, **changes)
    people = crowd(study, n=n)
    publish(study, absent_on(people, day=gap) if gap else people)
    return study


def _delta(spec: ldp.PlanSpec, people: People, *, sanitiser: ldp.Sanitiser, sign: int = 1) -> ldp.Delta:
    delta = ldp.Delta.zero(spec)
    if spec.classes:
        _add_classes(spec, people, delta, sign=sign)
        return delta
    ldp.tally_visitors(people.bitmaps, delta.visitors, sign=sign)
    tally_stays(people.bitmaps, delta.stays, tallies=spec.tallies, sign=sign)
    static = sanitiser.reports(people.pseudonyms, _values(spec, people, sanitiser, day=None), day=1)
    by_day = [
        sanitiser.reports(people.pseudonyms, _values(spec, people, sanitiser, day=day), day=day + 1)
        for day in range(spec.days)
    ]
    for index, asked in enumerate(spec.indicators):
        daily = [reports[index] for reports in by_day]
        is_one = asked.kind == "static" and not spec.is_renewed(index)
        words = static[index] if is_one else np.stack(daily, axis=1)
        ldp.tally_reports(people.bitmaps, words, delta, index=index, is_unary=spec.is_unary(index), sign=sign)
    return delta


def _add_classes(spec: ldp.PlanSpec, people: People, delta: ldp.Delta, *, sign: int) -> None:
    """Add the people of each class, as if they were all of a study."""
    for number, own in enumerate(spec.of_classes):
        rows = people.classes == number
        some = replace(people, bitmaps=np.where(rows, people.bitmaps, np.uint64(0)))
        part = _delta(own, some, sanitiser=ldp.Sanitiser(own, ldp.KeyedPrf(bytes(16))), sign=sign)
        delta.visitors[...] += part.visitors
        delta.stays[number] += part.visitors
        for index, (counts, n_reports) in enumerate(zip(part.counts, part.n_reports, strict=True)):
            block = class_blocks(delta.counts[index], n_classes=len(spec.classes))[number]
            block[:-1] += counts
            block[-1] += n_reports
            delta.n_reports[index][...] += n_reports


def _values(spec: ldp.PlanSpec, people: People, sanitiser: ldp.Sanitiser, *, day: int | None) -> Any:
    """Values of the static indicators, or of the daily ones on a day; -1 for all others."""
    columns = []
    for index, asked in enumerate(spec.indicators):
        column = np.full(people.bitmaps.size, -1, np.int32)
        if asked.kind == "static" and (day is None or spec.is_renewed(index)):
            column = people.static[asked.slug]
        elif day is not None and asked.kind == "daily":
            chosen = sanitiser.answer_days(index, people.pseudonyms) & people.bitmaps
            reports_today = chosen >> np.uint64(day) & np.uint64(1) == 1
            column = np.where(reports_today, people.daily[asked.slug][:, day], column)
        columns.append(column.astype(np.int32))
    return columns


def _skewed(stream: ldp.KeyedStream, n: int, k: int) -> NDArray[np.int32]:
    return np.minimum(stream.uniform_int(n, 0, k), stream.uniform_int(n, 0, k)).astype(np.int32)


def absent_on(people: People, *, day: int) -> People:
    """Return the same people without one day; those of that day only come on the first or second day."""
    gone = people.bitmaps & ~np.uint64(1 << (day - 1))
    return replace(people, bitmaps=np.where(gone == 0, np.uint64(2 if day == 1 else 1), gone))


def unanswered(people: People) -> People:
    return replace(people, static={slug: values * 0 - 1 for slug, values in people.static.items()})


def create_noisy(*, presence_epsilon: str = "1", presence_days: int = 4, **changes: Any) -> Study:
    made = definition(GENDER, STAY, epsilon="3", **changes)
    plan = replace(made.plan, presence_epsilon=Decimal(presence_epsilon), presence_days=presence_days)
    return create_study_rows(replace(made, plan=plan), by="adam")


def close(study: Study, people: People, *, first: int, last: int, key: bytes = NOISE_KEY) -> None:
    """Let the cells of some days cross as a closing does: capped counts and the noise of each cell."""
    plan = Plan.objects.get(study=study)
    spec = ldp.PlanSpec.from_json(plan.spec)
    assert spec.presence is not None
    capped = replace(people, bitmaps=first_days(people.bitmaps, most=spec.presence.max_days))
    exact = _delta(spec, capped, sanitiser=ldp.Sanitiser(spec, ldp.KeyedPrf(key)))
    for counts in (exact.visitors, *exact.counts, *exact.n_reports):
        counts[..., :first] = 0
        counts[..., last + 1 :] = 0
    exact.add(noise_delta(spec, prf=ldp.KeyedPrf(key), first_day=first, last_day=last))
    apply(study, plan, replace(exact, noisy_through=last))
    study.refresh_from_db()


def nobody(study: Study) -> People:
    return replace(crowd(study, n=1), bitmaps=np.zeros(1, np.uint64))
