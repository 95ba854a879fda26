"""Broken files, and the exact message of each: error, place and fix, never a value; any file in chunks."""
# ruff: noqa: E501  (a table reads best with one file a line)

import gzip
import io
import struct
import tarfile
import zipfile
import zlib
from decimal import Decimal
from itertools import product
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mobility.base.errors import MobilityError
from mobility.batches.reading import check_counts
from mobility.batches.texts import ROW_REASONS
from mobility.extracts.chunk_plans import ChunkPlan
from mobility.extracts.readers import Layout, Source
from mobility.extracts.readers.chunks import GRAIN_BYTES, plan_chunks, read_chunk
from mobility.extracts.readers.compression import PARQUET_MAGIC
from mobility.extracts.readers.opening import read_extract
from mobility.extracts.rows.counts import RowCounts
from tests.mobility.extracts.readers.any_file import COLUMNS, check, cut, files, is_text, written
from tests.mobility.extracts.readers.test_csv import Pieces, zstd
from tests.mobility.extracts.rows.small_extract import HEADER, coder_of, definition_of

WHO, NOON = "33699887766", "2017-03-25T12:00:00"
HEAD = HEADER.encode() + b"\n"  # columns who,when,where,gender,other,age
ROW = f"{WHO},{NOON},c1,F,,65+\n".encode()
GOOD = HEAD + ROW * 3
LONG = WHO.encode() * 100_000


class Rows(NamedTuple):
    accepted: int
    rejected: dict[str, list[int]] = {}


def altered(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 0x40]) + data[place + 1 :]


def line(**values: str) -> bytes:
    row = {"who": WHO, "when": NOON, "where": "c1", "gender": "F", "other": "", "age": "65+"} | values
    return ",".join(row.values()).encode() + b"\n"


def parquet(*, drop: str = "", rename: dict[str, str] | None = None, options: dict[str, Any] | None = None,
            **columns: Any) -> bytes:  # fmt: skip
    rows = {"who": WHO, "when": NOON, "where": "c1", "gender": "F", "age": "65+"}
    usual = {name: [value] * 3 for name, value in rows.items()}
    table = pa.table({name: value for name, value in (usual | columns).items() if name != drop})
    names = [(rename or {}).get(name, name) for name in table.column_names]
    return written(table.rename_columns(names), **(options or {}))


def with_footer(footer: bytes) -> bytes:
    return b"PAR1" + bytes(100) + footer + struct.pack("<I", len(footer)) + b"PAR1"


GZIP = gzip.compress(GOOD * 20, mtime=0)
ZSTD = zstd(GOOD * 20)
CHECKED = parquet(options={"write_page_checksum": True, "compression": "none", "use_dictionary": False})
WHO_IN_PAGE = len(WHO).to_bytes(4, "little") + WHO.encode()  # elsewhere it is in statistics
LONG_WINDOW = bytes.fromhex("28b52ffd00a8010000")  # a frame that asks for 2 GB

EMPTY = "line 1 is empty: add a header with the column names"
NO_ROWS = "the file has a header but no rows, so nothing was published"
NUL_HEAD = "line 1: the file contains NUL bytes, so it is binary or UTF-16: send CSV in UTF-8, or Parquet"
UTF16 = "the file is text in UTF-16, not UTF-8: save it as UTF-8"
TOO_LONG = "is longer than 4 MiB: check that this is a CSV file"
BAD_GZIP = "the gzip stream is damaged or ends early: compress the file again and send it in full"
BAD_ZSTD = "the zstd stream is damaged or ends early: compress the file again and send it in full"
BAD_PARQUET = "the Parquet file is damaged or ends early: write it again and send it in full"
TWICE = "the content of the {} stream is compressed a second time: compress the file once"
OTHER = "the file is compressed with {}, not gzip or zstd: compress it with one of these"
FLOATS = "contains floating-point numbers, which are not exact: write text or integers"
ARCHIVE = "the file is {}, not CSV or Parquet: extract the file, and send it alone"
SAVE_AS = "the file is {}, not CSV or Parquet: save the table as CSV"
EXPORT = "the file is {}, not CSV or Parquet: export the rows in one of these formats"


def tar(data: bytes) -> bytes:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as file:
        named = tarfile.TarInfo("rows.csv")
        named.size = len(data)
        file.addfile(named, io.BytesIO(data))
    return archive.getvalue()


def zipped(name: str, data: bytes = b"") -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr(name, data)
    return archive.getvalue()


def quoted(*names: str) -> str:
    return ", ".join(f"“{name}”" for name in names)


def missing(*names: str, found: int, delimiter: str, shown: str = "") -> str:
    """A header without these names; `shown` are those that it has, unless it may be a row of data."""
    if shown:
        return (
            f"line 1: the header has no column {quoted(*names)}, which the profile requires; it has {found} "
            f"columns (separator: {delimiter}): {quoted(*shown.split())}. Choose another profile, or correct "
            "the header"
        )
    return (
        f"line 1 does not look like a header (separator: {delimiter}; fields: {found}). Its fields may be "
        f"data, so they are not shown. The profile requires the column {quoted(*names)}. Add a header, choose "
        "another profile or create one"
    )


def no_text(column: str, type_: str) -> str:
    return f"column “{column}” has type {type_}: write text or integers"


COLUMN = {"bad_timestamp": "when", "empty_subscriber": "who", "empty_cell": "where"}


def too_many(bad: int, of: int, share: str, reason: str, lines: str, *, places: str = "lines") -> str:
    column = f" in column “{COLUMN[reason]}”" if reason in COLUMN else ""
    return (
        f"{share}% of rows were rejected ({bad} of {of}; limit 50%), so nothing was published. Most "
        f"common reason: {ROW_REASONS[reason]}{column} ({bad} rows, first {places} {lines}). Correct the file or "
        "its profile, and send it again"
    )


ALL_FIVE = ("who", "when", "where", "gender", "age")
CASES: list[tuple[str, bytes | Pieces, str | Rows]] = [
    # --- nothing in it ---------------------------------------------------------------------------
    ("empty", b"", EMPTY),
    ("one line end", b"\n", EMPTY),
    ("only a byte order mark", b"\xef\xbb\xbf", EMPTY),
    ("first line blank", b"\n" + GOOD, EMPTY),
    ("header only", HEAD, NO_ROWS),
    ("header and blank lines", HEAD + b"\n\r\n\n", NO_ROWS),
    ("gzip of nothing", gzip.compress(b""), EMPTY),
    ("Parquet without rows", parquet(**{name: pa.array([], pa.string()) for name in ALL_FIVE}), NO_ROWS),
    # --- header ----------------------------------------------------------------------------------
    ("header forgotten", ROW * 3, missing(*ALL_FIVE, found=6, delimiter="comma")),
    ("column missing", GOOD.replace(b",age", b",years"), missing("age", found=6, delimiter="comma", shown="who when where gender other years")),
    ("column in capitals", GOOD.replace(b"who", b"WHO"), missing("who", found=6, delimiter="comma", shown="WHO when where gender other age")),
    ("column missing with pipes", GOOD.replace(b",age", b",x").replace(b",", b"|"), missing("age", found=6, delimiter="pipe", shown="who when where gender other x")),
    ("column twice", GOOD.replace(b"other", b"age"), "line 1: column “age” appears more than once: rename or remove one of them"),
    ("delimiter unknown", GOOD.replace(b",", b":"), missing(*ALL_FIVE, found=1, delimiter="comma")),
    ("header quoted as one", b'"' + HEAD[:-1] + b'"\n' + ROW, missing(*ALL_FIVE, found=1, delimiter="comma")),
    ("header of two delimiters", b"who,when;where,gender,age\n" + ROW, missing("when", "where", found=4, delimiter="comma", shown="who when;where gender age")),
    ("header of a long name", b"who,when,where," + LONG[:2000] + b"\n" + ROW, missing("gender", "age", found=4, delimiter="comma", shown="who when where …")),
    ("header in French", "Numéro de téléphone;Horodatage;Cellule;Sexe\n".encode() + ROW,
     missing(*ALL_FIVE, found=4, delimiter="semicolon", shown="Numéro_de_téléphone Horodatage Cellule Sexe").replace("_", " ")),
    ("header that ends with a separator", b"client;horodatage;cellule;\n" + ROW, missing(*ALL_FIVE, found=4, delimiter="semicolon", shown="client horodatage cellule") .replace("“cellule”", "“cellule”, “”")),
    ("header with one known name", b"Rufnummer;Zeit;Zelle\n" + ROW, missing(*ALL_FIVE, found=3, delimiter="semicolon")),
    ("row of known words", b"client,home,33699887766\n" + ROW, missing(*ALL_FIVE, found=3, delimiter="comma")),
    ("row of known words without digits", b"client,home,\n" + ROW, missing(*ALL_FIVE, found=3, delimiter="comma")),
    ("row of a pseudonym", b"client,home," + b"f" * 41 + b"\n" + ROW, missing(*ALL_FIVE, found=3, delimiter="comma")),
    # --- encodings -------------------------------------------------------------------------------
    ("UTF-16 with mark", GOOD.decode().encode("utf-16"), UTF16),
    ("UTF-16 big-endian with mark", b"\xfe\xff" + GOOD.decode().encode("utf-16-be"), UTF16),
    ("UTF-16 without mark", GOOD.decode().encode("utf-16-le"), NUL_HEAD),
    ("UTF-8 mark before Latin-1", b"\xef\xbb\xbf" + GOOD.replace(b"other", b"\xe9tat"),
     "line 1: the header starts with a UTF-8 byte order mark, but is not valid UTF-8: save the file as UTF-8"),
    ("Latin-1 in a file of UTF-8", HEAD + line(age="Ä") + line(age="Ä").decode().encode("latin-1") + ROW * 2,
     Rows(3, {"bad_text": [3]})),
    ("UTF-8 in a file of Latin-1", HEAD + line(age="Ä").decode().encode("latin-1") + line(age="Ä") + ROW * 2,
     Rows(3, {"bad_text": [3]})),
    ("Latin-1 after a UTF-8 mark", b"\xef\xbb\xbf" + GOOD + line(age="Ä").decode().encode("latin-1"),
     Rows(3, {"bad_text": [5]})),
    ("UTF-8 cut in a character", HEAD + line(age="Ä") + ROW + line(age="Ä").replace(b"\x84", b""), Rows(2, {"bad_text": [4]})),
    ("NUL bytes in the header", GOOD.replace(b"other", b"o\0her"), NUL_HEAD),
    ("NUL bytes in a row", GOOD + line(who="336\0") + ROW, Rows(4, {"bad_text": [5]})),
    ("NUL bytes at the end", GOOD + bytes(5000), Rows(3, {"wrong_columns": [5]})),
    # --- rows ------------------------------------------------------------------------------------
    ("column too few", GOOD + b"a,b,c\n" + ROW, Rows(4, {"wrong_columns": [5]})),
    ("column too many", GOOD + ROW[:-1] + b",1\n" + ROW, Rows(4, {"wrong_columns": [5]})),
    ("quote never closed", GOOD + b'"' + ROW + ROW, Rows(4, {"wrong_columns": [5]})),
    ("cut in the last row", GOOD + ROW[:20], Rows(3, {"wrong_columns": [5]})),
    ("another delimiter in the rows", HEAD + ROW.replace(b",", b";") * 3, too_many(3, 3, "100", "wrong_columns", "2, 3, 4")),
    ("subscriber empty", GOOD + line(who=""), Rows(3, {"empty_subscriber": [5]})),
    ("subscriber blank", GOOD + line(who=" \t "), Rows(3, {"empty_subscriber": [5]})),
    ("timestamp day first", GOOD + line(when="25/03/2017 12:00:00"), Rows(3, {"bad_timestamp": [5]})),
    ("timestamp of no day", GOOD + line(when="2017-02-29T12:00:00"), Rows(3, {"bad_timestamp": [5]})),
    ("timestamp that the clock skips", GOOD + line(when="2017-03-26T02:30:00"), Rows(3, {"nonexistent_time": [5]})),
    ("as many bad rows as may be", HEAD + ROW + line(who=""), Rows(1, {"empty_subscriber": [3]})),
    ("more rows of other cells than good ones", HEAD + ROW + line(where="c9") * 3, Rows(1)),
    ("cell empty", GOOD + line(where=""), Rows(3, {"empty_cell": [5]})),
    ("value unknown", GOOD + line(gender="X"), Rows(3, {"unknown_value": [5]})),
    ("subscriber of a million digits", GOOD + line(who="3" * 10**6), Rows(4)),
    # --- lines without end, and bombs ------------------------------------------------------------
    ("line of a gigabyte", Pieces([GOOD, *[LONG] * 1000]), f"line 5 {TOO_LONG}"),
    ("header of a gigabyte", Pieces([b"who,", *[LONG] * 1000]), f"line 1 {TOO_LONG}"),
    ("gzip bomb", gzip.compress(GOOD + bytes(1 << 26)), f"line 5 {TOO_LONG}"),
    ("zstd bomb", zstd(GOOD + bytes(1 << 26)), f"line 5 {TOO_LONG}"),
    ("gzip bomb of blank lines", gzip.compress(HEAD + b"\n" * (1 << 25)), NO_ROWS),
    ("zstd with a window of 2 GB", LONG_WINDOW + ZSTD,
     "the zstd stream needs a window of more than 128 MB: compress the file without --long"),
    # --- compression -----------------------------------------------------------------------------
    ("gzip cut", GZIP[:-20], BAD_GZIP),
    ("gzip with another checksum", altered(GZIP, len(GZIP) - 8), BAD_GZIP),
    ("zstd cut", ZSTD[:-4], BAD_ZSTD),
    ("zstd and then text", ZSTD + ROW, BAD_ZSTD),
    ("zstd of blocks that do not exist", ZSTD[:9] + b"\xff" * 40, BAD_ZSTD),
    ("gzip of gzip", gzip.compress(GZIP), TWICE.format("gzip")),
    ("zstd of gzip", zstd(GZIP), TWICE.format("zstd")),
    ("gzip of UTF-16", gzip.compress(GOOD.decode().encode("utf-16")),
     "the content of the gzip stream is text in UTF-16, not UTF-8: save it as UTF-8"),
    ("gzip of Parquet", gzip.compress(parquet()),
     "the content of the gzip stream is a Parquet file: send it without gzip compression"),
    ("zlib without gzip", zlib.compress(GOOD), "line 1: "),  # any text may come out: see below
    ("zip archive", b"PK\x03\x04" + bytes(100), ARCHIVE.format("a zip archive")),
    ("tar archive", tar(GOOD), ARCHIVE.format("a tar archive")),
    ("tar archive in gzip", gzip.compress(tar(GOOD)), ARCHIVE.format("a tar archive").replace("the file is", "the content of the gzip stream is")),
    ("spreadsheet", zipped("[Content_Types].xml"), SAVE_AS.format("an Office document (xlsx, docx)")),
    ("spreadsheet of LibreOffice", zipped("mimetype", b"application/vnd.oasis.opendocument.spreadsheet"), SAVE_AS.format("an OpenDocument file (ods, odt)")),
    ("spreadsheet of an older Office", bytes.fromhex("d0cf11e0a1b11ae1") + bytes(600), SAVE_AS.format("an old Office document (xls, doc)")),
    ("PDF", b"%PDF-1.7\n" + bytes(100), EXPORT.format("a PDF document")),
    ("bzip2", b"BZh91AY&SY" + bytes(100), OTHER.format("bzip2")),
    ("xz", b"\xfd7zXZ\x00" + bytes(100), OTHER.format("xz")),
    ("Avro", b"Obj\x01" + bytes(100), EXPORT.format("an Avro file")),
    # --- Parquet ---------------------------------------------------------------------------------
    ("Parquet cut", parquet()[:-10], BAD_PARQUET),
    ("Parquet without a middle", b"PAR1PAR1", BAD_PARQUET),
    ("Parquet with a footer of noise", with_footer(b"\x15\xff" * 50), BAD_PARQUET),
    ("Parquet with a footer longer than itself", b"PAR1" + bytes(20) + b"\xff\xff\xff\x7fPAR1", BAD_PARQUET),
    ("Parquet altered", altered(CHECKED, CHECKED.index(WHO_IN_PAGE) + 9), BAD_PARQUET),
    ("Parquet with a column whose name is no text", parquet().replace(b"age", b"\xffge"), BAD_PARQUET),
    ("Parquet and then text", parquet() + ROW, BAD_PARQUET),
    ("Parquet encrypted", b"PARE" + bytes(100) + b"PARE",
     "the file is an encrypted Parquet file: write it without encryption (it is encrypted when it arrives)"),
    ("Parquet column missing", parquet(drop="age"),
     "the Parquet file has no column “age”, which the profile requires; it has 4 columns: “who”, “when”, “where”, “gender”. Choose another profile, or rename the columns"),
    ("Parquet column twice", parquet(more=["x"] * 3, rename={"more": "age"}),
     "the Parquet file has more than one column “age”: rename or remove one of them"),
    ("Parquet subscriber as float", parquet(who=[3.3e10] * 3), f"column “who” {FLOATS}"),
    ("Parquet subscriber as decimal with places", parquet(who=[Decimal("33.5")] * 3), no_text("who", "decimal128(3, 1)")),
    ("Parquet value as truth", parquet(gender=[True] * 3), no_text("gender", "bool")),
    ("Parquet subscriber in a list", parquet(who=[[WHO]] * 3), "column “who” has a nested type: write text or integers"),
    ("Parquet value in a record", parquet(age=[{WHO: 1}] * 3), "column “age” has a nested type: write text or integers"),
    ("Parquet subscriber as UUID", parquet(who=pa.array([bytes(16)] * 3, pa.binary(16))),
     no_text("who", "fixed_size_binary[16]")),
    ("Parquet timestamp as subscriber", parquet(who=pa.array([0] * 3, pa.timestamp("s"))), no_text("who", "timestamp[ms]")),
    ("Parquet timestamp as whole number", parquet(when=[1490439600] * 3),
     "column “when” contains integers: set timestamp_format in the profile to \"epoch_s\" or \"epoch_ms\""),
    ("Parquet timestamp as float", parquet(when=[1490439600.0] * 3),
     "column “when” contains floating-point numbers, which are not exact: write timestamps, text or integers"),
    ("Parquet timestamp as date", parquet(when=pa.array([17250] * 3, pa.date32())),
     "column “when” has type date32[day]: write timestamps, text or integers"),
    ("Parquet timestamp as INT96",
     parquet(when=pa.array([0] * 3, pa.timestamp("ns")), options={"use_deprecated_int96_timestamps": True}),
     "column “when” has timestamps of type INT96, which do not include a time zone: write TIMESTAMP_MICROS (in Spark: spark.sql.parquet.outputTimestampType) or text"),
    ("Parquet with nulls", parquet(who=[WHO, None, WHO], when=[NOON, NOON, None], gender=["F", None, None]),
     too_many(2, 3, "66.7", "empty_subscriber", "2", places="rows").replace("(2 rows, first", "(1 rows, first")),
    ("Parquet timestamps beyond all years", parquet(when=pa.array([0, 10**15, None], pa.timestamp("s"))),
     too_many(2, 3, "66.7", "bad_timestamp", "2, 3", places="rows")),
    ("Parquet text that is none", parquet(who=pa.array([b"1", b"\xff", b"2"], pa.binary())), Rows(2, {"bad_text": [2]})),
    ("Parquet text with NUL bytes", parquet(who=["1", "2", "3\0"]), Rows(2, {"bad_text": [3]})),
]  # fmt: skip


def outcome(data: bytes | Pieces) -> str | Rows:
    coder = coder_of(definition_of(('cell = "where"', 'cell = "where"\nmax_bad_share = 0.5')))
    counts, source = RowCounts(), Source()
    stream = data if isinstance(data, Pieces) else io.BytesIO(data)
    try:
        for block in read_extract(stream, layout=coder.layout, source=source):
            coder.events_of(block, counts)
        places = "rows" if source.format == "parquet" else "lines"
        check_counts(counts, profile=coder._profile, places=places, of_events=False)
    except MobilityError as error:
        assert error.__suppress_context__ or error.__context__ is None  # a traceback could quote a row
        return str(error)
    assert counts.rows_read == counts.accepted + counts.ignored.total() + counts.rejected.total()
    assert counts.rejected == {reason: len(lines) for reason, lines in counts.lines.items()}
    return Rows(counts.accepted, counts.lines)


@pytest.mark.parametrize(("name", "data", "expected"), CASES, ids=[name for name, *_ in CASES])
def test_broken_file(name: str, data: bytes | Pieces, expected: str | Rows) -> None:
    found = outcome(data)
    assert found == expected or (name == "zlib without gzip" and found.startswith(expected))
    assert WHO not in str(found) and NOON not in str(found)


# Packed and foreign files are never cut: see `test_what_is_small_packed_or_wrong_is_one_chunk`.
CUT = [
    (name, data)
    for name, data, _ in CASES
    if isinstance(data, bytes) and (is_text(data) or data.startswith(PARQUET_MAGIC))
]


@pytest.mark.parametrize("data", [data for _, data in CUT], ids=[name for name, _ in CUT])
def test_broken_file_in_chunks(data: bytes) -> None:
    check(data, block=4 << 20, step=max(len(data) // 7, 1))


GZIPPED = gzip.compress(b"a,b\n" * 10, mtime=0)  # the same bytes in every process: they name a test
LAYOUT = Layout(columns=("a", "b"), delimiter="comma")
COLUMNS_LINE, ONE_ROW = ",".join(COLUMNS).encode(), b"336001,2017-03-25T12:00:00,c1,F,,65+"


def n_rows(stream: io.IOBase, plan: ChunkPlan) -> int:
    return sum(len(block.lines) for block in read_chunk(stream, plan, layout=LAYOUT, source=Source()))


def plans_of(data: bytes, target: int, size: int | None = None) -> list[ChunkPlan]:
    return plan_chunks(io.BytesIO(data), size=size or len(data), target_bytes=target)


class TestChunks:
    @settings(max_examples=120, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
    @given(
        data=files, block=st.sampled_from([64, 300, 4 << 20]), step=st.integers(1, 400),
        piece=st.integers(1, 500),
    )  # fmt: skip
    @example(COLUMNS_LINE + b"\r" + ONE_ROW + b"\n" + ONE_ROW + b"\r" + ONE_ROW + b"\n", 300, 1, 50)
    def test_any_file_is_read_or_refused_as_a_whole_and_in_chunks(self, data, block, step, piece) -> None:
        check(data, block=block, step=step, piece=piece)

    def test_lone_carriage_returns_all_belong_to_the_first_chunk(self) -> None:
        data = b"a,b\r" + b"1,2\r" * 9
        assert [n_rows(io.BytesIO(data), plan) for plan in cut(len(data), 10)] == [9, 0, 0, 0]

    def test_a_chunk_reads_no_further_than_its_last_line(self) -> None:
        data = b"a,b\n" + b"1,2\n" * (1 << 20)
        read = 0

        class Counting(io.BytesIO):
            def readinto(self, buffer: memoryview) -> int:
                nonlocal read
                n = super().readinto(buffer)
                read += n
                return n

        assert n_rows(Counting(data), ChunkPlan(kind="bytes", begin=1 << 20, end=2 << 20)) == 1 << 18
        assert read < (1 << 20) + (256 << 10)

    @pytest.mark.parametrize(("target", "step"), [(1, 1), (GRAIN_BYTES, 1), (11 << 20, 2), (12 << 20, 3)])
    def test_plain_text_is_cut_at_frames(self, target: int, step: int) -> None:
        size = 30 << 20
        plans = plans_of(b"a,b\n1,2\n", target, size=size)
        assert [plan.begin for plan in plans] == list(range(0, size, step * GRAIN_BYTES))
        assert [plan.end for plan in plans] == [*(plan.begin for plan in plans[1:]), size]
        assert {plan.kind for plan in plans} == {"bytes"}

    @pytest.mark.parametrize(
        "data", [b"", b"a,b\n", GZIPPED, b"\xff\xfea\0", b"PAR1", b"PK\x03\x04", b"BZh91AY&SY"]
    )
    def test_what_is_small_packed_or_wrong_is_one_chunk(self, data: bytes) -> None:
        size = len(data) if data in (b"", b"a,b\n") else 64 << 20
        assert plans_of(data, 1, size=size) == [ChunkPlan(kind="whole", begin=0, end=size)]

    @pytest.mark.parametrize("n", [0, 1, 24, 25, 26, 60])
    def test_row_groups_are_shared_out_in_order(self, n: int) -> None:
        table = pa.table(
            {"a": [f"{i}" for i in range(n)], "b": [None if i % 7 == 3 else "é" for i in range(n)]}
        )
        for group, target in product((1, 7, 25), (1, 150, 500, 3000)):
            self.check_row_groups(written(table, row_group_size=group), n, group, target)

    def check_row_groups(self, data: bytes, n: int, group: int, target: int) -> None:
        plans = plans_of(data, target)
        rows = [n_rows(io.BytesIO(data), plan) for plan in plans]
        assert sum(rows) == n
        if n:
            assert [plan.first_row for plan in plans] == [sum(rows[:place]) + 1 for place in range(len(rows))]
            assert {plan.kind for plan in plans} == {"row_groups"}
        if target == 1:
            assert len(plans) == max(-(-n // group), 1)
