"""Masts that moved: a cell is, on each day, the row of the registry that is valid then."""

import numpy as np
import pytest

from mobility.ingest.events import concatenate
from tests.mobility.ingest.small_extract import CELLS, HEADER, coder_of, definition_of, ingest

# In the file's order, which is not that of the dates: codes 2, 3 and 4; day 3 has none.
MOVED = "mast,6.81,47.6,b,2017-03-28,\nmast,6.82,47.6,a,,2017-03-25\nmast,6.83,47.6,a,2017-03-26,2017-03-26\n"


def cells_of(lines: list[str], *, cells: str) -> tuple[list[int], list[int], dict[str, int]]:
    """Days and cells of accepted events in the order of time, and how many were ignored by reason."""
    coder = coder_of(definition_of(("days = 2", "days = 5"), cells=cells))
    parts, counts = ingest("\n".join([HEADER, *lines]).encode(), coder)
    events = concatenate(parts, slots=coder.slots)
    order = np.argsort(events.second)
    return events.day[order].tolist(), events.cell[order].tolist(), dict(counts.ignored)


def test_an_event_has_the_place_where_the_mast_stood_that_day() -> None:
    lines = [f"a,2017-03-{24 + day}T12:00:00,mast,,," for day in range(1, 6)]
    days, cells, ignored = cells_of(lines, cells=CELLS + MOVED)
    assert (days, cells) == ([1, 2, 4, 5], [3, 4, 2, 2])
    assert ignored == {"outside_area": 1}


def test_the_order_of_the_registry_changes_nothing_but_codes() -> None:
    lines = [
        f"a,2017-03-{24 + day}T12:00:00,{cell},,," for day in range(1, 6) for cell in ("mast", "c1", "zz")
    ]
    rows = MOVED.splitlines(keepends=True)
    first = cells_of(lines, cells=CELLS + "".join(rows))
    other = cells_of(lines, cells=CELLS + rows[2] + rows[0] + rows[1])
    renamed = {0: 0, 1: 1, 2: 3, 3: 4, 4: 2}
    assert (first[0], [renamed[code] for code in first[1]], first[2]) == other
    assert first[2] == {"outside_area": 6}


@pytest.mark.parametrize("hour", ["00:00:00", "23:59:59"])
def test_the_day_of_a_move_is_the_local_one(hour: str) -> None:
    lines = [f"a,2017-03-25T{hour},mast,,,", f"a,2017-03-26T{hour},mast,,,"]
    coder = coder_of(
        definition_of(("days = 2", "days = 5"), ('from = "06:00"', 'from = "00:00"'), cells=CELLS + MOVED)
    )
    events = concatenate(ingest("\n".join([HEADER, *lines]).encode(), coder)[0], slots=coder.slots)
    assert dict(zip(events.day.tolist(), events.cell.tolist(), strict=True)) == {1: 3, 2: 4}
