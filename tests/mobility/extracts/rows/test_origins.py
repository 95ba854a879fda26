"""Visitor categories from a home code and the country of an operator, against a table that is written out."""

from itertools import product

import numpy as np

from mobility.extracts.profiles.definition import NO_ANSWER, own_table
from mobility.extracts.rows.events import NO_VALUE
from tests.mobility.extracts.rows import small_extract
from tests.mobility.extracts.rows.test_subscribers import read, sanitiser_of
from tests.study_text import joint, origin, static, study_text

NONE, BAD = int(NO_VALUE), -1
HOMES = {"93048": "area", " 93100 Montreuil": "area", "930": "elsewhere", "75001": "elsewhere", " ": "none"}
OPERATORS = {
    "208": "own", "20801": "own", "208 15": "own", "340": "own", "2080100012345678": "own",
    "262": "foreign", "22201": "foreign", "": "none", "901": "none", "99970": "none",
    "20": "unknown", "xyz": "unknown", "000": "unknown", "+208": "unknown",
}  # fmt: skip
CODES = {  # by operator and home: resident, national tourist, foreign tourist, no answer, row rejected
    "own": {"area": 0, "elsewhere": 1, "none": NONE},
    "foreign": {"area": 2, "elsewhere": 2, "none": 2},
    "none": {"area": NONE, "elsewhere": NONE, "none": NONE},
    "unknown": {"area": BAD, "elsewhere": BAD, "none": BAD},
}
CASES = {
    (home, operator): CODES[kind][where]
    for (home, where), (operator, kind) in product(HOMES.items(), OPERATORS.items())
}
ORIGIN = origin(
    "origin", column="age", home=("93048", "93100"), countries=("FR", "GP", "BL", "GF", "MF", "MQ")
)


def study_of(*more, mechanism="spl-grr"):
    text = study_text(
        ORIGIN, static("gender", "F", "M"), *more, slug="small", name="Small", first_day="2017-03-25", days=2,
        mechanism=mechanism, extract=small_extract.WHO_WHEN_WHERE, area=small_extract.AREA,
    )  # fmt: skip
    cells = small_extract.CELLS.encode()
    return small_extract.parse_study(text.encode(), filename="study.toml", read=lambda _: cells)


def events_of(cases, study):
    lines = [
        f"s{n},2017-03-25T10:00:00Z,c1,{(n % 2 and 'F') or 'M'},{mcc},{home}"
        for n, (home, mcc) in enumerate(cases)
    ]
    header = "who,when,where,gender,mcc,age"
    events, counts = small_extract.ingest(
        "\n".join([header, *lines, ""]).encode(), small_extract.coder_of(study)
    )
    return events[0], counts


def test_every_case_of_the_table_one_by_one() -> None:
    table = own_table(study_of().indicators[0])
    assert NO_ANSWER == NONE
    for (home, operator), code in CASES.items():
        found = table.code_of(home.encode(), operator=operator.encode())
        assert (home, operator, BAD if found is None else found) == (home, operator, code)


def test_events_hold_the_category_and_neither_of_its_columns() -> None:
    events, counts = events_of(CASES, study_of())
    kept = [code for code in CASES.values() if code != BAD]
    assert events.codes[:, 0].tolist() == kept
    assert sorted({*events.codes[:, 1].tolist()}) == [0, 1]  # the column after it is its own
    assert counts.rejected == {"unknown_value": len(CASES) - len(kept)}
    assert counts.unknown == {"mcc": len(CASES) - len(kept)}
    assert counts.empty == _blanks()


def _blanks():
    homes, operators = zip(*CASES, strict=True)
    return {"age": sum(not home.strip() for home in homes), "mcc": operators.count("")}


def test_who_is_asked_keeps_the_category_alone() -> None:
    study = study_of(mechanism="smp-grr")
    events, _ = events_of(CASES, study)
    kept = [(code, n) for n, code in enumerate(CASES.values()) if code != BAD]
    asked = [small_extract.asked_of(int(each), d=2) for each in events.pseudonym]
    expected = [code if place == 0 else int(n % 2 == 0) for (code, n), place in zip(kept, asked, strict=True)]
    assert events.codes[:, 0].tolist() == expected


def test_a_combination_takes_the_category() -> None:
    study = study_of(joint("both", "gender", "origin"), mechanism="smp-grr")
    events, _ = events_of(CASES, study)
    kept = [(code, n) for n, code in enumerate(CASES.values()) if code != BAD]
    joined = [
        (code, n, int(found))
        for (code, n), pseudonym, found in zip(kept, events.pseudonym, events.codes[:, 0], strict=True)
        if small_extract.asked_of(int(pseudonym), d=3) == 2
    ]
    assert len(joined) > 5
    for code, n, found in joined:
        assert found == int(n % 2 == 0) * 4 + (3 if code == NONE else code)


def test_subscriber_files_give_the_same_answers() -> None:
    study = study_of()
    lines = [f"{home},s{n},F,{mcc}" for n, (home, mcc) in enumerate(CASES)]
    rows, counts = read(*lines, definition=study, header="age,who,gender,mcc")
    kept = [code for code in CASES.values() if code != BAD]
    codes = np.array([[code, 0] for code in kept], np.uint16)
    expected = sanitiser_of(study).static_answers(rows.pseudonym, codes)
    assert rows.static.tolist() == expected.tolist()
    assert counts.unknown == {"mcc": len(CASES) - len(kept)}
    assert counts.empty == _blanks()  # operators of no country give no answer, but are there
