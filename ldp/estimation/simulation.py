"""Predict a plan's results for an assumed crowd: errors, detectable differences, other plans.

Numbers of reports are those expected (`ldp.estimation.error_curves` says what follows).
Each visitor is taken to have a value of each indicator. A union of all days has fewer visitors than the days
together, by the number of days on which a visitor is present in the mean.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache, partial
from math import inf, isfinite
from statistics import NormalDist, fmean
from typing import Any, Final, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldp.errors import LdpError, PlanError
from ldp.estimation.approximate_errors import (
    Floats,
    ReportLaws,
    code_laws,
    first_that_reaches,
    question_laws,
    report_laws,
)
from ldp.estimation.error_curves import LEVEL, ErrorCurve, error_curve
from ldp.estimation.estimators import ENDLESS
from ldp.estimation.joint.linear import CodeChannel, linear_variance
from ldp.estimation.noisy_estimators import UnionNoise, noisy_total
from ldp.estimation.numbers.threshold import mean_variance
from ldp.estimation.numbers.wave import share_noise, wave_variance
from ldp.estimation.partial import regions, sensitive
from ldp.privacy.accounting import Certificate, certify
from ldp.privacy.joint import SIDES
from ldp.privacy.plan_requests import IndicatorRequest, build_plan, suited
from ldp.privacy.plans import RENEWED, IndicatorSpec, Mechanism, PlanSpec
from ldp.protocols.channels import WORD, Unit
from ldp.protocols.numbers.threshold import Scale, ThresholdChannel
from ldp.protocols.numbers.wave import WaveChannel, wave_channel
from ldp.protocols.partial.regions import RegionChannel, region_channel
from ldp.protocols.partial.sensitive import SensitiveChannel, sensitive_channel
from ldp.protocols.projective import PRIMES

LEAST_EPSILON: Final = Decimal("0.001")  # of the search
LARGEST_EPSILON: Final = Decimal(20)
NOISE_SLACK: Final = 0.3  # of errors between epsilons of different half widths, or other jumps


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """Visitors that are expected on one day, and days on which one visitor is present; means, at least 1."""

    visitors: float
    days_present: float = 1.0

    def __post_init__(self) -> None:
        for name, value in (("visitors", self.visitors), ("days_present", self.days_present)):
            if not (isfinite(value) and value >= 1):
                raise LdpError(f"{name} must be >= 1, got {value}")

    def in_all(self, days: int) -> float:
        """Return the different visitors of `days`; LdpError if they are fewer than `days_present`."""
        if self.days_present > days:
            raise LdpError(f"days_present must be <= {days}, the days of the study, got {self.days_present}")
        return self.visitors * days / self.days_present


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Predicted results of a plan for one indicator.

    Parameters
    ----------
    index : int; position in the plan
    domain_size : int; of a number 2, below and above a cut
    day : ErrorCurve; of one day; of a number the share that reaches a cut of average spacing
    union : ErrorCurve or None; of all days together, None where a union cannot be counted
    difference : float or None; smallest difference between two days that is found, from 1 / domain_size
        upwards and with different people on both days; None = none is
    difference_shared : float or None; the same if the same people may have come on both days. A value that
        lasts keeps its answer, so its error only gets smaller: then it is `difference`
    mean_error, union_mean_error : float or None; of a number, half of the 95% interval of its mean on a day,
        and of all days together, in its unit; at its largest: of numbers of which half lie at either end. Of
        a number that is combined with categories, the mean in one of them, which are all of equal size;
        infinite where the noise is larger than the people of one
    even_mean_error : float or None; `mean_error` of a number that is no part, with levels equally common
    scale : of the number that these are about; None without one
    """

    index: int
    domain_size: int
    day: ErrorCurve
    union: ErrorCurve | None
    difference: float | None
    difference_shared: float | None
    mean_error: float | None = None
    union_mean_error: float | None = None
    even_mean_error: float | None = None
    scale: Scale | None = None

    @property
    def even(self) -> float:
        """Frequency of each value if all have the same: where errors are compared."""
        return 1 / self.domain_size


def forecast(plan: PlanSpec, *, crowd: Crowd) -> tuple[Forecast, ...]:
    """Errors of each indicator of a plan, in plan order.

    Under Smp the expected share of visitors who answer; with fakes everyone sends a report on everything. A
    daily indicator that is answered on m of D days has m / D of the answers on a day, and no union. With
    presence noise the day is the last one: it has the most noisy cells, as many as all days together.
    LdpError if the crowd is present on more days than the study has.
    """
    return tuple(_forecast(plan, index, crowd=crowd) for index in range(plan.d))


def visitors_error(plan: PlanSpec) -> int:
    """Half of the 95% interval of the visitors of the last day, and of all days; 0 if totals are exact."""
    noise = plan.visitor_noise
    if noise is None:
        return 0
    return noisy_total(0, noise=UnionNoise(channel=noise.channel, n_cells=plan.days)).ci_high


def reporting_share(plan: PlanSpec, index: int) -> Fraction:
    """Share of the visitors of a day who report on an indicator."""
    asked = plan.asked_share(index) if plan.is_sampled else Fraction(1)
    return asked * _answered_days(plan, index)


def has_union(plan: PlanSpec, index: int) -> bool:
    """Return whether a union of days can be counted: everyone who answers does so on each day of presence.

    Moves are counted by day only.
    """
    return plan.indicators[index].moves is None and _answered_days(plan, index) == 1


def _answered_days(plan: PlanSpec, index: int) -> Fraction:
    if plan.indicators[index].kind == "static":
        return Fraction(1)
    if plan.window_days is not None:
        return Fraction(1, plan.window_days)
    return Fraction(plan.values_per_person(index), plan.days)


def _curve(plan: PlanSpec, index: int, *, n_visitors: float) -> ErrorCurve:
    noise, channel = plan.answer_noise, plan.channel(index)
    if isinstance(channel, WaveChannel):
        n_reports = _reports_of_one(plan, index) * n_visitors
        return _known_curve(share_noise(channel), 0.0, n_reports=n_reports, n_visitors=n_visitors)
    if isinstance(channel, RegionChannel | SensitiveChannel):
        n_reports = _reports_of_one(plan, index) * n_visitors
        return _known_curve(*_mean_noise(channel), n_reports=n_reports, n_visitors=n_visitors)
    return error_curve(
        channel,
        n_reports=_reports_of_one(plan, index) * n_visitors,
        n_visitors=_drawn_from(plan, index, n_visitors=n_visitors),
        noise=None if noise is None else UnionNoise(channel=noise.channel, n_cells=plan.days),
    )


def _mean_noise(channel: RegionChannel | SensitiveChannel) -> tuple[float, float]:
    if isinstance(channel, RegionChannel):
        return regions.mean_noise(channel)
    return sensitive.mean_noise(channel)


def _known_curve(noise: float, slope: float, *, n_reports: float, n_visitors: float) -> ErrorCurve:
    """Errors with the noise of one report of the average cut, or value: noise + slope f."""
    sampling = max(n_visitors - n_reports, 0.0) / max(n_visitors - 1, 1) / n_reports
    terms = {"noise": noise / n_reports, "slope": slope / n_reports, "bend": sampling}
    return ErrorCurve(**terms, sampling=sampling, n_visitors=n_visitors, n_reports=n_reports)


def _drawn_from(plan: PlanSpec, index: int, *, n_visitors: float) -> float:
    """Visitors of whom reports are a sample; of moves each tells one, and all are a sample."""
    return n_visitors if plan.indicators[index].moves is None else ENDLESS


def _reports_of_one(plan: PlanSpec, index: int) -> float:
    """Reports by a visitor about one share: of threshold reports, those on a cut of average spacing."""
    spec = plan.indicators[index]
    n_cuts = 1 if spec.scale is None or spec.is_wave else spec.domain_size
    return float(reporting_share(plan, index)) / n_cuts


def _n_sides(plan: PlanSpec, index: int) -> int:
    """Number of values, which errors are taken at the mean share of; a number is below or above a cut."""
    spec = plan.indicators[index]
    return spec.domain_size if spec.scale is None else 2


def _mean_error(plan: PlanSpec, index: int, *, n_visitors: float) -> float | None:
    """Half of the 95% interval of the mean of a number; None for categories."""
    if plan.number_part(index) is not None:
        return _mean_error_by_category(plan, index, n_visitors=n_visitors)
    return _number_error(plan, index, n_visitors=n_visitors)


def _number_error(plan: PlanSpec, index: int, *, n_visitors: float, is_even: bool = False) -> float | None:
    """Half of the 95% interval of a mean, of numbers at both ends, or evenly on all levels; None without."""
    scale, channel = plan.indicators[index].scale, plan.channel(index)
    if scale is None or not isinstance(channel, ThresholdChannel | WaveChannel):
        return None
    shares = np.ones(len(scale.ends))
    if not is_even:
        shares[1:-1] = 0
    shares /= shares.sum()
    n_reports = float(reporting_share(plan, index)) * n_visitors
    if isinstance(channel, WaveChannel):
        ends, sizes = np.array([scale.ends], np.float64), {"n_reports": n_reports, "n_population": n_visitors}
        variance = float(wave_variance(shares, weights=ends, channel=channel, **sizes)[0])
    else:
        variance = mean_variance(
            1 - shares.cumsum()[:-1],
            scale=scale,
            channel=channel,
            n_reports=n_reports * np.array(channel.shares, np.float64) / WORD,
            n_population=n_visitors,
        )
    return float(NormalDist().inv_cdf((1 + LEVEL) / 2) * np.sqrt(variance))


def _mean_error_by_category(plan: PlanSpec, index: int, *, n_visitors: float) -> float | None:
    """Half of the 95% interval of the mean in a category (Fieller); infinite where noise hides its people."""
    scale, channel = _scale_of(plan, index), plan.answer_channel(index)
    if scale is None or not isinstance(channel, CodeChannel):
        return None
    parts = [plan.indicators[plan.index(part)] for part in plan.indicators[index].parts]
    codes = np.arange(channel.domain_size).reshape([part.part_size + 1 for part in parts])
    sides = (codes.T if parts[0].scale is not None else codes)[:-1, :SIDES]
    shares = np.zeros(channel.domain_size)
    shares[sides] = 1 / sides.size
    weights = np.zeros(channel.domain_size)
    weights[sides[0]] = -0.5, 0.5
    n_reports = max(1, int(float(reporting_share(plan, index)) * n_visitors))
    difference, size = (
        linear_variance(shares, weights=each, channel=channel, n_reports=n_reports, n_population=ENDLESS)
        for each in (weights, 2 * np.abs(weights))
    )
    z = NormalDist().inv_cdf((1 + LEVEL) / 2) * len(sides)
    if z**2 * size >= 1:
        return inf
    reach = scale.cuts[-1] - scale.minimum
    return float(z * reach * np.sqrt(difference / (1 - z**2 * size)))


def _scale_of(plan: PlanSpec, index: int) -> Scale | None:
    """Scale of a number, or of the one that a joint indicator has as a part."""
    place = plan.number_part(index)
    return plan.indicators[index if place is None else place].scale


def _forecast(plan: PlanSpec, index: int, *, crowd: Crowd) -> Forecast:
    spec = plan.indicators[index]
    day = _curve(plan, index, n_visitors=crowd.visitors)
    whole = crowd.in_all(plan.days)
    has_all, even = has_union(plan, index), 1 / _n_sides(plan, index)
    apart = day.smallest_difference(even)
    is_daily = spec.kind == "daily" or plan.is_renewed(index)
    return Forecast(
        index=index,
        domain_size=_n_sides(plan, index),
        day=day,
        union=_curve(plan, index, n_visitors=whole) if has_all else None,
        difference=apart,
        difference_shared=day.smallest_difference(even, is_shared=True) if is_daily else apart,
        mean_error=_mean_error(plan, index, n_visitors=crowd.visitors),
        union_mean_error=_mean_error(plan, index, n_visitors=whole) if has_all else None,
        even_mean_error=_number_error(plan, index, n_visitors=crowd.visitors, is_even=True),
        scale=_scale_of(plan, index),
    )


# --- the other way --------------------------------------------------------------------------


def epsilon_for_plan(
    plan_at: Callable[[Decimal], PlanSpec],
    *,
    half_width: float,
    crowd: Crowd,
    indexes: Iterable[int],
    of_union: bool = False,
) -> Decimal:
    """Smallest epsilon, to a thousandth, with which all of some indicators are as exact as wanted.

    Parameters
    ----------
    plan_at : callable; the plan for an epsilon as an administrator types it
    half_width : float; largest half of a 95% interval at the frequency 1 / domain_size, above 0
    crowd : Crowd
    indexes : iterable of int; positions of the indicators
    of_union : of all days together instead of one day

    Raises
    ------
    LdpError : an indicator has no union, or no epsilon of [0.001, 20] will do; the message names what can be
        reached

    Notes
    -----
    The error of an adaptive mechanism does not always fall as epsilon rises, so every thousandth is looked at
    (`ldp.estimation.approximate_errors`).
    """
    chosen = list(indexes)
    most = int(LARGEST_EPSILON / LEAST_EPSILON)

    def error(thousandths: int) -> float:
        plan = plan_at(thousandths * LEAST_EPSILON)
        return max(_half_width(plan, index, crowd=crowd, of_union=of_union) for index in chosen)

    def exactly(at: int) -> float:
        try:
            return error(at + 1)
        except LdpError:  # presence noise needs GRR, which small epsilons do not choose
            return inf

    best = error(most)
    steps = [Fraction(thousandths, 1000) for thousandths in range(1, most + 1)]
    plan, before = (plan_at(each) for each in (LARGEST_EPSILON, LARGEST_EPSILON - LEAST_EPSILON))
    laws = _laws(plan, steps)
    for index in chosen:
        if plan.indicators[index].epsilon == before.indicators[index].epsilon:  # it has its own
            laws[index] = _laws(plan, [plan.indicators[index].epsilon] * most)[index]
    curves = [_nearly(plan, index, laws[index], crowd=crowd, of_union=of_union) for index in chosen]
    nearly = np.max(curves, axis=0)
    found = first_that_reaches(nearly, laws, exactly=exactly, wanted=half_width)
    if found is None:
        raise LdpError(f"half_width must be >= {best:.6g}, that of epsilon 20, got {half_width:.6g}")
    return (found + 1) * LEAST_EPSILON


def most_categories(
    plan_of: Callable[[int], PlanSpec], *, index: int, fewer_than: int, half_width: float, crowd: Crowd
) -> int | None:
    """Most categories of an indicator, below a number, with which a day is as exact as wanted; None: not two.

    Parameters
    ----------
    plan_of : callable; the plan with this number of categories of the indicator, at least 2
    index : int; position of the indicator
    half_width : float; largest half of a 95% interval at the frequency 1 / domain_size, above 0
    crowd : Crowd

    Notes
    -----
    All numbers are looked at, from the largest on: the error may also fall as they grow, where a smaller
    average frequency has a smaller sampling error, or OUE takes over.
    """
    counts = range(2, fewer_than)
    plan = plan_of(2)
    spec, sizes = plan.indicators[index], np.array(counts, np.int64)
    typed = plan.epsilon or spec.epsilon * (plan.d if plan.mechanism.startswith("spl") else 1)
    law = _laws(plan, [typed] * len(counts), {index: sizes})[index]
    nearly = _nearly(plan, index, law, crowd=crowd, of_union=False, sizes=sizes)

    def exactly(at: int) -> float:
        return _half_width(plan_of(counts[at]), index, crowd=crowd, of_union=False)

    backwards = range(len(counts) - 1, -1, -1)
    found = first_that_reaches(nearly, [law], exactly=exactly, wanted=half_width, order=backwards)
    return None if found is None else counts[found]


def _laws(
    plan: PlanSpec, epsilons: Sequence[Fraction], sizes: Mapping[int, ArrayLike] | None = None
) -> list[ReportLaws]:
    """Return laws of plans like this one with other epsilons, as typed, and other numbers of categories."""
    asked: dict[str, Any] = {"unit": plan.unit, "epsilons": epsilons}
    wanted = [(sizes or {}).get(i, _n_sides(plan, i)) for i in range(plan.d)]
    laws = report_laws("smp-grr" if plan.has_codes else plan.mechanism, domain_sizes=wanted, **asked)
    bit = report_laws("smp-grr", domain_sizes=[2], **asked)
    for index, each in enumerate(plan.indicators):
        size = wanted[index]
        if each.is_wave:
            laws[index] = _noise_laws(epsilons, partial(_wave_noise, each))
        elif each.discloses:
            laws[index] = _noise_laws(epsilons, partial(_disclosing_noise, each, max_codes=plan.max_codes))
        elif each.scale is not None:
            laws[index] = bit[0]
        elif plan.has_question(index):
            laws[index] = question_laws(epsilons=epsilons, domain_sizes=size)
        elif plan.first is not None and plan.is_renewed(index) and not each.parts:
            # One report of L-GRR is that of GRR, one of L-OSUE that of OUE, with the epsilon of one report.
            firsts = [plan.first.epsilon_of(each) for each in epsilons]
            of_first = asked | {"epsilons": firsts}
            laws[index] = report_laws("smp-adp", domain_sizes=[size], **of_first)[0]
        elif plan.first is not None and (plan.is_hashed(index) or plan.is_renewed(index)):
            n_cells = plan.first.n_cells if plan.is_hashed(index) else None
            laws[index] = question_laws(
                epsilons=[plan.first.epsilon_of(each) for each in epsilons],
                domain_sizes=size,
                cells=PRIMES if n_cells is None else (n_cells,),
                max_codes=plan.max_codes,
            )
        elif each.parts or each.moves is not None or each.by_code or plan.has_codes:
            laws[index] = code_laws(epsilons=epsilons, domain_sizes=size, max_codes=plan.max_codes)
    return laws


def _wave_noise(asked: IndicatorSpec, epsilon: Fraction) -> float:
    return share_noise(wave_channel(epsilon=epsilon, n_levels=asked.n_values))


def _disclosing_noise(asked: IndicatorSpec, epsilon: Fraction, *, max_codes: int) -> float:
    """Noise of a report that tells something for certain, at even shares."""
    channel: RegionChannel | SensitiveChannel
    if asked.sensitive:
        values = {"domain_size": asked.domain_size, "sensitive": asked.sensitive}
        channel = sensitive_channel(epsilon=epsilon, **values)
    else:
        channel = region_channel(epsilon=epsilon, region_of=asked.regions, max_codes=max_codes)
    noise, slope = _mean_noise(channel)
    return noise + slope / asked.domain_size


def _noise_laws(epsilons: Sequence[Fraction], noise_at: Callable[[Fraction], float]) -> ReportLaws:
    """Laws with a noise of one report: between some epsilons, where channels jump, roughly."""
    wanted = np.array([float(each) for each in epsilons])
    some = np.unique(np.geomspace(wanted.min(), wanted.max(), 100))
    noises = [noise_at(Fraction(each)) for each in some]
    noise = np.interp(np.log(wanted), np.log(some), np.log(noises))
    n = len(epsilons)
    # `ReportLaws.std_error` makes the noise of these.
    return ReportLaws(
        q=np.full(n, 0.5),
        difference=0.5 * np.exp(-noise / 2),
        rest=np.zeros(n),
        slack=np.full(n, NOISE_SLACK),
        is_sure=np.ones(n, np.bool_),
    )


def _nearly(
    plan: PlanSpec,
    index: int,
    law: ReportLaws,
    *,
    crowd: Crowd,
    of_union: bool,
    sizes: NDArray[np.int64] | None = None,
) -> Floats:
    """Half-widths nearly as `_half_width` has them, under many plans like this one."""
    n_visitors = crowd.in_all(plan.days) if of_union else crowd.visitors
    noise, k = plan.answer_noise, _n_sides(plan, index) if sizes is None else sizes
    errors = law.std_error(
        1 / np.asarray(k),
        n_reports=_reports_of_one(plan, index) * n_visitors,
        n_population=_drawn_from(plan, index, n_visitors=n_visitors),
        count_variance=0.0
        if noise is None
        else UnionNoise(channel=noise.channel, n_cells=plan.days).variance,
        domain_size=k,
    )
    return NormalDist().inv_cdf((1 + LEVEL) / 2) * errors


def _half_width(plan: PlanSpec, index: int, *, crowd: Crowd, of_union: bool) -> float:
    if of_union and not has_union(plan, index):
        raise LdpError(f"{plan.indicators[index].slug} must be answered on all days for a union of days")
    n_visitors = crowd.in_all(plan.days) if of_union else crowd.visitors
    return _curve(plan, index, n_visitors=n_visitors).half_width(1 / _n_sides(plan, index))


# --- other mechanisms -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A mechanism with the epsilon that promises as much as the plan it is compared with.

    Parameters
    ----------
    mechanism : str
    epsilon : Decimal; as an administrator types it, rounded down to a millionth
    plan : PlanSpec
    certificate : Certificate; of both units: for one promise the other may differ much
    mean_half_width : float; mean over the indicators of the half-widths of one day, each at 1 / domain_size
    """

    mechanism: Mechanism
    epsilon: Decimal
    plan: PlanSpec
    certificate: Certificate
    mean_half_width: float


def promise(certificate: Certificate, *, unit: Unit) -> Fraction:
    """Promise of a plan for a unit, as typed."""
    return certificate.nominal_profile if unit == "profile" else certificate.nominal_attribute


@lru_cache(maxsize=256)
def rank_plans(
    indicators: tuple[IndicatorRequest, ...],
    *,
    unit: Unit,
    days: int,
    promised: Fraction,
    crowd: Crowd,
    among: Sequence[Mechanism] = get_args(Mechanism),
) -> tuple[Candidate, ...]:
    """Mechanisms that can ask these indicators under one promise, the one with the smallest errors first.

    Permanent questions, hashes and streams are among them if there is a daily indicator to use them for, and
    reports that are renewed each day if there is a static one.

    Parameters
    ----------
    indicators : tuple of IndicatorRequest; their own epsilons and weights are left out, since only some
        mechanisms have them
    unit : "profile" or "attribute"; what the promise is about
    days : int
    promised : Fraction; epsilon of the unit, to which each mechanism's own epsilon is fitted: answers to a
        daily indicator add up, and under Spl so do those to different indicators
    crowd : Crowd
    among : sequence of Mechanism; those to rank

    Raises
    ------
    LdpError : no mechanism can do it

    Notes
    -----
    All promises are in proportion to the epsilon typed, so one plan at epsilon 1 tells the factor.
    """
    alike = tuple(replace(each, epsilon=None, weight=None) for each in indicators)
    found = []
    for mechanism in among:
        try:
            each = _candidate(mechanism, alike, unit=unit, days=days, promised=promised, crowd=crowd)
        except LdpError:  # not for daily indicators, or out of the range of epsilon
            continue
        uses_days = each.plan.asks_questions or each.plan.hashes_values or each.plan.has_streams
        if mechanism == RENEWED:  # without a value that lasts it is the same as the hashes
            uses_days = each.plan.renews_reports
        if uses_days or not each.plan.has_codes:
            found.append(each)
    if not found:
        raise PlanError(f"promised must be within reach of a mechanism, got {float(promised):.6g}")
    return tuple(sorted(found, key=lambda each: each.mean_half_width))


def _candidate(
    mechanism: Mechanism,
    indicators: tuple[IndicatorRequest, ...],
    *,
    unit: Unit,
    days: int,
    promised: Fraction,
    crowd: Crowd,
) -> Candidate:
    asked: dict[str, Any] = {
        "unit": unit,
        "days": days,
        "indicators": suited(indicators, mechanism=mechanism),
    }
    _, at_one = _certified(mechanism, Decimal(1), **asked)
    exact = promised / promise(at_one, unit=unit)
    epsilon = min(Decimal(10**6 * exact.numerator // exact.denominator).scaleb(-6), LARGEST_EPSILON)
    plan, certificate = _certified(mechanism, epsilon, **asked)
    return Candidate(
        mechanism=mechanism,
        epsilon=epsilon,
        plan=plan,
        certificate=certificate,
        mean_half_width=fmean(
            _half_width(plan, index, crowd=crowd, of_union=False) for index in range(plan.d)
        ),
    )


@lru_cache(maxsize=512)
def _certified(
    mechanism: Mechanism,
    epsilon: Decimal,
    *,
    unit: Unit,
    days: int,
    indicators: tuple[IndicatorRequest, ...],
) -> tuple[PlanSpec, Certificate]:
    """Kept, since fakes that hide one value take a long time to fit, and crowds do not change them."""
    plan = build_plan(
        mechanism=mechanism, unit=unit, version=1, days=days, epsilon=epsilon, indicators=indicators
    )
    return plan, certify(plan)
