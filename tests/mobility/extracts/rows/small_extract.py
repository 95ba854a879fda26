"""A small study, read both as the project and as the reference read it, and an extract through the ingest."""

import io
from datetime import date
from functools import cache

import numpy as np
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.cmac import CMAC

from ldp.kernels.entropy import KeyedPrf
from mobility.extracts.profiles.definition import default_profile
from mobility.extracts.readers import Source, Texts
from mobility.extracts.readers import csv as reader
from mobility.extracts.readers.opening import read_extract
from mobility.extracts.rows.counts import RowCounts
from mobility.extracts.rows.events import Events
from mobility.extracts.rows.rows import NOBODY, RowCoder
from mobility.vault.state.stays import Whereabouts
from reports.studies.studyfile import StudyDefinition, parse_study
from tests.ldp.exact import reference_words
from tests.study_text import AREA, columns, daily, joint, static, study_text

PSEUDONYM_KEY = bytes(range(16))
SANITISE_KEY = bytes(range(16, 32))
FIRST_DAY = date(2017, 3, 25)  # clocks go forward on day 2
HEADER = "who,when,where,gender,other,age"
CELLS = "cell_id,lon,lat,zone,valid_from,valid_to\nc1,6.8,47.6,a,,\nc2,6.9,47.6,b,,\n"

WHO_WHEN_WHERE = columns("who", "when", "where")
# The daily indicator is between the static ones: slots are not places in the plan.
STUDY = study_text(
    static("gender", "F", "M"), daily("visit_duration"), static("age", "<18", "18-64", "65+", "Ä"),
    slug="small", name="Small", first_day="2017-03-25", days=2, extract=WHO_WHEN_WHERE, area=AREA,
)  # fmt: skip
# A change for `definition_of`.
WITH_JOINT = (AREA, joint("both", "gender", "age") + AREA)


@cache
def definition_of(*changes: tuple[str, str], cells: str = CELLS) -> StudyDefinition:
    text = STUDY
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return parse_study(text.encode(), filename="study.toml", read=lambda _: cells.encode())


def coder_of(
    definition, *, pseudonym_key=PSEUDONYM_KEY, closed_days=frozenset(), opted_out=NOBODY, profile=None
) -> RowCoder:
    return RowCoder(
        definition, definition.plan_spec(), profile=profile or default_profile(definition),
        pseudonym_key=pseudonym_key, prf=KeyedPrf(SANITISE_KEY), closed_days=closed_days, opted_out=opted_out,
    )  # fmt: skip


def texts_of(values: list[bytes]) -> Texts:
    ends = np.cumsum([0, *map(len, values)], dtype=np.int32)
    return Texts(data=np.frombuffer(b"".join(values), np.uint8), begins=ends[:-1], ends=ends[1:])


def ingest(
    data: bytes, coder: RowCoder, *, block_bytes: int = 4 << 20, source: Source | None = None
) -> tuple[list[Events], RowCounts]:
    counts = RowCounts()
    usual, reader.BLOCK_BYTES = reader.BLOCK_BYTES, block_bytes
    try:
        blocks = read_extract(io.BytesIO(data), layout=coder.layout, source=source)
        return [coder.events_of(block, counts) for block in blocks], counts
    finally:
        reader.BLOCK_BYTES = usual


def pseudonym_of(subscriber: str, *, key: bytes = PSEUDONYM_KEY) -> int:
    """AES-CMAC (RFC 4493) by the cryptography package, its first 8 bytes."""
    mac = CMAC(AES(key))
    mac.update(subscriber.encode())
    return int.from_bytes(mac.finalize()[:8], "big")


def asked_of(pseudonym: int, *, d: int, key: bytes = SANITISE_KEY) -> int:
    """The indicator that a subscriber answers, from the keyed block written out."""
    fields = {"purpose": 1, "indicator": 0, "plan_version": 0, "value": 0, "counter": 0}
    word, _ = reference_words(key, pseudonym=pseudonym, **fields)
    assert word < 2**64 // d * d  # else it is drawn again, which these tests need not do
    return word % d


def made_of(kind, rows, *, slots: int = 0, **dtypes):
    """Return an object with columns, of rows of their values; a column of uint16 has a value in each slot."""
    columns = {}
    for place, (name, dtype) in enumerate(dtypes.items()):
        values = np.array([row[place] for row in rows], dtype)
        columns[name] = values.reshape(len(rows), slots) if dtype is np.uint16 else values
    return kind(**columns)


def make_events(rows: list[tuple[int, int, int, int, list[int]]], *, slots: int) -> Events:
    names = {"second": np.uint32, "cell": np.uint32, "day": np.uint8, "codes": np.uint16}
    return made_of(Events, rows, slots=slots, pseudonym=np.uint64, **names)


def whereabouts_of(*rows: tuple[int, int, int]) -> Whereabouts:
    return made_of(Whereabouts, rows, pseudonym=np.uint64, second=np.uint32, cell=np.uint32)


def events_equal(one: Events, other: Events) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in Events.__slots__)
