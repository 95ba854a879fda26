"""Short form of `python -m benchmarks.derived_coverage`: a few keys, judged in standard errors."""

import pytest

from benchmarks import derived_coverage as coverage

FIGURES = {
    "arrivals": True,
    "returning": True,
    "departures": True,
    "seen again until a day": True,
    "seen again on the next day": True,
    coverage.AGAIN: False,
    coverage.BOTH: False,
    coverage.MEAN_DAYS: False,
    "arrivals (daily)": True,
    "returning (daily)": True,
}


@pytest.fixture(scope="module", params=["smp-grr", "rsfd-ouez"])
def rows(request: pytest.FixtureRequest) -> list[coverage.Row]:
    return coverage.run(n_keys=60, processes=1, mechanisms=[request.param])


@pytest.mark.slow
def test_intervals_hold_the_truth_as_often_as_they_say(rows: list[coverage.Row]) -> None:
    assert {row.figure: row.is_exact for row in rows} == FIGURES
    for row in rows:
        assert row.doubt < 0.02
        if row.is_exact:
            assert abs(row.coverage - 0.95) < 4 * row.doubt, row
        else:
            assert row.coverage > 0.95 - 4 * row.doubt, row


@pytest.mark.slow
def test_bounds_are_wider_than_what_more_knowledge_would_give_but_not_useless(
    rows: list[coverage.Row],
) -> None:
    wider = {row.figure: row.wider for row in rows if row.wider is not None}
    assert set(wider) == {coverage.AGAIN, coverage.BOTH, coverage.MEAN_DAYS}
    assert all(1 < factor < 12 for factor in wider.values()), wider


def test_row_out_of_tolerance_is_told() -> None:
    good = {"mechanism": "m", "figure": "f", "doubt": 0.001, "wider": None}
    assert coverage.Row(is_exact=True, coverage=0.936, **good).is_good
    assert not coverage.Row(is_exact=True, coverage=0.934, **good).is_good
    assert not coverage.Row(is_exact=False, coverage=0.946, **good).is_good
    assert coverage.Row(is_exact=False, coverage=0.999, **good).is_good
    assert "out of tolerance" in coverage.table([coverage.Row(is_exact=True, coverage=0.9, **good)])
