"""Gap tallies: every union of days, late days, and taking back what was added."""

import resource
import struct
import zlib
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ldp
from ldp.kernels import codes as kernels
from ldp.keyed.tallying import tally_asked, tally_stays
from ldp.privacy.plans import PRESENCE_TALLIES
from tests.ldp.exact import make_plan, refuses

K = 4
codes_st = st.one_of(st.integers(0, K - 1), st.just(ldp.NO_ANSWER))


@st.composite
def people(draw: st.DrawFn) -> tuple[int, list[set[int]], list[int]]:
    days = draw(st.one_of(st.integers(1, 9), st.integers(1, 62)))
    rows = draw(st.lists(st.tuples(st.sets(st.integers(1, days), max_size=9), codes_st), max_size=25))
    return days, [present for present, _ in rows], [code for _, code in rows]


def bitmap(present: set[int]) -> int:
    return sum(1 << (day - 1) for day in present)


def bitmaps(presences: list[set[int]]) -> np.ndarray:
    return np.array([bitmap(present) for present in presences], np.uint64)


def squares(days: int, *shape: int) -> np.ndarray:
    return np.zeros((*shape, days + 1, days + 1), np.int64)


@given(rows=people())
@settings(max_examples=50)
def test_unions_count_each_subscriber_once(rows: tuple[int, list[set[int]], list[int]]) -> None:
    days, presences, codes = rows
    out, visitors = squares(days, K), squares(days)
    ldp.tally_static(bitmaps(presences), np.array(codes, np.uint16), out, sign=1)
    ldp.tally_visitors(bitmaps(presences), visitors, sign=1)
    everything, all_visitors = ldp.all_unions(out), ldp.all_unions(visitors)
    for a in range(1, days + 1):
        for b in {a, min(a + 1, days), days}:
            inside = [bool(present & set(range(a, b + 1))) for present in presences]
            brute = [sum(i and c == x for i, c in zip(inside, codes, strict=True)) for x in range(K)]
            assert ldp.union(out, first_day=a, last_day=b).tolist() == brute
            assert everything[:, a, b].tolist() == brute
            assert ldp.union(visitors, first_day=a, last_day=b) == all_visitors[a, b] == sum(inside)


@given(rows=people(), data=st.data())
@settings(max_examples=30)
def test_daily_unions_count_the_value_of_the_first_day(rows, data) -> None:
    days, presences, _ = rows
    of_days, n = st.lists(codes_st, min_size=days, max_size=days), len(presences)
    daily = data.draw(st.lists(of_days, min_size=n, max_size=n))
    out = squares(days, K)
    ldp.tally_daily(bitmaps(presences), np.array(daily, np.uint16).reshape(len(presences), days), out, sign=1)
    for a in range(1, days + 1):
        for b in {a, days}:
            first_days = [min(present & set(range(a, b + 1)), default=None) for present in presences]
            first_codes = [row[day - 1] for row, day in zip(daily, first_days, strict=True) if day]
            found = ldp.union(out, first_day=a, last_day=b)
            assert found.tolist() == [first_codes.count(x) for x in range(K)]


@given(
    days=st.integers(1, 12),
    present=st.sets(st.integers(1, 12)),
    late=st.integers(1, 12),
    daily=st.lists(st.integers(0, K - 1), min_size=12, max_size=12),
    is_static=st.booleans(),
)
def test_late_day_moves_what_the_next_day_counts(days, present, late, daily, is_static) -> None:
    late = min(late, days)
    present = {day for day in present if day <= days and day != late}
    values = [daily[0]] * days if is_static else daily[:days]
    codes = np.array([values[0]] if is_static else [values], np.uint16)
    tally = ldp.tally_static if is_static else ldp.tally_daily
    difference, rule = squares(days, K), squares(days, K)
    tally(bitmaps([present]), codes, difference, sign=-1)
    tally(bitmaps([present | {late}]), codes, difference, sign=1)
    p = max((day for day in present if day < late), default=0)
    s = min((day for day in present if day > late), default=None)
    rule[values[late - 1], p, late] += 1
    if s is not None:
        rule[values[s - 1], p, s] -= 1
        rule[values[s - 1], late, s] += 1
    assert np.array_equal(difference, rule)


@given(rows=people(), sign=st.sampled_from([1, -1]))
@settings(max_examples=50)
def test_both_kernels_and_plain_python_agree(rows: tuple[int, list[set[int]], list[int]], sign: int) -> None:
    days, presences, codes = rows
    expected = squares(days, K)
    for present, code in zip(presences, codes, strict=True):
        for previous, day in pairwise([0, *sorted(present)]):
            if code != ldp.NO_ANSWER:
                expected[code, previous, day] += sign
    chosen = [kernels.tally_static] if days > 12 else [kernels.tally_static, kernels.tally_patterns]
    for kernel in chosen:
        out = squares(days, K)
        kernel(bitmaps(presences), np.array(codes, np.uint16), out, sign)
        assert np.array_equal(out, expected)


@given(rows=people(), sign=st.sampled_from([1, -1]))
@settings(max_examples=50)
def test_numbers_of_days_and_lengths_of_runs_are_counted_as_by_hand(rows, sign: int) -> None:
    days, presences, _ = rows
    expected, out = squares(days, 2), squares(days, 2)
    for present in presences:
        for k, day in enumerate(sorted(present), start=1):
            first = max({0, *range(1, day)} - present)
            expected[0, k, day] += sign
            expected[1, day - first, day] += sign
    tally_stays(bitmaps(presences), out, tallies=PRESENCE_TALLIES, sign=sign)
    assert np.array_equal(out, expected)
    tally_stays(bitmaps(presences), out[1:], tallies=("runs",), sign=-sign)
    assert np.array_equal(out[0], expected[0]) and not out[1].any()


def filled(plan_days: int, sizes: list[int], *, seed: int, tallies=()) -> ldp.Delta:
    rng = np.random.default_rng(seed)
    delta = ldp.Delta.zero(make_plan(*[("static", size) for size in sizes], days=plan_days, tallies=tallies))
    for array in arrays(delta):
        array[...] = rng.integers(-(2**62), 2**62, array.shape)
    return delta


def arrays(delta: ldp.Delta) -> list[np.ndarray]:
    return [delta.visitors, delta.stays, *delta.counts, *delta.n_reports]


@given(
    days=st.integers(1, 20),
    sizes=st.lists(st.integers(2, 20), min_size=1, max_size=3),
    seed=st.integers(0, 2**32),
    tallies=st.sampled_from([(), ("runs",), PRESENCE_TALLIES]),
)
def test_pack_round_trip_is_exact(days: int, sizes: list[int], seed: int, tallies) -> None:
    delta = filled(days, sizes, seed=seed, tallies=tallies)
    plan = make_plan(*[("static", size) for size in sizes], days=days, tallies=tallies)
    assert ldp.Delta.unpack(delta.pack(), plan=plan).pack() == delta.pack()
    assert delta.pack()[:5] == (b"LDPD\x03" if tallies else b"LDPD\x01")  # as earlier releases write it
    again = ldp.Delta.unpack(delta.pack())
    for ours, theirs in zip(arrays(delta), arrays(again), strict=True):
        assert ours.dtype == theirs.dtype
        assert np.array_equal(ours, theirs)
        assert theirs.flags.writeable and theirs.flags.c_contiguous


def test_deltas_add_up_and_keep_their_terms() -> None:
    a, b = (filled(7, [3, 5], seed=seed, tallies=("visits",)) for seed in (1, 2))
    before = [array.copy() for array in arrays(a)]
    for x, y, z in zip(arrays(a), arrays(b), arrays(a + b), strict=True):
        assert np.array_equal(z, x + y)
    assert all(np.array_equal(x, y) for x, y in zip(before, arrays(a), strict=True))


def test_zero_delta_is_zero_until_one_cell_is_not() -> None:
    plan = make_plan(("static", 3), ("daily", 5), days=7, tallies=("visits",))
    zero = ldp.Delta.zero(plan)
    assert zero.is_zero
    assert [x.shape for x in arrays(zero)] == [(8, 8), (1, 8, 8), (3, 8, 8), (5, 8, 8), (8, 8), (8, 8)]
    for i in range(6):
        delta = ldp.Delta.zero(plan)
        arrays(delta)[i][..., 0, 1] = -1
        assert not delta.is_zero


PACKED = filled(3, [2, 5], seed=9).pack()


def test_damaged_bytes_are_refused() -> None:
    other_days = [PACKED[:5] + days + PACKED[6:] for days in (b"\x04", b"\x02")]
    cut = [b"", PACKED[:4], PACKED[:7], PACKED[:-1]]
    for damaged in (*cut, b"PK\x03\x04" + PACKED[4:], PACKED + b"\0", *other_days, PACKED[:-20] + bytes(20)):
        refuses("packed delta must", ldp.Delta.unpack, damaged)


@pytest.mark.parametrize(
    ("days", "sizes"), [(6, [3, 5]), (7, [3]), (7, [3, 4]), (7, [5, 3]), (255, [65_535] * 255)]
)
def test_bytes_of_another_plan_are_refused_before_they_take_memory(days: int, sizes: list[int]) -> None:
    header = struct.pack(f">5sBB{len(sizes)}H", b"LDPD\x01", days, len(sizes), *sizes)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ldp.LdpError, match="of the plan"):
        ldp.Delta.unpack(header + zlib.compress(b""), plan=make_plan(("static", 3), ("daily", 5), days=7))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kilobytes


@given(data=st.data(), days=st.one_of(st.integers(1, 6), st.integers(1, 62)), sign=st.sampled_from([1, -1]))
def test_one_answer_each_is_tallied_as_indicator_by_indicator(data, days, sign) -> None:
    sizes = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    n = data.draw(st.sampled_from([0, 1, 20, 3000]))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    present = rng.integers(0, 2**days, n, dtype=np.uint64)
    asked = rng.integers(0, len(sizes), n).astype(np.uint8)
    codes = (rng.integers(0, 60, n) % np.take(sizes, asked)).astype(np.uint16)
    codes[rng.random(n) < 0.2] = ldp.NO_ANSWER
    out = [squares(days, size) + 7 for size in sizes]
    tally_asked(present, asked, codes, out, sign=sign)
    for indicator, size in enumerate(sizes):
        expected = squares(days, size) + 7
        rows = asked == indicator
        ldp.tally_static(present[rows], codes[rows], expected, sign=sign)
        assert np.array_equal(out[indicator], expected)


def test_answers_that_do_not_fit_what_is_asked_are_refused() -> None:
    for changes, message in (
        ({"bitmaps": np.array([1, 4], np.uint64)}, "bitmap must have days 1..2 only, got 0x4"),
        ({"asked": np.array([0, 2], np.uint8)}, "asked must be < 2, got 2"),
        ({"asked": np.array([0, 1])}, r"asked must be uint8 of shape \(2,\), got int64 of \(2,\)"),
        ({"asked": np.zeros(3, np.uint8)}, r"asked must be uint8 of shape \(2,\), got uint8 of \(3,\)"),
        ({"codes": np.array([0, 3], np.uint16)}, "code must be < domain_size 3 or 65535, got 3"),
        ({"codes": np.zeros(3, np.uint16)}, r"codes must be uint16 of shape \(2,\), got uint16 of \(3,\)"),
        ({"out": []}, "tallies must be of one indicator or more, got none"),
        ({"out": [squares(2, 3), squares(3, 3)]}, r"tallies must have the same days, got \[3, 4\] rows"),
        ({"out": [squares(2, 3), squares(2)]}, "tally must be int64 with 3 axes"),
        ({"sign": 2}, "sign must be 1 or -1, got 2"),
    ):
        given_values = {"asked": np.array([0, 1], np.uint8), "codes": np.array([2, 2], np.uint16)}
        arguments = given_values | {"bitmaps": np.array([1, 3], np.uint64), "sign": 1}
        arguments |= {"out": [squares(2, 3), squares(2, 3)]} | changes
        refuses(message, tally_asked, **arguments)
        assert not any(counts.any() for counts in arguments["out"])


def test_days_codes_and_arrays_that_do_not_fit_are_refused_and_nothing_counted() -> None:
    masks, codes, out = np.ones(2, np.uint64), np.zeros(2, np.uint16), squares(3, K)
    static = ldp.tally_static
    refuses(r"bitmap must have days 1\.\.3 only, got 0x8", static, masks * np.uint64(8), codes, out, sign=1)
    refuses("code must be < domain_size 4 or 65535, got 4", static, masks, codes + np.uint16(K), out, sign=1)
    message = r"codes must be uint16 of shape \(2,\), got uint16 of \(1,\)"
    refuses(message, static, masks, codes[:1], out, sign=1)
    refuses("codes must be uint16 .* got int64", static, masks, codes.astype(np.int64), out, sign=1)
    refuses("tally must be int64 with 3 axes", static, masks, codes, out[0], sign=1)
    refuses(r"codes must be uint16 of shape \(2, 3\), got .*", ldp.tally_daily, masks, codes, out, sign=1)
    visitors = ldp.tally_visitors
    refuses("bitmaps must be uint64 .* got int64", visitors, masks.astype(np.int64), out[0], sign=1)
    refuses("int64 with 2 axes, .* got float64", visitors, masks, out[0].astype(np.float64), sign=1)
    refuses("sign must be 1 or -1, got 2", visitors, masks, out[0], sign=2)
    assert not out.any()
    for first_day, last_day in ((0, 2), (3, 2), (1, 4)):
        message = rf"window must lie within days 1\.\.3, got {first_day}\.\.{last_day}"
        refuses(message, ldp.union, squares(3), first_day=first_day, last_day=last_day)
    others = ((6, [3], ()), (7, [4], ()), (7, [3, 3], ()), (7, [3], ("runs",)))
    for other in (filled(days, sizes, seed=0, tallies=names) for days, sizes, names in others):
        refuses("deltas must have the same shape", filled(7, [3], seed=0).add, other)
