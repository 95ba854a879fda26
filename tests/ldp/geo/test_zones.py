"""Deconvolution and counts by zone: by hand, by enumeration, and under many draws of the noise."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from ldp import KeyedStream
from ldp.geo import deconvolution as em
from ldp.geo.deconvolution import PLAIN_STEPS, deconvolve, held_out_steps
from ldp.geo.goodness import filled_blocks, goodness
from ldp.geo.grid import Grid
from ldp.geo.made_up import made_up_people, made_up_reports
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


def town_of_zones() -> tuple[Ints, NDArray[np.int16]]:
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
    places, zones = town_of_zones()
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
    places, zones = town_of_zones()
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


Floats = NDArray[np.float64]

GRID = Grid(x0_m=0, y0_m=0, step_m=100, n_x=40, n_y=30)
NOISE = Transition(GRID, epsilon_per_m=0.005)
STREAM_KEY = b"tests of density"


def town() -> Ints:
    x, y = (each.reshape(GRID.shape) / 100 for each in GRID.centres())
    density = 30 * np.exp(-((x - 10) ** 2 + (y - 12) ** 2) / 18)
    density += 20 * np.exp(-((x - 29) ** 2 + (y - 20) ** 2) / 10)
    density[:, 18:22] = 0
    return np.rint(density + 0.2 * (np.indices(GRID.shape).sum(axis=0) % 7 == 0)).astype(np.int64)


def noisy(places: Ints, *, key: bytes = STREAM_KEY) -> Ints:
    return made_up_reports(places.astype(np.float64), transition=NOISE, stream=KeyedStream(key))


def dry() -> NDArray[np.bool_]:
    land = np.ones(GRID.shape, np.bool_)
    land[:, 18:22] = False
    return land


def log_likelihood(counts: Ints, density: Floats) -> float:
    return float((counts * np.log(np.maximum(NOISE.forward(density), 1e-9))).sum())


def test_a_step_is_bayes_rule_with_the_dense_matrix() -> None:
    transition = Transition(Grid(x0_m=0, y0_m=0, step_m=100, n_x=3, n_y=2), epsilon_per_m=0.01)
    chances = transition.forward(np.eye(6).reshape(6, 2, 3)).reshape(6, 6)  # [place, report]
    counts = np.array([[5, 0, 2], [1, 7, 3]])
    density = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 3.0]])
    expected = np.zeros(6)
    for report, count in enumerate(counts.ravel()):
        joint = density.ravel() * chances[:, report]
        expected += count * joint / joint.sum()
    found = em.em_step(density, counts, transition=transition)
    np.testing.assert_allclose(found.ravel(), expected, rtol=1e-12)


def test_no_step_lowers_the_likelihood_or_loses_anybody() -> None:
    counts = noisy(town())
    density = np.full(GRID.shape, counts.sum() / counts.size)
    reached = log_likelihood(counts, density)
    for step in range(1, em.MAX_STEPS + 1):
        density = em.advance(density, counts, transition=NOISE, step=step)
        assert density.min() >= 0
        assert density.sum() == pytest.approx(counts.sum(), rel=1e-12)
        now = log_likelihood(counts, density)
        assert now >= reached - 1e-9 * abs(reached)
        reached = now


def test_stacked_maps_take_steps_of_their_own() -> None:
    maps = np.array([noisy(town()), noisy(3 * town())])
    start = np.array([np.full(GRID.shape, each.sum() / each.size) for each in maps])
    for step in (1, em.PLAIN_STEPS + 1, em.PLAIN_STEPS + 2):
        together = em.advance(start, maps, transition=NOISE, step=step)
        pairs = zip(start, maps, strict=True)
        alone = [em.advance(density, each, transition=NOISE, step=step) for density, each in pairs]
        np.testing.assert_allclose(together, alone, rtol=1e-9, atol=1e-12)
        start = together


def test_steps_go_to_the_most_likely_density() -> None:
    """With little noise and many reports that is the inverse of the matrix, where it is no less than 0."""
    transition = Transition(Grid(x0_m=0, y0_m=0, step_m=100, n_x=4, n_y=3), epsilon_per_m=0.05)
    truth = np.array([[50_000, 20_000, 9_000, 4_000], [7_000, 8_000, 30_000, 10_000], [5_000] * 4])
    counts = np.rint(transition.forward(truth.astype(np.float64))).astype(np.int64)
    found = em.deconvolve(counts, transition=transition, steps=em.MAX_STEPS)
    np.testing.assert_allclose(found.density, truth, rtol=1e-3)


def test_nobody_is_put_where_there_is_no_land() -> None:
    counts = noisy(town())
    found = em.deconvolve(counts, transition=NOISE, land=dry())
    assert found.density[:, 18:22].max() == 0
    assert found.density.sum() == pytest.approx(counts.sum(), rel=1e-12)
    assert found.expected.sum() == pytest.approx(counts.sum(), rel=1e-9)
    assert counts[:, 18:22].sum() > 60
    spread = em.bootstrap(counts, transition=NOISE, steps=3, land=dry(), n_replicates=6)
    assert spread.high[:, 18:22].max() == spread.std_error[:, 18:22].max() == 0
    # The land knows more than the reports: without it the dry columns are not empty.
    assert em.deconvolve(counts, transition=NOISE).density[:, 18:22].sum() > 10


def test_folds_are_the_reports_dealt_evenly_and_always_the_same() -> None:
    counts = noisy(town())
    folds = em._folds(counts)
    np.testing.assert_array_equal(folds.sum(axis=0), counts)
    shares = folds.sum(axis=(1, 2)) / counts.sum()
    assert np.all(np.abs(shares - 1 / em.N_FOLDS) < 4 * np.sqrt(0.1875 / counts.sum()))
    np.testing.assert_array_equal(folds, em._folds(counts))


def test_held_out_steps_predict_other_reports_about_as_well_as_can_be() -> None:
    places = town()
    counts = noisy(places)
    truth = NOISE.forward(places.astype(np.float64))
    density = np.full(GRID.shape, counts.sum() / counts.size)
    scores = []
    for _ in range(150):
        density = em.em_step(density, counts, transition=NOISE)
        scores.append(float((truth * np.log(np.maximum(NOISE.forward(density), 1e-9))).sum()))
    steps = em.held_out_steps(counts, transition=NOISE)
    best = max(scores)
    assert best - scores[steps - 1] < 0.1 * (best - scores[0])
    assert best - scores[steps - 1] < 0.1 * (best - scores[-1])


def test_spread_of_replicates_is_that_of_new_populations() -> None:
    counts = noisy(town())
    n, steps = 60, 1
    spread = em.bootstrap(counts, transition=NOISE, steps=steps, n_replicates=n, level=0.9)
    even = np.full(GRID.shape, counts.sum() / counts.size)
    weights_of_cells = []
    for cell in [(12, 10), (20, 29), (5, 35), (0, 0)]:
        chance = np.zeros(GRID.shape)
        chance[cell] = even[cell]
        # density = even A^T (counts / A even): a sum over reports of these weights
        weights_of_cells.append((cell, NOISE.forward(chance) / NOISE.forward(even)))
    for cell, weights in weights_of_cells:
        mean = (counts * weights).sum() / counts.sum()
        exact = np.sqrt((counts * (weights - mean) ** 2).sum())
        assert abs(spread.std_error[cell] / exact - 1) < 4 / np.sqrt(2 * (n - 1))
    assert np.all(spread.low <= spread.high)
    middle = em.deconvolve(counts, transition=NOISE, steps=steps).density
    assert np.mean((spread.low <= middle) & (middle <= spread.high)) > 0.95


def test_blocks_are_filled_and_cover_the_map() -> None:
    expected = NOISE.forward(town().astype(np.float64))
    blocks = filled_blocks(expected)
    sums = np.bincount(blocks.ravel(), weights=expected.ravel())
    assert sums.size == blocks.max() + 1 > 20
    assert sums.min() >= 25
    assert filled_blocks(np.full((3, 4), 1.0)).max() == 0
    np.testing.assert_array_equal(np.unique(filled_blocks(np.full((2, 4), 30.0))), np.arange(8))


def test_a_right_model_is_good() -> None:
    counts = noisy(town())
    fitted = em.deconvolve(counts, transition=NOISE, land=dry())
    fit = goodness(counts, transition=NOISE, fitted=fitted, land=dry())
    assert fit.low < fit.chi_square < fit.high
    assert fit.chi_square <= fit.high
    assert fit.n_blocks == filled_blocks(fitted.expected).max() + 1


@pytest.mark.parametrize("wrong", ["noise", "land"])
def test_a_wrong_model_is_not_good(wrong: str) -> None:
    counts = noisy(town())
    transition, land = NOISE, dry()
    if wrong == "noise":
        transition = Transition(GRID, epsilon_per_m=0.0015)
    else:
        land = np.ones(GRID.shape, np.bool_)
        land[8:16, 7:14] = False
    fitted = em.deconvolve(counts, transition=transition, land=land, steps=30)
    fit = goodness(counts, transition=transition, fitted=fitted, land=land)
    assert fit.chi_square > fit.high


def test_made_up_people_are_drawn_from_the_density() -> None:
    density = np.zeros(NOISE.grid.shape)
    density[1, 1], density[2, 3] = 3000.0, 1000.0
    places, reports = made_up_people(density, transition=NOISE, stream=KeyedStream(STREAM_KEY))
    assert places.sum() == reports.sum() == places[1, 1] + places[2, 3] == 4000
    assert 1 < abs(places[1, 1] - 3000) < 4 * np.sqrt(4000 * 0.75 * 0.25)
    at_least = made_up_reports(places.astype(np.float64), transition=NOISE, stream=KeyedStream(STREAM_KEY))
    assert (reports != at_least).any()


def test_arguments_out_of_range_are_refused() -> None:
    counts = noisy(town())
    refuses("at least one report, got 0..0", em.deconvolve, 0 * counts, transition=NOISE)
    refuses("counts must be >= 0", em.deconvolve, counts * 0 - 1, transition=NOISE)
    refuses(r"counts must have shape \(30, 40\), got \(3, 40\)", em.deconvolve, counts[:3], transition=NOISE)
    refuses(r"steps must be in \[1, 70\], got 0", em.deconvolve, counts, transition=NOISE, steps=0)
    refuses("land must have at least one cell", em.deconvolve, counts, transition=NOISE, land=counts < 0)
    refuses(r"land must have shape \(30, 40\)", em.held_out_steps, counts, transition=NOISE, land=dry()[:3])
    spread = partial(em.bootstrap, counts, transition=NOISE, steps=2)
    refuses(r"n_replicates must be in \[2, 1000\], got 1", spread, n_replicates=1)
    refuses(r"level must be in \(0, 1\), got 1", spread, level=1)
    fit = partial(goodness, fitted=em.deconvolve(counts, transition=NOISE, steps=2), transition=NOISE)
    refuses(r"n_replicates must be in \[5, 1000\], got 2", fit, counts, n_replicates=2)
