"""Smaller loss of sums compared with single reports: privacy amplification by shuffling.

Counts of each report without their senders are the output of a shuffler. This is about one
sum in which each person is counted once, together with the others who send a report of the same law.

Source: V. Feldman, A. McMillan, K. Talwar, "Hiding among the clones", FOCS 2021, theorem 3.1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Final

from ldp.errors import LdpError
from ldp.privacy.accounting import certify
from ldp.privacy.plans import PlanSpec
from ldp.protocols.channels import epsilon_of

LARGEST_DELTA: Final = Fraction(1, 10**6)
_UP: Final = Context(prec=60, rounding=ROUND_CEILING)


@dataclass(frozen=True, slots=True, kw_only=True)
class SumsCertificate:
    """Loss of a plan to those who see only its sums, each person counted in one sum per indicator.

    Parameters
    ----------
    n_reports : tuple of int, per indicator
    epsilons : tuple of Decimal, per indicator; of one value, at most that of a single report
    epsilon_profile, epsilon_attribute : Decimal; in both units
    delta : Fraction; of each sum
    delta_profile : Fraction; of all sums that a person is in
    """

    n_reports: tuple[int, ...]
    epsilons: tuple[Decimal, ...]
    epsilon_profile: Decimal
    epsilon_attribute: Decimal
    delta: Fraction
    delta_profile: Fraction


def shuffled_epsilon(ratio: Fraction, *, n_reports: int, delta: Fraction) -> Decimal | None:
    """Return epsilon at delta of the sum of reports, or None where the theorem says nothing.

    Parameters
    ----------
    ratio : Fraction; largest probability ratio of one report, above 1
    n_reports : int; reports of the same law in the sum, each of another person
    delta : Fraction; in (0, 1)

    Returns
    -------
    Decimal, rounded up to 30 digits; None if ratio > n / (16 ln(2 / delta)), or if it is not below ln ratio

    Raises
    ------
    LdpError : ratio or delta is out of range

    Notes
    -----
    ln(1 + (r - 1) / (r + 1) (8 sqrt(r ln(4 / delta) / n) + 8 r / n)), r the ratio.
    """
    if not (ratio > 1 and 0 < delta < 1):
        raise LdpError(f"ratio must be > 1 and delta in (0, 1), got {ratio} and {delta}")
    if 16 * ratio * _log_up(2 / delta) > n_reports:
        return None
    squared = ratio * _log_up(4 / delta) / n_reports
    root = _UP.sqrt(_UP.divide(Decimal(squared.numerator), Decimal(squared.denominator))).next_plus(_UP)
    growth = (ratio - 1) / (ratio + 1) * (8 * Fraction(root) + 8 * ratio / n_reports)
    return epsilon_of(1 + growth) if 1 + growth < ratio else None


def certify_sums(
    spec: PlanSpec, *, n_reports: Sequence[int], n_visitors: int, delta: Fraction | None = None
) -> SumsCertificate | None:
    """Return what the sums of a study of one day reveal, or None where they reveal no less than reports.

    Parameters
    ----------
    spec : PlanSpec
    n_reports : sequence of int, shape (d,); people who sent a report on each indicator
    n_visitors : int; people who were there
    delta : Fraction; by default 1 / 1,000,000, and at most a tenth of 1 / n_reports

    Notes
    -----
    Over several days a report is counted on each day its person is present, among other people each time,
    and exact presence tells on which: only people with the very same days hide each other. Hence one day, and
    exact counts (noise on them is certified as presence). A person without a value sends nothing and hides
    no one, so each indicator has its own sum. Which one a person answers (Smp) is drawn without her
    values: a profile loses the largest of the indicators' losses; otherwise losses and deltas add up. With
    fake data the reports of a person belong together, which holds if everyone sent all of them. With classes
    a person hides only among the reports of one class, perhaps of few people: no bound is certified.
    """
    if spec.days != 1 or spec.presence is not None or spec.classes or min(n_reports) < 0:
        return None
    if delta is None:
        delta = min(LARGEST_DELTA, Fraction(1, max(1, 10 * max(n_reports))))
    if spec.has_fakes:
        return _of_fakes(spec, n_reports=tuple(n_reports), n_visitors=n_visitors, delta=delta)
    single = certify(spec)
    found = [
        shuffled_epsilon(entry.ratio, n_reports=n, delta=delta)
        for entry, n in zip(single.indicators, n_reports, strict=True)
    ]
    if not any(found):
        return None
    epsilons = tuple(each or entry.epsilon for each, entry in zip(found, single.indicators, strict=True))
    profile = max(epsilons) if spec.is_sampled else _sum_up(epsilons)
    return SumsCertificate(
        n_reports=tuple(n_reports),
        epsilons=epsilons,
        epsilon_profile=profile,
        epsilon_attribute=max(epsilons),
        delta=delta,
        delta_profile=delta if spec.is_sampled else delta * sum(each is not None for each in found),
    )


def _of_fakes(
    spec: PlanSpec, *, n_reports: tuple[int, ...], n_visitors: int, delta: Fraction
) -> SumsCertificate | None:
    is_static = all(asked.kind == "static" for asked in spec.indicators)
    if not is_static or set(n_reports) != {n_visitors}:
        return None
    epsilon = shuffled_epsilon(spec.fake_data.ratio_profile, n_reports=n_visitors, delta=delta)
    if epsilon is None:
        return None
    single = certify(spec)
    epsilons = tuple(min(epsilon, entry.epsilon_attribute) for entry in single.indicators)
    return SumsCertificate(
        n_reports=n_reports,
        epsilons=epsilons,
        epsilon_profile=epsilon,
        epsilon_attribute=max(epsilons),
        delta=delta,
        delta_profile=delta,
    )


def _log_up(x: Fraction) -> Fraction:
    # Decimal.ln always rounds to nearest, hence the step up.
    log = _UP.ln(_UP.divide(Decimal(x.numerator), Decimal(x.denominator)))
    return Fraction(log.next_plus(context=_UP))


def _sum_up(epsilons: Sequence[Decimal]) -> Decimal:
    """Sum, rounded up to 30 digits."""
    total = sum(map(Fraction, epsilons), Fraction(0))
    up = Context(prec=30, rounding=ROUND_CEILING)
    return up.divide(Decimal(total.numerator), Decimal(total.denominator))
