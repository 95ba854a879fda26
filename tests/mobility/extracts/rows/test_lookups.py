"""Tables of texts against dictionaries, pseudonyms against the CMAC of the cryptography package, cells."""

import zlib
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mobility.extracts.cells.cells import CellCodes, count_unmatched
from mobility.extracts.cells.unlisted import CellForms
from mobility.extracts.profiles.definition import NO_ANSWER, ValueTable
from mobility.extracts.readers import Texts
from mobility.extracts.rows.counts import CELLS_KEPT, RowCounts
from mobility.extracts.rows.events import NO_VALUE
from mobility.extracts.rows.lookups import UNKNOWN, CodeTable, PseudonymSet, pseudonyms_of, trimmed
from tests.mobility.extracts.rows.small_extract import (
    FIRST_DAY,
    PSEUDONYM_KEY,
    SANITISE_KEY,
    pseudonym_of,
    texts_of,
)

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


@settings(max_examples=100)
@given(
    known=st.dictionaries(text.map(bytes.strip), st.integers(0, 65535), max_size=30),
    others=st.lists(written, max_size=20), prefix=st.sampled_from([0, 0, 1, 4, 8, 9, 20]),
    otherwise=st.none() | st.integers(0, 65535), data=st.data(),
)  # fmt: skip
@example(known={b"a": 1}, others=[b"a"], prefix=0, otherwise=None, data=None)
def test_any_text_is_what_the_dictionary_says(known, others, prefix, otherwise, data) -> None:
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
    found = table.codes(texts_of([b"a", b"a\0", b"a\0\0", b"\0", b""])).tolist()
    assert found == [1, 2, UNKNOWN, 3, int(NO_VALUE)]
    assert CodeTable({b"a": 1}).codes(texts_of([b"b", b"a"])).tolist() == [UNKNOWN, 1]


def test_blanks_are_those_of_strip() -> None:
    for blank in (bytes([byte]) for byte in range(256)):
        a, long = b"a" + blank, b"aaaaaaaa" + blank + b"b"
        values = [blank, blank + a, a, blank + b"a", blank * 20, long]
        assert trimmed(texts_of(values)).to_list() == [value.strip() for value in values], blank
        known = {value.strip(): place for place, value in enumerate(values) if value.strip()}
        for table in (CodeTable(known), CodeTable(known | {b"long" * 9: 99})):
            found = table.codes(texts_of(values)).tolist()
            assert found == [known.get(value.strip(), int(NO_VALUE)) for value in values], blank


NUMBERS = {
    "": NO_ANSWER, "  ": NO_ANSWER, "-6": 0, "-5.0": 1, "-5.01": 0, "-4,99": 1, "-0": 2, "-0.5": 1, "0": 2,
    "+59.999": 2, "60": 3, " 60 ": 3, "119": 3, "120.": 4, "120,0": 4, "000120": 4, "999999999999999999": 4,
    "1e3": None, "60 min": None, "-": None, ".5": None, "1.2.3": None, "--5": None, "NaN": None, "6 0": None,
    "1234567890123456789": None, "12\u00a0": None, "1.1234567890123456789": None, "0x10": None,
}  # fmt: skip


def test_a_text_reaches_cuts_or_is_no_number() -> None:
    table, texts = ValueTable(codes={}, cuts=(-5, 0, 60, 120)), [text.encode() for text in NUMBERS]
    assert [table.code_of(text) for text in texts] == list(NUMBERS.values())
    found = CodeTable.of(table, empty=NO_ANSWER).codes(texts_of(texts)).tolist()
    assert found == [UNKNOWN if code is None else code for code in NUMBERS.values()]


def in_dictionary(values: list[bytes], of_row: list[int]) -> Texts:
    return replace(texts_of(values), of_row=np.array(of_row, np.int32), found={})


def test_codes_pseudonyms_and_cells_of_a_dictionary() -> None:
    coded = in_dictionary([b"a", b"b", b" "], [2, 0, 0, 1])
    into = np.empty(4, np.int32)
    table = CodeTable({b"a": 5, b"b": 6}, empty=-2)
    assert table.codes(coded).tolist() == table.codes(coded, into).tolist() == into.tolist() == [-2, 5, 5, 6]
    assert table.codes(texts_of([b"a", b"b", b" "]), into[:3]).tolist() == into[:3].tolist() == [5, 6, -2]
    assert coded.to_list() == [b" ", b"a", b"a", b"b"]
    assert (coded.of_rows(np.array([0, 3])).to_list(), len(coded)) == ([b" ", b"b"], 4)
    found = pseudonyms_of(in_dictionary([b"a", b" "], [1, 0, 0]), PSEUDONYM_KEY)
    assert found.values[1:].tolist() == [pseudonym_of("a")] * 2
    assert found.is_empty.tolist() == [True, False, False]
    assert pseudonyms_of(coded, PSEUDONYM_KEY).values[1] == pseudonym_of("a")
    assert pseudonyms_of(coded, SANITISE_KEY).values[1] == pseudonym_of("a", key=SANITISE_KEY)
    assert CodeTable({b"a": 7}).codes(coded).tolist() == [int(NO_VALUE), 7, 7, UNKNOWN]
    assert unmatched(in_dictionary([b"a", b"b", b"unused"], [1, 0, 1])).unmatched_cells == {"b": 2, "a": 1}


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


words = st.integers(0, 2**64 - 1) | st.integers(0, 20) | st.integers(2**64 - 20, 2**64 - 1)


@given(members=st.sets(words, max_size=60), others=st.lists(words, max_size=60))
def test_members_are_found_and_nothing_else(members: set[int], others: list[int]) -> None:
    asked = [*others, *members]
    known = PseudonymSet(np.array(sorted(members), np.uint64))
    assert len(known) == len(members)
    assert known.holds(np.array(asked, np.uint64)).tolist() == [word in members for word in asked]


# --- cells: which texts look like one of the area, cells without a list, and those not in it ----------------
FORMS = CellForms(["a", "x" * 70, "1", "12345"])


def unmatched(texts: Texts, forms: CellForms = FORMS) -> RowCounts:
    counts = RowCounts()
    count_unmatched(texts, counts, forms=forms)
    return counts


LONG = ["208011234512345", "20801123451", "33612111111", "33100000", "208-01-9001-12909", "1234"]


class TestCells:
    @given(values=st.lists(st.binary(max_size=20), max_size=10))
    def test_without_a_list_a_cell_is_the_checksum_of_its_trimmed_text(self, values: list[bytes]) -> None:
        codes = CellCodes(None, first_day=FIRST_DAY, days=2).codes_of(
            texts_of(values), np.ones(len(values), np.uint8)
        )
        assert codes.view(np.uint32).tolist() == [zlib.crc32(value.strip()) for value in values]

    @given(
        names=st.lists(st.sampled_from([" a", "a", "b ", "é", "x" * 30, "x" * 15 + "y" * 15]), max_size=30)
    )
    def test_unmatched_cells_are_counted_by_text(self, names: list[str]) -> None:
        counts = unmatched(texts_of([name.encode() for name in names]))
        assert (counts.unmatched_cells, counts.unmatched_more) == (Counter(name.strip() for name in names), 0)

    def test_only_so_many_texts_are_kept_and_none_that_is_long(self) -> None:
        counts = unmatched(texts_of([b"%d" % (n % 3000) for n in range(6000)] + [b"x" * 64, b"x" * 65]))
        assert list(counts.unmatched_cells) == [f"{n}" for n in range(CELLS_KEPT)]
        assert (set(counts.unmatched_cells.values()), counts.unmatched_more) == ({2}, 6002 - 2 * CELLS_KEPT)

    def test_identifiers_in_an_area_of_plain_digits_are_counted_and_kept_nowhere(self) -> None:
        names = [b"208019876543210", b"33698765432", b"208011234519999", b"33698765432"]
        counts = unmatched(texts_of(names), CellForms(["208011234512345", "33612345678"]))
        assert (counts.to_json()["unmatched_cells"], counts.unmatched_hidden) == ({"208011234519999": 1}, 3)

    @pytest.mark.parametrize(
        ("text", "is_shown"),
        [
            ("FR-101", True), ("BE-9999", True),  # other letters and digits, same runs
            ("FR-1", False), ("FR-10000", False),  # shorter and longer than every cell of that form
            ("208-01-77", True), ("33612345678", False), ("FR101", False), ("", False), ("=1+1", False),
            ("Été.101", True),  # any letter is a letter
            ("FR-101\n", False),
        ],
    )  # fmt: skip
    def test_a_text_needs_the_runs_and_the_length_of_a_known_cell(self, text: str, is_shown: bool) -> None:
        assert CellForms(["FR-101", "FR-2000", "lac.101", "208-01-77"]).has(text) is is_shown

    @pytest.mark.parametrize(
        ("text", "is_shown"),
        [
            ("208011234519999", True),  # an unknown cell of a known place
            ("208019876543210", False),  # an IMSI of the same network
            ("20801987654", False), ("33612345678", False), ("33100001", True), ("33109999", False),
            ("208-01-9001-17777", True), ("208-01-3361-23456", False),
            ("4711", True),  # too few digits to distinguish anyone
        ],
    )  # fmt: skip
    def test_with_many_digits_a_text_needs_the_beginning_of_a_known_cell(
        self, text: str, is_shown: bool
    ) -> None:
        assert CellForms(LONG).has(text) is is_shown
