"""Pseudonyms against the CMAC of the cryptography package, and sets of them against Python's."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mobility.ingest.pseudonyms import PseudonymSet, pseudonyms_of
from mobility.readers import Texts
from tests.mobility.ingest.small_extract import PSEUDONYM_KEY, pseudonym_of, texts_of


@settings(max_examples=100)
@given(
    values=st.lists(
        st.integers(0, 70).map(lambda n: "x" * n) | st.text(max_size=20).map(lambda text: f" {text}\t"),
        max_size=30,
    )
)
def test_pseudonym_is_the_cmac_of_the_trimmed_text_wherever_it_stands(values: list[str]) -> None:
    raw = [value.encode() for value in values]
    found = pseudonyms_of(texts_of(raw), PSEUDONYM_KEY)
    stripped = [value.strip() for value in raw]
    assert found.values.tolist() == [pseudonym_of(value.decode()) for value in stripped]
    assert found.is_empty.tolist() == [not value for value in stripped]


def test_more_identifiers_than_a_buffer_holds() -> None:
    values = [f"{n:0{11 + 6 * (n % 5)}d}" for n in range(40_000)]
    found = pseudonyms_of(texts_of([value.encode() for value in values]), PSEUDONYM_KEY).values
    some = range(0, len(values), 997)
    assert [int(found[n]) for n in some] == [pseudonym_of(values[n]) for n in some]


def test_rows_of_a_dictionary() -> None:
    texts = texts_of([b"a", b" "])
    coded = Texts(data=texts.data, begins=texts.begins, ends=texts.ends, of_row=np.array([1, 0, 0], np.int32))
    found = pseudonyms_of(coded, PSEUDONYM_KEY)
    assert found.values[1:].tolist() == [pseudonym_of("a")] * 2
    assert found.is_empty.tolist() == [True, False, False]


words = st.integers(0, 2**64 - 1) | st.integers(0, 20) | st.integers(2**64 - 20, 2**64 - 1)


@given(members=st.sets(words, max_size=60), others=st.lists(words, max_size=60))
def test_members_are_found_and_nothing_else(members: set[int], others: list[int]) -> None:
    asked = [*others, *members]
    known = PseudonymSet(np.array(sorted(members), np.uint64))
    assert len(known) == len(members)
    assert known.holds(np.array(asked, np.uint64)).tolist() == [word in members for word in asked]
