"""Known answers: the first one is final, whatever comes later."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mobility.answers import KnownAnswers
from mobility.ingest.events import NO_VALUE

NONE = int(NO_VALUE)
WORDS = 2
PSEUDONYMS = [0, 1, 2**63, 2**64 - 1]

Known = dict[int, tuple[int, ...]]
ANSWERS = st.dictionaries(
    st.sampled_from(PSEUDONYMS), st.tuples(*[st.sampled_from([0, 1, 65_533, NONE])] * WORDS)
)


def answers_of(known: Known) -> KnownAnswers:
    return KnownAnswers(
        pseudonym=np.array(sorted(known), np.uint64),
        static=np.array([known[name] for name in sorted(known)], np.uint16).reshape(len(known), WORDS),
    )


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
    assert known_by(one.merge(other)) == {
        name: first_of(earlier.get(name, nothing), later.get(name, nothing)) for name in earlier | later
    }
    assert (known_by(one), known_by(other)) == (earlier, later)  # both are left as they were


@given(known=ANSWERS, inline=ANSWERS)
def test_filling_gives_those_without_an_answer_theirs(known: Known, inline: Known) -> None:
    asked = answers_of(inline)
    filled = answers_of(known).fill(asked.pseudonym, asked.static)
    expected = [first_of(inline[name], known.get(name, inline[name])) for name in sorted(inline)]
    assert [tuple(row) for row in filled.tolist()] == expected
    assert known_by(asked) == inline


@given(known=ANSWERS, gone=st.sets(st.sampled_from(PSEUDONYMS)))
def test_whoever_is_taken_out_is_not_known(known: Known, gone: set[int]) -> None:
    left = answers_of(known).without(np.array(sorted(gone), np.uint64))
    assert known_by(left) == {name: answer for name, answer in known.items() if name not in gone}


@given(known=ANSWERS)
def test_packing_changes_nothing(known: Known) -> None:
    assert known_by(KnownAnswers.unpack(answers_of(known).pack(), words=WORDS)) == known


def test_nobody_known() -> None:
    nobody = KnownAnswers.empty(words=3)
    assert KnownAnswers.unpack(nobody.pack(), words=3).static.shape == (0, 3)
    assert len(nobody.merge(nobody)) == 0
