"""A synthetic population of the demo study becomes an extract in which the visitor rule finds it."""

from collections import Counter
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.core.management import CommandError, call_command

from mobility.demo.extract import write_extract
from mobility.demo.population import STUDY_FILE, load_study
from reports.estimates.queries import visitor_unions
from reports.scenario.population import Population, synthesise
from reports.scenario.population_files import population_files
from reports.transfer.studies import create_study_rows
from tests.mobility.demo.test_extract import people_of
from tests.reference import read_extract, read_study
from tests.reports import report_factory as factory

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def population(kept) -> Population:
    study = create_study_rows(load_study(), by="adam")
    factory.publish(study, factory.crowd(study, n=300))
    return synthesise(study)


@pytest.fixture(scope="module")
def files(population):
    return population_files(population)


@pytest.fixture
def folder(files, tmp_path):
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


def test_the_rule_finds_each_synthetic_person_with_days_and_values(population, folder) -> None:
    call_command("make_extract", "--population", str(folder), "--out", str(folder / "out"))
    extract = read_extract(sorted((folder / "out").glob("*.csv")), read_study(STUDY_FILE))
    values = {
        each.indicator.slug: np.append(each.indicator.categories, "")[each.codes].tolist()
        for each in population.attributes
    }
    static = [each.indicator.slug for each in population.of_kind("static")]
    expected = Counter(
        (
            tuple((day, band) for day, band in enumerate(values["visit_duration"][row], start=1) if band),
            *(values[slug][row] for slug in static),
        )
        for row in range(population.presence.size)
    )
    assert people_of(extract, static) == expected
    unions = visitor_unions(population.study)
    by_day = Counter(day for days in extract["presence"].values() for day in days)
    assert [by_day[day] for day in range(1, 8)] == [unions[day, day] for day in range(1, 8)]


def test_some_of_the_people_can_be_drawn_and_no_more_than_there_are(folder, tmp_path) -> None:
    summary = write_extract(tmp_path / "out", seed=3, n_subscribers=50, people=folder)
    assert summary.subscribers == 50
    with pytest.raises(ValueError, match=r"n_subscribers must be in \[1, 300\], got 301"):
        write_extract(tmp_path / "out", seed=3, n_subscribers=301, people=folder)


def test_files_of_something_else_are_refused(folder) -> None:
    def refused(message: str) -> None:
        with pytest.raises(CommandError, match=message):
            call_command("make_extract", "--population", str(folder), "--out", str(folder / "out"))

    presence, persons = folder / "presence.parquet", folder / "persons.parquet"
    table = pq.read_table(presence)
    later = pa.array([date(2017, 6, 7)] * table.num_rows, pa.date32())
    pq.write_table(table.rename_columns(["person_id", "date", "stay", "main_zone"]), presence)
    refused("presence.parquet must have the column visit_duration, got 4 others")
    pq.write_table(table.set_column(1, "date", later), presence)
    refused("people must be there on the 7 days from 2017-05-31, got others")
    pq.write_table(table.slice(0, 5), presence)
    pq.write_table(pq.read_table(persons).slice(1), persons)
    refused(r"person_id must have values of the study only, got \d others")
    presence.write_bytes(b"person_id,date")
    refused("presence.parquet must be a Parquet file of `synthesise`")
    presence.unlink()
    refused("presence.parquet")
