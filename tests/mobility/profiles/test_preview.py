"""The preview of first rows: what values become, and that no identifier is ever shown."""
# ruff: noqa: E501  (a table reads best with one rule a line)

from collections.abc import Iterable
from typing import Any

import pytest

from mobility.profiles.masking import is_identifier, shape, shows_people
from mobility.profiles.preview import ShownColumn, preview, texts_seen
from mobility.profiles.proposals import propose
from mobility.profiles.sample import Sample, read_sample
from tests.mobility.profiles.made_profiles import STUDY, definition

STUDY_DEFINITION = definition()
HEADER = "ServedMSISDN,imei,time,cell,sexe,yob,cp,service,name"
ROWS = [
    "33612345678,350000000000001,2024-05-01T10:00:00,208-01-1-11,H,1950,25000,voice,Ada Lovelace",
    "33612345678,350000000000001,2024-05-09T10:00:00,208-01-1-99,F,x,,sms,Alan Turing",
    ",350000000000002,1/5/24,,?,2023,99999999,voice,Grace Hopper",
    "33698765432,350000000000003,2024-05-02T10:00:00,208-01-1-12,,1999,75011,voice,Edsger D",
]


def sample(rows: Iterable[str] = ROWS, header: str = HEADER) -> Sample:
    data = "\n".join([header, *rows, ""]).encode()
    return read_sample(data, size=len(data))


def draft(**changes: Any) -> dict[str, Any]:
    return {
        "profile": {"kind": "events", "timestamp_format": "iso"},
        "columns": {"subscriber": "ServedMSISDN", "timestamp": "time", "cell": "cell"},
        "indicator": {
            "gender": {"column": "sexe", "values": {"H": "M"}},
            "region": {"column": "cp", "prefix": 2, "values": {"25": "Île-de-France"}, "otherwise": "Elsewhere"},
        },
    } | changes  # fmt: skip


def shown(**changes: Any) -> dict[str, ShownColumn]:
    return {
        column.name: column for column in preview(sample(), draft(**changes), definition=STUDY_DEFINITION)
    }


def everything(columns: Iterable[ShownColumn]) -> str:
    return repr(list(columns))


def test_subscribers_are_told_by_their_shape() -> None:
    column = shown()["ServedMSISDN"]
    assert [value.text for value in column.values] == ["••••••••••• (11 digits)"] * 2 + [""] + ["••••••••••• (11 digits)"]  # fmt: skip
    assert (column.values[2].meaning, column.values[2].is_bad) == ("empty: row rejected", True)
    assert column.fact == "2 different in 4 rows"


def test_times_are_shown_as_they_are_read() -> None:
    column = shown()["time"]
    assert [(value.meaning, value.is_bad) for value in column.values] == [
        ("Wed 1 May 2024, 10:00", False),
        ("Thu 9 May 2024, 10:00, not a day of the study", False),
        ("cannot be read: row rejected", True),
        ("Thu 2 May 2024, 10:00", False),
    ]
    assert column.fact == "3 of 4 can be read, 2 of them on days of the study"


def test_a_number_that_is_no_time_of_the_study_is_not_told_as_a_time() -> None:
    """It could be a telephone's, and the time would tell its digits."""
    profile = {"kind": "events", "timestamp_format": "epoch_s"}
    given = sample(["1714557600", "1612345678"], header="t")
    (column,) = preview(
        given, {"profile": profile, "columns": {"timestamp": "t"}}, definition=STUDY_DEFINITION
    )
    assert [(value.text, value.meaning) for value in column.values] == [
        ("•••••••••• (10 digits)", "Wed 1 May 2024, 12:00"),
        ("•••••••••• (10 digits)", "not a day of the study"),
    ]


def test_cells_of_the_area_are_shown() -> None:
    column = shown()["cell"]
    assert [(value.text, value.meaning) for value in column.values] == [
        ("208-01-1-11", "in the area"),
        ("••••••••••• (11 characters)", "not in the area: row ignored"),
        ("", "empty: row rejected"),
        ("208-01-1-12", "in the area"),
    ]


def test_texts_of_attributes_become_categories() -> None:
    columns = shown()
    assert [value.meaning for value in columns["sexe"].values] == [
        "M",
        "F",
        "unknown: row rejected",
        "no answer",
    ]
    assert [value.meaning for value in columns["cp"].values] == ["Île-de-France", "no answer", "Elsewhere", "Elsewhere"]  # fmt: skip
    assert columns["sexe"].fact == "2 of 4 have a category, 1 no answer, 1 would reject the row"


def test_an_unfinished_rule_shows_no_meaning() -> None:
    column = shown(indicator={"region": {"column": "cp", "prefix": 2, "values": {}}})["cp"]
    assert [value.meaning for value in column.values] == [""] * 4
    assert column.fact == "say below what its texts mean"
    assert column.values[2].text == "•••••••• (8 digits)"


@pytest.mark.parametrize(
    ("text", "indicator", "expected"),
    [
        ("F", {}, "F"),
        ("H", {}, "H"),
        ("Ada", {}, "••• (3 letters)"),
        ("33612345678", {}, "••••••••••• (11 digits)"),
        ("Ada", {"otherwise": "F"}, "••• (3 letters)"),
        ("33612345678", {"otherwise": "F"}, "••••••••••• (11 digits)"),
        ("33612345678", {"prefix": 2, "values": {"33": "F"}}, "33•••••••••"),
        ("33", {"prefix": 2, "values": {"33": "F"}}, "33"),
        ("44712345678", {"prefix": 2, "values": {"33": "F"}, "otherwise": "M"}, "••••••••••• (11 digits)"),
        ("33612345678", {"prefix": 11, "values": {"33612345678": "F"}}, "••••••••••• (11 digits)"),
        ("33612345678", {"values": {"33612345678": "F"}}, "••••••••••• (11 digits)"),
        ("F\u00a0", {}, "•• (2 characters)"),  # ingest takes away no such blank
    ],
)
def test_of_an_attribute_as_much_is_shown_as_the_table_lists(
    text: str, indicator: dict[str, Any], expected: str
) -> None:
    rule = {"column": "it", "values": {"H": "M"}} | indicator
    given = sample([f"{text},x"], header="it,y")
    column, _ = preview(given, {"indicator": {"gender": rule}}, definition=STUDY_DEFINITION)
    assert (column.role, column.values[0].text) == ("gender", expected)


def test_unknown_texts_that_are_addresses_are_not_listed() -> None:
    assert texts_seen(["ada@example.org", "F", "F"], prefix=0, known={}) == ([("F", 2)], 1)


def test_without_an_area_every_cell_is_told_by_its_shape() -> None:
    study = definition(STUDY.replace('[area]\ncells = "cells.csv"\n', ""))
    (column,) = preview(sample(["c1", "Ada"], header="c"), {"columns": {"cell": "c"}}, definition=study)
    assert [value.text for value in column.values] == ["•• (2 characters)", "••• (3 letters)"]


UNUSED_HEADER = "ServedMSISDN,imei,service,name,mail,city,contract"
UNUSED = [
    f"3361234000{i},35000000000000{i},{('voice', 'sms')[i % 2]},Ada Lovelace,ada@example.org,Paris{i % 4},"
    f"{('K1', 'K2')[i == 3]}"
    for i in range(8)
]


def test_columns_that_nobody_reads_are_shown_if_they_tell_nobody_apart() -> None:
    columns = {
        column.name: column.values[0].text
        for column in preview(sample(UNUSED, UNUSED_HEADER), draft(), definition=STUDY_DEFINITION)
    }
    assert columns["service"] == "voice"
    assert columns["imei"] == "•••••••••••• (15 digits)"
    assert columns["name"] == "•••••••••••• (12 characters)"
    assert columns["mail"] == "•••••••••••• (15 characters)"
    assert columns["city"] == "•••••• (6 characters)"  # of two subscribers each
    assert columns["contract"] == "•• (2 characters)"  # one of them of one subscriber


def test_before_subscribers_are_known_nothing_is_shown_of_unused_columns() -> None:
    given = sample(UNUSED, UNUSED_HEADER)
    for column in preview(given, {"columns": {}}, definition=STUDY_DEFINITION):
        assert all(value.text.startswith("•") for value in column.values), column.name


@pytest.mark.parametrize("role", ["subscriber", "timestamp", "cell", "gender", "age"])
@pytest.mark.parametrize("form", ["iso", "epoch_s", "epoch_ms", "%Y%m%d%H%M", "", "nonsense"])
def test_no_identifier_is_shown_whatever_its_column_is_taken_for(role: str, form: str) -> None:
    rows = [f"3361234{i:04d},x" for i in range(50)]
    given = sample(rows, header="who,y")
    chosen: dict[str, Any] = {"profile": {"timestamp_format": form}, "columns": {}, "indicator": {}}
    if role in ("gender", "age"):
        chosen["indicator"][role] = {"column": "who", "ignore_case": True}
    else:
        chosen["columns"][role] = "who"
    for study in (STUDY_DEFINITION, definition(STUDY.replace('[area]\ncells = "cells.csv"\n', ""))):
        columns = everything(preview(given, chosen, definition=study))
        assert "1234" not in columns
        assert "who" in columns


def test_nothing_is_shown_of_identifiers_before_anything_was_chosen() -> None:
    given = sample()
    found = everything(
        preview(given, propose(given, definition=STUDY_DEFINITION).draft, definition=STUDY_DEFINITION)
    )
    for secret in ("3361234", "33698765432", "3500000", "Lovelace", "Turing", "99999999", "208-01-1-99"):
        assert secret not in found


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("33612345678", True), ("208-01", False), ("208-01-1-11", True), ("01/06/1990", False), ("1990-06-01", False),
        ("75011", False), ("a" * 61, True), ("Bourgogne-Franche-Comté", False), ("AB12CD3456", True), ("", False),
        ("ada@example.org", True), ("@", True),
    ],
)  # fmt: skip
def test_identifiers_are_known_by_their_looks(text: str, is_one: bool) -> None:
    assert is_identifier(text) is is_one


def test_a_text_that_few_subscribers_have_tells_them_apart() -> None:
    people = [f"s{i}" for i in range(240)]
    assert not shows_people(["F", "M"] * 3, people)
    assert shows_people(["F", "M"] * 2, people)
    assert shows_people(["F"] * 100, ["s1"] * 100)
    assert shows_people(["F"] * 100, ["s1", ""] * 50)
    assert shows_people(["F"] * 100, [])
    assert not shows_people(["", ""], [])


def test_texts_that_look_like_somebody_are_masked_however_many_have_them() -> None:
    people = [f"s{i}" for i in range(240)]
    for text in ("33612345678", "ada@example.org", "Ada Lovelace", "A. Lovelace", "Lovelace,Ada", "Person a"):
        assert shows_people([text] * 100, people), text
    assert shows_people([f"city{i % 40}" for i in range(240)], people)
    assert not shows_people([f"city{i % 30}" for i in range(240)], people)


def test_a_shape_tells_only_how_long_a_text_is() -> None:
    assert [shape(text) for text in ("", "7", "abc", "a-1")] == ["", "• (1 digit)", "••• (3 letters)", "••• (3 characters)"]  # fmt: skip
    assert shape("1" * 40) == "•••••••••••• (40 digits)"
