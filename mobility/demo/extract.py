"""The demo extract: one CSV a day, as the feed of a network would look, the same bytes for the same seed."""

import gzip
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ldp.kernels.streams import KeyedStream
from mobility.demo.events import DAY_S, Events, Places, day_events
from mobility.demo.population import Population, build_population, keyed_stream, load_study, sample
from mobility.demo.synthetic import read_population
from reports.studies.studyfile import StudyDefinition

COLUMNS: Final = (
    "msisdn", "timestamp", "cell_id",
    "visitor_category", "gender", "age", "geolife", "region", "sleeping_area",
)  # fmt: skip
ATTRIBUTES: Final = COLUMNS[3:]
UTC_OFFSET: Final = "+02:00"  # Paris in summer
CENTRE_ZONE: Final = "City of Belfort"
PASSERS_SHARE: Final = 10  # subscribers per person who only passes through
N_OUTSIDE: Final = 24
CHUNK_ROWS: Final = 100_000
NETWORKS: Final = ("22801", "23410", "22201", "21407", "26201", "20601", "20416", "31026")

Writable = BinaryIO | gzip.GzipFile


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractSummary:
    """Summary of the written files; the JSON that `make_extract` prints."""

    directory: str
    files: tuple[str, ...]
    rows: int
    seed: int
    subscribers: int
    subscriber_days: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast:
    """Format of people and cells; people as in `day_events`."""

    ids: pa.StringArray
    attributes: pa.StringArray  # the six columns and the end of the line
    cells: pa.StringArray
    clock: pa.StringArray  # each second of a day, then again with the offset
    places: Places


def write_extract(
    directory: Path,
    *,
    seed: int,
    n_subscribers: int | None = None,
    is_compressed: bool = False,
    people: Path | None = None,
) -> ExtractSummary:
    """Write the files of the week, a day at a time; existing files of the same name are replaced.

    Parameters
    ----------
    people : folder of a synthetic population of the demo study; None: the people of the facts

    Raises
    ------
    ValueError : n_subscribers is below 1 or above the people, or the folder has no such population
    """
    study = load_study()
    if people is None:
        population = build_population(seed=seed, n_subscribers=n_subscribers)
    else:
        population = read_population(people, study=study)
        if n_subscribers is not None:
            population = sample(population, n_subscribers, stream=keyed_stream(seed, purpose="sample"))
    cast = _cast(population, study=study, stream=keyed_stream(seed, purpose="cast"))
    directory.mkdir(parents=True, exist_ok=True)
    files, rows = [], 0
    for day in range(1, study.days + 1):
        today = study.first_day + timedelta(days=day - 1)
        stream = keyed_stream(seed, purpose=f"day {day}")
        events = day_events(population, day=day, places=cast.places, stream=stream)
        name = f"fimu-{today.isoformat()}.csv{'.gz' if is_compressed else ''}"
        with _replacing(directory / name, is_compressed=is_compressed) as file:
            file.write(",".join(COLUMNS).encode() + b"\n")
            _write_rows(events, file=file, cast=cast, today=today, stream=stream)
        files.append(name)
        rows += events.person.size
    return ExtractSummary(
        directory=str(directory),
        files=tuple(files),
        rows=rows,
        seed=seed,
        subscribers=population.n_subscribers,
        subscriber_days=population.subscriber_days,
    )


def _cast(population: Population, *, study: StudyDefinition, stream: KeyedStream) -> Cast:
    n_people = population.n_subscribers + population.n_subscribers // PASSERS_SHARE + 1
    names = {slug: np.array(population.categories[slug], np.object_) for slug in ATTRIBUTES}
    n_passers = n_people - population.n_subscribers
    values = {}
    for slug, codes in population.static.items():
        of_passers = stream.uniform_int(n_passers, 0, names[slug].size)
        values[slug] = names[slug][np.concatenate([codes, of_passers])]
    columns = [pa.array(values[slug], pa.string()) for slug in ATTRIBUTES]
    lines = pc.binary_join_element_wise(*columns, ",")
    is_foreign = values["visitor_category"] == "Foreign tourist"
    cells, places = _places(study, sleeping_areas=values["sleeping_area"], stream=stream)
    return Cast(
        ids=_ids(is_foreign, stream=stream),
        attributes=pc.binary_join_element_wise(lines, "\n", ""),
        cells=cells,
        clock=_clock(),
        places=places,
    )


def _clock() -> pa.StringArray:
    seconds = [f"{s // 3600:02d}:{s // 60 % 60:02d}:{s % 60:02d}" for s in range(DAY_S)]
    return pa.array(seconds + [second + UTC_OFFSET for second in seconds], pa.string())


def _ids(is_foreign: NDArray[np.bool_], *, stream: KeyedStream) -> pa.StringArray:
    """Distinct numbers: French ones, and for foreign SIM cards a text with their network."""
    drawn = np.unique(stream.uniform_int(2 * is_foreign.size, 0, 10**8))  # about 0.1% coincide
    numbers = stream.shuffled(drawn)[: is_foreign.size].tolist()
    networks = stream.uniform_int(is_foreign.size, 0, len(NETWORKS)).tolist()
    return pa.array(
        [
            f"roam-{NETWORKS[network]}-{number:08d}" if foreign else f"336{number:08d}"
            for foreign, network, number in zip(is_foreign.tolist(), networks, numbers, strict=True)
        ],
        pa.string(),
    )


def _places(
    study: StudyDefinition, *, sleeping_areas: NDArray[np.object_], stream: KeyedStream
) -> tuple[pa.StringArray, Places]:
    if study.area is None:
        raise ValueError("the demo study must have an area, got none")
    zones = np.array([cell.zone for cell in study.area.cells], np.object_)
    centre = np.flatnonzero(zones == CENTRE_ZONE)
    home = centre[stream.uniform_int(sleeping_areas.size, 0, centre.size)]
    for zone in study.area.zones:
        people, cells = np.flatnonzero(sleeping_areas == zone), np.flatnonzero(zones == zone)
        home[people] = cells[stream.uniform_int(people.size, 0, cells.size)]
    inside = [cell.cell_id for cell in study.area.cells]
    outside = [f"208-01-{9101 + number // 4}-{20011 + 37 * number}" for number in range(N_OUTSIDE)]
    places = Places(n_inside=len(inside), n_outside=N_OUTSIDE, centre=centre, home=home)
    return pa.array(inside + outside, pa.string()), places


def _write_rows(events: Events, *, file: Writable, cast: Cast, today: date, stream: KeyedStream) -> None:
    times = pc.binary_join_element_wise(f"{today.isoformat()}T", cast.clock, "")
    for start in range(0, events.person.size, CHUNK_ROWS):
        chunk = events.take(slice(start, start + CHUNK_ROWS))
        _write_lines(_lines(chunk, times=times, cast=cast, stream=stream), file=file)


def _lines(events: Events, *, times: pa.StringArray, cast: Cast, stream: KeyedStream) -> pa.StringArray:
    """Rows as text, each with its end of line."""
    lines = pc.binary_join_element_wise(
        cast.ids.take(pa.array(events.person)),
        times.take(pa.array(events.second + DAY_S * events.has_offset)),
        cast.cells.take(pa.array(events.cell)),
        cast.attributes.take(pa.array(events.person)),
        ",",
    )
    is_malformed = pa.array(events.is_malformed)
    intact = lines.filter(is_malformed).to_pylist()
    kinds = stream.uniform_int(len(intact), 0, len(ERRORS)).tolist()
    broken = [_broken(line, ERRORS[kind]) for line, kind in zip(intact, kinds, strict=True)]
    return pc.replace_with_mask(lines, is_malformed, pa.array(broken, pa.string()))


def _put(column: str, value: str) -> Callable[[list[str]], list[str]]:
    place = COLUMNS.index(column)
    return lambda values: [*values[:place], value, *values[place + 1 :]]


ERRORS: Final[Sequence[Callable[[list[str]], list[str]]]] = (
    lambda values: values[:-1],
    lambda values: [*values, "1"],
    _put("msisdn", ""),
    _put("timestamp", "2017-02-30T12:00:00"),
    _put("timestamp", "31/05/2017 12h"),
    _put("cell_id", ""),
    _put("age", "abc"),
    _put("region", "Atlantis"),
)


def _broken(line: str, error: Callable[[list[str]], list[str]]) -> str:
    return ",".join(error(line.rstrip("\n").split(","))) + "\n"


def _write_lines(lines: pa.StringArray, *, file: Writable) -> None:
    # The values of a string array lie one after the other: they are the file.
    lines = pa.concat_arrays([lines])
    end = np.frombuffer(lines.buffers()[1], np.int32)[len(lines)]
    file.write(memoryview(lines.buffers()[2])[:end])


@contextmanager
def _replacing(path: Path, *, is_compressed: bool) -> Iterator[Writable]:
    """Open a file that gets its name only when it is complete."""
    fresh = path.with_name(f".{path.name}.part")
    try:
        with fresh.open("wb") as raw:
            if is_compressed:
                # Neither name nor time in the header: the same rows give the same bytes.
                with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0, compresslevel=6) as packed:
                    yield packed
            else:
                yield raw
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
