"""Frequency oracles with keyed bits: against plain Python, golden reports, and the promised frequencies."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from itertools import accumulate, combinations, count, product
from math import comb
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ldp
from ldp import NO_ANSWER, NO_COUNT, count_support, oracle_answers, support_counts
from ldp.kernels import oracles
from ldp.kernels import projective as points
from ldp.kernels.codes import reciprocal
from ldp.kernels.entropy import ANSWER, HASH_SEED, HASH_VALUE
from ldp.keyed import grr, hashing, histogram, subset, unary
from ldp.keyed.designs import hadamard, projective
from ldp.protocols.channels import WORD
from ldp.protocols.projective_space import space_of
from tests.ldp.exact import FixedPrf, digest, has_bit, packed, reference_bits, reference_words, refuses
from tests.ldp.protocols.test_families import PURE, projective_points

KEY = bytes(range(100, 116))
PUBLIC_KEY = b"ldp: public hash"
FIELDS = {"prf": ldp.KeyedPrf(KEY), "indicator": 2, "plan_version": 1}
MAKERS = PURE | {"ADP": ldp.adp_channel}
makers = pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)


def answer_all(values: np.ndarray, *, channel, mechanism=None, **changes) -> Any:
    arguments = {"pseudonyms": np.arange(values.size, dtype=np.uint64), **FIELDS} | changes
    answers = oracle_answers if mechanism is None else mechanism.answers
    return answers(values, channel=channel, **arguments)


def reference_report(value: int, *, channel, fields: dict[str, int]) -> Any:
    """Plain Python, one subscriber, no redraws (no test meets a word that needs one)."""
    k, fields = channel.domain_size, {"purpose": ANSWER, "value": value, **fields}
    words = (word for block in count() for word in reference_words(KEY, counter=block, **fields))
    if isinstance(channel, ldp.UnaryChannel):
        return packed(reference_bits(KEY, value, channel=channel, **fields))
    if channel in (GEOMETRIC,):
        totals = list(accumulate(GEOMETRIC.weights))
        noise = [GEOMETRIC.lowest + bisect_right(totals, next(words)) for _ in range(k)]
        return [1 - y if j == value else y for j, y in enumerate(noise)]
    first = next(words)
    if isinstance(channel, ldp.ProjectiveChannel):
        return reference_point(value, next(words), first < channel.threshold, channel=channel)
    if hasattr(channel, "subset_size"):
        return packed(reference_subset(value, first < channel.threshold, words, channel=channel))
    column = next(words) % channel.n_columns
    if ((value + 1) & column).bit_count() % 2 == (first < channel.sign.threshold):
        column ^= (value + 1) & -(value + 1)
    return column


def reference_point(value: int, word: int, is_inside: bool, *, channel) -> int:
    """Coordinates other than the value's first, which then makes the product 0, or 1."""
    prime, dimension = channel.prime, channel.dimension
    space = projective_points(prime, dimension)
    of_value = space[value]
    pivot = of_value.index(1)
    if is_inside:
        rest = projective_points(prime, dimension - 1)[word % channel.support_size]
    else:
        number = word % prime ** (dimension - 1)
        rest = tuple(number // prime**power % prime for power in reversed(range(dimension - 1)))
    point = [*rest[:pivot], 0, *rest[pivot:]]
    product = sum(a * b for a, b in zip(point, of_value, strict=True))
    point[pivot] = ((0 if is_inside else 1) - product) % prime
    inverse = pow(next(x for x in point if x), -1, prime)
    return space.index(tuple(x * inverse % prime for x in point))


def reference_subset(value: int, included: bool, words: Iterator[int], *, channel) -> list[int]:
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


GEOMETRIC = ldp.histogram_channel(epsilon=Fraction(1), domain_size=7)
REFERENCE_CASES = {
    "OUE": (ldp.oue_channel(epsilon=Fraction(2), domain_size=5), unary, [0]),
    "OUE-wide": (ldp.oue_channel(epsilon=Fraction(1), domain_size=100), unary, [0, 0]),
    "THE": (ldp.the_channel(epsilon=Fraction(2), domain_size=2), unary, [0]),
    "SS": (ldp.subset_channel(epsilon=Fraction(1), domain_size=37), subset, [0]),
    "SS-wide": (ldp.subset_channel(epsilon=Fraction(3), domain_size=140), subset, [0, 0, 0]),
    "SS-even": (ldp.subset_channel(epsilon=Fraction(1, 10), domain_size=9), subset, [0]),
    "HR": (ldp.hadamard_channel(epsilon=Fraction(1), domain_size=300), hadamard, NO_ANSWER),
    "PGR": (ldp.projective_channel(epsilon=Fraction(2), domain_size=96), projective, NO_ANSWER),
    "SHE": (GEOMETRIC, histogram, [NO_COUNT] * 7),
}


@pytest.mark.parametrize("case", REFERENCE_CASES.values(), ids=REFERENCE_CASES)
@settings(max_examples=25)
@given(data=st.data(), indicator=st.integers(0, 254))
def test_reports_are_those_of_the_reference(case, data: st.DataObject, indicator: int) -> None:
    channel, mechanism, nothing = case
    pseudonyms = data.draw(st.lists(st.integers(0, 2**64 - 1), max_size=12))
    k = channel.domain_size
    values = data.draw(st.lists(st.integers(-1, k - 1), min_size=len(pseudonyms), max_size=len(pseudonyms)))
    people, settings = np.array(pseudonyms, np.uint64), {"channel": channel, "mechanism": mechanism}
    fields = {"indicator": indicator, "plan_version": 255 - indicator}
    reports = answer_all(np.array(values, np.int32), pseudonyms=people, **settings, **fields)
    for report, value, pseudonym in zip(reports.tolist(), values, pseudonyms, strict=True):
        block = {"pseudonym": pseudonym, **fields}
        expected = reference_report(value, channel=channel, fields=block) if value >= 0 else nothing
        assert report == expected


def reference_cell(seed: int, value: int, *, n_cells: int) -> int:
    fields = {"purpose": HASH_VALUE, "indicator": 0, "plan_version": 0}
    words = reference_words(PUBLIC_KEY, pseudonym=seed, **fields, value=value, counter=0)
    return words[0] % n_cells


def test_hashed_reports_are_those_of_the_reference() -> None:
    channel = ldp.olh_channel(epsilon=Fraction(3), domain_size=50)
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
    assert support.shape == (50,)
    for v in range(50):
        cells = [reference_cell(seed, v, n_cells=g) for seed in reports.seeds.tolist()]
        assert support[v] == np.count_nonzero(cells == reports.cells)


def test_biased_subsets_are_drawn_again_from_the_next_counters() -> None:
    channel = ldp.subset_channel(epsilon=Fraction(1, 10), domain_size=8)
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
    reports = answer_all(np.array([2, 2, 0], np.int32), channel=channel, prf=prf)
    sets = [[value for value in range(8) if has_bit(reports, value)[row]] for row in range(3)]
    # The others of 2 are 0 1 3 4 5 6 7. Row 0 holds 2, and words 2 to 4 draw 0, 1, 3 up to places 4, 5, 6.
    assert sets[0] == [0, 1, 2, 4]
    # Row 1, again: 0, 5 % 5, 6 % 6, 6 up to places 3 to 6; those taken already give the last place itself.
    assert sets[1] == [0, 5, 6, 7]
    # Row 2, again: 1, 2, 6 % 6, 3 of 1 2 3 4 5 6 7; its first attempt would have held the value.
    assert sets[2] == [1, 2, 3, 4]


@makers
@pytest.mark.parametrize("domain_size", [2, 5, 64])
def test_counts_need_no_reports_in_memory(maker, domain_size, monkeypatch) -> None:
    monkeypatch.setattr("ldp.keyed.oracles._BYTES_AT_ONCE", 700)
    monkeypatch.setattr("ldp.keyed.subset._WORDS_AT_ONCE", 1000)
    rng = np.random.default_rng(3)
    values = rng.integers(-1, domain_size, 5000).astype(np.int32)
    channel = maker(epsilon=Fraction(1), domain_size=domain_size)
    arguments = {"pseudonyms": rng.integers(0, 2**63, 5000, dtype=np.uint64), "channel": channel, **FIELDS}
    direct = support_counts(values, **arguments)
    monkeypatch.undo()
    reports = oracle_answers(values, **arguments)
    assert direct.tolist() == count_support(reports, channel=channel).tolist()
    assert 0 < direct.min() < direct.max() <= np.count_nonzero(values >= 0)


@makers
def test_reports_do_not_depend_on_the_company(maker) -> None:
    rng = np.random.default_rng(5)
    pseudonyms = rng.integers(0, 2**63, 20_000, dtype=np.uint64)
    values = rng.integers(-1, 8, 20_000).astype(np.int32)
    channel = maker(epsilon=Fraction(1, 2), domain_size=8)
    whole = answer_all(values, channel=channel, pseudonyms=pseudonyms)
    part = answer_all(values[17_000:], channel=channel, pseudonyms=pseudonyms[17_000:])
    if isinstance(whole, hashing.HashReports):
        whole, part = (np.stack([r.seeds, r.cells.astype(np.uint64)], axis=1) for r in (whole, part))
    assert np.array_equal(whole[17_000:], part)


GOLDEN = {
    "SUE": "09631424438c624b",
    "OUE": "c76210cefd5a0fba",
    "THE": "353a17933ca383cd",
    "OLH": "2816a7a4415919ba",
    "SS": "0603052fb7b1982e",
    "HR": "51d062611e8ff817",
    "PGR": "be5f2c398883f8a4",
    "SHE": "72d1bad43bb56e98",
}


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_reports(name: str) -> None:
    """Frozen: another layout of the bits would give every subscriber a second answer."""
    maker = MAKERS.get(name, ldp.histogram_channel)
    mechanism = histogram if name == "SHE" else None
    channel = maker(epsilon=Fraction(1), domain_size=70)
    reports = answer_all(np.arange(-1, 70, dtype=np.int32), channel=channel, mechanism=mechanism)
    columns = [reports.seeds, reports.cells] if name == "OLH" else [reports]
    assert digest(*columns) == GOLDEN[name]


# --- inner loops on chosen bits: what they realise, for every word there is ---------------------------

TOP = 2**64 - 1


def as_words(rows: list[tuple[int, ...]]) -> np.ndarray:
    return np.array(rows, np.uint64)


def draw_subsets(value: int, *, k: int, w: int, threshold: int, size: int) -> tuple[np.ndarray, list[int]]:
    """All rows of words in [0, size), through the kernel, its parameters scaled down to that size."""
    bounds = range(k - w, k)
    words = as_words(list(product(range(size), repeat=1 + w)))
    last = np.array([size // bound * bound - 1 for bound in bounds], np.uint64)
    out = np.full((len(words), 1), TOP, np.uint64)
    values = np.full(len(words), value, np.int32)
    redraws = oracles.subset_bits(values, words, np.uint64(threshold), last, k, out)
    assert redraws == (out == 0).sum()
    return words, out[:, 0].tolist()


@pytest.mark.parametrize(("k", "w", "size"), [(2, 1, 8), (3, 1, 10), (3, 2, 9), (4, 2, 11), (5, 3, 8)])
def test_every_subset_is_equally_likely(k: int, w: int, size: int) -> None:
    threshold = size // 2
    for value in range(k):
        _, out = draw_subsets(value, k=k, w=w, threshold=threshold, size=size)
        counts = Counter(drawn for drawn in out if drawn)
        accepted = sum(counts.values())
        assert accepted > 0
        p = Fraction(threshold, size)
        for drawn in combinations(range(k), w):
            share = p / comb(k - 1, w - 1) if value in drawn else (1 - p) / comb(k - 1, w)
            assert Fraction(counts[sum(1 << v for v in drawn)], accepted) == share
        assert len(counts) == comb(k, w)


@pytest.mark.parametrize(("k", "columns"), [(2, 4), (5, 8), (12, 16), (300, 512), (9000, 16384)])
def test_columns_are_uniform_among_those_of_their_sign(k: int, columns: int) -> None:
    threshold, size = 3, 8
    words = as_words([(u, y + columns * z) for u in range(size) for y in range(columns) for z in (0, 5)])
    for value in {0, 1, 2, k // 2, k - 2, k - 1}:
        out = np.empty(len(words), np.uint16)
        values = np.full(len(words), value, np.int32)
        limits = np.uint64(threshold), np.uint64(columns - 1), np.uint64(NO_ANSWER)
        oracles.hadamard_columns(values, words, *limits, out)
        plus = [((value + 1) & y).bit_count() % 2 == 0 for y in range(columns)]
        assert sum(plus) == columns // 2
        share = 2 * len(words) // columns // size
        expected = [share * (threshold if is_plus else size - threshold) for is_plus in plus]
        assert np.bincount(out, minlength=columns).tolist() == expected


@pytest.mark.parametrize(("prime", "dimension"), [(2, 3), (2, 4), (3, 3), (3, 4), (5, 3)])
def test_points_are_uniform_among_those_of_their_kind(prime: int, dimension: int) -> None:
    space = projective_points(prime, dimension)
    inside, outside = len(projective_points(prime, dimension - 1)), prime ** (dimension - 1)
    size, threshold = inside * outside, 3
    # Of three words above the largest without bias, each is drawn again.
    words = as_words([(u, y) for u in (0, 2, 3, 4, 7) for y in range(size + 3)])
    limits = [threshold, size - 1, inside, reciprocal(inside), outside, reciprocal(outside)]
    coordinates, starts, *_ = space_of(prime, dimension)
    assert coordinates.tolist() == list(map(list, space))
    inverses = as_words([0, *(pow(x, -1, prime) for x in range(1, prime))])
    for value in range(len(space)):
        out = np.empty(len(words), np.uint16)
        values = np.full(len(words), value, np.int32)
        all_limits = as_words([*limits, prime, 2**32 // prime + 1])
        redraws = points.projective_points(values, words, all_limits, coordinates, inverses, starts, out)
        assert redraws == np.count_nonzero(out == NO_ANSWER) == 5 * 3
        holds = coordinates.astype(int) @ coordinates[value] % prime == 0
        expected = np.where(holds, 2 * outside, 3 * inside)
        assert np.bincount(out[out != NO_ANSWER]).tolist() == expected.tolist()


def test_biased_points_are_drawn_again_with_both_words() -> None:
    channel = ldp.projective_channel(epsilon=Fraction(1), domain_size=5)
    top = WORD - 1
    bits = {0: [(0, 1), (top, top), (top, 2)], 1: [None, (0, 3), None]}
    prf = FixedPrf(lambda pseudonym, *, value, counter: bits[counter][pseudonym])  # noqa: ARG005
    values = [1, 2, 4]
    drawn = answer_all(np.array(values, np.int32), channel=channel, prf=prf).tolist()
    expected = [(1, 1, True), (2, 3, True), (4, 2, False)]
    assert drawn == [reference_point(v, word, is_in, channel=channel) for v, word, is_in in expected]


@pytest.mark.parametrize("size", [1, 2, 8, 64])
def test_transform_is_the_product_with_the_matrix(size: int) -> None:
    matrix = [[1 - 2 * ((i & j).bit_count() % 2) for j in range(size)] for i in range(size)]
    counts = np.random.default_rng(size).integers(0, 1000, size)
    expected = np.array(matrix) @ counts
    oracles.walsh_hadamard(counts)
    assert counts.tolist() == expected.tolist()


def test_noisy_counts_realise_their_table_exactly() -> None:
    weights = [3, 5, 2, 6]  # of -1 to 2, out of 16
    table = np.cumsum(weights[:-1]).astype(np.uint64), -1
    words = as_words([(u, 15 - u) for u in range(16)])
    for value in range(3):
        values = np.full(16, value, np.int32)
        out, sums = np.empty((16, 3), np.int16), np.zeros(3, np.int64)
        for first in (0, 2):
            oracles.noisy_counts(values, words, table, first, out)
            oracles.noisy_sums(values, words, table, first, sums)
        for j in range(3):
            found = Counter(out[:, j].tolist())
            absent = dict(zip(range(-1, 3), weights, strict=True))
            assert found == ({1 - y: weight for y, weight in absent.items()} if j == value else absent)
        assert sums.tolist() == out.sum(axis=0).tolist()


def test_values_and_reports_that_do_not_fit_are_refused() -> None:
    answer = partial(answer_all, pseudonyms=np.zeros(1, np.uint64))
    mechanisms = {"grr": grr, "oue": unary, "olh": hashing, "subset": subset, "hadamard": hadamard}
    mechanisms |= {"projective": projective}
    seeds = np.arange(9, dtype=np.uint64)
    refuses("bound must be >= 1, got 0", hashing.hash_values, seeds, values=4, n_cells=0)
    for name, mechanism in (*mechanisms.items(), ("histogram", histogram)):
        maker = getattr(ldp, f"{name}_channel")
        settings = {"channel": maker(epsilon=Fraction(1), domain_size=8), "mechanism": mechanism}
        for value in (8, -2):
            message = rf"value must be in \[-1, 8\), got {value} to {value}"
            refuses(message, answer, np.array([value], np.int32), **settings)
        message = r"values must be int32 of shape \(1,\), got int64 of \(1,\)"
        refuses(message, answer, np.array([1]), **settings)
    message = "must be one of a pure frequency oracle, got HistogramChannel"
    refuses(message, answer, np.zeros(1, np.int32), channel=GEOMETRIC)
    makers = (ldp.grr_channel, ldp.oue_channel, ldp.hadamard_channel, ldp.olh_channel)
    grr3, oue3, hadamard3, olh3 = (maker(epsilon=Fraction(1), domain_size=3) for maker in makers)
    for reports, channel, message in (
        (np.zeros((2, 3), np.uint8), oue3, r"uint64 of shape \(n, 1\), got uint8 of \(2, 3\)"),
        (np.zeros((2, 2), np.uint64), oue3, r"shape \(n, 1\), got uint64 of \(2, 2\)"),
        (np.zeros(2, np.uint64), oue3, r"shape \(n, 1\), got uint64 of \(2,\)"),
        (np.array([[7], [8]], np.uint64), oue3, "of 3 values, got bits of others"),
        (np.array([0, 5], np.uint16), grr3, "reports must be of 3 values, got 6"),
        (np.array([0, 4], np.uint16), hadamard3, "column must be < 4, got 4"),
    ):
        refuses(message, count_support, reports, channel=channel)
    reports = hashing.HashReports(seeds=np.zeros(2, np.uint64), cells=np.zeros(1, np.uint16))
    refuses(r"cells must have shape \(2,\), got \(1,\)", count_support, reports, channel=olh3)
