"""Measured job: every subscriber's values in, counts per value out, by each mechanism with keyed bits.

The six static indicators of MS-FIMU at epsilon 1. RS+FD: for one attribute, as its authors state it. Two
rounds: epsilon 1 for any number of reports, 1/2 for one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

import ldp

DOMAIN_SIZES: Final = (3, 3, 8, 12, 37, 11)
EPSILON: Final = Fraction(1)
EPSILON_1: Final = Fraction(1, 2)
_VERSION: Final = 1

Counts = list[NDArray[np.int64]]
TwoRounds = ldp.TwoRoundGrr | ldp.TwoRoundUnary


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscribers:
    """Pseudonyms, and a value per indicator in the forms that the functions take.

    Parameters
    ----------
    pseudonyms : ndarray of uint64, shape (n,)
    profiles : ndarray of uint16, shape (6, n)
    columns : tuple of 6 ndarray of int32, shape (n,)
    """

    pseudonyms: NDArray[np.uint64]
    profiles: NDArray[np.uint16]
    columns: tuple[NDArray[np.int32], ...]

    def part(self, rows: slice) -> "Subscribers":
        """Return some of the items, without a copy."""
        return Subscribers(
            pseudonyms=self.pseudonyms[rows],
            profiles=self.profiles[:, rows],
            columns=tuple(column[rows] for column in self.columns),
        )


Job = Callable[[Subscribers, ldp.KeyedPrf], Counts]


def make_subscribers(n: int) -> Subscribers:
    """Uniform random values from a fixed key."""
    stream = ldp.KeyedStream(b"benchmark people")
    pseudonyms = stream.words(n)
    columns = tuple(stream.uniform_int(n, 0, k).astype(np.int32) for k in DOMAIN_SIZES)
    return Subscribers(pseudonyms=pseudonyms, columns=columns, profiles=np.stack(columns).astype(np.uint16))


def smp_grr(people: Subscribers, prf: ldp.KeyedPrf) -> Counts:
    """One indicator each, by GRR."""
    return _grr(ldp.smp_counts, people, prf, channels=_GRR)


def spl_grr(people: Subscribers, prf: ldp.KeyedPrf) -> Counts:
    """All indicators, by GRR with a sixth of epsilon."""
    return _grr(ldp.spl_counts, people, prf, channels=_SIXTH_GRR)


def rsfd_grr(people: Subscribers, prf: ldp.KeyedPrf) -> Counts:
    """An answer by GRR among uniform codes."""
    return _rsfd(people, prf, channel=_RSFD_GRR)


def rsfd_ouez(people: Subscribers, prf: ldp.KeyedPrf) -> Counts:
    """An answer by OUE among the bits of no value."""
    return _rsfd(people, prf, channel=_RSFD_OUEZ)


def smp_losue(people: Subscribers, prf: ldp.KeyedPrf) -> Counts:
    """One indicator each, by two rounds of unary encoding."""
    return _smp_two_rounds(people, prf, channels=_LOSUE)


def smp_allomfree(people: Subscribers, prf: ldp.KeyedPrf) -> Counts:
    """One indicator each, by two rounds of GRR or of unary encoding, the one with the smaller error."""
    return _smp_two_rounds(people, prf, channels=_ALLOMFREE)


JOBS: Final[Mapping[str, Job]] = {
    "Smp[GRR]": smp_grr,
    "Spl[GRR]": spl_grr,
    "RS+FD[GRR]": rsfd_grr,
    "RS+FD[OUE-z]": rsfd_ouez,
    "Smp[L-OSUE]": smp_losue,
    "Smp[ALLOMFREE]": smp_allomfree,
}


def grr_channels(epsilon: Fraction) -> list[ldp.GrrChannel]:
    """Channels of all indicators."""
    return [ldp.grr_channel(epsilon=epsilon, domain_size=k) for k in DOMAIN_SIZES]


def _grr(
    count: Callable[..., tuple[NDArray[np.int64], ...]],
    people: Subscribers,
    prf: ldp.KeyedPrf,
    *,
    channels: list[ldp.GrrChannel],
) -> Counts:
    return list(
        count(
            people.profiles,
            pseudonyms=people.pseudonyms,
            prf=prf,
            channels=channels,
            plan_version=_VERSION,
        )
    )


def _rsfd(people: Subscribers, prf: ldp.KeyedPrf, *, channel: ldp.FakeDataChannel) -> Counts:
    return list(
        ldp.fake_data_counts(
            people.columns,
            pseudonyms=people.pseudonyms,
            prf=prf,
            channel=channel,
            plan_version=_VERSION,
        )
    )


def _smp_two_rounds(people: Subscribers, prf: ldp.KeyedPrf, *, channels: list[TwoRounds]) -> Counts:
    asked = ldp.choose_indicator(people.pseudonyms, prf=prf, d=len(channels))
    counts = []
    for indicator, channel in enumerate(channels):
        rows = np.flatnonzero(asked == indicator)
        form = ldp.GrrReporter if isinstance(channel, ldp.TwoRoundGrr) else ldp.UnaryReporter
        reporter = form(channel=channel, prf=prf, indicator=indicator, plan_version=_VERSION)
        values, pseudonyms = people.columns[indicator][rows], people.pseudonyms[rows]
        counts.append(reporter.support(values, pseudonyms=pseudonyms, report=0).counts)
    return counts


_GRR: Final = grr_channels(EPSILON)
_SIXTH_GRR: Final = grr_channels(EPSILON / len(DOMAIN_SIZES))
_RSFD_GRR: Final = ldp.fake_data_channel("grr", epsilon=EPSILON, unit="attribute", domain_sizes=DOMAIN_SIZES)
_RSFD_OUEZ: Final = ldp.fake_data_channel(
    "ouez", epsilon=EPSILON, unit="attribute", domain_sizes=DOMAIN_SIZES
)
_LOSUE: Final[list[TwoRounds]] = [
    ldp.lue_channel("l-osue", epsilon_inf=EPSILON, epsilon_1=EPSILON_1, domain_size=k) for k in DOMAIN_SIZES
]
_ALLOMFREE: Final[list[TwoRounds]] = [
    ldp.allomfree_channel(epsilon_inf=EPSILON, epsilon_1=EPSILON_1, domain_size=k) for k in DOMAIN_SIZES
]
