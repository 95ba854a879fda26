"""LOLOHA and dBitFlipPM reports: plain Python, exact laws, unbiased estimates."""

from collections import Counter
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np
import pytest

from ldp import KeyedPrf, KeyedStream, pure_frequencies, pure_variance
from ldp.entropy import HASH_SEED
from ldp.errors import LdpError
from ldp.families.bit_flip import bit_flip_channel
from ldp.families.two_round import TwoRoundHash, loloha_channel
from ldp.kernels import NO_ANSWER
from ldp.mechanisms import bit_flip, two_round
from ldp.mechanisms.bit_flip import BitFlipReporter
from ldp.mechanisms.hashing import hash_values
from ldp.mechanisms.two_round import GrrReporter, HashReporter
from tests.ldp.exact import has_bit, reference_words

KEY = bytes(range(60, 76))
NOMINAL = {"epsilon_inf": Fraction(3), "epsilon_1": Fraction(2)}
FIELDS = {"indicator": 3, "plan_version": 7}


def loloha(k: int, buckets: int | None = None) -> TwoRoundHash:
    return loloha_channel(**NOMINAL, domain_size=k, buckets=buckets)


def hasher(channel: TwoRoundHash, **changes: Any) -> HashReporter:
    return HashReporter(channel=channel, **{"prf": KeyedPrf(KEY), **FIELDS} | changes)


def flipper(k: int, sampled: int, **changes: Any) -> BitFlipReporter:
    channel = bit_flip_channel(epsilon=Fraction(2), domain_size=k, sampled=sampled)
    return BitFlipReporter(channel=channel, **{"prf": KeyedPrf(KEY), **FIELDS} | changes)


def ones(words: np.ndarray, k: int) -> np.ndarray:
    """Bits, shape (n, k)."""
    return np.stack([has_bit(words, v).astype(np.int64) for v in range(k)], axis=1)


@pytest.mark.parametrize("buckets", [2, None])
def test_loloha_is_lgrr_on_the_bucket_of_a_lasting_hash(buckets: int | None) -> None:
    channel = loloha(100, buckets)
    pseudonyms, values = KeyedStream(KEY).words(50), (np.arange(50) * 7 % 101 - 1).astype(np.int32)
    days = [hasher(channel).reports(values, pseudonyms=pseudonyms, report=day) for day in (1, 2)]
    seeds = [
        reference_words(KEY, pseudonym=pseudonym, purpose=6, value=0, counter=0, **FIELDS)[0]
        for pseudonym in pseudonyms.tolist()
    ]
    keyed = np.maximum(values, 0).view(np.uint32)
    cells = hash_values(np.array(seeds, np.uint64), values=keyed, n_cells=channel.buckets)
    rounds = GrrReporter(channel=channel.rounds, prf=KeyedPrf(KEY), **FIELDS)
    kept = np.where(values < 0, -1, cells.astype(np.int64)).astype(np.int32)
    for day, found in enumerate(days, start=1):
        assert found.seeds.tolist() == seeds
        assert np.array_equal(found.cells, rounds.reports(kept, pseudonyms=pseudonyms, report=day))
        assert (found.cells == NO_ANSWER).tolist() == (values < 0).tolist()


def test_loloha_values_of_one_bucket_give_one_report() -> None:
    channel, n = loloha(50, 2), 400
    pseudonyms = KeyedStream(KEY).words(n)
    first, second = (
        hasher(channel).reports(np.full(n, value, np.int32), pseudonyms=pseudonyms, report=1)
        for value in (0, 3)
    )
    assert np.array_equal(first.seeds, second.seeds)
    alike = hash_values(first.seeds, values=0, n_cells=2) == hash_values(first.seeds, values=3, n_cells=2)
    assert 150 < alike.sum() < 250
    assert np.array_equal(first.cells[alike], second.cells[alike])
    assert not np.array_equal(first.cells[~alike], second.cells[~alike])


def check_unbiased(
    errors: list[np.ndarray], *, variances: list[np.ndarray], covered: list[np.ndarray]
) -> None:
    """Errors of many keys: mean zero, square as the formula says, intervals that hold the truth."""
    n_keys = len(errors)
    assert np.all(np.abs(np.mean(errors, axis=0)) < 5 * np.sqrt(np.mean(variances, axis=0) / n_keys))
    shares = (np.array(errors) ** 2 / np.array(variances)).mean(axis=1)
    assert abs(shares.mean() - 1) < 5 * shares.std() / np.sqrt(n_keys) < 0.4
    hits = np.mean(covered, axis=1)
    assert abs(hits.mean() - 0.95) < 5 * hits.std() / np.sqrt(n_keys) < 0.06


@pytest.mark.parametrize("buckets", [2, None])
def test_loloha_estimates_are_unbiased_and_intervals_cover(
    buckets: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(two_round, "_PART", 500)
    channel, n = loloha(12, buckets), 1200
    values = (np.arange(n) ** 2 % 12).astype(np.int32)
    values[::10] = -1
    truth = np.bincount(values[values >= 0], minlength=12) / (values >= 0).sum()
    stream = KeyedStream(KEY)
    errors, variances, covered = [], [], []
    for _ in range(150):
        source = hasher(channel, prf=KeyedPrf(stream.words(2).tobytes()))
        support = source.support(values, pseudonyms=np.arange(n, dtype=np.uint64), report=1)
        sizes = {"n_reports": support.n_reports, "n_population": 1080, "channel": channel}
        assert support.n_reports == 1080
        estimates = pure_frequencies(support.counts, **sizes)
        errors.append(estimates.frequency - truth)
        variances.append(pure_variance(truth, **sizes))
        covered.append((estimates.ci_low <= truth) & (truth <= estimates.ci_high))
    check_unbiased(errors, variances=variances, covered=covered)


@pytest.mark.parametrize(("k", "sampled"), [(5, 2), (5, 1), (5, 5), (4, 3)])
def test_every_set_of_values_is_chosen_equally_often(k: int, sampled: int) -> None:
    n = 40_000
    chosen = flipper(k, sampled).chosen(KeyedStream(KEY).words(n))[:, 0]
    found = Counter(chosen.tolist())
    assert len(found) == comb(k, sampled)
    assert {word.bit_count() for word in found} == {sampled}
    p = 1 / comb(k, sampled)
    assert all(abs(count - n * p) <= 5 * np.sqrt(n * p * (1 - p)) for count in found.values())


def test_chosen_values_are_those_of_the_reference() -> None:
    pseudonyms = KeyedStream(KEY).words(30)
    chosen = flipper(130, 5).chosen(pseudonyms)
    for pseudonym, row in zip(pseudonyms.tolist(), chosen.tolist(), strict=True):
        expected: set[int] = set()
        for step in range(5):
            last = 125 + step
            drawn = reference_words(
                KEY, pseudonym=pseudonym, purpose=HASH_SEED, value=step, counter=0, **FIELDS
            )[0] % (last + 1)
            expected.add(last if drawn in expected else drawn)
        assert {v for v in range(192) if row[v // 64] >> v % 64 & 1} == expected


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
        share = bits[chosen[:, v], v].mean()
        assert abs(share - p) < 5 * np.sqrt(p * (1 - p) / chosen[:, v].sum())
    changed = source.reports(np.full(n, 0, np.int32), pseudonyms=pseudonyms)
    both = (bits & ones(changed, k).astype(bool))[chosen[:, k - 1], k - 1].mean()
    q = float(source.channel.q) ** 2
    assert abs(both - q) < 5 * np.sqrt(q * (1 - q) / chosen[:, k - 1].sum())


def test_bit_flip_estimates_are_unbiased_and_intervals_cover(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bit_flip, "BUFFER_BLOCKS", 700)
    k, n = 70, 4000
    values = (np.arange(n) ** 2 % k).astype(np.int32)
    values[::8] = -1
    present = values[values >= 0]
    truth = np.bincount(present, minlength=k) / present.size
    stream = KeyedStream(KEY)
    errors, variances, covered = [], [], []
    for _ in range(60):
        source = flipper(k, 30, prf=KeyedPrf(stream.words(2).tobytes()))
        support = source.support(values, pseudonyms=np.arange(n, dtype=np.uint64))
        assert support.n_reports.sum() == 30 * present.size
        sizes = {"n_reports": support.n_reports, "n_population": present.size, "channel": source.channel}
        estimates = pure_frequencies(support.counts, **sizes)
        errors.append(estimates.frequency - truth)
        variances.append(pure_variance(truth, **sizes))
        covered.append((estimates.ci_low <= truth) & (truth <= estimates.ci_high))
    check_unbiased(errors, variances=variances, covered=covered)


GOLDEN = [
    [9224498490812399616, 0],
    [8796093284616, 16],
    [74309393919909889, 32],
    [4645436627896320, 0],
    [5067099739389952, 0],
    [2315430751950087168, 0],
    [4295032833, 0],
    [708094145331200, 4],
    [1152930300968304640, 32],
    [2305843558971670530, 32],
    [17179869184, 16],
    [2251937286324225, 0],
]


def test_golden_bits() -> None:
    """Twelve subscribers, two groups of values; the layout of the blocks must never change."""
    values, pseudonyms = (np.arange(12) * 6).astype(np.int32), np.arange(12, dtype=np.uint64)
    assert flipper(70, 20).reports(values, pseudonyms=pseudonyms).tolist() == GOLDEN


def test_support_is_the_sum_of_the_reports() -> None:
    values, pseudonyms = (np.arange(300) % 71 - 1).astype(np.int32), KeyedStream(KEY).words(300)
    source = flipper(70, 9)
    support = source.support(values, pseudonyms=pseudonyms)
    assert np.array_equal(support.counts, ones(source.reports(values, pseudonyms=pseudonyms), 70).sum(axis=0))
    chosen = ones(source.chosen(pseudonyms), 70)[values >= 0]
    assert np.array_equal(support.n_reports, chosen.sum(axis=0))


@pytest.mark.parametrize("method", ["reports", "support"])
def test_what_does_not_fit_is_refused(method: str) -> None:
    arguments = {"pseudonyms": np.zeros(1, np.uint64)}
    for source, more in ((hasher(loloha(8)), {"report": 1}), (flipper(8, 2), {})):
        with pytest.raises(LdpError, match=r"value must be in \[-1, 8\), got 8 to 8"):
            getattr(source, method)(np.array([8], np.int32), **arguments, **more)
    with pytest.raises(LdpError, match=r"report must be in \[0, 63\], got 64"):
        getattr(hasher(loloha(8)), method)(np.array([7], np.int32), **arguments, report=64)


def test_reports_about_each_value_must_be_possible() -> None:
    channel = bit_flip_channel(epsilon=Fraction(2), domain_size=3, sampled=1)
    counts = np.array([1, 2, 3])
    good = {"n_population": 9, "channel": channel}
    for n_reports, message in (
        ([3, 0, 3], "n_reports must be >= 1, got 0"),
        ([3, 1, 3], "counts must be <= n_reports"),
        ([3, 10, 3], "n_population must be >= n_reports"),
    ):
        with pytest.raises(LdpError, match=message):
            pure_frequencies(counts, n_reports=np.array(n_reports), **good)
    assert pure_frequencies(counts, n_reports=np.array([3, 2, 3]), **good).frequency.shape == (3,)
