"""Tables without chance: variances and losses, from the integer probabilities of `ldp`."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Final, Literal, TypedDict, get_args

import ldp
from benchmarks.reproduce import published
from ldp.protocols.channels import Unit

SAME: Final = 1e-9  # relative; the published formula is evaluated in floating point

Choice = Literal["L-GRR", "L-OSUE"]
Variant = Literal["grr", "ouez", "ouer", "adp"]
VARIANTS: Final[tuple[Variant, ...]] = get_args(Variant)
TABLE_SIZES: Final = (3, 3, 8, 12, 37, 11)


class Budgets(TypedDict):
    """Arguments of a two-round channel."""

    epsilon_inf: Fraction
    epsilon_1: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell of table 6.1.

    Parameters
    ----------
    domain_size : int
    epsilon_inf, alpha : str; epsilon_1 is their product
    published : float; variance by the formula of the thesis
    paper, exact, losue : float; variance of the channels of `ldp`: L-GRR in both tunings, and L-OSUE
    paper_choice, exact_choice : what ALLOMFREE takes
    """

    domain_size: int
    epsilon_inf: str
    alpha: str
    published: float
    paper: float
    exact: float
    losue: float
    paper_choice: Choice
    exact_choice: Choice

    @property
    def agrees(self) -> bool:
        """Return whether our channel has the published variance."""
        return abs(self.paper / self.published - 1) <= SAME

    @property
    def gain(self) -> float:
        """Variance of what the paper's rule takes over that of the exact rule, both tuned exactly."""
        taken = {"L-GRR": self.exact, "L-OSUE": self.losue}
        return taken[self.paper_choice] / taken[self.exact_choice]


@dataclass(frozen=True, slots=True, kw_only=True)
class SolutionRow:
    """Mean over the attributes of n times the variance at frequency 0, and what a profile loses.

    Parameters
    ----------
    epsilon : str; nominal
    amplified : Fraction; what the thesis gives the answers of RS+FD
    smp_grr, smp_adp : float; at epsilon
    fake_data : dict of float; RS+FD at epsilon per profile, by variant
    attribute_adp : float; RS+FD[ADP] at epsilon per attribute, exactly
    amplified_adp : float; RS+FD[ADP] as in the thesis
    smp_adp_amplified : float; Smp[ADP] at the epsilon that a profile loses then
    """

    epsilon: str
    amplified: Fraction
    smp_grr: float
    smp_adp: float
    fake_data: dict[Variant, float]
    attribute_adp: float
    amplified_adp: float
    smp_adp_amplified: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Losses:
    """Losses of RS+FD as in the thesis: epsilon of a profile, and of each attribute."""

    variant: Variant
    profile: float
    attributes: tuple[float, ...]


def budgets(epsilon_inf: str, *, alpha: str) -> Budgets:
    """Both epsilons; epsilon_1 is alpha epsilon_inf."""
    lasting = Fraction(epsilon_inf)
    return {"epsilon_inf": lasting, "epsilon_1": lasting * Fraction(alpha)}


def cells() -> list[Cell]:
    """All cells of table 6.1."""
    return [
        cell(domain_size=k, epsilon_inf=epsilon_inf, alpha=alpha)
        for k, epsilon_inf, alpha in product(
            published.TABLE_DOMAINS, published.TABLE_EPSILONS, published.TABLE_ALPHAS
        )
    ]


def cell(*, domain_size: int, epsilon_inf: str, alpha: str) -> Cell:
    """One of them."""
    nominal = budgets(epsilon_inf, alpha=alpha)
    paper = ldp.lgrr_channel(**nominal, domain_size=domain_size, tuning="paper")
    exact = ldp.lgrr_channel(**nominal, domain_size=domain_size)
    losue = ldp.lue_channel("l-osue", **nominal, domain_size=domain_size)
    return Cell(
        domain_size=domain_size,
        epsilon_inf=epsilon_inf,
        alpha=alpha,
        published=published.lgrr_variance(
            domain_size=domain_size,
            epsilon_inf=float(nominal["epsilon_inf"]),
            epsilon_1=float(nominal["epsilon_1"]),
        ),
        paper=_table_variance(paper),
        exact=_table_variance(exact),
        losue=_table_variance(losue),
        paper_choice=_choice(ldp.allomfree_channel(**nominal, domain_size=domain_size, tuning="paper")),
        exact_choice=_choice(ldp.allomfree_channel(**nominal, domain_size=domain_size)),
    )


def domains_won(*, reports: int) -> tuple[int, int]:
    """Largest k for which L-GRR beats L-OSUE, both exact for n reports; minimum and maximum of the table."""
    largest = []
    for epsilon_inf, alpha in product(published.TABLE_EPSILONS, published.TABLE_ALPHAS):
        nominal = budgets(epsilon_inf, alpha=alpha)
        losue = ldp.noise_at_zero(ldp.lue_channel("l-osue", **nominal, domain_size=2, horizon=reports))
        k = 2
        while ldp.noise_at_zero(ldp.lgrr_channel(**nominal, domain_size=k, horizon=reports)) <= losue:
            k += 1
        largest.append(k - 1)
    return min(largest), max(largest)


def solution_row(epsilon: str, *, domain_sizes: Sequence[int] = TABLE_SIZES) -> SolutionRow:
    """Smp and RS+FD at one epsilon."""
    nominal, d = Fraction(epsilon), len(domain_sizes)
    amplified = amplified_epsilon(nominal, d=d)

    def smp(epsilon: Fraction, *, adaptive: bool) -> float:
        make = ldp.adp_channel if adaptive else ldp.grr_channel
        # One in d answers each attribute: d times the noise, then the mean over d attributes.
        return float(sum(ldp.noise_at_zero(make(epsilon=epsilon, domain_size=k)) for k in domain_sizes))

    def fake(variant: Variant, epsilon: Fraction, *, unit: Unit = "profile") -> float:
        channel = ldp.fake_data_channel(variant, epsilon=epsilon, unit=unit, domain_sizes=domain_sizes)
        return float(sum(ldp.noise_at_zero(report) for report in channel.reports)) / d

    return SolutionRow(
        epsilon=epsilon,
        amplified=amplified,
        smp_grr=smp(nominal, adaptive=False),
        smp_adp=smp(nominal, adaptive=True),
        fake_data={variant: fake(variant, nominal) for variant in VARIANTS},
        attribute_adp=fake("adp", nominal, unit="attribute"),
        amplified_adp=fake("adp", amplified),
        smp_adp_amplified=smp(amplified, adaptive=True),
    )


def losses(variant: Variant, *, epsilon: str, domain_sizes: Sequence[int] = TABLE_SIZES) -> Losses:
    """Losses of RS+FD if its answers have the epsilon of the thesis."""
    amplified = amplified_epsilon(Fraction(epsilon), d=len(domain_sizes))
    channel = ldp.fake_data_channel(variant, epsilon=amplified, unit="profile", domain_sizes=domain_sizes)
    return Losses(
        variant=variant,
        profile=float(channel.epsilon_profile),
        attributes=tuple(float(ldp.epsilon_of(ratio)) for ratio in channel.ratios_attribute),
    )


def amplified_epsilon(epsilon: Fraction, *, d: int) -> Fraction:
    """ln(d (e^epsilon - 1) + 1), rounded down: what the thesis gives the answers of RS+FD (algorithm 4).

    The domain sizes do not matter for OUE-z, of which it is true per attribute.
    """
    return ldp.hidden_epsilon("ouez", epsilon=epsilon, unit="attribute", domain_sizes=[2] * d)


def _table_variance(channel: ldp.TwoRoundGrr | ldp.TwoRoundUnary) -> float:
    return float(ldp.noise_at_zero(channel) / published.TABLE_USERS)


def _choice(channel: ldp.TwoRoundGrr | ldp.TwoRoundUnary) -> Choice:
    return "L-GRR" if isinstance(channel, ldp.TwoRoundGrr) else "L-OSUE"
