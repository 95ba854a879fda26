"""Which texts look like a cell of the area."""

import pytest

from mobility.ingest.cell_forms import CellForms


@pytest.mark.parametrize(
    ("text", "is_shown"),
    [
        ("FR-101", True),
        ("BE-9999", True),  # other letters and digits, same runs
        ("FR-1", False),  # shorter than every cell of that form
        ("FR-10000", False),
        ("208-01-77", True),
        ("33612345678", False),
        ("FR101", False),
        ("", False),
        ("=1+1", False),
        ("Été.101", True),  # any letter is a letter
        ("FR-101\n", False),
    ],
)
def test_a_text_needs_the_runs_and_the_length_of_a_known_cell(text: str, is_shown: bool) -> None:
    forms = CellForms(["FR-101", "FR-2000", "lac.101", "208-01-77"])
    assert forms.has(text) is is_shown


@pytest.mark.parametrize(
    ("text", "is_shown"),
    [
        ("208011234519999", True),  # an unknown cell of a known place
        ("208019876543210", False),  # an IMSI of the same network
        ("20801987654", False),
        ("33612345678", False),
        ("33100001", True),
        ("33109999", False),
        ("208-01-9001-17777", True),
        ("208-01-3361-23456", False),
        ("4711", True),  # too few digits to tell anybody apart
    ],
)
def test_with_many_digits_a_text_needs_the_beginning_of_a_known_cell(text: str, is_shown: bool) -> None:
    forms = CellForms(
        ["208011234512345", "20801123451", "33612111111", "33100000", "208-01-9001-12909", "1234"]
    )
    assert forms.has(text) is is_shown


def test_without_a_list_nothing_looks_like_a_cell() -> None:
    assert not CellForms([]).has("FR-101")
    assert not CellForms([]).has("")


def test_lengths_are_those_of_one_form_and_not_of_all() -> None:
    forms = CellForms(["1234", "FR-123456789"])
    assert not forms.has("33612345678")
