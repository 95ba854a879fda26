"""Chapter 8: half-hour presence in Paris, forecasts of it, and what noise on it costs and promises.

    python -m benchmarks.reproduce.forecasts [FILE]

prints the errors of one step on the last three weeks of a file: of the 65 training days, or of the full
series (date, hour, a column a zone), of which the thesis tests the last week; then the figures that the
thesis prints, which are not computed here, and what its epsilons promise.
"""

import argparse
import csv
import math
import sys
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
from scipy.special import gammaln

from benchmarks.reproduce.runs import Floats
from ldp import KeyedPrf
from ldp.estimation.series.forecast import (
    CALIBRATION_DAYS,
    LEVELS,
    backtest_errors,
    errors_by_horizon,
    half_width,
    last_value_errors,
)
from ldp.estimation.series.grid import Series
from ldp.keyed.noise.slots import slot_noise_counts
from ldp.privacy.slots import SlotNoise, gaussian_epsilon

TRAINING: Final = Path(__file__).with_name("paris_presence_train.csv")
NO_ZONES: Final = ("Date", "Hour", "Total")  # the total counts people of nested zones twice
SLOTS, WEEK, WEEKS = 48, 7 * 48, 3
HORIZONS: Final = (1, 2, 12, 48)  # slots ahead
NOISE_SEEDS: Final = 5
NOISE_SD: Final = {"day": 41.4, "week": 109.5, "65 days": 333.8}  # of nested zones, delta 1e-6

# Printed: mean RMSE of tables 8.3 and 8.5 (noise in training, and on inputs), and epsilons,
# samples a batch, clipping and noise of table 8.4.
MODELS: Final = {"persistence": 1503.6, "LSTM": 1254.2, "BiLSTM": 1241.6, "GRU": 1241.1, "BiGRU": 1214.3}
NOISY_MODELS: Final = {
    0.0650: (1225.7, 1235.6),
    0.0399: (1221.2, 1221.8),
    0.0357: (1225.5, 1232.9),
    0.0317: (1231.3, 1248.4),
}
DELTA, ROWS, EPOCHS = 1e-7, 3120, 100
SGD: Final = {0.0650: (5, 35), 0.0399: (5, 70), 0.0357: (10, 140), 0.0317: (5, 500)}
ORDERS: Final = [*range(2, 256), *(int(1.02**k) for k in range(280, 480))]
TFP_ORDER: Final = 512  # the largest Rényi order of the accountant that the thesis used
INPUT_PRINTED: Final = {0.0650: 202.8, 0.0399: 124.5, 0.0357: 111.4, 0.0317: 98.9}
INPUT_SD: Final = {0.0650: 88.0, 0.0399: 143.3, 0.0357: 160.1, 0.0317: 180.3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Backtest:
    """Errors of one step on whole weeks, by week: root mean squares, shape (weeks, zones).

    coverage : share of values inside the intervals of `LEVELS`, shape (levels, zones)
    """

    model: Floats
    persistence: Floats
    week_ago: Floats
    coverage: Floats


def read_series(path: Path) -> Series:
    """Counts of a file on the grid of all half hours from its first day on; days that it lacks are NaN."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    zones = [name for name in rows[0] if name not in NO_ZONES]
    first, last = (date.fromisoformat(rows[place]["Date"]) for place in (0, -1))
    values = np.full((((last - first).days + 1) * SLOTS, len(zones)), np.nan)
    for row in rows:
        hour, minute = map(int, row["Hour"].split(":")[:2])
        slot = (date.fromisoformat(row["Date"]) - first).days * SLOTS + 2 * hour + minute // 30
        values[slot] = [float(row[zone]) for zone in zones]
    return Series(values=values, slots_per_day=SLOTS, first_slot=first.weekday() * SLOTS)


def backtest(series: Series, *, weeks: int = WEEKS) -> Backtest:
    """Fit before each of the last weeks, and forecast its half hours one by one."""
    found: dict[str, list[Floats]] = {"model": [], "persistence": [], "week_ago": []}
    inside = []
    for week in range(weeks, 0, -1):
        origin = len(series.values) - week * WEEK
        until = series.until(origin + WEEK)
        errors = backtest_errors(until, 1, origins=[origin])
        found["model"].append(rmse(errors))
        found["persistence"].append(rmse(last_value_errors(until, 1, first=origin)))
        found["week_ago"].append(rmse(last_value_errors(until, 1, first=origin, lag=WEEK)))
        before = series.until(origin)
        widths = half_width(backtest_errors(before, 1, origins=[origin - 2 * WEEK]))
        sizes = np.abs(errors[~np.isnan(errors).any(axis=1)])
        inside.append([(sizes <= width).mean(axis=0) for width in widths])
    stacked = {name: np.stack(each) for name, each in found.items()}
    return Backtest(**stacked, coverage=np.mean(inside, axis=0))


def coverage_ahead(series: Series, *, every: int = 1) -> dict[int, Floats]:
    """Share of values inside the intervals, by horizon: (levels, zones), on the days of the last weeks.

    Each day is forecast as in use: model and intervals are of the days before it. every : of these days
    """
    inside: dict[int, list[Floats]] = {horizon: [] for horizon in HORIZONS}
    for day in range(WEEKS * 7, 0, -every):
        origin = len(series.values) - day * SLOTS
        errors = errors_by_horizon(series.until(origin + SLOTS), HORIZONS, origins=[origin])
        cut = origin - CALIBRATION_DAYS * SLOTS
        before = errors_by_horizon(series.until(origin), HORIZONS, origins=[cut])
        for horizon, of_day, earlier in zip(HORIZONS, np.abs(errors), before, strict=True):
            inside[horizon].append(of_day <= half_width(earlier)[:, None])
    return {horizon: np.concatenate(each, axis=1).mean(axis=1) for horizon, each in inside.items()}


def rmse(errors: Floats) -> Floats:
    """Root of the mean square error of each zone."""
    roots: Floats = np.sqrt(np.nanmean(errors**2, axis=0))
    return roots


@cache
def on_training_days() -> Backtest:
    """The backtest of the 65 days that are published with the software."""
    return backtest(read_series(TRAINING))


def with_noise(series: Series, sd: float) -> float:
    """Mean RMSE of the true counts if noise of `sd` is on all counts that the model reads."""
    means = []
    for seed in range(NOISE_SEEDS):
        noise = _noise(sd, shape=series.values.shape, seed=seed)
        noisy = Series(values=series.values + noise, slots_per_day=SLOTS, first_slot=series.first_slot)
        for week in range(WEEKS, 0, -1):
            origin = len(series.values) - week * WEEK
            end = origin + WEEK
            errors = backtest_errors(noisy.until(end), 1, origins=[origin]) - noise[origin:end]
            means.append(float(rmse(errors).mean()))
    return float(np.mean(means))


def _noise(sd: float, *, shape: tuple[int, ...], seed: int) -> Floats:
    """Discrete Gaussian noise, as slots get it."""
    noise = SlotNoise(variance=Fraction(sd) ** 2, slots_per_day=SLOTS, levels=2, delta=Fraction(1, 10**6))
    slots, zones = np.indices(shape)
    key = KeyedPrf(seed.to_bytes(16))
    drawn = slot_noise_counts(noise, prf=key, slots=slots.ravel(), zones=zones.ravel(), plan_version=1)
    return drawn.reshape(shape).astype(np.float64)


def printed_epsilon(batch: int, noise: float) -> float:
    """Epsilon of table 8.4: the bound at the accountant's largest order; the last term is a floor."""
    rate, steps = batch / ROWS, EPOCHS * ROWS / batch
    return TFP_ORDER * steps * rate**2 / (2 * noise**2) + math.log(1 / DELTA) / (TFP_ORDER - 1)


def input_epsilons(noise: float) -> tuple[float, float]:
    """Epsilon of a person in all slots of the training days under input noise: one zone, and nested zones."""
    rho = ROWS / (2 * noise**2)
    return gaussian_epsilon(rho, delta=DELTA), gaussian_epsilon(2 * rho, delta=DELTA)


def sgd_epsilon(batch: int, noise: float) -> float:
    """Epsilon of the same training by Rényi orders without a limit (Mironov, Talwar, Zhang 2019)."""
    rate, steps = batch / ROWS, EPOCHS * ROWS / batch
    return min(
        steps * _renyi(rate, noise, order) + math.log1p(-1 / order) - math.log(DELTA * order) / (order - 1)
        for order in ORDERS
    )


def _renyi(rate: float, noise: float, order: int) -> float:
    """Rényi divergence of the Gaussian mechanism on a Poisson sample, whole order."""
    k = np.arange(order + 1)
    log_choose = gammaln(order + 1) - gammaln(k + 1) - gammaln(order - k + 1)
    terms = log_choose + k * math.log(rate) + (order - k) * math.log1p(-rate) + (k * k - k) / (2 * noise**2)
    return float(np.logaddexp.reduce(terms)) / (order - 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("series", type=Path, nargs="?", default=TRAINING, metavar="FILE")
    options = parser.parse_args()
    series = read_series(options.series)
    _print_measured(series)
    sys.stdout.write("".join(f"{line}\n" for line in printed_lines()))


def printed_lines() -> list[str]:
    """Figures of the thesis with what is computed of them, a line each."""
    lines = ["table 8.3, last week of the full series, as printed, not computed here (mean RMSE):"]
    lines += [f"  {name} {error:,.1f}" for name, error in MODELS.items()]
    lines.append(
        "tables 8.4 and 8.5: printed epsilon, what it promises, mean RMSE as printed, not computed here:"
    )
    for epsilon, (batch, noise) in SGD.items():
        floor, exact = printed_epsilon(batch, noise), sgd_epsilon(batch, noise)
        one, nested = input_epsilons(INPUT_SD[epsilon])
        training, inputs = NOISY_MODELS[epsilon]
        lines += [
            f"  noise in training {epsilon}: {floor:.4f} by orders up to {TFP_ORDER}, {exact:.4f} by all, "
            f"of a row, not of a person; RMSE {training:,.1f}",
            f"  noise on inputs {epsilon:.4f} (deviation {INPUT_SD[epsilon]}): of a person in one slot; in "
            f"all slots {one:.2f}, with nested zones {nested:.2f}, printed {INPUT_PRINTED[epsilon]}; "
            f"RMSE {inputs:,.1f}",
        ]
    return lines


def _print_measured(series: Series) -> None:
    found = backtest(series)
    for name in ("model", "persistence", "week_ago"):
        weeks = getattr(found, name)
        by_week = ", ".join(f"{week:,.1f}" for week in weeks.mean(axis=1))
        sys.stdout.write(f"{name}: mean RMSE {weeks.mean():,.1f} (by week: {by_week})\n")
    for level, shares in zip(LEVELS, found.coverage, strict=True):
        low, high = 100 * shares.min(), 100 * shares.max()
        sys.stdout.write(f"intervals of {level:.0%} contain {low:.1f}% to {high:.1f}% by zone\n")
    for horizon, by_level in coverage_ahead(series).items():
        ranges = [
            f"{level:.0%}: {shares.min():.1%} to {shares.max():.1%} (mean {shares.mean():.1%})"
            for level, shares in zip(LEVELS, by_level, strict=True)
        ]
        sys.stdout.write(f"{horizon} slots ahead, refitted each day, by zone: {', '.join(ranges)}\n")
    for name, sd in NOISE_SD.items():
        more = 100 * (with_noise(series, sd) / found.model.mean() - 1)
        sys.stdout.write(f"noise for epsilon 1 of a person's {name} (deviation {sd}): {more:+.2f}%\n")


if __name__ == "__main__":
    main()
