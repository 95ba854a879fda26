"""How extracts may be written, as study files say it."""
# ruff: noqa: E501  (a table reads best with one rule a line)

import json

import pytest

from reports.studyfile import StudyDefinition
from reports.studyfile.formats import DELIMITERS, TIMESTAMP_RULE, pattern_parts, timestamp_problem
from tests.reports.test_studyfile import STUDY, edited, parse, problems


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


class TestSubscribers:
    """Attributes in a file of their own."""

    def test_their_extract_is_described(self) -> None:
        text = edited('timestamp = "time"', 'timestamp = "time"\nattributes = "subscribers"')
        text += '[subscribers]\nsubscriber = "who"\ndelimiter = "tab"\nmax_bad_share = 0.1\n'
        study = parse(text)
        assert study.extract.attributes == "subscribers"
        assert study.subscribers is not None
        assert (study.subscribers.subscriber, study.subscribers.delimiter) == ("who", "tab")
        assert str(study.subscribers.max_bad_share) == "0.1"
        assert StudyDefinition.from_json(json.loads(json.dumps(study.to_json()))) == study

    def test_by_default_attributes_are_columns_of_the_extract(self) -> None:
        study = parse(STUDY)
        assert (study.extract.attributes, study.subscribers) == ("inline", None)

    def test_studies_of_earlier_versions_have_them_inline(self) -> None:
        stored = parse(STUDY).to_json()
        del stored["extract"]["attributes"], stored["subscribers"]
        assert StudyDefinition.from_json(stored) == parse(STUDY)

    @pytest.mark.parametrize(
        ("line", "section", "expected"),
        [
            ('attributes = "elsewhere"', "", 'extract.attributes: must be one of inline, subscribers, got "elsewhere"'),
            ("", "[subscribers]\n", "subscribers.subscriber: is missing"),
            ("", '[subscribers]\nsubscriber = "who"\ncell = "c"\n', "subscribers.cell: unknown key"),
            ("", '[subscribers]\nsubscriber = "who"\ndelimiter = ","\n', "subscribers.delimiter: must be one of"),
            ("", '[subscribers]\nsubscriber = "age"\n', "indicator[age_band].column: must be a column of its own, but subscribers.subscriber has it"),
        ],
    )  # fmt: skip
    def test_what_is_wrong_is_named(self, line: str, section: str, expected: str) -> None:
        text = edited('timestamp = "time"', f'timestamp = "time"\n{line}') + section
        found = problems(text)
        assert len(found) == 1
        assert found[0].startswith(f"study.toml: {expected}")

    def test_columns_of_different_files_may_have_one_name(self) -> None:
        text = edited('column = "age"', 'column = "time"')
        assert "extract.timestamp has it" in problems(text)[0]
        assert parse(
            edited('timestamp = "time"', 'timestamp = "time"\nattributes = "subscribers"', text=text)
        )
