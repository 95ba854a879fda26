"""A synthetic population of the demo study, as `synthesise` writes it: for training and load tests."""

from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mobility.demo.population import ABSENT, Population
from reports.studies.studyfile import VISIT_DURATION, StudyDefinition

PERSON: Final = "person_id"
DATE: Final = "date"


def read_population(folder: Path, *, study: StudyDefinition) -> Population:
    """Read persons and presence of a folder.

    Parameters
    ----------
    study : the demo study: its days, categories and columns

    Raises
    ------
    OSError : a file cannot be read
    ValueError : the files are not of this study, or lack an indicator
    """
    categories = {indicator.slug: indicator.categories for indicator in study.indicators}
    static = [indicator.slug for indicator in study.static_indicators]
    persons = _read(folder / "persons.parquet", [PERSON, *static])
    presence = _read(folder / "presence.parquet", [PERSON, DATE, VISIT_DURATION])
    person = _places(presence[PERSON], persons[PERSON], column=PERSON)
    first = np.datetime64(study.first_day, "D")
    day = (presence[DATE].to_numpy().astype("datetime64[D]") - first).astype(np.int64)
    if day.size and not (day.min() >= 0 and day.max() < study.days):
        raise ValueError(f"people must be there on the {study.days} days from {study.first_day}, got others")
    bitmaps = np.zeros(persons.num_rows, np.uint64)
    np.bitwise_or.at(bitmaps, person, np.uint64(1) << day.astype(np.uint64))
    durations = np.full((persons.num_rows, study.days), ABSENT, np.int32)
    durations[person, day] = _codes(presence, VISIT_DURATION, categories)
    return Population(
        days=study.days,
        categories=categories,
        presence=bitmaps,
        static={slug: _codes(persons, slug, categories) for slug in static},
        durations=durations,
    )


def _read(path: Path, columns: list[str]) -> pa.Table:
    try:
        table = pq.read_table(path)
    except pa.ArrowInvalid as error:
        raise ValueError(f"{path.name} must be a Parquet file of `synthesise`: {error}") from None
    for column in columns:
        if column not in table.column_names:
            raise ValueError(
                f"{path.name} must have the column {column}, got {len(table.column_names)} others"
            )
    return table


def _codes(table: pa.Table, slug: str, categories: dict[str, tuple[str, ...]]) -> NDArray[np.int32]:
    known = pa.array(categories[slug], pa.string())
    return _places(table[slug], known, column=slug).astype(np.int32)


def _places(values: Any, known: Any, *, column: str) -> NDArray[np.int64]:
    found = pc.index_in(values, value_set=known)
    if found.null_count:
        raise ValueError(f"{column} must have values of the study only, got {found.null_count} others")
    return np.asarray(found.to_numpy(), np.int64)
