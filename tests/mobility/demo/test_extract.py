"""The demo extract: the visitor rule finds the population in it, whatever the noise."""

import csv
import gzip
import hashlib
import shutil
from collections import Counter
from dataclasses import replace
from datetime import time, timedelta
from pathlib import Path

import numpy as np
import pytest

from mobility.demo.events import DAY_S, OPENING_S, Places, day_events
from mobility.demo.extract import COLUMNS, ExtractSummary, write_extract
from mobility.demo.population import (
    ABSENT,
    STUDY_FILE,
    Population,
    build_population,
    keyed_stream,
    load_study,
)
from tests.reference import Extract, Study, read_extract, read_study

SEED = 7
N_SUBSCRIBERS = 1500
FILE_DAYS = ("05-31", "06-01", "06-02", "06-03", "06-04", "06-05", "06-06")
# SHA-256 over the seven files of seed 1 with 120 subscribers. A change here changes the demo of every user.
GOLDEN = "3bc412621041a1d7ca0c8dc7c8e892ecbceb7c25e279daeb182895cc8e445609"


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> ExtractSummary:
    return write_extract(tmp_path_factory.mktemp("extract"), seed=SEED, n_subscribers=N_SUBSCRIBERS)


@pytest.fixture(scope="module")
def paths(summary: ExtractSummary) -> list[Path]:
    return [Path(summary.directory) / name for name in summary.files]


@pytest.fixture(scope="module")
def study() -> Study:
    return read_study(STUDY_FILE)


@pytest.fixture(scope="module")
def extract(paths: list[Path], study: Study) -> Extract:
    return read_extract(paths, study)


@pytest.fixture(scope="module")
def population() -> Population:
    return build_population(seed=SEED, n_subscribers=N_SUBSCRIBERS)


def rows_of(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def people_of_population(population: Population) -> Counter[object]:
    """Subscribers without their names: bands of the days, then static values."""
    bands = population.categories["visit_duration"]
    values = [
        [population.categories[slug][code] for code in codes.tolist()]
        for slug, codes in population.static.items()
    ]
    durations = [
        tuple((day, bands[code]) for day, code in enumerate(row, 1) if code != ABSENT)
        for row in population.durations.tolist()
    ]
    return Counter(zip(durations, *values, strict=True))


def people_of_extract(extract: Extract, population: Population) -> Counter[object]:
    return Counter(
        (
            tuple((day, extract["duration"][subscriber, day]) for day in sorted(days)),
            *(extract["static"][subscriber][slug] for slug in population.static),
        )
        for subscriber, days in extract["presence"].items()
    )


def test_the_rule_finds_each_subscriber_with_days_durations_and_values(
    extract: Extract, population: Population
) -> None:
    assert people_of_extract(extract, population) == people_of_population(population)


def test_summary_counts_what_was_written(
    summary: ExtractSummary, extract: Extract, population: Population
) -> None:
    assert summary.rows == extract["rows_read"]
    assert (summary.seed, summary.subscribers) == (SEED, N_SUBSCRIBERS)
    assert summary.subscriber_days == population.subscriber_days == len(extract["duration"])
    assert extract["rows_read"] == (
        extract["accepted"] + sum(extract["ignored"].values()) + sum(extract["rejected"].values())
    )


def test_all_kinds_of_noise_are_there_in_their_shares(extract: Extract) -> None:
    share = {
        reason: count / extract["rows_read"]
        for reason, count in (extract["ignored"] | extract["rejected"]).items()
    }
    assert set(share) == {
        *("outside_area", "outside_hours", "duplicate"),
        *("wrong_columns", "empty_subscriber", "bad_timestamp", "empty_cell", "unknown_value"),
    }
    assert 0.004 < share["duplicate"] < 0.006
    assert 0.0005 < sum(extract["rejected"].values()) / extract["rows_read"] < 0.0015
    assert 0.005 < share["outside_area"] < 0.05
    assert 0.002 < share["outside_hours"] < 0.05


@pytest.mark.parametrize("rule", ["hours", "area", "min_minutes"])
def test_without_a_rule_the_noise_would_count(
    rule: str, paths: list[Path], study: Study, extract: Extract
) -> None:
    cells = {fields[2] for path in paths for fields in rows_of(path)}
    broken = {
        "hours": replace(study, open_from=time(0)),
        "area": replace(study, cells=frozenset(cells)),
        "min_minutes": replace(study, min_minutes=59),
    }
    found = read_extract(paths, broken[rule])
    assert found["presence"] != extract["presence"]
    if rule != "min_minutes":
        assert any(found["duration"][key] != band for key, band in extract["duration"].items())


def test_noise_has_new_subscribers_and_absent_ones(paths: list[Path], extract: Extract) -> None:
    seen = {fields[0] for path in paths for fields in rows_of(path)[1:]} - {""}
    assert len(seen - set(extract["presence"])) > 50
    absent_but_seen = {
        (fields[0], day)
        for day, path in enumerate(paths, 1)
        for fields in rows_of(path)[1:]
        if fields[0] in extract["presence"] and day not in extract["presence"][fields[0]]
    }
    assert len(absent_but_seen) > 100


def test_visits_reach_both_ends_of_the_hours_and_of_the_hour(paths: list[Path], study: Study) -> None:
    clock = {fields[1][11:19] for path in paths for fields in rows_of(path)[1:]}
    assert {"06:00:00", "23:59:59", "05:59:59", "00:10:00"} <= clock
    lengths = visit_lengths(paths, study)
    assert {timedelta(minutes=60), timedelta(minutes=60, seconds=-1)} <= lengths


def visit_lengths(paths: list[Path], study: Study) -> set[timedelta]:
    """From the first to the last event of each person and day, inside the area and the hours."""
    first: dict[tuple[str, str], str] = {}
    last: dict[tuple[str, str], str] = {}
    for path in paths:
        for subscriber, stamp, cell, *_ in rows_of(path)[1:]:
            if cell in study.cells and stamp[10] == "T" and stamp[11:] >= "06:00:00":
                key, clock = (subscriber, stamp[:10]), stamp[11:19]
                first[key] = min(first.get(key, clock), clock)
                last[key] = max(last.get(key, clock), clock)
    return {since_midnight(last[key]) - since_midnight(first[key]) for key in first}


def since_midnight(clock: str) -> timedelta:
    hours, minutes, seconds = clock.split(":")
    return timedelta(hours=int(hours), minutes=int(minutes), seconds=int(seconds))


def test_files_look_like_a_feed(summary: ExtractSummary, paths: list[Path]) -> None:
    assert summary.files == tuple(f"fimu-2017-{day}.csv" for day in FILE_DAYS)
    for path, day in zip(paths, FILE_DAYS, strict=True):
        header, *rows = rows_of(path)
        assert header == list(COLUMNS)
        stamps = [fields[1] for fields in rows if fields[1].startswith(f"2017-{day}T")]
        assert stamps == sorted(stamps, key=lambda stamp: stamp[:19])
        assert len(stamps) > 0.99 * len(rows)
        assert {stamp[19:] for stamp in stamps} == {"", "+02:00"}


def test_numbers_are_distinct_and_foreign_sims_carry_text(paths: list[Path], extract: Extract) -> None:
    for subscriber, values in extract["static"].items():
        is_foreign = values["visitor_category"] == "Foreign tourist"
        assert subscriber.startswith("roam-") is is_foreign
        assert is_foreign or (
            len(subscriber) == 11 and subscriber.startswith("336") and subscriber.isdecimal()
        )
    assert len(extract["presence"]) == N_SUBSCRIBERS


def test_a_present_subscriber_has_8_to_30_events(population: Population) -> None:
    places = Places(n_inside=9, n_outside=3, centre=np.arange(4), home=np.arange(N_SUBSCRIBERS + 50) % 9)
    events = day_events(population, day=5, places=places, stream=keyed_stream(SEED, purpose="test"))
    assert np.all(np.diff(events.second) >= 0)
    assert 0 <= events.second.min() <= events.second.max() < DAY_S
    is_copy = np.zeros(events.person.size, np.bool_)
    rows = np.stack([events.person, events.second, events.cell])
    is_copy[1:] = (rows[:, 1:] == rows[:, :-1]).all(axis=0)  # or two events in one second, which is rare
    counts = np.bincount(
        events.person[(events.cell < places.n_inside) & (events.second >= OPENING_S) & ~events.is_malformed],
        minlength=N_SUBSCRIBERS,
    )[:N_SUBSCRIBERS]
    copies = np.bincount(events.person[is_copy], minlength=N_SUBSCRIBERS)[:N_SUBSCRIBERS]
    present = population.is_present(5)
    assert counts[present].min() >= 8
    assert (counts - copies)[present].max() <= 30
    assert counts[~present].max() <= 8


def digest(folder: Path) -> str:
    total = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        total.update(path.name.encode() + path.read_bytes())
    return total.hexdigest()


def test_the_seed_alone_decides_the_bytes(tmp_path: Path) -> None:
    for name, seed in (("one", 1), ("again", 1), ("other", 2)):
        write_extract(tmp_path / name, seed=seed, n_subscribers=120)
    assert digest(tmp_path / "one") == digest(tmp_path / "again") == GOLDEN
    assert digest(tmp_path / "other") != GOLDEN


def test_gzip_holds_the_same_rows_and_the_same_bytes_each_time(tmp_path: Path) -> None:
    plain = write_extract(tmp_path / "plain", seed=1, n_subscribers=30)
    packed = [
        write_extract(tmp_path / name, seed=1, n_subscribers=30, is_compressed=True) for name in ("a", "b")
    ]
    assert packed[0].files == tuple(f"{name}.gz" for name in plain.files)
    assert digest(tmp_path / "a") == digest(tmp_path / "b")
    for name in plain.files:
        unpacked = gzip.decompress((tmp_path / "a" / f"{name}.gz").read_bytes())
        assert unpacked == (tmp_path / "plain" / name).read_bytes()


def test_a_failure_leaves_the_old_file_and_no_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_extract(tmp_path, seed=1, n_subscribers=30)
    before = digest(tmp_path)

    def fail(*_: object, **__: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("mobility.demo.extract._write_rows", fail)
    with pytest.raises(OSError, match="disk full"):
        write_extract(tmp_path, seed=2, n_subscribers=30)
    assert digest(tmp_path) == before


def test_one_subscriber_is_enough(tmp_path: Path, study: Study) -> None:
    summary = write_extract(tmp_path, seed=3, n_subscribers=1)
    extract = read_extract([tmp_path / name for name in summary.files], study)
    assert len(extract["duration"]) == summary.subscriber_days >= 1
    shutil.rmtree(tmp_path)


def test_study_columns_are_those_of_the_files() -> None:
    study = load_study()
    columns = [indicator.column for indicator in study.indicators if indicator.column]
    named = [study.extract.subscriber, study.extract.timestamp, study.extract.cell, *columns]
    assert named == list(COLUMNS)
