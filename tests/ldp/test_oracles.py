"""Frequency oracles with keyed bits: against plain Python, golden reports, and the promised frequencies."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldp import (
    KeyedPrf,
    LdpError,
    UnaryChannel,
    adp_channel,
    blh_channel,
    grr_channel,
    hadamard_channel,
    histogram_channel,
    histogram_frequencies,
    histogram_variance,
    olh_channel,
    oue_channel,
    pure_frequencies,
    pure_variance,
    subset_channel,
    sue_channel,
    the_channel,
)
from ldp.channels import WORD
from ldp.entropy import ANSWER, HASH_SEED, HASH_VALUE
from ldp.kernels import NO_ANSWER
from ldp.kernels_oracles import NO_COUNT
from ldp.mechanisms import grr, hadamard, hashing, histogram, subset, unary
from ldp.mechanisms.oracles import count_support, oracle_answers, support_counts
from tests.ldp.exact import FixedPrf, has_bit, packed, reference_numbers, reference_words

KEY = bytes(range(100, 116))
PUBLIC_KEY = b"ldp: public hash"
MAKERS = {
    "GRR": grr_channel,
    "SUE": sue_channel,
    "OUE": oue_channel,
    "THE": the_channel,
    "BLH": blh_channel,
    "OLH": olh_channel,
    "SS": subset_channel,
    "HR": hadamard_channel,
    "ADP": adp_channel,
}
makers = pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)


def answer_all(values: np.ndarray, *, channel: Any, mechanism: Any = None, **changes: Any) -> Any:
    arguments = {
        "pseudonyms": np.arange(values.size, dtype=np.uint64),
        "prf": KeyedPrf(KEY),
        "indicator": 2,
        "plan_version": 1,
    } | changes
    answers = oracle_answers if mechanism is None else mechanism.answers
    return answers(values, channel=channel, **arguments)


def as_lists(reports: Any) -> list[Any]:
    if isinstance(reports, hashing.HashReports):
        return [reports.seeds.tolist(), reports.cells.tolist()]
    return reports.tolist()


def stream(**fields: int) -> Iterator[int]:
    """Words of one answer, one after the other."""
    counter = 0
    while True:
        yield from reference_words(KEY, purpose=ANSWER, counter=counter, **fields)
        counter += 1


def reference_report(value: int, *, channel: Any, fields: dict[str, int]) -> Any:
    """Plain Python, one subscriber, no redraws (no test meets a word that needs one)."""
    k, words = channel.domain_size, stream(value=value, **fields)
    if isinstance(channel, UnaryChannel):
        return packed(
            [
                int(number < (channel.threshold_p if j == value else channel.threshold_q))
                for j, number in enumerate(unary_numbers(k, value=value, **fields))
            ]
        )
    if channel in (GEOMETRIC,):
        return [reference_count(next(words), present=j == value) for j in range(k)]
    first = next(words)
    if hasattr(channel, "subset_size"):
        return packed(reference_subset(value, first < channel.threshold, words, channel=channel))
    column = next(words) % channel.n_columns
    if ((value + 1) & column).bit_count() % 2 == (first < channel.sign.threshold):
        column ^= (value + 1) & -(value + 1)
    return column


def unary_numbers(k: int, **fields: int) -> list[int]:
    """One random number per value."""
    groups = [
        reference_numbers(KEY, min(64, k - start), purpose=ANSWER, counter=start // 2, **fields)
        for start in range(0, k, 64)
    ]
    return [number for group in groups for number in group]


def reference_count(word: int, *, present: bool) -> int:
    y = GEOMETRIC.lowest
    for weight in GEOMETRIC.weights:
        if word < weight:
            break
        word -= weight
        y += 1
    return 1 - y if present else y


def reference_subset(value: int, included: bool, words: Iterator[int], *, channel: Any) -> list[int]:
    """Floyd's sampling as in the column of Bentley."""
    others = [v for v in range(channel.domain_size) if v != value]
    drawn = [next(words) for _ in range(channel.subset_size)]
    chosen: set[int] = set()
    for step in range(int(included), channel.subset_size):
        j = len(others) - channel.subset_size + step
        t = drawn[step] % (j + 1)
        chosen.add(others[j] if others[t] in chosen else others[t])
    if included:
        chosen.add(value)
    return [int(v in chosen) for v in range(channel.domain_size)]


GEOMETRIC = histogram_channel(epsilon=Fraction(1), domain_size=7)
REFERENCE_CASES = {
    "OUE": (oue_channel(epsilon=Fraction(2), domain_size=5), unary, [0]),
    "OUE-wide": (oue_channel(epsilon=Fraction(1), domain_size=100), unary, [0, 0]),
    "THE": (the_channel(epsilon=Fraction(2), domain_size=2), unary, [0]),
    "SS": (subset_channel(epsilon=Fraction(1), domain_size=37), subset, [0]),
    "SS-wide": (subset_channel(epsilon=Fraction(3), domain_size=140), subset, [0, 0, 0]),
    "SS-even": (subset_channel(epsilon=Fraction(1, 10), domain_size=9), subset, [0]),
    "HR": (hadamard_channel(epsilon=Fraction(1), domain_size=300), hadamard, NO_ANSWER),
    "SHE": (GEOMETRIC, histogram, [NO_COUNT] * 7),
}


@pytest.mark.parametrize("case", REFERENCE_CASES.values(), ids=REFERENCE_CASES)
@settings(max_examples=25)
@given(data=st.data(), indicator=st.integers(0, 254))
def test_reports_are_those_of_the_reference(case: Any, data: st.DataObject, indicator: int) -> None:
    channel, mechanism, nothing = case
    pseudonyms = data.draw(st.lists(st.integers(0, 2**64 - 1), max_size=12))
    k = channel.domain_size
    values = data.draw(st.lists(st.integers(-1, k - 1), min_size=len(pseudonyms), max_size=len(pseudonyms)))
    reports = answer_all(
        np.array(values, np.int32),
        channel=channel,
        mechanism=mechanism,
        pseudonyms=np.array(pseudonyms, np.uint64),
        indicator=indicator,
    )
    for report, value, pseudonym in zip(reports.tolist(), values, pseudonyms, strict=True):
        fields = {"pseudonym": pseudonym, "indicator": indicator, "plan_version": 1}
        expected = reference_report(value, channel=channel, fields=fields) if value >= 0 else nothing
        assert report == expected


def reference_cell(seed: int, value: int, *, n_cells: int) -> int:
    words = reference_words(
        PUBLIC_KEY, pseudonym=seed, purpose=HASH_VALUE, indicator=0, plan_version=0, value=value, counter=0
    )
    return words[0] % n_cells


def test_hashed_reports_are_those_of_the_reference() -> None:
    channel = olh_channel(epsilon=Fraction(3), domain_size=50)
    values = np.array([0, 49, 7, -1, 7, 13], np.int32)
    reports = answer_all(values, channel=channel)
    g = channel.cells.domain_size
    for i, value in enumerate(values.tolist()):
        fields = {"pseudonym": i, "indicator": 2, "plan_version": 1, "value": max(value, 0), "counter": 0}
        seed, _ = reference_words(KEY, purpose=HASH_SEED, **fields)
        assert reports.seeds[i] == seed
        first, second = reference_words(KEY, purpose=ANSWER, **fields)
        cell = reference_cell(seed, value, n_cells=g) if value >= 0 else 0
        replaced = second % (g - 1)
        expected = cell if first < channel.cells.threshold else replaced + (replaced >= cell)
        assert reports.cells[i] == (expected if value >= 0 else NO_ANSWER)
    support = count_support(reports, channel=channel)
    assert support.tolist() == [
        sum(
            reference_cell(int(seed), v, n_cells=g) == cell
            for seed, cell in zip(reports.seeds, reports.cells.tolist(), strict=True)
        )
        for v in range(50)
    ]


def test_cells_are_uniform_and_independent() -> None:
    """What q = 1/g rests on: over the seeds, pairs of cells of two values are uniform."""
    n, g = 90_000, 3
    seeds = np.arange(n, dtype=np.uint64)
    pairs = g * hashing.hash_values(seeds, values=4, n_cells=g) + hashing.hash_values(
        seeds, values=5, n_cells=g
    )
    counts = np.bincount(pairs.astype(np.int64), minlength=g * g)
    expected = n / g**2
    assert np.sum((counts - expected) ** 2 / expected) < 30  # chi-square, 8 degrees of freedom: 0.0002
    with pytest.raises(LdpError, match="bound must be >= 1, got 0"):
        hashing.hash_values(seeds, values=4, n_cells=0)


def test_biased_hash_words_are_drawn_again_with_their_own_value() -> None:
    bits = {(0, 7, 0): WORD - 1, (1, 8, 0): 5, (2, 9, 0): WORD - 1, (0, 7, 1): 2, (2, 9, 1): 4}
    prf = FixedPrf(lambda pseudonym, *, value, counter: (bits[pseudonym, value, counter], 0))
    drawn = prf.below(
        np.arange(3, dtype=np.uint64),
        bound=3,
        purpose=1,
        indicator=0,
        plan_version=0,
        value=np.array([7, 8, 9], np.uint32),
    )
    assert drawn.tolist() == [2, 2, 1]


def test_biased_subsets_are_drawn_again_from_the_next_counters() -> None:
    channel = subset_channel(epsilon=Fraction(1, 10), domain_size=8)
    assert channel.subset_size == 4
    top, low = WORD - 1, 0  # words 1 to 4 are reduced modulo 4 to 7; the last three are biased at the top
    bits = {
        0: [(low, 0), (top, 3), (low, 0)],
        1: [(0, 1), (0, top), (2, 2)],
        2: [(3, 0), (6, 0), (top, 0)],
        3: [None, (top, 0), (top, 1)],
        4: [None, (5, 6), (2, 6)],
        5: [None, (6, 0), (3, 0)],
    }
    prf = FixedPrf(lambda pseudonym, *, value, counter: bits[counter][pseudonym])  # noqa: ARG005
    reports = answer_all(
        np.array([2, 2, 0], np.int32), channel=channel, prf=prf, pseudonyms=np.arange(3, dtype=np.uint64)
    )
    sets = [[value for value in range(8) if has_bit(reports, value)[row]] for row in range(3)]
    # The others of 2 are 0 1 3 4 5 6 7. Row 0 holds 2, and words 2 to 4 draw 0, 1, 3 up to places 4, 5, 6.
    assert sets[0] == [0, 1, 2, 4]
    # Row 1, again: 0, 5 % 5, 6 % 6, 6 up to places 3 to 6; those taken already give the last place itself.
    assert sets[1] == [0, 5, 6, 7]
    # Row 2, again: 1, 2, 6 % 6, 3 of 1 2 3 4 5 6 7; its first attempt would have held the value.
    assert sets[2] == [1, 2, 3, 4]


@makers
@pytest.mark.parametrize("value", [0, 10])
def test_support_is_as_frequent_as_the_channel_says(maker: Any, value: int) -> None:
    n, k = 60_000, 11
    channel = maker(epsilon=Fraction(1), domain_size=k)
    values = np.full(n, value, np.int32)
    counts = count_support(answer_all(values, channel=channel), channel=channel)
    probabilities = np.full(k, float(channel.q))
    probabilities[value] = float(channel.p)
    standard_errors = np.sqrt(n * probabilities * (1 - probabilities))
    assert counts.dtype == np.int64
    assert np.all(np.abs(counts - n * probabilities) < 4.5 * standard_errors)


@makers
@pytest.mark.parametrize("domain_size", [2, 5, 64])
def test_counts_need_no_reports_in_memory(
    maker: Any, domain_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ldp.mechanisms.oracles._BYTES_AT_ONCE", 700)
    monkeypatch.setattr("ldp.mechanisms.subset._WORDS_AT_ONCE", 1000)
    rng = np.random.default_rng(3)
    values = rng.integers(-1, domain_size, 5000).astype(np.int32)
    channel = maker(epsilon=Fraction(1), domain_size=domain_size)
    arguments = {
        "pseudonyms": rng.integers(0, 2**63, 5000, dtype=np.uint64),
        "prf": KeyedPrf(KEY),
        "channel": channel,
        "indicator": 0,
        "plan_version": 3,
    }
    direct = support_counts(values, **arguments)
    monkeypatch.undo()
    reports = oracle_answers(values, **arguments)
    assert direct.tolist() == count_support(reports, channel=channel).tolist()
    assert 0 < direct.min() < direct.max() <= np.count_nonzero(values >= 0)


@makers
def test_reports_do_not_depend_on_the_company(maker: Any) -> None:
    rng = np.random.default_rng(5)
    pseudonyms = rng.integers(0, 2**63, 20_000, dtype=np.uint64)
    values = rng.integers(-1, 8, 20_000).astype(np.int32)
    channel = maker(epsilon=Fraction(1, 2), domain_size=8)
    whole = answer_all(values, channel=channel, pseudonyms=pseudonyms)
    part = answer_all(values[17_000:], channel=channel, pseudonyms=pseudonyms[17_000:])
    if isinstance(whole, hashing.HashReports):
        whole, part = (np.stack([r.seeds, r.cells.astype(np.uint64)], axis=1) for r in (whole, part))
    assert np.array_equal(whole[17_000:], part)


GOLDEN: dict[str, list[Any]] = {
    "SUE": [[1], [2], [0], [10], [0], [0]],
    "OUE": [[1], [2], [0], [10], [0], [0]],
    "THE": [[1], [2], [0], [10], [0], [0]],
    "OLH": [
        [
            13234133333110474997,
            4352443633134297294,
            16107812259062714286,
            18071810391309965240,
            3974422911793831925,
            5785994446923298973,
        ],
        [1, 3, 2, 3, 2, 65535],
    ],
    "SS": [[1], [2], [1], [2], [8], [0]],
    "HR": [4, 1, 1, 1, 6, 65535],
    "SHE": [
        [4, -1, 1, -2, 0],
        [-3, 1, 1, 5, 2],
        [11, 2, 1, 3, 0],
        [1, 1, -1, -2, 1],
        [13, -2, 0, 1, 1],
        [-32768, -32768, -32768, -32768, -32768],
    ],
}


@pytest.mark.parametrize("name", ["SUE", "OUE", "THE", "OLH", "SS", "HR", "SHE"])
def test_golden_reports(name: str) -> None:
    maker = MAKERS.get(name, histogram_channel)
    mechanism = histogram if name == "SHE" else None
    channel = maker(epsilon=Fraction(1), domain_size=5)
    reports = answer_all(np.array([0, 1, 2, 3, 4, -1], np.int32), channel=channel, mechanism=mechanism)
    assert as_lists(reports) == GOLDEN[name]


def test_golden_bits_of_many_values() -> None:
    """Two groups of lanes: the layout of their blocks must never change."""
    channel = sue_channel(epsilon=Fraction(1), domain_size=70)
    reports = answer_all(np.array([0, 30, 69, -1], np.int32), channel=channel)
    assert reports.tolist() == [
        [1996115571288435425, 8],
        [5972091370083501747, 34],
        [13693914856574042996, 52],
        [0, 0],
    ]


@makers
@pytest.mark.parametrize(("value", "changes"), [(1, {}), (0, {"indicator": 3}), (0, {"plan_version": 2})])
def test_another_value_indicator_or_plan_gets_independent_bits(
    maker: Any, value: int, changes: dict[str, int]
) -> None:
    n = 20_000
    channel = maker(epsilon=Fraction(1), domain_size=6)
    before = supported(answer_all(np.zeros(n, np.int32), channel=channel), 0, channel=channel)
    after = answer_all(np.full(n, value, np.int32), channel=channel, **changes)
    both = int((before & supported(after, value, channel=channel)).sum())
    expected = float(channel.p) ** 2
    assert abs(both - n * expected) < 5 * np.sqrt(n * expected * (1 - expected))


def supported(reports: Any, value: int, *, channel: Any) -> np.ndarray:
    """Which reports support a value."""
    if isinstance(reports, hashing.HashReports):
        n_cells = channel.cells.domain_size
        cells = hashing.hash_values(reports.seeds, values=value, n_cells=n_cells)
        return np.asarray(cells == reports.cells)
    if reports.ndim == 2:
        return has_bit(reports, value)
    if hasattr(channel, "sign"):
        return np.array([(y & (value + 1)).bit_count() % 2 == 0 for y in reports.tolist()])
    return np.asarray(reports == value)


N_KEYS = 120


@pytest.mark.parametrize("name", [*MAKERS, "SHE"])
def test_errors_and_coverage_are_as_stated(name: str) -> None:
    """Whole way, many keys, 2,000 subscribers of whom 1,200 report."""
    k, population, n = 9, 2000, 1200
    truth = np.minimum(np.random.default_rng(8).geometric(0.4, population) - 1, k - 1).astype(np.int32)
    f = np.bincount(truth, minlength=k) / population
    channel = (MAKERS | {"SHE": histogram_channel})[name](epsilon=Fraction(2), domain_size=k)
    sizes = {"n_reports": n, "n_population": population, "channel": channel}
    count, frequencies, variance = support_counts, pure_frequencies, pure_variance
    if name == "SHE":
        count, frequencies, variance = histogram.sums, histogram_frequencies, histogram_variance
    rng = np.random.default_rng(21)
    errors, covered = np.empty((N_KEYS, k)), np.empty(N_KEYS)
    for run in range(N_KEYS):
        who = rng.permutation(population)[:n]
        counts = count(
            truth[who],
            pseudonyms=who.astype(np.uint64),
            prf=KeyedPrf(rng.bytes(16)),
            channel=channel,
            indicator=0,
            plan_version=1,
        )
        estimates = frequencies(counts, **sizes)
        errors[run] = estimates.frequency - f
        covered[run] = ((estimates.ci_low <= f) & (f <= estimates.ci_high)).mean()
    expected = variance(f, **sizes)
    assert np.all(np.abs(errors.mean(axis=0)) < 4.5 * np.sqrt(expected / N_KEYS))
    ratio = (errors**2 / expected).mean(axis=1)
    assert abs(ratio.mean() - 1) < 4.5 * ratio.std() / np.sqrt(N_KEYS)
    assert ratio.std() / np.sqrt(N_KEYS) < 0.07
    assert abs(covered.mean() - 0.95) < 4.5 * max(covered.std(), 0.01) / np.sqrt(N_KEYS) + 0.005


@pytest.mark.parametrize("mechanism", [grr, unary, hashing, subset, hadamard, histogram])
def test_values_outside_the_domain_are_refused(mechanism: Any) -> None:
    maker = {grr: grr_channel, unary: oue_channel, hashing: olh_channel, subset: subset_channel}.get(
        mechanism, hadamard_channel if mechanism is hadamard else histogram_channel
    )
    channel = maker(epsilon=Fraction(1), domain_size=8)
    for values, message in [
        (np.array([8], np.int32), r"value must be in \[-1, 8\), got 8 to 8"),
        (np.array([-2], np.int32), r"value must be in \[-1, 8\), got -2 to -2"),
        (np.array([1]), r"values must be int32 of shape \(1,\), got int64 of \(1,\)"),
    ]:
        with pytest.raises(LdpError, match=message):
            answer_all(values, channel=channel, mechanism=mechanism, pseudonyms=np.zeros(1, np.uint64))


def test_reports_that_do_not_fit_are_refused() -> None:
    oue = oue_channel(epsilon=Fraction(1), domain_size=3)
    for reports, message in (
        (np.zeros((2, 3), np.uint8), r"reports must be uint64 of shape \(n, 1\), got uint8 of \(2, 3\)"),
        (np.zeros((2, 2), np.uint64), r"uint64 of shape \(n, 1\), got uint64 of \(2, 2\)"),
        (np.zeros(2, np.uint64), r"uint64 of shape \(n, 1\), got uint64 of \(2,\)"),
        (np.array([[7], [8]], np.uint64), "reports must be of 3 values, got bits of others"),
    ):
        with pytest.raises(LdpError, match=message):
            count_support(reports, channel=oue)
    with pytest.raises(LdpError, match="reports must be of 3 values, got 6"):
        count_support(np.array([0, 5], np.uint16), channel=grr_channel(epsilon=Fraction(1), domain_size=3))
    with pytest.raises(LdpError, match="column must be < 4, got 4"):
        count_support(
            np.array([0, 4], np.uint16), channel=hadamard_channel(epsilon=Fraction(1), domain_size=3)
        )
    seeds = np.zeros(2, np.uint64)
    with pytest.raises(LdpError, match=r"cells must have shape \(2,\), got \(1,\)"):
        count_support(
            hashing.HashReports(seeds=seeds, cells=np.zeros(1, np.uint16)),
            channel=olh_channel(epsilon=Fraction(1), domain_size=3),
        )
    with pytest.raises(LdpError, match="must be one of a pure frequency oracle, got HistogramChannel"):
        answer_all(np.zeros(1, np.int32), channel=GEOMETRIC)
