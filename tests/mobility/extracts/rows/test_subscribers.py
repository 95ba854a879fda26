"""Rows of a subscriber extract, counted and sanitised as they are read; joint ones; lists of opt-outs."""

import gzip
import io
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp.kernels.entropy import KeyedPrf
from ldp.keyed.designs.threshold import choose_cut
from mobility.base.errors import BatchFormatError
from mobility.extracts.profiles.definition import default_profile, subscribers_profile
from mobility.extracts.readers import Source
from mobility.extracts.readers import csv as reader
from mobility.extracts.readers.opening import read_extract
from mobility.extracts.rows.counts import RowCounts
from mobility.extracts.rows.events import NO_VALUE, concatenate
from mobility.extracts.rows.opt_out_lists import LONGEST_BYTES, opted_out_of, read_list
from mobility.vault.sanitise import StudySanitiser
from mobility.vault.state.subscribers import NOBODY, SubscriberCoder, SubscriberRows, join_rows
from mobility.vault.state.visits import group_events
from tests.mobility.extracts.rows import small_extract
from tests.mobility.extracts.rows.small_extract import PSEUDONYM_KEY, pseudonym_of
from tests.study_text import AREA, joint

NONE = int(NO_VALUE)
MECHANISMS = ("smp-grr", "spl-grr", "rsfd-ouez")
PLANS = {
    name: small_extract.definition_of(('mechanism = "smp-grr"', f'mechanism = "{name}"'))
    for name in MECHANISMS
} | {"joint": small_extract.definition_of(small_extract.WITH_JOINT)}


def sanitiser_of(definition) -> StudySanitiser:
    return StudySanitiser(definition.plan_spec(), prf=KeyedPrf(small_extract.SANITISE_KEY))


def read(*lines: str, definition=PLANS["spl-grr"], opted_out=NOBODY, profile=None, header="age,who,gender"):
    coder = SubscriberCoder(
        profile or subscribers_profile(definition), sanitiser=sanitiser_of(definition),
        pseudonym_key=small_extract.PSEUDONYM_KEY, opted_out=opted_out,
    )  # fmt: skip
    counts = RowCounts()
    text = "\n".join((header, *lines)) + "\n"
    blocks = read_extract(io.BytesIO(text.encode()), layout=coder.layout)
    rows = join_rows([coder.rows_of(block, counts) for block in blocks], words=coder.words)
    assert counts.rows_read == counts.accepted + counts.ignored.total() + counts.rejected.total()
    assert len(rows) == counts.accepted
    return rows, counts


def test_answers_of_all_columns() -> None:
    definition = PLANS["spl-grr"]
    rows, counts = read("65+,alice,M", ",bob, F ", "<18,carol,")
    assert rows.pseudonym.tolist() == [small_extract.pseudonym_of(name) for name in ("alice", "bob", "carol")]
    codes = np.array([[1, 2], [0, NONE], [NONE, 0]], np.uint16)
    expected = sanitiser_of(definition).static_answers(rows.pseudonym, codes)
    assert rows.static.tolist() == expected.tolist()
    assert (counts.accepted, counts.empty) == (3, {"age": 1, "gender": 1})


@pytest.mark.parametrize(
    ("line", "reason"),
    [("65+,alice,M,more", "wrong_columns"), ("65+,al\0ice,M", "bad_text"),
     ("no age,  ,no gender", "empty_subscriber"), ("no age,alice,M", "unknown_value"),
     ("65+,alice,no gender", "unknown_value")],
)  # fmt: skip
def test_rejected_row(line: str, reason: str) -> None:
    rows, counts = read(",bob,", line, ",carol,")
    assert (counts.rejected, counts.lines) == ({reason: 1}, {reason: [3]})
    assert rows.pseudonym.tolist() == [small_extract.pseudonym_of("bob"), small_extract.pseudonym_of("carol")]


def test_value_that_is_not_asked_is_checked_too() -> None:
    _, counts = read(*(f"no age,s{i},M" for i in range(20)), definition=PLANS["smp-grr"])
    assert counts.rejected == {"unknown_value": 20}


def test_whoever_has_opted_out_is_looked_at_no_further() -> None:
    gone = np.sort(np.array([small_extract.pseudonym_of("alice"), small_extract.pseudonym_of("")], np.uint64))
    rows, counts = read("no age,alice,M", "65+,bob,M", ",,", opted_out=gone)
    assert (counts.ignored, counts.rejected) == ({"opted_out": 1}, {"empty_subscriber": 1})
    assert rows.pseudonym.tolist() == [small_extract.pseudonym_of("bob")]


@pytest.mark.parametrize("mechanism", PLANS)
def test_answers_are_those_of_the_same_values_inline(mechanism: str) -> None:
    definition = PLANS[mechanism]
    rows, _ = read(*(f"{AGES[y]},{who},{GENDERS[x]}" for who, x, y in PEOPLE), definition=definition)
    values = group_events(inline(definition=definition)).values
    known, duplicates, conflicting = rows.first_answers(starts=sanitiser_of(definition).starts("static"))
    assert (duplicates, conflicting, known.pseudonym.tolist()) == (0, 0, values.pseudonym.tolist())
    expected = sanitiser_of(definition).static_answers(values.pseudonym, values.codes)
    assert known.static.tolist() == expected.tolist()
    assert (known.static != NONE).any()


ROWS = st.lists(
    st.tuples(
        st.sampled_from([0, 1, 2**62, 2**63, 2**64 - 1]),
        st.lists(st.sampled_from([0, 7, NONE]), min_size=2, max_size=2),
    ),
    max_size=12,
)


JOINT = 3
GENDERS, AGES = ("F", "M", ""), ("<18", "18-64", "65+", "Ä", "")
PEOPLE = [(f"s{i}", i % 3, i % 5) for i in range(120)]


def inline(*, second: int = 0, profile=None, people=PEOPLE, definition=PLANS["joint"]):
    coder = small_extract.coder_of(definition, profile=profile)
    rows = [f"{who},2017-03-25T12:00:{second:02},c1,{GENDERS[x]},x,{AGES[y]}" for who, x, y in people]
    parts, _ = small_extract.ingest("\n".join([small_extract.HEADER, *rows]).encode(), coder)
    return concatenate(parts, slots=coder.slots)


def expected(*, has_joint: bool) -> dict[int, int]:
    """Code of what each person is asked; a person without a value of a part has the next code after those."""
    found = {}
    for who, x, y in PEOPLE:
        pseudonym = small_extract.pseudonym_of(who)
        # Of the indicators of this study: gender, visit duration (derived from the day), age, both.
        asked = small_extract.asked_of(pseudonym, d=4)
        own = {0: x if x < 2 else NONE, 1: NONE, 2: y if y < 4 else NONE}
        found[pseudonym] = own.get(asked, 5 * x + y if has_joint else NONE)
    assert {small_extract.asked_of(each, d=4) for each in found} == {0, 1, 2, JOINT}
    return found


def codes_of(events) -> dict[int, int]:
    return dict(zip(events.pseudonym.tolist(), events.codes[:, 0].tolist(), strict=True))


def only(slug: str, profile):
    return replace(profile, columns={slug: profile.columns[slug]})


class TestJoints:
    def test_whoever_is_asked_both_gives_one_code_of_both(self) -> None:
        assert codes_of(inline()) == expected(has_joint=True)

    @pytest.mark.parametrize(("kept", "place"), [("gender", 0), ("age", 2)])
    def test_files_with_one_part_say_nothing_of_both(self, kept: str, place: int) -> None:
        found = codes_of(inline(profile=only(kept, default_profile(PLANS["joint"]))))
        known = expected(has_joint=False)
        assert found == {
            who: code if small_extract.asked_of(who, d=4) == place else NONE for who, code in known.items()
        }
        of_people = only(kept, subscribers_profile(PLANS["joint"]))
        rows, _ = read(
            "Ä,s1,F", "65+,s2,M", definition=PLANS["spl-grr"],
            profile=only(kept, subscribers_profile(PLANS["spl-grr"])),
        )  # fmt: skip
        assert (rows.static == NONE).any(axis=0).tolist() == [kept != "gender", kept != "age"]
        rows, _ = read(*(f"Ä,{who},F" for who, _, _ in PEOPLE), definition=PLANS["joint"], profile=of_people)
        asked = [small_extract.asked_of(who, d=4) for who in rows.pseudonym.tolist()]
        assert (rows.static[np.array(asked) == JOINT] == NONE).all()

    def test_the_order_of_files_does_not_matter(self) -> None:
        fewer = inline(profile=only("age", default_profile(PLANS["joint"])))
        early, late = inline(second=1), inline(second=2, people=[(who, 0, 0) for who, _, _ in PEOPLE])
        one, other = (
            group_events(concatenate(parts, slots=1)).values
            for parts in ([fewer, early, late], [late, early, fewer])
        )
        assert (one.pseudonym.tolist(), one.codes.tolist()) == (
            other.pseudonym.tolist(),
            other.codes.tolist(),
        )
        asked = {who for who in one.pseudonym.tolist() if small_extract.asked_of(who, d=4) == JOINT}
        known, found = expected(has_joint=True), codes_of(one)
        assert {who: found[who] for who in asked} == {who: known[who] for who in asked}


SPENT = '[[indicator]]\nslug = "spent"\nkind = "number"\ncolumn = "other"\nunit = "EUR"\ncuts = [10, 20]\n'
BY_GENDER = small_extract.definition_of((AREA, SPENT + joint("both", "gender", "spent") + AREA))
SPENDING = [(f"s{i}", i % 3, ("", "5", "15", "25")[i % 4]) for i in range(200)]


def test_a_number_of_a_column_is_combined_by_the_side_of_the_cut() -> None:
    """In files of events and in those of subscribers; the cut is that of the number alone."""
    coder = small_extract.coder_of(BY_GENDER)
    rows = [f"{who},2017-03-25T12:00:00Z,c1,{GENDERS[x]},{spent},65+" for who, x, spent in SPENDING]
    parts, _ = small_extract.ingest("\n".join([small_extract.HEADER, *rows]).encode(), coder)
    found = codes_of(concatenate(parts, slots=coder.slots))
    plan = BY_GENDER.plan_spec()
    people = np.array([pseudonym_of(who) for who, _, _ in SPENDING], np.uint64)
    cuts = choose_cut(
        people, prf=KeyedPrf(small_extract.SANITISE_KEY), indicator=3, channel=plan.answer_channel(3)
    )
    expected = {
        person: 3 * x + (2 if not spent else int(spent) >= (10, 20)[cut])
        for person, cut, (_, x, spent) in zip(people.tolist(), cuts, SPENDING, strict=True)
        if small_extract.asked_of(person, d=5) == 4
    }
    assert {who: found[who] for who in expected} == expected
    assert set(expected.values()) == set(range(9))
    sanitiser = sanitiser_of(BY_GENDER)
    of_people = SubscriberCoder(
        subscribers_profile(BY_GENDER), sanitiser=sanitiser, pseudonym_key=PSEUDONYM_KEY
    )
    text = "\n".join(["who,gender,other,age", *(f"{who},{GENDERS[x]},{n},65+" for who, x, n in SPENDING)])
    blocks = read_extract(io.BytesIO(text.encode()), layout=of_people.layout)
    kept = join_rows([of_people.rows_of(block, RowCounts()) for block in blocks], words=of_people.words)
    codes = np.array([[found[person]] for person in kept.pseudonym.tolist()], np.uint16)
    assert kept.static.tolist() == sanitiser.static_answers(kept.pseudonym, codes).tolist()


def rows_of(drawn: list[tuple[int, list[int]]]) -> SubscriberRows:
    return small_extract.made_of(SubscriberRows, drawn, slots=2, pseudonym=np.uint64, static=np.uint16)


@given(drawn=ROWS, starts=st.sampled_from([[0], [0, 1]]))
def test_first_report_of_a_subscriber_wins(drawn, starts) -> None:
    """For each kind, as if every row had come in its own file."""
    known, duplicates, conflicting = rows_of(drawn).first_answers(starts=starts)
    expected: dict[int, list[int]] = {}
    differing = 0
    for name, answers in drawn:
        kept = expected.setdefault(name, [NONE, NONE])
        for start, stop in zip(starts, [*starts[1:], 2], strict=True):
            if kept[start] == NONE != answers[start]:
                kept[start:stop] = answers[start:stop]
            differing += answers[start] != NONE and kept[start:stop] != answers[start:stop]
    assert dict(zip(known.pseudonym.tolist(), known.static.tolist(), strict=True)) == expected
    assert known.pseudonym.tolist() == sorted(expected)
    assert (duplicates, conflicting) == (len(drawn) - len(expected), differing)
    assert type(duplicates) is type(conflicting) is int


@given(drawn=ROWS, bits=st.integers(0, 3), cut=st.integers(0, 12))
def test_shards_together_are_the_whole_in_order(drawn, bits, cut) -> None:
    chunks = [rows_of(drawn[:cut]), rows_of(drawn[cut:])]
    parts = [chunk.split(n_shards=2**bits) for chunk in chunks]
    assert all(len(part) for shards in parts for part in shards.values())
    for shard in range(2**bits):
        stored = [SubscriberRows.unpack(shards[shard].pack()) for shards in parts if shard in shards]
        mine = [row for row in drawn if row[0] >> (64 - bits) == shard]
        rows = join_rows(stored, words=2)
        assert list(zip(rows.pseudonym.tolist(), rows.static.tolist(), strict=True)) == mine


COLUMN = "msisdn"


def read_names(data: bytes, source: Source | None = None) -> tuple[list[int], RowCounts]:
    counts, found = RowCounts(), []
    for block in read_list(io.BytesIO(data), name=COLUMN, source=source):
        found += opted_out_of(block, counts, name=COLUMN, pseudonym_key=PSEUDONYM_KEY).tolist()
    assert (counts.rows_read, len(found)) == (counts.accepted + counts.rejected.total(), counts.accepted)
    return found, counts


def names(*people: str) -> list[int]:
    return [pseudonym_of(person) for person in people]


MISFITS = {
    "wrong_columns": [
        b"alice,bob", b"alice;bob", b"alice\tbob", b"alice|", b'ali"ce', b'"alice', b"a" * (LONGEST_BYTES + 1)
    ],
    "bad_text": [b"ali\0ce", b"\xc3\xa4\xff"],
    "empty_subscriber": [b'""', b"   "],
}  # fmt: skip


class TestOptOutLists:
    @pytest.mark.parametrize(
        "data",
        [b"alice\nbob\n", b"alice\r\nbob", b"alice\rbob\r", b"\n\nalice\n\r\n\nbob\n\n",
         b"\xef\xbb\xbfalice\nbob\n", b"  alice\t\nbob  \n", b'"alice"\n"bob"\n', b"msisdn\nalice\nbob\n",
         b"\n msisdn\nalice\nbob\n", b"MSISDN\nalice\nbob\n", b'"Msisdn"\nalice\nbob\n',
         b'\xef\xbb\xbf"msisdn"\r\nalice\r\nbob\r\n', gzip.compress(b"alice\nbob\n", mtime=0),
         pa.compress(b"alice\nbob\n", codec="zstd", asbytes=True)],
    )  # fmt: skip
    def test_two_people(self, data: bytes) -> None:
        found, counts = read_names(data)
        assert (found, counts.rows_read, counts.accepted) == (names("alice", "bob"), 2, 2)

    def test_only_a_first_line_is_a_header(self) -> None:
        assert read_names(b"alice\nmsisdn\n")[0] == names("alice", "msisdn")
        assert (read_names(b"msisdn\nmsisdn\n")[0], read_names(b"phone\n")[0]) == (
            names("msisdn"),
            names("phone"),
        )
        for nobody in (b"", b"\n\n", b"msisdn\n"):
            found, counts = read_names(nobody)
            assert (found, counts.rows_read) == ([], 0)

    def test_names_are_text_of_either_encoding(self) -> None:
        for encoding in ("utf-8", "latin-1"):
            source = Source()
            assert read_names("Zoé\nÄnne\n".encode(encoding), source)[0] == names("Zoé", "Änne")
            assert source.facts() == {"format": "csv", "encoding": encoding}
        found, counts = read_names(b"\xef\xbb\xbfalice\n\xe4nne\n")  # a byte order mark says UTF-8
        assert (found, counts.rejected) == (names("alice"), {"bad_text": 1})

    @pytest.mark.parametrize(("reason", "line"), [(why, line) for why in MISFITS for line in MISFITS[why]])
    def test_line_that_is_no_subscriber(self, line: bytes, reason: str) -> None:
        found, counts = read_names("Zoé\n".encode() + line + b"\nbob\n\nx,y\n")
        assert (found, counts.lines.pop(reason)[0]) == (names("Zoé", "bob"), 2)
        others = counts.rejected - counts.rejected.__class__({reason: 1})
        assert others == {"wrong_columns": 1}

    def test_lines_of_misfits_are_in_order(self) -> None:
        _, counts = read_names(b"a;b\na,b\na;b\n\nalice\na,b\n")
        assert counts.lines == {"wrong_columns": [1, 2, 3, 6]}
        longest = "a" * LONGEST_BYTES
        assert read_names(longest.encode())[0] == names(longest)

    def test_blocks_together_are_the_whole(self, monkeypatch) -> None:
        monkeypatch.setattr(reader, "BLOCK_BYTES", 64)
        people = [f"s{i}" for i in range(500)]
        found, counts = read_names("\n".join(["msisdn", *people[:250], "a;b", *people[250:]]).encode())
        assert (found, counts.lines) == (names(*people), {"wrong_columns": [252]})
        assert read_names(b"msisdn\n" * 60)[0] == names("msisdn") * 59

    @pytest.mark.parametrize(
        ("data", "message"),
        [
            (b"PAR1" + bytes(8), "send the opt-out list as text, with one subscriber on each line"),
            (b"PK\x03\x04" + bytes(8), "the file is a zip archive"),
            (gzip.compress(b"alice\n" * 99, mtime=0)[:-9], "the gzip stream is damaged or ends early"),
            ("alice\n".encode("utf-16"), "the file is text in UTF-16"),
        ],
    )
    def test_other_files_are_refused(self, data: bytes, message: str) -> None:
        with pytest.raises(BatchFormatError, match=message) as caught:
            read_names(data)
        assert "alice" not in str(caught.value)
