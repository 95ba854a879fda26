"""Attacks on the code itself: what an observer can prove about the loss from many reports.

Two neighbouring inputs go through the real mechanism with many pseudonyms. Half of the runs choose the event
that tells the inputs apart best, the other half tests it: what is tested was not fitted to its own data.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from functools import partial
from math import inf, log
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.kernels.entropy import KeyedPrf
from ldp.keyed import histogram
from ldp.keyed.bit_flip import BitFlipReporter
from ldp.keyed.hashing import HashReports, hash_values
from ldp.keyed.oracles import OracleChannel, oracle_answers
from ldp.keyed.two_round import GrrReporter, HashReporter, UnaryReporter
from ldp.privacy.certificates import Memoised, certify_reports
from ldp.protocols.bit_flip import BitFlipChannel
from ldp.protocols.channels import epsilon_of
from ldp.protocols.hadamard import HadamardChannel
from ldp.protocols.hashing import HashChannel
from ldp.protocols.histogram import HistogramChannel
from ldp.protocols.projective import ProjectiveChannel
from ldp.protocols.projective_space import is_orthogonal
from ldp.protocols.repeated.question import QuestionChannel
from ldp.protocols.subset import SubsetChannel
from ldp.protocols.two_round import TwoRoundGrr, TwoRoundHash
from ldp.protocols.two_round_unary import TwoRoundUnary
from ldp.protocols.unary import UnaryChannel
from ldp.research.binomial import clopper_pearson_low

Words = NDArray[np.uint64]
Table = NDArray[np.int64]
Pairs = Sequence[tuple[int, int]]
AuditChannel = OracleChannel | HistogramChannel | BitFlipChannel | TwoRoundGrr | TwoRoundUnary | TwoRoundHash

_RUNS_AT_ONCE: Final = 2**13
_FIELDS: Final = {"indicator": 0, "plan_version": 1}
ALL_ASKED: Final = -1  # in the place of the indicator asked
_SIZES: Final = (2**8, 2**16, 2**16, 2**16, 2, 2)  # of the parts of an outcome
_KEY_PARTS: Final = 4  # of each other outcome: whether the other key gives the same reports
_WORTH: Final = 0.1  # by which a finer event must be more telling
_Z: Final = 2.5  # of the rough bound that ranks events; the tested one is exact
_SHOWN_OUTCOMES: Final = 6
_REPORTERS: Final[dict[type, Any]] = {
    TwoRoundGrr: GrrReporter,
    TwoRoundUnary: UnaryReporter,
    TwoRoundHash: HashReporter,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Code under attack, with two neighbouring inputs.

    Parameters
    ----------
    mechanism, unit : str; the attacked one, and the difference of the inputs
    epsilon_certified : Decimal; what the loss must not exceed
    observe : callable (prf, pseudonyms, side) -> ndarray of int64, shape (n, m); all that each subscriber
        sends when the input is that of side 0 or 1
    summarise : callable (reports) -> ndarray of int64, shape (n, 4); what the observer looks at: the
        indicator asked (-1: all), reports that support only the value of side 0, and only that of side 1, and
        another count
    beside : str; unit of the last one; empty if nothing
    """

    mechanism: str
    unit: str
    epsilon_certified: Decimal
    observe: Callable[[KeyedPrf, Words, int], Table]
    summarise: Callable[[Table], Table]
    beside: str = ""


class _Event(NamedTuple):
    """Outcomes that one side makes likely, and a rough bound on what they tell."""

    bound: float
    outcomes: Table
    side: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult:
    """Result of an attack.

    Parameters
    ----------
    mechanism, unit : str; as of the target
    runs : int; subscribers per input, both halves together
    event : str; the event tested, in words
    epsilon_lower_bound : float; the loss is at least this, with `confidence`
    confidence : float
    epsilon_certified : Decimal
    """

    mechanism: str
    unit: str
    runs: int
    event: str
    epsilon_lower_bound: float
    confidence: float
    epsilon_certified: Decimal

    @property
    def is_within(self) -> bool:
        """Return whether the attack left the certificate standing."""
        return Decimal(self.epsilon_lower_bound) <= self.epsilon_certified

    def to_json(self) -> dict[str, Any]:
        """Plain values; epsilon_certified as a string, which keeps all of its digits."""
        return asdict(self) | {"epsilon_certified": str(self.epsilon_certified)}


def attack(
    target: Target,
    *,
    runs: int,
    confidence: float,
    key: bytes,
    prf_of: Callable[[bytes], KeyedPrf] = KeyedPrf,
) -> AuditResult:
    """Lower bound on the loss of a target.

    Parameters
    ----------
    target : Target
    runs : int; subscribers per input, at least 4
    confidence : float; in (0, 1)
    key : bytes, 16 of them; the secret key. The observer has another one, each bit of it turned
    prf_of : callable; source of keyed bits from a key

    Notes
    -----
    ln(low / high), with Clopper-Pearson bounds of the event's probability under the one and the other input,
    each at (1 + confidence) / 2. The observer also compares reports with those that the other key gives:
    equal ones show that the key does not matter. Source: Clopper and Pearson, Biometrika 1934; Jagielski et
    al., NeurIPS 2020 (auditing).
    """
    if runs < 4:
        raise LdpError(f"runs must be >= 4, got {runs}")
    if not 0 < confidence < 1:
        raise LdpError(f"confidence must be in (0, 1), got {confidence}")
    prf, guess = prf_of(key), prf_of(bytes(byte ^ 0xFF for byte in key))
    seen = [_outcomes(target, prf, guess, runs=runs, side=side) for side in (0, 1)]
    half = runs // 2
    event, side = _choose([outcomes[:half] for outcomes in seen])
    hits = [int(np.isin(outcomes[half:], event).sum()) for outcomes in seen]
    tested = runs - half
    low = clopper_pearson_low(hits[side], n=tested, miss=(1 - confidence) / 2)
    high = 1 - clopper_pearson_low(tested - hits[1 - side], n=tested, miss=(1 - confidence) / 2)
    return AuditResult(
        mechanism=target.mechanism,
        unit=target.unit,
        runs=runs,
        event=_in_words(event, side=side, beside=target.beside),
        epsilon_lower_bound=max(0.0, log(low / high)) if low > 0 else 0.0,
        confidence=confidence,
        epsilon_certified=target.epsilon_certified,
    )


def channel_target(mechanism: str, channel: AuditChannel, *, pairs: Pairs, unit: str) -> Target:
    """Target of one indicator that is reported several times; LdpError if the reports have no certificate.

    Parameters
    ----------
    mechanism, unit : str; for the result
    channel : channel of any frequency oracle or two-round mechanism
    pairs : sequence of (int, int); the value of each report under the one and the other input. Both inputs
        must change at the same times
    """
    return Target(
        mechanism=mechanism,
        unit=unit,
        epsilon_certified=_certified(channel, pairs),
        observe=partial(_observe_channel, channel, pairs),
        summarise=partial(_summarise_channel, channel, pairs),
        beside="bits about either" if isinstance(channel, BitFlipChannel) else "",
    )


def day_values(days: int, *, domain_size: int) -> list[tuple[int, int]]:
    """Inputs with a value per day, as many distinct ones as there are; the second is one ahead."""
    return [(day % domain_size, (day + 1) % domain_size) for day in range(days)]


def _certified(channel: AuditChannel, pairs: Pairs) -> Decimal:
    reports = list(Counter(first for first, _ in pairs).values())
    if isinstance(channel, TwoRoundHash) and len(reports) > 1:
        # Values that share a bucket do not change: only the bound for any two sequences holds.
        return epsilon_of(*[channel.second_ratio] * len(pairs))
    if isinstance(channel, TwoRoundGrr | TwoRoundUnary | TwoRoundHash):
        return certify_reports(channel, reports=reports).epsilon_values
    return certify_reports(Memoised(channel=channel), reports=reports).epsilon_values


def _observe_channel(
    channel: AuditChannel, pairs: Pairs, prf: KeyedPrf, pseudonyms: Words, side: int
) -> Table:
    columns = []
    for report, pair in enumerate(pairs):
        values = np.full(pseudonyms.shape[0], pair[side], np.int32)
        sent = _report(channel, prf, pseudonyms, values, report=report)
        if isinstance(sent, HashReports):
            columns.append(np.column_stack((sent.seeds, sent.cells.astype(np.uint64))).astype(np.int64))
        else:
            columns.append(sent.astype(np.int64).reshape(pseudonyms.shape[0], -1))
    return np.concatenate(columns, axis=1)


def _report(
    channel: AuditChannel, prf: KeyedPrf, pseudonyms: Words, values: NDArray[np.int32], *, report: int
) -> Any:
    match channel:
        case TwoRoundGrr() | TwoRoundUnary() | TwoRoundHash():
            reporter = _REPORTERS[type(channel)](channel=channel, prf=prf, **_FIELDS)
            return reporter.reports(values, pseudonyms=pseudonyms, report=report)
        case BitFlipChannel():
            bit_reporter = BitFlipReporter(channel=channel, prf=prf, **_FIELDS)
            bits = bit_reporter.reports(values, pseudonyms=pseudonyms)
            return np.column_stack((bits, bit_reporter.chosen(pseudonyms)))
        case HistogramChannel():
            return histogram.answers(values, pseudonyms=pseudonyms, prf=prf, channel=channel, **_FIELDS)
        case _:
            return oracle_answers(values, pseudonyms=pseudonyms, prf=prf, channel=channel, **_FIELDS)


def _summarise_channel(channel: AuditChannel, pairs: Pairs, reports: Table) -> Table:
    summary = np.zeros((reports.shape[0], 4), np.int64)
    summary[:, 0] = ALL_ASKED
    for pair, report in zip(pairs, np.split(reports, len(pairs), axis=1), strict=True):
        first, second = (_supports(channel, report, value) for value in pair)
        summary[:, 1] += first & ~second
        summary[:, 2] += second & ~first
        if isinstance(channel, BitFlipChannel):
            places = report[:, report.shape[1] // 2 :]
            summary[:, 3] += sum(has_bit(places, value) for value in pair)
    return summary


def has_bit(words: Table, value: int) -> NDArray[np.bool_]:
    """Return whether the bit of a value is set, 64 bits to a word."""
    return np.asarray(words[:, value // 64] >> (value % 64) & 1 == 1)


def _supports(channel: AuditChannel, report: Table, value: int) -> NDArray[np.bool_]:
    match channel:
        case HistogramChannel():
            # Of a noisy count, only its side of 1/2 tells 0 from 1: the ratio is the same on all of a side.
            return np.asarray(report[:, value] > 0)
        case HashChannel() | TwoRoundHash():
            n_cells = channel.buckets if isinstance(channel, TwoRoundHash) else channel.cells.domain_size
            cells = hash_values(report[:, 0].astype(np.uint64), values=value, n_cells=n_cells)
            return np.asarray(cells.astype(np.int64) == report[:, 1])
        case HadamardChannel():
            return np.asarray(np.bitwise_count(report[:, 0] & (value + 1)) % 2 == 0)
        case ProjectiveChannel() | QuestionChannel():
            return is_orthogonal(value, channel=channel)[report[:, 0]]
        case UnaryChannel() | SubsetChannel() | TwoRoundUnary() | BitFlipChannel():
            return has_bit(report, value)
        case _:
            return np.asarray(report[:, 0] == value)


def _outcomes(target: Target, prf: KeyedPrf, guess: KeyedPrf, *, runs: int, side: int) -> Table:
    """Summary of each run, and whether the other key gives the same reports (on side 0, side 1); one code."""
    outcomes = np.empty(runs, np.int64)
    for start in range(0, runs, _RUNS_AT_ONCE):
        stop = min(runs, start + _RUNS_AT_ONCE)
        # No pseudonym serves both inputs: all runs are independent.
        pseudonyms = np.arange(2 * start + side, 2 * stop, 2, dtype=np.uint64)
        reports = target.observe(prf, pseudonyms, side)
        same = [np.all(reports == target.observe(guess, pseudonyms, other), axis=1) for other in (0, 1)]
        parts = [*(target.summarise(reports) - (ALL_ASKED, 0, 0, 0)).T, *same]
        outcomes[start:stop] = np.ravel_multi_index(parts, _SIZES)
    return outcomes


def _choose(seen: list[Table]) -> tuple[Table, int]:
    """Outcomes that make up the most telling event, and the side that makes it likely."""
    merged = _best_event([outcomes // _KEY_PARTS for outcomes in seen])
    detailed = _best_event(seen)
    # Reports under another key split every event into four: this is used only if it matters.
    if detailed.bound > merged.bound + _WORTH:
        return detailed.outcomes, detailed.side
    return np.ravel(merged.outcomes[:, None] * _KEY_PARTS + np.arange(_KEY_PARTS)), merged.side


def _best_event(seen: list[Table]) -> _Event:
    kinds, index = np.unique(np.concatenate(seen), return_inverse=True)
    counts = [np.bincount(part, minlength=kinds.size) for part in np.split(index, 2)]
    best = _Event(bound=-inf, outcomes=kinds[:0], side=0)
    for side in (0, 1):
        likely, other = counts[side], counts[1 - side]
        order = np.argsort(-(likely + 0.5) / (other + 0.5), kind="stable")
        sums = np.cumsum(likely[order]) + 0.5, np.cumsum(other[order]) + 0.5
        spread = np.sqrt(1 / sums[0]) + np.sqrt(1 / sums[1])
        bounds = np.log(sums[0] / sums[1]) - _Z * spread
        last = int(bounds.argmax())
        if bounds[last] > best.bound:
            best = _Event(bound=float(bounds[last]), outcomes=kinds[order[: last + 1]], side=side)
    return best


def _in_words(event: Table, *, side: int, beside: str) -> str:
    same = ("neither input", "the first input", "the second input", "both inputs")
    groups: dict[tuple[int, ...], list[str]] = {}
    for code in np.sort(event):
        *seen, first, second = (int(part) for part in np.unravel_index(code, _SIZES))
        groups.setdefault(tuple(seen), []).append(same[first + 2 * second])
    shown = [
        (f"indicator {asked - 1} is asked, " if asked > 0 else "")
        + f"reports only for the first input's value: {first}, only for the second's: {second}"
        + (f", {beside}: {other}" if beside else "")
        + (f", another key repeats them under {' or '.join(equals)}" if len(equals) < _KEY_PARTS else "")
        for (asked, first, second, other), equals in list(groups.items())[:_SHOWN_OUTCOMES]
    ]
    more = f"; or {len(groups) - len(shown)} other outcomes" if len(groups) > len(shown) else ""
    return f"likelier under the {('first', 'second')[side]} input: " + "; or ".join(shown) + more
