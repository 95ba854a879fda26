"""The demo extract and its command: the visitor rule finds the population in it, under any noise."""

import csv
import gzip
import hashlib
import re
from collections import Counter
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from mobility.demo.extract import COLUMNS, write_extract
from mobility.demo.population import ABSENT, STUDY_FILE, build_population, load_study
from tests.mobility.commands import printed
from tests.mobility.pipeline import raising
from tests.reference import read_extract, read_study

STUDY = read_study(STUDY_FILE)
SEED = 7
N_SUBSCRIBERS = 800
FILE_DAYS = ("05-31", "06-01", "06-02", "06-03", "06-04", "06-05", "06-06")
# SHA-256 over the seven files of seed 1 with 120 subscribers. A change here changes the demo of every user.
GOLDEN = "3bc412621041a1d7ca0c8dc7c8e892ecbceb7c25e279daeb182895cc8e445609"


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory):
    return write_extract(tmp_path_factory.mktemp("extract"), seed=SEED, n_subscribers=N_SUBSCRIBERS)


@pytest.fixture(scope="module")
def paths(summary) -> list[Path]:
    return [Path(summary.directory) / name for name in summary.files]


@pytest.fixture(scope="module")
def extract(paths: list[Path]):
    return read_extract(paths, STUDY)


@pytest.fixture(scope="module")
def population():
    return build_population(seed=SEED, n_subscribers=N_SUBSCRIBERS)


def rows_of(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def people_of(extract, slugs) -> Counter[object]:
    """Subscribers of an extract without their names: bands of the days, then static values."""
    return Counter(
        (
            tuple((day, extract["duration"][subscriber, day]) for day in sorted(days)),
            *(extract["static"][subscriber][slug] for slug in slugs),
        )
        for subscriber, days in extract["presence"].items()
    )


def test_the_rule_finds_each_subscriber_with_days_durations_and_values(extract, population, summary) -> None:
    bands = population.categories["visit_duration"]
    values = [
        [population.categories[slug][code] for code in codes.tolist()]
        for slug, codes in population.static.items()
    ]
    durations = [
        tuple((day, bands[code]) for day, code in enumerate(row, 1) if code != ABSENT)
        for row in population.durations.tolist()
    ]
    assert people_of(extract, population.static) == Counter(zip(durations, *values, strict=True))
    assert (summary.rows, summary.seed, summary.subscribers) == (extract["rows_read"], SEED, N_SUBSCRIBERS)
    assert summary.subscriber_days == population.subscriber_days == len(extract["duration"])
    assert set(extract["ignored"]) == {"outside_area", "outside_hours", "duplicate"}  # noise of all kinds
    wrong = {"wrong_columns", "empty_subscriber", "bad_timestamp", "empty_cell", "unknown_value"}
    assert set(extract["rejected"]) == wrong


def test_files_look_like_a_feed(summary, paths: list[Path], extract) -> None:
    assert summary.files == tuple(f"fimu-2017-{day}.csv" for day in FILE_DAYS)
    for path, day in zip(paths, FILE_DAYS, strict=True):
        header, *rows = rows_of(path)
        assert header == list(COLUMNS)
        stamps = [fields[1] for fields in rows if fields[1].startswith(f"2017-{day}T")]
        assert stamps == sorted(stamps, key=lambda stamp: stamp[:19])
        assert len(stamps) > 0.99 * len(rows)
        assert {stamp[19:] for stamp in stamps} == {"", "+02:00"}
    study = load_study()
    columns = [indicator.column for indicator in study.indicators if indicator.column]
    assert [study.extract.subscriber, study.extract.timestamp, study.extract.cell, *columns] == list(COLUMNS)
    assert len(extract["presence"]) == N_SUBSCRIBERS
    for subscriber, values in extract["static"].items():
        is_foreign = values["visitor_category"] == "Foreign tourist"  # their numbers carry text
        assert re.fullmatch(r"roam-.*" if is_foreign else r"336\d{8}", subscriber)


def digest(folder: Path) -> str:
    total = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        total.update(path.name.encode() + path.read_bytes())
    return total.hexdigest()


def test_the_seed_alone_decides_the_bytes_and_a_failure_leaves_the_old_file(tmp_path, monkeypatch) -> None:
    for name, seed in (("one", 1), ("other", 2)):
        write_extract(tmp_path / name, seed=seed, n_subscribers=120)
    assert digest(tmp_path / "one") == GOLDEN
    assert digest(tmp_path / "other") != GOLDEN
    packed = write_extract(tmp_path / "packed", seed=1, n_subscribers=120, is_compressed=True)
    for name in packed.files:
        unpacked = gzip.decompress((tmp_path / "packed" / name).read_bytes())
        assert unpacked == (tmp_path / "one" / name.removesuffix(".gz")).read_bytes()
    monkeypatch.setattr("mobility.demo.extract._write_rows", raising(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_extract(tmp_path / "one", seed=2, n_subscribers=30)
    assert digest(tmp_path / "one") == GOLDEN


def test_command_prints_one_json_value_about_the_files_or_refuses(tmp_path, settings) -> None:
    with pytest.raises(CommandError, match=r"n_subscribers must be in \[1, 88935\], got 90000"):
        call_command("make_extract", "--out", str(tmp_path), "--subscribers", "90000")
    assert list(tmp_path.iterdir()) == []
    settings.MOBILITY_DATA_DIR = tmp_path / "var"
    for options, folder in (("--seed 5", "new/folder"), ("--gzip", "var/demo/extract")):
        out = [] if "var" in folder else ["--out", str(tmp_path / folder)]
        told = printed("make_extract", "--subscribers", "20", *options.split(), *out)
        assert set(told) == {"directory", "files", "rows", "seed", "subscribers", "subscriber_days"}
        assert told["directory"] == str(tmp_path / folder)
        assert sorted(path.name for path in (tmp_path / folder).iterdir()) == told["files"]
        assert all(name.endswith(".csv.gz" if "gzip" in options else ".csv") for name in told["files"])
