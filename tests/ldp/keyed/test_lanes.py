"""Bits of keyed lanes: against their random numbers, written out digit by digit."""

import numpy as np
import pytest

from ldp import KeyedPrf, KeyedStream, LdpError
from ldp.kernels import lanes as kernels_bits
from ldp.kernels.entropy import BUFFER_BLOCKS
from ldp.keyed import lanes
from ldp.protocols.channels import WORD
from tests.ldp.exact import has_bit, reference_numbers

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
