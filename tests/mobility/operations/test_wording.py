"""Findings in words: units, counts and lengths of time read well in both languages."""

import pytest
from django.utils.translation import override

from mobility.operations.findings import Finding, Level
from mobility.operations.wording import ago, duration, every, fact_words, size, words

SPACE = "\u202f"


def test_a_length_of_time_in_its_largest_whole_unit() -> None:
    assert [duration(s) for s in (0, 1, 60, 119, 3600, 7199, 7200, 86_400, 100_000, 172_800)] == [
        "0 seconds", "1 second", "1 minute", "119 seconds", "1 hour", "119 minutes", "2 hours", "1 day",
        "27 hours", "2 days",
    ]  # fmt: skip
    with override("fr"):
        assert [duration(s) for s in (0, 3600, 7200)] == ["0 seconde", "1 heure", "2 heures"]


@pytest.mark.parametrize(
    ("seconds", "english", "french"),
    [
        (1, "every second", "toutes les secondes"),
        (15, "every 15 seconds", "toutes les 15 secondes"),
        (60, "every minute", "toutes les minutes"),
        (300, "every 5 minutes", "toutes les 5 minutes"),
        (3600, "every hour", "toutes les heures"),
        (86_400, "every day", "tous les jours"),
        (172_800, "every 2 days", "tous les 2 jours"),
    ],
)
def test_how_often(seconds: int, english: str, french: str) -> None:
    assert every(seconds) == english
    with override("fr"):
        assert every(seconds) == french


def test_how_long_ago() -> None:
    assert [ago(s) for s in (0.4, 1, 3600)] == ["just now", "1 second ago", "1 hour ago"]


def test_a_size_of_one_byte_and_of_many() -> None:
    assert [size(n) for n in (0, 1, 999, 1000, 1_500_000)] == [
        "0 bytes", "1 byte", "999 bytes", "1.0 kB", "1.5 MB",
    ]  # fmt: skip


def test_facts_have_the_unit_that_their_name_ends_in() -> None:
    assert fact_words("every_s", 3600) == "every hour"
    assert fact_words("oldest_s", 3600) == "1 hour"
    assert fact_words("free_percent", 12.5) == f"12.5{SPACE}%"
    assert fact_words("keys", 1200) == f"1{SPACE}200"
    assert [fact_words("ms", n) for n in (0, 40)] == ["1 ms", "40 ms"]


@pytest.mark.parametrize(
    ("language", "told"),
    [
        ("en", "to run every hour, and last ended well 5 hours ago."),
        ("fr", "toutes les heures, et son dernier succès remonte à 5 heures."),
    ],
)
def test_a_late_job_says_how_often_it_is_to_run(language: str, told: str) -> None:
    facts = {"why": "late", "every_s": 3600, "age_s": 18_000}
    with override(language):
        assert told in words(Finding(code="job_failed", level=Level.WARNING, facts=facts)).what
