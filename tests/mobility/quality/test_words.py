"""Sentences of checks."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from mobility.quality import words
from mobility.quality.coverage import DayStatus
from mobility.quality.facts import Facts, Share
from mobility.quality.look_back import look_back
from tests.mobility.quality.deliveries_by_hand import calendar, day_hours, delivery, history


def plain(text: str) -> str:
    return text.replace("\u202f", " ")


def said(*, now: dict[int, list[int]], before: dict[int, list[int]], **checks: object) -> list[str]:
    study = calendar()
    earlier = delivery(1, before, day_subscribers={"1": 90}, empty={"age": 0})
    found = look_back(delivery(2, now, **checks), history=history(earlier), calendar=study)  # type: ignore[arg-type]
    return [plain(text) for text in words.warnings(found, study)]


def test_warnings_name_the_day_the_figure_and_what_is_usual() -> None:
    low = said(now={2: day_hours(10)}, before={1: day_hours(100)}, day_subscribers={"2": 300})
    assert low == [
        "Thu 2 May 2024, Rows accepted: 40, usually 400 (1 earlier day). Is a part of the file missing?",
        "Thu 2 May 2024, Subscribers: 300, usually 90 (1 earlier day). Was something sent twice?",
    ]


def test_silent_hours_are_named_as_clock_times() -> None:
    full = day_hours(100)
    assert said(now={3: day_hours(100, silent=(9, 10))}, before={1: full, 2: full}) == [
        "Fri 3 May 2024: no events between 09:00 and 11:00, where there are usually 200 rows: an outage?"
    ]


def test_shares_are_of_the_file() -> None:
    warned = said(now={2: day_hours(100)}, before={1: day_hours(100)}, rejected=100, empty={"age": 500})
    assert warned == [
        "Rejected rows: 20.0 % of the file, usually 0.0 % (1 earlier file).",
        "Empty values of age: 100.0 % of the file, usually 0.0 % (1 earlier file).",
    ]


def test_nothing_unusual_says_nothing() -> None:
    assert said(now={2: day_hours(100)}, before={1: day_hours(100)}) == []


@pytest.mark.parametrize(
    ("n", "texts"),
    [
        (1, ["median of 1 earlier day of the same weekday", "1 earlier day", "1 earlier file"]),
        (3, ["median of 3 earlier days of the same weekday", "median of 3 earlier days",
             "median of 3 earlier files"]),
    ],
)  # fmt: skip
def test_a_median_says_what_it_is_taken_of(n: int, texts: list[str]) -> None:
    assert [words.basis_words(basis, n) for basis in ("weekday", "days", "files")] == texts


@pytest.mark.parametrize(
    ("part", "of", "text"),
    [
        (10, 40312, "10 of 40 312 (under 0.1 %)"),
        (0, 40312, "0 of 40 312 (0.0 %)"),
        (1, 1000, "1 of 1 000 (0.1 %)"),
        (3, 4, "3 of 4 (75.0 %)"),
        (0, 0, "0 of 0"),
    ],
)
def test_a_part_never_stands_without_the_whole(part: int, of: int, text: str) -> None:
    assert plain(words.part_of_all(Share(part=part, of=of))) == text


def test_a_moment_says_its_offset() -> None:
    when = datetime.fromtimestamp(1714543200, ZoneInfo("Europe/Paris"))
    assert words.moment(when) == "Wed 1 May 2024, 08:00:00 (UTC+02:00)"


def test_every_state_of_a_day_has_words() -> None:
    assert len({words.status_words(status) for status in DayStatus}) == len(DayStatus)
    assert len({words.status_help(status) for status in DayStatus}) == len(DayStatus)


def test_what_is_not_listed_is_counted() -> None:
    facts = Facts.of({"unmatched_more": 1, "unmatched_hidden": 1234})
    more, hidden = (plain(text) for text in words.unmatched_notes(facts))
    assert more == "1 row with further cells is not listed."
    assert hidden.startswith("1 234 rows have texts there that do not look like cells")
    assert list(words.unmatched_notes(Facts.of({}))) == []
