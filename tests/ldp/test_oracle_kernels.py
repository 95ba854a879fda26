"""Inner loops of the frequency oracles on chosen bits: what they realise, for every word there is."""

from collections import Counter
from fractions import Fraction
from itertools import combinations, product
from math import comb

import numpy as np
import pytest

from ldp import kernels_oracles as kernels
from ldp.entropy import last_accepted
from ldp.kernels import NO_ANSWER
from ldp.kernels_oracles import NO_COUNT

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
    redraws = kernels.subset_bits(values, words, np.uint64(threshold), last, k, out)
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
        for subset in combinations(range(k), w):
            share = p / comb(k - 1, w - 1) if value in subset else (1 - p) / comb(k - 1, w)
            assert Fraction(counts[sum(1 << v for v in subset)], accepted) == share
        assert len(counts) == comb(k, w)


def test_drawing_a_subset_again_says_nothing_about_the_value() -> None:
    words, out = draw_subsets(1, k=5, w=3, threshold=4, size=8)
    again = np.array(out) == 0
    assert 0 < again.sum() < len(words)
    assert again[words[:, 0] < 4].mean() == again[words[:, 0] >= 4].mean()


def test_a_subset_without_a_value_is_no_report_and_not_drawn_again() -> None:
    last = np.array([last_accepted(2), last_accepted(3)])
    out = np.ones((1, 1), np.uint64)
    words = as_words([(0, TOP, TOP)])
    assert kernels.subset_bits(np.array([-1], np.int32), words, np.uint64(1), last, 4, out) == 0
    assert out.tolist() == [[0]]


@pytest.mark.parametrize(("k", "columns"), [(2, 4), (5, 8), (12, 16), (300, 512), (9000, 16384)])
def test_columns_are_uniform_among_those_of_their_sign(k: int, columns: int) -> None:
    threshold, size = 3, 8
    words = as_words(
        [(u, y + columns * high) for u in range(size) for y in range(columns) for high in (0, 5)]
    )
    for value in {0, 1, 2, k // 2, k - 2, k - 1}:
        out = np.empty(len(words), np.uint16)
        values = np.full(len(words), value, np.int32)
        limits = np.uint64(threshold), np.uint64(columns - 1), np.uint64(NO_ANSWER)
        kernels.hadamard_columns(values, words, *limits, out)
        plus = [((value + 1) & y).bit_count() % 2 == 0 for y in range(columns)]
        assert sum(plus) == columns // 2
        share = 2 * len(words) // columns // size
        assert np.bincount(out, minlength=columns).tolist() == [
            share * (threshold if is_plus else size - threshold) for is_plus in plus
        ]


def test_no_value_has_no_column() -> None:
    out = np.empty(1, np.uint16)
    limits = np.uint64(1), np.uint64(7), np.uint64(NO_ANSWER)
    kernels.hadamard_columns(np.array([-1], np.int32), as_words([(0, 3)]), *limits, out)
    assert out.tolist() == [NO_ANSWER]


@pytest.mark.parametrize("size", [1, 2, 8, 64])
def test_transform_is_the_product_with_the_matrix(size: int) -> None:
    matrix = [[1 - 2 * ((i & j).bit_count() % 2) for j in range(size)] for i in range(size)]
    counts = np.random.default_rng(size).integers(0, 1000, size)
    expected = np.array(matrix) @ counts
    kernels.walsh_hadamard(counts)
    assert counts.tolist() == expected.tolist()


def test_noisy_counts_realise_their_table_exactly() -> None:
    weights = [3, 5, 2, 6]  # of -1 to 2, out of 16
    table = np.cumsum(weights[:-1]).astype(np.uint64), -1
    words = as_words([(u, 15 - u) for u in range(16)])
    for value in range(3):
        values = np.full(16, value, np.int32)
        out, sums = np.empty((16, 3), np.int16), np.zeros(3, np.int64)
        for first in (0, 2):
            kernels.noisy_counts(values, words, table, first, out)
            kernels.noisy_sums(values, words, table, first, sums)
        for j in range(3):
            found = Counter(out[:, j].tolist())
            absent = dict(zip(range(-1, 3), weights, strict=True))
            assert found == ({1 - y: weight for y, weight in absent.items()} if j == value else absent)
        assert sums.tolist() == out.sum(axis=0).tolist()


def test_no_value_has_no_noisy_counts() -> None:
    table = np.array([1], np.uint64), 0
    out, sums = np.zeros((1, 2), np.int16), np.zeros(2, np.int64)
    kernels.noisy_counts(np.array([-1], np.int32), as_words([(9, 9)]), table, 0, out)
    kernels.noisy_sums(np.array([-1], np.int32), as_words([(9, 9)]), table, 0, sums)
    assert out.tolist() == [[NO_COUNT] * 2]
    assert sums.tolist() == [0, 0]


def test_cells_are_counted_where_they_are_equal() -> None:
    cells = np.array([3, 1, 3, 65533, 0], np.uint64)
    answers = np.array([3, 3, 3, 65533, NO_ANSWER], np.uint16)
    assert kernels.count_equal(cells, answers) == 3


def test_codes_are_counted_and_all_others_together() -> None:
    counts = np.array([5, 0, 0, 2], np.int64)
    kernels.count_codes(np.array([0, 2, 2, 3, 4, NO_ANSWER], np.uint16), counts)
    assert counts.tolist() == [6, 0, 2, 5]
