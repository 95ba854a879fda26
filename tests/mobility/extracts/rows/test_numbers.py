"""Columns of numbers: the cuts that each reaches, for single texts and for whole columns alike."""

import numpy as np
import pytest

from mobility.extracts.profiles.definition import NO_ANSWER, ValueTable
from mobility.extracts.readers import Texts
from mobility.extracts.rows.lookups import UNKNOWN, CodeTable

CUTS = (-5, 0, 60, 120)
TABLE = ValueTable(codes={}, cuts=CUTS)
CASES = {
    "": NO_ANSWER, "  ": NO_ANSWER, "-6": 0, "-5.0": 1, "-5.01": 0, "-4,99": 1, "-0": 2, "-0.5": 1, "0": 2,
    "+59.999": 2, "60": 3, " 60 ": 3, "119": 3, "120.": 4, "120,0": 4, "000120": 4, "999999999999999999": 4,
    "1e3": None, "60 min": None, "-": None, ".5": None, "1.2.3": None, "--5": None, "NaN": None, "6 0": None,
    "1234567890123456789": None, "12\u00a0": None, "1.1234567890123456789": None, "0x10": None,
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), CASES.items())
def test_a_text_reaches_cuts_or_is_no_number(text: str, expected: int | None) -> None:
    assert TABLE.code_of(text.encode()) == expected


def test_columns_have_the_codes_of_their_texts() -> None:
    texts = [text.encode() for text in CASES]
    ends = np.cumsum([len(text) for text in texts]).astype(np.int32)
    begins = np.concatenate([[0], ends[:-1]]).astype(np.int32)
    column = Texts(data=np.frombuffer(b"".join(texts), np.uint8), begins=begins, ends=ends, of_row=None)
    found = CodeTable.of(TABLE, empty=NO_ANSWER).codes(column)
    assert found.tolist() == [UNKNOWN if code is None else code for code in CASES.values()]
