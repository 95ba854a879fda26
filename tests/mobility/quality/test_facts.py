"""Counts of rows as the JSON of a batch."""

import json
from collections import Counter

import numpy as np
import pytest

from mobility.ingest.counts import RowCounts
from mobility.profiles.definition import Profile, default_profile
from mobility.quality.facts import Facts, Share, checks_of, columns_of_reasons, merged_checks
from reports.studyfile import StudyDefinition, parse_study

STUDY = b"""
[study]
slug = "fair"
name = "Fair"
timezone = "Europe/Paris"
first_day = 2024-05-01
days = 3
[study.visitor]
min_minutes = 60
from = "06:00"
to = "23:59"
[extract]
subscriber = "msisdn"
timestamp = "time"
cell = "cell"
[plan]
mechanism = "smp-grr"
unit = "profile"
epsilon = 1.0
[[indicator]]
slug = "age"
kind = "static"
column = "age"
categories = ["young", "old"]
[[indicator]]
slug = "gender"
kind = "static"
column = "gender"
categories = ["F", "M"]
[area]
cells = "cells.csv"
"""
CELLS = b"cell_id,lon,lat\nFR-101,6.0,47.0\nFR-2000,6.0,47.0\n"


@pytest.fixture(scope="module")
def definition() -> StudyDefinition:
    return parse_study(STUDY, filename="study.toml", read=lambda _: CELLS)


@pytest.fixture
def counts() -> RowCounts:
    hours = np.zeros((3, 24), np.int64)
    hours[1, 8:10] = (5, 7)
    return RowCounts(
        rows_read=20,
        accepted=12,
        empty=Counter(age=3),
        unmatched_cells=Counter({"FR-102": 1, "FR-999": 5, "BE-1000": 1}),
        unmatched_more=6,
        unmatched_hidden=4,
        located=30,
        locatable_of=47,
        first_event=1714543200,
        last_event=1714550400,
        hours=hours,
    )


def stored(counts: RowCounts, definition: StudyDefinition) -> Facts:
    """As the database gives it back."""
    checks = checks_of(counts, profile=default_profile(definition))
    return Facts.of(json.loads(json.dumps(checks)))


def test_facts_come_back_as_they_were_counted(counts: RowCounts, definition: StudyDefinition) -> None:
    facts = stored(counts, definition)
    assert dict(facts.empty) == {"msisdn": 0, "time": 0, "cell": 0, "age": 3, "gender": 0}
    assert (facts.located, facts.locatable_of) == (30, 47)
    assert (facts.first_event, facts.last_event) == (1714543200, 1714550400)
    assert dict(facts.hours) == {2: (0,) * 8 + (5, 7) + (0,) * 14}
    assert facts.duplicates is facts.duplicates_of is facts.subscribers is None


def test_unmatched_cells_stand_in_order_and_all_rows_are_accounted_for(
    counts: RowCounts, definition: StudyDefinition
) -> None:
    facts = stored(counts, definition)
    assert facts.unmatched_cells == (("FR-999", 5), ("BE-1000", 1), ("FR-102", 1))
    assert (facts.unmatched_more, facts.unmatched_hidden) == (6, 4)
    assert facts.unmatched_rows == 47 - 30


@pytest.mark.parametrize(("located", "n"), [(23, 0), (24, 3)])
def test_where_most_rows_have_no_cell_none_is_kept(
    counts: RowCounts, definition: StudyDefinition, located: int, n: int
) -> None:
    counts.located, counts.locatable_of = located, 48
    facts = stored(counts, definition)
    assert len(facts.unmatched_cells) == n
    assert sum(rows for _, rows in facts.unmatched_cells) + facts.unmatched_hidden == 11


def test_each_reason_names_the_columns_that_it_can_concern(definition: StudyDefinition) -> None:
    columns = columns_of_reasons(default_profile(definition))
    assert columns["bad_timestamp"] == columns["nonexistent_time"] == ["time"]
    assert columns["empty_subscriber"] == ["msisdn"]
    assert columns["empty_cell"] == columns["outside_area"] == ["cell"]
    assert columns["unknown_value"] == ["age", "gender"]
    assert "wrong_columns" not in columns


def test_a_file_of_subscribers_has_neither_times_nor_cells() -> None:
    profile = Profile(
        name="people", kind="subscribers", subscriber="id", columns={"age": "years", "band": "years"}
    )
    assert columns_of_reasons(profile) == {
        "empty_subscriber": ["id"],
        "opted_out": ["id"],
        "unknown_value": ["years"],
    }


def test_merged_facts_are_added() -> None:
    checks = merged_checks(
        {"located": 5}, rows=40, duplicates=10, subscribers=7, day_subscribers={2: 5, 3: 0, 1: 4}
    )
    facts = Facts.of(json.loads(json.dumps(checks)))
    assert (facts.located, facts.duplicates, facts.duplicates_of, facts.subscribers) == (5, 10, 40, 7)
    assert dict(facts.day_subscribers) == {1: 4, 2: 5}


def test_a_batch_that_was_not_read_has_no_facts() -> None:
    facts = Facts.of({})
    assert not facts.empty
    assert not facts.hours
    assert facts.unmatched_rows == 0


def test_a_share_of_nothing_has_no_value() -> None:
    assert Share(part=0, of=0).value is None
    assert Share(part=1, of=4).value == 0.25
