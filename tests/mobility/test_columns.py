"""Columns as bytes: nothing is lost, and what repeats takes little room."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mobility.columns import from_steps, pack_columns, steps, unpack_columns
from mobility.errors import SealBrokenError

DTYPES = st.sampled_from([np.uint8, np.uint16, np.uint32, np.uint64, np.int64])
COLUMNS = st.lists(DTYPES.flatmap(lambda dtype: arrays(dtype, st.integers(0, 40))), max_size=5)


@given(columns=COLUMNS)
def test_packing_changes_nothing(columns: list[np.ndarray]) -> None:
    again = unpack_columns(pack_columns(columns))
    assert [column.dtype for column in again] == [column.dtype for column in columns]
    assert [column.tolist() for column in again] == [column.tolist() for column in columns]
    assert all(column.flags.writeable for column in again)


def test_column_of_a_table_packs_as_its_copy() -> None:
    table = np.arange(12, dtype=np.uint16).reshape(6, 2)
    assert pack_columns([*table.T]) == pack_columns([column.copy() for column in table.T])


@given(numbers=st.lists(st.integers(0, 2**64 - 1), unique=True).map(sorted))
def test_steps_lead_back(numbers: list[int]) -> None:
    rising = np.array(numbers, np.uint64)
    assert from_steps(steps(rising)).tolist() == numbers
    assert from_steps(steps(rising)).dtype == np.uint64


def test_pseudonyms_and_small_codes_take_little_room() -> None:
    rng = np.random.default_rng(1)
    n = 50_000
    pseudonyms = np.sort(rng.integers(0, 2**60, n, np.uint64))
    codes = rng.integers(0, 4, n).astype(np.uint16)
    # 44 bits between two of so many, and two bits of a code.
    assert len(pack_columns([steps(pseudonyms), codes])) < 6.5 * n


def test_bytes_of_another_format_are_refused() -> None:
    packed = pack_columns([np.arange(3, dtype=np.uint8)])
    with pytest.raises(SealBrokenError, match="has format 1, this version of the program reads 2"):
        unpack_columns(b"\x01" + packed[1:])
