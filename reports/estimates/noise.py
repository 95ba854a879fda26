"""Presence noise of a study as its readers need it: how noisy a window is, and what can be said of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from ldp import GrrChannel, NoReportsError, PlanSpec
from ldp.estimation.noisy_estimators import (
    NoisyTotal,
    UnionNoise,
    noisy_frequencies,
    noisy_total,
    noisy_visitors,
)
from ldp.privacy.plans import ReportChannel
from ldp.privacy.presence import PresenceSpec
from ldp.protocols.geometric import GeometricChannel
from reports.studies.models import Study


class Figures(NamedTuple):
    """Estimates of all categories of a window: shares, and persons; named as the fields of an Estimate."""

    frequency: Sequence[float]
    std_error: Sequence[float]
    ci_low: Sequence[float]
    ci_high: Sequence[float]
    consistent: Sequence[float]
    visitors: Sequence[float | None]
    visitors_ci_low: Sequence[float | None]
    visitors_ci_high: Sequence[float | None]

    def scaled(self, factor: float) -> "Figures":
        """Return the same, scaled to a number of persons per visitor."""
        names = ("visitors", "visitors_ci_low", "visitors_ci_high")
        return self._replace(**{name: [factor * each for each in getattr(self, name)] for name in names})


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitorNoise:
    """Noise of a study's numbers of visitors.

    Parameters
    ----------
    channel : of each gap cell
    through : last day whose totals are here; those of later days are 0 and without noise
    max_days : first days of a subscriber that count
    level : of every interval
    """

    channel: GeometricChannel
    through: int
    max_days: int
    level: float = 0.95

    def n_cells(self, *, first_day: int, last_day: int) -> int:
        """Noisy cells of a window; 0 = nothing of it is here yet."""
        return first_day * max(0, min(last_day, self.through) - first_day + 1)

    def total(self, count: int, *, first_day: int, last_day: int) -> NoisyTotal | None:
        """Visitors of a window with their interval; None = nothing of it is here yet."""
        n_cells = self.n_cells(first_day=first_day, last_day=last_day)
        if n_cells == 0:
            return None
        return noisy_total(count, noise=UnionNoise(channel=self.channel, n_cells=n_cells), level=self.level)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerNoise:
    """Noise of the answers to an indicator, and of the visitors."""

    visitors: VisitorNoise
    channel: GeometricChannel

    def figures(
        self,
        counts: NDArray[np.int64],
        *,
        n_visitors: int,
        channel: ReportChannel,
        first_day: int,
        last_day: int,
    ) -> Figures | None:
        """Return estimates from a window's noisy counts; None = they could be noise alone."""
        total = self.visitors.total(n_visitors, first_day=first_day, last_day=last_day)
        if total is None:
            return None
        try:
            found = noisy_frequencies(
                counts,
                n_visitors=n_visitors,
                noise=self.of_window(first_day=first_day, last_day=last_day),
                channel=cast(GrrChannel, channel),  # the plan allows presence noise for no other
                level=self.visitors.level,
            )
            of_visitors = noisy_visitors(found, total=total)
        except NoReportsError:
            return None
        shares = (found.frequency, found.std_error, found.ci_low, found.ci_high, found.consistent)
        return Figures(*(column.tolist() for column in (*shares, *of_visitors)))

    def of_window(self, *, first_day: int, last_day: int) -> UnionNoise:
        """Return the noise of each count of answers; that of one cell where nothing is here yet."""
        n_cells = self.visitors.n_cells(first_day=first_day, last_day=last_day)
        return UnionNoise(channel=self.channel, n_cells=max(n_cells, 1))


def has_totals(study: Study, visitors: NDArray[np.int64]) -> bool:
    """Return whether anything of a study is here, by its `visitor_unions`."""
    if study.presence is not None:
        return study.noisy_through > 0
    return bool(visitors[1, study.days])


def noisy_window(
    study: Study, visitors: NDArray[np.int64], *, first_day: int, last_day: int
) -> NoisyTotal | None:
    """Visitors of a window with their interval; None = they are exact, or not here yet."""
    noise = visitor_noise(study)
    if noise is None:
        return None
    return noise.total(int(visitors[first_day, last_day]), first_day=first_day, last_day=last_day)


def noisy_first_time(study: Study, visitors: NDArray[np.int64], *, day: int) -> NoisyTotal | None:
    """Visitors of a day who were on no earlier one, with their interval; None = as in `noisy_window`.

    They are counted in one gap cell, of those who come to the day from none: all other noise cancels.
    """
    noise = visitor_noise(study)
    if noise is None:
        return None
    count = int(visitors[1, day] - visitors[1, day - 1])
    return noise.total(count, first_day=1, last_day=1) if day <= noise.through else None


def visitor_noise(study: Study) -> VisitorNoise | None:
    """Noise of the totals of a study; None = they are exact."""
    if study.presence is None:
        return None
    spec = PresenceSpec.from_json(study.presence)
    return VisitorNoise(
        channel=spec.noise(codes_a_day=1).channel, through=study.noisy_through, max_days=spec.max_days
    )


def answer_noise(plan: PlanSpec, study: Study) -> AnswerNoise | None:
    """Noise of the answers of a study; None = they are counted exactly."""
    of_visitors = visitor_noise(study)
    if plan.answer_noise is None or of_visitors is None:
        return None
    return AnswerNoise(visitors=of_visitors, channel=plan.answer_noise.channel)
