"""ADP: the better of GRR and OUE for a domain and an epsilon."""

from fractions import Fraction

from ldp.protocols.channels import GrrChannel, grr_channel, noise_at_zero
from ldp.protocols.unary import UnaryChannel, oue_channel


def adp_channel(*, epsilon: Fraction, domain_size: int) -> GrrChannel | UnaryChannel:
    """Return the channel with the smaller variance at frequency 0: GRR about up to 3 exp(epsilon) + 2 values.

    Parameters, Raises : as of `grr_channel`

    Compared by the exact variance of what the integer thresholds realise; GRR if they are equal, since its
    reports are shorter. Source: Wang et al., USENIX Security 2017; Arcolezi et al., DCN 2022 (ADP).
    """
    grr = grr_channel(epsilon=epsilon, domain_size=domain_size)
    oue = oue_channel(epsilon=epsilon, domain_size=domain_size)
    return grr if noise_at_zero(grr) <= noise_at_zero(oue) else oue
