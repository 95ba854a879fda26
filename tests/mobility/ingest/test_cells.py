"""Cells without a list, and what stands in rows whose cell is not in it."""

import zlib
from collections import Counter
from datetime import date

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mobility.ingest.cell_forms import CellForms
from mobility.ingest.cells import CellCodes, count_unmatched
from mobility.ingest.counts import CELLS_KEPT, RowCounts
from mobility.readers import Texts
from tests.mobility.ingest.small_extract import texts_of

FIRST_DAY = date(2017, 3, 25)
FORMS = CellForms(["a", "x" * 70, "1", "12345"])


@given(values=st.lists(st.binary(max_size=20), max_size=10))
def test_without_a_list_a_cell_is_the_checksum_of_its_trimmed_text(values: list[bytes]) -> None:
    cells = CellCodes(None, first_day=FIRST_DAY, days=2)
    found = cells.codes_of(texts_of(values), np.ones(len(values), np.uint8)).view(np.uint32)
    assert found.tolist() == [zlib.crc32(value.strip()) for value in values]


def unmatched(texts: Texts) -> RowCounts:
    counts = RowCounts()
    count_unmatched(texts, counts, forms=FORMS)
    return counts


@given(
    names=st.lists(st.sampled_from([" a", "a", "b ", "é", "x" * 30, "x" * 15 + "y" + "x" * 14]), max_size=30)
)
def test_unmatched_cells_are_counted_by_text(names: list[str]) -> None:
    counts = unmatched(texts_of([name.encode() for name in names]))
    assert counts.unmatched_cells == Counter(name.strip() for name in names)
    assert counts.unmatched_more == 0


def test_only_so_many_texts_are_kept_and_none_that_is_long() -> None:
    names = [b"%d" % (n % 3000) for n in range(6000)] + [b"x" * 64, b"x" * 65]
    counts = unmatched(texts_of(names))
    assert list(counts.unmatched_cells) == [f"{n}" for n in range(CELLS_KEPT)]
    assert set(counts.unmatched_cells.values()) == {2}
    assert counts.unmatched_more == 6002 - 2 * CELLS_KEPT


def test_identifiers_in_an_area_of_plain_digits_are_counted_and_kept_nowhere() -> None:
    names = [b"208019876543210", b"33698765432", b"208011234519999", b"33698765432"]
    counts = RowCounts()
    count_unmatched(texts_of(names), counts, forms=CellForms(["208011234512345", "33612345678"]))
    assert counts.to_json()["unmatched_cells"] == {"208011234519999": 1}
    assert counts.unmatched_hidden == 3


def test_rows_of_a_dictionary() -> None:
    texts = texts_of([b"a", b"b", b"unused"])
    of_row = np.array([1, 0, 1], np.int32)
    coded = Texts(data=texts.data, begins=texts.begins, ends=texts.ends, of_row=of_row)
    assert unmatched(coded).unmatched_cells == {"b": 2, "a": 1}
