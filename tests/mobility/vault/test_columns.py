"""Parts of states: columns as bytes, sorted lists of pseudonyms, opt-outs, known answers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mobility.base.errors import SealBrokenError
from mobility.extracts.rows.events import NO_VALUE
from mobility.vault.optouts import OptOuts
from mobility.vault.state import positions
from mobility.vault.state.answers import KnownAnswers
from mobility.vault.state.columns import from_steps, pack_columns, steps, unpack_columns
from tests.mobility.extracts.rows.small_extract import made_of

DTYPES = st.sampled_from([np.uint8, np.uint16, np.uint32, np.uint64, np.int64])
COLUMNS = st.lists(
    st.tuples(st.binary(max_size=40), DTYPES).map(lambda drawn: np.frombuffer(drawn[0] * 8, drawn[1])),
    max_size=5,
)


@given(columns=COLUMNS)
def test_packing_changes_nothing(columns) -> None:
    again = unpack_columns(pack_columns(columns))
    assert [column.dtype for column in again] == [column.dtype for column in columns]
    assert [column.tolist() for column in again] == [column.tolist() for column in columns]
    assert all(column.flags.writeable for column in again)
    table = np.arange(12, dtype=np.uint16).reshape(6, 2)
    assert pack_columns([*table.T]) == pack_columns([column.copy() for column in table.T])


@given(numbers=st.lists(st.integers(0, 2**64 - 1), unique=True).map(sorted))
def test_steps_lead_back(numbers) -> None:
    again = from_steps(steps(np.array(numbers, np.uint64)))
    assert (again.tolist(), again.dtype) == (numbers, np.uint64)


def test_pseudonyms_and_small_codes_take_little_room() -> None:
    rng = np.random.default_rng(1)
    n = 50_000
    pseudonyms = np.sort(rng.integers(0, 2**60, n, np.uint64))
    codes = rng.integers(0, 4, n).astype(np.uint16)
    # 44 bits between two of this many, and two bits of a code.
    assert len(pack_columns([steps(pseudonyms), codes])) < 6.5 * n


def test_bytes_of_another_format_are_refused() -> None:
    packed = pack_columns([np.arange(3, dtype=np.uint8)])
    with pytest.raises(SealBrokenError, match="has format 1, but this version of the software reads 2"):
        unpack_columns(b"\x01" + packed[1:])


# --- sorted lists of pseudonyms, against Python's sets -----------------------------------------------------
EDGES = [0, 1, 2, 3, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1]
SETS = st.sets(st.sampled_from(EDGES) | st.integers(0, 40))


def listed(names: set[int]) -> np.ndarray:
    return np.array(sorted(names), np.uint64)


@given(sets=st.lists(SETS, max_size=4))
def test_union_and_the_rows_of_each_in_it(sets: list[set[int]]) -> None:
    everyone, rows_of = positions.union([listed(names) for names in sets])
    assert (everyone.dtype, everyone.tolist()) == (np.uint64, sorted(set().union(*sets)))
    assert [everyone[rows].tolist() for rows in rows_of] == [sorted(names) for names in sets]


@given(known=SETS, wanted=SETS, repeated=st.lists(st.sampled_from(EDGES)).map(sorted))
def test_shared_and_other_rows_also_of_a_list_that_repeats_some(known, wanted, repeated) -> None:
    theirs = listed(wanted)
    rows = positions.shared_rows(listed(known), theirs)
    assert listed(known)[rows[0]].tolist() == theirs[rows[1]].tolist() == sorted(known & wanted)
    for names in (sorted(known), repeated):
        others = positions.other_rows(np.array(names, np.uint64), theirs)
        assert [names[row] for row in others] == [name for name in names if name not in wanted]


def test_few_among_many() -> None:
    known = np.arange(0, 200_000, 2, dtype=np.uint64)
    wanted = np.array([0, 1, 777, 778, 131_070, 199_998, 199_999, 2**63], np.uint64)
    mine, theirs = positions.shared_rows(known, wanted)
    assert (mine.tolist(), theirs.tolist()) == ([0, 389, 65_535, 99_999], [0, 3, 4, 5])


# --- opt-outs: a set that only grows -----------------------------------------------------------------------
NAMES = st.lists(st.sampled_from([0, 1, 2**62, 2**63, 2**64 - 1]) | st.integers(0, 2**64 - 1), max_size=8)


@given(names=NAMES, more=NAMES, bits=st.integers(0, 3))
def test_opt_outs_are_a_set_by_shard(names, more, bits) -> None:
    both, added = (OptOuts.of(np.array(each, np.uint64)) for each in (names, more))
    both = both.union(added)
    assert both.pseudonym.tolist() == sorted({*names, *more})
    assert OptOuts.unpack(both.pack()).pseudonym.tolist() == both.pseudonym.tolist()
    parts = both.split(n_shards=2**bits)
    assert all(map(len, parts.values()))
    for shard, part in parts.items():
        mine = sorted({name for name in (*names, *more) if name >> (64 - bits) == shard})
        assert part.pseudonym.tolist() == mine
    assert sum(map(len, parts.values())) == len(both) == len({*names, *more})


# --- known answers: the first one is final ------------------------------------------------------------------
NONE = int(NO_VALUE)
WORDS = 2
PSEUDONYMS = [0, 1, 2**63, 2**64 - 1]

Known = dict[int, tuple[int, ...]]
SOME = st.sampled_from([0, 1, 65_533, NONE])
ANSWERS = st.dictionaries(st.sampled_from(PSEUDONYMS), st.tuples(*[SOME] * WORDS))


def answers_of(known: Known) -> KnownAnswers:
    return made_of(KnownAnswers, sorted(known.items()), slots=WORDS, pseudonym=np.uint64, static=np.uint16)


def known_by(answers: KnownAnswers) -> Known:
    assert answers.pseudonym.tolist() == sorted(set(answers.pseudonym.tolist()))
    assert (answers.pseudonym.dtype, answers.static.dtype) == (np.uint64, np.uint16)
    return dict(zip(answers.pseudonym.tolist(), map(tuple, answers.static.tolist()), strict=True))


def first_of(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(b if a == NONE else a for a, b in zip(one, other, strict=True))


@given(earlier=ANSWERS, later=ANSWERS)
def test_merging_keeps_the_first_answer(earlier: Known, later: Known) -> None:
    nothing = (NONE,) * WORDS
    one, other = answers_of(earlier), answers_of(later)
    assert known_by(KnownAnswers.unpack(one.merge(other).pack(), words=WORDS)) == {
        name: first_of(earlier.get(name, nothing), later.get(name, nothing)) for name in earlier | later
    }
    assert (known_by(one), known_by(other)) == (earlier, later)  # both are left as they were


@given(known=ANSWERS, inline=ANSWERS, gone=st.sets(st.sampled_from(PSEUDONYMS)))
def test_filling_gives_those_without_an_answer_theirs_and_whoever_is_taken_out_is_not_known(
    known, inline, gone
) -> None:
    asked = answers_of(inline)
    filled = answers_of(known).fill(asked.pseudonym, asked.static)
    expected = [first_of(inline[name], known.get(name, inline[name])) for name in sorted(inline)]
    assert ([tuple(row) for row in filled.tolist()], known_by(asked)) == (expected, inline)
    left = answers_of(known).without(np.array(sorted(gone), np.uint64))
    assert known_by(left) == {name: answer for name, answer in known.items() if name not in gone}
