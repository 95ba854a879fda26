"""Errors of shares where reports hide sensitive values only (`ldp.protocols.partial.sensitive`).

Estimates are those of `pure_frequencies`, with the p and q of each value: a value that is not sensitive has
q = 0, so its noise is only that of its people whose report is another value.
"""

from ldp.protocols.channels import noise_at_zero
from ldp.protocols.partial.sensitive import SensitiveChannel


def mean_noise(channel: SensitiveChannel) -> tuple[float, float]:
    """Noise of one report at frequency 0, and what is added for each true one; means over values."""
    supports, k = channel.of_values, channel.domain_size
    linear = sum((1 - each.p - each.q) / (each.p - each.q) for each in supports)
    return float(sum(map(noise_at_zero, supports)) / k), float(linear / k)
