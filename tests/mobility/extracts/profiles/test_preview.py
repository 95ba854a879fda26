"""The first rows of files of every kind: what is read of them, what is proposed, and that no identifier shows."""
# ruff: noqa: E501  (a table reads best with one rule a line)

import gzip
import tracemalloc
from dataclasses import replace
from datetime import date

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mobility.extracts.profiles.definition import own_table
from mobility.extracts.profiles.errors import PreviewError, ProfileFileError
from mobility.extracts.profiles.masking import is_identifier, shows_people
from mobility.extracts.profiles.parse import parse_profile
from mobility.extracts.profiles.preview import preview, texts_seen
from mobility.extracts.profiles.proposals import propose
from mobility.extracts.profiles.sample import PARQUET_BYTES, PLAIN_BYTES, ROWS, read_sample
from mobility.extracts.profiles.timestamp_guess import timestamp_formats
from mobility.extracts.profiles.typed import TypedProfile
from mobility.extracts.profiles.value_guess import bands_of, rule_draft
from mobility.uploads.profile_pages.copies import copy_of
from mobility.uploads.profile_pages.texts import profile_words
from tests.demo_study import parsed_study
from tests.mobility.class_study import class_text
from tests.mobility.extracts.profiles.made_profiles import AGES, STUDY, definition, edited
from tests.mobility.extracts.readers.any_file import written
from tests.study_text import origin

DEFINITION = definition()
WITHOUT_AREA = definition(STUDY.replace('[area]\ncells = "cells.csv"\n', ""))
HEADER = "ServedMSISDN,imei,time,cell,sexe,yob,cp,service,name"
PEOPLE_ROWS = [
    "33612345678,350000000000001,2024-05-01T10:00:00,208-01-1-11,H,1950,25000,voice,Ada Lovelace",
    "33612345678,350000000000001,2024-05-09T10:00:00,208-01-1-99,F,x,,sms,Alan Turing",
    ",350000000000002,1/5/24,,?,2023,99999999,voice,Grace Hopper",
    "33698765432,350000000000003,2024-05-02T10:00:00,208-01-1-12,,1999,75011,voice,Edsger D",
]
UNUSED_HEADER = "ServedMSISDN,imei,service,name,mail,city,contract"
UNUSED = [
    f"3361234000{i},35000000000000{i},{service},Ada Lovelace,ada@example.org,Paris{i % 4},{('K1', 'K2')[i == 3]}"
    for i, service in enumerate(["voice", "sms"] * 4)
]
DRAFT = {
    "profile": {"kind": "events", "timestamp_format": "iso"},
    "columns": {"subscriber": "ServedMSISDN", "timestamp": "time", "cell": "cell"},
    "indicator": {
        "gender": {"column": "sexe", "values": {"H": "M"}},
        "region": {"column": "cp", "prefix": 2, "values": {"25": "Île-de-France"}, "otherwise": "Elsewhere"},
    },
}


def sample(rows=PEOPLE_ROWS, header=HEADER):
    data = "\n".join([header, *rows, ""]).encode()
    return read_sample(data, size=len(data))


def shown(draft=DRAFT, *, given=None, study=DEFINITION):
    columns = preview(given or sample(), draft, definition=study)
    return {column.name: column for column in columns}


class TestColumns:
    @pytest.mark.parametrize(
        ("name", "values", "fact"),
        [("ServedMSISDN",
          [("••••••••••• (11 digits)", "", False)] * 2 + [("", "empty value: row rejected", True), ("••••••••••• (11 digits)", "", False)],
          "2 different values in 4 rows"),
         ("time",
          [(None, "Wed 1 May 2024, 10:00", False), (None, "Thu 9 May 2024, 10:00, outside the study period", False),
           (None, "unreadable time: row rejected", True), (None, "Thu 2 May 2024, 10:00", False)],
          "3 of 4 values are readable, and 2 of those are within the study period"),
         ("cell",
          [("208-01-1-11", "in the area", None), ("••••••••••• (11 characters)", "cell outside the area: row ignored", None),
           ("", "empty value: row rejected", None), ("208-01-1-12", "in the area", None)],
          None),
         ("sexe",
          [(None, meaning, None) for meaning in ("M", "F", "unknown value: row rejected", "no answer")],
          "4 values: 2 with a category, 1 meaning “no answer”, 1 unknown (row rejected)"),
         ("cp", [(None, meaning, None) for meaning in ("Île-de-France", "no answer", "Elsewhere", "Elsewhere")], None)],
    )  # fmt: skip
    def test_values_are_shown_as_they_are_read_and_subscribers_by_their_shape(self, name, values, fact):
        column = shown()[name]
        for value, (text, meaning, is_bad) in zip(column.values, values, strict=True):
            assert value.meaning == meaning
            assert text in (None, value.text)
            assert is_bad in (None, value.is_bad)
        assert fact in (None, column.fact)

    def test_a_number_that_is_no_time_of_the_study_is_not_told_as_a_time(self):
        draft = {"profile": {"kind": "events", "timestamp_format": "epoch_s"}, "columns": {"timestamp": "t"}}
        column = shown(draft, given=sample(["1714557600", "1612345678"], header="t"))["t"]
        assert [value.text for value in column.values] == ["•••••••••• (10 digits)"] * 2
        meanings = ["Wed 1 May 2024, 12:00", "time outside the study period"]
        assert [value.meaning for value in column.values] == meanings

    def test_an_unfinished_rule_shows_no_meaning(self):
        column = shown({**DRAFT, "indicator": {"region": {"column": "cp", "prefix": 2, "values": {}}}})["cp"]
        assert [value.meaning for value in column.values] == [""] * 4
        assert column.fact == "map the values of this column below"
        assert column.values[2].text == "•••••••• (8 digits)"

    @pytest.mark.parametrize(
        ("text", "indicator", "expected"),
        [("F", {}, "F"),
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
         ("F\u00a0", {}, "•• (2 characters)")],  # ingest takes away no such blank
    )  # fmt: skip
    def test_of_an_attribute_as_much_is_shown_as_the_table_lists(self, text, indicator, expected):
        rule = {"column": "it", "values": {"H": "M"}} | indicator
        column = shown({"indicator": {"gender": rule}}, given=sample([f"{text},x"], header="it,y"))["it"]
        assert (column.role, column.values[0].text) == ("gender", expected)

    def test_unknown_texts_that_are_addresses_are_not_listed(self):
        assert texts_seen(["ada@example.org", "F", "F"], prefix=0, known={}) == ([("F", 2)], 1)

    def test_columns_that_nobody_reads_are_shown_if_they_tell_nobody_apart(self):
        columns = shown(given=sample(UNUSED, UNUSED_HEADER))
        expected = {  # a city is of two subscribers each, and one of the contracts of one
            "service": "voice", "imei": "•••••••••••• (15 digits)", "name": "•••••••••••• (12 characters)",
            "mail": "•••••••••••• (15 characters)", "city": "•••••• (6 characters)", "contract": "•• (2 characters)",
        }  # fmt: skip
        assert {name: columns[name].values[0].text for name in expected} == expected

    def test_nothing_is_shown_of_identifiers_before_anything_was_chosen(self):
        columns = shown({"columns": {}}, given=sample(UNUSED, UNUSED_HEADER)).values()
        assert all(value.text.startswith("•") for column in columns for value in column.values)
        found = repr(shown(propose(sample(), definition=DEFINITION).draft))
        secrets = ("3361234", "33698765432", "3500000", "Lovelace", "Turing", "99999999", "208-01-1-99")
        assert not [secret for secret in secrets if secret in found]

    @pytest.mark.parametrize("role", ["subscriber", "timestamp", "cell", "gender", "age"])
    @pytest.mark.parametrize("form", ["iso", "epoch_s", "epoch_ms", "%Y%m%d%H%M", "", "nonsense"])
    def test_no_identifier_is_shown_whatever_its_column_is_taken_for(self, role, form):
        given = sample([f"3361234{i:04d},x" for i in range(50)], header="who,y")
        chosen = {"profile": {"timestamp_format": form}, "columns": {}, "indicator": {}}
        if role in ("gender", "age"):
            chosen["indicator"][role] = {"column": "who", "ignore_case": True}
        else:
            chosen["columns"][role] = "who"
        for study in (DEFINITION, WITHOUT_AREA):
            columns = repr(shown(chosen, given=given, study=study))
            assert "1234" not in columns
            assert "who" in columns

    @pytest.mark.parametrize(
        ("text", "is_one"),
        [("33612345678", True), ("208-01", False), ("208-01-1-11", True), ("01/06/1990", False), ("1990-06-01", False),
         ("75011", False), ("a" * 61, True), ("Bourgogne-Franche-Comté", False), ("AB12CD3456", True), ("", False),
         ("ada@example.org", True), ("@", True)],
    )  # fmt: skip
    def test_identifiers_are_known_by_their_looks(self, text, is_one):
        assert is_identifier(text) is is_one


PEOPLE = [f"s{i}" for i in range(240)]


@pytest.mark.parametrize(
    ("texts", "people", "does"),
    [(["F", "M"] * 3, PEOPLE, False),
     (["F", "M"] * 2, PEOPLE, True),
     (["F"] * 100, ["s1"] * 100, True),
     (["F"] * 100, ["s1", ""] * 50, True),
     (["F"] * 100, [], True),
     (["", ""], [], False),
     ([f"city{i % 40}" for i in range(240)], PEOPLE, True),
     ([f"city{i % 30}" for i in range(240)], PEOPLE, False),
     # texts that look like someone, in any number
     *[([text] * 100, PEOPLE, True) for text in ("33612345678", "ada@example.org", "Ada Lovelace", "A. Lovelace", "Lovelace,Ada", "Person a")]],
)  # fmt: skip
def test_a_text_that_few_subscribers_have_tells_them_apart(texts, people, does):
    assert shows_people(texts, people) is does


CSV = "id;Année;n\r\n" + "".join(f"a{i};été;{i}\r\n" for i in range(500))


def read(data, **options):
    return read_sample(data, size=len(data), **options)


def parquet(columns, names=None, **options):
    return written(pa.table(columns, names=names), **options)


class TestText:
    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
    def test_encoding_and_delimiter_are_found_out(self, encoding):
        data = CSV.encode(encoding)
        found = read_sample(data[:300], size=len(data))
        assert (found.names, found.rows[0]) == (("id", "Année", "n"), ("a0", "été", "0"))
        assert (found.delimiter, found.encoding) == ("semicolon", encoding.removesuffix("-sig"))
        assert (found.column("Année"), found.column("no such")) == (["été"] * len(found.rows), [])

    def test_a_line_that_is_cut_is_left_out(self):
        data = CSV.encode()
        for n in range(100, 140):
            found = read_sample(data[:n], size=len(data))
            assert len(found.rows) == len([line for line in data[:n].split(b"\r\n")[1:-1] if line]), n
            assert found.misshapen == 0
        assert read_sample(b"a,b\n1,2", size=7).rows == (("1", "2"),)  # the last line of a whole file
        assert read_sample(b"a,b\n1,2", size=8).rows == ()

    def test_only_so_many_rows_are_kept_and_other_rows_are_counted(self):
        assert len(read(b"a,b\n" + b"1,2\n" * 1000).rows) == ROWS
        found = read(b'a,b\n1,2\n\n1,2,3\n" x ,y",2\n')
        assert (found.rows, found.misshapen) == ((("1", "2"), ("x ,y", "2")), 1)

    def test_a_delimiter_can_be_named_and_columns_of_one_name_cannot_be_told_apart(self):
        assert read(b"a,b;c\n1,2;3\n", delimiter="semicolon").names == ("a,b", "c")
        assert read(b"a,b;c,d\n1,2;3,4\n").names == ("a", "b;c", "d")
        assert read(b"a,a,b\n1,2,3\n").column("a") == []

    def test_only_blanks_that_ingest_takes_away_are_taken_away(self):
        assert read("a\n \tx\x0b\n\u00a0y\u3000\n".encode()).rows == (("x",), ("\u00a0y\u3000",))
        assert read(parquet({"a": [" x\x0c", "\u00a0y"]})).rows == (("x",), ("\u00a0y",))


class TestCompressed:
    @pytest.mark.parametrize("n", [250, 10**6])
    def test_gzip(self, n):
        data = gzip.compress((CSV * 3).encode(), 1)
        found = read_sample(data[:n], size=len(data))
        assert (found.compression, found.rows[0]) == ("gzip", ("a0", "été", "0"))
        assert len(found.rows) > 10

    @pytest.mark.parametrize("n", [200_000, 10**7])
    def test_zstd(self, n):
        plain = "".join(f"{i * 7919 % 1_000_003},{i * 104_729 % 99_991}\n" for i in range(60_000))
        data = pa.compress(f"a,b\n{plain}".encode(), codec="zstd", asbytes=True)
        found = read_sample(data[:n], size=len(data))
        assert (found.compression, len(found.rows)) == ("zstd", ROWS)

    def test_what_it_decompresses_to_is_bounded(self):
        plain = 50 * PLAIN_BYTES
        bomb = gzip.compress(b"a,b\n" + b"1,2\n" * (plain // 4))
        assert len(bomb) < 256 << 10
        tracemalloc.start()
        assert len(read(bomb).rows) == ROWS
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < plain * 0.9
        for codec in ("gzip", "zstd"):
            with pytest.raises(PreviewError):
                read(pa.compress(b"x" * (16 * PLAIN_BYTES), codec=codec, asbytes=True))


class TestParquet:
    def test_a_small_file(self):
        times = pa.array([0, 1_500_000_000_000_000], pa.timestamp("us"))
        who, number, nested = ["a", None], [33_612_345_678, 5], [[1], [2]]
        found = read(parquet({"who": who, "number": number, "time": times, "nested": nested}))
        assert found.names == ("who", "number", "time", "nested")
        assert found.rows[0][:3] == ("a", "33612345678", "1970-01-01 00:00:00.000000")
        assert (found.rows[1][0], found.format) == ("", "parquet")

    def test_one_is_whole_or_not_shown(self):
        data = parquet({"who": ["a"]})
        with pytest.raises(PreviewError, match="larger than the preview limit"):
            read_sample(data, size=len(data) + 1)
        with pytest.raises(PreviewError, match="damaged"):
            read(data[:-9])

    def test_columns_of_lists_records_one_name_and_no_rows_keep_their_places(self):
        names = ["list", "a", "record", "a", "x"]
        columns = [[[1], [2]], ["b", "c"], [{"x": 1}] * 2, [4, 5], [6, 7]]
        found = read(parquet(list(map(pa.array, columns)), names=names))
        assert (found.names, found.rows) == (tuple(names), (("", "b", "", "4", "6"), ("", "c", "", "5", "7")))
        empty = read(parquet({"who": pa.array([], pa.string())}))
        assert (empty.names, empty.rows) == (("who",), ())

    def test_only_the_first_rows_are_decoded(self, monkeypatch):
        taken, plain = [], pq.ParquetFile.iter_batches

        def iter_batches(self, *args, **options):
            for batch in plain(self, *args, **options):
                taken.append(len(batch))
                yield batch

        monkeypatch.setattr(pq.ParquetFile, "iter_batches", iter_batches)
        assert (len(read(parquet({"who": [7] * 100_000})).rows), taken) == (ROWS, [ROWS])

    def test_large_pages_are_refused_before_they_are_read(self):
        data = parquet({"secret": ["x" * (PARQUET_BYTES + 1)]}, compression="zstd")
        assert len(data) < 256 << 10
        with pytest.raises(PreviewError, match="too large for a preview") as caught:
            read(data)
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "expected"),
    [(b"", "empty"), (b"\n1,2\n", "Line 1 is empty"), (b"a,b\n\x001,2\n", "NUL bytes"),
     (b"PK\x03\x04 secret", "a zip archive"), (b"\x1f\x8b secret", "gzip stream is damaged"),
     (b"\x28\xb5\x2f\xfd secret", "cannot read the beginning of this zstd file"), (b"\xff\xfea\x00", "UTF-16"),
     (gzip.compress(gzip.compress(b"a,b\n", mtime=0), mtime=0), "compressed a second time"),
     (b"x" * 200_000, "too long")],
    ids=range(9),
)  # fmt: skip
def test_what_cannot_be_shown_is_said_without_its_content(data, expected):
    with pytest.raises(PreviewError, match=expected) as caught:
        read(data)
    assert "secret" not in str(caught.value)


REFERENCE = date(2024, 5, 1)
BANDS = {"<18": [0, 17], "18-24": [18, 24], "25-64": [25, 64], "65+": [65]}
TENS = ["<18", "18-24", "25-34", "35-44", "45-54", "55-64", ">65"]
DAYS_OR_MONTHS = ("%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M")


def born(pattern):
    return {"birth_date": {"reference": REFERENCE, "bands": BANDS, "pattern": pattern}}


def proposed(header, *rows):
    return propose(sample(rows, header), definition=DEFINITION)


class TestTimestamps:
    @pytest.mark.parametrize(
        ("texts", "formats"),
        [(["2024-05-01T10:00:00Z", "2024-05-01 10:00"], ("iso",)),
         (["1714557600"], ("epoch_s",)),
         (["1714557600000"], ("epoch_ms",)),
         (["20240501100000"], ("%Y%m%d%H%M%S",)),
         (["202405011000"], ("%Y%m%d%H%M",)),
         (["13/05/2024 10:00:00", "01/05/2024 10:00:00"], ("%d/%m/%Y %H:%M:%S",)),
         (["05/13/2024 10:00", "05/01/2024 10:00"], ("%m/%d/%Y %H:%M",)),
         (["01/05/2024 10:00", "02/05/2024 10:00"], ("%d/%m/%Y %H:%M",)),  # the other order: before the study
         (["01/05/2024 10:00", "02/06/2024 10:00"], DAYS_OR_MONTHS),
         (["31.5.2024 10:00:01,25"], ("%d.%m.%Y %H:%M:%S,%f",)),
         (["2024/05/01 10:00:00+02:00"], ("%Y/%m/%d %H:%M:%S%z",)),
         (["31-05-2024_10.30"], ("%d-%m-%Y_%H.%M",)),
         (["0612345678", "0698765432"], ()),  # numbers of telephones
         (["1234567890"], ()),  # 2009: far from the study
         (["abc", ""], ()),
         (["2024-05-01"], ()),
         ([], ())],
    )  # fmt: skip
    def test_formats(self, texts, formats):
        assert timestamp_formats(texts, definition=DEFINITION) == formats

    def test_a_few_bad_texts_do_not_hide_the_format(self):
        texts = [f"{day:02d}/05/2024 10:00" for day in range(1, 32)]
        assert timestamp_formats([*texts, "?"], definition=DEFINITION) == ("%d/%m/%Y %H:%M",)
        assert timestamp_formats([*texts, *["?"] * 9], definition=DEFINITION) == ()


class TestValues:
    @pytest.mark.parametrize(
        ("texts", "categories", "draft"),
        [(["F", "M", ""], ["F", "M"], {}),
         (["f", "m"], ["F", "M"], {"ignore_case": True}),
         (["H", "F"], ["F", "M"], {"values": {"H": "M"}}),
         (["1", "2", "9"], ["F", "M"], {"values": {"1": "M", "2": "F"}}),
         (["Homme", "Femme"], ["Female", "Male"], {"values": {"Homme": "Male", "Femme": "Female"}}),
         (["ILE DE FRANCE"], ["Île-de-France", "Elsewhere"], {"values": {"ILE DE FRANCE": "Île-de-France"}}),
         (["25000", "75011"], ["Île-de-France", "Elsewhere"], {"prefix": 2, "values": {}}),
         (["SW1A 1AA", "M1 1AE"], ["North", "South"], {"prefix": 2, "values": {}}),
         (["1950", "2006"], AGES, {"birth_year": {"reference": REFERENCE, "bands": BANDS}}),
         (["1950-01-31"], AGES, born("%Y-%m-%d")),
         (["31/01/1950"], AGES, born("%d/%m/%Y")),
         (["01/02/1950"], AGES, born("")),
         (["1950", "2025"], AGES, {}),  # no one is born after the study
         (["1950"], ["young", "old"], {}),
         (["x"], ["F", "M"], {}),
         ([], ["F", "M"], {})],
    )  # fmt: skip
    def test_rules(self, texts, categories, draft):
        assert rule_draft(texts, categories, reference=REFERENCE) == draft

    @pytest.mark.parametrize(
        ("categories", "bands"),
        [(AGES, list(BANDS.values())),
         ([*TENS, "NR"], [[0, 17], [18, 24], [25, 34], [35, 44], [45, 54], [55, 64], [65]]),
         (["0-17", "18 and over"], [[0, 17], [18]]),
         (["under 18", "18 to 64", ">64"], [[0, 17], [18, 64], [65]]),
         (["moins de 18", "18 à 64", "65 ans et plus"], [[0, 17], [18, 64], [65]]), (["<18", "20+"], []),
         (["18-24", "25+"], []), (["F", "M"], [])],
    )  # fmt: skip
    def test_bands(self, categories, bands):
        assert bands_of(categories) == dict(zip(categories, bands, strict=False))


class TestProposals:
    @pytest.mark.parametrize(
        ("header", "columns"),
        [("msisdn,datetime,location_id", ("msisdn", "datetime", "location_id")),  # FlowKit
         ("recordType,ServedMSISDN,RecordOpeningTime,LocationAreaCode,Cell Identifier", ("ServedMSISDN", "RecordOpeningTime", "Cell Identifier")),  # 3GPP
         ("imsi,msisdn,localTimeStamp,utcTimeOffset,cellId", ("msisdn", "localTimeStamp", "cellId")),  # TAP
         ("user_id,timestamp,mcc,cell_id", ("user_id", "timestamp", "cell_id")),  # multimno
         ("uid,datetime,lat,lng", ("uid", "datetime", None)),  # scikit-mobility
         ("interaction,direction,caller_id,datetime,antenna_id", ("caller_id", "datetime", "antenna_id")),  # bandicoot
         ("call_start_ts,CALLER ID,first-cell-id", ("CALLER ID", "call_start_ts", "first-cell-id"))],
    )  # fmt: skip
    def test_names_of_known_formats(self, header, columns):
        found = proposed(header)
        roles = ("subscriber", "timestamp", "cell")
        assert tuple(found.draft["columns"].get(role) for role in roles) == columns
        assert set(found.reasons.values()) == {"name"}

    def test_values_tell_where_names_do_not(self):
        rows = [f"{i % 3},2024-05-01 10:{i:02d},208-01-1-1{1 + i % 2},{'FM'[i % 2]}" for i in range(10)]
        found = proposed("k,t1,place,g", *rows)
        assert found.draft["columns"] == {"timestamp": "t1", "cell": "place"}
        assert found.draft["indicator"] == {"gender": {"column": "g"}}
        told = ("columns.timestamp", "columns.cell", "indicator.gender.column")
        assert found.reasons == dict.fromkeys(told, "values")

    def test_attributes_have_other_names_and_without_times_it_is_an_extract_of_subscribers(self):
        found = proposed("msisdn,SEXE,Année de naissance,code postal", "x,H,1950,25000").draft
        attributes = {slug: rule["column"] for slug, rule in found["indicator"].items()}
        assert attributes == {"gender": "SEXE", "age": "Année de naissance", "region": "code postal"}
        assert (found["profile"]["kind"], found["columns"]) == ("subscribers", {"subscriber": "msisdn"})

    def test_what_could_be_either_is_not_proposed_and_a_column_serves_once(self):
        found = proposed("msisdn,time", "x,02/06/2024 10:00")
        assert "timestamp_format" not in found.draft["profile"]
        assert found.formats == DAYS_OR_MONTHS
        found = proposed("msisdn,msisdn,age,gender").draft
        assert "subscriber" not in found["columns"]
        assert [rule["column"] for rule in found["indicator"].values()] == ["gender", "age"]


class TestVisitorCategories:
    STUDY = definition(STUDY + origin("who", column="home", home=("93048",), countries=("FR",)))
    ROWS = (
        "1,208150000000001,93048",
        "2,262010000000002,",
        "3,208010000000003,75001 Paris",
        "4,901700000000004,93048",
        "5,x,93048",
    )

    def test_both_columns_are_proposed_and_shown_with_what_comes_of_them(self):
        given = sample(self.ROWS, "msisdn,plmn,home")
        draft = propose(given, definition=self.STUDY).draft
        assert draft["indicator"] == {"who": {"column": "home", "operator_column": "plmn"}}
        columns = shown(draft, given=given, study=self.STUDY)
        assert [each.meaning for each in columns["home"].values] == [
            "Resident", "Foreign tourist", "National tourist", "no answer", "unknown value: row rejected",
        ]  # fmt: skip
        operators = [(each.text[:4], each.meaning) for each in columns["plmn"].values]
        assert operators == [
            ("208•", "operator of the study's country"), ("262•", "foreign operator"),
            ("208•", "operator of the study's country"), ("901•", "no answer"), ("• (1", "unknown value: row rejected"),
        ]  # fmt: skip
        assert {each.role for each in columns.values()} == {"subscriber", "who", "operator:who"}

    def test_a_file_names_both_columns_and_nothing_of_what_they_mean(self):
        file = """
[profile]
name = "abroad"
kind = "subscribers"
[columns]
subscriber = "id"
[indicator.who]
column = "cp"
operator_column = "plmn"
"""
        made = parse_profile(file.encode(), filename="p.toml", definition=self.STUDY)
        assert (made.columns, made.operators) == ({"who": "cp"}, {"who": "plmn"})
        assert TypedProfile.from_json(made.to_json()) == made
        assert made.compiled(self.STUDY).tables["who"] == own_table(self.STUDY.indicators[-1])
        assert copy_of(made, taken=[]).draft["indicator"] == {
            "who": {"column": "cp", "operator_column": "plmn"}
        }
        for old, new, rule in (
            ('operator_column = "plmn"', "", "indicator.who.operator_column: is missing"),
            (
                '"plmn"',
                '"id"',
                "indicator.who.operator_column: must be its own column, but columns.subscriber uses it",
            ),
            ('"plmn"', '"plmn"\nprefix = 2', "indicator.who.prefix: unknown key"),
        ):
            with pytest.raises(ProfileFileError, match=rule):
                parse_profile(edited(old, new, text=file).encode(), filename="p.toml", definition=self.STUDY)


class TestClasses:
    STUDY = parsed_study(class_text())
    FILE = """
[profile]
name = "operator-x"
kind = "events"
timestamp_format = "iso"
[columns]
subscriber = "msisdn"
timestamp = "time"
[indicator.colour]
column = "shade"
"""

    def test_no_role_and_no_indicator_has_the_column_of_the_class(self):
        rule = "must be its own column, but plan.class_column uses it"
        for old, key in (("shade", "indicator.colour.column"), ("msisdn", "columns.subscriber")):
            text = edited(f'"{old}"', '"contract"', text=self.FILE)
            with pytest.raises(ProfileFileError, match=f"{key}: {rule}"):
                parse_profile(text.encode(), filename="p.toml", definition=self.STUDY)

    def test_a_profile_names_the_column_of_the_class(self):
        made = parse_profile(self.FILE.encode(), filename="p.toml", definition=self.STUDY)
        columns = profile_words(made.compiled(self.STUDY), self.STUDY)["columns"]
        assert columns[-1] == ("Class of the subscriber", "contract")

    def test_the_preview_says_what_class_a_row_is_of_and_never_proposes_its_column_for_an_answer(self):
        texts = ("PANEL,red", "gold card,green", ",red", "MINOR,blue")
        rows = [f"33612345678,2024-03-01T10:00:00,{each}" for each in texts]
        named = replace(self.STUDY.indicators[0], name="Contract")
        study = replace(self.STUDY, indicators=(named, *self.STUDY.indicators[1:]))
        given = sample(rows, "msisdn,time,contract,shade")
        draft = propose(given, definition=study).draft
        assert draft["indicator"]["colour"]["column"] == "shade"
        found = shown(draft, given=given, study=study)["contract"]
        rejected = "unknown value: row rejected"
        assert found.role == "plan:class"
        assert [(each.text, each.meaning, each.is_bad) for each in found.values] == [
            ("PANEL", "Class panel", False), ("••••••••• (9 characters)", rejected, True), ("", rejected, True), ("MINOR", "Class minor", False),
        ]  # fmt: skip
        assert found.reasons == ("", "unknown_value", "unknown_value", "")
