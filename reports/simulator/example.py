"""A made-up day: shares that no one has measured, with the noise that the plan would really add.

The noise comes from the kernels that sanitise, with a key that everyone knows: the same setting always shows
the same picture, and it is worth nothing as protection.
"""

from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from typing import Final, cast

import numpy as np
from django.utils.translation import gettext
from numpy.typing import NDArray

from ldp import (
    NO_ANSWER,
    Estimates,
    GrrChannel,
    KeyedPrf,
    NoReportsError,
    PlanSpec,
    Sanitiser,
    pure_frequencies,
    tally_static,
)
from ldp.estimation.estimators import ENDLESS
from ldp.estimation.noisy_estimators import UnionNoise, noisy_frequencies
from ldp.estimation.numbers.wave import wave_survival
from ldp.estimation.partial.regions import region_frequencies
from ldp.estimation.simulation import has_union
from ldp.keyed.noise.presence import noise_delta
from ldp.keyed.tallying import tally_words
from ldp.protocols.numbers.wave import WaveChannel
from ldp.protocols.partial.regions import RegionChannel
from ldp.protocols.projective_space import value_counts, value_reports
from reports.base.formats import percent
from reports.base.status import Status, estimates_status
from reports.estimates.charts import Figure, report_figure
from reports.estimates.queries import Estimate, Window, WindowReport
from reports.studies.models import Indicator, Study
from reports.studies.plan_models import Plan

Words = NDArray[np.uint64]

# Drawn people, and their bits: more would take longer than a page should.
MOST_PEOPLE: Final = 200_000
MOST_BITS: Final = 20_000_000
MOST_BARS: Final = 40
_KEY: Final = bytes(range(16))
_DAY: Final = date(2000, 1, 1)  # nothing shows it


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Example:
    """A made-up day of one indicator.

    n_visitors, n_reports : int; drawn, which may be fewer than are expected
    truth : ndarray of float64, shape (domain_size,); made up; of a number the shares that reach each cut
    estimates : what would be published of it
    """

    n_visitors: int
    n_reports: int
    truth: NDArray[np.float64]
    estimates: Estimates


@lru_cache(maxsize=512)
def example_shares(domain_size: int) -> tuple[float, ...]:
    """Made-up shares that fall as 1, 1/2, 1/3, ... do: some categories are large, most are small."""
    falling = 1 / np.arange(1, domain_size + 1)
    return tuple((falling / falling.sum()).tolist())


@lru_cache(maxsize=64)
def draw_example(plan: PlanSpec, index: int, *, n_visitors: int) -> Example | None:
    """Sanitise and estimate a made-up day; None if no one answers."""
    asked = plan.indicators[index]
    k = asked.n_values
    people = np.arange(min(n_visitors, MOST_PEOPLE, MOST_BITS // k), dtype=np.uint64)
    ends = np.rint(np.cumsum(example_shares(k)) * people.size).astype(np.int64)
    values = np.searchsorted(ends, people.astype(np.int64), side="right").astype(np.int32)
    words = _reports(plan, index, people, values)
    sent = words[words[:, 0] != NO_ANSWER]
    if not sent.size:
        return None
    codes = _codes(sent, plan=plan, index=index)
    about = value_reports(codes, np.array(sent.shape[0]), channel=plan.channel(index))
    if np.min(about) == 0:  # on a cut of a number
        return None
    try:
        estimates = _estimates(codes, n_reports=about, n_population=people.size, plan=plan, index=index)
    except NoReportsError:  # they could be presence noise alone
        return None
    truth = np.bincount(values, minlength=k) / people.size
    return Example(
        n_visitors=people.size,
        n_reports=sent.shape[0],
        truth=truth if asked.scale is None else np.cumsum(truth[:0:-1])[::-1],
        estimates=estimates,
    )


def example_report(example: Example, *, question: str) -> WindowReport:
    """A made-up day as pages show reports; its study and its categories exist nowhere else."""
    found = example.estimates
    status = estimates_status(Status.OK, ci_low=found.ci_low.tolist(), ci_high=found.ci_high.tolist())
    columns = zip(
        found.frequency.tolist(),
        found.std_error.tolist(),
        found.ci_low.tolist(),
        found.ci_high.tolist(),
        found.consistent.tolist(),
        strict=True,
    )
    n = example.n_visitors
    estimates = tuple(
        Estimate(
            category=gettext("Category %(n)d") % {"n": code + 1},
            reports=None,
            frequency=frequency,
            std_error=error,
            ci_low=low,
            ci_high=high,
            consistent=consistent,
            visitors=frequency * n,
            visitors_ci_low=low * n,
            visitors_ci_high=high * n,
            status=status,
        )
        for code, (frequency, error, low, high, consistent) in enumerate(columns)
    )
    return _report(example, question=question, estimates=estimates, status=status)


def example_figure(example: Example, *, question: str) -> Figure:
    """Bars and intervals as in reports, and a mark at each made-up share; of the first categories only."""
    report = example_report(example, question=question)
    figure = report_figure(replace(report, estimates=report.estimates[:MOST_BARS]))
    truth = example.truth[:MOST_BARS].tolist()
    places = list(range(len(truth)))
    figure["data"].append(
        {
            "type": "scatter",
            "mode": "markers",
            "y": places,
            "x": [round(100 * share, 4) for share in truth],
            "marker": {"symbol": "diamond", "size": 9, "color": "--chart-2"},
            "hovertext": [
                gettext("true share in the made-up data: %(share)s") % {"share": percent(share)}
                for share in truth
            ],
            "hoverinfo": "text",
        }
    )
    return figure


def _reports(plan: PlanSpec, index: int, people: Words, values: NDArray[np.int32]) -> NDArray[np.uint16]:
    """Return the reports of a day, as words; those who send nothing may be left out."""
    sanitiser = Sanitiser(plan, KeyedPrf(_KEY))
    sends = np.ones(people.size, np.bool_)
    if plan.is_sampled:
        sends = sanitiser.asked(people) == index
    if not has_union(plan, index):
        sends &= (sanitiser.answer_days(index, people) & np.uint64(1)).astype(np.bool_)
    people, values = people[sends], values[sends]
    if not plan.has_fakes:
        return sanitiser.report(index, people, values, day=1)
    nothing = np.full(people.size, -1, np.int32)
    return sanitiser.reports(people, [values if each == index else nothing for each in range(plan.d)])[index]


def _estimates(
    codes: NDArray[np.int64], *, n_reports: NDArray[np.int64], n_population: int, plan: PlanSpec, index: int
) -> Estimates:
    """Return the publication of the last day, which has the most noisy cells if presence is hidden."""
    channel, noise = plan.channel(index), plan.answer_noise
    if isinstance(channel, WaveChannel):
        return wave_survival(codes, channel=channel, n_population=n_population)
    if isinstance(channel, RegionChannel):
        return region_frequencies(codes, channel=channel, n_population=n_population)
    support = value_counts(codes, channel=channel)
    if noise is None:
        n_population = n_population if plan.indicators[index].moves is None else ENDLESS
        return pure_frequencies(support, n_reports=n_reports, n_population=n_population, channel=channel)
    drawn = noise_delta(plan, prf=KeyedPrf(_KEY), first_day=plan.days, last_day=plan.days)
    return noisy_frequencies(
        support + drawn.counts[index][:, :, plan.days].sum(axis=1),
        n_visitors=n_population + int(drawn.visitors[:, plan.days].sum()),
        noise=UnionNoise(channel=noise.channel, n_cells=plan.days),
        channel=cast(GrrChannel, channel),  # the plan allows presence noise for no other
    )


def _codes(words: NDArray[np.uint16], *, plan: PlanSpec, index: int) -> NDArray[np.int64]:
    """Reports by code: the gap tally of a study of one day."""
    counts = np.zeros((plan.tally_sizes[index], 2, 2), np.int64)
    present = np.ones(words.shape[0], np.uint64)
    if plan.is_unary(index):
        tally_words(present, words, counts, np.zeros((2, 2), np.int64), sign=1)
    else:
        tally_static(present, np.ascontiguousarray(words[:, 0]), counts, sign=1)
    return counts[:, 0, 1]


def _report(
    example: Example, *, question: str, estimates: tuple[Estimate, ...], status: Status
) -> WindowReport:
    study = Study(market_share=1, days=1, first_day=_DAY, small_cell=0)
    return WindowReport(
        study=study,
        indicator=Indicator(study=study, name=question),
        window=Window(1, 1),
        first_date=_DAY,
        last_date=_DAY,
        plan=Plan(study=study),
        plan_version=1,
        mechanism="",
        epsilon=0.0,
        unit="",
        is_unary=False,
        has_fakes=False,
        n_visitors=example.n_visitors,
        n_reports=example.n_reports,
        estimates=estimates,
        status=status,
        notes=(),
    )
