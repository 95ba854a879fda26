"""The people of MS-FIMU and Nursery: counts per category, dealt out to rows.

Sources: mobility/demo/SOURCES.md for MS-FIMU; Nursery is made from its definition.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

import ldp
from benchmarks.reproduce import published
from mobility.demo.population import build_population, load_facts

Columns = tuple[NDArray[np.int32], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """Rows of one experiment.

    Parameters
    ----------
    pseudonyms : ndarray of uint64, shape (n,)
    columns : tuple of ndarray of int32, shape (n,), one per attribute; codes in [0, domain size)
    """

    pseudonyms: NDArray[np.uint64]
    columns: Columns

    @property
    def domain_sizes(self) -> tuple[int, ...]:
        """Number of categories per attribute."""
        return tuple(int(column.max()) + 1 for column in self.columns)

    @property
    def frequencies(self) -> tuple[NDArray[np.float64], ...]:
        """True frequencies per attribute."""
        return tuple(np.bincount(column) / column.size for column in self.columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitors:
    """French visitors, as chapter 5 has them: five attributes that stay and one per day.

    Parameters
    ----------
    people : People; of the five attributes
    presence : ndarray of uint64, shape (n,); bit t-1 = day t
    durations : ndarray of int32, shape (n, days); -1 where absent
    """

    people: People
    presence: NDArray[np.uint64]
    durations: NDArray[np.int32]


@cache
def everybody() -> People:
    """All 88,935 visitors with their six attributes.

    Which values go together does not matter here: every estimate is about one attribute, and who answers what
    depends on the pseudonym alone.
    """
    counts = [list(attribute.values()) for attribute in load_facts()["marginals"].values()]
    columns = tuple(np.repeat(np.arange(len(each), dtype=np.int32), each) for each in counts)
    return People(pseudonyms=ldp.KeyedStream(b"reproduce people").words(columns[0].size), columns=columns)


@cache
def nursery() -> People:
    """All 12,960 rows of Nursery: each combination of its attributes, and its class.

    Which row has which class does not matter here either, so only the counts of the classes are needed.
    """
    combinations = np.indices(published.NURSERY_ATTRIBUTES, dtype=np.int32)
    classes = np.repeat(np.arange(len(published.NURSERY_CLASSES), dtype=np.int32), published.NURSERY_CLASSES)
    columns = (*(np.ascontiguousarray(each.ravel()) for each in combinations), classes)
    return People(pseudonyms=ldp.KeyedStream(b"reproduce nurser").words(classes.size), columns=columns)


@cache
def french_visitors() -> Visitors:
    """The visitors of the demo's population who are not foreign, with the categories that they have."""
    population = build_population(seed=1)
    category = population.static["visitor_category"]
    foreign = population.categories["visitor_category"].index("Foreign tourist")
    rows = np.flatnonzero(category != foreign)
    columns = tuple(
        np.unique(codes[rows], return_inverse=True)[1].astype(np.int32)
        for slug, codes in population.static.items()
        if slug != "visitor_category"
    )
    pseudonyms = ldp.KeyedStream(b"reproduce french").words(rows.size)
    return Visitors(
        people=People(pseudonyms=pseudonyms, columns=columns),
        presence=population.presence[rows],
        durations=np.ascontiguousarray(population.durations[rows]),
    )
