"""Two rounds over one bit per value: L-SUE (Basic RAPPOR), L-OUE, L-OSUE, L-SOUE; the choice of ALLOMFREE."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, get_args

from ldp.errors import LdpError
from ldp.protocols.channels import WORD, epsilon_of, exp_down, noise_at_zero
from ldp.protocols.two_round import (
    Tuning,
    TwoRoundGrr,
    TwoRounds,
    check_budgets,
    check_tuning,
    lgrr_channel,
    nearest_that_keeps,
    unreachable,
)
from ldp.protocols.unary import UnaryChannel, oue_channel, sue_channel

Protocol = Literal["l-sue", "l-oue", "l-osue", "l-soue"]

_HALF: Final = WORD // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoRoundUnary(TwoRounds[UnaryChannel]):
    """One bit per value, one for the true one; each bit goes through two rounds.

    p and q of the second round apply to the ones and zeros of the first. One bit of one report:
    p = p1 p2 + (1-p1) q2 and q = q1 p2 + (1-q1) q2; bits are independent.
    Source: Erlingsson et al., CCS 2014 (RAPPOR); Arcolezi et al., Digital Communications and Networks 2022.
    """

    @property
    def p(self) -> Fraction:
        return self.first.p * self.second.p + (1 - self.first.p) * self.second.q

    @property
    def q(self) -> Fraction:
        return self.first.q * self.second.p + (1 - self.first.q) * self.second.q

    @property
    def second_ratio(self) -> Fraction:
        """Largest ratio of one report under two answers of the first round: all bits may differ; exact."""
        p, q = self.second.p, self.second.q
        return max(p / q, (1 - q) / (1 - p)) ** self.domain_size

    def weights(self, *, reports: int) -> tuple[int, int]:
        """Probabilities of t reports that all say one value and not another: true and false; same unit."""
        p1, q1 = self.first.threshold_p, self.first.threshold_q
        one, other = self.second.threshold_p**reports, self.second.threshold_q**reports
        no_one = (WORD - self.second.threshold_p) ** reports
        no_other = (WORD - self.second.threshold_q) ** reports
        hit = (p1 * one + (WORD - p1) * other) * (q1 * no_one + (WORD - q1) * no_other)
        miss = (q1 * one + (WORD - q1) * other) * (p1 * no_one + (WORD - p1) * no_other)
        return hit, miss


def lue_channel(
    protocol: Protocol, *, epsilon_inf: Fraction, epsilon_1: Fraction, domain_size: int, horizon: int = 1
) -> TwoRoundUnary:
    """L-UE protocol of nominal epsilons; the realised ones are never larger.

    Parameters
    ----------
    protocol : "l-sue" (Basic RAPPOR), "l-oue", "l-osue" or "l-soue"
    epsilon_inf : Fraction; of any number of reports of one value, in [0.000001, 64]
    epsilon_1 : Fraction; of the first `horizon` reports together, at least 0.000001 and below the limit
    domain_size : int; in [2, 65534]
    horizon : int; at least 1

    Raises
    ------
    InvalidBudgetError : an epsilon is out of range; the message names the range that can be reached
    InvalidDomainError, LdpError

    Notes
    -----
    The published parameters are exact, so there is one tuning. First round: SUE for "l-sue" and "l-soue",
    else OUE. Second: p2 + q2 = 1 for "l-sue" and "l-osue", else p2 = 1/2, which cannot reach all
    epsilon_1 below epsilon_inf: L-OUE F <= (2E+1)/3, L-SOUE F <= e(2e+1)/(e+2), where F, E, e are the
    exponentials of epsilon_1, epsilon_inf and epsilon_inf / 2. One report of L-OSUE is OUE(epsilon_1), of
    L-SUE is SUE(epsilon_1).
    """
    if protocol not in get_args(Protocol):
        raise LdpError(f"protocol must be one of {get_args(Protocol)}, got {protocol!r}")
    check_budgets(epsilon_inf=epsilon_inf, epsilon_1=epsilon_1)
    check_tuning("exact", horizon=horizon)
    first_round = sue_channel if protocol in {"l-sue", "l-soue"} else oue_channel
    first = first_round(epsilon=epsilon_inf, domain_size=domain_size)
    is_symmetric = protocol in {"l-sue", "l-osue"}
    f = exp_down(epsilon_1)

    def channel(threshold: int) -> TwoRoundUnary:
        p, q = (threshold, WORD - threshold) if is_symmetric else (_HALF, threshold)
        second = UnaryChannel(domain_size=domain_size, threshold_p=p, threshold_q=q)
        return TwoRoundUnary(first=first, second=second)

    def keeps(threshold: int) -> bool:
        hit, miss = channel(threshold).weights(reports=horizon)
        return hit * f.denominator <= f.numerator * miss

    weak, strong = (_HALF + 1, WORD - 1) if is_symmetric else (_HALF - 1, 1)
    if keeps(strong):
        limit = epsilon_of(channel(strong).ratio_of(reports=horizon))
        raise unreachable(epsilon_1, epsilon_inf=epsilon_inf, limit=limit)
    return channel(nearest_that_keeps(weak, strong, keeps))


def allomfree_channel(
    *, epsilon_inf: Fraction, epsilon_1: Fraction, domain_size: int, tuning: Tuning = "exact"
) -> TwoRoundGrr | TwoRoundUnary:
    """L-GRR or L-OSUE, the one that estimates rare values from one report with the smaller variance.

    Parameters
    ----------
    epsilon_inf, epsilon_1, domain_size, tuning, Raises : as in `lgrr_channel`

    Notes
    -----
    In exact tuning that is L-GRR for k <= 3 exp(epsilon_1) + 2.
    Source: Arcolezi et al., Digital Communications and Networks 2022 (ALLOMFREE).
    """
    grr = lgrr_channel(epsilon_inf=epsilon_inf, epsilon_1=epsilon_1, domain_size=domain_size, tuning=tuning)
    unary = lue_channel("l-osue", epsilon_inf=epsilon_inf, epsilon_1=epsilon_1, domain_size=domain_size)
    return grr if noise_at_zero(grr) <= noise_at_zero(unary) else unary
