"""Projection: the nearest flows of people, by a solver that knows nothing of prices of days."""

import numpy as np
import pytest
from scipy.optimize import minimize

from ldp import projected_flows
from ldp.estimation.scenario.projection import nearest_flows
from tests.ldp.estimation.scenario.people import fimu, tally_of


def nearest_by_slsqp(wanted, *, weights, most, has_end) -> np.ndarray:
    nodes = wanted.shape[0]
    places = np.triu_indices(nodes, 1)
    balance = np.zeros((nodes, places[0].size))
    balance[places[1], np.arange(places[0].size)] += 1
    balance[places[0], np.arange(places[0].size)] -= 1
    balance = balance[1:-1] if has_end else balance[1:]
    found = minimize(
        lambda x: (weights[places] * (x - wanted[places]) ** 2).sum() / 1e4,
        np.clip(wanted[places], 0, most[places]),
        jac=lambda x: 2 * weights[places] * (x - wanted[places]) / 1e4,
        method="SLSQP",
        bounds=[(0, None if np.isinf(high) else high) for high in most[places]],
        constraints={
            "type": "eq" if has_end else "ineq",
            "fun": lambda x: balance @ x,
            "jac": lambda _: balance,
        },
        options={"maxiter": 500, "ftol": 1e-13},
    )
    result = np.zeros_like(wanted)
    result[places] = found.x
    return result


@pytest.mark.parametrize("has_end", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_flows_are_those_of_another_solver(has_end, seed):
    rng = np.random.default_rng(seed)
    wanted = np.triu(rng.normal(50, 100, (7, 7)), 1)
    weights = np.exp(rng.normal(0, 1, (7, 7)))
    most = np.triu(rng.uniform(50, 300, (7, 7)), 1) if has_end else np.full((7, 7), np.inf)
    found = nearest_flows(wanted, weights=weights, most=most, has_end=has_end)
    expected = nearest_by_slsqp(wanted, weights=weights, most=most, has_end=has_end)
    assert found == pytest.approx(expected, abs=0.01)


def test_projected_flows_are_those_of_people_and_nearer_to_the_truth_than_the_noisy_tally():
    truth = tally_of({pattern: number // 200 for pattern, number in fimu().items()}, days=7)
    noisy = truth + np.triu(np.random.default_rng(2).integers(-40, 41, truth.shape), 1)
    flows = projected_flows(noisy)
    assert flows.edges.min() >= 0
    assert flows.edges[:, 1:-1].sum(axis=0) == pytest.approx(flows.edges[1:-1].sum(axis=1))
    assert np.linalg.norm(flows.tally - truth) < 0.9 * np.linalg.norm(noisy - truth)


def test_flows_of_people_are_their_own_projection():
    truth = tally_of(fimu(), days=7)
    assert projected_flows(truth).tally == pytest.approx(truth, abs=1e-6)
