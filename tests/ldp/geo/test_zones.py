"""Counts by zone: exact where everything can be enumerated, and intervals under many draws of the noise."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from ldp import KeyedStream
from ldp.geo.deconvolution import PLAIN_STEPS, deconvolve, held_out_steps
from ldp.geo.grid import Grid
from ldp.geo.made_up import made_up_reports
from ldp.geo.transition import Transition
from ldp.geo.zones import MAX_ZONES, ZoneWindow, zone_counts, zone_weights
from tests.ldp.exact import refuses

Ints = NDArray[np.int64]

SMALL = Grid(x0_m=0, y0_m=0, step_m=100, n_x=6, n_y=5)
WIDE = Grid(x0_m=0, y0_m=0, step_m=200, n_x=48, n_y=40)


def small_case() -> tuple[Transition, Ints, NDArray[np.int16]]:
    transition = Transition(SMALL, epsilon_per_m=0.005)
    counts = np.arange(30).reshape(SMALL.shape) % 7 + 1
    zones = np.zeros(SMALL.shape, np.int16)
    zones[:, 3:] = 1
    zones[4, 5] = -1
    return transition, counts, zones


def town() -> tuple[Ints, NDArray[np.int16]]:
    y, x = np.indices(WIDE.shape)
    density = 60 * np.exp(-((x - 15) ** 2 + (y - 15) ** 2) / 40)
    density += 50 * np.exp(-((x - 34) ** 2 + (y - 25) ** 2) / 20)
    counts = np.rint(density + (x * 7 + y * 5) % 3).astype(np.int64)
    return counts, (x // 12 + 4 * (y * 3 // WIDE.n_y)).astype(np.int16)


CASES = [(5, False, (1, 0, 9)), (PLAIN_STEPS + 1, False, (600, 0, 0)), (5, True, (1, 1, 0))]


@pytest.mark.parametrize(("steps", "at_sites", "prior"), CASES)
def test_weights_have_the_least_expected_square_error(steps, at_sites, prior, monkeypatch) -> None:
    monkeypatch.setattr("ldp.geo.zones._PRECISION", 1e-9)
    transition, counts, zones = small_case()
    n = SMALL.n_cells
    chances = transition.forward(np.eye(n).reshape(n, *SMALL.shape)).reshape(n, n)  # [place, report]
    asked = {"steps": steps, "zones": zones, "n_zones": 2, "at_sites": at_sites}
    found = zone_weights(counts, transition=transition, **asked)
    assert found.steps == 10
    people = deconvolve(counts, transition=transition, steps=10).density.ravel()
    # 6 / epsilon is 12 cells here: the pieces are the zones, and 8 / epsilon, so that each window is all.
    same = zones.ravel()[:, np.newaxis] == zones.ravel()
    alone, square, piece = prior
    spread = np.diag(alone * people + square * people**2) + piece * same * np.outer(people, people)
    system = np.diag(people @ chances) + chances.T @ (spread - np.diag(people)) @ chances
    for zone in range(2):
        exact = np.linalg.solve(system, chances.T @ spread @ (zones.ravel() == zone))
        window = found.windows[zone]
        np.testing.assert_allclose(window.weights.ravel(), exact, atol=1e-6 * np.abs(exact).max())


@pytest.mark.parametrize(("steps", "at_sites", "prior"), CASES)
def test_variance_is_that_of_every_report_enumerated(steps, at_sites, prior) -> None:
    transition, counts, zones = small_case()
    n = SMALL.n_cells
    chances = transition.forward(np.eye(n).reshape(n, *SMALL.shape)).reshape(n, n)
    asked = {"steps": steps, "zones": zones, "n_zones": 2, "at_sites": at_sites}
    weights = zone_weights(counts, transition=transition, **asked)
    people = deconvolve(counts, transition=transition, steps=weights.steps).density.ravel()
    found = zone_counts(counts, transition=transition, weights=weights)
    for zone, window in enumerate(weights.windows):
        of_report, exact = window.weights.ravel(), 0.0
        for place in range(n):
            mean = sum(chances[place, z] * of_report[z] for z in range(n))
            noise = sum(chances[place, z] * (of_report[z] - mean) ** 2 for z in range(n))
            missing = (mean - (zones.ravel()[place] == zone)) ** 2
            exact += people[place] * noise + missing * (people[place] + prior[1] * people[place] ** 2)
        assert found.std_error[zone] == pytest.approx(window.factor * np.sqrt(exact), rel=1e-9)
        assert (window.factor == 1) == (prior[2] == 0)


def test_a_zone_is_computed_in_its_own_part_of_the_grid() -> None:
    places, zones = town()
    transition = Transition(WIDE, epsilon_per_m=0.02)  # 1 / epsilon = a quarter of a cell
    counts = made_up_reports(places.astype(np.float64), transition=transition, stream=KeyedStream(bytes(16)))
    asked = {"transition": transition, "steps": 3, "zones": zones, "n_zones": 12, "at_sites": True}
    local = zone_weights(counts, **asked)
    assert {window.weights.shape for window in local.windows if window} == {(24, 16)}
    found = zone_counts(counts, transition=transition, weights=local)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ldp.geo.zones._REACH", 1000.0)
        whole = zone_weights(counts, **asked)
    exact = zone_counts(counts, transition=transition, weights=whole)
    assert whole.windows[0].weights.shape == WIDE.shape
    np.testing.assert_allclose(found.count, exact.count, atol=0.02 * exact.std_error.min())
    np.testing.assert_allclose(found.std_error, exact.std_error, rtol=0.01)


def test_standard_error_is_the_root_of_the_sum_over_subscribers() -> None:
    transition, counts, zones = small_case()
    weights = zone_weights(counts, transition=transition, steps=1, zones=zones, n_zones=2, at_sites=True)
    flat = np.zeros(SMALL.shape)
    cells = {"rows": slice(0, 5), "columns": slice(0, 6)}
    window = ZoneWindow(**cells, weights=flat, noise=flat + 0.25, missing=flat, factor=3.0)
    weights = replace(weights, windows=(window, window))
    found = zone_counts(counts, transition=transition, weights=weights, level=0.9)
    assert found.std_error == pytest.approx(3 * np.sqrt(0.25 * counts.sum()))
    inside = (found.ci_low > 0) & (found.ci_high < counts.sum())
    assert inside.any()
    assert (found.ci_high - found.count)[inside] == pytest.approx((1.6448536 * found.std_error)[inside])
    assert (found.count - found.ci_low)[inside] == pytest.approx((1.6448536 * found.std_error)[inside])


def test_count_is_the_density_put_right_by_the_weights() -> None:
    transition, counts, zones = small_case()
    weights = zone_weights(counts, transition=transition, steps=4, zones=zones, n_zones=2)
    found = zone_counts(counts, transition=transition, weights=weights)
    fitted = deconvolve(counts, transition=transition, steps=8)
    for zone in range(2):
        window = weights.windows[zone]
        at = window.rows, window.columns
        right = (window.weights * (counts - fitted.expected)[at]).sum()
        assert found.count[zone] == pytest.approx(fitted.density[zones == zone].sum() + right)


def test_nobody_is_counted_where_there_is_no_land() -> None:
    transition, counts, zones = small_case()
    weights = zone_weights(counts, transition=transition, steps=4, zones=zones, n_zones=2, land=zones != 0)
    found = zone_counts(counts, transition=transition, weights=weights)
    assert (found.count[0], found.std_error[0], found.ci_low[0], found.ci_high[0]) == (0, 0, 0, 0)
    assert found.count[1] > 0.9 * counts.sum()
    assert found.noisy[0] > 0.4 * counts.sum()


def test_noisy_counts_are_reports_in_the_zone_and_a_zone_without_a_cell_has_no_estimate() -> None:
    transition, counts, zones = small_case()
    weights = zone_weights(counts, transition=transition, steps=2, zones=zones, n_zones=3)
    found = zone_counts(counts, transition=transition, weights=weights)
    assert found.noisy.tolist() == [counts[zones == 0].sum(), counts[zones == 1].sum(), 0]
    assert found.noisy.sum() == counts.sum() - counts[4, 5]
    assert np.isnan([found.count[2], found.std_error[2], found.ci_low[2], found.ci_high[2]]).all()
    assert np.isfinite(found.count[:2]).all()


def test_intervals_stay_among_the_reports() -> None:
    transition, _, zones = small_case()
    counts = np.zeros(SMALL.shape, np.int64)
    counts[2, 0] = 6
    weights = zone_weights(counts, transition=transition, steps=3, zones=zones, n_zones=2)
    found = zone_counts(counts, transition=transition, weights=weights)
    assert found.ci_low.min() >= 0
    assert found.ci_high.max() <= 6
    assert np.all((found.ci_low <= found.count) & (found.count <= found.ci_high))


def test_intervals_hold_the_truth_where_people_stay_and_noise_is_new() -> None:
    places, zones = town()
    truth = np.bincount(zones.ravel(), weights=places.ravel(), minlength=12)
    transition = Transition(WIDE, epsilon_per_m=0.0035)
    stream = KeyedStream(b"coverage of zone")
    weights, held, off, raw = None, [], [], []
    for _ in range(60):
        counts = made_up_reports(places.astype(np.float64), transition=transition, stream=stream)
        if weights is None:
            steps = held_out_steps(counts, transition=transition)
            weights = zone_weights(counts, transition=transition, steps=steps, zones=zones, n_zones=12)
        found = zone_counts(counts, transition=transition, weights=weights)
        held.append((found.ci_low <= truth) & (truth <= found.ci_high))
        off.append(found.count - truth)
        raw.append(found.noisy - truth)
    doubt = np.mean(held, axis=1).std(ddof=1) / np.sqrt(60)
    assert abs(np.mean(held) - 0.95) < 0.02 + 3 * doubt
    assert np.sqrt(np.mean(np.square(off))) < 0.7 * np.sqrt(np.mean(np.square(raw)))


@pytest.mark.parametrize("at_sites", [False, True])
def test_intervals_hold_the_truth_where_people_stand_at_masts(at_sites: bool) -> None:
    """One mast in about 25 cells; the zones' borders pass between masts that are near."""
    y, x = np.indices(WIDE.shape)
    places = np.where((x % 5 == 2) & (y % 5 == (x // 5) % 4), 120, 0).astype(np.int64)
    zones = (x // 12 + 4 * (y * 3 // WIDE.n_y)).astype(np.int16)
    truth = np.bincount(zones.ravel(), weights=places.ravel(), minlength=12)
    transition = Transition(WIDE, epsilon_per_m=0.007)
    stream = KeyedStream(b"coverage of mast")
    land = places > 0 if at_sites else None
    weights, held, halves = None, [], []
    for _ in range(25):
        counts = made_up_reports(places.astype(np.float64), transition=transition, stream=stream)
        if weights is None:
            steps = held_out_steps(counts, transition=transition, land=land)
            assert (steps > PLAIN_STEPS) != at_sites
            asked = {"steps": steps, "zones": zones, "n_zones": 12, "land": land, "at_sites": at_sites}
            weights = zone_weights(counts, transition=transition, **asked)
        found = zone_counts(counts, transition=transition, weights=weights)
        held.append((found.ci_low <= truth) & (truth <= found.ci_high))
        halves.append(found.std_error)
    assert np.mean(held) > 0.9
    # Attackers with the places of the masts know more.
    assert (np.mean(halves) < 15) == at_sites


def test_what_cannot_be_is_refused() -> None:
    transition, counts, zones = small_case()
    for n_zones, of_cells, message in [
        (1, zones, r"zones must be in \[-1, 1\), got -1..1"),
        (0, zones, r"n_zones must be in \[1, 2000\], got 0"),
        (MAX_ZONES + 1, zones, r"n_zones must be in \[1, 2000\], got 2001; merge zones"),
        (2, zones.T, r"zones must have shape \(5, 6\), got \(6, 5\)"),
    ]:
        settings = {"transition": transition, "steps": 2, "zones": of_cells, "n_zones": n_zones}
        refuses(message, zone_weights, counts, **settings)
    weights = zone_weights(counts, transition=transition, steps=2, zones=zones, n_zones=2)
    estimate = partial(zone_counts, transition=transition, weights=weights)
    refuses(r"counts must have the shape of zones, \(5, 6\), got \(6, 5\)", estimate, counts.T)
    refuses(r"level must be in \(0, 1\), got 0", estimate, counts, level=0)
