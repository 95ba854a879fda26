"""Two rounds with keyed bits: L-GRR, LOLOHA and L-UE.

The first round draws from the block of purpose ANSWER, with the value: its answer is permanent. The
second draws from that of purpose SECOND_ROUND, with the same value and, in the upper 6 bits of the counter,
the report's number (for instance the day): the same on every retry, and independent of all other reports. The
lower 10 bits count redraws (L-GRR) or the blocks of `lanes`, 32 for each 64 values (L-UE).
"""

from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ldp.errors import InvalidDomainError, LdpError
from ldp.kernels import oracles
from ldp.kernels.entropy import ANSWER, BUFFER_BLOCKS, HASH_SEED, SECOND_ROUND, KeyedPrf, PlanFields, slices
from ldp.keyed import grr, lanes
from ldp.keyed.hashing import HashReports, count_support, hash_values
from ldp.protocols.hashing import HashChannel
from ldp.protocols.two_round import TwoRoundGrr, TwoRoundHash
from ldp.protocols.two_round_unary import TwoRoundUnary

MAX_REPORT: Final = 63
MAX_UNARY_DOMAIN: Final = 2048

REPORT_SHIFT: Final = 10
_PART: Final = 8 * BUFFER_BLOCKS  # subscribers at a time: few enough for memory, many enough for few calls

Words = NDArray[np.uint64]
Channel = TypeVar("Channel")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Support:
    """Counts of the reports that support each value: the input of `pure_frequencies`.

    Parameters
    ----------
    counts : ndarray of int64, shape (domain_size,)
    n_reports : int
    """

    counts: NDArray[np.int64]
    n_reports: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reporter(Generic[Channel]):
    """Reports on one indicator: the same arguments always give the same reports.

    Parameters
    ----------
    channel : as the class of the reporter says
    prf : KeyedPrf; source of the bits
    indicator : int; position in the plan
    plan_version : int; in [1, 255]
    """

    channel: Channel
    prf: KeyedPrf
    indicator: int
    plan_version: int

    @property
    def fields(self) -> PlanFields:
        """Fields of the keyed blocks."""
        return {"indicator": self.indicator, "plan_version": self.plan_version}


@dataclass(frozen=True, slots=True, kw_only=True)
class GrrReporter(Reporter[TwoRoundGrr]):
    """L-GRR reports."""

    def reports(self, values: NDArray[np.int32], *, pseudonyms: Words, report: int) -> NDArray[np.uint16]:
        """Sanitised code of each subscriber.

        Parameters
        ----------
        values : ndarray of int32, shape (n,); codes in [0, domain_size), or -1 for no value; not modified
        pseudonyms : ndarray of uint64, shape (n,)
        report : int; number of the report, in [0, 63]; each number gives fresh noise

        Returns
        -------
        ndarray of uint16, shape (n,); NO_ANSWER where the value is -1

        Raises
        ------
        LdpError : shapes differ, or a value or the report's number is out of range

        Notes
        -----
        Cost: two AES blocks per subscriber.
        """
        _check(values, pseudonyms=pseudonyms, domain_size=self.channel.domain_size, report=report)
        keyed = grr.keyed_values(values)
        kept = self._draw(values, keyed, pseudonyms, second=False, counter=0)
        return self._draw(kept, keyed, pseudonyms, second=True, counter=report << REPORT_SHIFT)

    def support(self, values: NDArray[np.int32], *, pseudonyms: Words, report: int) -> Support:
        """Count the codes of `reports` in bounded memory; arguments and errors as there."""
        k = self.channel.domain_size
        _check(values, pseudonyms=pseudonyms, domain_size=k, report=report)
        counts = np.zeros(k + 1, np.int64)
        for part in slices(values.shape[0], rows=_PART):
            codes = self.reports(values[part], pseudonyms=pseudonyms[part], report=report)
            oracles.count_codes(codes, counts)
        return Support(counts=counts[:k].copy(), n_reports=int(counts[:k].sum()))

    def _draw(
        self,
        values: NDArray[np.int32] | NDArray[np.uint16],
        keyed: NDArray[np.uint32],
        pseudonyms: Words,
        *,
        second: bool,
        counter: int,
    ) -> NDArray[np.uint16]:
        return grr.draw(
            values,
            keyed=keyed,
            pseudonyms=pseudonyms,
            prf=self.prf,
            channel=self.channel.second if second else self.channel.first,
            purpose=SECOND_ROUND if second else ANSWER,
            counter=counter,
            **self.fields,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HashReporter(Reporter[TwoRoundHash]):
    """LOLOHA reports.

    A subscriber has one hash per indicator and plan; the first round keeps one answer per hashed value.
    """

    def reports(self, values: NDArray[np.int32], *, pseudonyms: Words, report: int) -> HashReports:
        """Seed of the hash, and sanitised cell, of each subscriber.

        Notes
        -----
        Arguments and errors as in `GrrReporter.reports`. Cost: four AES blocks per subscriber.
        """
        _check(values, pseudonyms=pseudonyms, domain_size=self.channel.domain_size, report=report)
        seeds = self.prf.words(pseudonyms, **self.fields, purpose=HASH_SEED, values=0, counter=0)[:, 0].copy()
        buckets = hash_values(seeds, values=grr.keyed_values(values), n_cells=self.channel.buckets)
        cells = np.where(values < 0, np.int32(-1), buckets.astype(np.int32))
        rounds = GrrReporter(channel=self.channel.rounds, prf=self.prf, **self.fields)
        return HashReports(seeds=seeds, cells=rounds.reports(cells, pseudonyms=pseudonyms, report=report))

    def support(self, values: NDArray[np.int32], *, pseudonyms: Words, report: int) -> Support:
        """Count the values that `reports` support, in bounded memory; arguments and errors as there.

        Notes
        -----
        Cost: domain_size AES blocks per subscriber.
        """
        _check(values, pseudonyms=pseudonyms, domain_size=self.channel.domain_size, report=report)
        sizes = HashChannel(domain_size=self.channel.domain_size, cells=self.channel.rounds.first)
        counts = np.zeros(self.channel.domain_size, np.int64)
        for part in slices(values.shape[0], rows=_PART):
            hashed = self.reports(values[part], pseudonyms=pseudonyms[part], report=report)
            counts += count_support(hashed, channel=sizes)
        return Support(counts=counts, n_reports=int(np.count_nonzero(values >= 0)))


@dataclass(frozen=True, slots=True, kw_only=True)
class UnaryReporter(Reporter[TwoRoundUnary]):
    """L-UE reports; InvalidDomainError for more than 2048 values, too many for the counter."""

    def __post_init__(self) -> None:
        k = self.channel.domain_size
        if k > MAX_UNARY_DOMAIN:
            raise InvalidDomainError(f"domain_size of unary reports must be <= {MAX_UNARY_DOMAIN}, got {k}")

    def reports(self, values: NDArray[np.int32], *, pseudonyms: Words, report: int) -> Words:
        """Noisy bits of each subscriber, 64 values to a word.

        Returns
        -------
        ndarray of uint64, shape (n, ceil(domain_size / 64)); bit v % 64 of word v // 64 is that of value v;
        no bit is set where the value is -1

        Notes
        -----
        Arguments and errors as in `GrrReporter.reports`. Cost: of both rounds about 2 AES blocks per
        subscriber for up to 12 values, 8 or 9 for 33 to 64, and so on for each 64 values.
        """
        _check(values, pseudonyms=pseudonyms, domain_size=self.channel.domain_size, report=report)
        return lanes.reports(values, pseudonyms=pseudonyms, **self._source(report))

    def support(self, values: NDArray[np.int32], *, pseudonyms: Words, report: int) -> Support:
        """Count the bits of `reports` in bounded memory; arguments and errors as there."""
        _check(values, pseudonyms=pseudonyms, domain_size=self.channel.domain_size, report=report)
        counts = lanes.support_counts(values, pseudonyms=pseudonyms, **self._source(report))
        return Support(counts=counts, n_reports=int(np.count_nonzero(values >= 0)))

    def _source(self, report: int) -> dict[str, Any]:
        """Both rounds, and where their bits come from."""
        return {
            "rounds": (
                lanes.Round(channel=self.channel.first, purpose=ANSWER),
                lanes.Round(
                    channel=self.channel.second, purpose=SECOND_ROUND, counter=report << REPORT_SHIFT
                ),
            ),
            "prf": self.prf,
            **self.fields,
        }


def _check(values: NDArray[np.int32], *, pseudonyms: Words, domain_size: int, report: int) -> None:
    grr.check_values(values, pseudonyms=pseudonyms, domain_size=domain_size)
    if not 0 <= report <= MAX_REPORT:
        raise LdpError(f"report must be in [0, {MAX_REPORT}], got {report}")
