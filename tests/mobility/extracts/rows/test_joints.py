"""Joint indicators in extracts: the code of both values, from events and from subscribers alike."""

from dataclasses import replace

import numpy as np
import pytest

from mobility.extracts.profiles.definition import default_profile, subscribers_profile
from mobility.extracts.rows.events import NO_VALUE, concatenate
from mobility.vault.state.visits import group_events
from tests.mobility.extracts.rows import small_extract, test_subscribers
from tests.mobility.extracts.rows.small_extract import asked_of, coder_of, ingest, pseudonym_of

STUDY = small_extract.definition_of(small_extract.WITH_JOINT)
GENDERS, AGES = ("F", "M", ""), ("<18", "18-64", "65+", "Ä", "")
PEOPLE = [(f"s{i}", i % 3, i % 5) for i in range(120)]
NONE, JOINT = int(NO_VALUE), 3


def inline(*, second: int = 0, profile=None, people=PEOPLE):
    coder = coder_of(STUDY, profile=profile)
    rows = [f"{who},2017-03-25T12:00:{second:02},c1,{GENDERS[x]},x,{AGES[y]}" for who, x, y in people]
    parts, _ = ingest("\n".join([small_extract.HEADER, *rows]).encode(), coder)
    return concatenate(parts, slots=coder.slots)


def expected(*, has_joint: bool) -> dict[int, int]:
    """Code of what each person is asked; a person without a value of a part has the next code after those."""
    found = {}
    for who, x, y in PEOPLE:
        pseudonym = pseudonym_of(who)
        # Of the indicators of this study: gender, visit duration (derived from the day), age, both.
        asked = asked_of(pseudonym, d=4)
        own = {0: x if x < 2 else NONE, 1: NONE, 2: y if y < 4 else NONE}
        found[pseudonym] = own.get(asked, 5 * x + y if has_joint else NONE)
    assert {asked_of(each, d=4) for each in found} == {0, 1, 2, JOINT}
    return found


def codes_of(events) -> dict[int, int]:
    return dict(zip(events.pseudonym.tolist(), events.codes[:, 0].tolist(), strict=True))


def test_whoever_is_asked_both_gives_one_code_of_both() -> None:
    assert codes_of(inline()) == expected(has_joint=True)


@pytest.mark.parametrize("kept", ["gender", "age"])
def test_files_with_one_part_say_nothing_of_both(kept: str) -> None:
    usual = default_profile(STUDY)
    fewer = replace(usual, columns={kept: usual.columns[kept]})
    found, asked = codes_of(inline(profile=fewer)), {"gender": 0, "age": 2}[kept]
    known = {who: code for who, code in expected(has_joint=False).items() if asked_of(who, d=4) == asked}
    assert {who: code for who, code in found.items() if code != NONE} == {
        who: code for who, code in known.items() if code != NONE
    }
    of_people = subscribers_profile(STUDY)
    of_people = replace(of_people, columns={kept: of_people.columns[kept]})
    rows, _ = test_subscribers.read("Ä,s1,F", definition=STUDY, profile=of_people)
    assert (rows.static[[asked_of(who, d=4) == JOINT for who in rows.pseudonym.tolist()]] == NONE).all()


def test_the_order_of_files_does_not_matter() -> None:
    """The earliest row counts, with the value that it lacks; a file with one part changes nothing."""
    usual = default_profile(STUDY)
    fewer = inline(profile=replace(usual, columns={"age": usual.columns["age"]}))
    early, late = inline(second=1), inline(second=2, people=[(who, 0, 0) for who, _, _ in PEOPLE])
    one, other = (
        group_events(concatenate(parts, slots=1)).values
        for parts in ([fewer, early, late], [late, early, fewer])
    )
    assert np.array_equal(one.pseudonym, other.pseudonym)
    found = dict(zip(one.pseudonym.tolist(), one.codes[:, 0].tolist(), strict=True))
    assert one.codes.tolist() == other.codes.tolist()
    for who, code in expected(has_joint=True).items():
        if asked_of(who, d=4) == JOINT:
            assert found[who] == code
