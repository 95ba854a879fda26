"""Short forms of the benchmark of cross-tabulations: published grids and half widths."""

import pytest

from benchmarks.crosstab import _zipf, half_widths, hdg_grids, range_errors


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


def test_grids_of_both_sizes_beat_two_way_ones_and_each_error_has_its_parts() -> None:
    """In the order of their authors; all cells of a pair have noise only, projected shares have less."""
    found = range_errors(_zipf, step=5, runs=12)
    in_all, noise, exact = zip(*found.values(), strict=True)
    hdg, tdg, cells, groups, positive = range(5)
    assert in_all[hdg] < in_all[tdg]
    assert exact[hdg] < exact[tdg]
    assert exact[cells] == pytest.approx(0, abs=1e-12)
    assert in_all[cells] == noise[cells] > 4 * noise[groups]
    assert noise[positive] < noise[groups]
    assert exact[positive] == pytest.approx(exact[groups])
    assert all(whole < noisy + bias + 1e-9 for whole, noisy, bias in found.values())
