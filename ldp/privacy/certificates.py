"""Loss of repeated reports of one person, computed from the integers of a channel."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from math import prod
from typing import Protocol

from ldp.errors import LdpError
from ldp.protocols.channels import epsilon_of
from ldp.protocols.two_round import LongitudinalChannel, check_reports

_SPLIT_DIGITS = 100


class OneRoundChannel(Protocol):
    """Channel of one answer."""

    @property
    def domain_size(self) -> int:
        """Number of values."""

    @property
    def ratio(self) -> Fraction:
        """Largest probability ratio of an answer, exact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memoised(LongitudinalChannel):
    """One round of a channel with permanent memoisation: the answer to a value is drawn once and repeated."""

    channel: OneRoundChannel

    @property
    def kept_answers(self) -> int:
        return self.channel.domain_size

    @property
    def limit_ratio(self) -> Fraction:
        return self.channel.ratio

    @property
    def second_ratio(self) -> None:
        """None: whether two reports repeat one answer is in plain sight."""

    def ratio_of(self, *, reports: int) -> Fraction:
        """Ratio of one answer, however often it is repeated."""
        check_reports(reports)
        return self.channel.ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportsCertificate:
    """Losses of a person who reports m distinct values, each a number of times; rounded up to 30 digits.

    Parameters
    ----------
    reports : tuple of int, shape (m,); reports per distinct value
    ratio : Fraction; exact, of `epsilon_values`
    epsilon_report : Decimal; one report
    epsilon_value : Decimal; all reports of one value, the one reported most
    epsilon_values : Decimal; all reports, against sequences of values that change at the same times
    epsilon_limit : Decimal; any number of reports of m values, against the same sequences
    epsilon_sequence : Decimal or None; all reports, against any sequence; None = no bound

    Notes
    -----
    LOLOHA keeps answers per bucket: there, "value" means bucket, and values that share one count as equal.
    """

    reports: tuple[int, ...]
    ratio: Fraction
    epsilon_report: Decimal
    epsilon_value: Decimal
    epsilon_values: Decimal
    epsilon_limit: Decimal
    epsilon_sequence: Decimal | None


def certify_reports(channel: LongitudinalChannel, *, reports: Sequence[int]) -> ReportsCertificate:
    """Losses of reports that can be linked to one person, by closed forms.

    Parameters
    ----------
    channel : TwoRoundGrr, TwoRoundUnary, TwoRoundHash, or Memoised
    reports : sequence of int, shape (m,); reports per distinct value, at least 1 each; m in [1, kept_answers]

    Notes
    -----
    The first rounds of distinct values are independent, so their ratios multiply; that is attained when every
    value is replaced by another one. Against a sequence that changes at other times, two rounds lose at most
    the second round's ratio per report; one round has no bound, since equal answers show equal values.
    """
    counts = tuple(reports)
    _check_values(channel, n_values=len(counts))
    ratio_of = {t: channel.ratio_of(reports=t) for t in {1, *counts}}
    ratios = [ratio_of[t] for t in counts]
    ratio = Fraction(1)
    for entry in ratios:
        ratio *= entry
    second = channel.second_ratio
    return ReportsCertificate(
        reports=counts,
        ratio=ratio,
        epsilon_report=epsilon_of(ratio_of[1]),
        epsilon_value=epsilon_of(max(ratios)),
        epsilon_values=epsilon_of(*ratios),
        epsilon_limit=epsilon_of(*[channel.limit_ratio] * len(counts)),
        epsilon_sequence=None if second is None else epsilon_of(*[second] * sum(counts)),
    )


def epsilon_of_study(channel: LongitudinalChannel, *, reports: int, n_values: int) -> Decimal:
    """Return the largest `epsilon_values` of n reports of at most n_values distinct values; rounded up.

    Parameters, Notes : as of `worst_ratio`
    """
    return epsilon_of(worst_ratio(channel, reports=reports, n_values=n_values))


def worst_ratio(channel: LongitudinalChannel, *, reports: int, n_values: int) -> Fraction:
    """Return the largest `ratio` of n reports of at most n_values distinct values, exact.

    Parameters
    ----------
    channel : as in `certify_reports`
    reports : int; of one person in the study, at least 1
    n_values : int; in [1, kept_answers]

    Notes
    -----
    The worst way to share the reports among the values, by dynamic programming: two reports of one value can
    lose more, or less, than one report each of two. Cost O(n_values reports**2).
    """
    check_reports(reports)
    _check_values(channel, n_values=n_values)
    ratios = [Fraction(1), *(channel.ratio_of(reports=t) for t in range(1, reports + 1))]
    digits = Context(prec=_SPLIT_DIGITS)  # near its limit a loss hardly grows: splits differ late
    losses = [digits.ln(digits.divide(*map(Decimal, ratio.as_integer_ratio()))) for ratio in ratios]
    worst: list[tuple[Decimal, tuple[int, ...]]] = [(loss, (t,)) for t, loss in enumerate(losses)]
    for _ in range(min(n_values, reports) - 1):
        worst = [
            max((digits.add(worst[t - s][0], losses[s]), (*worst[t - s][1], s)) for s in range(t + 1))
            for t in range(reports + 1)
        ]
    return prod((ratios[t] for t in worst[reports][1]), start=Fraction(1))


def _check_values(channel: LongitudinalChannel, *, n_values: int) -> None:
    if not 1 <= n_values <= channel.kept_answers:
        raise LdpError(f"number of distinct values must be in [1, {channel.kept_answers}], got {n_values}")
