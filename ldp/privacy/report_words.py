"""Number of 16-bit words that store a report (`ldp.keyed.words`)."""

from ldp.codes import WORD_BITS
from ldp.privacy.plans import AnswerChannel, Kind, PlanSpec
from ldp.protocols.two_round_unary import TwoRoundUnary
from ldp.protocols.unary import UnaryChannel


def n_words(channel: AnswerChannel) -> int:
    """Words of a report."""
    has_bits = isinstance(channel, UnaryChannel | TwoRoundUnary)
    return -(-channel.domain_size // WORD_BITS) if has_bits else 1


def plan_words(plan: PlanSpec, *, kind: Kind) -> int:
    """Words that all reports of a subscriber on indicators of a kind take; under Smp that is one report."""
    widths = [n_words(plan.answer_channel(i)) for i, spec in enumerate(plan.indicators) if spec.kind == kind]
    return max(widths, default=0) if plan.is_sampled else sum(widths)
