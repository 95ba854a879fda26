"""What a plan promises, computed from the integer thresholds it uses, never from the epsilon typed."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from ldp.channels import epsilon_of, grr_channel
from ldp.errors import LdpError, PlanError
from ldp.params import PlanSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class IndicatorCertificate:
    """What answers to one indicator reveal at most.

    Parameters
    ----------
    slug : str
    n_values : int; most answers of one person
    ratio : Fraction; exact probability ratio of one answer
    epsilon : Decimal; logarithm of `ratio`, rounded up
    nominal : Fraction; epsilon of one answer in the plan, never below `epsilon`
    """

    slug: str
    n_values: int
    ratio: Fraction
    epsilon: Decimal
    nominal: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """Realised loss of a plan in both units, rounded up, and the nominal values beside it.

    Parameters
    ----------
    indicators : tuple of IndicatorCertificate, in plan order
    epsilon_attribute : Decimal; one value of a person (of a daily indicator: that of one day)
    epsilon_profile : Decimal; all values of a person in the study
    nominal_attribute, nominal_profile : Fraction; the same sums of the plan's epsilons
    """

    indicators: tuple[IndicatorCertificate, ...]
    epsilon_attribute: Decimal
    epsilon_profile: Decimal
    nominal_attribute: Fraction
    nominal_profile: Fraction


def certify(plan: PlanSpec, *, extra_daily_values: int = 0) -> Certificate:
    """Realised loss of a plan.

    Parameters
    ----------
    plan : PlanSpec
    extra_daily_values : int; values of a daily indicator answered on top of the plan's (voided days), >= 0

    Raises
    ------
    LdpError : extra_daily_values < 0

    Notes
    -----
    Values are protected; *whether* a daily value changed is not, since an unchanged value keeps its answer.
    Under sampling a person answers one indicator, so a profile loses the largest of the indicators' losses;
    otherwise the losses add up.
    """
    if extra_daily_values < 0:
        raise LdpError(f"extra_daily_values must be >= 0, got {extra_daily_values}")
    indicators = tuple(
        _certify_indicator(plan, index, extra_daily_values=extra_daily_values) for index in range(plan.d)
    )
    ratios = [entry.ratio**entry.n_values for entry in indicators]
    losses = [entry.nominal * entry.n_values for entry in indicators]
    return Certificate(
        indicators=indicators,
        epsilon_attribute=epsilon_of(max(entry.ratio for entry in indicators)),
        epsilon_profile=epsilon_of(max(ratios)) if plan.is_sampled else epsilon_of(*ratios),
        nominal_attribute=max(entry.nominal for entry in indicators),
        nominal_profile=max(losses) if plan.is_sampled else sum(losses, start=Fraction(0)),
    )


def check_cap(plan: PlanSpec, epsilon_profile: Decimal, *, extra_daily_values: int = 0) -> None:
    """Refuse a plan that certifies above a cap per profile.

    Raises
    ------
    PlanError : the message names the certified value and the cap
    """
    certified = certify(plan, extra_daily_values=extra_daily_values).epsilon_profile
    if epsilon_profile.is_nan() or certified > epsilon_profile:
        raise PlanError(
            f"epsilon_profile must be >= the certified loss per profile {certified}, got {epsilon_profile}"
        )


def _certify_indicator(plan: PlanSpec, index: int, *, extra_daily_values: int) -> IndicatorCertificate:
    spec = plan.indicators[index]
    channel = grr_channel(epsilon=spec.epsilon, domain_size=spec.domain_size)
    extra = extra_daily_values if spec.kind == "daily" else 0
    return IndicatorCertificate(
        slug=spec.slug,
        n_values=plan.values_per_person(index) + extra,
        ratio=channel.ratio,
        epsilon=channel.epsilon,
        nominal=spec.epsilon,
    )
