"""Short forms of the benchmark of cross-tabulations: published grids and half widths."""

import pytest

from benchmarks.crosstab import half_widths, hdg_grids


def test_grids_of_hdg_are_those_of_its_authors() -> None:
    published = [(8, 2), (16, 2), (16, 2), (16, 4), (16, 4), *[(32, 4)] * 5]
    assert hdg_grids() == published


@pytest.mark.parametrize(
    ("n_questions", "is_pair", "points"),
    [(6, False, 3.09), (7, False, 3.34), (7, True, 3.34), (9, True, 3.78)],
)
def test_half_widths_on_ms_fimu_are_those_that_are_foretold(n_questions, is_pair, points) -> None:
    """Projective response has 2% more variance than the limit that the foretold numbers are for."""
    expected, measured = half_widths(n_questions, is_pair=is_pair, keys=6)
    assert expected == pytest.approx(points, rel=0.015)
    assert measured == pytest.approx(expected, rel=0.1 if not is_pair else 0.05)
