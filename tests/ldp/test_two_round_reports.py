"""Reports of two rounds: against plain Python, and against the exact law of several reports."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp import KeyedPrf, KeyedStream, pure_frequencies, pure_variance
from ldp.channels import WORD, GrrChannel
from ldp.entropy import SECOND_ROUND
from ldp.errors import InvalidDomainError, LdpError
from ldp.families.two_round import TwoRoundGrr, lgrr_channel
from ldp.families.two_round_unary import TwoRoundUnary, allomfree_channel, lue_channel
from ldp.families.unary import UnaryChannel
from ldp.kernels import NO_ANSWER
from ldp.mechanisms import lanes, two_round
from ldp.mechanisms.two_round import GrrReporter, UnaryReporter
from tests.ldp.exact import has_bit, packed, reference_numbers, reference_words

KEY = bytes(range(30, 46))
NOMINAL = {"epsilon_inf": Fraction(2), "epsilon_1": Fraction(1)}
FIELDS = {"indicator": 3, "plan_version": 7}


def reporter(channel: TwoRoundGrr | TwoRoundUnary, **changes: Any) -> Any:
    kind = GrrReporter if isinstance(channel, TwoRoundGrr) else UnaryReporter
    return kind(channel=channel, **{"prf": KeyedPrf(KEY), **FIELDS} | changes)


def lgrr(k: int) -> TwoRoundGrr:
    return lgrr_channel(**NOMINAL, domain_size=k)


def losue(k: int) -> TwoRoundUnary:
    return lue_channel("l-osue", **NOMINAL, domain_size=k)


def test_purpose_and_layout_are_frozen() -> None:
    assert SECOND_ROUND == 5
    assert (two_round.MAX_REPORT + 1) << 10 == 2**16
    assert two_round.MAX_UNARY_DOMAIN // lanes.LANES * lanes.BLOCKS == 2**10


def reference_round(answer: int, *, channel: GrrChannel, counter: int, **fields: int) -> int:
    """One subscriber; the replacement is drawn again from the next counters while its word is biased."""
    kept, last = reference_words(KEY, counter=counter, **FIELDS, **fields)
    if kept < channel.threshold:
        return answer
    others = channel.domain_size - 1
    while last >= WORD // others * others:
        counter += 1
        _, last = reference_words(KEY, counter=counter, **FIELDS, **fields)
    return last % others + (last % others >= answer)


people = st.lists(st.tuples(st.integers(0, WORD - 1), st.integers(-1, 2047)), max_size=12)


@given(people=people, k=st.sampled_from([2, 3, 37, 65534]), report=st.integers(0, 63))
def test_lgrr_reports_are_those_of_the_reference(people: list[tuple[int, int]], k: int, report: int) -> None:
    channel = lgrr(k)
    values = [min(value, k - 1) for _, value in people]
    expected = []
    for (pseudonym, _), value in zip(people, values, strict=True):
        block = {"pseudonym": pseudonym, "value": value}
        if value < 0:
            expected.append(NO_ANSWER)
            continue
        kept = reference_round(value, channel=channel.first, purpose=3, counter=0, **block)
        expected.append(
            reference_round(kept, channel=channel.second, purpose=5, counter=report * 1024, **block)
        )
    codes = reporter(channel).reports(
        np.array(values, np.int32), pseudonyms=np.array([p for p, _ in people], np.uint64), report=report
    )
    assert codes.dtype == np.uint16
    assert codes.tolist() == expected


def reference_bits(bits: list[int], *, channel: UnaryChannel, counter: int, **fields: int) -> list[int]:
    """One lane after the other."""
    out: list[int] = []
    for start in range(0, len(bits), 64):
        group = bits[start : start + 64]
        numbers = reference_numbers(KEY, len(group), counter=counter + start // 2, **FIELDS, **fields)
        out += [
            int(number < (channel.threshold_p if bit else channel.threshold_q))
            for number, bit in zip(numbers, group, strict=True)
        ]
    return out


@pytest.mark.parametrize("protocol", ["l-sue", "l-oue", "l-osue", "l-soue"])
@pytest.mark.parametrize(("k", "report"), [(2, 0), (3, 1), (12, 2), (21, 3), (37, 4), (64, 9), (86, 63)])
def test_unary_reports_are_those_of_the_reference(protocol: Any, k: int, report: int) -> None:
    channel = lue_channel(protocol, **NOMINAL, domain_size=k)
    pseudonyms = KeyedStream(KEY).words(4)
    values = np.array([0, k - 1, -1, k // 2], np.int32)
    found = reporter(channel).reports(values, pseudonyms=pseudonyms, report=report)
    assert found.shape == (4, -(-k // 64))
    for pseudonym, value, row in zip(pseudonyms.tolist(), values.tolist(), found.tolist(), strict=True):
        if value < 0:
            assert row == [0] * len(row)
            continue
        block = {"pseudonym": pseudonym, "value": value}
        truth = [int(x == value) for x in range(k)]
        kept = reference_bits(truth, channel=channel.first, purpose=3, counter=0, **block)
        bits = reference_bits(kept, channel=channel.second, purpose=5, counter=report * 1024, **block)
        assert row == packed(bits)


PEOPLE = np.arange(24, dtype=np.uint64)


GOLDEN_CODES = [3, 1, 0, 2, 6, 5, 7, 3, 5, 7, 2, 7, 1, 7, 3, 3, 0, 2, 6, 3, 5, 5, 2, 2]
GOLDEN_BITS = [
    *[15, 36, 4, 234, 13, 1, 64, 45, 1, 1, 128, 96],
    *[3, 40, 73, 128, 2, 74, 1, 192, 150, 135, 72, 104],
]


def test_golden_reports() -> None:
    values = np.arange(24, dtype=np.int32) % 8
    codes = reporter(lgrr(8)).reports(values, pseudonyms=PEOPLE, report=5)
    bits = reporter(losue(8)).reports(values, pseudonyms=PEOPLE, report=5)
    assert codes.tolist() == GOLDEN_CODES
    assert bits[:, 0].tolist() == GOLDEN_BITS


@pytest.mark.parametrize("channel", [lgrr(8), losue(8), losue(100)], ids=["l-grr", "l-osue", "wide"])
def test_support_is_the_sum_of_the_reports_in_any_company(
    channel: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    n, k = 3000, channel.domain_size
    rng = np.random.default_rng(3)
    pseudonyms, values = KeyedStream(KEY).words(n), rng.integers(-1, k, n).astype(np.int32)
    whole = reporter(channel).reports(values, pseudonyms=pseudonyms, report=2)
    monkeypatch.setattr(two_round, "_PART", 700)
    monkeypatch.setattr(lanes, "BUFFER_BLOCKS", 701)
    order = rng.permutation(n)
    again = reporter(channel).reports(values[order], pseudonyms=pseudonyms[order], report=2)
    assert np.array_equal(whole[order], again)
    support = reporter(channel).support(values, pseudonyms=pseudonyms, report=2)
    assert support.n_reports == (values >= 0).sum()
    if whole.ndim == 1:
        expected = [(whole == v).sum() for v in range(k)]
    else:
        expected = [has_bit(whole, v).sum() for v in range(k)]
    assert support.counts.tolist() == [int(count) for count in expected]


def says(channel: Any, reports: np.ndarray, value: int) -> np.ndarray:
    """Whether each report supports the value."""
    if isinstance(channel, TwoRoundGrr):
        return reports == value
    return has_bit(reports, value)


def joint(channel: Any, *, is_true: bool, t: int) -> float:
    """Exact probability that t reports all support a value, true or not."""
    if isinstance(channel, TwoRoundGrr):
        unit = Fraction(1, (WORD * (channel.domain_size - 1)) ** (t + 1))
        return float(channel.weights(reports=t)[0 if is_true else 1] * unit)
    kept = channel.first.p if is_true else channel.first.q
    return float(kept * channel.second.p**t + (1 - kept) * channel.second.q**t)


@pytest.mark.parametrize(
    "channel",
    [
        lgrr(5),
        losue(70),
        lue_channel("l-sue", **NOMINAL, domain_size=5),
        lue_channel("l-oue", **NOMINAL, domain_size=5),
    ],
    ids=["l-grr", "l-osue", "l-sue", "l-oue"],
)
def test_reports_follow_the_exact_law_of_repeated_reports(channel: Any) -> None:
    n, value = 100_000, channel.domain_size - 2
    pseudonyms, values = KeyedStream(KEY).words(n), np.full(n, value, np.int32)
    reports = [reporter(channel).reports(values, pseudonyms=pseudonyms, report=day) for day in (1, 2, 3)]
    for candidate in (value, 0, channel.domain_size - 1):
        support = np.stack([says(channel, day, candidate) for day in reports])
        for t in (1, 2, 3):
            expected = joint(channel, is_true=candidate == value, t=t)
            found = support[:t].all(axis=0).mean()
            assert abs(found - expected) < 5 * np.sqrt(expected * (1 - expected) / n)


@pytest.mark.parametrize("channel", [lgrr(4), losue(4)], ids=["l-grr", "l-osue"])
@pytest.mark.parametrize("changes", [{"indicator": 4}, {"plan_version": 8}, {"value": 1}], ids=str)
def test_another_indicator_plan_or_value_gets_another_kept_answer(
    channel: Any, changes: dict[str, int]
) -> None:
    """Independent reports: supporting the own value twice has probability p squared."""
    n = 50_000
    pseudonyms, value = KeyedStream(KEY).words(n), changes.get("value", 0)
    fields = {name: field for name, field in changes.items() if name != "value"}
    one = reporter(channel).reports(np.zeros(n, np.int32), pseudonyms=pseudonyms, report=1)
    other = reporter(channel, **fields).reports(np.full(n, value, np.int32), pseudonyms=pseudonyms, report=2)
    both = (says(channel, one, 0) & says(channel, other, value)).mean()
    expected = float(channel.p) ** 2
    assert abs(both - expected) < 5 * np.sqrt(expected * (1 - expected) / n)


@pytest.mark.parametrize("domain_size", [3, 37])
def test_estimates_are_unbiased_and_intervals_cover(domain_size: int) -> None:
    """ALLOMFREE: L-GRR for the small domain, L-OSUE for the large one; 300 keys."""
    channel = allomfree_channel(**NOMINAL, domain_size=domain_size)
    assert isinstance(channel, TwoRoundGrr) == (domain_size == 3)
    n, n_keys = 1500, 300
    values = (np.arange(n) ** 2 % domain_size).astype(np.int32)
    truth = np.bincount(values, minlength=domain_size) / n
    sizes = {"n_reports": n, "n_population": n, "channel": channel}
    stream = KeyedStream(KEY)
    errors, covered = [], []
    for _ in range(n_keys):
        source = reporter(channel, prf=KeyedPrf(stream.words(2).tobytes()))
        support = source.support(values, pseudonyms=np.arange(n, dtype=np.uint64), report=1)
        estimates = pure_frequencies(support.counts, **sizes)
        errors.append(estimates.frequency - truth)
        covered.append(((estimates.ci_low <= truth) & (truth <= estimates.ci_high)).mean())
    variance = pure_variance(truth, **sizes)
    assert np.all(np.abs(np.mean(errors, axis=0)) < 5 * np.sqrt(variance / n_keys))
    shares = (np.array(errors) ** 2 / variance).mean(axis=1)
    assert abs(shares.mean() - 1) < 5 * shares.std() / np.sqrt(n_keys) < 0.3
    assert abs(np.mean(covered) - 0.95) < 5 * np.std(covered) / np.sqrt(n_keys) < 0.05


@pytest.mark.parametrize("channel", [lgrr(8), losue(8)], ids=["l-grr", "l-osue"])
@pytest.mark.parametrize("method", ["reports", "support"])
@pytest.mark.parametrize(
    ("value", "report", "message"),
    [
        (8, 0, r"value must be in \[-1, 8\), got 8 to 8"),
        (0, 64, r"report must be in \[0, 63\], got 64"),
        (0, -1, r"report must be in \[0, 63\], got -1"),
    ],
)
def test_what_does_not_fit_is_refused(
    channel: Any, method: str, value: int, report: int, message: str
) -> None:
    with pytest.raises(LdpError, match=message):
        getattr(reporter(channel), method)(
            np.array([value], np.int32), pseudonyms=np.zeros(1, np.uint64), report=report
        )


def test_unary_reports_of_too_many_values_are_refused() -> None:
    assert reporter(losue(2048)).channel.domain_size == 2048
    with pytest.raises(InvalidDomainError, match="domain_size of unary reports must be <= 2048, got 2049"):
        reporter(losue(2049))
