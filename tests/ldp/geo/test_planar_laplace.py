"""Planar Laplace noise: its law, what finite precision costs, and the promise by exact tables."""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from itertools import product
from math import exp, log, pi

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate
from scipy.stats import gamma

from ldp.errors import InvalidBudgetError
from ldp.geo.planar_laplace import PlanarLaplace, angle_step, certified_epsilon, precision_of, sampled_epsilon
from tests.ldp.exact import VECTORS, refuses

PI = Decimal("3.1415926535897932384626433832795028841971693993751")
LN_4_IN_200_M = Fraction(Decimal(4).ln()) / 200
Doubles = NDArray[np.float64]
LAW = PlanarLaplace(epsilon_per_m=0.25)


def cdf(radius_m: float, law: PlanarLaplace = LAW) -> float:
    return float(gamma(2, scale=1 / law.epsilon_per_m).cdf(radius_m))


@pytest.mark.parametrize(("probability", "expected"), VECTORS["H_quantiles_eps_times_r"].items())
def test_quantiles_are_those_of_the_vectors(probability: str, expected: str) -> None:
    assert LAW.quantile(float(probability)) / 4 == pytest.approx(float(expected), rel=1e-12)


def test_quantile_inverts_the_cdf_from_end_to_end() -> None:
    for probability in [0.0, 1e-12, 1e-6, 0.001, 0.3, 0.999, 1 - 1e-12]:
        assert cdf(LAW.quantile(probability)) == pytest.approx(probability, rel=1e-9, abs=1e-15)
    refuses(r"probability must be in \[0, 1\), got 1", LAW.quantile, 1.0, error=InvalidBudgetError)


def test_density_gives_the_cdf_and_the_moments() -> None:
    def around(radius: float) -> float:
        return 2 * pi * radius * LAW.density(radius)

    assert integrate.quad(around, 0, 7.0)[0] == pytest.approx(cdf(7.0), rel=1e-12)
    assert integrate.quad(lambda r: r * around(r), 0, 400)[0] == pytest.approx(LAW.mean_m, rel=1e-9)
    squared = integrate.quad(lambda r: r**2 * around(r), 0, 400)[0]
    assert squared == pytest.approx(96.0, rel=1e-9)
    assert LAW.mean_m == 8.0


@pytest.mark.parametrize("vector", VECTORS["H_eps_prime"])
def test_sampled_epsilon_is_that_of_the_vectors(vector: dict[str, str]) -> None:
    step = 2 * PI / 2 ** int(vector["delta_theta"].rpartition("^")[2])
    sides = {"step_m": int(vector["u"]), "range_m": int(vector["rmax"]), "angle_step": step}
    sampled = sampled_epsilon(LN_4_IN_200_M, **sides)
    assert float(sampled) == pytest.approx(float(vector["eps_prime"]), rel=2e-15)
    promised = Decimal(LN_4_IN_200_M.numerator) / LN_4_IN_200_M.denominator
    assert certified_epsilon(sampled, **sides) <= promised * (1 + Decimal("1e-27"))
    assert certified_epsilon(sampled * (1 + Decimal("1e-25")), **sides) > promised


@pytest.mark.parametrize("vector", VECTORS["H_discretised_check"])
def test_bound_of_coarse_angles_is_that_of_the_vectors(vector: dict[str, float]) -> None:
    """Lengths are in halves of a unit, so that the side of every grid is an int."""
    sides = {"step_m": int(2 * vector["u"]), "range_m": int(2 * vector["rmax"])}
    step = 2 * PI / 2 ** int(vector["log2_ntheta"])
    certified = certified_epsilon(Decimal(vector["eps_prime"]) / 2, **sides, angle_step=step)
    assert float(2 * certified) == pytest.approx(vector["bound"], rel=1e-13)
    assert vector["worst_real"] < 2 * certified


def small_sampler(epsilon: int | Fraction, *, bits: int, zeros: int, angle_bits: int, range_m: int) -> float:
    coarsest = 2 ** (bits - zeros)
    radius_error = 2 * log((coarsest + 0.5) / coarsest)
    errors = {"radius_error": radius_error, "angle_error": pi / 2**angle_bits, "place_error": 0.0}
    step = angle_step(Fraction(epsilon), step_m=1, range_m=range_m, **errors)
    drawn = Decimal(epsilon.numerator) / epsilon.denominator
    return float(certified_epsilon(drawn, step_m=1, range_m=range_m, angle_step=step))


def sampled_law(*, bits: int, zeros: int | None) -> Callable[[Doubles], Doubles]:
    """Distribution of minus the logarithm of two numbers of n bits, as the kernel draws them.

    One that begins with `zeros` zeros counts as 2**-zeros times one that is drawn again; None: none is.
    """
    numbers = np.arange(2 ** (bits - (zeros or bits)) if zeros else 0, 2**bits)
    lengths = -np.log((numbers + 0.5) / 2**bits)
    pairs = np.add.outer(lengths, lengths).ravel()
    weights = np.full(pairs.size, 4.0**-bits)
    if zeros:
        # How many zeros both have more has the law of a sum of two geometric variables.
        repeats = np.arange(60 // zeros)
        pairs = np.add.outer(zeros * np.log(2) * repeats, pairs).ravel()
        weights = np.multiply.outer((repeats + 1) * 2.0 ** (-zeros * repeats), weights).ravel()
    order = np.argsort(pairs)
    lengths, below = pairs[order], np.concatenate([[0.0], np.cumsum(weights[order])])
    return lambda radii: np.where(np.isinf(radii), 1.0, below[np.searchsorted(lengths, radii)])


def square_table(law, *, epsilon, n_x, n_y, angle_bits, clamps=True) -> Doubles:
    """Probability of each square from the middle of each one; shape (n_x * n_y, n_x * n_y), side 1.

    Points outside belong to the nearest square, or to none. Along a ray the square changes where it crosses a
    line of the grid, so the probability of a square is a difference of the law at two crossings.
    """
    theta = -np.pi / 4 + 2 * np.pi * (np.arange(2**angle_bits) + 0.5) / 2**angle_bits
    cosine, sine = np.cos(theta)[:, None], np.sin(theta)[:, None]
    table = np.zeros((n_x * n_y, n_x * n_y))
    for row, column in product(range(n_y), range(n_x)):
        x, y = column + 0.5, row + 0.5
        across = np.hstack([(np.arange(n_x + 1) - x) / cosine, (np.arange(n_y + 1) - y) / sine])
        stops = np.sort(np.where(across > 0, across, np.inf), axis=1)
        stops = np.hstack([np.zeros_like(cosine), stops, np.full_like(cosine, np.inf)])
        mass = np.diff(law(epsilon * stops), axis=1) / 2**angle_bits
        inner = np.where(np.isinf(stops[:, 1:]), stops[:, :-1] + 1, (stops[:, :-1] + stops[:, 1:]) / 2)
        inner = np.where(np.isinf(inner), 0.0, inner)  # beyond the last crossing but one there is no mass
        to_x, to_y = np.floor(x + inner * cosine), np.floor(y + inner * sine)
        inside = (to_x >= 0) & (to_x < n_x) & (to_y >= 0) & (to_y < n_y)
        codes = np.clip(to_y, 0, n_y - 1) * n_x + np.clip(to_x, 0, n_x - 1)
        kept = mass if clamps else mass * inside
        table[row * n_x + column] = np.bincount(codes.ravel().astype(int), kept.ravel(), minlength=n_x * n_y)
    return table


def worst_loss(table: Doubles, *, n_x: int) -> float:
    """Largest logarithm of a ratio of two rows, per distance of their squares; inf if one of them is 0."""
    rows, columns = np.divmod(np.arange(table.shape[0]), n_x)
    distances = np.hypot(np.subtract.outer(rows, rows), np.subtract.outer(columns, columns))
    worst = 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(table)
        for one in range(table.shape[0]):
            gaps = np.nanmax(logs[one] - logs, axis=1)  # -inf less -inf is no loss
            gaps[one] = 0.0
            worst = max(worst, float(np.max(gaps / np.maximum(distances[one], 1.0))))
    return worst


@pytest.mark.parametrize(
    ("epsilon", "bits", "zeros", "angle_bits", "n_x", "n_y", "range_m"),
    [(Fraction(1, 2), 8, 2, 14, 5, 4, 7), (3, 8, 2, 14, 12, 2, 13)],
)
def test_reports_keep_what_is_certified(epsilon, bits, zeros, angle_bits, n_x, n_y, range_m) -> None:
    """Every angle and every length of a sampler with few bits, clamped: the ratios of all pairs."""
    law = sampled_law(bits=bits, zeros=zeros)
    table = square_table(law, epsilon=float(epsilon), n_x=n_x, n_y=n_y, angle_bits=angle_bits)
    assert table.sum(axis=1) == pytest.approx(np.ones(n_x * n_y), abs=1e-12)
    certified = small_sampler(epsilon, bits=bits, zeros=zeros, angle_bits=angle_bits, range_m=range_m)
    assert 0.9 * epsilon < worst_loss(table, n_x=n_x) < certified


@pytest.mark.parametrize("level", [Fraction(1, 10), Fraction(1), Fraction(4)])
@pytest.mark.parametrize("step_m", [50, 100, 500])
def test_precision_keeps_the_promise_and_costs_little(level: Fraction, step_m: int) -> None:
    epsilon = level / 200
    found = precision_of(epsilon, step_m=step_m, range_m=30_000)
    assert Fraction(found.certified) <= epsilon
    assert 1 / (Fraction(found.scale) * step_m) == found.sampled
    assert Fraction(99, 100) * epsilon <= found.sampled < Fraction(found.certified)
    step = angle_step(epsilon, step_m=step_m, range_m=30_000)
    # Nothing is wasted: one more double towards less noise would break the promise.
    more = 1 / (Fraction(np.nextafter(found.scale, 0.0)) * step_m)
    drawn = Decimal(more.numerator) / Decimal(more.denominator)
    promised = Decimal(epsilon.numerator) / Decimal(epsilon.denominator)
    assert certified_epsilon(drawn, step_m=step_m, range_m=30_000, angle_step=step) > promised


def test_angle_step_covers_what_is_displaced() -> None:
    epsilon = Fraction(1, 100)
    errors = {"radius_error": 1e-6, "angle_error": 1e-8, "place_error": 1e-9}
    step = angle_step(epsilon, step_m=100, range_m=10_000, **errors)
    reach_m = 10_000 + 40 / 0.0099
    offset_m = 1e-6 / 0.0099 + 1e-8 * reach_m + 1e-7
    lost = 2 * pi * (1 + 0.01 * reach_m) * exp(-40) / 0.99**2
    assert float(step) * 10_000 / 2 == pytest.approx(offset_m / (1 - offset_m / 100) + 50 * lost, rel=1e-8)
    assert float(step) * 10_000 / 2 > offset_m


def test_what_precision_cannot_serve_is_refused() -> None:
    for epsilon in (0.0, -1.0, float("nan"), float("inf")):
        refuses("epsilon_per_m must be finite and > 0", PlanarLaplace, epsilon_per_m=epsilon)
    sides = {"step_m": 1, "range_m": 10}
    step = Decimal("0.02")
    refuses("precision must allow a promise", certified_epsilon, Decimal(1), **sides, angle_step=step)
    refuses("precision must allow epsilon_per_m", sampled_epsilon, Fraction(1, 100), **sides, angle_step=step)
    errors = {"radius_error": 1e-9, "angle_error": 0.0}
    refuses(r"step_m must be > 1\.01", angle_step, Fraction(1, 10**9), **sides, **errors)
    for epsilon, step_m, advice in ((Fraction(1, 1000), 5, "larger"), (1, 20, "smaller")):
        message = f"step_m must be {advice} for noise"
        refuses(message, precision_of, epsilon, step_m=step_m, range_m=20_000)
