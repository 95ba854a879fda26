"""The test between windows: people of both windows may differ from those of one."""

from fractions import Fraction

import numpy as np
import pytest

from ldp.estimation.joint.table_change import table_change
from ldp.estimation.windows import Part
from ldp.protocols.channels import GrrChannel, grr_channel
from ldp.protocols.faked_reports import FakedChannel

RUNS, N = 400, 20_000
K = 4
# Those of one window only have the same shares, which are not those of people of both.
SHARES = np.array([[0.85, 0.05, 0.05, 0.05], [0.05, 0.05, 0.05, 0.85], [0.85, 0.05, 0.05, 0.05]])
SIZES = np.array([0.3, 0.4, 0.3])
GRR = grr_channel(epsilon=Fraction(3), domain_size=K)
FAKED = FakedChannel(answer=GRR, fake="code", share=Fraction(1, 2))
CHANNELS = pytest.mark.parametrize("channel", [GRR, FAKED], ids=["GRR", "RS+FD"])  # a report is a code


def p_value(rng: np.random.Generator, *, channel: GrrChannel | FakedChannel, moved: float = 0.0) -> float:
    kept = np.full((K, K), float(channel.q))
    np.fill_diagonal(kept, float(channel.p))
    shares = SHARES.copy()
    shares[2, :2] += (-moved, moved)
    sizes = rng.multinomial(N, SIZES)
    parts = []
    for size, of_part in zip(sizes, shares, strict=True):
        values = rng.multinomial(size, of_part)
        counts = sum(rng.multinomial(n, law) for n, law in zip(values, kept, strict=True))
        parts.append(Part(counts, int(size), int(size)))
    early, late = sizes[:2].sum(), sizes[1:].sum()
    factors = (-1 / early, 1 / late - 1 / early, 1 / late)
    common = (SIZES[0] * SHARES[0] + SIZES[1] * SHARES[1]) / SIZES[:2].sum()
    return table_change([(list(zip(factors, parts, strict=True)), channel)], common=common).p_value


@CHANNELS
def test_equal_windows_are_rejected_as_rarely_as_stated(channel) -> None:
    rng = np.random.default_rng(26)
    rejected = np.mean([p_value(rng, channel=channel) < 0.05 for _ in range(RUNS)])
    assert abs(rejected - 0.05) < 3.5 * (0.05 * 0.95 / RUNS) ** 0.5


@CHANNELS
def test_other_shares_of_those_who_came_once_are_found(channel) -> None:
    rng = np.random.default_rng(27)
    assert np.mean([p_value(rng, channel=channel, moved=0.1) < 0.05 for _ in range(50)]) > 0.9
