"""A study with a joint indicator, whose people have values of its parts that go together."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import ldp
from ldp.privacy.joint import joint_codes
from reports.models import Study
from reports.studies.studyfile.definition import IndicatorDefinition
from tests.reports import report_factory as factory

GENDER = factory.GENDER
AGE = replace(factory.AGE, categories_fr=("moins de 18", "18 à 24", "25 et plus"))
TOWN = factory.indicator("town", "Belfort", "Colmar", "Dole", "Gray", "Lure", "Vesoul")


def published(
    *parts: IndicatorDefinition,
    n: int = 4000,
    unknown: Mapping[str, float] | None = None,
    bound: Mapping[str, str] | None = None,
    others: Sequence[IndicatorDefinition] = (),
    **changes: Any,
) -> Study:
    slug = "_".join(part.slug for part in parts)
    study = factory.create(*parts, factory.joint(slug, *parts), *others, **changes)
    people = factory.crowd(study, n=n)
    stream = ldp.KeyedStream(b"unknown-".ljust(16, b"-"))
    static = {part.slug: people.static[(bound or {}).get(part.slug, part.slug)] for part in parts}
    for name, share in (unknown or {}).items():
        static[name] = np.where(stream.uniform_int(n, 0, 1000) < 1000 * share, -1, static[name])
    sizes = {part.slug: len(part.categories) for part in parts}
    for name, names in ((slug, tuple(sizes)), *((each.slug, each.parts) for each in others)):
        values = [static[part] for part in names]
        static |= {name: joint_codes(values, sizes=[sizes[part] for part in names])}
    factory.publish(study, replace(people, static=static))
    return study
