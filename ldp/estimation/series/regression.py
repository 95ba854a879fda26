"""Ridge regressions of changes in counts by zone, for several horizons at once.

Horizons share most features, and their inverse; each adds a few features by a block inverse. Outliers are
drawn in by refitting to winsorised targets (Huber 1981): all refits use the same inverse.
"""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp.estimation.series.grid import Floats, Series

ALPHA: Final = 1000.0
REFITS: Final = 2  # three more change errors on the series of Paris by less than 0.01%
CLIP: Final = 2.5  # of the residuals' robust standard deviation
TO_SD: Final = 1.4826  # of a normal variable, from its median absolute value
STEP_DAYS: Final = (1, 2, 3, 7, 14)
MEAN_DAYS: Final = 14
DAY_HARMONICS, WEEK_HARMONICS = 4, 3
JOINT_ZONES: Final = 20  # above: own zone, sum, and components; lags in groups
COMPONENTS: Final = 5
LAG_GROUPS: Final = 8  # of growing width

Integers = NDArray[np.int64]
Singles = NDArray[np.float32]  # exact enough: the ridge keeps condition numbers below a thousand


class Regression:
    """The regressions of some horizons, fitted to a series of more than `MEAN_DAYS` days.

    With many zones each has its own, on its values, the sum of all, and their first principal components.
    """

    def __init__(self, series: Series, horizons: Sequence[int]) -> None:
        filled = series.filled()
        self._axes = None if filled.shape[1] <= JOINT_ZONES else _components(filled)
        features = _Features(series, filled, self._axes)
        rows = np.arange(MEAN_DAYS * series.slots_per_day + 1, len(filled))
        targets: Floats = np.stack([_targets(series, filled, rows, horizon) for horizon in horizons])
        is_used = (~np.isnan(targets).any(axis=2)).any(axis=0)
        rows, targets = rows[is_used], targets[:, is_used]
        common = _Common(features.past(rows))
        own = None if self._axes is None else _Scaled(features.past_of_zones(rows))
        self._horizons = tuple(horizons)
        self._fits = [
            _Fit(
                common.extended(features.of_horizon(rows, horizon)),
                None if own is None else own.extended(features.changes_of_zones(rows, horizon)),
                wanted,
            )
            for horizon, wanted in zip(horizons, targets, strict=True)
        ]

    def steps(self, series: Series, filled: Floats, nexts: Integers) -> Floats:
        """Expected changes from the slots before `nexts` to those horizon - 1 after them.

        nexts : for each horizon, shape (horizons, n). Returns float64, shape (horizons, n, zones).
        """
        features = _Features(series, filled, self._axes)
        first = int(nexts.min())
        every = np.arange(first, int(nexts.max()) + 1)
        past = features.past(every)
        own = None if self._axes is None else features.past_of_zones(every)
        parts = []
        for horizon, fit, at in zip(self._horizons, self._fits, nexts, strict=True):
            common = np.hstack([past[at - first], features.of_horizon(at, horizon)])
            zones = None
            if own is not None:
                changes = features.changes_of_zones(at, horizon)
                zones = np.concatenate([own[at - first], changes], axis=2)
            parts.append(fit.at(common, zones))
        return np.stack(parts)


class _Features:
    """Features of slots, from the values before them only."""

    def __init__(self, series: Series, filled: Floats, axes: Floats | None) -> None:
        self._series, day = series, series.slots_per_day
        if axes is None:
            self._columns = _Past(filled, day=day, edges=np.arange(1, day + 2))
        else:
            edges = np.unique(np.rint(np.geomspace(1, day + 1, LAG_GROUPS + 1)).astype(np.int64))
            sums = np.hstack([filled.sum(axis=1, keepdims=True), filled @ axes])
            self._columns = _Past(sums, day=day, edges=edges)
            self._zones = _Past(filled, day=day, edges=edges)

    def past(self, nexts: Integers) -> Floats:
        """Values of all zones, or of what stands for them: (n, features)."""
        return self._columns.before(nexts).reshape(len(nexts), -1)

    def of_horizon(self, nexts: Integers, horizon: int) -> Floats:
        """Changes on earlier days, and the clock of the slots that are forecast: (n, features)."""
        changes = self._columns.changes(nexts, horizon).reshape(len(nexts), -1)
        slots = self._series.slots_of_week(nexts + horizon - 1)
        return np.hstack([changes, _clock(slots, day=self._series.slots_per_day)])

    def past_of_zones(self, nexts: Integers) -> Floats:
        """Values of each zone: (n, zones, features)."""
        return self._zones.before(nexts)

    def changes_of_zones(self, nexts: Integers, horizon: int) -> Floats:
        """Changes of each zone on earlier days: (n, zones, features)."""
        return self._zones.changes(nexts, horizon)


class _Past:
    """Features of past values; edges : lags at which groups of lags begin, and the end of the last."""

    def __init__(self, values: Floats, *, day: int, edges: Integers) -> None:
        self._values, self._day, self._edges = values, day, edges
        self._sums = np.vstack([np.zeros(values.shape[1]), np.cumsum(values, axis=0)])
        # Mean of the same slot on the days before, also of slots up to a day after the last.
        self._means = np.full((len(values) + day, values.shape[1]), np.nan)
        slots = np.arange(MEAN_DAYS * day, len(self._means))
        self._means[slots] = np.mean([values[slots - back * day] for back in range(1, MEAN_DAYS + 1)], axis=0)

    def before(self, nexts: Integers) -> Floats:
        """Lags, and how far the last value is from those of earlier days: (n, columns, features)."""
        values, last = self._values, nexts - 1
        if len(self._edges) > self._day:
            parts = [values[nexts - lag] for lag in self._edges[:-1]]
        else:
            sums = [self._sums[nexts - edge + 1] for edge in self._edges]
            widths = np.diff(self._edges)
            parts = [(sums[i] - sums[i + 1]) / widths[i] for i in range(len(widths))]
        parts += [values[last] - values[last - self._day], values[last] - values[last - 7 * self._day]]
        parts.append(values[last] - self._means[last])
        return np.stack(parts, axis=2)

    def changes(self, nexts: Integers, horizon: int) -> Floats:
        """Return changes over the horizon on earlier days, and their mean: (n, columns, features)."""
        last = nexts - 1
        backs = [last - back * self._day for back in STEP_DAYS]
        parts = [self._values[back + horizon] - self._values[back] for back in backs]
        parts.append(self._means[last + horizon] - self._means[last])
        return np.stack(parts, axis=2)


class _Scaled:
    """Standardised features, shape (n, ...), and what standardises them."""

    def __init__(self, features: Floats) -> None:
        self.mean, scale = features.mean(axis=0), features.std(axis=0)
        self.scale = np.where(scale > 0, scale, 1.0)
        self.x = self.of(features)

    def of(self, features: Floats) -> Singles:
        scaled: Singles = ((features - self.mean) / self.scale).astype(np.float32)
        return scaled

    def extended(self, features: Floats) -> "_Scaled":
        """Return these features with more of the same rows."""
        more = _Scaled(features)
        both = object.__new__(_Scaled)
        both.mean = np.concatenate([self.mean, more.mean], axis=-1)
        both.scale = np.concatenate([self.scale, more.scale], axis=-1)
        both.x = np.concatenate([self.x, more.x], axis=-1)
        return both


class _Common:
    """Features that all zones share, and the inverse of their ridge."""

    def __init__(self, features: Floats) -> None:
        self.scaled = _Scaled(features)
        self.inverse = np.linalg.inv(_ridge(self.scaled.x))

    def extended(self, features: Floats) -> "_Common":
        """Return these features with more of the same rows, by a block inverse."""
        both = object.__new__(_Common)
        both.scaled = self.scaled.extended(features)
        n = self.scaled.x.shape[1]
        x, more = both.scaled.x[:, :n], both.scaled.x[:, n:]
        cross = x.T @ more
        through = self.inverse @ cross
        rest = np.linalg.inv(_ridge(more) - cross.T @ through)
        corner = -through @ rest
        both.inverse = np.block([[self.inverse - corner @ through.T, corner], [corner.T, rest]])
        return both


def _ridge(x: Singles) -> Singles:
    ridge: Singles = x.T @ x + ALPHA * np.eye(x.shape[1], dtype=np.float32)
    return ridge


class _Fit:
    """Regression on common and own features, refitted to winsorised targets.

    targets : (n, zones); rows with a NaN count as fitted exactly, and so do not pull
    """

    def __init__(self, common: _Common, own: _Scaled | None, targets: Floats) -> None:
        self._common, self._own = common.scaled, own
        is_known = np.asarray(np.isfinite(targets).all(axis=1))
        known = targets[is_known].astype(np.float32)
        solve = _solver(common, own)
        y = np.where(is_known[:, None], targets, known.mean(axis=0)).astype(np.float32)
        for _ in range(REFITS + 1):
            self._level = np.asarray(y.mean(axis=0), np.float32)
            self._weights, self._own_weights = solve(y - self._level)
            y = self._of_standard(self._common.x, None if own is None else own.x)
            errors = known - y[is_known]
            limit = CLIP * TO_SD * np.median(np.abs(errors), axis=0)
            y[is_known] += np.clip(errors, -limit, limit).astype(np.float32)
        self._common.x = np.empty((0, 0), np.float32)
        if own is not None:
            own.x = np.empty((0, 0, 0), np.float32)

    def _of_standard(self, common: Singles, own: Singles | None) -> Singles:
        fitted: Singles = self._level + common @ self._weights
        return fitted if own is None else fitted + _by_zone(own, self._own_weights)

    def at(self, common: Floats, own: Floats | None) -> Singles:
        """Fitted values of features as measured: (n, zones)."""
        return self._of_standard(
            self._common.of(common), None if self._own is None or own is None else self._own.of(own)
        )


def _by_zone(own: Singles, weights: Singles) -> Singles:
    found: Singles = np.matmul(own.transpose(1, 0, 2), weights[:, :, None])[:, :, 0].T
    return found


def _solver(common: _Common, own: _Scaled | None) -> Callable[[Singles], tuple[Singles, Singles]]:
    """Weights of common (features, zones) and own features (zones, features) for centred targets."""
    x, inverse = common.scaled.x, common.inverse
    if own is None:
        return lambda y: (inverse @ (x.T @ y), y[:0])
    n, zones, k = own.x.shape
    of_zones = own.x.transpose(1, 2, 0)  # (zones, k, n)
    cross = x.T @ own.x.reshape(n, zones * k)
    through = (inverse @ cross).reshape(-1, zones, k).transpose(1, 0, 2)
    cross = cross.reshape(-1, zones, k).transpose(1, 2, 0)
    ridge = np.matmul(of_zones, own.x.transpose(1, 0, 2)) + ALPHA * np.eye(k, dtype=np.float32)
    rest = np.linalg.inv(ridge - np.matmul(cross, through))

    def solve(y: Singles) -> tuple[Singles, Singles]:
        first = inverse @ (x.T @ y)
        seen = np.matmul(of_zones, y.T[:, :, None]) - np.matmul(cross, first.T[:, :, None])
        second = np.matmul(rest, seen)
        return first - np.matmul(through, second)[:, :, 0].T, second[:, :, 0]

    return solve


def _targets(series: Series, filled: Floats, rows: Integers, horizon: int) -> Floats:
    """Changes from the slots before `rows` to those horizon - 1 after them; NaN where one is not known."""
    values = np.vstack([series.values, np.full((horizon, filled.shape[1]), np.nan)])
    wanted: Floats = values[rows + horizon - 1] - filled[rows - 1]
    return wanted


def _components(filled: Floats) -> Floats:
    """Axes of the first principal components, shape (zones, COMPONENTS)."""
    _, _, axes = np.linalg.svd(filled - filled.mean(axis=0), full_matrices=False)
    return axes[:COMPONENTS].T


def _clock(slots: Integers, *, day: int) -> Floats:
    """Harmonics of the day and of the week, shape (n, 14)."""
    turns = [2 * np.pi * k * slots / day for k in range(1, DAY_HARMONICS + 1)]
    turns += [2 * np.pi * k * slots / (7 * day) for k in range(1, WEEK_HARMONICS + 1)]
    return np.stack([wave(turn) for turn in turns for wave in (np.sin, np.cos)], axis=1)
