"""Three attributes from their pairs: the table of maximum entropy, and intervals of its noise."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import ldp
from ldp.errors import LdpError
from ldp.estimation.joint.crosstab import Reports, Shares
from ldp.estimation.joint.three_way import Pair, three_way
from ldp.protocols.channels import grr_channel
from ldp.protocols.projective import code_channel
from ldp.protocols.projective_space import value_counts
from tests.ldp.exact import refuses

SIZES = (3, 4, 2)
AXES = ((0, 1), (1, 2), (0, 2))
N = 60_000


def without_three():
    """A table in which what two do together does not depend on the third."""
    rng = np.random.default_rng(7)
    table = np.ones(SIZES)
    for left, size in enumerate([(4, 2), (3, 2), (3, 4)]):
        table = table * np.expand_dims(rng.uniform(0.2, 2, size), left)
    return table / table.sum()


TRUTH = without_three()


def pair_of(axes, *, truth=TRUTH, epsilon=2, run=0, n=N):
    """Keyed reports of people of a table, without sampling."""
    (left,) = {0, 1, 2} - set(axes)
    shares = truth.sum(axis=left).ravel()
    ends = np.rint(np.cumsum(shares) * n).astype(np.int64)
    values = np.searchsorted(ends, np.arange(n), side="right").astype(np.int32)
    channel = code_channel(epsilon=Fraction(epsilon), domain_size=shares.size, max_codes=1000)
    spec = ldp.IndicatorSpec(slug="x", kind="static", domain_size=shares.size, epsilon=Fraction(epsilon))
    plan = ldp.PlanSpec(mechanism="smp-question", unit="profile", version=1, days=1, indicators=(spec,))
    key = (run * 3 + AXES.index(axes)).to_bytes(16, "big")
    words = ldp.Sanitiser(plan, ldp.KeyedPrf(key)).report(0, np.arange(n, dtype=np.uint64), values)[:, 0]
    used = plan.answer_channel(0)
    counts = np.bincount(words, minlength=getattr(used, "n_codes", used.domain_size)).astype(np.int64)
    assert used == channel or used.domain_size == channel.domain_size
    counts = value_counts(counts, channel=used)
    return Pair(axes=axes, reports=Reports.of_counts(counts, channel=used, n_reports=n, n_population=n))


def exact(axes, truth):
    """Reports without noise."""
    (left,) = {0, 1, 2} - set(axes)
    shares = truth.sum(axis=left).ravel()
    channel = grr_channel(epsilon=Fraction(64), domain_size=shares.size)
    counts = np.rint(shares * 10**9).astype(np.int64)
    total = int(counts.sum())
    return Pair(
        axes=axes, reports=Reports.of_counts(counts, channel=channel, n_reports=total, n_population=total)
    )


def stream(n=0):
    return ldp.KeyedStream(n.to_bytes(16, "big"))


class Steady:
    """Stream whose redraws are off by the same for each code, in any order of the codes."""

    def words(self, n):
        return np.full(n, 2**62, np.uint64)


def test_three_pairs_give_the_table_back_if_nothing_goes_beyond_them() -> None:
    found = three_way([exact(axes, TRUTH) for axes in AXES], sizes=SIZES, stream=stream(), redraws=2)
    assert found.value == pytest.approx(TRUTH, abs=1e-5)
    assert found.value.sum() == pytest.approx(1)
    for axes in AXES:
        (left,) = {0, 1, 2} - set(axes)
        assert found.value.sum(axis=left) == pytest.approx(TRUTH.sum(axis=left), abs=1e-6)


def test_reports_may_have_their_attributes_in_any_order() -> None:
    """Pairs in a circle, as (0, 1), (1, 2), (2, 0), have no common order."""
    pairs = [pair_of(axes) for axes in AXES]
    given = np.arange(6).reshape(3, 2).T.ravel()  # codes of (0, 2) in the order of those of (2, 0)
    known = pairs[2].reports
    assert isinstance(known.channel, ldp.GrrChannel)
    turned = Reports(
        estimates=replace(known.estimates, frequency=known.estimates.frequency[given]),
        channel=known.channel,
        **known.sizes,
    )
    circle = [*pairs[:2], Pair(axes=(2, 0), reports=turned)]
    expected, found = (three_way(each, sizes=SIZES, stream=Steady(), redraws=3) for each in (pairs, circle))
    for name in Shares.__slots__:
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-6)


def test_two_pairs_give_independence_given_the_shared_one() -> None:
    """The table of maximum entropy is then known in closed form: p(a, b) p(b, c) / p(b)."""
    found = three_way([exact(axes, TRUTH) for axes in AXES[:2]], sizes=SIZES, stream=stream(), redraws=2)
    of_ab, of_bc = TRUTH.sum(axis=2), TRUTH.sum(axis=0)
    expected = of_ab[:, :, np.newaxis] * of_bc / TRUTH.sum(axis=(0, 2))[:, np.newaxis]
    assert found.value == pytest.approx(expected, abs=1e-5)
    assert not np.allclose(found.value, TRUTH, atol=1e-3)  # the assumption matters here


def test_intervals_cover_where_the_model_holds() -> None:
    """Deviations of all 24 cells over 40 keys are as large as stated."""
    scores, covered = [], []
    for run in range(40):
        pairs = [pair_of(axes, run=run) for axes in AXES]
        found = three_way(pairs, sizes=SIZES, stream=stream(run), redraws=60)
        scores.append((found.value - TRUTH) / found.std_error)
        covered.append((found.ci_low <= TRUTH) & (found.ci_high >= TRUTH))
    assert 0.8 < np.mean(np.square(scores)) < 1.25
    assert 0.91 < np.mean(covered) < 0.985


def test_intervals_cover_cells_that_noise_can_empty() -> None:
    """With a small epsilon, noise often makes small cells of pairs negative, and so the fitted ones zero."""
    truth = np.full(SIZES, 0.02)
    truth[0] = (1 - 0.02 * 16) / 8
    covered = []
    for run in range(40):
        pairs = [pair_of(axes, truth=truth, epsilon=1, run=run, n=8_000) for axes in AXES]
        found = three_way(pairs, sizes=SIZES, stream=stream(run), redraws=40)
        covered.append((found.ci_low <= truth) & (found.ci_high >= truth))
    assert np.mean(covered) > 0.93


def test_pairs_that_hold_no_three_attributes_are_refused() -> None:
    pairs = [exact(axes, TRUTH) for axes in AXES]
    asked = {"sizes": SIZES, "stream": stream()}
    refuses("pairs must differ and hold three attributes", three_way, pairs[:1], **asked, error=LdpError)
    refuses("pairs must differ", three_way, [pairs[0], pairs[0]], **asked, error=LdpError)
    refuses(
        "combinations must be at most", three_way, pairs, sizes=(3, 4, 5000), stream=stream(), error=LdpError
    )
