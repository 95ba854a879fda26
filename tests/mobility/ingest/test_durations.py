"""Bands of the visit duration."""

import numpy as np
import pytest

from mobility.ingest.durations import duration_codes
from mobility.ingest.events import NO_VALUE
from reports.studyfile import VISIT_DURATION_BANDS

HOUR_S = 3600


def code_of(stay_s: int) -> int:
    return int(duration_codes(np.array([stay_s], np.uint32))[0])


@pytest.mark.parametrize(
    ("stay_s", "band"),
    [
        (HOUR_S, "Duration 2h"),
        (2 * HOUR_S - 1, "Duration 2h"),
        *(
            edge
            for hours in range(2, 10)
            for edge in (
                (hours * HOUR_S - 1, f"Duration {hours}h"),
                (hours * HOUR_S, f"Duration {hours + 1}h"),
                (hours * HOUR_S + 1, f"Duration {hours + 1}h"),
            )
        ),
        (10 * HOUR_S - 1, "Duration 10h"),
        (10 * HOUR_S, "Duration 10h-18h"),
        (11 * HOUR_S, "Duration 10h-18h"),
        (18 * HOUR_S - 1, "Duration 10h-18h"),
        (18 * HOUR_S, "Duration 10h-18h"),
    ],
)
def test_edges_of_every_band(stay_s: int, band: str) -> None:
    assert VISIT_DURATION_BANDS[code_of(stay_s)] == band


@pytest.mark.parametrize(
    "stay_s", [0, 1, HOUR_S - 1, 18 * HOUR_S + 1, 24 * HOUR_S, 25 * HOUR_S, 66 * 24 * HOUR_S, 2**32 - 1]
)
def test_shorter_and_longer_stays_have_no_band(stay_s: int) -> None:
    assert code_of(stay_s) == NO_VALUE


def test_every_second_of_a_day() -> None:
    stays = np.arange(25 * HOUR_S + 1, dtype=np.uint32)
    before = stays.copy()
    codes = duration_codes(stays)
    expected = [
        min(stay // HOUR_S, 10) - 1 if HOUR_S <= stay <= 18 * HOUR_S else int(NO_VALUE)
        for stay in range(25 * HOUR_S + 1)
    ]
    assert codes.dtype == np.uint16
    assert codes.tolist() == expected
    assert np.array_equal(stays, before)


def test_no_stay_at_all() -> None:
    assert duration_codes(np.empty(0, np.uint32)).tolist() == []
