"""How extracts may be written, as study files say it."""

import json

import pytest

from reports.studyfile import StudyDefinition
from reports.studyfile.formats import DELIMITERS, TIMESTAMP_RULE, pattern_parts, timestamp_problem
from tests.reports.test_studyfile import STUDY, edited, parse


def with_extract(line: str) -> StudyDefinition:
    return parse(edited('timestamp = "time"', f'timestamp = "time"\n{line}'))


@pytest.mark.parametrize("name", DELIMITERS)
def test_delimiter_is_named(name: str) -> None:
    study = with_extract(f'delimiter = "{name}"')
    assert study.extract.delimiter == name
    assert StudyDefinition.from_json(json.loads(json.dumps(study.to_json()))) == study


def test_studies_of_earlier_versions_have_the_defaults() -> None:
    stored = parse(STUDY).to_json()
    del stored["extract"]["delimiter"], stored["extract"]["timestamp_format"]
    assert StudyDefinition.from_json(stored) == parse(STUDY)


@pytest.mark.parametrize(
    "text",
    [
        "iso", "epoch_s", "epoch_ms", "%d/%m/%Y %H:%M:%S", "%d.%m.%Y %H:%M", "%Y%m%d%H%M%S", "%Y%m%d%H%M",
        "%d-%m-%Y_%H.%M.%S.%f", "%Y-%m-%dT%H:%M:%S,%f%z", "%H:%M %d/%m/%Y", "%m/%d/%Y %H:%M %z",
    ],
)  # fmt: skip
def test_timestamp_formats(text: str) -> None:
    assert timestamp_problem(text) is None
    assert with_extract(f'timestamp_format = "{text}"').extract.timestamp_format == text


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", TIMESTAMP_RULE),
        ("ISO", TIMESTAMP_RULE),
        ("epoch", TIMESTAMP_RULE),
        ("%d/%m/%Y", TIMESTAMP_RULE),
        ("%d/%m/%Y %H", TIMESTAMP_RULE),
        ("%d/%m/%y %H:%M", TIMESTAMP_RULE),
        ("%d/%d/%m/%Y %H:%M", TIMESTAMP_RULE),
        ("%d/%m/%Y %H:%M:%S:%S", TIMESTAMP_RULE),
        ("%d/%m/%Y %I:%M %p", TIMESTAMP_RULE),
        ("%d/%m/%Y %H:%M%", TIMESTAMP_RULE),
        ("%d/%m/%Y 1%H:%M", TIMESTAMP_RULE),
        ("%d/%m/%Y é%H:%M", TIMESTAMP_RULE),
        ("%%%d/%m/%Y %H:%M", TIMESTAMP_RULE),
        ("%z %d/%m/%Y %H:%M", "must have %z at its end"),
        ("%d/%m/%Y %H:%M.%f", "must have %f after %S and a point, as in %S.%f"),
        ("%d/%m/%Y %H:%M:%S%f", "must have %f after %S and a point, as in %S.%f"),
        ("%f%d/%m/%Y %H:%M:%S", "must have %f after %S and a point, as in %S.%f"),
    ],
)
def test_other_timestamp_formats_are_refused(text: str, rule: str) -> None:
    assert timestamp_problem(text) == rule


def test_parts_are_the_pattern() -> None:
    assert pattern_parts("%d/%m %H") == ["%d", "/", "%m", " ", "%H"]
    assert pattern_parts("a%") == ["a", "%"]
