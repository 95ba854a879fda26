"""Tables of texts against dictionaries of Python."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mobility.ingest.events import NO_VALUE
from mobility.ingest.lookups import UNKNOWN, CodeTable, trimmed
from mobility.profiles import ValueTable
from mobility.readers import Texts
from tests.mobility.ingest.small_extract import texts_of

BLANKS = b" \t\n\v\f\r"
# Of every length that is treated in its own way, and alike where the words of a slot see them.
MIDDLES = [b"x" * n for n in range(40)] + [b"x" * 16 + b"%d" % n + b"x" * 14 for n in range(10)]
text = (
    st.sampled_from(MIDDLES)
    | st.binary(max_size=30)
    | st.lists(st.sampled_from([b"a", b"b", "é".encode(), b" ", b"\x1f", b"!"]), max_size=10).map(b"".join)
)
written = st.tuples(
    st.sampled_from([b"", b" ", b"\t\r", b"  "]), text, st.sampled_from([b"", b" ", b"\n"])
).map(b"".join)


@settings(max_examples=150)
@given(
    known=st.dictionaries(text.map(bytes.strip), st.integers(0, 65535), max_size=30),
    others=st.lists(written, max_size=20),
    prefix=st.sampled_from([0, 0, 1, 4, 8, 9, 20]),
    otherwise=st.none() | st.integers(0, 65535),
    data=st.data(),
)
@example(known={b"a": 1}, others=[b"a"], prefix=0, otherwise=None, data=None)
def test_any_text_is_what_the_dictionary_says(
    known: dict[bytes, int],
    others: list[bytes],
    prefix: int,
    otherwise: int | None,
    data: st.DataObject | None,
) -> None:
    known = {key[:prefix] if prefix else key: code for key, code in known.items()}
    table = ValueTable(codes=known, prefix_bytes=prefix, otherwise=otherwise)
    values = [*others, *known]
    if data is not None:
        values = data.draw(st.permutations(values))
    expected = [table.code_of(value) for value in values]
    found = CodeTable.of(table).codes(texts_of(values)).tolist()
    assert found == [UNKNOWN if code is None else code for code in expected]


@pytest.mark.parametrize("n", [1, 10, 1000])
@pytest.mark.parametrize("size", [3, 8, 11, 20, 27, 60])
def test_texts_that_differ_in_one_place_only(n: int, size: int) -> None:
    for place in {0, size // 2, size - 3}:
        known = {(b"y" * place + b"%03d" % i + b"y" * (size - place - 3))[:size]: i for i in range(n)}
        values = [*known, b"y" * size, b"y" * (size + 1), b"000"[:size] + b"z" * size]
        found = CodeTable(known).codes(texts_of(values)).tolist()
        assert found == [known.get(value, UNKNOWN) for value in values]


def test_a_nul_is_no_end_of_a_text() -> None:
    table = CodeTable({b"a": 1, b"a\0": 2, b"\0": 3})
    assert table.codes(texts_of([b"a", b"a\0", b"a\0\0", b"\0", b""])).tolist() == [
        1,
        2,
        -1,
        3,
        int(NO_VALUE),
    ]
    assert CodeTable({b"a": 1}).codes(texts_of([b"b", b"a"])).tolist() == [UNKNOWN, 1]


@pytest.mark.parametrize("blank", [bytes([byte]) for byte in range(256)])
def test_blanks_are_those_of_strip(blank: bytes) -> None:
    values = [blank, blank + b"a" + blank, b"a" + blank, blank + b"a", blank * 20, b"aaaaaaaa" + blank + b"b"]
    texts = trimmed(texts_of(values))
    assert texts.to_list() == [value.strip() for value in values]
    known = {value.strip(): place for place, value in enumerate(values) if value.strip()}
    for table in (CodeTable(known), CodeTable(known | {b"long" * 9: 99})):
        found = table.codes(texts_of(values)).tolist()
        assert found == [known.get(value.strip(), int(NO_VALUE)) for value in values]


def test_rows_of_a_dictionary() -> None:
    texts = texts_of([b"a", b"b", b" "])
    of_row = np.array([2, 0, 0, 1], np.int32)
    coded = Texts(data=texts.data, begins=texts.begins, ends=texts.ends, of_row=of_row)
    into = np.empty(4, np.int32)
    table = CodeTable({b"a": 5, b"b": 6}, empty=-2)
    assert table.codes(coded).tolist() == table.codes(coded, into).tolist() == into.tolist() == [-2, 5, 5, 6]
    assert table.codes(texts, into[:3]).tolist() == into[:3].tolist() == [5, 6, -2]
    assert coded.to_list() == [b" ", b"a", b"a", b"b"]
    assert coded.of_rows(np.array([0, 3])).to_list() == [b" ", b"b"]
    assert len(coded) == 4


def test_a_table_of_nothing_knows_nothing() -> None:
    assert CodeTable({}).codes(texts_of([b"a", b""])).tolist() == [UNKNOWN, int(NO_VALUE)]
    assert CodeTable({}).codes(texts_of([])).tolist() == []
