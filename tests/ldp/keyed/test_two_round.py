"""Keyed lanes, reports of two rounds, LOLOHA and bit flip: against plain Python, and the exact law."""

from collections import Counter
from fractions import Fraction
from functools import partial
from math import comb
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp import KeyedPrf, KeyedStream, LdpError
from ldp.codes import NO_ANSWER
from ldp.kernels import lanes as kernels_bits
from ldp.kernels.entropy import BUFFER_BLOCKS, SECOND_ROUND
from ldp.keyed import lanes, two_round
from ldp.keyed.bit_flip import BitFlipReporter
from ldp.keyed.hashing import hash_values
from ldp.keyed.two_round import GrrReporter, HashReporter, UnaryReporter
from ldp.protocols.bit_flip import bit_flip_channel
from ldp.protocols.channels import WORD
from ldp.protocols.two_round import TwoRoundGrr, TwoRoundHash, lgrr_channel, loloha_channel
from ldp.protocols.two_round_unary import TwoRoundUnary, lue_channel
from tests.ldp.exact import (
    digest,
    has_bit,
    packed,
    reference_bits,
    reference_grr,
    reference_numbers,
    reference_words,
    refuses,
)

KEY = bytes(range(30, 46))
FIELDS = {"indicator": 3, "plan_version": 7}


@pytest.mark.parametrize("n_lanes", [1, 2, 7, 20, 32, 33, 64])
def test_each_lane_may_have_thresholds_of_its_own(n_lanes: int) -> None:
    p, q = KeyedStream(KEY).words(2 * n_lanes).reshape(2, n_lanes).tolist()
    q[-1], p[0], q[0] = 0, 1, WORD - 1
    n = BUFFER_BLOCKS + 40
    pseudonyms, *bits = KeyedStream(KEY).words(3 * n).reshape(3, n)
    truth, some = (words & np.uint64(2**n_lanes - 1) for words in bits)
    keyed = {"pseudonyms": pseudonyms, "keyed": np.arange(n, dtype=np.uint32) % 6, "prf": KeyedPrf(KEY)}
    digits = lanes.Digits.of_lanes(p=p, q=q)
    noisy = lanes.draw(truth, drawn=some, digits=digits, **keyed, purpose=4, counter=96, **FIELDS)
    for row in (*range(20), BUFFER_BLOCKS - 1, *range(BUFFER_BLOCKS, n)):
        block = {"pseudonym": int(pseudonyms[row]), "purpose": 4, "value": row % 6}
        numbers = reference_numbers(KEY, n_lanes, counter=96, **FIELDS, **block)
        thresholds = [(p if int(truth[row]) >> lane & 1 else q)[lane] for lane in range(n_lanes)]
        expected = sum(int(number < thresholds[lane]) << lane for lane, number in enumerate(numbers))
        assert int(noisy[row]) == expected & int(some[row])


@pytest.mark.parametrize("n_lanes", [1, 2, 3, 7, 12, 16, 20, 32, 33, 64])
def test_lane_is_one_exactly_below_its_threshold(n_lanes: int) -> None:
    pseudonyms = KeyedStream(KEY).words(3)
    fields = {"purpose": 3, **FIELDS, "counter": 64}
    people = pseudonyms.tolist()
    numbers = [reference_numbers(KEY, n_lanes, pseudonym=who, value=5, **fields) for who in people]
    every, none = np.full(3, 2**n_lanes - 1, np.uint64), [0] * n_lanes
    keyed = {"pseudonyms": pseudonyms, "keyed": 5, "prf": KeyedPrf(KEY), **fields}
    for changed in (0, *(1 << digit for digit in range(64))):
        thresholds = [number ^ changed for number in numbers[1]]
        expected = [
            sum(int(row[lane] < thresholds[lane]) << lane for lane in range(n_lanes)) for row in numbers
        ]
        for truth, p, q in ((0 * every, none, thresholds), (every, thresholds, none)):
            noisy = lanes.draw(truth, drawn=every, digits=lanes.Digits.of_lanes(p=p, q=q), **keyed)
            assert noisy.tolist() == expected


@pytest.mark.parametrize(("n_p", "n_q"), [(0, 0), (65, 65), (3, 4), (4, 3)])
def test_lanes_of_another_number_are_refused(n_p: int, n_q: int) -> None:
    with pytest.raises(LdpError, match=f"p and q must be of 1 to 64 lanes, the same, got {n_p} and {n_q}"):
        lanes.Digits.of_lanes(p=[1] * n_p, q=[1] * n_q)


def test_all_counters_of_a_group_must_fit() -> None:
    nothing = np.zeros(3, np.uint64)
    arguments = {"drawn": ~nothing, "digits": lanes.Digits.of_lanes(p=[5] * 64, q=[5] * 64), "purpose": 1}
    arguments |= {"pseudonyms": np.arange(3, dtype=np.uint64), "keyed": 0, "prf": KeyedPrf(KEY)}
    assert lanes.draw(nothing, **arguments, **FIELDS, counter=2**16 - 32).tolist() == [0, 0, 0]
    with pytest.raises(LdpError, match=r"counter must be in \[0, 65535\], got 65536"):
        lanes.draw(nothing, **arguments, **FIELDS, counter=2**16 - 31)


@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 1000])
@pytest.mark.parametrize("n_lanes", [1, 37, 64])
def test_counted_lanes_are_the_ones_of_each(n: int, n_lanes: int) -> None:
    words = KeyedStream(KEY).words(n)
    counts = np.full(n_lanes, 5, np.int64)
    kernels_bits.add_lanes(words, counts)
    assert counts.tolist() == [5 + sum(int(w) >> lane & 1 for w in words) for lane in range(n_lanes)]


def test_values_are_counted_across_words() -> None:
    words = KeyedStream(KEY).words(300).reshape(100, 3)
    counts = lanes.count_support(words, domain_size=150)
    assert counts.tolist() == [has_bit(words, value).sum() for value in range(150)]


NOMINAL = {"epsilon_inf": Fraction(2), "epsilon_1": Fraction(1)}


def reporter(channel: TwoRoundGrr | TwoRoundUnary, **changes) -> Any:
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


people = st.lists(st.tuples(st.integers(0, WORD - 1), st.integers(-1, 2047)), max_size=12)


@given(people=people, k=st.sampled_from([2, 3, 37, 65534]), report=st.integers(0, 63))
def test_lgrr_reports_are_those_of_the_reference(people: list[tuple[int, int]], k: int, report: int) -> None:
    channel = lgrr(k)
    values = [min(value, k - 1) for _, value in people]
    expected = []
    for (pseudonym, _), value in zip(people, values, strict=True):
        block = {"pseudonym": pseudonym, "value": value, **FIELDS}
        if value < 0:
            expected.append(NO_ANSWER)
            continue
        kept = reference_grr(KEY, value, channel=channel.first, purpose=3, **block)
        second = {"purpose": 5, "counter": report * 1024}
        expected.append(reference_grr(KEY, kept, channel=channel.second, **second, **block))
    pseudonyms = np.array([pseudonym for pseudonym, _ in people], np.uint64)
    codes = reporter(channel).reports(np.array(values, np.int32), pseudonyms=pseudonyms, report=report)
    assert codes.dtype == np.uint16
    assert codes.tolist() == expected


@pytest.mark.parametrize("protocol", ["l-sue", "l-oue", "l-osue", "l-soue"])
@pytest.mark.parametrize(("k", "report"), [(2, 0), (3, 1), (12, 2), (21, 3), (37, 4), (64, 9), (86, 63)])
def test_unary_reports_are_those_of_the_reference(protocol, k: int, report: int) -> None:
    channel = lue_channel(protocol, **NOMINAL, domain_size=k)
    pseudonyms = KeyedStream(KEY).words(4)
    values = np.array([0, k - 1, -1, k // 2], np.int32)
    found = reporter(channel).reports(values, pseudonyms=pseudonyms, report=report)
    assert found.shape == (4, -(-k // 64))
    for pseudonym, value, row in zip(pseudonyms.tolist(), values.tolist(), found.tolist(), strict=True):
        if value < 0:
            assert row == [0] * len(row)
            continue
        block = {"pseudonym": pseudonym, "value": value, **FIELDS}
        kept = reference_bits(KEY, value, channel=channel.first, purpose=3, **block)
        second = {"purpose": 5, "counter": report * 1024}
        assert row == packed(reference_bits(KEY, kept, channel=channel.second, **second, **block))


@pytest.mark.parametrize("channel", [lgrr(8), losue(8), losue(100)], ids=["l-grr", "l-osue", "wide"])
def test_support_is_the_sum_of_the_reports_in_any_company(channel, monkeypatch) -> None:
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


# --- LOLOHA and bit flip ------------------------------------------------------------------------------

LOLOHA_NOMINAL = {"epsilon_inf": Fraction(3), "epsilon_1": Fraction(2)}


def loloha(k: int, buckets: int | None = None) -> TwoRoundHash:
    return loloha_channel(**LOLOHA_NOMINAL, domain_size=k, buckets=buckets)


def hasher(channel: TwoRoundHash, **changes) -> HashReporter:
    return HashReporter(channel=channel, **{"prf": KeyedPrf(KEY), **FIELDS} | changes)


def flipper(k: int, sampled: int, **changes) -> BitFlipReporter:
    channel = bit_flip_channel(epsilon=Fraction(2), domain_size=k, sampled=sampled)
    return BitFlipReporter(channel=channel, **{"prf": KeyedPrf(KEY), **FIELDS} | changes)


def ones(words: np.ndarray, k: int) -> np.ndarray:
    return np.stack([has_bit(words, v).astype(np.int64) for v in range(k)], axis=1)


@pytest.mark.parametrize("buckets", [2, None])
def test_loloha_is_lgrr_on_the_bucket_of_a_lasting_hash(buckets: int | None) -> None:
    channel = loloha(100, buckets)
    pseudonyms, values = KeyedStream(KEY).words(50), (np.arange(50) * 7 % 101 - 1).astype(np.int32)
    days = [hasher(channel).reports(values, pseudonyms=pseudonyms, report=day) for day in (1, 2)]
    fields = {"purpose": 6, "value": 0, "counter": 0, **FIELDS}
    seeds = [reference_words(KEY, pseudonym=who, **fields)[0] for who in pseudonyms.tolist()]
    keyed = np.maximum(values, 0).view(np.uint32)
    cells = hash_values(np.array(seeds, np.uint64), values=keyed, n_cells=channel.buckets)
    rounds = GrrReporter(channel=channel.rounds, prf=KeyedPrf(KEY), **FIELDS)
    kept = np.where(values < 0, -1, cells.astype(np.int64)).astype(np.int32)
    for day, found in enumerate(days, start=1):
        assert found.seeds.tolist() == seeds
        assert np.array_equal(found.cells, rounds.reports(kept, pseudonyms=pseudonyms, report=day))
        assert (found.cells == NO_ANSWER).tolist() == (values < 0).tolist()


@pytest.mark.parametrize(("k", "sampled"), [(5, 2), (5, 1), (5, 5), (4, 3)])
def test_every_set_of_values_is_chosen_equally_often(k: int, sampled: int) -> None:
    n = 40_000
    chosen = flipper(k, sampled).chosen(KeyedStream(KEY).words(n))[:, 0]
    found = Counter(chosen.tolist())
    assert len(found) == comb(k, sampled)
    assert {word.bit_count() for word in found} == {sampled}
    p = 1 / comb(k, sampled)
    assert all(abs(count - n * p) <= 5 * np.sqrt(n * p * (1 - p)) for count in found.values())


@pytest.mark.parametrize(("k", "sampled"), [(6, 1), (6, 3), (100, 40)])
def test_bits_of_chosen_values_follow_the_channel_and_last(k: int, sampled: int) -> None:
    n, value = 60_000, k - 2
    source, pseudonyms = flipper(k, sampled), KeyedStream(KEY).words(n)
    values = np.full(n, value, np.int32)
    words = source.reports(values, pseudonyms=pseudonyms)
    assert np.array_equal(words, source.reports(values, pseudonyms=pseudonyms))
    chosen, bits = ones(source.chosen(pseudonyms), k).astype(bool), ones(words, k).astype(bool)
    assert not bits[~chosen].any()
    for v in (value, 0, k - 1):
        p = float(source.channel.p if v == value else source.channel.q)
        assert abs(bits[chosen[:, v], v].mean() - p) < 5 * np.sqrt(p * (1 - p) / chosen[:, v].sum())
    changed = source.reports(np.full(n, 0, np.int32), pseudonyms=pseudonyms)
    both = (bits & ones(changed, k).astype(bool))[chosen[:, k - 1], k - 1].mean()
    q = float(source.channel.q) ** 2
    assert abs(both - q) < 5 * np.sqrt(q * (1 - q) / chosen[:, k - 1].sum())


def test_golden_reports() -> None:
    people = np.arange(24, dtype=np.uint64)
    values = np.arange(24, dtype=np.int32) % 8
    found = {
        "l-grr": reporter(lgrr(8)).reports(values, pseudonyms=people, report=5),
        "l-osue": reporter(losue(8)).reports(values, pseudonyms=people, report=5),
        "bit flip": flipper(70, 20).reports(values, pseudonyms=people),
    }
    golden = {"l-grr": "a96f131018821f30", "l-osue": "4422225a5401b7ef", "bit flip": "6ff344d922dc4d47"}
    assert {name: digest(reports) for name, reports in found.items()} == golden


def test_support_of_bits_is_the_sum_of_the_reports() -> None:
    values, pseudonyms = (np.arange(300) % 71 - 1).astype(np.int32), KeyedStream(KEY).words(300)
    source = flipper(70, 9)
    support = source.support(values, pseudonyms=pseudonyms)
    assert np.array_equal(support.counts, ones(source.reports(values, pseudonyms=pseudonyms), 70).sum(axis=0))
    chosen = ones(source.chosen(pseudonyms), 70)[values >= 0]
    assert np.array_equal(support.n_reports, chosen.sum(axis=0))


@pytest.mark.parametrize("method", ["reports", "support"])
def test_what_does_not_fit_is_refused(method: str) -> None:
    sources = (reporter(lgrr(8)), reporter(losue(8)), hasher(loloha(8)), flipper(8, 2))
    for source in sources:
        report = partial(getattr(source, method), pseudonyms=np.zeros(1, np.uint64))
        more = {"report": 0} if source is not sources[-1] else {}
        refuses(r"value must be in \[-1, 8\), got 8 to 8", report, np.array([8], np.int32), **more)
        for number in (64, -1) if more else ():
            message = rf"report must be in \[0, 63\], got {number}"
            refuses(message, report, np.array([0], np.int32), report=number)
    assert reporter(losue(2048)).channel.domain_size == 2048
    refuses("domain_size of unary reports must be <= 2048, got 2049", reporter, losue(2049))
